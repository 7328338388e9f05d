"""Binary codes beside the formula of their expected distance."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from mbkl_paper.baselines import BinaryCodes
from mbkl_paper.baselines.binary_codes import mean_squared_distance


def expected_distance(distance, gamma=1.0, n_terms=2000):
    orders = np.arange(1, n_terms + 1)
    kernels = np.exp(-gamma * (orders * distance) ** 2 / 2)
    # Further terms have no kernel left, and their sum is known.
    rest = 1 / (2 * (2 * n_terms + 1))
    return 8 / np.pi**2 * (((1 - kernels) / (4 * orders**2 - 1)).sum() + rest)


@pytest.mark.parametrize(("distance", "known"), [(0.2, 0.0510), (1.0, 0.2330), (3.0, 0.4029)])
def test_the_share_of_different_bits_is_the_formula(distance, known):
    n_bits = 200_000
    X = np.array([[0.3, 0.1], [0.3 + distance, 0.1]])
    bits = BinaryCodes(n_bits, gamma=1.0, random_state=0).fit_transform(X)
    expected = expected_distance(distance)
    assert expected == pytest.approx(known, abs=0.002)
    deviation = np.sqrt(expected * (1 - expected) / n_bits)
    assert abs((bits[0] != bits[1]).mean() - expected) < 4 * deviation


def test_distances_lie_between_their_bounds():
    for distance in (0.1, 0.5, 1.0, 2.0, 5.0):
        kernel = np.exp(-(distance**2) / 2)
        bound = 4 / np.pi**2
        assert bound * (1 - kernel) <= expected_distance(distance) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_the_width_is_the_mean_squared_distance(make_data, make):
    X, _ = make_data()
    expected = pdist(X, "sqeuclidean").mean()
    assert mean_squared_distance(make(X)) == pytest.approx(expected)
    assert BinaryCodes(5).fit(make(X)).gamma_ == pytest.approx(1 / expected)


def test_equal_rows_have_a_width_too():
    assert BinaryCodes(5).fit(np.ones((4, 2))).gamma_ == 1.0


def test_seeds_and_sparse_rows(make_data):
    X, _ = make_data()
    codes = BinaryCodes(50, random_state=3).fit_transform(X)
    np.testing.assert_array_equal(codes, BinaryCodes(50, random_state=3).fit_transform(X))
    assert (codes != BinaryCodes(50, random_state=4).fit_transform(X)).any()
    rows = sparse.csr_array(X)
    np.testing.assert_array_equal(codes, BinaryCodes(50, random_state=3).fit_transform(rows))


@pytest.mark.parametrize("wrong", [{"n_bits": 0}, {"gamma": -1.0}])
def test_wrong_parameters(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BinaryCodes(**wrong).fit([[0.5], [1.0]])

"""The homogeneous kernel map beside its kernels and VLFeat's weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mbkl_paper.baselines import HomogeneousKernelMap
from mbkl_paper.baselines.homogeneous_map import _SPECTRA

KERNELS = {
    "chi2": lambda x, z: 2 * x * z / (x + z),
    "intersection": np.minimum,
    "jensen_shannon": lambda x, z: (x * np.log2((x + z) / x) + z * np.log2((x + z) / z)) / 2,
}


def errors(kernel, order, window="rectangular"):
    values = np.linspace(0, 1, 401)[1:, None]
    phi = HomogeneousKernelMap(kernel, order, window).fit_transform(values)
    error = phi @ phi.T - KERNELS[kernel](values, values.T)
    return np.abs(error).max(), np.sqrt((error**2).mean())


@pytest.mark.parametrize(
    ("kernel", "order", "window", "largest", "mean_square"),
    [
        # The largest error of the first depends on how near to zero the values come.
        ("chi2", 1, "rectangular", 0.028, 0.0033),
        ("chi2", 1, "uniform", 0.0345, 0.0133),
        ("chi2", 4, "rectangular", 0.0024, 0.0009),
        ("intersection", 1, "rectangular", 0.145, 0.035),
        ("intersection", 4, "rectangular", 0.077, 0.015),
    ],
)
def test_errors_are_those_known(kernel, order, window, largest, mean_square):
    found = errors(kernel, order, window)
    assert found[0] == pytest.approx(largest, rel=0.03)
    assert found[1] == pytest.approx(mean_square, rel=0.05)


@pytest.mark.parametrize("window", ["rectangular", "uniform"])
@pytest.mark.parametrize("kernel", list(KERNELS))
def test_a_higher_order_is_nearer_to_the_kernel(kernel, window):
    assert errors(kernel, 6, window)[1] < 0.6 * errors(kernel, 1, window)[1]


@pytest.mark.parametrize(("order", "period", "times"), [(1, 7.925, 3), (4, 12.97, 9)])
def test_periods_and_lengths(order, period, times):
    feature_map = HomogeneousKernelMap("chi2", order).fit([[0.5, 0.2]])
    assert feature_map.period_ == pytest.approx(period, abs=0.005)
    assert feature_map.transform([[0.5, 0.2]]).shape == (1, 2 * times)
    assert len(feature_map.get_feature_names_out()) == 2 * times


@pytest.mark.parametrize("order", [1, 4])
@pytest.mark.parametrize("kernel", ["chi2", "jensen_shannon", "intersection"])
def test_weights_are_the_smoothed_spectrum(kernel, order):
    """VLFeat convolves the spectrum with the transform of the window, as a sum."""
    feature_map = HomogeneousKernelMap(kernel, order).fit([[0.5]])
    period = feature_map.period_
    grid = np.linspace(-2 / (period * 1e-2), 2 / (period * 1e-2), 2049)
    window = period / (2 * np.pi) * np.sinc(period / 2 * grid / np.pi)
    frequencies = 2 * np.pi / period * np.arange(order + 1)
    sums = [(window * _SPECTRA[kernel](grid + w)).sum() for w in frequencies]
    expected = np.maximum(np.array(sums) * (grid[1] - grid[0]), 0.0)
    np.testing.assert_allclose(feature_map.spectrum_, expected, atol=1e-5)


@given(st.floats(0.01, 100), st.floats(0.01, 1), st.floats(0.01, 1))
def test_the_length_of_the_map_is_homogeneous(factor, x, z):
    feature_map = HomogeneousKernelMap("chi2", 2).fit([[1.0]])
    phi, scaled = feature_map.transform([[x], [z]]), feature_map.transform([[factor * x]])
    assert (scaled[0] ** 2).sum() == pytest.approx(factor * (phi[0] ** 2).sum(), rel=1e-9)
    assert phi[0] @ phi[1] == pytest.approx(2 * x * z / (x + z), abs=0.02)


def test_sparse_rows_give_the_same_and_stay_sparse(histograms):
    X, _ = histograms()
    feature_map = HomogeneousKernelMap("chi2", 2).fit(X)
    phi = feature_map.transform(sparse.csr_array(X))
    assert phi.nnz == 5 * np.count_nonzero(X)
    np.testing.assert_allclose(phi.toarray(), feature_map.transform(X), rtol=1e-12)


@pytest.mark.parametrize("wrong", [{"kernel": "rbf"}, {"order": 0}, {"window": "hann"}])
def test_wrong_parameters(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        HomogeneousKernelMap(**wrong).fit([[0.5]])

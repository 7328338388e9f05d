"""Fast evaluation and encodings of the intersection kernel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.svm import LinearSVC

from mbkl_paper.baselines import (
    ApproximateIntersectionSVM,
    IntersectionEncoding,
    KernelSVM,
    LinearSVM,
    intersection_kernel,
)
from mbkl_paper.baselines.fast_intersection import ExactFunctions, Tables

VALUES = st.floats(0, 1).map(lambda x: round(x, 3))


@given(arrays(float, (5, 2), elements=VALUES), arrays(float, (4, 2), elements=VALUES))
def test_exact_functions_are_the_sum_of_minima(support, X):
    coefficients = np.random.default_rng(0).normal(size=(5, 3))
    expected = intersection_kernel(X, support) @ coefficients
    found = ExactFunctions.of(support, coefficients).scores(X)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(arrays(float, (5, 2), elements=VALUES), arrays(float, (4, 2), elements=VALUES))
def test_tables_are_wrong_within_a_bin_only(support, X):
    coefficients = np.random.default_rng(0).normal(size=(5, 3))
    exact = ExactFunctions.of(support, coefficients)
    # A function that bends by c within a bin of width d is off by at most |c| d / 4.
    allowed = np.abs(coefficients).sum() * 2 / 100 / 4
    difference = Tables.of(support, coefficients, 100).scores(X) - exact.scores(X)
    assert np.abs(difference).max() <= allowed + 1e-12


def test_tables_are_exact_at_the_ends_of_bins_and_beyond():
    support, coefficients = np.array([[0.25], [1.0]]), np.array([[1.0], [-2.0]])
    X = np.array([[0.0], [0.25], [0.5], [1.0], [7.0]])
    expected = ExactFunctions.of(support, coefficients).scores(X)
    np.testing.assert_allclose(Tables.of(support, coefficients, 4).scores(X), expected, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_the_approximation_tracks_the_kernel(histograms, n_classes, multi_class):
    X, y = histograms(90, 6, n_classes)
    X_new, _ = histograms(50, 6, n_classes, seed=1)
    exact = KernelSVM("intersection", C=5.0, multi_class=multi_class).fit(X, y)
    table = ApproximateIntersectionSVM(C=5.0, multi_class=multi_class).fit(X, y)
    np.testing.assert_array_equal(exact.dual_coef_, table.dual_coef_)
    if n_classes == 2:
        scores = exact.decision_function(X_new)
        error = table.decision_function(X_new) - scores
        assert np.abs(error).max() < 0.05 * np.ptp(scores)
    assert (table.predict(X_new) == exact.predict(X_new)).mean() >= 0.96


def test_more_bins_are_nearer(histograms):
    X, y = histograms(90, 6)
    exact = KernelSVM("intersection", C=5.0).fit(X, y).decision_function(X)
    errors = [
        np.abs(ApproximateIntersectionSVM(n, C=5.0).fit(X, y).decision_function(X) - exact).max()
        for n in (4, 400)
    ]
    assert errors[1] < errors[0] / 20


def thermometer(X, highest, n_bins, rounded):
    levels = np.minimum(X / highest, 1.0) * n_bins
    levels = np.rint(levels) if rounded else levels
    filled = np.clip(levels[:, :, None] - np.arange(n_bins), 0.0, 1.0)
    return (filled * np.sqrt(highest / n_bins)[:, None]).reshape(len(X), -1)


@pytest.mark.parametrize("encoding", ["phi_1", "phi_2"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_the_encoding_is_a_thermometer(histograms, encoding, make):
    X, _ = histograms(40, 3)
    X *= [1.0, 0.5, 4.0]
    encoder = IntersectionEncoding(encoding, n_bins=7).fit(make(X[:20]))
    phi = encoder.transform(make(X))
    assert phi.indices.dtype == np.int32
    expected = thermometer(X, X[:20].max(axis=0), 7, encoding == "phi_1")
    np.testing.assert_allclose(phi.toarray(), expected, atol=1e-12)


@pytest.mark.parametrize(("encoding", "bound"), [("phi_1", 0.5), ("phi_2", 0.25)])
def test_products_are_near_the_minimum(encoding, bound):
    values = np.linspace(0, 1, 301)[:, None]
    phi = IntersectionEncoding(encoding, n_bins=20).fit_transform(values)
    error = np.abs((phi @ phi.T).toarray() - np.minimum(values, values.T))
    assert error.max() <= bound / 20 + 1e-12


def test_a_linear_svm_on_the_encoding_is_near_the_exact_one(histograms):
    """The squared hinge on phi_2 beside that on the eigenvectors of the kernel itself."""
    X, y = histograms(90, 6)
    gram = intersection_kernel(X)
    squares, directions = np.linalg.eigh(gram)
    exact = directions * np.sqrt(np.maximum(squares, 0.0))
    expected = LinearSVC(C=1.0, dual=False, tol=1e-8).fit(exact, y).decision_function(exact)
    found = LinearSVM(IntersectionEncoding("phi_2"), tol=1e-8).fit(X, y).decision_function(X)
    assert np.abs(found - expected).max() < 0.02 * np.ptp(expected)


def test_constant_features_are_harmless(histograms):
    X, y = histograms()
    X[:, 1] = 0.0
    assert np.isfinite(ApproximateIntersectionSVM().fit(X, y).decision_function(X)).all()
    assert np.isfinite(IntersectionEncoding().fit_transform(X).data).all()


@pytest.mark.parametrize("kind", [ApproximateIntersectionSVM, IntersectionEncoding])
def test_no_bins_are_an_error(histograms, kind):
    with pytest.raises(ValueError, match="n_bins"):
        kind(n_bins=0).fit(*histograms())


def test_an_unknown_encoding_is_an_error(histograms):
    with pytest.raises(ValueError, match="encoding"):
        IntersectionEncoding("phi_3").fit(histograms()[0])

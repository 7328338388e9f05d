"""Exact kernels beside their formulas, and the SVM beside libsvm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from mbkl_paper.baselines import (
    KernelSVM,
    additive_kernels,
    chi2_distance,
    chi2_kernel,
    intersection_kernel,
    kernel_svm,
)

FORMULAS = {
    chi2_kernel: lambda x, z: 2 * x * z / (x + z) if x + z else 0.0,
    chi2_distance: lambda x, z: (x - z) ** 2 / (x + z) if x + z else 0.0,
    intersection_kernel: min,
}


def by_formula(function, X, Z):
    return np.array(
        [[sum(FORMULAS[function](*pair) for pair in zip(x, z, strict=True)) for z in Z] for x in X]
    )


@pytest.fixture(params=["libraries", "compiled"])
def route(request, monkeypatch):
    """Either way to compute kernel matrices."""
    if request.param == "compiled":
        monkeypatch.setattr(additive_kernels, "_WORTH_COMPILING", 0)


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("function", list(FORMULAS))
def test_kernels_are_their_formulas(histograms, function):
    X, _ = histograms(23, 7)
    X[3] = 0.0
    expected = by_formula(function, X, X)
    np.testing.assert_allclose(function(X), expected, atol=1e-12)
    np.testing.assert_allclose(function(X, X[:9].copy()), expected[:, :9], atol=1e-12)
    np.testing.assert_allclose(function(sparse.csr_array(X)), expected, atol=1e-12)


@pytest.mark.parametrize("function", [chi2_kernel, intersection_kernel])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_blocks_and_threads_do_not_matter(function, n_jobs, monkeypatch):
    X = np.random.default_rng(0).random((700, 3))
    expected = function(X)
    monkeypatch.setattr(additive_kernels, "_WORTH_COMPILING", 0)
    found = function(X, n_jobs=n_jobs)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(found, found.T)


@given(st.lists(st.floats(0, 10), min_size=6, max_size=6))
def test_distance_and_kernel_belong_together(values):
    X = np.array(values).reshape(2, 3)
    totals = X.sum(axis=1)[:, None] + X.sum(axis=1)
    np.testing.assert_allclose(chi2_distance(X), totals - 2 * chi2_kernel(X), atol=1e-9)
    assert np.linalg.eigvalsh(chi2_kernel(X)).min() > -1e-9


@pytest.mark.parametrize("kernel", ["chi2", "rb_chi2", "intersection"])
def test_two_classes_are_libsvm(histograms, kernel):
    X, y = histograms(80, 4)
    X_new, _ = histograms(20, 4, seed=1)
    model = KernelSVM(kernel, C=2.0, tol=1e-6).fit(X, y)
    distance = by_formula(chi2_distance, X, X)
    pairs = distance[np.triu_indices(len(X), 1)]
    functions = {
        "chi2": lambda A, B: by_formula(chi2_kernel, A, B),
        "intersection": lambda A, B: by_formula(intersection_kernel, A, B),
        "rb_chi2": lambda A, B: np.exp(-by_formula(chi2_distance, A, B) / pairs.mean()),
    }
    direct = SVC(C=2.0, kernel=functions[kernel], tol=1e-6).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X_new), direct.decision_function(X_new), atol=1e-4
    )
    assert set(model.support_) == set(direct.support_)


def test_many_classes_one_against_the_rest(histograms):
    X, y = histograms(90, 4, 3)
    model = KernelSVM("chi2", C=2.0, tol=1e-6).fit(X, y)
    direct = OneVsRestClassifier(SVC(C=2.0, kernel=chi2_kernel, tol=1e-6)).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), direct.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("kernel", ["chi2", "intersection"])
def test_many_classes_one_against_one(histograms, kernel):
    X, y = histograms(120, 4, 4)
    function = chi2_kernel if kernel == "chi2" else intersection_kernel
    model = KernelSVM(kernel, C=2.0, multi_class="ovo", tol=1e-6).fit(X, y)
    # libsvm itself gives ties to the first class, this to the larger sum of scores.
    direct = SVC(C=2.0, kernel=function, tol=1e-6, break_ties=True).fit(X, y)
    assert model.intercept_.shape == (6,)
    np.testing.assert_allclose(model.decision_function(X), direct.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), direct.predict(X))


def test_fast_evaluation_is_the_sum_over_support_vectors(histograms, monkeypatch):
    X, y = histograms(90, 4, 3)
    X_new = np.vstack([histograms(40, 4, seed=1)[0], 3 * X[:5], np.zeros((1, 4))])
    fast = KernelSVM("intersection", C=2.0).fit(X, y)
    monkeypatch.setattr(kernel_svm, "_MOST_NUMBERS", 0)
    slow = KernelSVM("intersection", C=2.0).fit(X, y)
    assert fast._functions is not None
    assert slow._functions is None
    np.testing.assert_allclose(
        fast.decision_function(X_new), slow.decision_function(X_new), atol=1e-10
    )


@pytest.mark.parametrize("kernel", ["chi2", "rb_chi2", "intersection"])
def test_sparse_rows_give_the_same(histograms, kernel):
    X, y = histograms()
    model = KernelSVM(kernel, tol=1e-8)
    expected = model.fit(X, y).decision_function(X)
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(model.fit(rows, y).decision_function(rows), expected, atol=1e-6)


def test_a_solution_below_its_bounds_serves_larger_costs(histograms):
    X, y = histograms(40, 8)
    model = KernelSVM("rb_chi2", tol=1e-6)
    gram = model._kernel_of_training_rows(model._share(X))
    assert not model._solve(gram, y, 1e-3).is_final.any()
    free = model._solve(gram, y, 1e3)
    assert free.is_final.all()
    np.testing.assert_array_equal(model._solve(gram, y, 1e4, free).coefficients, free.coefficients)
    again = model._solve(gram, y, 1e4)
    np.testing.assert_allclose(gram @ again.coefficients, gram @ free.coefficients, atol=1e-3)


def test_equal_rows_have_a_width_too():
    model = KernelSVM("rb_chi2").fit(np.ones((6, 2)), [0, 1] * 3)
    assert model.gamma_ == 1.0
    assert np.isfinite(model.decision_function(np.ones((1, 2)))).all()


@pytest.mark.parametrize("wrong", [{"kernel": "rbf"}, {"multi_class": "all"}, {"C": 0}])
def test_wrong_parameters(histograms, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        KernelSVM(**wrong).fit(*histograms())

"""The linear SVM beside liblinear itself."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from mbkl_paper.baselines import BinaryMaps, HomogeneousKernelMap, LinearSVM


def objective(coefficients, intercept, X, labels, C):
    loss = np.maximum(0, 1 - labels * (X @ coefficients + intercept)) ** 2
    return (coefficients @ coefficients + intercept**2) / 2 + C * loss.sum()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_without_a_map_it_is_liblinear(make_data, n_classes, penalty):
    X, y = make_data(80, 4, n_classes)
    model = LinearSVM(C=0.3, penalty=penalty).fit(X, y)
    solver = LinearSVC(C=0.3, penalty=penalty, dual=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), solver.decision_function(X))
    np.testing.assert_allclose(model.coef_, solver.coef_)
    assert model.n_iter_ == np.max(solver.n_iter_)


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_more_columns_than_rows_are_the_same_problem(make_data, C, make):
    X, y = make_data(30, 90)
    labels = np.where(y == 1, 1, -1)
    model = LinearSVM(C=C, tol=1e-8).fit(make(X), y)
    direct = LinearSVC(C=C, dual=False, tol=1e-8).fit(X, y)
    values = [
        objective(fitted.coef_[0], fitted.intercept_[0], X, labels, C) for fitted in (model, direct)
    ]
    # liblinear may give up before.
    assert values[0] <= (1 + 1e-4) * values[1]
    assert values[0] == pytest.approx(values[1], rel=1e-2)
    np.testing.assert_allclose(
        model.decision_function(X), direct.decision_function(X), rtol=1e-2, atol=2e-3
    )


def test_rows_that_depend_on_each_other(make_data):
    X, y = make_data(30, 90)
    X[10:] = X[np.arange(20) % 10]
    model = LinearSVM(C=1.0, tol=1e-8).fit(X, y)
    direct = LinearSVC(C=1.0, dual=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), direct.decision_function(X), rtol=1e-2, atol=2e-3
    )


def test_with_a_map_it_is_liblinear_on_its_columns(histograms):
    X, y = histograms()
    feature_map = HomogeneousKernelMap("chi2", 2)
    model = LinearSVM(feature_map, C=3.0).fit(X, y)
    phi = feature_map.fit_transform(X)
    direct = LinearSVC(C=3.0, dual=False).fit(phi, y)
    np.testing.assert_allclose(model.decision_function(X), direct.decision_function(phi))


def test_the_given_map_is_not_changed(histograms):
    X, y = histograms()
    feature_map = HomogeneousKernelMap("chi2")
    LinearSVM(feature_map).fit(X, y)
    assert not hasattr(feature_map, "period_")


def test_sparse_rows_give_the_same(histograms):
    X, y = histograms(n_classes=3)
    model = LinearSVM(HomogeneousKernelMap("chi2"), tol=1e-8)
    dense = model.fit(X, y).decision_function(X)
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(model.fit(rows, y).decision_function(rows), dense, rtol=1e-5)


def test_l1_leaves_out_maps(make_data):
    X, y = make_data(60, 3, 3)
    model = LinearSVM(BinaryMaps(200, random_state=0), C=0.05, penalty="l1").fit(X, y)
    kept = model.coef_ != 0
    assert 0 < kept.sum() < kept.size / 2
    assert (kept[0] != kept[1]).any()


@pytest.mark.parametrize("wrong", [{"penalty": "l3"}, {"C": 0.0}, {"C": -1}, {"feature_map": "x"}])
def test_wrong_parameters(make_data, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LinearSVM(**wrong).fit(*make_data())

"""The grid of costs beside plain loops over folds and costs."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import PredefinedSplit, StratifiedKFold

from mbkl_paper.baselines import KernelSVM, cross_validate_costs, kernel_svm, make

COSTS = [1.0, 0.01, 100.0]
SYSTEMS = {
    "linear": {},
    "chi2": {"tol": 1e-6},
    "rb_chi2": {"tol": 1e-6},
    "intersection": {"multi_class": "ovo", "tol": 1e-6},
    "approx_chi2": {},
    "pmsvm_chi2": {"tol": 1e-3},
    "raginsky_lazebnik": {"feature_map__n_bits": 60},
    "fourier_mkl": {"n_components": 30, "tol": 1e-4, "max_iter": 100},
    "mbkl_ones": {"n_maps": 60},
    "l1_maps": {"feature_map__n_maps": 60},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_grid_is_a_loop_over_fits(histograms, name):
    X, y = histograms(90, 5, 3)
    model = make(name, random_state=0, n_jobs=1, **SYSTEMS[name])
    folds = StratifiedKFold(3)
    found = cross_validate_costs(model, X, y, COSTS, cv=3)
    expected = [
        [
            clone(model).set_params(C=C).fit(X[a], y[a]).score(X[b], y[b])
            for a, b in folds.split(X, y)
        ]
        for C in COSTS
    ]
    # Fits that start from one another end within a tolerance of each other.
    assert np.abs(found - expected).max() <= (1 / 30 + 1e-9 if name == "fourier_mkl" else 1e-9)


def test_rows_are_compared_once(histograms, monkeypatch):
    calls = []
    compare = kernel_svm._COMPARISONS["chi2"]
    counted = {"chi2": lambda *rows, **options: calls.append(1) or compare(*rows, **options)}
    monkeypatch.setattr(kernel_svm, "_COMPARISONS", counted)
    cross_validate_costs(KernelSVM("chi2"), *histograms(), COSTS)
    assert len(calls) == 1


def test_names_of_classes_metrics_and_splits(histograms):
    X, y = histograms(60, 5)
    labels = np.array(["ape", "bee"])[y]
    split = PredefinedSplit(np.where(np.arange(60) < 40, -1, 0))
    for rows in (X, sparse.csr_array(X)):
        found = cross_validate_costs(
            make("approx_chi2"), rows, labels, [1.0], cv=split, metric=balanced_accuracy_score
        )
        assert found.shape == (1, 1)
        guess = make("approx_chi2").fit(X[:40], labels[:40]).predict(X[40:])
        assert found[0, 0] == pytest.approx(balanced_accuracy_score(labels[40:], guess))


def test_the_estimator_stays_as_it_is(histograms):
    model = make("chi2", C=5.0)
    cross_validate_costs(model, *histograms(), COSTS)
    assert model.C == 5.0
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("name", ["random_forest", "adaboost"])
def test_no_cost_is_an_error(histograms, name):
    with pytest.raises(ValueError, match="has no cost C"):
        cross_validate_costs(make(name), *histograms(), COSTS)


def test_a_wrong_cost_is_an_error(histograms):
    with pytest.raises(ValueError, match="'C'"):
        cross_validate_costs(make("chi2"), *histograms(), [1.0, -1.0])

"""The tasks of the suite: sets, methods and measures for each kind of target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    d2_absolute_error_score,
    d2_pinball_score,
    log_loss,
    r2_score,
    roc_auc_score,
)

from benchmarks.common import percent
from benchmarks.data import Dataset, gaussian_classes
from benchmarks.suite import methods, regressors
from benchmarks.suite.datasets import CLASSES, NUMBERS, Sets
from benchmarks.suite.methods import Factory

COVERAGE, LOG_LOSS, AUC = 0.9, "log loss", "area under ROC"
# A function of the model, the fold, and the predictions for the test rows.
Measurement = Callable[[BaseEstimator, Dataset, NDArray], float]


@dataclass(frozen=True)
class Task:
    """One kind of target.

    Parameters
    ----------
    name : str
    sets : Sets
    methods : mapping from name to factory
    measures : mapping from name to measurement
        The first one ranks the methods; more is better.
    quick_methods, large_methods : tuple of str
        Methods of quick runs, and of runs on all rows.
    tuned : tuple of str
        Methods that search parameters.
    notes : tuple of str
    in_per_cent : bool
        Whether measures are written in per cent.
    """

    name: str
    sets: Sets
    methods: Mapping[str, Factory]
    measures: Mapping[str, Measurement]
    quick_methods: tuple[str, ...]
    large_methods: tuple[str, ...]
    tuned: tuple[str, ...]
    notes: tuple[str, ...]
    in_per_cent: bool = False

    @property
    def measure(self) -> str:
        """Name of the first measure."""
        return next(iter(self.measures))

    @property
    def title(self) -> str:
        return self.measure[0].upper() + self.measure[1:]

    @property
    def is_default(self) -> bool:
        return self.name == "classification"

    @property
    def section(self) -> str:
        """Prefix of the names of files and sections."""
        return "suite" if self.is_default else f"suite_{self.name}"

    @property
    def results(self) -> str:
        """Name of the file of results."""
        return "results.jsonl" if self.is_default else f"results_{self.name}.jsonl"

    def written(self, value: float, measure: str = "") -> str:
        """Format a measure."""
        if np.isnan(value):
            return "-"
        in_per_cent = self.in_per_cent and measure not in (LOG_LOSS, AUC)
        return percent(value) if in_per_cent else f"{value:.4f}"

    def measured(self, model: BaseEstimator, fold: Dataset, y_pred: NDArray) -> dict[str, float]:
        """Return all measures of a fitted model."""
        return {name: float(find(model, fold, y_pred)) for name, find in self.measures.items()}

    def few_rows(self) -> tuple[NDArray, NDArray]:
        """Return rows for a warm-up, so that imports are not timed."""
        X, y = gaussian_classes(60, 2)
        return X, y if self.sets.has_classes else X.sum(axis=1, dtype=np.float64)


def is_ours(method: str) -> bool:
    """Say whether a method is one of mbkl."""
    return method.startswith("MBKL")


# ---------------------------------------------------------------- measurements


def _of_prediction(score: Callable[[NDArray, NDArray], float]) -> Measurement:
    return lambda model, fold, y_pred: score(fold.y_test, y_pred)


def _of_probabilities(score: Callable[[NDArray, NDArray, NDArray], float]) -> Measurement:
    """Return a measurement of probabilities, which is NaN for methods without them."""

    def measure(model: BaseEstimator, fold: Dataset, y_pred: NDArray) -> float:
        if not hasattr(model, "predict_proba"):
            return np.nan
        classes = np.unique(np.concatenate([model.classes_, fold.y_test]))
        y_prob = np.zeros((len(fold.y_test), classes.size))
        y_prob[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(fold.X_test)
        return score(fold.y_test, y_prob, classes)

    return measure


def _log_loss(y: NDArray, y_prob: NDArray, classes: NDArray) -> float:
    return log_loss(y, y_prob, labels=classes)


def _auc(y: NDArray, y_prob: NDArray, classes: NDArray) -> float:
    """Return the area under the ROC curve, with several classes the mean one against the rest."""
    return float(
        np.mean(
            [
                roc_auc_score(y == label, y_prob[:, position])
                for position, label in enumerate(classes)
                if classes.size > 2 or position == 1
                if 0 < (y == label).sum() < len(y)
            ]
        )
    )


def _coverage(model: BaseEstimator, fold: Dataset, y_pred: NDArray) -> float:
    """Return the share of rows within their intervals; NaN for models without any."""
    if not hasattr(model, "predict_interval"):
        return np.nan
    lower, upper = model.predict_interval(fold.X_test, coverage=COVERAGE).T
    return ((lower <= fold.y_test) & (fold.y_test <= upper)).mean()


def _pinball(y: NDArray, quantiles: NDArray) -> float:
    pairs = zip(regressors.LEVELS, quantiles.T)
    return np.mean([d2_pinball_score(y, column, alpha=level) for level, column in pairs])


def _inside(y: NDArray, quantiles: NDArray) -> float:
    return ((quantiles[:, 0] <= y) & (y <= quantiles[:, -1])).mean()


# ---------------------------------------------------------------- registry

CLASSIFICATION = Task(
    "classification",
    CLASSES,
    methods.METHODS,
    {
        "accuracy": _of_prediction(accuracy_score),
        "balanced accuracy": _of_prediction(balanced_accuracy_score),
        LOG_LOSS: _of_probabilities(_log_loss),
        AUC: _of_probabilities(_auc),
    },
    methods.QUICK_METHODS,
    methods.LARGE_METHODS,
    methods.TUNED,
    methods.NOTES,
    in_per_cent=True,
)
REGRESSION = Task(
    "regression",
    NUMBERS,
    regressors.METHODS,
    {
        "R2": _of_prediction(r2_score),
        "share of absolute error explained": _of_prediction(d2_absolute_error_score),
        f"coverage at {COVERAGE}": _coverage,
    },
    ("MBKLRegressor", "ridge", "HistGradientBoosting"),
    regressors.LARGE_METHODS,
    regressors.TUNED,
    regressors.NOTES,
)
QUANTILES = Task(
    "quantiles",
    NUMBERS,
    regressors.QUANTILE_METHODS,
    {
        "share of pinball loss explained": _of_prediction(_pinball),
        "inside": _of_prediction(_inside),
    },
    ("MBKLRegressor", "HistGradientBoosting"),
    tuple(regressors.QUANTILE_METHODS),
    (),
    regressors.QUANTILE_NOTES,
)
TASKS = {task.name: task for task in (CLASSIFICATION, REGRESSION, QUANTILES)}

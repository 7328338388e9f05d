"""Quality of predictions: metrics of classes, probabilities and numbers, and their curves.

A number here is the target of a regression.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.base import is_regressor
from sklearn.model_selection import KFold, StratifiedKFold

Array = NDArray[np.float64]

# Nominal coverage of prediction intervals.
COVERAGE = 0.9
# Largest number of points of a curve, bins of a reliability curve, and groups of rows with similar
# predictions whose mean intervals are drawn.
_MOST_POINTS, _BINS, _BANDS = 200, 10, 40


@dataclass(frozen=True)
class Outcome:
    """True targets and predictions of rows, and the seconds of the fit.

    `uncertainty` holds probabilities of shape (n_rows, n_classes), or bounds of intervals of shape
    (n_rows, 2) or (n_rows, n_targets, 2); None where a model has neither.
    """

    truth: NDArray
    predictions: NDArray
    uncertainty: Array | None
    seconds: float

    def by_target(self) -> list[tuple[Array, Array, Array | None]]:
        """Return numbers, predictions and bounds of each target."""
        columns = (len(self.truth), -1)
        truth, predictions = (
            each.reshape(columns).T.astype(np.float64) for each in (self.truth, self.predictions)
        )
        bounds: Any = [None] * len(truth)
        if self.uncertainty is not None:
            bounds = self.uncertainty.reshape(*columns, 2).swapaxes(0, 1)
        return list(zip(truth, predictions, bounds, strict=True))


def outcome_of(model: Any, X: Any, y: NDArray, seconds: float = 0.0) -> Outcome:
    """Return the predictions of a fitted model for rows."""
    uncertainty = None
    if hasattr(model, "predict_interval"):
        uncertainty = model.predict_interval(X, COVERAGE)
    elif hasattr(model, "predict_proba"):
        uncertainty = model.predict_proba(X)
    return Outcome(y, model.predict(X), uncertainty, seconds)


def joined(outcomes: Sequence[Any]) -> Any:
    """Return the outcomes of several folds as one; its seconds are their mean."""

    def rows_of(name: str) -> NDArray | None:
        parts = [getattr(outcome, name) for outcome in outcomes]
        return None if any(part is None for part in parts) else np.concatenate(parts)

    by_row = {name: rows_of(name) for name in ("truth", "predictions", "uncertainty")}
    seconds = float(np.mean([outcome.seconds for outcome in outcomes]))
    return replace(outcomes[0], **by_row, seconds=seconds)


def folds_of(
    y: NDArray, are_classes: bool, n_folds: int, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the training rows and the test rows of each fold.

    There are at most as many folds as rows of the largest class, and none if each class has one
    row. A class with one row is always a training row.
    """
    kind: type[KFold | StratifiedKFold] = KFold
    testable, most = np.arange(len(y)), len(y)
    if are_classes:
        kind = StratifiedKFold
        _, first, counts = np.unique(y, return_index=True, return_counts=True)
        testable, most = np.setdiff1d(testable, first[counts == 1]), counts.max()
    if most < 2:
        return
    folds = kind(min(n_folds, most), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Classes with fewer rows than folds are allowed: some folds test none of their rows.
        warnings.simplefilter("ignore", UserWarning)
        pairs = list(folds.split(testable, y[testable]))
    for _, outside in pairs:
        yield np.setdiff1d(np.arange(len(y)), testable[outside]), testable[outside]


# ---------------------------------------------------------------- probabilities


def with_all_labels(
    y: NDArray, probabilities: Array, classes: NDArray
) -> tuple[NDArray, NDArray[np.intp], Array]:
    """Return all classes, the class number of each row, and probabilities, 0 for new classes."""
    known = np.unique(np.concatenate([classes, y]))
    full = np.zeros((len(y), known.size))
    full[:, np.searchsorted(known, classes)] = probabilities
    return known, np.searchsorted(known, y), full


def probability_figures(y: NDArray, probabilities: Array, classes: NDArray) -> dict[str, float]:
    """Return AUC, log loss and Brier score of probabilities.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
    probabilities : ndarray of shape (n_rows, n_classes)
    classes : ndarray of shape (n_classes,)
        Classes of the columns of `probabilities`.

    Returns
    -------
    figures : dict
        "auc" is the mean over the one-against-rest AUCs of the classes, and missing where all
        rows are of one class; "brier_score" is half the sum of squared errors over the classes,
        the usual score for two classes.

    Examples
    --------
    >>> import numpy as np
    >>> chances = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> figures = probability_figures(np.array([0, 1]), chances, np.array([0, 1]))
    >>> {name: round(value, 3) for name, value in figures.items()}
    {'auc': 1.0, 'log_loss': 0.164, 'brier_score': 0.025}
    """
    known, numbers, full = with_all_labels(y, probabilities, classes)
    is_of = numbers[:, None] == np.arange(known.size)
    figures = {}
    mixed = np.flatnonzero(is_of.any(axis=0) & ~is_of.all(axis=0))
    if mixed.size:
        aucs = [metrics.roc_auc_score(is_of[:, k], full[:, k]) for k in mixed]
        figures["auc"] = float(np.mean(aucs))
    true_class = np.clip(full[np.arange(numbers.size), numbers], np.finfo(float).eps, 1.0)
    figures["log_loss"] = float(-np.log(true_class).mean())
    figures["brier_score"] = float(((full - is_of) ** 2).sum(axis=1).mean() / 2)
    return figures


def class_figures(outcome: Outcome, classes: NDArray, undefined: float = 0.0) -> dict[str, Any]:
    """Return accuracies, metrics of each class, the confusion matrix, metrics of probabilities.

    Classes of the rows that are missing in `classes` are added. Ratios of no rows are `undefined`.
    """
    y, predictions = outcome.truth, outcome.predictions
    known = np.unique(np.concatenate([classes, y]))
    precision, recall, f1, n_rows = metrics.precision_recall_fscore_support(
        y, predictions, labels=known, zero_division=undefined
    )
    columns = (column.tolist() for column in (known, n_rows, precision, recall, f1))
    of_probabilities = {}
    if outcome.uncertainty is not None:
        of_probabilities = probability_figures(y, outcome.uncertainty, classes)
    return {
        "rows": y.size,
        "accuracy": float((y == predictions).mean()),
        "balanced_accuracy": float(recall[n_rows > 0].mean()),
        "always_the_most_frequent": float(n_rows.max() / y.size),
        "classes": [
            {"label": label, "rows": n, "precision": p, "recall": r, "f1": f}
            for label, n, p, r, f in zip(*columns, strict=True)
        ],
        "confusion": metrics.confusion_matrix(y, predictions, labels=known),
        **of_probabilities,
    }


@dataclass(frozen=True)
class Curves:
    """Curves of one class against the rest.

    Parameters
    ----------
    label : object
        The class.
    roc : ndarray of shape (2, n_points)
        False positive rate and true positive rate.
    precision_recall : ndarray of shape (2, n_points)
        Recall and precision.
    reliability : ndarray of shape (3, n_bins)
        Of rows binned by probability: mean probability, share of rows of the class, and number
        of rows.
    share : float
        Share of rows that are of the class.
    auc, average_precision : float
    """

    label: object
    roc: Array
    precision_recall: Array
    reliability: Array
    share: float
    auc: float
    average_precision: float


def quality_curves(y: NDArray, probabilities: Array, classes: NDArray) -> list[Curves]:
    """Return the curves of all classes that some rows have and some have not.

    Of two classes only the second has curves.

    Parameters
    ----------
    y, probabilities, classes
        See `probability_figures`.

    Examples
    --------
    >>> import numpy as np
    >>> chances = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> (curves,) = quality_curves(np.array([0, 1]), chances, np.array([0, 1]))
    >>> curves.label, curves.auc, curves.reliability.round(1).tolist()
    (1, 1.0, [[0.1, 0.8], [0.0, 1.0], [1.0, 1.0]])
    """
    known, numbers, full = with_all_labels(y, probabilities, classes)
    wanted = [1] if known.size == 2 else range(known.size)
    return [
        _curves(known[k].item() if hasattr(known[k], "item") else known[k], is_of, full[:, k])
        for k in wanted
        if (is_of := numbers == k).any() and not is_of.all()
    ]


def _curves(label: object, is_of: NDArray[np.bool_], probability: Array) -> Curves:
    false_positives, true_positives, _ = metrics.roc_curve(is_of, probability)
    precision, recall, _ = metrics.precision_recall_curve(is_of, probability)
    return Curves(
        label,
        _thinned(np.array([false_positives, true_positives])),
        _thinned(np.array([recall[::-1], precision[::-1]])),
        _reliability(is_of, probability),
        float(is_of.mean()),
        float(metrics.roc_auc_score(is_of, probability)),
        float(metrics.average_precision_score(is_of, probability)),
    )


def _thinned(points: Array) -> Array:
    """Return at most `_MOST_POINTS` points of a curve, including the first and the last."""
    if points.shape[1] <= _MOST_POINTS:
        return points
    return points[:, np.linspace(0, points.shape[1] - 1, _MOST_POINTS).astype(np.intp)]


def _reliability(is_of: NDArray[np.bool_], probability: Array) -> Array:
    """Return a reliability curve with about equally many rows in each bin."""
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, probability, side="right" if edges.size < _BINS - 1 else "left")
    counts = np.bincount(bins)
    kept = counts > 0
    sums = [np.bincount(bins, values)[kept] for values in (probability, is_of.astype(float))]
    return np.array([*(each / counts[kept] for each in sums), counts[kept]])


# ---------------------------------------------------------------- numbers


def number_figures(y: Array, predictions: Array, bounds: Array | None = None) -> dict[str, float]:
    """Return R2, errors in the unit of the target, and the coverage of intervals.

    Parameters
    ----------
    y, predictions : ndarray of shape (n_rows,)
    bounds : ndarray of shape (n_rows, 2) or None
        Lower and upper ends of intervals.

    Returns
    -------
    figures : dict
        "r2" (missing where all numbers are equal), "rmse", "mae" and "below", the share of
        rows whose number is below the prediction; with bounds also "coverage" and "mean_width".

    Examples
    --------
    >>> import numpy as np
    >>> y, bounds = np.array([1.0, 2.0, 4.0]), np.array([[0, 2], [3, 4], [3, 5]])
    >>> figures = number_figures(y, np.array([1.0, 3.0, 4.0]), bounds)
    >>> {name: round(value, 2) for name, value in figures.items()}
    {'r2': 0.79, 'rmse': 0.58, 'mae': 0.33, 'below': 0.33, 'coverage': 0.67, 'mean_width': 1.67}
    """
    residuals = y - predictions
    spread = ((y - y.mean()) ** 2).sum()
    figures = {"r2": float(1 - (residuals**2).sum() / spread)} if spread > 0 else {}
    figures["rmse"] = float(np.sqrt((residuals**2).mean()))
    figures["mae"] = float(np.abs(residuals).mean())
    figures["below"] = float((residuals < 0).mean())
    if bounds is not None:
        lower, upper = bounds.T
        figures["coverage"] = float(((lower <= y) & (y <= upper)).mean())
        figures["mean_width"] = float((upper - lower).mean())
    return figures


def figures_of_the_mean(y: Array, coverage: float) -> dict[str, float]:
    """Return the metrics of always predicting the mean of y, with quantiles of y as bounds."""
    outside = (1 - coverage) / 2
    bounds = np.tile(np.quantile(y, [outside, 1 - outside]), (y.size, 1))
    return number_figures(y, np.full(y.size, y.mean()), bounds)


def figures_of_targets(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the metrics of each target, and those of always predicting the mean."""
    return [
        {**number_figures(*columns), "always_the_mean": figures_of_the_mean(columns[0], COVERAGE)}
        for columns in outcome.by_target()
    ]


def rows_to_draw(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return row numbers: all, or a fixed random sample of `most` of them."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def interval_band(predictions: Array, bounds: Array | None) -> Array | None:
    """Return mean prediction, and mean lower and upper bound less it, by groups of rows: (3, n).

    The groups have similar predictions: bounds may come from the models of several folds. None if
    there are no bounds or some are infinite.
    """
    if bounds is None or not np.isfinite(bounds).all():
        return None
    order = np.argsort(predictions, kind="stable")
    parts = np.array_split(order, min(_BANDS, order.size))
    columns = np.column_stack([predictions, bounds - predictions[:, None]])
    band = np.array([columns[part].mean(axis=0) for part in parts]).T
    # The band spans all predictions, from the smallest to the largest.
    band[0, [0, -1]] = predictions[order[[0, -1]]]
    return band


def search_paths(results: Mapping) -> list[tuple[str, NDArray[np.intp]]]:
    """Return the paths of a search along C: the name of each and its candidates, sorted by C.

    `results` are `cv_results_`. A path is named after the settings in which the paths differ.
    """
    tried = {
        "C_kernel = {:g}": results["param_C_kernel"],
        "shrinkage {:g}": results["param_theta_shrinkage"],
        "depth {:.1f}": np.nan_to_num(results["param_depth"], nan=-1.0),  # NaN: no depth
    }
    keys = np.column_stack(list(tried.values()))
    differs = np.ptp(keys, axis=0) > 0
    by_cost = np.argsort(results["param_C"], kind="stable")
    paths = []
    for key in np.unique(keys, axis=0):
        settings = zip(tried, key, differs & (key >= 0), strict=True)
        name = ", ".join(words.format(value) for words, value, is_shown in settings if is_shown)
        paths.append((name, by_cost[(keys[by_cost] == key).all(axis=1)]))
    return paths


def scoring_words(search) -> str:
    """Return the name of the score that a search maximises."""
    if not is_regressor(search):
        return search.scoring.replace("_", " ")
    is_r2 = search.scoring == "r2" or (search.scoring == "auto" and search.loss == "squared_error")
    return "R2" if is_r2 else "minus loss"

"""What models say about rows of known class or number, and how good it is.

There are figures of probabilities, numbers and candidates, and the curves that people draw.
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

# Share of the rows that intervals are to hold.
COVERAGE = 0.9
# Points of a curve that a picture can show, parts of the rows whose probabilities are compared
# with what happened, and parts whose intervals are drawn.
_MOST_POINTS, _BINS, _BANDS = 200, 10, 40


@dataclass(frozen=True)
class Outcome:
    """What was predicted for rows, and the seconds of the fit.

    More are probabilities, of shape (n_rows, n_classes), or bounds that are to hold the numbers,
    of shape (n_rows, 2) or (n_rows, n_targets, 2); None where a model has neither.
    """

    truth: NDArray
    predictions: NDArray
    more: Array | None
    seconds: float

    def by_target(self) -> list[tuple[Array, Array, Array | None]]:
        """Return numbers, predictions and bounds of each target."""
        columns = (len(self.truth), -1)
        truth, said = (
            own.reshape(columns).T.astype(np.float64) for own in (self.truth, self.predictions)
        )
        bounds: Any = [None] * len(truth)
        if self.more is not None:
            bounds = self.more.reshape(*columns, 2).swapaxes(0, 1)
        return list(zip(truth, said, bounds, strict=True))


def outcome_of(model: Any, X: Any, y: NDArray, seconds: float = 0.0) -> Outcome:
    """Return what a fitted model predicts."""
    more = None
    if hasattr(model, "predict_interval"):
        more = model.predict_interval(X, COVERAGE)
    elif hasattr(model, "predict_proba"):
        more = model.predict_proba(X)
    return Outcome(y, model.predict(X), more, seconds)


def joined(outcomes: Sequence[Any]) -> Any:
    """Return the outcomes of several folds as one; its seconds are those of a mean fold."""

    def rows_of(name: str) -> NDArray | None:
        found = [getattr(one, name) for one in outcomes]
        return None if any(own is None for own in found) else np.concatenate(found)

    by_row = {name: rows_of(name) for name in ("truth", "predictions", "more")}
    return replace(outcomes[0], **by_row, seconds=float(np.mean([own.seconds for own in outcomes])))


def folds_of(
    y: NDArray, are_classes: bool, n_folds: int, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the rows to learn from and those to be right about, fold by fold.

    There are fewer folds where no class has so many rows, and none where each has one. A class with
    one row is learned from, but never tested.
    """
    kind: type[KFold | StratifiedKFold] = KFold
    others, most = np.arange(len(y)), len(y)
    if are_classes:
        kind = StratifiedKFold
        _, first, counts = np.unique(y, return_index=True, return_counts=True)
        others, most = np.setdiff1d(others, first[counts == 1]), counts.max()
    if most < 2:
        return
    folds = kind(min(n_folds, most), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A class with fewer rows than folds is outside of some of them only.
        warnings.simplefilter("ignore", UserWarning)
        pairs = list(folds.split(others, y[others]))
    for _, outside in pairs:
        yield np.setdiff1d(np.arange(len(y)), others[outside]), others[outside]


# ---------------------------------------------------------------- probabilities


def with_all_labels(
    y: NDArray, probabilities: Array, classes: NDArray
) -> tuple[NDArray, NDArray[np.intp], Array]:
    """Return all classes, the number of each row's, and probabilities: zero for unknown ones."""
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
        In the order of the columns, which is theirs.

    Returns
    -------
    figures : dict
        "auc" is the mean over the classes of each against the rest, and missing where the rows
        are all of one class; "brier_score" half the sum of squares, which is the usual one for
        two classes.

    Examples
    --------
    >>> import numpy as np
    >>> chances = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> figures = probability_figures(np.array([0, 1]), chances, np.array([0, 1]))
    >>> {name: round(value, 3) for name, value in figures.items()}
    {'auc': 1.0, 'log_loss': 0.164, 'brier_score': 0.025}
    """
    known, numbers, full = with_all_labels(y, probabilities, classes)
    own = numbers[:, None] == np.arange(known.size)
    found = {}
    mixed = np.flatnonzero(own.any(axis=0) & ~own.all(axis=0))
    if mixed.size:
        found["auc"] = float(np.mean([metrics.roc_auc_score(own[:, k], full[:, k]) for k in mixed]))
    chances = np.clip(full[np.arange(numbers.size), numbers], np.finfo(float).eps, 1.0)
    found["log_loss"] = float(-np.log(chances).mean())
    found["brier_score"] = float(((full - own) ** 2).sum(axis=1).mean() / 2)
    return found


def class_figures(outcome: Outcome, classes: NDArray, undefined: float = 0.0) -> dict[str, Any]:
    """Return accuracies, figures of each class, the confusion matrix, and of probabilities.

    Classes that only rows have are added to the given ones. A share of no rows is undefined.
    """
    y, guess = outcome.truth, outcome.predictions
    known = np.unique(np.concatenate([classes, y]))
    shares = metrics.precision_recall_fscore_support(
        y, guess, labels=known, zero_division=undefined
    )
    precision, recall, f1, n_rows = shares
    columns = (column.tolist() for column in (known, n_rows, precision, recall, f1))
    found = {} if outcome.more is None else probability_figures(y, outcome.more, classes)
    return {
        "rows": y.size,
        "accuracy": float((y == guess).mean()),
        "balanced_accuracy": float(recall[n_rows > 0].mean()),
        "always_the_most_frequent": float(n_rows.max() / y.size),
        "classes": [
            {"label": label, "rows": n, "precision": p, "recall": r, "f1": f}
            for label, n, p, r, f in zip(*columns, strict=True)
        ],
        "confusion": metrics.confusion_matrix(y, guess, labels=known),
        **found,
    }


@dataclass(frozen=True)
class Curves:
    """Curves of one class against the rest.

    Parameters
    ----------
    label : object
        The class.
    roc : ndarray of shape (2, n_points)
        Share of the others that are taken for the class, and share of the class that is found.
    precision_recall : ndarray of shape (2, n_points)
        Share of the class that is found, and share of what is found that is of the class.
    reliability : ndarray of shape (3, n_bins)
        Mean probability of rows that have about the same, how many of them are of the class,
        and how many rows these are.
    share : float
        Share of the class.
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

    With two classes they are those of the second.

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
        _curves(known[k].item() if hasattr(known[k], "item") else known[k], own, full[:, k])
        for k in wanted
        if (own := numbers == k).any() and not own.all()
    ]


def _curves(label: object, own: NDArray[np.bool_], chance: Array) -> Curves:
    found_wrongly, found, _ = metrics.roc_curve(own, chance)
    precision, recall, _ = metrics.precision_recall_curve(own, chance)
    return Curves(
        label,
        _thinned(np.array([found_wrongly, found])),
        _thinned(np.array([recall[::-1], precision[::-1]])),
        _reliability(own, chance),
        float(own.mean()),
        float(metrics.roc_auc_score(own, chance)),
        float(metrics.average_precision_score(own, chance)),
    )


def _thinned(points: Array) -> Array:
    """Return so many of the points as can be seen, the first and the last among them."""
    if points.shape[1] <= _MOST_POINTS:
        return points
    return points[:, np.linspace(0, points.shape[1] - 1, _MOST_POINTS).astype(np.intp)]


def _reliability(own: NDArray[np.bool_], chance: Array) -> Array:
    """Compare probabilities with what happened, in bins of about as many rows each."""
    edges = np.unique(np.quantile(chance, np.linspace(0, 1, _BINS + 1)[1:-1]))
    place = np.searchsorted(edges, chance, side="right" if edges.size < _BINS - 1 else "left")
    counts = np.bincount(place)
    kept = counts > 0
    sums = [np.bincount(place, values)[kept] for values in (chance, own.astype(float))]
    return np.array([*(each / counts[kept] for each in sums), counts[kept]])


# ---------------------------------------------------------------- numbers


def number_figures(y: Array, predictions: Array, bounds: Array | None = None) -> dict[str, float]:
    """Return R2, the errors in the unit of the numbers, and how often intervals hold them.

    Parameters
    ----------
    y, predictions : ndarray of shape (n_rows,)
    bounds : ndarray of shape (n_rows, 2) or None
        Lower and upper ends of intervals.

    Returns
    -------
    figures : dict
        "r2" (not there where all numbers are the same), "rmse", "mae" and "below", the share of
        rows whose number is below the prediction; with bounds also "coverage" and "mean_width".

    Examples
    --------
    >>> import numpy as np
    >>> y, bounds = np.array([1.0, 2.0, 4.0]), np.array([[0, 2], [3, 4], [3, 5]])
    >>> figures = number_figures(y, np.array([1.0, 3.0, 4.0]), bounds)
    >>> {name: round(value, 2) for name, value in figures.items()}
    {'r2': 0.79, 'rmse': 0.58, 'mae': 0.33, 'below': 0.33, 'coverage': 0.67, 'mean_width': 1.67}
    """
    away = y - predictions
    spread = ((y - y.mean()) ** 2).sum()
    found = {"r2": float(1 - (away**2).sum() / spread)} if spread > 0 else {}
    found["rmse"] = float(np.sqrt((away**2).mean()))
    found["mae"] = float(np.abs(away).mean())
    found["below"] = float((away < 0).mean())
    if bounds is not None:
        lower, upper = bounds.T
        found["coverage"] = float(((lower <= y) & (y <= upper)).mean())
        found["mean_width"] = float((upper - lower).mean())
    return found


def figures_of_the_mean(y: Array, coverage: float) -> dict[str, float]:
    """Return the figures of always saying the mean, with the quantiles of the numbers as bounds."""
    outside = (1 - coverage) / 2
    bounds = np.tile(np.quantile(y, [outside, 1 - outside]), (y.size, 1))
    return number_figures(y, np.full(y.size, y.mean()), bounds)


def figures_of_targets(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the figures of each target, beside those of always saying the mean."""
    return [
        {**number_figures(*own), "always_the_mean": figures_of_the_mean(own[0], COVERAGE)}
        for own in outcome.by_target()
    ]


def rows_to_draw(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return the numbers of as many rows as can be seen, the same each time."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def interval_band(predictions: Array, bounds: Array | None) -> Array | None:
    """Return predictions, and the mean ends of intervals of about the same, less them: (3, n).

    Rows of several folds have intervals of several models. None where there are none, or some have
    no end.
    """
    if bounds is None or not np.isfinite(bounds).all():
        return None
    order = np.argsort(predictions, kind="stable")
    parts = np.array_split(order, min(_BANDS, order.size))
    away = np.column_stack([predictions, bounds - predictions[:, None]])
    band = np.array([away[part].mean(axis=0) for part in parts]).T
    # From the first to the last dot.
    band[0, [0, -1]] = predictions[order[[0, -1]]]
    return band


def search_paths(results: Mapping) -> list[tuple[str, NDArray[np.intp]]]:
    """Return the paths along C of a search: what tells each from the others, and its candidates.

    Results are `cv_results_`; the candidates of a path are in the order of their costs.
    """
    tried = {
        "C_kernel = {:g}": results["param_C_kernel"],
        "shrinkage {:g}": results["param_theta_shrinkage"],
        "depth {:.1f}": np.nan_to_num(results["param_depth"], nan=-1.0),  # NaN: not chosen
    }
    keys = np.column_stack(list(tried.values()))
    tells = np.ptp(keys, axis=0) > 0
    by_cost = np.argsort(results["param_C"], kind="stable")
    paths = []
    for key in np.unique(keys, axis=0):
        told = zip(tried, key, tells & (key >= 0), strict=True)
        name = ", ".join(words.format(value) for words, value, is_told in told if is_told)
        paths.append((name, by_cost[(keys[by_cost] == key).all(axis=1)]))
    return paths


def scoring_words(search) -> str:
    """Return what a search maximises."""
    if not is_regressor(search):
        return search.scoring.replace("_", " ")
    is_r2 = search.scoring == "r2" or (search.scoring == "auto" and search.loss == "squared_error")
    return "R2" if is_r2 else "minus loss"

"""The contents of a report, as plain data for its page."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.utils import _safe_indexing
from sklearn.utils._pprint import _changed_params

from mbkl.engine.rows import as_rows, first_by_hash
from mbkl.explain import FeatureShape, GlobalExplanation, InputColumn, quality_curves
from mbkl.explain.attribution import joint_dependence
from mbkl.explain.explanations import strongest_pairs
from mbkl.explain.input_columns import notes_on_leaks
from mbkl.explain.quality import (
    COVERAGE,
    Outcome,
    class_figures,
    figures_of_targets,
    folds_of,
    interval_band,
    joined,
    outcome_of,
    rows_to_draw,
    scoring_words,
    search_paths,
)
from mbkl.explain.rows import kernel_matrix, rows_by_class, shades_of, some_rows
from mbkl.explain.shapes import column_of, data_range, plain
from mbkl.io.exports import pack, portable_model
from mbkl.learn.residuals import Residuals
from mbkl.maps.categories import CategoryMaps
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.maps.stumps import StumpMaps

# Names of the families of maps on the page.
_KINDS: dict[type, str] = {
    StumpMaps: "stumps",
    CategoryMaps: "categories",
    FernMaps: "ferns",
    ProjectionMaps: "projections",
}
# Significant digits of drawn numbers.
_DIGITS = 5
# Largest number of steps of a shape function.
_STEPS = 160
# Largest number of levels of a category; the most frequent ones are shown.
_LEVELS = 40
_SHAPE_VALUES = 250_000
_ROW_VALUES = 200_000
_CONFUSED_CLASSES = 24
_KERNEL_ROWS = 240
_PAIRS, _SETS, _CURVES = 10, 8, 24
# Heat maps of two columns: how many, values per column, background rows, rows to choose values by.
_PAIR_PICTURES, _VALUES_OF_A_PAIR, _PAIR_BACKGROUND, _ROWS_OF_VALUES = 3, 10, 40, 10_000
# Number of folds of the cross-validation; with more rows, or more rows times classes, than these,
# only one fold is evaluated.
_FOLDS, _ROWS_IN_FOLDS, _LABELS_IN_FOLDS = 5, 5_000, 50_000
# Largest number of dots in a picture of predictions, and groups by which the rows of a regression
# are compared in the kernel matrix.
_DOTS, _GROUPS_OF_NUMBERS = 1_200, 5


def describe_model(model) -> list[list[str]]:
    """Return what was fitted, as pairs of a name and a value."""
    kinds = dict.fromkeys(_KINDS.values(), 0)
    for maps in model.predictor_.maps.families:
        kinds[_KINDS[type(maps)]] += maps.n_maps
    facts = [
        ["binary maps kept", ", ".join(f"{n:,} {kind}" for kind, n in kinds.items() if n) or "0"],
        ["table entries", f"{sum(len(tables) for tables in model.predictor_.tables):,}"],
        *([["cost C", f"{model.C_:.4g}"]] if model.C_ else []),  # grown ferns have none
    ]
    settings = ", ".join(f"{name}={value!r}" for name, value in _changed_params(model).items())
    return [*facts, ["estimator", type(model).__name__], ["settings", settings or "all defaults"]]


def notes_on_columns(model, X, y, columns: Sequence[InputColumn], target: str | None) -> list[str]:
    """Return notes on columns that predict the target by themselves."""
    target, y = target or getattr(y, "name", None) or "y", np.asarray(y)
    if sparse.issparse(X):
        return []
    known = ((each.name, X[:, i], each.kind == "category") for i, each in enumerate(columns))
    return notes_on_leaks(known, y, target, not is_regressor(model))


def cross_validated(model, X, y) -> tuple[Outcome, str] | None:
    """Return predictions for rows held out from models like this one, and how they were held out.

    "folds" is five-fold cross-validation (fewer where no class has five rows). With many rows or
    classes the rows of one fold are "held out" from one model. None if the rows cannot be divided.
    """
    y = np.asarray(y)
    alike = clone(model.best_estimator_ if hasattr(model, "best_estimator_") else model)
    alike.set_params(**{"checkpoint": None} if "checkpoint" in alike.get_params() else {})
    folds = list(folds_of(y, not is_regressor(model), _FOLDS, seed=0))
    if len(y) < _FOLDS or not folds:
        return None
    n_labels = 0 if is_regressor(model) else model.classes_.size
    is_long = len(y) > _ROWS_IN_FOLDS or len(y) * n_labels > _LABELS_IN_FOLDS
    outcomes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit on all rows gave the same warnings
        for inside, outside in folds[:1] if is_long else folds:
            part = clone(alike).fit(_safe_indexing(X, inside), y[inside])
            if n_labels and part.classes_.size < n_labels:
                return None
            outcomes.append(outcome_of(part, _safe_indexing(X, outside), y[outside]))
    return joined(outcomes), "folds" if len(outcomes) > 1 else "held out"


def numbers(made: Outcome, how: str, names: Sequence[str]) -> dict:
    """Return metrics of predicted numbers, and the data of their pictures, for each target."""
    n_rows = len(made.truth)
    shown = rows_to_draw(n_rows, _DOTS)
    known = zip(names, figures_of_targets(made), made.by_target(), strict=True)
    targets = [
        {
            "name": name,
            "figures": plain(figures),
            "said": plain(predictions[shown], _DIGITS),
            "truth": plain(y[shown], _DIGITS),
            "band": plain(interval_band(predictions, bounds), _DIGITS),
        }
        for name, figures, (y, predictions, bounds) in known
    ]
    return {"how": how, "rows": n_rows, "coverage": COVERAGE, "targets": targets}


def accuracy(model, made: Outcome, how: str) -> dict:
    """Return accuracy, the confusion matrix, metrics of each class and of the probabilities."""
    figures = class_figures(made, model.classes_, undefined=np.nan)
    classes = [{**one, "label": str(one["label"])} for one in figures["classes"]]
    confusion = figures["confusion"]
    errors = confusion.sum(axis=0) + confusion.sum(axis=1) - 2 * np.diag(confusion)
    shown = np.sort(np.argsort(-errors, kind="stable")[:_CONFUSED_CLASSES])
    curves = []
    if made.uncertainty is not None:
        curves = quality_curves(made.truth, made.uncertainty, model.classes_)
        curves = sorted(curves, key=lambda one: -one.share)[:_CURVES]
    return plain(
        {
            **figures,
            "how": how,
            "classes": classes,
            "confusion": confusion[np.ix_(shown, shown)],
            "confusionClasses": [classes[place]["label"] for place in shown],
            "curves": [{**plain(one, 7), "label": str(one.label)} for one in curves],
        }
    )


def importances(explanation: GlobalExplanation, shown: Sequence[int]) -> dict:
    """Return the columns to show, pairs that interact and sets of columns."""
    names, pairs = explanation.feature_names, explanation.pair_features[:_PAIRS]
    sets = [group for group in explanation.groups if len(group.features) > 1]
    return {
        "names": [names[place] for place in shown],
        "values": plain(explanation.importance[list(shown)], _DIGITS),
        "columns": list(shown),
        "rows": explanation.n_rows,
        "pairNames": [names[place] for place in pairs],
        "pairs": plain(explanation.pair_strengths[: pairs.size, : pairs.size], _DIGITS),
        "sets": [
            {"name": _set_name([names[i] for i in group.features]), "value": group.importance}
            for group in sets[:_SETS]
        ],
        "setCount": len(sets),
    }


def _set_name(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{len(names)} columns"


def together(
    model, X, explanation: GlobalExplanation, columns: Sequence[InputColumn]
) -> list[dict]:
    """Return the joint partial dependence of the pairs of columns that interact most."""
    rows = some_rows(X, _PAIR_BACKGROUND)
    pictures = []
    for across, down, _ in strongest_pairs(explanation, _PAIR_PICTURES):
        pair = [down, across]
        grids = [_some_values(columns[place], X, place) for place in pair]
        added = joint_dependence(model.predictor_, rows, pair, grids)
        score = int(np.ptp(added, axis=(0, 1)).argmax())
        words = [_in_words(columns[place], values) for place, values in zip(pair, grids)]
        pictures.append(
            {
                "names": [columns[place].name for place in pair],
                "score": str(explanation.classes[score]),
                "rows": words[0],
                "columns": words[1],
                "values": plain(added[:, :, score], 3),
            }
        )
    return pictures


def _some_values(column: InputColumn, X, place: int) -> NDArray[np.float64]:
    """Return some values of a column: the most frequent levels, or quantiles of numbers."""
    values = some_rows(X[:, [place]], _ROWS_OF_VALUES).astype(np.float64).ravel()
    if column.kind == "category":
        counts = np.bincount(column.level_of(values), minlength=len(column.levels) + 1)
        frequent = np.argsort(-counts[:-1], kind="stable")[:_VALUES_OF_A_PAIR]
        return np.sort(frequent).astype(np.float64)
    present = values[~np.isnan(values)]
    if not present.size:
        return np.zeros(1)
    shares = np.linspace(0.02, 0.98, _VALUES_OF_A_PAIR)
    return np.unique(np.quantile(present, shares, method="nearest"))


def _in_words(column: InputColumn, values: NDArray[np.float64]) -> list[str]:
    return [column.words(float(f"{value:.4g}")) for value in values]


def shapes(
    explanation: GlobalExplanation, columns: Sequence[InputColumn], shown: Sequence[int], X
) -> list[dict]:
    """Return the shape functions of some columns: steps, or a bar for each level."""
    drawn = {shape.feature: shape for shape in explanation.shapes}
    pictures = []
    for place in shown:
        column, shape = columns[place], drawn.get(place)
        if column.kind == "category":
            values = _bars(column, shape, len(explanation.classes), column_of(X, place))
        elif shape is not None:
            values = {"kind": column.kind, **_steps(shape)}
        else:
            continue
        pictures.append({"column": place, "name": column.name, **values})
    return pictures


def _bars(
    column: InputColumn, shape: FeatureShape | None, n_scores: int, rows: NDArray[np.float64]
) -> dict:
    """Return the centred contributions of the levels and of missing values."""
    n_levels = len(column.levels)
    values = np.zeros((n_levels + 1, n_scores))
    if shape is not None:
        values += shape.at([*range(n_levels), np.nan])
    counts = np.bincount(column.level_of(rows), minlength=n_levels + 1)
    values -= counts @ values / max(counts.sum(), 1)
    frequent = np.sort(np.argsort(-counts[:-1], kind="stable")[:_LEVELS])
    return {
        "kind": "category",
        "levels": [column.levels[level] for level in frequent],
        "values": plain(values[frequent].T, _DIGITS),
        "counts": counts[frequent].tolist(),
        "missing": plain(values[-1], _DIGITS) if counts[-1] else None,
        "missingCount": int(counts[-1]),
    }


def columns_to_show(explanation: GlobalExplanation, most: int) -> list[int]:
    """Return the most important columns, fewer where there are many classes."""
    room = _SHAPE_VALUES // (_STEPS * len(explanation.classes))
    return explanation.ranking[: max(min(most, room), 1)].tolist()


def _steps(shape: FeatureShape) -> dict:
    """Return the step function of a column of numbers."""
    # A report always has data, which set these.
    assert shape.bins is not None
    assert shape.density is not None
    assert shape.counts is not None
    edges, values = shape.curve(_STEPS)
    has_missing = bool(np.isneginf(shape.thresholds[0]))
    n_missing = int(shape.counts[0]) if has_missing else 0
    position = np.searchsorted(shape.thresholds, edges[1:-1], side="left")
    below = [n_missing, *np.cumsum(shape.counts)[position], shape.counts.sum()]
    return {
        "edges": plain(edges, 7),
        "values": plain(values.T, _DIGITS),
        "counts": np.diff(below).tolist(),
        "bins": plain(shape.bins, 6),
        "density": shape.density.tolist(),
        "missing": plain(shape.values[0], _DIGITS) if has_missing else None,
        "missingCount": n_missing,
    }


def kernel(model, X, y) -> dict:
    """Return the kernel matrix of rows sorted by class or number, as 256 shades."""
    y = np.asarray(y)
    names, groups = np.unique(y, return_inverse=True)
    if is_regressor(model):
        y = y.reshape(len(y), -1)[:, 0]
        names, groups = _groups_of_numbers(y)
    rows = rows_by_class(model.rows_of(X), groups, _KERNEL_ROWS)
    rows = rows[np.argsort(y[rows], kind="stable")]
    values = kernel_matrix(model, _safe_indexing(X, rows))
    present, codes = np.unique(groups[rows], return_inverse=True)
    same = codes[:, None] == codes
    apart = ~np.eye(rows.size, dtype=bool)
    low, high = shades_of(values)
    steps = np.clip((values - low) / (high - low), 0.0, 1.0)
    return {
        "names": [str(label) for label in names[present].tolist()],
        "counts": np.bincount(codes).tolist(),
        "shades": pack(np.rint(255 * steps), "u1"),
        "low": low,
        "high": high,
        "same": _mean(values[same & apart]),
        "different": _mean(values[~same]),
    }


def _groups_of_numbers(y: NDArray) -> tuple[NDArray, NDArray[np.intp]]:
    """Divide numbers into groups of similar size; return their names and the group of each row."""
    levels = np.linspace(0, 1, _GROUPS_OF_NUMBERS + 1)
    edges = np.unique(np.quantile(y, levels, method="nearest"))
    groups = np.clip(np.searchsorted(edges, y, side="left") - 1, 0, max(edges.size - 2, 0))
    words = [f"{float(f'{edge:.4g}'):,.10g}" for edge in edges]
    names = [f"{low} to {high}" for low, high in pairwise(words)]
    return np.array(names or words), groups


def _mean(values: NDArray) -> float | None:
    return float(values.mean()) if values.size else None


def what_if(
    model,
    X,
    y,
    columns: Sequence[InputColumn],
    shown: Sequence[int],
    max_rows: int,
    max_bytes: float,
) -> dict | None:
    """Return rows, and the model with which the page computes scores; None if it is too large."""
    of_numbers = is_regressor(model)
    packed = portable_model(model.with_spreads() if of_numbers else model.predictor_, max_bytes)
    if packed is None:
        return None
    data = model.rows_of(X)
    n_rows = min(max_rows, max(_ROW_VALUES // data.shape[1], 5))
    chosen = first_by_hash(data, None, n_rows, seed=0)
    labels = np.asarray(y)[chosen]
    return {
        "model": packed,
        **(_of_numbers(model, labels) if of_numbers else _of_classes(model, labels)),
        "rows": pack(as_rows(data).take(chosen), "f8"),
        "numbers": (chosen + 1).tolist(),
        "of": int(data.shape[0]),
        "features": [
            {"feature": place, **asdict(columns[place]), **_span(columns[place], data, place)}
            for place in shown
        ],
    }


def _of_classes(model, y: NDArray) -> dict:
    """Return the labels of rows, and how the page computes probabilities of classes."""
    probabilities = None
    if hasattr(model, "predict_proba"):
        calibration = {"temperature": model.temperature_, "offset": model.offset_ or 0.0}
        probabilities = {"rule": model.probability_rule, **calibration}
    return {
        "classes": [str(label) for label in model.classes_.tolist()],
        "labels": [str(label) for label in y.tolist()],
        "chances": probabilities,
    }


def _of_numbers(model, y: NDArray) -> dict:
    """Return the targets of rows, and how the page computes intervals of numbers."""
    lower, upper = Residuals(model.residuals_, model.n_held_out_).bounds(COVERAGE)
    return {
        "labels": y.reshape(len(y), -1).astype(np.float64).tolist(),
        "lower": plain(lower),
        "upper": plain(upper),
        "coverage": COVERAGE,
        "isLogarithm": model.loss == "poisson",
    }


def _span(column: InputColumn, X, place: int) -> dict:
    """Return the range over which the page lets a column of numbers vary."""
    low, high = data_range(column_of(X, place))
    if column.kind != "number":
        low, high = np.floor(low), np.ceil(high)
    return {"low": float(low), "high": float(high)}


def path(model) -> dict | None:
    """Return the candidates of a search, or None where there was none."""
    if not hasattr(model, "cv_results_"):
        return None
    results = model.cv_results_
    return {
        "C": results["param_C"].tolist(),
        "CKernel": results["param_C_kernel"].tolist(),
        "shrinkage": results["param_theta_shrinkage"].tolist(),
        "depth": plain(results["param_depth"]),
        "score": results["mean_test_score"].tolist(),
        "deviation": results["std_test_score"].tolist(),
        "maps": results["mean_n_maps"].tolist(),
        "lines": [
            {"label": name, "places": places.tolist()} for name, places in search_paths(results)
        ],
        "chosen": {"C": model.C_, "CKernel": model.C_kernel_, "score": model.best_score_},
        "scoring": scoring_words(model),
    }

"""What a report tells, as plain data for its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.utils import _safe_indexing

from mbkl.explain import FeatureShape, GlobalExplanation
from mbkl.explain.background import some_rows
from mbkl.explain.inside import (
    CategoryMaps,
    FernMaps,
    Maps,
    ProjectionMaps,
    StumpMaps,
    first_by_hash,
    just_above,
)
from mbkl.explain.kernel_matrix import kernel_matrix, rows_by_class
from mbkl.explain.shapes import finite
from mbkl.report.portable import columns_that_fit, pack, portable_model

# Steps of a shape function that a screen can show.
_STEPS = 160
# Levels of a category that a screen can show, the most frequent ones.
_LEVELS = 40
_SHAPE_VALUES = 250_000
_ROW_VALUES = 200_000
_CONFUSED_CLASSES = 24
_KERNEL_ROWS = 240
_PAIRS, _GROUPS = 10, 8


def describe_model(model) -> list[list[str]]:
    """Return what was fitted, as pairs of a name and a value."""
    kinds = {"stumps": 0, "categories": 0, "ferns": 0, "projections": 0}
    for maps in model.predictor_.maps.families:
        kinds[_kind(maps)] += maps.n_maps
    facts = [
        ["binary maps kept", ", ".join(f"{n:,} {kind}" for kind, n in kinds.items() if n) or "0"],
        ["table entries", f"{sum(len(tables) for tables in model.predictor_.tables):,}"],
        ["cost C", f"{model.C_:.4g}"],
    ]
    changed = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if value is not None and repr(value) != repr(type(model)().get_params(deep=False)[name])
    }
    settings = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    return [*facts, ["estimator", type(model).__name__], ["settings", settings or "all defaults"]]


@singledispatch
def _kind(maps: Maps) -> str:
    """Return what a reader knows a family as."""
    raise TypeError(f"{type(maps).__name__} have no name for readers.")


_kind.register(StumpMaps, lambda maps: "stumps")
_kind.register(CategoryMaps, lambda maps: "categories")
_kind.register(FernMaps, lambda maps: "ferns")
_kind.register(ProjectionMaps, lambda maps: "projections")


def accuracy(model, X, y) -> dict:
    """Return accuracy, the confusion matrix and figures of each class."""
    y = np.asarray(y)
    guess = model.predict(X)
    classes = np.unique(np.concatenate([model.classes_, y]))
    confusion = confusion_matrix(y, guess, labels=classes)
    precision, recall, _, count = precision_recall_fscore_support(
        y, guess, labels=classes, zero_division=np.nan
    )
    errors = confusion.sum(axis=0) + confusion.sum(axis=1) - 2 * np.diag(confusion)
    shown = np.sort(np.argsort(-errors, kind="stable")[:_CONFUSED_CLASSES])
    return {
        "accuracy": float(np.diag(confusion).sum() / max(confusion.sum(), 1)),
        "largestClass": float(count.max() / max(count.sum(), 1)),
        "rows": int(count.sum()),
        "classes": [
            {"name": str(label), "precision": p, "recall": r, "count": n}
            for label, p, r, n in zip(
                classes.tolist(), finite(precision), finite(recall), count.tolist()
            )
        ],
        "confusion": confusion[np.ix_(shown, shown)].tolist(),
        "confusionClasses": [str(label) for label in classes[shown].tolist()],
    }


def importances(explanation: GlobalExplanation, features: NDArray[np.intp]) -> dict:
    """Return the features to show, pairs that interact and groups."""
    names = explanation.feature_names
    pairs = explanation.pair_features[:_PAIRS]
    joined = [group for group in explanation.groups if len(group.features) > 1]
    return {
        "names": [names[feature] for feature in features],
        "values": rounded(explanation.importance[features]),
        "features": features.tolist(),
        "rows": explanation.n_rows,
        "pairNames": [names[feature] for feature in pairs],
        "pairs": rounded(explanation.pair_strengths[: pairs.size, : pairs.size]),
        "groups": [
            {"name": _group_name(group.features, names), "value": group.importance}
            for group in joined[:_GROUPS]
        ],
        "groupCount": len(joined),
    }


def _group_name(features: Sequence[int], names: Sequence[str]) -> str:
    if len(features) > 8:
        return f"{len(features)} features"
    return ", ".join(names[feature] for feature in features)


def shapes(explanation: GlobalExplanation, features: NDArray[np.intp]) -> list[dict]:
    """Return the shape functions of some features, with as many steps as can be seen."""
    drawn = {shape.feature: shape for shape in explanation.shapes}
    return [_shape(drawn[feature]) for feature in features if feature in drawn]


def features_to_show(explanation: GlobalExplanation, max_features: int) -> NDArray[np.intp]:
    """Return the most important features, fewer where there are many classes."""
    room = _SHAPE_VALUES // (_STEPS * len(explanation.classes))
    return explanation.ranking[: max(min(max_features, room), 1)]


def _shape(shape: FeatureShape) -> dict:
    # The report always has data.
    assert shape.bins is not None
    assert shape.density is not None
    assert shape.counts is not None
    if shape.levels is not None:
        return _levels(shape, shape.counts)
    low, high = shape.bins[0], shape.bins[-1]
    margin = 0.02 * (high - low)
    low, high = low - margin, high + margin
    cuts = shape.thresholds[(shape.thresholds > low) & (shape.thresholds < high)]
    if cuts.size > _STEPS:
        # Evenly spread over the picture; each is moved to the threshold at or above it.
        grid = np.linspace(low, high, _STEPS + 1)[1:]
        cuts = np.unique(cuts[np.minimum(np.searchsorted(cuts, grid), cuts.size - 1)])
    edges = np.concatenate([[low], cuts, [high]])
    below = np.concatenate([[0], np.cumsum(shape.counts)])
    has_missing = bool(np.isneginf(shape.thresholds[0]))
    position = np.searchsorted(shape.thresholds, cuts, side="left") + 1
    counts = np.diff(np.concatenate([below[[int(has_missing)]], below[position], below[-1:]]))
    return {
        "feature": shape.feature,
        "name": shape.name,
        "edges": rounded(edges, 7),
        "values": rounded(shape.at(just_above(edges[:-1])).T),
        "counts": counts.tolist(),
        "bins": rounded(shape.bins, 6),
        "density": shape.density.tolist(),
        "missing": rounded(shape.values[0]) if has_missing else None,
        "missingCount": int(shape.counts[0]) if has_missing else 0,
    }


def _levels(shape: FeatureShape, counts: NDArray) -> dict:
    """Return the values of a category's levels, as steps around whole numbers."""
    assert shape.levels is not None
    frequent = np.sort(np.argsort(-counts[1:-1], kind="stable")[:_LEVELS])
    edges = np.arange(frequent.size + 1) - 0.5
    return {
        "feature": shape.feature,
        "name": shape.name,
        "levels": [str(shape.levels[level]) for level in frequent],
        "edges": edges.tolist(),
        "values": rounded(shape.values[1 + frequent].T),
        "counts": counts[1 + frequent].tolist(),
        "bins": edges.tolist(),
        "density": counts[1 + frequent].tolist(),
        "missing": rounded(shape.values[0]) if counts[0] else None,
        "missingCount": int(counts[0]),
    }


def kernel(model, X, y) -> dict:
    """Return the kernel matrix of rows sorted by class, in 256 steps."""
    y = np.asarray(y)
    rows = rows_by_class(model._validate_new(X), y, _KERNEL_ROWS)
    values = kernel_matrix(model, _safe_indexing(X, rows))
    classes, codes = np.unique(y[rows], return_inverse=True)
    same = codes[:, None] == codes
    apart = ~np.eye(rows.size, dtype=bool)
    low, high = np.quantile(values[apart], [0.01, 0.99]) if rows.size > 1 else (0.0, 1.0)
    steps = np.clip((values - low) / max(high - low, 1e-12), 0.0, 1.0)
    return {
        "names": [str(label) for label in classes.tolist()],
        "counts": np.bincount(codes).tolist(),
        "shades": pack(np.rint(255 * steps), "u1"),
        "low": float(low),
        "high": float(high),
        "same": _mean(values[same & apart]),
        "different": _mean(values[~same]),
    }


def _mean(values: NDArray) -> float | None:
    return float(values.mean()) if values.size else None


def what_if(
    model,
    X,
    y,
    explanation: GlobalExplanation,
    features: NDArray[np.intp],
    max_rows: int,
    max_bytes: float,
) -> dict | None:
    """Return rows and a model with which the page computes scores, or None if too large."""
    predictor, y = model.predictor_, np.asarray(y)
    n_scores = predictor.intercept.size
    n_columns = min(columns_that_fit(predictor, max_bytes), n_scores)
    if n_columns < min(n_scores, 2):
        return None
    frequency = [-(y == label).sum() for label in explanation.classes]
    columns = np.sort(np.argsort(frequency, kind="stable")[:n_columns])
    data = model._validate_new(X)
    n_rows = max(min(max_rows, _ROW_VALUES // data.shape[1]), 5)
    chosen = first_by_hash(data, np.zeros(data.shape[0], np.intp), n_rows, seed=0)
    rows = data[chosen]
    used = {shape.feature: shape for shape in explanation.shapes}
    return {
        "model": portable_model(predictor, columns),
        "classes": [str(label) for label in model.classes_.tolist()],
        "columns": columns.tolist(),
        "rows": pack(rows.toarray() if sparse.issparse(rows) else rows, "f8"),
        "numbers": (chosen + 1).tolist(),
        "labels": [str(label) for label in y[chosen].tolist()],
        "features": [
            {
                "feature": int(feature),
                "name": explanation.feature_names[feature],
                **_span(data, used, feature),
                "levels": _names(model.levels_[feature]),
            }
            for feature in features
        ],
    }


def _names(levels: Sequence | None) -> list[str] | None:
    return None if levels is None else [str(level) for level in levels]


def _span(data, used: Mapping[int, FeatureShape], feature: int) -> dict:
    """Return between which values a feature can be moved."""
    shape = used.get(feature)
    if shape is not None and shape.bins is not None:
        return {"low": float(shape.bins[0]), "high": float(shape.bins[-1])}
    column = some_rows(data[:, [feature]], 1_000)
    present = column[~np.isnan(column)]
    low, high = (present.min(), present.max()) if present.size else (0.0, 1.0)
    return {"low": float(low), "high": float(high)}


def path(model) -> dict | None:
    """Return the candidates of a search, or None where there was none."""
    if not hasattr(model, "cv_results_"):
        return None
    results = model.cv_results_
    return {
        "C": results["param_C"].tolist(),
        "CKernel": results["param_C_kernel"].tolist(),
        "depth": finite(results["param_depth"]),
        "score": results["mean_test_score"].tolist(),
        "deviation": results["std_test_score"].tolist(),
        "maps": results["mean_n_maps"].tolist(),
        "chosen": {"C": model.C_, "CKernel": model.C_kernel_, "score": model.best_score_},
        "scoring": model.scoring.replace("_", " "),
    }


def rounded(values: NDArray, digits: int = 5) -> list:
    """Return nested lists of numbers with so many digits."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim > 1:
        return [rounded(line, digits) for line in values]
    return [float(f"{value:.{digits}g}") for value in values]

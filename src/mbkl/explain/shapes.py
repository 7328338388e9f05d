"""Shape functions: how the scores change with one feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.twins import as_float32
from mbkl.explain.fern_games import FernTables, columns_of, is_fresh, main_effects
from mbkl.extras import require
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.predictor import TablePredictor

Array = NDArray[np.float64]

_BINS = 48
# Share of the data at either end that is not to stretch a picture.
_OUTER = 0.005


@dataclass(frozen=True, repr=False)
class FeatureShape:
    """Step function of one feature, for each score; of a category, a value for each level.

    Parameters
    ----------
    feature : int
        Column of X.
    name : str
    classes : tuple
        Class of each score.
    thresholds : ndarray of shape (n_thresholds,)
        Increasing. A first one of -inf divides missing values from all others. Of a category
        those between the numbers of its levels.
    values : ndarray of shape (n_thresholds + 1, n_columns)
        What is added to the scores up to the first threshold, between the first and
        the second, and so on; the mean over the background is zero.
    counts : ndarray of shape (n_thresholds + 1,) or None
        Rows of the data in each interval.
    bins : ndarray of shape (n_bins + 1,) or None
        Edges of bins of equal width over the range of the data, less its outermost ends.
    density : ndarray of shape (n_bins,) or None
        Rows of the data in each bin; those beyond count in the first or last.
    stump_thresholds, theta : ndarray of shape (n_stumps,)
        Thresholds of the stumps kept by the kernel, and their weights.
    levels : tuple or None
        Levels of a category; `values` and `counts` are those of missing values, of each level,
        and of new ones.
    """

    feature: int
    name: str
    classes: tuple
    thresholds: Array
    values: Array
    counts: NDArray[np.intp] | None
    bins: Array | None
    density: NDArray[np.intp] | None
    stump_thresholds: Array
    theta: Array
    levels: tuple | None = None

    def __repr__(self) -> str:
        n_intervals, n_scores = self.values.shape
        if self.levels is not None:
            return f"<FeatureShape: {self.name!r}, {len(self.levels)} levels, {n_scores} scores>"
        return f"<FeatureShape: {self.name!r}, {n_intervals} intervals, {n_scores} scores>"

    @property
    def warp(self) -> Array:
        """Where the kernel of stumps places each interval: the weights below it."""
        climbed = np.append(0.0, np.cumsum(self.theta))
        below = np.searchsorted(self.stump_thresholds, self.thresholds, side="right")
        return np.append(0.0, climbed[below])

    def at(self, x) -> Array:
        """Return what values of the feature, or numbers of its levels, add: (n, n_columns)."""
        return self.values[intervals(self.thresholds, np.asarray(x, dtype=np.float64))]

    def to_frame(self):
        """Return a pandas data frame with a row for each interval, or for each level."""
        pandas = require("pandas", "plot")
        edges = np.concatenate([[np.nan], self.thresholds, [np.nan]])
        columns = {"above": edges[:-1], "up to": edges[1:]}
        if self.levels is not None:
            columns = {"level": np.array(["missing", *self.levels, "new"], dtype=object)}
        if self.counts is not None:
            columns["count"] = self.counts
        columns |= {str(name): column for name, column in zip(self.classes, self.values.T)}
        return pandas.DataFrame(columns)

    def to_dict(self) -> dict:
        """Return plain lists for JSON; a threshold of -inf is None."""
        return plain(self)


def plain(value):
    """Return dataclasses, arrays and NumPy's scalars as what JSON knows; None is not finite."""
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def intervals(thresholds: Array, x: Array) -> NDArray[np.intp]:
    """Return the interval of each value; missing ones are in the first."""
    return np.where(np.isnan(x), 0, np.searchsorted(thresholds, as_float32(x), side="left"))


def shapes_of(
    predictor: TablePredictor,
    background: NDArray,
    theta: Array,
    names: Sequence[str],
    classes: tuple,
    X=None,
    levels: Sequence | None = None,
) -> list[FeatureShape]:
    """Return the shape functions of all features that stumps or ferns use.

    That of a feature is the sum of its stumps' tables and of the mean effects of the
    ferns that ask about it. The rows of X are counted.
    """
    own = [_jumps(maps, tables, background) for maps, tables in predictor.families]
    features, thresholds, jumps = map(np.concatenate, zip(*own, strict=True))
    order = np.lexsort((thresholds, features))
    features, thresholds, jumps = features[order], thresholds[order], jumps[order]
    starts = np.flatnonzero(is_fresh(features, thresholds))
    if not starts.size:
        return []
    features, thresholds = features[starts], thresholds[starts]
    jumps = np.add.reduceat(jumps, starts, axis=0)
    stumps = _stumps(predictor, theta)
    columns = sparse.csc_array(X) if sparse.issparse(X) else X
    shapes = []
    for feature, first, count in zip(*np.unique(features, return_index=True, return_counts=True)):
        cuts = thresholds[first : first + count]
        values = np.vstack([np.zeros(jumps.shape[1]), jumps[first : first + count]]).cumsum(axis=0)
        values -= values[intervals(cuts, background[:, feature].astype(np.float64))].mean(axis=0)
        own = stumps[0] == feature
        data = None if columns is None else column_of(columns, feature)
        bins, density = (None, None) if data is None else _density(data)
        shapes.append(
            FeatureShape(
                int(feature),
                str(names[feature]),
                classes,
                cuts,
                values,
                None if data is None else _count(data, cuts),
                bins,
                density,
                stumps[1][own],
                stumps[2][own],
                None if levels is None or levels[feature] is None else tuple(levels[feature]),
            )
        )
    return shapes


@singledispatch
def _jumps(maps: Any, tables: Array, background: NDArray) -> tuple[NDArray, Array, Array]:
    """Return feature, threshold and jump of each stump, alone or in a fern, and between levels."""
    is_first = np.zeros(len(tables), dtype=bool)
    is_first[maps.cells.offsets[:-1]] = True
    features = np.repeat(maps.features, np.diff(maps.edges.offsets))
    return features, maps.edges.thresholds, np.diff(tables, axis=0)[~is_first[1:]]


@_jumps.register
def _(maps: FernMaps | ProjectionMaps, tables: Array, background: NDArray):
    if isinstance(maps, FernMaps) and maps.n_maps:
        return main_effects(FernTables(maps, tables), columns_of(background))
    return np.empty(0, np.intp), np.empty(0), np.empty((0, tables.shape[1]))


def _stumps(predictor: TablePredictor, theta: Array) -> tuple[NDArray, Array, Array]:
    """Return feature, threshold and kernel weight of all stumps, by threshold."""
    maps = predictor.maps
    pairs = zip(maps.families, maps.split(theta), strict=True)
    weights = np.concatenate([np.empty(0), *(w for own, w in pairs if own.stump_features.size)])
    order = np.argsort(maps.stump_thresholds, kind="stable")
    return maps.stump_features[order], maps.stump_thresholds[order], weights[order]


def column_of(X, feature: int) -> Array:
    """Return a column of rows, dense or sparse."""
    column = X[:, [feature]]
    return (column.toarray() if sparse.issparse(column) else column).ravel().astype(np.float64)


def _count(column: Array, thresholds: Array) -> NDArray[np.intp]:
    return np.bincount(intervals(thresholds, column), minlength=thresholds.size + 1)


def _density(column: Array) -> tuple[Array, NDArray[np.intp]]:
    present = column[~np.isnan(column)]
    low, high = np.quantile(present, [_OUTER, 1.0 - _OUTER]) if present.size else (0.0, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts, bins = np.histogram(np.clip(present, low, high), _BINS, range=(low, high))
    return bins, counts

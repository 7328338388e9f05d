"""Shape functions: how the scores change with one feature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.arrays import is_fresh
from mbkl.engine.twins import as_float32, just_above
from mbkl.explain.fern_games import FernGames, games_of
from mbkl.explain.rows import cells_of_features
from mbkl.extras import require
from mbkl.maps.families import MapSet
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.predictor import TablePredictor

Array = NDArray[np.float64]

_BINS = 48
# Share of the data at either end that the range of a picture leaves out.
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
        Increasing. A first threshold of -inf separates missing values from all others. For a
        category, the thresholds between the numbers of its levels.
    values : ndarray of shape (n_thresholds + 1, n_columns)
        Contribution to the scores up to the first threshold, between the first and the
        second, and so on; the mean over the background is zero.
    counts : ndarray of shape (n_thresholds + 1,) or None
        Rows of the data in each interval.
    bins : ndarray of shape (n_bins + 1,) or None
        Edges of bins of equal width over the range of the data, less its outermost ends.
    density : ndarray of shape (n_bins,) or None
        Rows of the data in each bin; values outside count in the first or last bin.
    stump_thresholds, theta : ndarray of shape (n_stumps,)
        Thresholds of the stumps of the kernel, and their weights.
    levels : tuple or None
        Levels of a category; `values` and `counts` are for missing values, each level, and
        new levels.
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
        """Position of each interval in the kernel of stumps: the sum of the weights below it."""
        cumulative = np.append(0.0, np.cumsum(self.theta))
        below = np.searchsorted(self.stump_thresholds, self.thresholds, side="right")
        return np.append(0.0, cumulative[below])

    def at(self, x) -> Array:
        """Return contributions of values, or of level numbers, of shape (n, n_columns)."""
        return self.values[intervals(self.thresholds, np.asarray(x, dtype=np.float64))]

    def curve(self, max_steps: int | None = None) -> tuple[Array, Array]:
        """Return edges, and contributions between them, over the data or over all thresholds.

        More than `max_steps` steps are merged into about that many, spread evenly.
        """
        marks = self.thresholds if self.bins is None else self.bins
        marks = marks[np.isfinite(marks)]
        low, high = (marks[0], marks[-1]) if marks.size else (0.0, 1.0)
        margin = 0.02 * (high - low) or 0.5
        low, high = low - margin, high + margin
        cuts = self.thresholds[(self.thresholds > low) & (self.thresholds < high)]
        if max_steps is not None and cuts.size > max_steps:
            # Each point of the grid is moved to the threshold at or above it.
            grid = np.linspace(low, high, max_steps + 1)[1:]
            cuts = np.unique(cuts[np.minimum(np.searchsorted(cuts, grid), cuts.size - 1)])
        edges = np.concatenate([[low], cuts, [high]])
        return edges, self.at(just_above(edges[:-1]))

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
        """Return plain lists for JSON; a threshold of -inf becomes None."""
        return plain(self)


def plain(value, digits: int | None = None):
    """Return dataclasses, arrays and NumPy scalars as JSON types; NaN and infinity become None.

    >>> plain({"a": np.array([0.1234, np.nan])}, digits=2)
    {'a': [0.12, None]}
    """
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {name: plain(item, digits) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item, digits) for item in value]
    if isinstance(value, float):
        shown = value if digits is None else float(f"{value:.{digits}g}")
        return shown if np.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def intervals(thresholds: Array, x: Array) -> NDArray[np.intp]:
    """Return the interval of each value; missing values are in the first."""
    return np.where(np.isnan(x), 0, np.searchsorted(thresholds, as_float32(x), side="left"))


def shapes_of(
    predictor: TablePredictor,
    background: NDArray,
    theta: Array,
    names: Sequence[str],
    classes: tuple,
    X,
    levels: Sequence,
) -> list[FeatureShape]:
    """Return the shape functions of all features that stumps or ferns use.

    A shape function is the sum of the stumps' tables of a feature and of the mean effects of the
    ferns that use it. It counts the rows of X. Theta are the kernel weights of the maps.
    """
    by_family = [
        jumps
        for maps, tables in predictor.families
        for jumps in _jumps(maps, tables, background)
        if jumps[0].size
    ]
    if not by_family:
        return []
    features, thresholds, jumps = _summed(*map(np.concatenate, zip(*by_family, strict=True)))
    stumps, stump_thresholds, weights = _stumps(predictor.maps, theta)
    columns = sparse.csc_array(X) if sparse.issparse(X) else X
    shapes = []
    for feature, first, count in zip(*np.unique(features, return_index=True, return_counts=True)):
        cuts = thresholds[first : first + count]
        values = np.vstack([np.zeros(jumps.shape[1]), jumps[first : first + count]]).cumsum(axis=0)
        values -= values[intervals(cuts, background[:, feature].astype(np.float64))].mean(axis=0)
        counts = bins = density = None
        if columns is not None:
            data = column_of(columns, feature)
            counts = np.bincount(intervals(cuts, data), minlength=values.shape[0])
            bins, density = _density(data)
        is_of_feature = stumps == feature
        shapes.append(
            FeatureShape(
                int(feature),
                str(names[feature]),
                classes,
                cuts,
                values,
                counts,
                bins,
                density,
                stump_thresholds[is_of_feature],
                weights[is_of_feature],
                None if levels[feature] is None else tuple(levels[feature]),
            )
        )
    return shapes


def _stumps(maps: MapSet, theta: Array) -> Jumps:
    """Return feature, threshold and kernel weight of all stumps, sorted by threshold."""
    pairs = zip(maps.families, maps.split(theta), strict=True)
    weights = np.concatenate([each[: family.stump_features.size] for family, each in pairs])
    order = np.argsort(maps.stump_thresholds, kind="stable")
    return maps.stump_features[order], maps.stump_thresholds[order], weights[order]


Jumps = tuple[NDArray[np.intp], Array, Array]


@singledispatch
def _jumps(maps: Any, tables: Array, background: NDArray) -> Iterator[Jumps]:
    """Yield features, thresholds and jumps of shape functions, for each part of a family."""
    is_first = np.zeros(len(tables), dtype=bool)
    is_first[maps.cells.offsets[:-1]] = True
    features = np.repeat(maps.features, np.diff(maps.edges.offsets))
    yield features, maps.edges.thresholds, np.diff(tables, axis=0)[~is_first[1:]]


@_jumps.register
def _(maps: ProjectionMaps, tables: Array, background: NDArray) -> Iterator[Jumps]:
    yield from ()  # a projection depends on several features


@_jumps.register
def _(maps: FernMaps, tables: Array, background: NDArray) -> Iterator[Jumps]:
    for games in games_of(maps, tables, background):
        yield _main_effects(games, background)


def _main_effects(games: FernGames, background: NDArray) -> Jumps:
    """Return the jumps of the partial dependence of ferns, at thresholds and between levels.

    A jump is the change of the mean table entry over the background if the value of the feature
    moves from just below the threshold to just above it.
    """
    cells = cells_of_features(MapSet((games.ferns,)))
    grid = np.zeros((max(values.size for _, values in cells.values()), background.shape[1]))
    for feature, (_, values) in cells.items():
        grid[: values.size, feature] = values
    numbers = games.numbers(grid)
    # Concatenate the pieces of all cells of each player's feature.
    players = games.players.tolist()
    row = np.concatenate([np.arange(cells[feature][1].size) for feature in players])
    line = np.cumsum(row == 0) - 1
    pieces = numbers[games.fern[line], row] & games.masks[line]
    means = games.means(games.fern, games.masks, line, pieces)
    above = np.flatnonzero(row)
    thresholds = np.concatenate([cells[feature][0] for feature in players])
    return _summed(games.players[line[above]], thresholds, means[above] - means[above - 1])


def _summed(features: NDArray[np.intp], thresholds: Array, jumps: Array) -> Jumps:
    """Return jumps sorted by feature and threshold; jumps at the same threshold are summed."""
    order = np.lexsort((thresholds, features))
    features, thresholds = features[order], thresholds[order]
    starts = np.flatnonzero(is_fresh(features, thresholds))
    return features[starts], thresholds[starts], np.add.reduceat(jumps[order], starts, axis=0)


def column_of(X, feature: int) -> Array:
    """Return a column of a dense or sparse matrix as a dense array."""
    column = X[:, [feature]]
    return (column.toarray() if sparse.issparse(column) else column).ravel().astype(np.float64)


def data_range(column: Array) -> tuple[float, float]:
    """Return the range of a column without its outermost values."""
    present = column[~np.isnan(column)]
    low, high = np.quantile(present, [_OUTER, 1.0 - _OUTER]) if present.size else (0.0, 0.0)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _density(column: Array) -> tuple[Array, NDArray[np.intp]]:
    low, high = data_range(column)
    present = column[~np.isnan(column)]
    counts, bins = np.histogram(np.clip(present, low, high), _BINS, range=(low, high))
    return bins, counts

"""Contributions of features, and of pairs of features, to the scores of rows.

A score is a sum of table entries, so it is enough to divide each entry among features:

- a stump's table has one feature, whose contribution is the entry less its mean;
- a fern's features get the Shapley values of the game in `fern_games`;
- a projection's features get their shares of the change of the projection, from each
  background row to the explained row (the integrated gradient of a function of one sum).

All means are over the rows of a background. The contributions of a row sum to its score
less the mean score of the background. For stumps and ferns they are the interventional
Shapley values of the whole model (exactly where at most seven features of a fern differ
between two rows, see `fern_games`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mbkl.engine import limits
from mbkl.engine.arrays import one_blas_thread
from mbkl.explain.fern_games import FernGames, games_of, same_fern
from mbkl.explain.rows import rows_between_thresholds
from mbkl.maps.families import Maps, MapSet
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.predictor import TablePredictor, rows_to_predict

Array = NDArray[np.float64]
Features = tuple[int, ...]

# Large blocks save time: rows with the same answers to a fern are computed once per block.
_ROWS_AT_ONCE = 10_000


def contributions(predictor: TablePredictor, X: NDArray, background: NDArray) -> Array:
    """Return the contributions of features, of shape (n_rows, n_features, n_columns).

    The rows of the background stand for the absence of features.
    """
    with one_blas_thread():
        total = _over_families(_add_contributions, predictor, X, background)
    return np.ascontiguousarray(total.transpose(1, 0, 2))


def _over_families(add: Callable, predictor: TablePredictor, X: NDArray, *others: NDArray) -> Array:
    """Sum a function over all families, into an array of (n_features, n_rows, n_columns)."""
    # Features come first: a fern adds to all rows of a few features, which are then contiguous.
    total = np.zeros((X.shape[1], X.shape[0], predictor.intercept.size))
    for maps, tables in predictor.families:
        add(maps, total, tables, X, *others)
    return total


@singledispatch
def _add_contributions(maps: Any, total: Array, tables: Array, X, background) -> None:
    """Add the contributions by a family to a total of (n_features, n_rows, n_columns)."""
    total[maps.features] += _centred_entries(maps, tables, X, background)


@_add_contributions.register
def _(maps: FernMaps, total: Array, tables: Array, X, background) -> None:
    for games in games_of(maps, tables, background):
        for start in range(0, len(X), _ROWS_AT_ONCE):
            span = slice(start, start + _ROWS_AT_ONCE)
            rows = games.answers(X[span])
            by_player = np.ascontiguousarray(games.shapley_values(rows).transpose(1, 0, 2))
            number = np.arange(games.players.size) - games.bounds[games.fern]
            for player, feature, fern in zip(number, games.players, games.fern, strict=True):
                total[feature, span] += by_player[player, rows.of_rows[fern]]


@_add_contributions.register
def _(maps: ProjectionMaps, total: Array, tables: Array, X, background) -> None:
    total += _along_projections(maps, tables, X, background)


def _entries(maps: Maps, tables: Array, X: NDArray) -> Array:
    """Return the table entries of rows, of shape (n_groups, n_rows, n_columns)."""
    codes = maps.codes(rows_to_predict(X, MapSet((maps,)), None)).dense()
    return tables[codes.values + codes.offsets[:-1, None]]


def _centred_entries(maps: Maps, tables: Array, X: NDArray, background: NDArray) -> Array:
    """Return the table entries of rows less their means over the background."""
    means = _entries(maps, tables, background).mean(axis=1, keepdims=True)
    return _entries(maps, tables, X) - means


def _along_projections(maps: ProjectionMaps, tables: Array, X, background) -> Array:
    """Return contributions by projections, of shape (n_features, n_rows, n_columns)."""
    inputs, background_inputs = maps.inputs(X), maps.inputs(background)
    projected, background_projected = inputs @ maps.directions, background_inputs @ maps.directions
    entries, background_entries = (_entries(maps, tables, rows) for rows in (X, background))
    total = np.zeros((inputs.shape[1], len(X), tables.shape[1]))
    for other in range(len(background)):
        change = entries - background_entries[:, other : other + 1]
        distance = (projected - background_projected[other]).T[:, :, None]
        slope = np.divide(change, distance, out=np.zeros_like(change), where=distance != 0)
        moves = (inputs - background_inputs[other]).T[:, :, None]
        total += moves * (maps.directions @ slope.reshape(len(slope), -1)).reshape(total.shape)
    # The chi2 map has several numbers a feature, one block of features after the other.
    by_feature = total.reshape(-1, X.shape[1], *total.shape[1:])
    return by_feature.sum(axis=0) / len(background)


def set_contributions(
    predictor: TablePredictor, X: NDArray, background: NDArray
) -> dict[Features, Array]:
    """Return contributions of shape (n_rows, n_columns) for each set of features in one table.

    They sum to the scores less the mean scores of the background, too.
    """
    shape = len(X), predictor.intercept.size
    by_set: dict[Features, Array] = defaultdict(lambda: np.zeros(shape))
    for maps, tables in predictor.families:
        entries = _centred_entries(maps, tables, X, background)
        for features, contribution in zip(joined_features(maps), entries, strict=True):
            by_set[features] += contribution
    return dict(sorted(by_set.items()))


@singledispatch
def joined_features(maps: Any) -> list[Features]:
    """Return the features of each table of a family."""
    return [(feature,) for feature in maps.features.tolist()]


@joined_features.register
def _(maps: FernMaps) -> list[Features]:
    return [tuple(np.unique(features).tolist()) for features, _ in maps.ferns]


@joined_features.register
def _(maps: ProjectionMaps) -> list[Features]:
    directions = sparse.csc_array(maps.directions)
    inputs = np.split(directions.indices, directions.indptr[1:])[:-1]
    # The chi2 map has several numbers a feature, one block of features after the other.
    return [tuple(np.unique(column % maps.centre.size).tolist()) for column in inputs]


def column_importances(model) -> Array:
    """Return the importance of each input column; they sum to one.

    The importance is the mean change of a score if the column alone gets the value of
    another row. The rows are generated from the model: all intervals between the thresholds
    of a column are equally likely. This needs no data and no Shapley values and takes little
    longer than a prediction; `explain_global` tells more.

    Parameters
    ----------
    model : MBKLClassifier or MBKLRegressor
        Fitted.

    Returns
    -------
    importances : ndarray of shape (n_features_in_,)
        All zero if the model has no maps.

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.explain import column_importances
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
    >>> importances = column_importances(model)
    >>> int(importances.argmax()) in (2, 3), round(float(importances.sum()), 12)
    (True, 1.0)
    """
    check_is_fitted(model)
    predictor, n_features = model.predictor_, model.n_features_in_
    n_rows = limits.VALUES_OF_IMPORTANCES // (n_features * predictor.intercept.size)
    n_rows = int(np.clip(n_rows, *limits.ROWS_OF_IMPORTANCES))
    rows = rows_between_thresholds(predictor.maps, n_features, n_rows)
    changes = np.abs(_over_families(_add_changes, predictor, rows)).mean(axis=1)
    if not hasattr(model, "classes_"):  # each target has its own unit
        totals = changes.sum(axis=0)
        changes = changes / np.where(totals > 0, totals, 1.0)
    changes = changes.mean(axis=1)
    return changes / (changes.sum() or 1.0)


@singledispatch
def _add_changes(maps: Any, total: Array, tables: Array, rows: Array) -> None:
    """Add the changes of entries if one column gets its value from the previous row."""
    entries = _entries(maps, tables, rows)
    total[maps.features] += entries - np.roll(entries, 1, axis=1)


@_add_changes.register
def _(maps: ProjectionMaps, total: Array, tables: Array, rows: Array) -> None:
    total += _along_projections(maps, tables, rows, rows)


@_add_changes.register
def _(maps: FernMaps, total: Array, tables: Array, rows: Array) -> None:
    for games in games_of(maps, tables, rows):
        before = games.numbers(rows)[games.fern]
        masks, fern = games.masks[:, None], games.fern[:, None]
        after = (before & ~masks) | (np.roll(before, 1, axis=1) & masks)
        changes = games.tables[games.cells(fern, before)] - games.tables[games.cells(fern, after)]
        for feature, change in zip(games.players, changes, strict=True):
            total[feature] += change


def pair_strengths(
    predictor: TablePredictor, X: NDArray, background: NDArray, features: NDArray[np.intp]
) -> Array:
    """Return the strengths of pairwise interactions, of (n_features, n_features, n_columns).

    The strength is the mean absolute value, over the rows of X, of the joint partial dependence
    of two features less the partial dependences of both. Projections are left out.
    """
    n_features = features.size
    position = np.full(X.shape[1], -1)
    position[features] = np.arange(n_features)
    total = np.zeros((n_features, n_features, len(X), predictor.intercept.size))
    for maps, tables in predictor.families:
        if isinstance(maps, FernMaps):  # the other tables have one feature
            for games in games_of(maps, tables, background):
                _add_pair_effects(games, total, position, X)
    return np.abs(total + total.transpose(1, 0, 2, 3)).mean(axis=2)


def _add_pair_effects(games: FernGames, total: Array, position: NDArray[np.intp], X) -> None:
    """Add the joint partial dependence of each pair of features less those of both features.

    `position` has the index in `total` of each feature, or -1.
    """
    wanted = np.flatnonzero(position[games.players] >= 0)
    fern, masks = games.fern[wanted], games.masks[wanted]
    place = position[games.players[wanted]]
    left, right = same_fern(fern, fern, games.ferns.n_maps)
    left, right = left[left < right], right[left < right]
    numbers = games.numbers(X)

    def dependence(fern: NDArray[np.intp], masks: NDArray) -> Array:
        values = numbers[fern] & masks[:, None]
        line = np.repeat(np.arange(fern.size), len(X))
        means = games.means(fern, masks, line, values.ravel())
        return means.reshape(*values.shape, total.shape[-1])

    every = np.arange(games.ferns.n_maps)
    neither, alone = dependence(every, np.zeros_like(games.factors)), dependence(fern, masks)
    together = dependence(fern[left], masks[left] | masks[right])
    effects = together - alone[left] - alone[right] + neither[fern[left]]
    for first, second, effect in zip(place[left], place[right], effects, strict=True):
        total[first, second] += effect


def joint_dependence(
    predictor: TablePredictor, background: NDArray, pair: Sequence[int], grids: Sequence[Array]
) -> Array:
    """Return the joint partial dependence of two features on grids of values, centred.

    The result is of shape (n_first, n_second, n_columns).
    """
    shape = (grids[0].size, grids[1].size, len(background))
    mixed = np.tile(background.astype(np.float64), (shape[0] * shape[1], 1))
    for feature, values in zip(pair, np.meshgrid(*grids, indexing="ij"), strict=True):
        mixed[:, feature] = np.repeat(values.ravel(), len(background))
    means = predictor.scores(mixed).reshape(*shape, -1).mean(axis=2)
    return means - predictor.scores(background).mean(axis=0)

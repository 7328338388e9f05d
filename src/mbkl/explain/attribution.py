"""What each feature adds to the scores of each row.

A score is a sum of table entries, so it is enough to share out each entry:

- a stump's table has one feature, which gets the entry less its mean;
- a fern's features get the Shapley values of the game in `fern_games`;
- a projection's features get their shares of the way along it, from each row of the
  background to the row in question (the integrated gradient of a function of one sum).

All means are over the rows of a background, and what the features get sums to the score
less the mean score of the background. For stumps and ferns the sum over all tables is the
interventional Shapley value of the whole model (where no more than eight features of a fern
differ between two rows, see `fern_games`).
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mbkl.engine.arrays import one_blas_thread
from mbkl.explain.fern_games import (
    FernTables,
    columns_of,
    fern_shares,
    partial_dependences,
    same_fern,
)
from mbkl.explain.rows import codes_of, rows_between_thresholds
from mbkl.maps.families import Maps
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.predictor import TablePredictor

Array = NDArray[np.float64]

# Rows that give the same answers are handled once, so that many are better than few.
_ROWS_AT_ONCE = 10_000


def contributions(predictor: TablePredictor, X: NDArray, background: NDArray) -> Array:
    """Return what each feature adds, of shape (n_rows, n_features, n_columns).

    The rows of the background stand for the absence of features.
    """
    # By feature first: a fern adds to whole rows of a few features.
    total = np.zeros((X.shape[1], X.shape[0], predictor.intercept.size))
    with one_blas_thread():
        for maps, tables in predictor.families:
            _add_contributions(maps, total, tables, X, background)
    return np.ascontiguousarray(total.transpose(1, 0, 2))


@singledispatch
def _add_contributions(maps: Any, total: Array, tables: Array, X, background) -> None:
    """Add what the features of a family add, to a total of shape (n_features, n_rows, ...)."""
    total[maps.features] += centred_entries(maps, tables, X, background)


@_add_contributions.register
def _(maps: FernMaps, total: Array, tables: Array, X, background) -> None:
    if not maps.n_maps:
        return
    games = FernTables(maps, tables)
    others = columns_of(background)
    for start in range(0, len(X), _ROWS_AT_ONCE):
        span = slice(start, start + _ROWS_AT_ONCE)
        columns = columns_of(X[span])
        for block in games.blocks():
            rows = games.answers(columns, block)
            shares = fern_shares(games, block, rows, games.answers(others, block))
            by_player = np.ascontiguousarray(shares.transpose(1, 0, 2))
            for fern, place in zip(block, rows.place, strict=True):
                players = games.players[games.bounds[fern] : games.bounds[fern + 1]]
                for own, feature in zip(by_player, players):
                    total[feature, span] += own[place]


@_add_contributions.register
def _(maps: ProjectionMaps, total: Array, tables: Array, X, background) -> None:
    total += along_projections(maps, tables, X, background)


def centred_entries(maps: Maps, tables: Array, X: NDArray, background: NDArray) -> Array:
    """Return table entries less their means, of shape (n_groups, n_rows, n_columns)."""
    means = entries_of(maps, tables, background).mean(axis=1, keepdims=True)
    return entries_of(maps, tables, X) - means


def entries_of(maps: Maps, tables: Array, X: NDArray) -> Array:
    """Return the table entries of rows, of shape (n_groups, n_rows, n_columns)."""
    codes = codes_of(maps, X)
    return tables[codes.values + codes.offsets[:-1, None]]


def along_projections(maps: ProjectionMaps, tables: Array, X, background) -> Array:
    """Return what the features of projections add, of shape (n_features, n_rows, n_columns)."""
    inputs, others = maps.inputs(X), maps.inputs(background)
    places, other_places = inputs @ maps.directions, others @ maps.directions
    entries = entries_of(maps, tables, X)
    other_entries = entries_of(maps, tables, background)
    total = np.zeros((inputs.shape[1], len(X), tables.shape[1]))
    for row in range(len(background)):
        change = entries - other_entries[:, row : row + 1]
        way = (places - other_places[row]).T[:, :, None]
        slope = np.divide(change, way, out=np.zeros_like(change), where=way != 0)
        moved = (inputs - others[row]).T[:, :, None]
        total += moved * (maps.directions @ slope.reshape(len(slope), -1)).reshape(total.shape)
    # The chi2 map has several numbers a feature, one block of features after the other.
    by_feature = total.reshape(-1, X.shape[1], *total.shape[1:])
    return by_feature.sum(axis=0) / len(background)


_MOST_ROWS, _FEWEST_ROWS, _VALUES = 64, 8, 10_000_000


def column_importances(model) -> Array:
    """Return the importance of each input column; they sum to one.

    By how much a score changes, on average, if the column alone gets the value of another
    row. The rows are made up from the model: all intervals between the thresholds of a
    column count the same. No data are needed and no Shapley values computed, so that this
    takes little longer than a prediction; `explain_global` tells more.

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
    n_rows = _VALUES // (n_features * predictor.intercept.size)
    n_rows = min(max(n_rows, _FEWEST_ROWS), _MOST_ROWS)
    rows = rows_between_thresholds(predictor.maps, n_features, n_rows)
    changes = np.abs(_changes(predictor, rows)).mean(axis=1)
    if not hasattr(model, "classes_"):  # targets have units of their own
        totals = changes.sum(axis=0)
        changes = changes / np.where(totals > 0, totals, 1.0)
    changes = changes.mean(axis=1)
    return changes / (changes.sum() or 1.0)


def _changes(predictor: TablePredictor, rows: Array) -> Array:
    """Return the change by each column's value of the row before, (n_features, n_rows, ...)."""
    total = np.zeros((rows.shape[1], rows.shape[0], predictor.intercept.size))
    for maps, tables in predictor.families:
        _add_changes(maps, total, tables, rows)
    return total


@singledispatch
def _add_changes(maps: Any, total: Array, tables: Array, rows: Array) -> None:
    """Add the changes of one family."""
    entries = entries_of(maps, tables, rows)
    total[maps.features] += entries - np.roll(entries, 1, axis=1)


@_add_changes.register
def _(maps: ProjectionMaps, total: Array, tables: Array, rows: Array) -> None:
    total += along_projections(maps, tables, rows, rows)


@_add_changes.register
def _(maps: FernMaps, total: Array, tables: Array, rows: Array) -> None:
    games, columns = FernTables(maps, tables), columns_of(rows)
    for block in games.blocks():
        answers = games.answers(columns, block)
        numbers = answers.numbers[answers.place]
        pieces = slice(*games.bounds[[block.start, block.stop]].tolist())
        fern = games.fern[games.starts[pieces]]
        own, masks = numbers[fern - block.start], games.masks[pieces, None]
        mixed = (own & ~masks) | (np.roll(own, 1, axis=1) & masks)
        here = games.entries(np.arange(block.start, block.stop)[:, None], numbers)
        change = here[fern - block.start] - games.entries(fern[:, None], mixed)
        collect = sparse.csc_array(
            (np.ones(fern.size), games.players[pieces], np.arange(fern.size + 1)),
            (len(total), fern.size),
        )
        total += (collect @ change.reshape(fern.size, -1)).reshape(total.shape)


Features = tuple[int, ...]


@singledispatch
def joined_features(maps: Any) -> list[Features]:
    """Return the features that each table of a family joins."""
    return [(int(feature),) for feature in maps.features]


@joined_features.register
def _(maps: FernMaps) -> list[Features]:
    return [tuple(sorted(set(features.tolist()))) for features, _ in maps.ferns]


@joined_features.register
def _(maps: ProjectionMaps) -> list[Features]:
    inputs, projections = sparse.csc_array(maps.directions).nonzero()
    # The chi2 map has several numbers a feature, one block of features after the other.
    pairs = np.unique(np.column_stack([projections, inputs % maps.centre.size]), axis=0)
    bounds = np.searchsorted(pairs[:, 0], np.arange(1, maps.n_groups))
    return [tuple(own.tolist()) for own in np.split(pairs[:, 1], bounds)[: maps.n_groups]]


def set_contributions(
    predictor: TablePredictor, X: NDArray, background: NDArray
) -> tuple[list[Features], Array]:
    """Return the sets of features that tables join, and what the tables of each add.

    These contributions, of shape (n_sets, n_rows, n_columns), sum to the scores less the mean
    scores of the background.
    """
    joined = [joined_features(maps) for maps, _ in predictor.families]
    sets = sorted(set().union(*joined), key=lambda features: (len(features), features))
    number = {features: position for position, features in enumerate(sets)}
    total = np.zeros((len(sets), len(X), predictor.intercept.size))
    for (maps, tables), features in zip(predictor.families, joined, strict=True):
        entries = centred_entries(maps, tables, X, background)
        for own, table in zip(features, entries, strict=True):
            total[number[own]] += table
    return sets, total


def pair_strengths(
    predictor: TablePredictor, X: NDArray, background: NDArray, features: NDArray[np.intp]
) -> Array:
    """Return how much each two of some features tell together, beyond what each tells alone.

    The joint partial dependence of two features less the partial dependences of both:
    its mean absolute value over the rows of X and the scores. Projections are left out.
    """
    n_features = features.size
    position = np.full(X.shape[1], -1)
    position[features] = np.arange(n_features)
    total = np.zeros((n_features, n_features, len(X), predictor.intercept.size))
    columns = columns_of(X), columns_of(background)
    for maps, tables in predictor.families:
        if not isinstance(maps, FernMaps):
            continue  # single features have no pairs, and those of projections are left out
        games = FernTables(maps, tables)
        for block in games.blocks():
            _add_pair_effects(total, games, block, position, *columns)
    strengths = np.abs(total + total.transpose(1, 0, 2, 3)).mean(axis=(2, 3))
    np.fill_diagonal(strengths, 0.0)
    return strengths


# ---------------------------------------------------------------- pairs of a fern
# A feature gives one of few pieces, its steps, whatever the row. So the partial dependences of a
# feature, and of two of them, are small tables, and rows look up in these what the pair adds.


def _add_pair_effects(
    total: Array,
    tables: FernTables,
    block: range,
    position: NDArray[np.intp],
    rows: NDArray[np.float32],
    background: NDArray[np.float32],
) -> None:
    """Add the joint partial dependences of each two features less those of both.

    Total is of shape (n, n, n_rows, n_columns); of a pair, the place whose first index is the
    smaller feature's is added to. Position is the place of each feature in total, or -1.
    """
    first_piece, last_piece = tables.bounds[[block.start, block.stop]]
    starts = tables.starts[first_piece:last_piece]
    place = position[tables.players[first_piece:last_piece]]
    wanted = np.flatnonzero(place >= 0)
    place, fern = place[wanted], tables.fern[starts[wanted]] - block.start
    left, right = same_fern(fern, fern, len(block))
    left, right = left[left < right], right[left < right]
    if not left.size:
        return
    steps = _Steps(tables, block, first_piece + wanted, fern, background)
    cell = steps.cell(left, right, tables.row_steps(rows, block)[wanted])
    n, n_rows = total.shape[1:3]
    target = (n * place[left] + place[right])[:, None] * n_rows + np.arange(n_rows)
    collect = sparse.coo_array(
        (np.ones(cell.size), (target.ravel(), cell.ravel())),
        shape=(n * n * n_rows, len(steps.effects)),
    )
    total += (collect @ steps.effects).reshape(total.shape)


class _Steps:
    """The steps of some pieces, and what each two of different pieces add together."""

    def __init__(self, tables: FernTables, block: range, pieces, fern, background) -> None:
        first_step = tables.steps.first
        size = np.diff(first_step)[pieces]
        self.first = np.append(0, np.cumsum(size))
        self.piece = np.repeat(np.arange(pieces.size), size)
        step = np.arange(self.piece.size) - self.first[self.piece]
        value = tables.steps.values[first_step[pieces][self.piece] + step]
        own, mask = fern[self.piece], tables.masks[pieces][self.piece]

        left, right = same_fern(own, own, len(block))
        later = self.piece[left] < self.piece[right]
        left, right = left[later], right[later]
        self.start = np.searchsorted(left, np.arange(self.piece.size))
        n_ferns, n_steps = len(block), self.piece.size
        nothing = np.zeros(n_ferns, dtype=np.uint64)
        means = partial_dependences(
            tables,
            block,
            tables.answers(background, block),
            np.concatenate([np.arange(n_ferns), own, own[left]]),
            np.concatenate([nothing, mask, mask[left] | mask[right]]),
            np.concatenate([nothing, value, value[left] | value[right]]),
        )
        nobody, alone, together = np.split(means, [n_ferns, n_ferns + n_steps])
        self.effects = together - alone[left] - alone[right] + nobody[own[left]]

    def cell(self, left, right, steps: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return where in the effects two pieces are, by the steps of the rows in each."""
        step = self.first[left, None] + steps[left]
        after = self.first[left + 1][:, None]
        return self.start[step] + self.first[right, None] + steps[right] - after

"""What each feature adds to the scores of each row.

A score is a sum of table entries, so it is enough to share out each entry:

- a stump's table has one feature, which gets the entry less its mean;
- a fern's features get the Shapley values of the game in `fern_games`;
- a projection's features get their shares of the way along it, from each row of the
  background to the row in question (the integrated gradient of a function of one sum).

All means are over the rows of a background, and what the features get sums to the score
less the mean score of the background. For stumps and ferns the sum over all tables is the
interventional Shapley value of the whole model (where no more than eight features of a fern
differ between two rows, see `coalitions`).
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import one_blas_thread
from mbkl.engine.codes import DenseCodes
from mbkl.explain.fern_games import FernTables, columns_of
from mbkl.explain.fern_shares import fern_shares
from mbkl.maps.categories import CategoryMaps
from mbkl.maps.families import Maps, MapSet
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.maps.stumps import StumpMaps
from mbkl.predictor import TablePredictor, rows_to_predict

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
def _add_contributions(maps: Maps, total: Array, tables: Array, X, background) -> None:
    """Add what the features of a family add, to a total of shape (n_features, n_rows, ...)."""
    raise TypeError(f"Contributions of {type(maps).__name__} are unknown.")


@_add_contributions.register
def _(maps: StumpMaps | CategoryMaps, total: Array, tables: Array, X, background) -> None:
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
                for own, feature in zip(by_player, games.players[fern]):
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


def codes_of(maps: Maps, X: NDArray, n_jobs: int | None = None) -> DenseCodes:
    """Return the cell of each row in each group."""
    return maps.codes(rows_to_predict(X, MapSet((maps,)), n_jobs)).dense()


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

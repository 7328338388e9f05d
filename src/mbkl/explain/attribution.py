"""What each feature adds to the scores of each row.

A score is a sum of table entries, so it is enough to share out each entry:

- a stump's table has one feature, which gets the entry less its mean;
- a fern's features get the Shapley values of the game in `fern_games`;
- a projection's features get their parts of the way along it, from each row of the
  background to the row in question (the integrated gradient of a function of one sum).

All means are over the rows of a background, and what the features get sums to the score
less the mean score of the background. For stumps and ferns the sum over all tables is the
interventional Shapley value of the whole model (where no more than eight features of a fern
differ between two rows, see `coalitions`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import choose_engine
from mbkl.engine.codes import DenseCodes, densify
from mbkl.explain.fern_games import FernTables
from mbkl.explain.fern_shares import fern_shares
from mbkl.maps.families import Maps
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.maps.stumps import StumpMaps
from mbkl.predictor import TablePredictor
from mbkl.solvers.blas import one_blas_thread

Array = NDArray[np.float64]

_ROWS_AT_ONCE = 500


def contributions(predictor: TablePredictor, X: NDArray, background: NDArray) -> Array:
    """Return what each feature adds, of shape (n_rows, n_features, n_columns).

    Parameters
    ----------
    predictor : TablePredictor
    X : ndarray of shape (n_rows, n_features)
    background : ndarray of shape (n_background, n_features)
        Rows that stand for the absence of features.
    """
    # By feature first: a fern adds to whole rows of a few features.
    total = np.zeros((X.shape[1], X.shape[0], predictor.intercept.size))
    with one_blas_thread():
        for part, tables in zip(predictor.maps.parts, predictor.tables, strict=True):
            if isinstance(part, StumpMaps):
                total[part.features] += centred_entries(part, tables, X, background)
            elif isinstance(part, FernMaps):
                _add_ferns(total, part, tables, X, background)
            else:
                total += _along_projections(part, tables, X, background)
    return np.ascontiguousarray(total.transpose(1, 0, 2))


def centred_entries(part: Maps, tables: Array, X: NDArray, background: NDArray) -> Array:
    """Return table entries less their means, of shape (n_groups, n_rows, n_columns)."""
    means = _entries(_codes(part, background), tables).mean(axis=1, keepdims=True)
    return _entries(_codes(part, X), tables) - means


def _codes(part: Maps, X: NDArray) -> DenseCodes:
    return densify(part.codes(X, choose_engine(part.n_groups * X.shape[0])))


def _entries(codes: DenseCodes, tables: Array) -> Array:
    return tables[codes.values + codes.offsets[:-1, None]]


def _add_ferns(total: Array, ferns: FernMaps, tables: Array, X, background) -> None:
    if not ferns.n_maps:
        return
    games = FernTables(ferns, tables)
    of_background = games.pieces(background)
    for start in range(0, len(X), _ROWS_AT_ONCE):
        span = slice(start, start + _ROWS_AT_ONCE)
        of_rows = games.pieces(X[span])
        for block in games.blocks():
            rows = games.answers(of_rows, block)
            shares = fern_shares(games, block, rows, games.answers(of_background, block))
            for fern in block:
                players = games.players[fern]
                own = shares[rows.place[:, fern - block.start], : players.size]
                total[players, span] += own.transpose(1, 0, 2)


def _along_projections(part: ProjectionMaps, tables: Array, X, background) -> Array:
    """Return what the features of projections add, of shape (n_features, n_rows, n_columns)."""
    inputs, others = part._inputs(X), part._inputs(background)
    places, other_places = inputs @ part.directions, others @ part.directions
    entries = _entries(_codes(part, X), tables)
    other_entries = _entries(_codes(part, background), tables)
    total = np.zeros((inputs.shape[1], len(X), tables.shape[1]))
    for row in range(len(background)):
        change = entries - other_entries[:, row : row + 1]
        way = (places - other_places[row]).T[:, :, None]
        slope = np.divide(change, way, out=np.zeros_like(change), where=way != 0)
        moved = (inputs - others[row]).T[:, :, None]
        total += moved * (part.directions @ slope.reshape(len(slope), -1)).reshape(total.shape)
    # The chi2 map has several numbers a feature, one block of features after the other.
    by_feature = total.reshape(-1, X.shape[1], *total.shape[1:])
    return by_feature.sum(axis=0) / len(background)

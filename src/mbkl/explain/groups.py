"""Features that tables join: what each set of them adds, and how much pairs interact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.explain.attribution import centred_entries
from mbkl.explain.fern_games import FernTables
from mbkl.explain.fern_pairs import pair_effects
from mbkl.maps.families import Maps
from mbkl.maps.ferns import FernMaps
from mbkl.maps.stumps import StumpMaps
from mbkl.predictor import TablePredictor

Array = NDArray[np.float64]
Features = tuple[int, ...]


def joined_features(part: Maps) -> list[Features]:
    """Return the features that each table of a family joins."""
    if isinstance(part, StumpMaps):
        return [(int(feature),) for feature in part.features]
    if isinstance(part, FernMaps):
        return [tuple(np.unique(piece).tolist()) for piece in part.split(part.features)]
    inputs, projections = sparse.csc_array(part.directions).nonzero()
    # The chi2 map has several numbers a feature, one block of features after the other.
    pairs = np.unique(np.column_stack([projections, inputs % part.centre.size]), axis=0)
    bounds = np.searchsorted(pairs[:, 0], np.arange(1, part.n_groups))
    return [tuple(piece.tolist()) for piece in np.split(pairs[:, 1], bounds)[: part.n_groups]]


def set_contributions(
    predictor: TablePredictor, X: NDArray, background: NDArray
) -> tuple[list[Features], Array]:
    """Return what the tables of each set of features add, less their means.

    Parameters
    ----------
    predictor : TablePredictor
    X : ndarray of shape (n_rows, n_features)
    background : ndarray of shape (n_background, n_features)

    Returns
    -------
    sets : list of tuple of int
        Features that are joined by one table or several.
    contributions : ndarray of shape (n_sets, n_rows, n_columns)
        These sum to the scores less the mean scores of the background.
    """
    joined = [joined_features(part) for part in predictor.maps.parts]
    sets = sorted(set().union(*joined), key=lambda features: (len(features), features))
    number = {features: position for position, features in enumerate(sets)}
    total = np.zeros((len(sets), len(X), predictor.intercept.size))
    parts = zip(predictor.maps.parts, predictor.tables, joined, strict=True)
    for part, tables, features in parts:
        entries = centred_entries(part, tables, X, background)
        for own, table in zip(features, entries, strict=True):
            total[number[own]] += table
    return sets, total


def pair_strengths(
    predictor: TablePredictor, X: NDArray, background: NDArray, features: NDArray[np.intp]
) -> Array:
    """Return how much each two features tell together, beyond what each tells alone.

    The joint partial dependence of two features less the partial dependences of both:
    its mean absolute value over the rows of X and the scores. Projections are left out.

    Parameters
    ----------
    predictor : TablePredictor
    X : ndarray of shape (n_rows, n_features)
    background : ndarray of shape (n_background, n_features)
    features : ndarray of shape (n,)
        Those to look at.

    Returns
    -------
    strengths : ndarray of shape (n, n)
        Symmetric, with zeros on the diagonal.
    """
    n_features = features.size
    position = np.full(X.shape[1], -1)
    position[features] = np.arange(n_features)
    total = np.zeros((n_features, n_features, len(X), predictor.intercept.size))
    for part, tables in zip(predictor.maps.parts, predictor.tables, strict=True):
        if isinstance(part, FernMaps):
            _add_pairs(total, part, tables, X, background, position)
    strengths = np.abs(total + total.transpose(1, 0, 2, 3)).mean(axis=(2, 3))
    np.fill_diagonal(strengths, 0.0)
    return strengths


def _add_pairs(total: Array, ferns: FernMaps, tables: Array, X, background, position) -> None:
    chosen = [(position[list(own)] >= 0).sum() > 1 for own in joined_features(ferns)]
    useful = np.array(chosen, dtype=bool)
    if not useful.any():
        return
    own_tables = tables[np.repeat(useful, np.diff(ferns.cell_offsets))]
    games = FernTables(ferns.select(useful), own_tables)
    of_rows, of_background = games.pieces(X), games.pieces(background)
    for fern in range(games.ferns.n_maps):
        place = position[games.players[fern]]
        wanted = np.flatnonzero(place >= 0)
        first, second = np.triu_indices(wanted.size, 1)
        effects = pair_effects(games, fern, wanted, of_rows, of_background)
        total[place[wanted[first]], place[wanted[second]]] += effects

"""Features that tables join: what each set of them adds, and how much pairs interact."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.explain.attribution import centred_entries
from mbkl.explain.fern_games import FernTables, columns_of
from mbkl.explain.fern_pairs import add_pair_effects
from mbkl.maps.categories import CategoryMaps
from mbkl.maps.families import Maps
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.maps.stumps import StumpMaps
from mbkl.predictor import TablePredictor

Array = NDArray[np.float64]
Features = tuple[int, ...]


@singledispatch
def joined_features(maps: Maps) -> list[Features]:
    """Return the features that each table of a family joins."""
    raise TypeError(f"Features that {type(maps).__name__} join are unknown.")


@joined_features.register
def _(maps: StumpMaps | CategoryMaps) -> list[Features]:
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
        _add_pairs(maps, total, tables, position, *columns)
    strengths = np.abs(total + total.transpose(1, 0, 2, 3)).mean(axis=(2, 3))
    np.fill_diagonal(strengths, 0.0)
    return strengths


@singledispatch
def _add_pairs(maps: Maps, total: Array, tables: Array, position, columns, others) -> None:
    """Add what pairs of features tell together in a family; see `add_pair_effects`."""
    raise TypeError(f"Pairs of features of {type(maps).__name__} are unknown.")


@_add_pairs.register
def _(maps: FernMaps, total: Array, tables: Array, position, columns, others) -> None:
    games = FernTables(maps, tables)
    for block in games.blocks():
        add_pair_effects(total, games, block, position, columns, others)


@_add_pairs.register
def _(maps: StumpMaps | CategoryMaps | ProjectionMaps, *_) -> None:
    """Single features have no pairs, and those of projections are left out."""

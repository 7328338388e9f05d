"""Features that tables join: what each set of them adds, and how much pairs interact."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.explain.attribution import centred_entries
from mbkl.explain.fern_games import FernTables, columns_of, partial_dependences, same_fern
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
    place = position[tables.features[starts]]
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

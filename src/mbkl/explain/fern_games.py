"""Ferns as games: what each feature of a fern adds to its table entry.

The players of a fern are the features it joins. The value of a coalition, for a row x
and a row z of the background, is the table entry of a row that has the features of the
coalition from x and all others from z. Players in whose thresholds x and z agree add
nothing, so only the few others have to be looked at; and many rows give the same
answers to all stumps of a fern, so only different ones have to be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.twins import as_float32, level_cells
from mbkl.maps.categories import level_edges
from mbkl.maps.ferns import FernMaps

Array = NDArray[np.float64]
Numbers = NDArray[np.uint64]

_FERNS_AT_ONCE = 64


@dataclass(frozen=True)
class FernTables:
    """Ferns with their tables, and their stumps sorted by fern, feature and threshold.

    The outcomes of a fern's stumps are the digits of a number. Those of one feature
    are a *piece* of it, and the sum of the pieces is the number. The different pieces that
    rows can have are the *steps* of a feature: with n thresholds n + 1, from below all to above
    all; of a category those that its levels have. Tables are of shape (n_cells, n_columns).
    """

    ferns: FernMaps
    tables: Array

    @cached_property
    def fern(self) -> NDArray[np.intp]:
        """Fern of each stump; sorting the stumps does not change it."""
        return np.repeat(np.arange(self.ferns.n_maps), np.diff(self.ferns.offsets))

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Stumps sorted by fern, feature and threshold."""
        return np.lexsort((self.ferns.thresholds, self.ferns.features, self.fern))

    @cached_property
    def features(self) -> NDArray[np.intp]:
        """Feature of each sorted stump."""
        return self.ferns.features[self.order]

    @cached_property
    def thresholds(self) -> Array:
        """Threshold of each sorted stump."""
        return self.ferns.thresholds[self.order]

    @cached_property
    def digits(self) -> Numbers:
        """Place of each sorted stump in the number of its fern."""
        place = self.ferns.offsets[1:][self.fern] - 1 - self.order
        return np.uint64(1) << place.astype(np.uint64)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """First of the sorted stumps of each piece."""
        fern, features = self.fern, self.features
        fresh = np.ones(fern.size, dtype=bool)
        fresh[1:] = (fern[1:] != fern[:-1]) | (features[1:] != features[:-1])
        return np.flatnonzero(fresh)

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Number of stumps of each piece."""
        return np.diff(np.append(self.starts, self.order.size))

    @cached_property
    def bounds(self) -> NDArray[np.intp]:
        """Pieces of fern g are bounds[g] to bounds[g + 1] - 1."""
        return np.searchsorted(self.fern[self.starts], np.arange(self.ferns.n_maps + 1))

    @cached_property
    def masks(self) -> Numbers:
        """All digits of each piece."""
        return np.bitwise_or.reduceat(self.digits, self.starts)

    @cached_property
    def players(self) -> list[NDArray[np.intp]]:
        """Features that each fern joins."""
        return np.split(self.features[self.starts], self.bounds[1:-1])[: self.ferns.n_maps]

    @cached_property
    def set_starts(self) -> NDArray[np.int64]:
        """Where the set of levels of each sorted stump begins; -1 for one with a threshold."""
        sets = self.ferns.sets
        return np.full(self.order.size, -1) if sets is None else sets.starts[self.order]

    @cached_property
    def n_cells(self) -> NDArray[np.int64]:
        """Cells of the category of each piece, missing and new levels included; 0 for numbers."""
        if self.ferns.sets is None:
            return np.zeros(self.starts.size, np.int64)
        n_levels = self.ferns.sets.n_levels[self.features[self.starts]]
        return np.where(n_levels > 0, n_levels + 2, 0)

    @cached_property
    def steps(self) -> Steps:
        """The steps of each piece."""
        sizes = np.where(self.n_cells > 0, 0, self.sizes + 1)
        categories = np.flatnonzero(self.n_cells)
        first_cell = _from_zero(self.n_cells)
        own_cells = np.repeat(categories, self.n_cells[categories])
        answers = self._level_answers(first_cell)
        # Levels that give the same digits are one step.
        order = np.lexsort((answers, own_cells))
        fresh = np.ones(order.size, dtype=bool)
        fresh[1:] = (np.diff(answers[order]) != 0) | (np.diff(own_cells) != 0)
        sizes += np.bincount(own_cells[fresh], minlength=sizes.size)
        first = _from_zero(sizes)
        is_of_category = np.repeat(self.n_cells > 0, sizes)
        number = np.cumsum(fresh) - 1
        cells = np.empty(order.size, np.intp)
        cells[order] = np.flatnonzero(is_of_category)[number] - first[own_cells]

        values = np.zeros(first[-1], np.uint64)
        values[is_of_category] = answers[order][fresh]
        climbed = np.cumsum(self.digits)
        climbed -= np.repeat((climbed - self.digits)[self.starts], self.sizes)
        is_climb = ~is_of_category
        is_climb[first[:-1]] = False  # below all thresholds
        values[is_climb] = climbed[np.repeat(self.n_cells == 0, self.sizes)]
        return Steps(values, first, cells, first_cell)

    def _level_answers(self, first_cell: NDArray[np.int64]) -> Numbers:
        """Return the digits that each cell of a category gives, those of all pieces in a row."""
        asking = np.flatnonzero(np.repeat(self.n_cells, self.sizes))
        piece = np.repeat(np.arange(self.starts.size), self.sizes)[asking]
        n_cells = self.n_cells[piece]
        cell = np.arange(n_cells.sum()) - np.repeat(np.cumsum(n_cells) - n_cells, n_cells)
        answers = np.zeros(first_cell[-1], np.uint64)
        if asking.size:
            asked = np.repeat(self.set_starts[asking], n_cells) + cell
            terms = self.ferns.sets.members[asked] * np.repeat(self.digits[asking], n_cells)  # type: ignore[union-attr]
            np.add.at(answers, np.repeat(first_cell[piece], n_cells) + cell, terms)
        return answers

    @cached_property
    def raw_offsets(self) -> NDArray[np.int64]:
        """First raw cell of each fern."""
        return self.ferns.raw_offsets

    @cached_property
    def hash(self) -> tuple[Numbers, Numbers]:
        """Factor and shift by which the number of each fern becomes that of a raw cell."""
        n_bits = np.log2(self.ferns.n_raw).astype(np.int64)
        hashed = np.diff(self.ferns.offsets) > n_bits
        shift = np.where(hashed, 64 - n_bits, 0).astype(np.uint64)
        return np.where(hashed, self.ferns.factors, np.uint64(1)), shift

    def cells(self, fern: NDArray[np.intp], numbers: Numbers) -> NDArray[np.intp]:
        """Return places in the tables, of the shape of numbers; ferns are broadcast."""
        factor, shift = self.hash
        raw = ((numbers * factor[fern]) >> shift[fern]).view(np.int64)
        return self.ferns.cell_offsets[fern] + self.ferns.numbers[self.raw_offsets[fern] + raw]

    def entries(self, fern: NDArray[np.intp], numbers: Numbers) -> Array:
        """Return table entries, of shape (*numbers.shape, n_columns)."""
        return self.tables[self.cells(fern, numbers)]

    def blocks(self) -> Iterator[range]:
        """Yield ferns to be handled together."""
        for start in range(0, self.ferns.n_maps, _FERNS_AT_ONCE):
            yield range(start, min(start + _FERNS_AT_ONCE, self.ferns.n_maps))

    def stumps(self, block: range) -> slice:
        """Return which of the sorted stumps are those of some ferns."""
        return slice(*self.ferns.offsets[[block.start, block.stop]].tolist())

    def outcomes(self, columns: NDArray[np.float32], block: range) -> NDArray[np.bool_]:
        """Return the outcomes of the sorted stumps of some ferns, (n_stumps, n_rows).

        Columns are of shape (n_features, n_rows), see `columns_of`.
        """
        stumps = self.stumps(block)
        yes = columns[self.features[stumps]] > self.thresholds[stumps, None].astype(np.float32)
        sets = self.ferns.sets
        if sets is not None:
            asking = stumps.start + np.flatnonzero(self.set_starts[stumps] >= 0)
            features = self.features[asking]
            cells = level_cells(columns[features], sets.n_levels[features, None])
            yes[asking - stumps.start] = sets.members[self.set_starts[asking, None] + cells]
        return yes

    def row_steps(self, columns: NDArray[np.float32], block: range) -> NDArray[np.intp]:
        """Return the step of each row in each piece of some ferns, (n_pieces, n_rows)."""
        pieces = slice(*self.bounds[[block.start, block.stop]].tolist())
        first = self.starts[pieces] - self.stumps(block).start
        found = np.add.reduceat(self.outcomes(columns, block), first, axis=0, dtype=np.intp)
        own = np.flatnonzero(self.n_cells[pieces])
        categories = pieces.start + own
        levels = columns[self.features[self.starts[categories]]]
        cells = level_cells(levels, self.n_cells[categories, None] - 2)
        found[own] = self.steps.cells[self.steps.first_cell[categories, None] + cells]
        return found

    def answers(self, columns: NDArray[np.float32], block: range) -> Answers:
        """Return the different answers that rows give to some ferns; see `outcomes`."""
        stumps = self.stumps(block)
        terms = self.outcomes(columns, block) * self.digits[stumps, None]
        first = self.ferns.offsets[block.start : block.stop] - stumps.start
        numbers = np.add.reduceat(terms, first, axis=0)
        order = np.argsort(numbers, axis=1)
        ordered = np.take_along_axis(numbers, order, axis=1)
        fresh = np.ones(numbers.shape, dtype=bool)
        fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        place = np.empty(numbers.shape, dtype=np.intp)
        np.put_along_axis(place, order, np.cumsum(fresh).reshape(fresh.shape) - 1, axis=1)
        fern = np.nonzero(fresh)[0]
        return Answers(
            fern, ordered[fresh], self.padded_masks(block)[fern], np.bincount(place.ravel()), place
        )

    def padded_masks(self, block: range) -> Numbers:
        """Return the masks of the pieces of each fern, zeros after the last."""
        width = np.diff(self.bounds)[block.start : block.stop]
        padded = np.zeros((len(block), width.max()), dtype=np.uint64)
        own = self.masks[self.bounds[block.start] : self.bounds[block.stop]]
        padded[np.arange(width.max()) < width[:, None]] = own
        return padded


@dataclass(frozen=True)
class Steps:
    """Different pieces that rows can have.

    Values are the digits of the steps of all pieces, one piece after the other, and first is the
    first step of each. Cells are the steps of the cells of categories, counted from the first of
    their piece, and first_cell the first cell of each piece; pieces of numbers have none.
    """

    values: Numbers
    first: NDArray[np.int64]
    cells: NDArray[np.intp]
    first_cell: NDArray[np.int64]


def _from_zero(sizes: NDArray) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def columns_of(X: NDArray) -> NDArray[np.float32]:
    """Return the columns of rows as they are compared with thresholds."""
    return np.ascontiguousarray(as_float32(X).T, dtype=np.float32)


@dataclass(frozen=True)
class Answers:
    """Different answers of rows to the stumps of some ferns.

    Of each answer there is the fern, counted from the first of the block and in order, the number,
    the masks of its pieces (zeros where a fern has fewer players), and how many rows give it; of
    each row its answer to each fern, place, of shape (n_ferns, n_rows).
    """

    fern: NDArray[np.intp]
    numbers: Numbers
    masks: Numbers
    count: NDArray[np.intp]
    place: NDArray[np.intp]

    @cached_property
    def pieces(self) -> Numbers:
        """Pieces of the numbers, of shape (n_answers, most_players)."""
        return self.numbers[:, None] & self.masks

    @property
    def shares(self) -> Array:
        """Share of the rows that give each."""
        return self.count / self.place.shape[1]


def same_fern(left, right, n_ferns: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all pairs of an entry on the left and one on the right with the same fern.

    Those on the right are sorted by fern.

    Examples
    --------
    >>> same_fern(np.array([0, 1]), np.array([0, 1, 1]), 2)
    (array([0, 1, 1]), array([0, 1, 2]))
    """
    n_right = np.bincount(right, minlength=n_ferns)
    first = np.cumsum(n_right) - n_right
    repeats = n_right[left]
    position = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return np.repeat(np.arange(left.size), repeats), np.repeat(first[left], repeats) + position


def partial_dependences(
    tables: FernTables, block: range, background: Answers, fern, masks: Numbers, values: Numbers
) -> Array:
    """Return mean table entries of the background with some digits replaced.

    Each question is a fern, counted from the first of the block, a mask that says which digits are
    replaced, and by what values. The means are of shape (n_questions, n_columns).
    """
    question, answer = same_fern(fern, background.fern, len(block))
    numbers = (background.numbers[answer] & ~masks[question]) | values[question]
    first, last = tables.ferns.cell_offsets[[block.start, block.stop]]
    bounds = np.searchsorted(question, np.arange(fern.size + 1))
    mean = sparse.csr_array(
        (
            background.shares[answer],
            tables.cells(block.start + fern[question], numbers) - first,
            bounds,
        ),
        shape=(fern.size, last - first),
    )
    return mean @ tables.tables[first:last]


def main_effects(
    tables: FernTables, background: NDArray[np.float32]
) -> tuple[NDArray[np.intp], Array, Array]:
    """Return by how much the mean table entry changes at thresholds, and from level to level.

    The mean is over rows of the background whose value of that feature is moved from just
    below the threshold to just above it: these are the jumps of the partial dependence. Returned
    are the feature, the threshold (those between the numbers of levels for a category, see
    `level_edges`) and the change of each jump.
    """
    steps = tables.steps
    piece = np.repeat(np.arange(tables.starts.size), np.diff(steps.first))
    fern = tables.fern[tables.starts[piece]]
    means = np.zeros((piece.size, tables.tables.shape[1]))
    for block in tables.blocks():
        own = slice(*np.searchsorted(fern, [block.start, block.stop]).tolist())
        questions = (fern[own] - block.start, tables.masks[piece[own]], steps.values[own])
        answers = tables.answers(background, block)
        means[own] = partial_dependences(tables, block, answers, *questions)
    is_number = tables.n_cells == 0
    inside = np.flatnonzero(np.diff(piece) == 0)
    inside = inside[is_number[piece[inside]]]
    stumps = np.repeat(is_number, tables.sizes)
    features, thresholds = [tables.features[stumps]], [tables.thresholds[stumps]]
    jumps = [means[inside + 1] - means[inside]]
    categories = np.flatnonzero(~is_number)
    n_cells = tables.n_cells[categories]
    category = np.repeat(categories, n_cells)
    by_cell = means[steps.first[category] + steps.cells]
    jumps.append(np.diff(by_cell, axis=0)[np.diff(category) == 0])
    n_edges = n_cells - 1
    features.append(np.repeat(tables.features[tables.starts[categories]], n_edges))
    # The edges of a category are the first of those of the one with the most levels.
    place = np.arange(n_edges.sum()) - np.repeat(np.cumsum(n_edges) - n_edges, n_edges)
    thresholds.append(level_edges(int(n_edges.max(initial=1)) - 1)[place])
    return np.concatenate(features), np.concatenate(thresholds), np.concatenate(jumps)

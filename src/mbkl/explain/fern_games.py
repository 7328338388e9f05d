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

from mbkl.explain.inside import FernMaps, as_float32

Array = NDArray[np.float64]
Numbers = NDArray[np.uint64]

_FERNS_AT_ONCE = 64


@dataclass(frozen=True)
class FernTables:
    """Ferns with their tables, and their stumps sorted by fern, feature and threshold.

    The outcomes of a fern's stumps are the digits of a number. Those of one feature
    are a *piece* of it, and the sum of the pieces is the number.

    Parameters
    ----------
    ferns : FernMaps
    tables : ndarray of shape (n_cells, n_columns)
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
    def levels(self) -> Numbers:
        """Piece of a row above each sorted stump and below the next of the same feature."""
        climbed = np.cumsum(self.digits)
        before = (climbed - self.digits)[self.starts]
        return climbed - np.repeat(before, self.sizes)

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
        """Return places in the tables, of the shape of numbers.

        Parameters
        ----------
        fern : ndarray that broadcasts with numbers
        numbers : ndarray of uint64
        """
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

        Parameters
        ----------
        columns : ndarray of shape (n_features, n_rows)
            See `columns_of`.
        block : range
        """
        stumps = self.stumps(block)
        return columns[self.features[stumps]] > self.thresholds[stumps, None].astype(np.float32)

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


def columns_of(X: NDArray) -> NDArray[np.float32]:
    """Return the columns of rows as they are compared with thresholds."""
    return np.ascontiguousarray(as_float32(X).T, dtype=np.float32)


@dataclass(frozen=True)
class Answers:
    """Different answers of rows to the stumps of some ferns.

    Parameters
    ----------
    fern : ndarray of shape (n_answers,)
        Fern of each, counted from the first of the block; they come in order.
    numbers : ndarray of shape (n_answers,)
    masks : ndarray of shape (n_answers, most_players)
        Digits of the pieces; zeros where a fern has fewer players.
    count : ndarray of shape (n_answers,)
        Number of rows that give each.
    place : ndarray of shape (n_ferns, n_rows)
        Answer of each row to each fern.
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

    Parameters
    ----------
    left, right : ndarray of shape (n_left,) and (n_right,)
        Fern of each entry; those on the right are sorted.
    n_ferns : int

    Examples
    --------
    >>> import numpy as np
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

    Parameters
    ----------
    tables : FernTables
    block : range
    background : Answers
        To the ferns of the block.
    fern : ndarray of shape (n_questions,)
        Counted from the first of the block.
    masks, values : ndarray of shape (n_questions,)
        Which digits are replaced, and by what.

    Returns
    -------
    means : ndarray of shape (n_questions, n_columns)
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


def main_effects(tables: FernTables, background: NDArray[np.float32]) -> Array:
    """Return by how much the mean table entry changes at each of the sorted stumps.

    The mean is over rows of the background whose value of that feature is moved from just
    below the threshold to just above it: these are the jumps of the partial dependence.

    Parameters
    ----------
    tables : FernTables
    background : ndarray of shape (n_features, n_rows)
        See `columns_of`.

    Returns
    -------
    jumps : ndarray of shape (n_stumps, n_columns)
    """
    masks = np.repeat(tables.masks, tables.sizes)
    jumps = np.zeros((tables.order.size, tables.tables.shape[1]))
    for block in tables.blocks():
        stumps = tables.stumps(block)
        questions = (tables.fern[stumps] - block.start, masks[stumps])
        answers, above = tables.answers(background, block), tables.levels[stumps]
        below = above - tables.digits[stumps]
        jumps[stumps] = partial_dependences(tables, block, answers, *questions, above)
        jumps[stumps] -= partial_dependences(tables, block, answers, *questions, below)
    return jumps

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

from mbkl.engine.numpy_engine import as_float32
from mbkl.maps.ferns import FernMaps

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

    @property
    def features(self) -> NDArray[np.intp]:
        """Feature of each sorted stump."""
        return self.ferns.features[self.order]

    @property
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
    def bounds(self) -> NDArray[np.intp]:
        """Pieces of fern g are bounds[g] to bounds[g + 1] - 1."""
        return np.searchsorted(self.fern[self.starts], np.arange(self.ferns.n_maps + 1))

    @cached_property
    def raw_offsets(self) -> NDArray[np.int64]:
        """First raw cell of each fern."""
        return self.ferns.raw_offsets

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

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of stumps of each piece."""
        return np.diff(np.append(self.starts, self.order.size))

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

    def pieces(self, X: NDArray) -> Numbers:
        """Return the pieces of the rows of X, of shape (n_rows, n_pieces)."""
        yes = as_float32(X[:, self.features]) > self.thresholds
        return np.add.reduceat(yes * self.digits, self.starts, axis=1)

    def blocks(self) -> Iterator[range]:
        """Yield ferns to be handled together."""
        for start in range(0, self.ferns.n_maps, _FERNS_AT_ONCE):
            yield range(start, min(start + _FERNS_AT_ONCE, self.ferns.n_maps))

    def answers(self, pieces: Numbers, block: range) -> Answers:
        """Return the different answers that rows give to some ferns."""
        width = np.diff(self.bounds)[block.start : block.stop]
        padded = np.zeros((len(pieces), len(block), width.max()), dtype=np.uint64)
        padded[:, np.arange(width.max()) < width[:, None]] = pieces[
            :, self.bounds[block.start] : self.bounds[block.stop]
        ]
        numbers = padded.sum(axis=2)
        order = np.argsort(numbers, axis=0, kind="stable")
        ordered = np.take_along_axis(numbers, order, axis=0)
        fresh = np.ones(numbers.shape, dtype=bool)
        fresh[1:] = ordered[1:] != ordered[:-1]
        # Answers are numbered fern by fern.
        number = np.cumsum(fresh.T).reshape(fresh.T.shape).T - 1
        place = np.empty_like(number)
        np.put_along_axis(place, order, number, axis=0)
        fern, row = np.nonzero(fresh.T)
        return Answers(fern, padded[order.T[fern, row], fern], np.bincount(place.ravel()), place)


@dataclass(frozen=True)
class Answers:
    """Different answers of rows to the stumps of some ferns.

    Parameters
    ----------
    fern : ndarray of shape (n_answers,)
        Fern of each, counted from the first of the block; they come in order.
    pieces : ndarray of shape (n_answers, most_players)
        Their pieces; zeros where a fern has fewer players.
    count : ndarray of shape (n_answers,)
        Number of rows that give each.
    place : ndarray of shape (n_rows, n_ferns)
        Answer of each row to each fern.
    """

    fern: NDArray[np.intp]
    pieces: Numbers
    count: NDArray[np.intp]
    place: NDArray[np.intp]


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


def main_effects(tables: FernTables, background: Numbers) -> Array:
    """Return by how much the mean table entry changes at each of the sorted stumps.

    The mean is over rows of the background whose value of that feature is moved from just
    below the threshold to just above it: these are the jumps of the partial dependence.

    Parameters
    ----------
    tables : FernTables
    background : ndarray of shape (n_rows, n_pieces)
        Pieces of the background.

    Returns
    -------
    jumps : ndarray of shape (n_stumps, n_columns)
    """
    piece = np.repeat(np.arange(tables.starts.size), tables.sizes)
    player = piece - tables.bounds[tables.fern]
    jumps = np.zeros((tables.order.size, tables.tables.shape[1]))
    for block in tables.blocks():
        answers = tables.answers(background, block)
        stumps = slice(*tables.ferns.offsets[[block.start, block.stop]])
        fern = tables.fern[stumps]
        stump, answer = same_fern(fern - block.start, answers.fern, len(block))
        pieces = answers.pieces[answer]
        others = pieces.sum(axis=1) - pieces[np.arange(stump.size), player[stumps][stump]]
        above = others + tables.levels[stumps][stump]
        change = tables.entries(fern[stump], above)
        change -= tables.entries(fern[stump], above - tables.digits[stumps][stump])
        change *= answers.count[answer, None] / len(background)
        starts = np.flatnonzero(np.diff(stump, prepend=-1))
        jumps[stumps] = np.add.reduceat(change, starts, axis=0)
    return jumps

"""Codes with labels and weights, and the operations on them that steps and searches need.

Rows are ordered by a hash of their codes: the result of a fit then depends neither on the order
in which they come nor on where they are stored. Equal rows (the same codes and class) are merged,
so that a row of weight two is the same as two rows. Few rows are sorted by their hashes; many stay
in the order in which they are stored, and `rank` holds their places in the order of the hashes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mbkl.cells import Operator
from mbkl.engine import limits
from mbkl.engine.arrays import block_of, is_fresh, to_fixed_point, to_host
from mbkl.engine.keys import GOLDEN, scramble
from mbkl.engine.rows import copies_of
from mbkl.maps.numbers import Numbers

Array = NDArray[np.float64]


@dataclass
class SharedGram:
    """The kernel matrix of some of the rows, as a block of that of all rows, computed once."""

    whole: Callable[[], Array]  # returns the matrix of all rows
    rows: NDArray[np.intp]  # (n_rows,): numbers of these rows among all rows

    def take(self, rows: NDArray[np.intp]) -> SharedGram:
        return SharedGram(self.whole, self.rows[rows])

    def matrix(self) -> Array:
        return self.beside(self)

    def beside(self, others: SharedGram) -> Array:
        """Return the kernel between these rows and others of the same matrix."""
        whole, both = self.whole(), (self.rows, others.rows)
        is_all = all(np.array_equal(rows, np.arange(len(whole))) for rows in both)
        return whole if is_all else block_of(whole, *both)


@dataclass
class LabelledRows:
    """Rows of known class, or with numbers."""

    operator: Operator
    y: NDArray[np.intp]  # (n_rows,): class of each row
    n_classes: int  # with numbers, how many levels they have
    weights: Array  # (n_rows,): positive
    seed: int  # of the hashes
    # (n_rows,): place of each row in the order of the hashes; None if rows are in that order
    rank: NDArray[np.intp] | None = None
    gram: SharedGram | None = None  # the kernel matrix of the rows, if it is shared
    numbers: Numbers | None = None  # the numbers whose levels y holds, if it holds no classes
    # (n_rows_before,): of merged rows, the merged row of each row before merging
    places: NDArray[np.intp] | None = None
    # (n_rows, 2): hashes that are already computed; see `row_hashes`
    known_hashes: NDArray[np.uint64] | None = None

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """Two independent hashes of each row's codes."""
        known = self.known_hashes
        return row_hashes(self.operator, self.seed) if known is None else known

    @property
    def hashed(self) -> LabelledRows:
        """The same rows with computed hashes, which subsets reuse."""
        return replace(self, known_hashes=self.hashes)

    @property
    def n_rows(self) -> int:
        return self.operator.n_rows

    def take(self, rows: NDArray[np.intp]) -> LabelledRows:
        """Return some of the rows."""
        return replace(
            self,
            operator=self.operator.take(rows),
            y=self.y[rows],
            weights=self.weights[rows],
            rank=None if self.rank is None else self.rank[rows],
            gram=None if self.gram is None else self.gram.take(rows),
            known_hashes=None if self.known_hashes is None else self.known_hashes[rows],
        )

    def keep_maps(self, kept: NDArray[np.bool_]) -> LabelledRows:
        """Return the rows with some of the maps."""
        is_whole = bool(kept[self.operator.is_map].all())
        known = self.known_hashes if is_whole else None
        return replace(self, operator=self.operator.keep_maps(kept), known_hashes=known)

    @cached_property
    def merged(self) -> LabelledRows:
        """The same rows with equal ones merged; few are collected in the order of their hashes."""
        integers, unit = to_fixed_point(self.weights[:, None])
        rows, mass, places = merge_equal_rows(self.hashes, self.y, integers[:, 0])
        weights = mass * unit
        if rows.size <= limits.FEW_ROWS_GRAM:
            few = self.hashed.take(rows)
            few = replace(few, operator=few.operator.collected(), weights=weights, rank=None)
            return replace(few, places=places)
        # Row rows[order[i]] is the i-th as stored, and the order[i]-th in the order of the hashes.
        order = np.argsort(rows)
        kept = self if rows.size == self.y.size else self.take(rows[order])
        places = np.argsort(order)[places]
        return replace(kept, weights=weights[order], rank=order, places=places)

    def first(self, n_rows: int) -> NDArray[np.intp]:
        """Return the numbers of the first rows in the order of the hashes: a random sample."""
        order = np.arange(self.n_rows) if self.rank is None else np.argsort(self.rank)
        return order[:n_rows]

    def some_here(self, n_rows: int) -> LabelledRows:
        """Return at most so many of the first rows, in memory and in the order of the hashes."""
        some = self.take(self.first(n_rows))
        return replace(some, operator=some.operator.collected(), rank=None)

    def folds(self, n_folds: int) -> NDArray[np.intp]:
        """Divide the rows of each class into folds of equal weight by a hash of their codes.

        Rows with numbers are divided without regard to y. Equal rows go to the same fold, so a
        weight of two is the same as two rows.
        """
        hashes = row_hashes(self.operator, self.seed + 1)[:, 0]
        integers, _ = to_fixed_point(self.weights[:, None])
        folds = np.empty(self.y.size, dtype=np.intp)
        kinds = self.y if self.numbers is None else np.zeros_like(self.y)
        for kind in range(int(kinds.max(initial=0)) + 1):
            rows = np.flatnonzero(kinds == kind)
            order = rows[np.argsort(hashes[rows], kind="stable")]
            up_to = np.cumsum(integers[order, 0])
            first_equal = np.searchsorted(hashes[order], hashes[order], side="left")
            before = (up_to - integers[order, 0])[first_equal]
            folds[order] = n_folds * before // up_to[-1:]
        return folds

    def copies(self, n_rows: int | None = None) -> Array:
        """Return how many equal samples each row, or each of the first ones, was merged from.

        Rows with numbers count as one sample, as growth holds out equal rows together.
        """
        if self.numbers is not None:
            return np.ones(self.n_rows)[:n_rows]
        return copies_of(self.hashes[:, 0].tolist(), self.weights)[:n_rows]

    def balanced(self, n_rows: int) -> LabelledRows:
        """Return at most so many rows, in the order of their hashes, with classes balanced.

        Of each class they are all rows or an equal quota.
        """
        rows = np.arange(self.y.size)
        if rows.size > n_rows:
            hashes = self.hashes[:, 0]
            kinds = self.y if self.numbers is None else np.zeros_like(self.y)
            quota = equal_quota(np.bincount(kinds), n_rows)
            rows = np.sort(smallest_of_kinds(hashes, kinds, quota))
        chosen = self if rows.size == self.y.size else self.take(rows)
        # Take rows as they are stored, which reads a file once, and sort them afterwards.
        return chosen if chosen.rank is None else chosen.take(np.argsort(chosen.rank))


def row_hashes(operator: Operator, seed: int) -> NDArray[np.uint64]:
    """Return two independent hashes of each row's codes, of shape (n_rows, 2)."""
    sums = operator.gather(operator.to_device(cell_numbers(operator, seed)))
    return hashes_of(to_host(sums), seed)


def cell_numbers(operator: Operator, seed: int) -> Array:
    """Return two random integers for each cell, whose sums over the groups of a row are exact.

    They are so small that float64 holds all sums.
    """
    bits = 52 - max(operator.n_groups, 1).bit_length()
    generator = np.random.Generator(np.random.Philox(seed))
    return generator.integers(2**bits, size=(operator.n_columns, 2)).astype(np.float64)


def hashes_of(sums: Array, seed: int) -> NDArray[np.uint64]:
    """Return hashes for the sums of the random numbers of each row's cells."""
    return mix(sums.astype(np.int64).view(np.uint64), seed)


def mix(values: NDArray[np.uint64], salt) -> NDArray[np.uint64]:
    """Return pseudo-random numbers from values, different ones for each salt."""
    with np.errstate(over="ignore"):
        times = np.uint64(1) + np.asarray(salt, np.uint64)
        return scramble(values + GOLDEN * times)


def merge_equal_rows(
    hashes: NDArray[np.uint64], y: NDArray[np.intp], weights: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.intp]]:
    """Return one row of each set of equal ones, the weights of the sets, and the set of each row.

    Sets are in the order of their hashes.

    >>> hashes = np.array([[7, 2], [5, 1], [7, 2]], dtype=np.uint64)
    >>> merge_equal_rows(hashes, np.zeros(3, int), np.array([1, 1, 2]))
    (array([1, 0]), array([1, 3]), array([1, 0, 1]))
    """
    low, high = hashes.T
    order = np.lexsort((y, low, high))
    fresh = is_fresh(low[order], high[order], y[order])
    places = np.empty(y.size, dtype=np.intp)
    places[order] = np.cumsum(fresh) - 1
    return order[fresh], np.add.reduceat(weights[order], np.flatnonzero(fresh)), places


def smallest_of_kinds(hashes, kinds: NDArray[np.intp], quota: int) -> NDArray[np.intp]:
    """Return the numbers of the rows of each kind with the smallest hashes."""
    chosen = [np.empty(0, np.intp)]
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        chosen.append(rows[np.argsort(hashes[rows], kind="stable")[:quota]])
    return np.concatenate(chosen)


def equal_quota(counts: NDArray[np.intp], budget: int) -> int:
    """Return the largest q for which sum(min(counts, q)) does not exceed the budget.

    >>> equal_quota(np.array([2, 10, 10]), 12)
    5
    """
    for position, count in enumerate(np.sort(counts)):
        share = budget // (counts.size - position)
        if count > share:
            return max(int(share), 1)
        budget -= int(count)
    return int(counts.max())

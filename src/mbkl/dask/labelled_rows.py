"""Labelled rows that stay on the workers, except for bounded numbers of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mbkl.cells import Operator
from mbkl.dask.crew import Crew
from mbkl.dask.rows import RemoteRows, RowSet
from mbkl.dask.store import divide_merged, first_hashes, one_for_all, own_order, smallest_hashes
from mbkl.engine import limits
from mbkl.engine.arrays import to_fixed_point
from mbkl.learn.labelled_rows import (
    LabelledRows,
    SharedGram,
    cell_numbers,
    equal_quota,
    hashes_of,
    smallest_of_kinds,
)
from mbkl.maps.numbers import Numbers


@dataclass
class RemoteLabelledRows:
    """What `LabelledRows` are, on the workers: the same operations, and the same bits."""

    crew: Crew
    operator: Operator
    y: RemoteRows
    n_classes: int
    weights: RemoteRows
    seed: int
    # Random numbers of the cells of each row, added up; from these come its hashes.
    sums: RemoteRows | None = None
    gram: SharedGram | None = None
    numbers: Numbers | None = None  # what y stands for, where it is no class

    # Which rows they were before equal ones were merged is known here alone.
    places: ClassVar[None] = None

    @property
    def n_rows(self) -> int:
        return self.operator.n_rows

    @cached_property
    def merged(self) -> RemoteLabelledRows | LabelledRows:
        """The same rows with equal ones merged; few are collected here."""
        sums: Any = self.operator.gather(cell_numbers(self.operator, self.seed))
        integers, unit = to_fixed_point(self.weights[:, None])
        arrays = (sums, self.seed, self.y, integers)
        found = self.crew.exchange("merge-rows", divide_merged, one_for_all, *arrays)
        numbers, mass_of_each, n_rows = found
        kept = RowSet(numbers, n_rows)
        mass = RemoteRows(self.crew, mass_of_each, np.empty(0, np.int64), n_rows)
        merged = replace(self, weights=mass * unit[0], sums=sums)
        if kept.size < self.n_rows:
            merged.operator, merged.y = self.operator.take(kept), self.y[kept]
            merged.sums = sums[kept]
        return merged if n_rows > limits.FEW_ROWS_GRAM else merged.some_here(n_rows)

    def collected(self, rows: RowSet) -> LabelledRows:
        """Return some of the rows, here."""
        operator, y, weights = self.operator.take(rows), self.y[rows], self.weights[rows]
        return LabelledRows(operator, y, self.n_classes, weights, self.seed, numbers=self.numbers)

    def take(self, rows: RowSet) -> RemoteLabelledRows:
        """Return some of the rows, where they are."""
        return replace(
            self,
            operator=self.operator.take(rows),
            y=self.y[rows],
            weights=self.weights[rows],
            sums=None if self.sums is None else self.sums[rows],
        )

    def folds(self, n_folds: int) -> RemoteRows:
        """Divide rows with numbers into folds of equal weight by a hash of their codes."""
        seed = self.seed + 1
        sums: Any = self.operator.gather(cell_numbers(self.operator, seed))
        hashes = sums.apply(hashes_of, sums, seed)[:, 0]
        integers = to_fixed_point(self.weights[:, None])[0][:, 0]
        total = int(integers[:, None].sum(axis=0)[0])
        folds = self.y * 0
        for fold in range(1, n_folds):
            # Rows of a fold have so much weight before them.
            wanted = -(-fold * total // n_folds)
            folds = folds + (hashes >= _first_above(hashes, integers, wanted))
        return folds

    def first(self, n_rows: int) -> RowSet:
        """Return the first rows in the order of their own."""
        answers = self.crew.call(first_hashes, self.sums, self.seed, self.y, n_rows)
        return self._row_set(answers, own_order(*_joined(answers))[:n_rows])

    def first_labels(self, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return classes and weights of the first rows in the order of their own; here."""
        rows = self.first(n_rows)
        return self.y[rows], self.weights[rows]

    def some_here(self, n_rows: int) -> LabelledRows:
        """Return at most so many of the first rows; here."""
        return self.collected(self.first(min(n_rows, self.n_rows)))

    def balanced(self, n_rows: int) -> LabelledRows:
        """Return at most so many rows, as many of each class as there are or is fair; here."""
        if self.n_rows <= n_rows:
            return self.some_here(n_rows)
        has_classes = self.numbers is None
        kinds = self.y * has_classes
        own_class = kinds[:, None] == np.arange(self.n_classes if has_classes else 1)
        quota = equal_quota(own_class.astype(np.int64).sum(axis=0), n_rows)
        answers = self.crew.call(smallest_hashes, self.sums, self.seed, self.y, kinds, quota)
        hashes, labels = _joined(answers)
        chosen = smallest_of_kinds(hashes[:, 0], labels * has_classes, quota)
        return self.collected(self._row_set(answers, chosen))

    def _row_set(self, answers: list, chosen: NDArray[np.intp]) -> RowSet:
        """Return rows of which the stores have told, to be collected in the order of their own.

        Each store answers with (hashes, y, rows); `chosen` are places among all of these.
        """
        chosen = np.sort(chosen)
        starts = np.cumsum([0] + [rows.size for _, _, rows in answers])
        places = np.split(chosen, np.searchsorted(chosen, starts[1:-1]))
        node = self.crew.keep_each(
            [
                rows[place - start]
                for (_, _, rows), place, start in zip(answers, places, starts[:-1], strict=True)
            ]
        )
        hashes, labels = _joined(answers)
        return RowSet(node, chosen.size, own_order(hashes[chosen], labels[chosen]))


def _joined(answers: list) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return the hashes and classes of which all stores have told."""
    hashes, labels, _ = zip(*answers, strict=True)
    return np.concatenate(hashes), np.concatenate(labels)


def _first_above(hashes: RemoteRows, integers: RemoteRows, wanted: int) -> np.uint64:
    """Return the smallest number below which rows have so much weight; a byte at a time."""
    low = 0
    for shift in range(56, -8, -8):
        bounds = low + (np.arange(256, dtype=np.uint64) << np.uint64(shift))
        below = hashes.totals_below(integers, bounds)
        # The last bound with less weight: what is wanted is above it, and below the next.
        low = int(bounds[max(int(np.searchsorted(below, wanted)) - 1, 0)])
    return np.uint64(low + 1)

"""Labelled rows that stay on the workers, except for bounded numbers of them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.dask.crew import Crew
from mbkl.dask.rows import RemoteRows, RowSet
from mbkl.dask.store import divide_merged, first_hashes, one_for_all, own_order, smallest_hashes
from mbkl.engine import limits
from mbkl.engine.arrays import to_fixed_point
from mbkl.learn.labelled_rows import (
    LabelledRows,
    cell_numbers,
    equal_quota,
    hashes_of,
    smallest_of_kinds,
)


@dataclass
class RemoteLabelledRows(LabelledRows):
    """Labelled rows on the workers: the same operations, and the same bits."""

    y: Any
    weights: Any
    # Random numbers of the cells of each row, added up; from these come its hashes.
    sums: RemoteRows | None = None

    @property
    def crew(self) -> Crew:
        return self.y.crew

    @cached_property
    def merged(self) -> LabelledRows:
        """The same rows with equal ones merged; few are collected here."""
        sums: Any = self.operator.gather(cell_numbers(self.operator, self.seed))
        integers, unit = to_fixed_point(self.weights[:, None])
        arrays = (sums, self.seed, self.y, integers)
        rows, mass, n_rows = self.crew.exchange("merge-rows", divide_merged, one_for_all, *arrays)
        merged = replace(self, sums=sums)
        if n_rows < self.n_rows:
            merged = merged.take(RowSet(rows, n_rows))
        merged.weights = RemoteRows(self.crew, mass, np.empty(0, np.int64), n_rows) * unit[0]
        return merged if n_rows > limits.FEW_ROWS_GRAM else merged.some_here(n_rows)

    def take(self, rows: Any) -> Any:
        """Return some of the rows: here, if their order is given, or where they are."""
        taken: Any = super().take(rows)
        if rows.order is None:
            return replace(taken, sums=None if self.sums is None else self.sums[rows])
        own = {field.name: getattr(taken, field.name) for field in fields(LabelledRows)}
        return LabelledRows(**own)

    def folds(self, n_folds: int) -> Any:
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

    def first(self, n_rows: int) -> Any:
        """Return the first rows in the order of their own."""
        answers = self.crew.call(first_hashes, self.sums, self.seed, self.y, n_rows)
        return self._row_set(answers, own_order(*_joined(answers))[:n_rows])

    def some_here(self, n_rows: int) -> LabelledRows:
        """Return at most so many of the first rows; here."""
        return self.take(self.first(min(n_rows, self.n_rows)))

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
        return self.take(self._row_set(answers, chosen))

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

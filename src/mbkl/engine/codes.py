"""The data as small integers: which cell of every group each row falls in.

A class of codes hides where they are stored. Those of this file are in memory; `files`, `device`
and `mbkl.dask` have others with the same methods. Solvers call

    gather(tables) -> scores, histogram(residuals) -> sums per cell, counts()

and, to reduce rows or cells, take(rows), coarsen(plan) and keep_groups(groups). Growing ferns call
fern_cells(...) and take_some(...), small problems dense(). A pass costs one look-up per group and
row, whatever the number of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.arrays import offsets_of, smallest_code_dtype
from mbkl.engine.twins import TWINS, Twins


@dataclass(frozen=True)
class Coarsening:
    """Renumbering of cells after some boundaries between cells are removed."""

    # Groups that keep two or more cells; the others are constant and are dropped.
    groups: NDArray[np.intp]
    new_codes: NDArray[np.int64]  # (n_cells,): new code, within its group, of each old cell
    offsets: NDArray[np.int64]  # (len(groups) + 1,): first new cell of each kept group

    @property
    def dtype(self) -> np.dtype:
        return code_dtype(self.offsets)


def code_dtype(offsets: NDArray[np.int64]) -> np.dtype:
    """Return the smallest code type for groups with these cell offsets."""
    return smallest_code_dtype(int(np.diff(offsets).max(initial=1)))


def coarsening(offsets: NDArray[np.int64], keep_boundary: NDArray[np.bool_]) -> Coarsening:
    """Plan to join neighbouring cells; `keep_boundary` marks the boundaries that stay.

    >>> coarsening(np.array([0, 3]), np.array([False, True])).new_codes
    array([0, 0, 1])
    """
    n_groups = offsets.size - 1
    is_first = np.zeros(int(offsets[-1]), dtype=bool)
    is_first[offsets[:-1]] = True
    steps = np.zeros(int(offsets[-1]), dtype=np.int64)
    steps[~is_first] = keep_boundary
    running = np.cumsum(steps)
    new_codes = running - np.repeat(running[offsets[:-1]], np.diff(offsets))
    n_cells = new_codes[offsets[1:] - 1] + 1 if n_groups else np.zeros(0, dtype=np.int64)
    groups = np.flatnonzero(n_cells > 1)
    return Coarsening(groups, new_codes, offsets_of(n_cells[groups]))


class Codes:
    """Base class of codes, wherever they are stored."""

    n_rows: Any
    offsets: Any  # (n_groups + 1,): cells of group g are numbered offsets[g] to offsets[g + 1] - 1
    loops: Any  # the loops that compute with codes in memory
    # Whether a pass over many columns takes hardly longer than over a single one.
    many_at_once = False

    @property
    def n_groups(self) -> int:
        return self.offsets.size - 1

    @property
    def n_cells(self) -> int:
        return int(self.offsets[-1])

    @property
    def cell_codes(self) -> NDArray[np.int64]:
        """The code of each cell: its number within its group."""
        return np.arange(self.n_cells) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    def gather(self, tables) -> Any:
        """Sum over groups the table entry of each row's cell.

        Tables of shape (n_cells, n_columns) give scores of shape (n_rows, n_columns).
        """
        raise NotImplementedError

    def histogram(self, residuals) -> Any:
        """Sum the residuals of the rows, (n_rows, n_columns), in each cell."""
        raise NotImplementedError

    def take(self, rows) -> Codes:
        """Return the codes of some rows, in the given order."""
        raise NotImplementedError

    def renumbered(self, groups, numbers: NDArray, offsets) -> Codes:
        """Return the codes of some groups, with their cells renumbered.

        `numbers` has the new code of each old cell within its group, `offsets` the first new cell
        of each kept group.
        """
        raise NotImplementedError

    def in_one_thread(self) -> Codes | None:
        """Return codes whose passes use one thread only; None where this is not possible."""
        return None

    def coarsen(self, plan: Coarsening) -> Codes:
        """Return the codes after boundaries between cells are removed."""
        return self.renumbered(plan.groups, plan.new_codes.astype(plan.dtype), plan.offsets)

    def keep_groups(self, groups: NDArray[np.intp]) -> Codes:
        """Return the codes of some groups."""
        codes = self.cell_codes.astype(code_dtype(self.offsets))
        return self.renumbered(groups, codes, self.kept_offsets(groups))

    def with_groups(self, sizes: Sequence[int], *values: Any) -> Codes:
        """Append groups of one-byte codes; `sizes` are their numbers of cells."""
        raise NotImplementedError

    def more_offsets(self, sizes: Sequence[int]) -> NDArray[np.int64]:
        """Return the cell offsets after groups with these numbers of cells are appended."""
        return offsets_of(np.append(np.diff(self.offsets), sizes))

    def dense(self) -> DenseCodes:
        """Return the codes in memory, with every entry stored."""
        raise NotImplementedError

    def counts(self) -> NDArray[np.int64]:
        """Return the number of rows in each cell."""
        return self.histogram(np.ones((self.n_rows, 1), dtype=np.int64))[:, 0]

    def kept_offsets(self, groups: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the cell offsets when only these groups are kept."""
        return offsets_of(np.diff(self.offsets)[groups])

    # For growing ferns, on codes of one byte --------------------------------------------------

    def take_some(self, groups: NDArray[np.intp], rows: NDArray[np.intp]) -> NDArray:
        """Return the codes of some rows in some groups, in memory."""
        raise NotImplementedError

    def fern_cells(self, groups, cuts, members, leading: NDArray, cells: NDArray) -> None:
        """Write the cell of each row in a fern; see `Twins.fern_cells`."""
        raise NotImplementedError

    # Arrays of rows and of cells, on the device of the codes ----------------------------------

    def place(self, array, dtype=None) -> Any:
        """Return an array on the device of the codes."""
        return array

    def fetch(self, array: Any) -> NDArray:
        """Return an array from the device of the codes as a NumPy array."""
        return array

    def row_dtype(self, n_columns: int) -> Any:
        """Return the data type of the scores of rows."""
        return np.float64


@dataclass(frozen=True)
class DenseCodes(Codes):
    """One code per group and row, in memory.

    >>> codes = DenseCodes(np.array([[0, 1, 1]], dtype=np.uint8), np.array([0, 2]))
    >>> codes.gather(np.array([[5.0], [7.0]])).ravel()
    array([5., 7., 7.])
    >>> codes.histogram(np.array([[1], [2], [3]])).ravel()
    array([1, 5])
    """

    # (n_groups, n_rows): group-major, so that a pass reads the codes of a group in sequence while
    # its small table or histogram stays in the nearest cache
    values: NDArray
    offsets: NDArray[np.int64]  # (n_groups + 1,)
    loops: Twins = field(default=TWINS, repr=False)

    @property
    def n_rows(self) -> int:
        return self.values.shape[1]

    def gather(self, tables):
        return self.loops.gather(self.values, self.offsets, tables)

    def histogram(self, residuals):
        return self.loops.histogram(self.values, self.offsets, residuals)

    def take(self, rows) -> DenseCodes:
        return replace(self, values=self.loops.take(self.values, rows))

    def renumbered(self, groups, numbers, offsets) -> DenseCodes:
        values = self.loops.renumber(self.values, self.offsets, groups, numbers)
        return replace(self, values=values, offsets=offsets)

    def in_one_thread(self) -> DenseCodes:
        return replace(self, loops=self.loops.alone)

    def keep_groups(self, groups) -> DenseCodes:
        return replace(self, values=self.values[groups], offsets=self.kept_offsets(groups))

    def take_some(self, groups, rows) -> NDArray:
        return self.loops.take_some(self.values, groups, rows)

    def fern_cells(self, groups, cuts, members, leading, cells) -> None:
        self.loops.fern_cells(self.values, groups, cuts, members, leading, cells)

    def with_groups(self, sizes, *values) -> DenseCodes:
        joined = np.concatenate([self.values, values])
        return replace(self, values=joined, offsets=self.more_offsets(sizes))

    def dense(self) -> DenseCodes:
        return self


@dataclass(frozen=True)
class SparseCodes(Codes):
    """Codes of a sparse matrix: only entries outside the cell of zero are stored."""

    # (n_rows, 1 + n_cells): a column of ones, then the indicators of the stored cells
    indicators: sparse.csr_array
    # (n_groups,): code of the value zero, which all rows without a stored entry have
    zero_codes: NDArray[np.int64]
    offsets: NDArray[np.int64]  # (n_groups + 1,)
    loops: Twins = field(default=TWINS, repr=False)

    @classmethod
    def of(cls, rows, cells, n_rows: int, zero_codes, offsets, loops: Twins) -> SparseCodes:
        """Return the codes with stored entries at these rows and cells."""
        shape = (n_rows, 1 + int(offsets[-1]))
        all_rows = np.concatenate([np.arange(n_rows), rows])
        columns = np.append(np.zeros(n_rows, int), cells + 1)
        ones = np.ones(all_rows.size, dtype=np.int8)
        indicators = sparse.csr_array((ones, (all_rows, columns)), shape=shape)
        return cls(indicators, zero_codes, offsets, loops)

    @property
    def n_rows(self) -> int:
        return self.indicators.shape[0]

    @property
    def zero_cells(self) -> NDArray[np.int64]:
        """Cell of the value zero in each group."""
        return self.offsets[:-1] + self.zero_codes

    @property
    def entries(self) -> tuple[NDArray, NDArray, NDArray]:
        """Row, cell and group of each stored entry."""
        rows, columns = self.indicators.nonzero()
        rows, cells = rows[columns > 0], columns[columns > 0] - 1
        return rows, cells, np.searchsorted(self.offsets, cells, side="right") - 1

    def gather(self, tables):
        zeros = tables[self.zero_cells]
        # A row of zeros has this score; each stored entry changes it, in the order of the groups.
        score_of_zero = np.cumsum(np.vstack([np.zeros(tables.shape[1]), zeros]), axis=0)[-1:]
        changes = tables - np.repeat(zeros, np.diff(self.offsets), axis=0)
        return self.indicators @ np.concatenate([score_of_zero, changes])

    def histogram(self, residuals):
        totals, sums = np.split(self.indicators.T @ residuals, [1])
        if self.n_groups:
            sums[self.zero_cells] = totals - np.add.reduceat(sums, self.offsets[:-1], axis=0)
        return sums

    def take(self, rows) -> SparseCodes:
        return replace(self, indicators=self.indicators[rows])

    def coarsen(self, plan: Coarsening) -> SparseCodes:
        rows, cells, groups = self.entries
        zeros = plan.new_codes[self.zero_cells]
        first = np.full(self.n_groups, -1)
        first[plan.groups] = plan.offsets[:-1]
        codes = plan.new_codes[cells]
        kept = (first[groups] >= 0) & (codes != zeros[groups])
        cells = (first[groups] + codes)[kept]
        zero_codes = zeros[plan.groups]
        return SparseCodes.of(rows[kept], cells, self.n_rows, zero_codes, plan.offsets, self.loops)

    def keep_groups(self, groups) -> DenseCodes:
        return self.dense().keep_groups(groups)

    def dense(self) -> DenseCodes:
        values = np.empty((self.n_groups, self.n_rows), dtype=code_dtype(self.offsets))
        values[:] = self.zero_codes[:, None]
        rows, cells, groups = self.entries
        values[groups, rows] = cells - self.offsets[groups]
        return DenseCodes(values, self.offsets, self.loops)

"""Several small groups as one: fewer, longer look-ups for the same pass.

A pass costs one look-up per group and row, whatever the number of cells, as long
as tables and histograms stay in the first-level cache. Groups of 19 cells each
can be looked up two at a time in a table of 361 cells, groups of two cells ten at
a time. The tables of a bundle are sums of those of its members, and a member's
histogram is a sum over the bundle's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import offsets_of, smallest_code_dtype
from mbkl.engine.limits import FEWEST_ROWS_A_CELL, MOST_CELLS_OF_A_BUNDLE


@dataclass(frozen=True)
class Bundling:
    """Which groups are joined."""

    # (n_bundles + 1,): groups of bundle b are members[b] to members[b + 1] - 1
    members: NDArray[np.int64]
    offsets: NDArray[np.int64]  # (n_groups + 1,): first cell of each group

    @cached_property
    def cell_offsets(self) -> NDArray[np.int64]:
        """First cell of each bundle."""
        n_cells = np.multiply.reduceat(np.diff(self.offsets), self.members[:-1])
        return offsets_of(n_cells)

    @property
    def n_bundles(self) -> int:
        return self.members.size - 1

    @property
    def dtype(self) -> np.dtype:
        return smallest_code_dtype(int(np.diff(self.cell_offsets).max()))

    def join(self, values: NDArray) -> NDArray:
        """Return the codes of the bundles for those of the groups."""
        sizes = np.diff(self.offsets)
        joined = np.empty((self.n_bundles, values.shape[1]), self.dtype)
        for position, target in enumerate(joined):
            target[:] = values[self.members[position]]
            for group in range(self.members[position] + 1, self.members[position + 1]):
                target *= joined.dtype.type(sizes[group])
                target += values[group]
        return joined

    def expand_tables(self, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the tables of the bundles: sums over all combinations of members' cells."""
        expanded = []
        for first, last in pairwise(self.members):
            table = tables[self.offsets[first] : self.offsets[first + 1]]
            for group in range(first + 1, last):
                member = tables[self.offsets[group] : self.offsets[group + 1]]
                table = (table[:, None] + member).reshape(-1, tables.shape[1])
            expanded.append(table)
        return np.concatenate(expanded)

    def fold_sums(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the histograms of the members from those of the bundles."""
        folded = np.empty((int(self.offsets[-1]), sums.shape[1]), dtype=np.int64)
        sizes = np.diff(self.offsets)
        for position, (first, last) in enumerate(pairwise(self.members)):
            block = sums[self.cell_offsets[position] : self.cell_offsets[position + 1]]
            block = block.reshape(*sizes[first:last], -1)
            for group in range(first, last):
                others = tuple(axis for axis in range(last - first) if axis != group - first)
                folded[self.offsets[group] : self.offsets[group + 1]] = block.sum(axis=others)
        return folded


def bundling(offsets: NDArray[np.int64], n_rows: int) -> Bundling | None:
    """Plan which groups to join for so many rows; None where it would save little.

    >>> bundling(2 * np.arange(21), 200).members
    array([ 0,  4,  8, 12, 16, 20])
    """
    # Expanding and folding tables touches every cell of a bundle once a pass;
    # with this many rows that is little beside the look-ups.
    limit = min(MOST_CELLS_OF_A_BUNDLE, n_rows // FEWEST_ROWS_A_CELL)
    sizes = np.diff(offsets)
    members, product = [0], 1
    for group, size in enumerate(sizes.tolist()):
        if group > members[-1] and product * size > limit:
            members.append(group)
            product = 1
        product *= size
    members.append(sizes.size)
    if len(members) - 1 > 0.75 * sizes.size:
        return None
    return Bundling(np.array(members, dtype=np.int64), offsets)

"""Several small groups as one: fewer, longer look-ups for the same pass.

A pass costs one look-up per group and row, whatever the number of cells, as long
as tables and histograms stay in the first-level cache. Groups of 19 cells each
can be looked up two at a time in a table of 361 cells, groups of two cells ten at
a time. The tables of a bundle are sums of those of its members, and a member's
histogram is a sum over the bundle's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.codes import DenseCodes, smallest_code_dtype

# 8 KiB of table: leaves room for scores and codes in the first-level cache.
_MOST_CELLS = 1024


@dataclass(frozen=True)
class BundledCodes:
    """Codes of bundles of neighbouring groups.

    Parameters
    ----------
    bundles : DenseCodes
        One code per bundle and row; the first member is the leading digit.
    members : ndarray of shape (n_bundles + 1,)
        Groups of bundle b are members[b] to members[b + 1] - 1.
    offsets : ndarray of shape (n_groups + 1,)
        First cell of each group.
    """

    bundles: DenseCodes
    members: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        return self.bundles.n_rows

    @property
    def n_groups(self) -> int:
        return self.offsets.size - 1

    @property
    def n_cells(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_stored(self) -> int:
        return self.bundles.n_stored


def bundle(codes: DenseCodes) -> BundledCodes | DenseCodes:
    """Join neighbouring groups while their tables stay small; no change if none can be.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.tile(np.array([[0, 1]], dtype=np.uint8), (20, 100))
    >>> bundle(DenseCodes(values, 2 * np.arange(21))).bundles.values.shape
    (5, 200)
    """
    # Expanding and folding tables touches every cell of a bundle once a pass;
    # with this many rows that is little beside the look-ups.
    limit = min(_MOST_CELLS, codes.n_rows // 8)
    sizes = np.diff(codes.offsets)
    members, product = [0], 1
    for group, size in enumerate(sizes.tolist()):
        if group > members[-1] and product * size > limit:
            members.append(group)
            product = 1
        product *= size
    members.append(codes.n_groups)
    if len(members) - 1 > 0.75 * codes.n_groups:
        return codes
    bounds = np.array(members, dtype=np.int64)
    n_cells = np.multiply.reduceat(sizes, bounds[:-1])
    offsets = np.concatenate([[0], np.cumsum(n_cells)]).astype(np.int64)
    values = np.empty((bounds.size - 1, codes.n_rows), smallest_code_dtype(int(n_cells.max())))
    for position in range(bounds.size - 1):
        target = values[position]
        target[:] = codes.values[bounds[position]]
        for group in range(bounds[position] + 1, bounds[position + 1]):
            target *= values.dtype.type(sizes[group])
            target += codes.values[group]
    return BundledCodes(DenseCodes(values, offsets), bounds, codes.offsets)


def expand_tables(codes: BundledCodes, tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the tables of the bundles: sums over all combinations of members' cells."""
    parts = []
    for first, last in zip(codes.members[:-1], codes.members[1:], strict=True):
        table = tables[codes.offsets[first] : codes.offsets[first + 1]]
        for group in range(first + 1, last):
            member = tables[codes.offsets[group] : codes.offsets[group + 1]]
            table = (table[:, None] + member).reshape(-1, tables.shape[1])
        parts.append(table)
    return np.concatenate(parts)


def fold_sums(codes: BundledCodes, sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the histograms of the members from those of the bundles."""
    folded = np.empty((codes.n_cells, sums.shape[1]), dtype=np.int64)
    sizes = np.diff(codes.offsets)
    for position, (first, last) in enumerate(
        zip(codes.members[:-1], codes.members[1:], strict=True)
    ):
        block = sums[codes.bundles.offsets[position] : codes.bundles.offsets[position + 1]]
        block = block.reshape(*sizes[first:last], -1)
        for group in range(first, last):
            others = tuple(axis for axis in range(last - first) if axis != group - first)
            folded[codes.offsets[group] : codes.offsets[group + 1]] = block.sum(axis=others)
    return folded

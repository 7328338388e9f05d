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


@dataclass(frozen=True)
class Bundling:
    """Which groups are joined.

    Parameters
    ----------
    members, offsets : ndarray
        See `BundledCodes`.
    """

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def cell_offsets(self) -> NDArray[np.int64]:
        """First cell of each bundle."""
        n_cells = np.multiply.reduceat(np.diff(self.offsets), self.members[:-1])
        return np.concatenate([[0], np.cumsum(n_cells)]).astype(np.int64)

    @property
    def dtype(self) -> np.dtype:
        return smallest_code_dtype(int(np.diff(self.cell_offsets).max()))

    def join(self, values: NDArray) -> NDArray:
        """Return the codes of the bundles for those of the groups."""
        sizes = np.diff(self.offsets)
        joined = np.empty((self.members.size - 1, values.shape[1]), self.dtype)
        for position, target in enumerate(joined):
            target[:] = values[self.members[position]]
            for group in range(self.members[position] + 1, self.members[position + 1]):
                target *= joined.dtype.type(sizes[group])
                target += values[group]
        return joined

    def codes(self, joined) -> BundledCodes:
        """Return what the joined codes stand for."""
        return BundledCodes(DenseCodes(joined, self.cell_offsets), self.members, self.offsets)


def bundle(codes: DenseCodes) -> BundledCodes | DenseCodes:
    """Join neighbouring groups while their tables stay small; no change if none can be.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.tile(np.array([[0, 1]], dtype=np.uint8), (20, 100))
    >>> bundle(DenseCodes(values, 2 * np.arange(21))).bundles.values.shape
    (5, 200)
    """
    plan = bundling(codes.offsets, codes.n_rows)
    return codes if plan is None else plan.codes(plan.join(codes.values))


def bundling(offsets: NDArray[np.int64], n_rows: int) -> Bundling | None:
    """Plan which groups to join for so many rows; None where it would save little."""
    # Expanding and folding tables touches every cell of a bundle once a pass;
    # with this many rows that is little beside the look-ups.
    limit = min(_MOST_CELLS, n_rows // 8)
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

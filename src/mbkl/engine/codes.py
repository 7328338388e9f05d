"""The data as small integers: which cell of every group each row falls in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def smallest_code_dtype(n_cells: int) -> np.dtype:
    """Return the smallest unsigned type that can number `n_cells` cells.

    Examples
    --------
    >>> smallest_code_dtype(256), smallest_code_dtype(257)
    (dtype('uint8'), dtype('uint16'))
    """
    for dtype in (np.uint8, np.uint16):
        if n_cells <= np.iinfo(dtype).max + 1:
            return np.dtype(dtype)
    return np.dtype(np.uint32)


@dataclass(frozen=True)
class DenseCodes:
    """One code per group and row.

    Parameters
    ----------
    values : ndarray of shape (n_groups, n_rows)
        Group-major, so that a pass reads the codes of a group in sequence while
        its small table or histogram stays in the nearest cache.
    offsets : ndarray of shape (n_groups + 1,)
        Cells of group g are numbered offsets[g] to offsets[g + 1] - 1.
    """

    values: NDArray
    offsets: NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        return self.values.shape[1]

    @property
    def n_groups(self) -> int:
        return self.values.shape[0]

    @property
    def n_cells(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_stored(self) -> int:
        """How many codes one pass has to read."""
        return self.values.size


@dataclass(frozen=True)
class SparseCodes:
    """Codes of a sparse matrix: only entries outside the cell of zero are stored.

    Parameters
    ----------
    indptr : ndarray of shape (n_groups + 1,)
        Entries of group g are at indptr[g] to indptr[g + 1] - 1.
    rows : ndarray of shape (n_entries,)
        Row of each entry, increasing within a group.
    values : ndarray of shape (n_entries,)
        Code of each entry.
    zero_codes : ndarray of shape (n_groups,)
        Code of the value zero in each group, that of every row not stored.
    offsets : ndarray of shape (n_groups + 1,)
        Cells of group g are numbered offsets[g] to offsets[g + 1] - 1.
    n_rows : int
        Number of rows.
    """

    indptr: NDArray[np.int64]
    rows: NDArray[np.int32]
    values: NDArray
    zero_codes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    n_rows: int

    @property
    def n_groups(self) -> int:
        return self.zero_codes.size

    @property
    def n_cells(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_stored(self) -> int:
        return self.values.size

    @property
    def zero_cells(self) -> NDArray[np.int64]:
        """Cell of the value zero in each group."""
        return self.offsets[:-1] + self.zero_codes

    @property
    def groups(self) -> NDArray[np.intp]:
        """Group of each entry."""
        return np.repeat(np.arange(self.n_groups), np.diff(self.indptr))


Codes = DenseCodes | SparseCodes


def densify(codes: Codes) -> DenseCodes:
    """Return the codes with every entry stored."""
    if isinstance(codes, DenseCodes):
        return codes
    values = np.empty((codes.n_groups, codes.n_rows), dtype=codes.values.dtype)
    values[:] = codes.zero_codes[:, None]
    values[codes.groups, codes.rows] = codes.values
    return DenseCodes(values, codes.offsets)


def offsets_of(codes: Codes, groups: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the first cell of each of some groups, when the others are gone."""
    sizes = np.diff(codes.offsets)[groups]
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@dataclass(frozen=True)
class Coarsening:
    """Renumbering of cells after some boundaries between cells are removed.

    Parameters
    ----------
    groups : ndarray
        Groups that still have two or more cells; the others are constant and go.
    new_codes : ndarray of shape (n_cells,)
        New code, within its group, of each old cell.
    offsets : ndarray of shape (len(groups) + 1,)
        First new cell of each kept group.
    """

    groups: NDArray[np.intp]
    new_codes: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def dtype(self) -> np.dtype:
        return smallest_code_dtype(int(np.diff(self.offsets).max(initial=1)))


def coarsening(offsets: NDArray[np.int64], keep_boundary: NDArray[np.bool_]) -> Coarsening:
    """Plan the removal of cell boundaries.

    Parameters
    ----------
    offsets : ndarray of shape (n_groups + 1,)
        First cell of each group.
    keep_boundary : ndarray of shape (n_cells - n_groups,)
        Whether the boundary between each two neighbouring cells of a group stays.

    Examples
    --------
    >>> import numpy as np
    >>> coarsening(np.array([0, 3]), np.array([False, True])).new_codes
    array([0, 0, 1])
    """
    n_groups = offsets.size - 1
    is_first = np.zeros(int(offsets[-1]), dtype=bool)
    is_first[offsets[:-1]] = True
    steps = np.zeros(int(offsets[-1]), dtype=np.int64)
    steps[~is_first] = keep_boundary
    climbed = np.cumsum(steps)
    new_codes = climbed - np.repeat(climbed[offsets[:-1]], np.diff(offsets))
    n_cells = new_codes[offsets[1:] - 1] + 1 if n_groups else np.zeros(0, dtype=np.int64)
    groups = np.flatnonzero(n_cells > 1)
    new_offsets = np.concatenate([[0], np.cumsum(n_cells[groups])]).astype(np.int64)
    return Coarsening(groups, new_codes, new_offsets)

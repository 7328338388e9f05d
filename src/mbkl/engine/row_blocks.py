"""Rows that are read block by block: of an array, or of a file larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_VALUES_AT_ONCE = 1_000_000


class BlockRows(Protocol):
    """A matrix whose rows can only be read from the first to the last."""

    shape: tuple[int, int]
    dtype: np.dtype

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        """Yield all rows in order, `step` at a time, with their numbers."""


class SomeRows:
    """Some of the rows of a matrix, picked where they are read.

    Parameters
    ----------
    X : ndarray or BlockRows
    rows : ndarray of shape (n_rows,)
        Increasing.

    Examples
    --------
    >>> import numpy as np
    >>> part = SomeRows(np.arange(10).reshape(5, 2), np.array([1, 4]))
    >>> [block.tolist() for _, block in part.blocks(5)]
    [[[2, 3], [8, 9]]]
    """

    def __init__(self, X, rows: NDArray[np.intp]) -> None:
        self._X, self._rows = X, rows
        self.shape = (rows.size, X.shape[1])
        self.dtype = X.dtype

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        """Yield all rows in order, `step` at a time, with their numbers."""
        yield from blocks_of(self._pieces(step), step)

    def _pieces(self, step: int) -> Iterator[NDArray]:
        for all_rows, block in row_blocks(self._X, step):
            first, last = np.searchsorted(self._rows, [all_rows.start, all_rows.stop])
            if first < last:
                yield block[self._rows[first:last] - all_rows.start]


class FloatRows:
    """An array of integers, or of other numbers, turned to floating point where it is read.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> [block.dtype for _, block in FloatRows(np.ones((3, 1), np.uint8)).blocks(3)]
    [dtype('float32')]
    """

    def __init__(self, X: NDArray) -> None:
        self._X, self.shape = X, X.shape
        self.dtype = np.dtype(np.float32 if np.can_cast(X.dtype, np.float32) else np.float64)

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        """Yield all rows in order, `step` at a time, with their numbers."""
        for rows, block in row_blocks(self._X, step):
            values = block.astype(self.dtype)
            if np.isinf(values).any():
                raise ValueError("X has infinite values; remove or clip them.")
            yield rows, values


def blocks_of(pieces: Iterable[NDArray], step: int) -> Iterator[tuple[slice, NDArray]]:
    """Cut pieces of any lengths anew, into blocks of `step` rows.

    Examples
    --------
    >>> import numpy as np
    >>> pieces = [np.zeros((2, 1)), np.zeros((5, 1))]
    >>> [rows for rows, _ in blocks_of(pieces, 3)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 7, None)]
    """
    start, waiting, n_waiting = 0, [], 0
    for piece in pieces:
        waiting.append(piece)
        n_waiting += len(piece)
        while n_waiting >= step:
            joined = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
            yield slice(start, start + step), joined[:step]
            start, waiting, n_waiting = start + step, [joined[step:]], n_waiting - step
    if n_waiting:
        yield slice(start, start + n_waiting), np.concatenate(waiting)


def row_blocks(X, step: int) -> Iterator[tuple[slice, NDArray]]:
    """Yield the rows of a matrix in blocks, with their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> [rows for rows, _ in row_blocks(np.zeros((5, 1)), 3)]
    [slice(0, 3, None), slice(3, 5, None)]
    """
    if hasattr(X, "blocks"):
        yield from X.blocks(step)
        return
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        yield rows, X[rows]


def rows_at_once(n_features: int) -> int:
    """Return how many rows of a file to read at a time: a few megabytes.

    Examples
    --------
    >>> rows_at_once(10), rows_at_once(10_000_000)
    (100000, 1)
    """
    return max(1, _VALUES_AT_ONCE // max(n_features, 1))


def in_memory(X):
    """Return a matrix as an array; a sparse one as it is.

    Examples
    --------
    >>> import numpy as np
    >>> in_memory(SomeRows(np.eye(3), np.array([0, 2]))).shape
    (2, 3)
    """
    return take_rows(X, np.arange(X.shape[0])) if hasattr(X, "blocks") else X


def take_rows(X, rows: NDArray[np.intp]) -> NDArray:
    """Return some rows of a matrix, in the given order.

    Examples
    --------
    >>> import numpy as np
    >>> take_rows(SomeRows(np.arange(4)[:, None], np.arange(4)), np.array([3, 1])).ravel()
    array([3, 1])
    """
    if not hasattr(X, "blocks"):
        return X[rows]
    order = np.argsort(rows, kind="stable")
    taken = np.empty((rows.size, X.shape[1]), dtype=X.dtype)
    for own, block in SomeRows(X, rows[order]).blocks(rows_at_once(X.shape[1])):
        taken[order[own]] = block
    return taken

"""A part of the rows that does not depend on their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.fixed_point import to_fixed_point
from mbkl.engine.hashing import scramble
from mbkl.engine.row_blocks import row_blocks, rows_at_once, take_rows

# Differences of two values: so many take about a second.
_DIFFERENCES = 4e8


@dataclass(frozen=True)
class Sample:
    """Different rows of X, each with the weight of all rows equal to it.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,)
    n_different : int
        Number of different rows among which these were drawn.
    """

    X: NDArray[np.floating]
    y: NDArray[np.intp]
    weights: NDArray[np.float64]
    n_different: int = 0


def sample_rows(n_features: int, wanted: int) -> int:
    """Return how many rows may be compared with each other, feature by feature.

    Examples
    --------
    >>> sample_rows(10, 500), sample_rows(10_000, 500)
    (500, 200)
    """
    return int(min(wanted, max(100.0, (_DIFFERENCES / max(n_features, 1)) ** 0.5)))


def draw_sample(X, y, weights: NDArray[np.float64], n_rows: int, seed: int) -> Sample:
    """Draw rows by a hash of their values, and merge equal ones of the same class.

    Neither the order of the rows nor the format of X has any influence, and a row of
    weight two is the same as two rows.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,) or None
        Class of each row; None if it does not matter.
    weights : ndarray of shape (n_rows,)
    n_rows : int
        Largest number of different rows.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [1.0], [2.0]]), np.array([0, 0, 1])
    >>> sorted(draw_sample(X, y, np.ones(3), 10, seed=0).weights.tolist())
    [1.0, 2.0]
    """
    if hasattr(X, "draw_sample"):
        return X.draw_sample(y, weights, n_rows, seed)
    distinct, first, place = np.unique(row_keys(X, y, seed), return_index=True, return_inverse=True)
    integers, unit = to_fixed_point(weights[:, None])
    mass = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(mass, place, integers[:, 0])
    rows = first[:n_rows]
    part = X[rows].toarray() if sparse.issparse(X) else take_rows(X, rows)
    labels = np.zeros(rows.size, dtype=np.intp) if y is None else y[rows]
    return Sample(_to_float32(part), labels, mass[:n_rows] * unit, distinct.size)


def first_by_hash(X, y, n_rows: int, seed: int) -> NDArray[np.intp]:
    """Return numbers of rows that are as good as random, in order; all where they are few.

    Examples
    --------
    >>> import numpy as np
    >>> first_by_hash(np.eye(3), np.arange(3), 5, seed=0)
    array([0, 1, 2])
    """
    if X.shape[0] <= n_rows:
        return np.arange(X.shape[0])
    keys = row_keys(X, y, seed)
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    # Equal rows have equal keys: each copy gets a number of its own.
    copy = np.arange(keys.size) - np.searchsorted(sorted_keys, sorted_keys, side="left")
    with np.errstate(over="ignore"):
        numbers = scramble(sorted_keys + copy.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return np.sort(order[np.argsort(numbers, kind="stable")[:n_rows]])


def row_keys(X, y, seed: int) -> NDArray[np.uint64]:
    """Return a random number for each row that depends on its values and class alone."""
    generator = np.random.Generator(np.random.Philox([seed, 1]))
    factors = generator.integers(2**64, size=X.shape[1] + 1, dtype=np.uint64) | np.uint64(1)
    labels = np.zeros(X.shape[0], np.uint64) if y is None else y.astype(np.uint64)
    keys = scramble(labels * factors[-1])
    if sparse.issparse(X):
        rows = sparse.csr_array(X)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        terms = _bits(rows.data) * factors[rows.indices]
        running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms)])
        return scramble(keys + running[rows.indptr[1:]] - running[rows.indptr[:-1]])
    for rows, block in row_blocks(X, rows_at_once(X.shape[1])):
        keys[rows] += _bits(block) @ factors[:-1]
    return scramble(keys)


def _to_float32(values: NDArray) -> NDArray[np.float32]:
    """Round values as they are compared; beyond the range of float32 they are infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _bits(values: NDArray) -> NDArray[np.uint64]:
    """Return the bits of the values as float32; zero has none, of either sign."""
    single = _to_float32(values) + np.float32(0.0)
    single[np.isnan(single)] = np.float32(np.nan)
    return single.view(np.uint32).astype(np.uint64)

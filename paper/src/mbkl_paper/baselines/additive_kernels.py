"""Kernel matrices of histograms: chi2 and intersection."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.metrics.pairwise import additive_chi2_kernel, manhattan_distances

from mbkl_paper.baselines.base import Array

# Below this many products (rows x others x features) the libraries' own loops are done
# before compiled ones are loaded (measured).
_WORTH_COMPILING = 30_000_000
# Rows that one thread compares at a time.
_ROWS_AT_ONCE = 64


def chi2_kernel(X, Z=None, n_jobs: int | None = None) -> Array:
    """Return the sums over the features of 2 x z / (x + z), where 0 / 0 is 0.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples_X, n_features)
        Not negative.
    Z : {ndarray, sparse matrix} of shape (n_samples_Z, n_features) or None
        None means X.
    n_jobs : int or None
        Number of threads; None and -1 mean all cores.

    Returns
    -------
    K : ndarray of shape (n_samples_X, n_samples_Z)

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.baselines import chi2_kernel
    >>> chi2_kernel(np.array([[0.5, 0.0]]), np.array([[0.5, 0.5], [0.25, 0.0]]))
    array([[0.5       , 0.33333333]])
    """
    columns, others = _columns(X, Z)
    if _is_small(columns, others):
        return (_totals(columns, others) + additive_chi2_kernel(columns.T, others.T)) / 2.0
    return _compare(columns, others, True, n_jobs)


def chi2_distance(X, Z=None, n_jobs: int | None = None) -> Array:
    """Return the sums over the features of (x - z)^2 / (x + z), where 0 / 0 is 0.

    Parameters
    ----------
    X, Z, n_jobs
        See `chi2_kernel`.

    Returns
    -------
    D : ndarray of shape (n_samples_X, n_samples_Z)

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.baselines import chi2_distance
    >>> chi2_distance(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([[2., 0.]])
    """
    columns, others = _columns(X, Z)
    if _is_small(columns, others):
        return -additive_chi2_kernel(columns.T, others.T)
    products = _compare(columns, others, True, n_jobs)
    return np.maximum(_totals(columns, others) - 2.0 * products, 0.0)


def intersection_kernel(X, Z=None, n_jobs: int | None = None) -> Array:
    """Return the sums over the features of min(x, z).

    Parameters
    ----------
    X, Z, n_jobs
        See `chi2_kernel`.

    Returns
    -------
    K : ndarray of shape (n_samples_X, n_samples_Z)

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.baselines import intersection_kernel
    >>> intersection_kernel(np.array([[0.25, 0.75]]), np.array([[0.5, 0.5]]))
    array([[0.75]])
    """
    columns, others = _columns(X, Z)
    if _is_small(columns, others):
        # min(x, z) = (x + z - |x - z|) / 2.
        return (_totals(columns, others) - manhattan_distances(columns.T, others.T)) / 2.0
    return _compare(columns, others, False, n_jobs)


def _columns(X, Z) -> tuple[Array, Array]:
    """Return both sides with a line for each feature."""
    columns = _turned(X)
    return columns, columns if Z is None else _turned(Z)


def _turned(X) -> Array:
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return np.ascontiguousarray(dense.T, dtype=np.float64)


def _totals(columns: Array, others: Array) -> Array:
    return columns.sum(axis=0)[:, None] + others.sum(axis=0)


def _is_small(columns: Array, others: Array) -> bool:
    return columns.size * others.shape[1] < _WORTH_COMPILING


def _compare(columns: Array, others: Array, is_chi2: bool, n_jobs: int | None) -> Array:
    """Return the kernel of all pairs by compiled loops: chi2, or else intersection."""
    from mbkl_paper.baselines.loops import compare

    symmetric = columns is others
    n_rows = columns.shape[1]
    products = np.empty((n_rows, others.shape[1]))
    Parallel(n_jobs=-1 if n_jobs is None else n_jobs, prefer="threads")(
        delayed(compare)(
            columns, others, is_chi2, symmetric, products, start, min(start + _ROWS_AT_ONCE, n_rows)
        )
        for start in range(0, n_rows, _ROWS_AT_ONCE)
    )
    return _mirror(products) if symmetric else products


def _mirror(products: Array) -> Array:
    """Copy what is right of the diagonal to its left, in blocks that fit a cache."""
    size = len(products)
    for first in range(0, size, 512):
        block = slice(first, first + 512)
        products[first + 512 :, block] = products[block, first + 512 :].T
        square = products[block, block]
        square[:] = np.triu(square) + np.triu(square, 1).T
    return products

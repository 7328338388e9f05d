"""The kernel of a fitted model between rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mbkl.engine.rows import first_by_hash
from mbkl.explain.attribution import codes_of

Array = NDArray[np.float64]


def kernel_matrix(model, X, *, equal_weights: bool = False) -> Array:
    """Return the total weight, from 0 to 1, of the maps on which each two rows agree.

    Equal weights mean that all maps count the same in place of theta; those that the model has
    dropped stay so.
    """
    check_is_fitted(model)
    X = model._validate_new(X)
    maps = model._maps
    theta = model.theta_
    if equal_weights:
        drawn = np.concatenate([own.prior() for own in maps.families])
        theta = drawn / max(drawn.sum(), 1)
    kernel = np.full((X.shape[0],) * 2, theta.sum())
    for own, shares in zip(maps.families, maps.split(theta), strict=True):
        weights = np.zeros(own.cells.n_slots)
        weights[own.cells.is_map] = shares
        codes = codes_of(own, X, model.n_jobs)
        kernel -= own.cells.distance(codes, codes, weights)
    return kernel


def rows_by_class(X, y: NDArray, max_rows: int) -> NDArray[np.intp]:
    """Return numbers of at most so many rows, sorted by class."""
    codes = np.unique(y, return_inverse=True)[1]
    rows = first_by_hash(X, codes, max_rows, seed=0)
    return rows[np.argsort(codes[rows], kind="stable")]

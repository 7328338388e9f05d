"""The kernel of a fitted model between rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mbkl.explain.inside import codes_of, first_by_hash, weights_by_family

Array = NDArray[np.float64]


def kernel_matrix(model, X, *, equal_weights: bool = False) -> Array:
    """Return the total weight of the maps on which each two rows agree.

    Parameters
    ----------
    model : MBKLClassifier or MBKernel
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    equal_weights : bool, default=False
        Whether all maps count the same in place of theta. Maps that the model has
        dropped stay so.

    Returns
    -------
    K : ndarray of shape (n_samples, n_samples)
        From 0 to 1.

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.explain.kernel_matrix import kernel_matrix
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
    >>> kernel_matrix(model, X).shape
    (150, 150)
    """
    check_is_fitted(model)
    X = model._validate_new(X)
    maps = model._maps
    theta = model.theta_
    if equal_weights:
        drawn = np.concatenate([own.prior() for own in maps.families])
        theta = drawn / max(drawn.sum(), 1)
    kernel = np.full((X.shape[0],) * 2, theta.sum())
    for own, shares in weights_by_family(maps, theta):
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

"""The random stumps of MBKL as plain columns of plus and minus one."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import StrOptions

from mbkl import MBKernel
from mbkl_paper.baselines.base import AT_LEAST_ONE, Array, FeatureMap


class BinaryMaps(FeatureMap):
    """Random decision stumps, +1 where a feature is above a threshold and -1 elsewhere.

    They are drawn as the maps of MBKL; those that divide the training rows alike are
    one. A matrix of rows by maps is formed, for solvers that know of no better way.

    Parameters
    ----------
    n_maps : int or "auto", default="auto"
        Number of stumps drawn; "auto" is that of `MBKLClassifier`.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    stump_features_, stump_thresholds_ : ndarray of shape (n_columns,)
        The different stumps.

    References
    ----------
    G. Roig, X. Boix, L. Van Gool. "Random Decision Stumps for Kernel Learning and
    Efficient SVM." ACCV 2014.

    Examples
    --------
    >>> from mbkl_paper.baselines import BinaryMaps
    >>> BinaryMaps(n_maps=50, random_state=0).fit_transform([[0.0], [1.0], [2.0]])
    array([[-1., -1.],
           [ 1., -1.],
           [ 1.,  1.]])
    """

    _parameter_constraints: dict = {
        "n_maps": [AT_LEAST_ONE, StrOptions({"auto"})],
        "random_state": ["random_state"],
    }

    def __init__(self, n_maps="auto", random_state=None):
        self.n_maps = n_maps
        self.random_state = random_state

    def _learn(self, X) -> int:
        X = X.astype(np.float32)
        if not (X[1:] != X[:-1]).sum():
            raise ValueError(f"No feature of X varies over its rows (n_samples={X.shape[0]}).")
        kernel = MBKernel(
            maps="stumps", n_maps=self.n_maps, theta="ones", random_state=self.random_state
        )
        # Where all weights are one, the labels play no part.
        kernel.fit(X, np.arange(X.shape[0]) % 2)
        self.stump_features_ = kernel.stump_features_
        self.stump_thresholds_ = kernel.stump_thresholds_
        return self.stump_features_.size

    def _map(self, X) -> Array:
        # As in MBKL, which compares numbers of 32 bits.
        columns = X[:, self.stump_features_].astype(np.float32)
        values = columns.toarray() if sparse.issparse(columns) else columns
        return np.where(values > self.stump_thresholds_, 1.0, -1.0)

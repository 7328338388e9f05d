"""Binary codes of shift-invariant kernels."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot

from mbkl_paper.baselines.base import AT_LEAST_ONE, POSITIVE, Array, FeatureMap


def mean_squared_distance(X) -> float:
    """Return the mean over all pairs of rows of the squared Euclidean distance, 1 if it is 0.

    Examples
    --------
    >>> import numpy as np
    >>> mean_squared_distance(np.array([[0.0], [2.0]]))
    4.0
    """
    n_rows = X.shape[0]
    variance = StandardScaler(with_mean=False).fit(X).var_
    return float(2.0 * variance.sum() * n_rows / max(n_rows - 1, 1)) or 1.0


class BinaryCodes(FeatureMap):
    """Random bits that differ the more often, the smaller the Gaussian kernel is.

    Each bit is the sign of cos(w . x + b) + t with w normal of variance gamma, b uniform
    in [0, 2 pi] and t uniform in [-1, 1]. The share of bits in which two rows differ is a
    function of their kernel exp(-gamma ||x - z||^2 / 2) alone, on average.

    Parameters
    ----------
    n_bits : int, default=2000
    gamma : float or None, default=None
        None means one over the mean squared distance of the training rows.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    gamma_ : float
    directions_ : ndarray of shape (n_features, n_bits)
    phases_, thresholds_ : ndarray of shape (n_bits,)

    References
    ----------
    M. Raginsky, S. Lazebnik. "Locality-Sensitive Binary Codes from Shift-Invariant
    Kernels." NIPS 2009.

    Examples
    --------
    >>> from mbkl_paper.baselines import BinaryCodes
    >>> bits = BinaryCodes(n_bits=8, random_state=0).fit_transform([[0.0, 1.0], [1.0, 0.0]])
    >>> sorted(set(bits.ravel().tolist()))
    [0.0, 1.0]
    """

    _parameter_constraints: dict = {
        "n_bits": [AT_LEAST_ONE],
        "gamma": [POSITIVE, None],
        "random_state": ["random_state"],
    }

    def __init__(self, n_bits=2000, gamma=None, random_state=None):
        self.n_bits = n_bits
        self.gamma = gamma
        self.random_state = random_state

    def _learn(self, X) -> int:
        random = check_random_state(self.random_state)
        self.gamma_ = 1.0 / mean_squared_distance(X) if self.gamma is None else self.gamma
        self.directions_ = random.normal(0.0, self.gamma_**0.5, size=(X.shape[1], self.n_bits))
        self.phases_ = random.uniform(0.0, 2 * np.pi, self.n_bits)
        self.thresholds_ = random.uniform(-1.0, 1.0, self.n_bits)
        return self.n_bits

    def _map(self, X) -> Array:
        waves = np.cos(safe_sparse_dot(X, self.directions_, dense_output=True) + self.phases_)
        return (waves + self.thresholds_ > 0).astype(np.float64)

"""The logistic function of standardised attributes."""

from __future__ import annotations

from scipy.special import expit
from sklearn.base import OneToOneFeatureMixin
from sklearn.preprocessing import StandardScaler

from mbkl_paper.baselines.base import Array, FeatureMap


class Squash(OneToOneFeatureMixin, FeatureMap):
    """Standardise each feature and pass it through the logistic function.

    Attributes of any range then lie in (0, 1), as the kernels of histograms need it.
    The paper does so with the attributes of the UCI data sets.

    Attributes
    ----------
    scaler_ : StandardScaler
        Mean and deviation of the training rows.

    References
    ----------
    G. Roig, X. Boix, L. Van Gool. "Random Decision Stumps for Kernel Learning and
    Efficient SVM." ACCV 2014, section 6.1.

    Examples
    --------
    >>> from mbkl_paper.baselines import Squash
    >>> Squash().fit_transform([[-10.0], [0.0], [10.0]]).round(3).ravel()
    array([0.227, 0.5  , 0.773])
    """

    _takes_sparse = False
    _parameter_constraints: dict = {}

    def _learn(self, X) -> int:
        self.scaler_ = StandardScaler().fit(X)
        return X.shape[1]

    def _map(self, X) -> Array:
        return expit(self.scaler_.transform(X))

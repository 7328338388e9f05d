"""The random stumps of MBKL as plain columns of plus and minus one."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from mbkl_paper.baselines.base import AT_LEAST_ONE, Array, FeatureMap
from mbkl.engine import choose_engine
from mbkl.engine.codes import densify
from mbkl.maps import Stumps
from mbkl.maps.families import default_n_maps


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
    maps_ : StumpMaps
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
        n_maps = default_n_maps(Stumps(), X.shape) if self.n_maps == "auto" else self.n_maps
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        engine = choose_engine(X.shape[0] * X.shape[1])
        self.maps_, _ = Stumps().fit_codes(X, np.ones(X.shape[0]), n_maps, seed, engine)
        if not self.maps_.n_maps:
            raise ValueError(f"No feature of X varies over its rows (n_samples={X.shape[0]}).")
        return self.maps_.n_maps

    def _map(self, X) -> Array:
        cells, engine = self.maps_.cells, choose_engine(X.shape[0] * self.maps_.n_groups)
        return cells.columns(densify(self.maps_.codes(X, engine)))[:, cells.is_map]

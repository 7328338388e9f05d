"""The collapsed model: a table look-up per feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine import choose_engine
from mbkl.maps.stumps import StumpMaps

# Rows binned at a time: their codes stay in the second-level cache.
_BLOCK = 1024


@dataclass(frozen=True)
class TablePredictor:
    """Scores from tables, without any validation of the input.

    This is the documented fast path for single rows: `model.predictor_.scores(x)`
    skips what scikit-learn checks on every call.

    Parameters
    ----------
    maps : StumpMaps
        The kept maps.
    tables : ndarray of shape (n_cells, n_columns)
    intercept : ndarray of shape (n_columns,)
    n_jobs : int or None

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifier(random_state=0).fit(X, y)
    >>> scores = model.predictor_.scores(X[:1])
    >>> bool((scores == model.decision_function(X[:1])).all())
    True
    """

    maps: StumpMaps
    tables: NDArray[np.float64]
    intercept: NDArray[np.float64]
    n_jobs: int | None = None

    def scores(self, X) -> NDArray[np.float64]:
        """Return scores of shape (n_rows, n_columns).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), or sparse matrix
            float32 or float64; not checked.
        """
        n_rows = X.shape[0]
        engine = choose_engine(n_rows * self.maps.features.size, self.n_jobs)
        if sparse.issparse(X) or n_rows <= _BLOCK:
            return engine.gather(self.maps.codes(X, engine), self.tables) + self.intercept
        scores = np.empty((n_rows, self.tables.shape[1]))
        for first in range(0, n_rows, _BLOCK):
            block = X[first : first + _BLOCK]
            scores[first : first + _BLOCK] = engine.gather(
                self.maps.codes(block, engine), self.tables
            )
        return scores + self.intercept

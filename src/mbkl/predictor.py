"""The collapsed model: a table look-up per feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import engine_on
from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.engine.torch_engine import has_gpu
from mbkl.maps.families import MapSet

# Up to here NumPy compares with all thresholds at once, faster than a kernel is called
# (measured); the bits are the same.
_FEW_ROWS = 4


@dataclass(frozen=True)
class TablePredictor:
    """Scores from tables, without any validation of the input.

    This is the documented fast path for single rows: `model.predictor_.scores(x)`
    skips what scikit-learn checks on every call.

    Parameters
    ----------
    maps : MapSet
        The kept maps.
    tables : list of ndarray of shape (n_cells, n_columns)
        Those of each family.
    intercept : ndarray of shape (n_columns,)
    n_jobs : int or None
    device : str

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

    maps: MapSet
    tables: list[NDArray[np.float64]]
    intercept: NDArray[np.float64]
    n_jobs: int | None = None
    device: str = "cpu"

    def scores(self, X) -> NDArray[np.float64]:
        """Return scores of shape (n_rows, n_columns).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), or sparse matrix
            float32 or float64, on a device also bytes; not checked.
        """
        # A model learned on a GPU predicts anywhere.
        device = (
            "cpu" if self.device.startswith("cuda") and not has_gpu(self.device) else self.device
        )
        engine = engine_on(device, self.maps.n_codes(X.shape[0]), self.n_jobs)
        if device == "cpu" and X.shape[0] <= _FEW_ROWS and not self.maps.has_ferns:
            engine = NumpyEngine()
        return self.maps.score(X, self.tables, engine) + self.intercept

"""The collapsed model: a table look-up per feature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine import choose_loops
from mbkl.engine.device import DeviceRows, device_for, device_of, has_gpu
from mbkl.engine.limits import CODES_TO_PREDICT_ON_A_DEVICE, FEW_ROWS_TO_PREDICT
from mbkl.engine.rows import ArrayRows, Rows, SparseRows, to_float32
from mbkl.engine.twins import TWINS
from mbkl.maps.families import Maps, MapSet


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

    @property
    def families(self) -> Iterator[tuple[Maps, NDArray[np.float64]]]:
        """The maps of each family, and their tables."""
        return zip(self.maps.families, self.tables, strict=True)

    def scores(self, X, check_finite: bool = False) -> NDArray[np.float64]:
        """Return scores of shape (n_rows, n_columns).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), or sparse matrix
            float32 or float64, on a device also bytes; not checked. A category is the number of
            its level.
        check_finite : bool, default=False
            Whether to raise an error for infinite values.
        """
        rows = self._rows(X)
        if check_finite:
            rows.check_finite()
        scores = self.maps.score(rows, self.tables)
        scores += self.intercept
        return scores

    def _rows(self, X) -> Rows:
        if self.device == "cpu":
            return rows_to_predict(X, self.maps, self.n_jobs)
        n_codes = 0 if sparse.issparse(X) else X.shape[0] * self.maps.n_groups
        device = device_for(self.device, n_codes, CODES_TO_PREDICT_ON_A_DEVICE)
        # A model learned on a GPU predicts on the CPU of a machine without one.
        if device == "torch" or (device != "cpu" and has_gpu(device)):
            return DeviceRows(X, device_of(device))
        return rows_to_predict(X, self.maps, self.n_jobs)


def rows_to_predict(X, maps: MapSet, n_jobs: int | None) -> ArrayRows | SparseRows:
    """Return rows with the loops that are fastest for their number."""
    n_rows = X.shape[0]
    if X.dtype == np.uint8:  # only devices take bytes
        X = to_float32(X)
    # For few rows NumPy compares all thresholds at once, faster than a call of a compiled loop.
    is_few = n_rows <= FEW_ROWS_TO_PREDICT and maps.is_ordered
    loops = TWINS if is_few else choose_loops(maps.n_codes(n_rows), n_jobs)
    return SparseRows(X, loops) if sparse.issparse(X) else ArrayRows(X, loops)

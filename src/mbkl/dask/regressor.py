"""MBKLRegressor for data on a cluster."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

import mbkl.regressor
from mbkl.dask.estimator import OnCluster
from mbkl.dask.rows import RemoteRows
from mbkl.estimator import Costs, estimator
from mbkl.maps.numbers import Numbers
from mbkl.regressor import KernelRegressor


@estimator
class MBKLRegressor(Costs, OnCluster, KernelRegressor):
    """Regression that learns its kernel, from rows that stay on the workers of a Dask cluster.

    As `mbkl.dask.MBKLClassifier`: the model is the same, to the bit, as that of
    `mbkl.MBKLRegressor` on the same rows. What is gathered here beyond samples of bounded size
    are the different targets, and, for intervals of maps that are given, the scores of held-out
    rows: some 8 and 24 bytes a row. With maps="auto" and so few rows that drawn and grown ferns
    are mixed (at most 20,000), all of them are collected and the model is learned here.

    Parameters
    ----------
    client : Client or None, default=None
        Of the cluster; None means the current one.
    loss, quantile, maps, n_maps, theta, theta_shrinkage, init_rule, theta_power, C, C_kernel
        See `mbkl.MBKLRegressor`; projections are not available.
    categorical_features
        See `mbkl.dask.MBKLClassifier`.
    max_pairs, tol, max_iter, max_time, random_state, n_jobs, verbose
        See `mbkl.MBKLRegressor`; `n_jobs` is for what is done here, workers use the threads
        they have.

    Attributes
    ----------
    local_ : mbkl.MBKLRegressor
        The fitted model without Dask: to save, explain and export. This object has its
        attributes too.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mbkl.dask import MBKLRegressor
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(400, random_state=0)
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     X, y = da.from_array(X, chunks=(100, 10)), da.from_array(y, chunks=100)
    ...     model = MBKLRegressor(maps="stumps", random_state=0).fit(X, y)
    ...     bool(model.score(X, y) > 0.8)
    True
    """

    _LOCAL: ClassVar[type] = mbkl.regressor.MBKLRegressor
    _HAS_NUMBERS: ClassVar[bool] = True

    def _numbered_there(self, levels, y: RemoteRows, weights: RemoteRows) -> dict[str, Any]:
        self._check_targets(levels)
        self.is_multi_output_ = levels.ndim > 1
        levels = levels.reshape(len(levels), -1)
        self.n_outputs_ = levels.shape[1]
        numbers = Numbers.of_levels(levels, y, weights, self.loss, self.quantile)
        return {"y": y, "weights": weights, "n_classes": len(levels), "numbers": numbers}

    @property
    def _columns(self) -> tuple[int, ...]:
        return (self.n_outputs_,) if self.is_multi_output_ else ()

    def predict(self, X):
        """Return the number of each sample, lazily for an array or dataframe of Dask."""
        check_is_fitted(self)
        return self._lazily("predict", X, np.float64, self._columns)

    def predict_interval(self, X, coverage=0.9):
        """Return lower and upper bounds, lazily; see `mbkl.MBKLRegressor.predict_interval`."""
        check_is_fitted(self)
        columns = (*self._columns, 2)
        return self._lazily("predict_interval", X, np.float64, columns, coverage=coverage)

    def score(self, X, y, sample_weight=None) -> float:
        """Return R2.

        Parameters
        ----------
        X : dask array or dataframe, or array-like of shape (n_samples, n_features)
        y, sample_weight
            Of the same kind; sample_weight may be None.
        """
        return self._score_by(r2_score, X, y, sample_weight)

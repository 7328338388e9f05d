"""MBKLClassifier for data on a cluster."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if

import mbkl.classifier
from mbkl.classifier import KernelClassifier, best_class, has_probabilities
from mbkl.dask.estimator import OnCluster
from mbkl.dask.rows import RemoteRows
from mbkl.estimator import Costs, TrainingRows, estimator
from mbkl.learn.progress import Progress


@estimator
class MBKLClassifier(Costs, OnCluster, KernelClassifier):
    """SVM that learns its kernel, from rows that stay on the workers of a Dask cluster.

    Each worker turns its partitions to codes, one byte for each feature or fern, and keeps
    them. A pass of the solver sends tables to the workers and gets histograms back; what is
    gathered are samples of bounded size. The model is the same, to the bit, as that of
    `mbkl.MBKLClassifier` on the same rows, for any partitions and any number of workers.

    Parameters
    ----------
    client : Client or None, default=None
        Of the cluster; None means the current one.
    maps, n_maps, theta, theta_shrinkage, init_rule, theta_power, C, C_kernel
        See `mbkl.MBKLClassifier`; projections are not available.
    negatives_per_positive, max_pairs, loss, class_weight, tol, max_iter, max_time
        See `mbkl.MBKLClassifier`.
    calibration : {"auto"} or None, default="auto"
        See `mbkl.MBKLClassifier`; "temperature" is not available.
    categorical_features : list of names, indices or booleans, or None, default="from_dtype"
        Columns of level numbers: whole numbers from 0. There is no text on a cluster.
    random_state, n_jobs, verbose
        See `mbkl.MBKLClassifier`; `n_jobs` is for what is done here, workers use the threads
        they have.

    Attributes
    ----------
    local_ : mbkl.MBKLClassifier
        The fitted model without Dask: to save, explain and export. This object has its
        attributes too.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mbkl.dask import MBKLClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     X, y = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    ...     model = MBKLClassifier(random_state=0).fit(X, y)
    ...     bool((model.predict(X) == y).mean().compute() > 0.9)
    True
    """

    _LOCAL: ClassVar[type] = mbkl.classifier.MBKLClassifier

    def _fit_data(self, data: TrainingRows, progress: Progress):
        self._check_growth(data.rows)
        if self.calibration == "temperature":
            raise ValueError("calibration='temperature' is not available on a cluster; use 'auto'.")
        return super()._fit_data(data, progress)

    def _how_often(self, scores) -> np.ndarray:
        if not isinstance(scores, RemoteRows):  # few rows are here
            return super()._how_often(scores)
        best = scores.apply(best_class, scores)
        return (best[:, None] == np.arange(self.classes_.size)).astype(np.int64).sum(axis=0)

    def _numbered_there(self, levels, y: RemoteRows, weights: RemoteRows) -> dict[str, Any]:
        self.classes_ = levels
        return {"y": y, "weights": self._class_weighted(y, weights), "n_classes": levels.size}

    def decision_function(self, X):
        """Return the scores of the classes, lazily for an array or dataframe of Dask."""
        n_classes = self.local_.classes_.size
        columns = () if n_classes == 2 else (n_classes,)
        return self._lazily("decision_function", X, np.float64, columns)

    def predict(self, X):
        """Return the class of each sample, lazily for an array or dataframe of Dask."""
        return self._lazily("predict", X, self.local_.classes_.dtype)

    @available_if(has_probabilities)
    def predict_proba(self, X):
        """Return class probabilities, lazily for an array or dataframe of Dask."""
        return self._lazily("predict_proba", X, np.float64, (self.local_.classes_.size,))

    def score(self, X, y, sample_weight=None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : dask array or dataframe, or array-like of shape (n_samples, n_features)
        y, sample_weight
            Of the same kind; sample_weight may be None.
        """
        return self._score_by(accuracy_score, X, y, sample_weight)

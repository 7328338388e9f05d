"""MBKLClassifier for data on a cluster."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted

import mbkl.classifier
import mbkl.dask.growth
from mbkl.classifier import KernelClassifier, best_class, has_probabilities
from mbkl.dask.crew import Crew
from mbkl.dask.labelled_rows import RemoteLabelledRows
from mbkl.dask.matrix import RemoteMatrix
from mbkl.dask.partitions import spread
from mbkl.dask.rows import RemoteRows
from mbkl.engine import choose_loops
from mbkl.estimator import Costs, TrainingRows, estimator, parameter
from mbkl.extras import require
from mbkl.kernel_predictor import costs_of
from mbkl.learn.progress import with_callbacks
from mbkl.maps.families import families_of


@estimator
class MBKLClassifier(Costs, KernelClassifier):
    """SVM that learns its kernel, from rows that stay on the workers of a Dask cluster.

    Each worker turns its partitions to codes, one byte for each feature or fern, and keeps
    them. A pass of the solver sends tables to the workers and gets histograms back; what is
    gathered are samples of bounded size. The model is the same, to the bit, as that of
    `mbkl.MBKLClassifier` on the same rows, for any partitions and any number of workers.

    Parameters
    ----------
    client : Client or None, default=None
        Of the cluster; None means the current one.
    maps, n_maps, theta, init_rule, theta_power, C, C_kernel
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

    client: Any = parameter(default=None)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn the kernel and the classifier.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
        y : dask array or series of shape (n_samples,)
            With the same partitions; an array with known ones is cut to fit.
        sample_weight : like y, or None

        Returns
        -------
        self : MBKLClassifier
        """
        families = [] if self.maps == "auto" else families_of(self.maps)
        if not all(family.reads_blocks for family in families):
            raise ValueError("maps of projections are not available on a cluster; use maps='auto'.")
        if self.calibration == "temperature":
            raise ValueError("calibration='temperature' is not available on a cluster; use 'auto'.")
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0; use None or -1 for all cores.")
        _check_feature_names(self, _names_of(X), reset=True)
        _check_numbers(X)
        crew = spread(self._client(), X, y, sample_weight)
        try:
            self._fit_stores(crew)
        finally:
            crew.close()
        return self

    def _client(self):
        if self.client is not None:
            return self.client
        distributed = require("distributed", "dask")
        try:
            return distributed.get_client()
        except ValueError:
            raise ValueError(
                "There is no cluster: start one with distributed.Client(), or set client."
            ) from None

    def _fit_stores(self, crew: Crew) -> None:
        """Learn from what the stores hold."""
        progress = self._progress()
        X = RemoteMatrix(crew)
        X.loops = choose_loops(X.shape[0] * X.shape[1], self.n_jobs)
        if not X.shape[0]:
            raise ValueError("X has no rows of positive weight; at least one is needed.")
        self.n_features_in_ = X.shape[1]
        self._set_levels_of_blocks(X)
        self.classes_ = X.classes()
        y, weights = X.labelled(self.classes_)
        weights = self._class_weighted(y, weights)
        data = TrainingRows(X, y, weights, self._settings(), self.classes_.size)
        self._check_growth(X)
        if self.grows(X.shape):
            self._grow(data, progress)
            return
        choice = self._choose(data, progress)
        learner = self._draw(data, choice, progress)
        C_kernel, C = costs_of(self, choice, learner)
        self._learn(learner.merged, C_kernel, C, choice)

    def _placed(self, data: TrainingRows, plans, n_fits: int):
        return data.rows

    def _labelled(self, operator, data: TrainingRows):
        crew = data.rows.crew  # type: ignore[attr-defined]
        weights, seed = data.weights, data.settings.seed
        return RemoteLabelledRows(crew, operator, data.y, data.n_classes, weights, seed)

    def _how_often(self, scores) -> np.ndarray:
        if not isinstance(scores, RemoteRows):  # few rows are here
            return super()._how_often(scores)
        best = scores.apply(best_class, scores)
        return (best[:, None] == np.arange(self.classes_.size)).astype(np.int64).sum(axis=0)

    def __sklearn_clone__(self):
        # A client cannot be copied, and need not be.
        return type(self)(**self.get_params(deep=False))

    def __getstate__(self):
        return {**super().__getstate__(), "client": None}

    def save(self, path, *, extra=None) -> None:
        """Save the fitted model; `mbkl.load` brings it back, without Dask."""
        self.local_.save(path, extra=extra)

    @property
    def local_(self) -> mbkl.classifier.MBKLClassifier:
        """The fitted model without Dask."""
        check_is_fitted(self)
        own = self._get_param_names()
        shared = set(own) - {"client"}
        model = mbkl.classifier.MBKLClassifier(**{name: getattr(self, name) for name in shared})
        model.__dict__.update(
            {name: value for name, value in vars(self).items() if name not in own}
        )
        return model

    def decision_function(self, X):
        """Return the scores of the classes, lazily for an array or dataframe of Dask."""
        n_classes = self.local_.classes_.size
        return self._lazily(
            "decision_function", X, np.float64, None if n_classes == 2 else n_classes
        )

    def predict(self, X):
        """Return the class of each sample, lazily for an array or dataframe of Dask."""
        return self._lazily("predict", X, self.local_.classes_.dtype, None)

    @available_if(has_probabilities)
    def predict_proba(self, X):
        """Return class probabilities, lazily for an array or dataframe of Dask."""
        return self._lazily("predict_proba", X, np.float64, self.local_.classes_.size)

    def score(self, X, y, sample_weight=None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : dask array or dataframe, or array-like of shape (n_samples, n_features)
        y, sample_weight
            Of the same kind; sample_weight may be None.
        """
        computed = require("dask", "dask").compute(self.predict(X), y, sample_weight)
        predicted, labels, weights = computed
        return float(accuracy_score(labels, predicted, sample_weight=weights))

    def _lazily(self, method: str, X, dtype, n_columns: int | None):
        model = self.local_
        if not hasattr(X, "to_delayed"):
            return getattr(model, method)(X)
        _check_feature_names(model, _names_of(X), reset=False)
        if X.shape[1] != model.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the model was fitted with {model.n_features_in_}."
            )
        # Names are checked once, here: blocks have none.
        model.__dict__.pop("feature_names_in_", None)
        apply = getattr(model, method)
        values = X.to_dask_array() if hasattr(X, "to_dask_array") else X
        shape: dict = {"drop_axis": 1}
        if n_columns is not None:
            shape = {"chunks": (values.chunks[0], (n_columns,))}
        meta = np.empty((0,) * (1 if n_columns is None else 2), dtype)
        return values.rechunk({1: -1}).map_blocks(
            partial(_apply_to_block, apply), dtype=dtype, meta=meta, **shape
        )


def _names_of(X):
    """Return what scikit-learn finds the names of the features in."""
    return getattr(X, "_meta", X) if hasattr(X, "columns") else X


def _check_numbers(X) -> None:
    """Complain of columns of text: on a cluster categories are level numbers."""
    for name, kind in getattr(X, "dtypes", {}).items():
        if getattr(kind, "kind", "O") not in "biuf":
            raise ValueError(
                f"Column {name!r} of X holds {kind}, no numbers; on a cluster use level numbers, "
                f"such as X[{name!r}].cat.codes, and name the column in categorical_features."
            )


def _apply_to_block(apply, block):
    """Predict one partition, also one without rows."""
    if not len(block):
        return apply(np.zeros((1, block.shape[1])))[:0]
    return apply(block)

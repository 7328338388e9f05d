"""MBKLClassifier and MBKLRegressor for data on a cluster: rows stay there, the model is here."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted

import mbkl.classifier
import mbkl.regressor
from mbkl.classifier import KernelClassifier, best_class, has_probabilities
from mbkl.dask.crew import Crew
from mbkl.dask.partitions import spread
from mbkl.dask.rows import RemoteLabelledRows, RemoteMatrix, RemoteRows
from mbkl.engine import choose_loops
from mbkl.estimator import Costs, TrainingRows, estimator, parameter, target_names
from mbkl.extras import require
from mbkl.kernel_predictor import KernelPredictor
from mbkl.learn.progress import Progress, with_callbacks
from mbkl.maps.families import families_of
from mbkl.maps.numbers import Numbers
from mbkl.regressor import KernelRegressor


@estimator
class OnCluster(KernelPredictor):
    """An estimator that is fitted on rows of a cluster, and predicts lazily."""

    client: Any = parameter(default=None)

    _LOCAL: ClassVar[type]  # the estimator without Dask

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn the kernel, and the classifier or regression.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
        y : dask array or series of shape (n_samples,)
            Numbers may be several targets, of shape (n_samples, n_outputs).
            With the same partitions as X; an array of known lengths is divided like X.
        sample_weight : like y, or None

        Returns
        -------
        self : object
        """
        families = [] if self.maps == "auto" else families_of(self.maps)
        if not all(family.reads_blocks for family in families):
            raise ValueError("maps of projections are not available on a cluster; use maps='auto'.")
        _check_feature_names(self, _names_of(X), reset=True)
        _check_numbers(X)
        if is_regressor(self):
            # The name of a Dask array is that of its tasks, not of a target.
            self._name_targets([] if hasattr(y, "chunks") else target_names(y), y)
        client = self.client or require("distributed", "dask").Client.current()
        crew = spread(client, X, y, sample_weight, has_numbers=is_regressor(self))
        try:
            self._fit_stores(crew)
        finally:
            crew.close()
        return self

    def _fit_stores(self, crew: Crew) -> None:
        progress = self._progress()
        X = RemoteMatrix(crew)
        X.loops = choose_loops(X.shape[0] * X.shape[1], self.n_jobs)
        if not X.shape[0]:
            raise ValueError("X has no rows of positive weight; at least one is needed.")
        self.n_features_in_ = X.shape[1]
        self._set_levels_of_blocks(X)
        self._fit_data(self._data(X, progress), progress)

    def _data(self, X: RemoteMatrix, progress: Progress) -> TrainingRows:
        """Return the training rows, on the workers, or here if few rows may mix maps."""
        if self._may_mix(X.shape):
            rows, targets, sample_weights = X.collected()
            self._check_targets(targets)
            return self._training_rows(rows, targets, sample_weights, progress)
        return TrainingRows(X, settings=self._settings(), **self._target_fields(*X.labelled()))

    def _target_fields(self, levels, y: RemoteRows, weights: RemoteRows) -> dict[str, Any]:
        """Return fields of `TrainingRows` for y, which indexes the levels of the targets."""
        raise NotImplementedError

    def _placed(self, data: TrainingRows, plans, n_fits: int):
        return data.rows if _is_remote(data) else super()._placed(data, plans, n_fits)

    def _labelled(self, operator, data: TrainingRows):
        here = super()._labelled(operator, data)
        return RemoteLabelledRows(**vars(here)) if _is_remote(data) else here

    def __sklearn_clone__(self):
        # A client cannot be copied, and need not be.
        return type(self)(**self.get_params(deep=False))

    def __getstate__(self):
        return {**super().__getstate__(), "client": None}

    def save(self, path, *, extra=None) -> None:
        """Save the fitted model; `mbkl.load` brings it back, without Dask."""
        self.local_.save(path, extra=extra)

    @property
    def local_(self):
        """The fitted model without Dask."""
        check_is_fitted(self)
        return self._fitted_as(self._LOCAL)

    def predict(self, X):
        """Return the class or number of each sample, lazily for a Dask array or dataframe."""
        return self._lazily("predict", X)

    def score(self, X, y, sample_weight=None) -> float:
        """Return the accuracy, or R2 of numbers.

        Parameters
        ----------
        X : dask array or dataframe, or array-like of shape (n_samples, n_features)
        y, sample_weight
            Of the same type; sample_weight may be None.
        """
        computed = require("dask", "dask").compute(y, self.predict(X), sample_weight)
        measure = r2_score if is_regressor(self) else accuracy_score
        return float(measure(*computed[:2], sample_weight=computed[2]))

    def _lazily(self, method: str, X, **options):
        """Apply a method to all partitions; its result for one row gives the type of the output."""
        model = self.local_
        apply = partial(getattr(model, method), **options)
        if not hasattr(X, "to_delayed"):
            return apply(X)
        _check_feature_names(model, _names_of(X), reset=False)
        if X.shape[1] != model.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the model was fitted with {model.n_features_in_}."
            )
        # Names are checked once, here: blocks have no names.
        model.__dict__.pop("feature_names_in_", None)
        empty = apply(np.zeros((1, X.shape[1])))[:0]
        values = X.to_dask_array() if hasattr(X, "to_dask_array") else X
        shape: dict = {"drop_axis": 1}
        if empty.ndim > 1:
            chunks = (values.chunks[0], *((size,) for size in empty.shape[1:]))
            shape = {"chunks": chunks, "new_axis": list(range(2, empty.ndim))}
        return values.rechunk({1: -1}).map_blocks(
            lambda block: apply(block) if len(block) else empty,
            token=f"mbkl-{method}",
            meta=empty,
            **shape,
        )


def _is_remote(data: TrainingRows) -> bool:
    return isinstance(data.rows, RemoteMatrix)


def _names_of(X):
    """Return the object in which scikit-learn finds feature names."""
    return getattr(X, "_meta", X) if hasattr(X, "columns") else X


def _check_numbers(X) -> None:
    """Raise an error if a column is text: on a cluster categories are level numbers."""
    for name, kind in getattr(X, "dtypes", {}).items():
        if getattr(kind, "kind", "O") not in "biuf":
            raise ValueError(
                f"Column {name!r} of X holds {kind}, no numbers; on a cluster use level numbers, "
                f"such as X[{name!r}].cat.codes, and name the column in categorical_features."
            )


@estimator
class MBKLClassifier(Costs, OnCluster, KernelClassifier):
    """SVM that learns its kernel, from rows that stay on the workers of a Dask cluster.

    Each worker encodes its partitions as codes, one byte for each feature or fern, and keeps
    them. A pass of the solver sends tables to the workers and gets histograms back; only
    samples of bounded size are gathered. The model has the same bits as that of
    `mbkl.MBKLClassifier` on the same rows, for any partitions and any number of workers.

    Parameters
    ----------
    client : Client or None, default=None
        Client of the cluster; None means the current one.
    maps, n_maps, theta, theta_shrinkage, init_rule, theta_power, C, C_kernel
        See `mbkl.MBKLClassifier`; projections are not available.
    negatives_per_positive, max_pairs, loss, class_weight, tol, max_iter, max_time
        See `mbkl.MBKLClassifier`.
    calibration : {"auto"} or None, default="auto"
        See `mbkl.MBKLClassifier`; "temperature" is not available.
    categorical_features : list of names, indices or booleans, or None, default="from_dtype"
        Columns of level numbers: whole numbers from 0. There is no text on a cluster.
    random_state, n_jobs, verbose
        See `mbkl.MBKLClassifier`; `n_jobs` limits the threads of this process, workers use
        the threads they have.

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
        if self.calibration == "temperature":
            raise ValueError("calibration='temperature' is not available on a cluster; use 'auto'.")
        return super()._fit_data(data, progress)

    def _how_often(self, scores) -> np.ndarray:
        if not isinstance(scores, RemoteRows):  # few rows are in memory
            return super()._how_often(scores)
        best = scores.apply(best_class, scores)
        return (best[:, None] == np.arange(self.classes_.size)).astype(np.int64).sum(axis=0)

    def _target_fields(self, levels, y: RemoteRows, weights: RemoteRows) -> dict[str, Any]:
        self.classes_ = levels
        return {"y": y, "weights": self._class_weighted(y, weights), "n_classes": levels.size}

    def decision_function(self, X):
        """Return the scores of the classes, lazily for an array or dataframe of Dask."""
        return self._lazily("decision_function", X)

    @available_if(has_probabilities)
    def predict_proba(self, X):
        """Return class probabilities, lazily for an array or dataframe of Dask."""
        return self._lazily("predict_proba", X)


@estimator
class MBKLRegressor(Costs, OnCluster, KernelRegressor):
    """Regression that learns its kernel, from rows that stay on the workers of a Dask cluster.

    Like `mbkl.dask.MBKLClassifier`; the model has the same bits as that of
    `mbkl.MBKLRegressor` on the same rows. Besides samples of bounded size, the distinct targets
    are gathered here and, for intervals with explicit maps, the scores of held-out rows: about 8
    and 24 bytes a row. With maps="auto" and at most 20,000 rows, all rows are collected and the
    model is learned here.

    Parameters
    ----------
    client, categorical_features, random_state, n_jobs, verbose
        See `mbkl.dask.MBKLClassifier`.
    loss, quantile, maps, n_maps, theta, theta_shrinkage, init_rule, theta_power, C, C_kernel
        See `mbkl.MBKLRegressor`; projections are not available.
    max_pairs, tol, max_iter, max_time
        See `mbkl.MBKLRegressor`.

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

    def _target_fields(self, levels, y: RemoteRows, weights: RemoteRows) -> dict[str, Any]:
        self._check_targets(levels)
        self.is_multi_output_ = levels.ndim > 1
        levels = levels.reshape(len(levels), -1)
        self.n_outputs_ = levels.shape[1]
        numbers = Numbers.of_levels(levels, y, weights, self.loss, self.quantile)
        return {"y": y, "weights": weights, "n_classes": len(levels), "numbers": numbers}

    def predict_interval(self, X, coverage=0.9):
        """Return lower and upper bounds, lazily; see `mbkl.MBKLRegressor.predict_interval`."""
        return self._lazily("predict_interval", X, coverage=coverage)

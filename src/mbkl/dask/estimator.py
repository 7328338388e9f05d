"""What estimators for data on a cluster share: rows stay there, the model is here."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.validation import _check_feature_names, check_is_fitted

import mbkl.dask.growth  # noqa: F401 (tells how ferns grow on the workers)
from mbkl.dask.crew import Crew
from mbkl.dask.labelled_rows import RemoteLabelledRows
from mbkl.dask.matrix import RemoteMatrix
from mbkl.dask.partitions import spread
from mbkl.dask.rows import RemoteRows
from mbkl.engine import choose_loops
from mbkl.estimator import TrainingRows, estimator, parameter, target_names
from mbkl.extras import require
from mbkl.kernel_predictor import KernelPredictor
from mbkl.learn.progress import Progress, with_callbacks
from mbkl.maps.families import families_of


@estimator
class OnCluster(KernelPredictor):
    """Fits on rows of a cluster, and lazy predictions."""

    client: Any = parameter(default=None)

    # The estimator without Dask, and whether y are numbers.
    _LOCAL: ClassVar[type]
    _HAS_NUMBERS: ClassVar[bool] = False

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn the kernel, and the classifier or regression.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
        y : dask array or series of shape (n_samples,)
            Numbers may be several targets, of shape (n_samples, n_outputs).
            With the same partitions; an array with known ones is cut to fit.
        sample_weight : like y, or None

        Returns
        -------
        self : object
        """
        families = [] if self.maps == "auto" else families_of(self.maps)
        if not all(family.reads_blocks for family in families):
            raise ValueError("maps of projections are not available on a cluster; use maps='auto'.")
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0; use None or -1 for all cores.")
        _check_feature_names(self, _names_of(X), reset=True)
        _check_numbers(X)
        if self._HAS_NUMBERS:
            self._name_targets(target_names(y), y)
        crew = spread(self._client(), X, y, sample_weight, self._HAS_NUMBERS)
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
        self._fit_data(self._data(X, progress), progress)

    def _data(self, X: RemoteMatrix, progress: Progress) -> TrainingRows:
        """Return the rows with their targets: there, or here where maps of few are mixed."""
        if self._may_mix(X.shape):
            rows, targets, sample_weights = X.collected()
            self._check_targets(targets)
            return self._training_rows(rows, targets, sample_weights, progress)
        levels = X.classes()
        y, weights = X.labelled(levels)
        numbered = self._numbered_there(levels, y, weights)
        return TrainingRows(X, settings=self._settings(), **numbered)

    def _numbered_there(self, levels, y: RemoteRows, weights: RemoteRows) -> dict[str, Any]:
        """Return what belongs to y, the places of targets among the levels."""
        raise NotImplementedError

    def _placed(self, data: TrainingRows, plans, n_fits: int):
        return data.rows if _is_there(data) else super()._placed(data, plans, n_fits)

    def _labelled(self, operator, data: TrainingRows):
        if not _is_there(data):
            return super()._labelled(operator, data)
        crew = data.rows.crew  # type: ignore[attr-defined]
        labels, seed = (data.y, data.n_classes, data.weights), data.settings.seed
        return RemoteLabelledRows(crew, operator, *labels, seed, numbers=data.numbers)

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
        own = self._get_param_names()
        shared = set(own) - {"client"}
        model = self._LOCAL(**{name: getattr(self, name) for name in shared})
        model.__dict__.update(
            {name: value for name, value in vars(self).items() if name not in own}
        )
        return model

    def _score_by(self, measure, X, y, sample_weight) -> float:
        """Return a measure of the predictions."""
        computed = require("dask", "dask").compute(self.predict(X), y, sample_weight)
        predicted, targets, weights = computed
        return float(measure(targets, predicted, sample_weight=weights))

    def _lazily(self, method: str, X, dtype, columns: tuple[int, ...] = (), **options):
        """Apply a method, which returns so much for each row, to all partitions."""
        model = self.local_
        if not hasattr(X, "to_delayed"):
            return getattr(model, method)(X, **options)
        _check_feature_names(model, _names_of(X), reset=False)
        if X.shape[1] != model.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the model was fitted with {model.n_features_in_}."
            )
        # Names are checked once, here: blocks have none.
        model.__dict__.pop("feature_names_in_", None)
        apply = partial(getattr(model, method), **options)
        values = X.to_dask_array() if hasattr(X, "to_dask_array") else X
        shape: dict = {"drop_axis": 1}
        if columns:
            chunks = (values.chunks[0], *((size,) for size in columns))
            shape = {"chunks": chunks, "new_axis": list(range(2, 1 + len(columns)))}
        meta = np.empty((0,) * (1 + len(columns)), dtype)
        return values.rechunk({1: -1}).map_blocks(
            partial(_apply_to_block, apply), dtype=dtype, meta=meta, **shape
        )


def _is_there(data: TrainingRows) -> bool:
    """Say whether rows are on the workers."""
    return isinstance(data.rows, RemoteMatrix)


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

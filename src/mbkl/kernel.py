"""MBKernel: the learned kernel by itself, as a transformer and a kernel function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from mbkl.engine.codes import DenseCodes
from mbkl.estimator import POSITIVE, OfClasses, estimator, numbered, parameter
from mbkl.learn.algorithm import Settings
from mbkl.learn.progress import CallbackSupportMixin, with_callbacks
from mbkl.maps.families import MapSet
from mbkl.predictor import rows_to_predict


@estimator
class MBKernel(CallbackSupportMixin, TransformerMixin, OfClasses):
    """Kernel learned as a weighted sum of random binary maps.

    K(x, z) is the total weight of the maps on which x and z agree, between 0 and 1.
    With psi the running sums of theta along each feature, that of stumps equals
    1 - ||psi(x) - psi(z)||_1, so that a pair costs one step per feature, not per map.

    Parameters
    ----------
    maps, n_maps, theta, theta_shrinkage, init_rule, negatives_per_positive, max_pairs, loss
        See `MBKLClassifier`.
    C_kernel : float, default=1.0
        Cost of Step 1; see `MBKLClassifier`.
    task : {"auto", "classification", "regression"}, default="auto"
        What y is: classes, or numbers (as in `MBKLRegressor`, with the squared error in place of
        `loss`; then several columns are allowed). "auto" takes y for numbers where some are not
        whole.
    class_weight, categorical_features, tol, max_iter, random_state, n_jobs, verbose
        See `MBKLClassifier`.
    sparse_output : bool, default=True
        Whether `transform` returns a CSR matrix; a dense array otherwise, as
        `set_output` needs it.

    Attributes
    ----------
    maps_, theta_, n_maps_, stump_features_, stump_thresholds_, classes_, timings_
        See `MBKLClassifier`; `classes_` exists only if y has classes.
    has_numbers_ : bool
        Whether y was taken for numbers.
    fern_features_, fern_thresholds_, feature_rates_
        See `MBKLClassifier`.
    n_iter_ : int
        Iterations of Step 1.

    See Also
    --------
    MBKLClassifier : The kernel with its classifier.

    Examples
    --------
    >>> from mbkl import MBKernel
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> kernel = MBKernel(random_state=0).fit(X, y)
    >>> bool(kernel.kernel(X[:2]).diagonal().min() > 0.999)
    True
    >>> SVC(kernel=kernel.kernel).fit(X, y).score(X, y) > 0.9
    True
    """

    C_kernel: float = parameter(POSITIVE, default=1.0)
    task: str = parameter(StrOptions({"auto", "classification", "regression"}), default="auto")
    sparse_output: bool = parameter("boolean", default=True)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels, or numbers.
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        self : MBKernel
        """
        X, y, weights = self._validate_rows(X, y, sample_weight)
        progress = self._progress()
        data = self._training_rows(X, y, weights, progress)
        learner = self._draw(data, self._choose(data, progress), progress).merged
        kernel = learner.learn_kernel(self.C_kernel)
        self._set_kernel(learner, kernel)
        self.n_iter_ = kernel.solution.n_iter if kernel.solution else 1
        self.timings_ = progress.finish()
        return self

    @property
    def _accepted_targets(self) -> dict:  # type: ignore[override]
        return {"multi_output": True, "y_numeric": True} if self.task == "regression" else {}

    def _check_targets(self, y: np.ndarray) -> None:
        if self.task == "auto":
            self.has_numbers_ = type_of_target(y, input_name="y") == "continuous"
        else:
            self.has_numbers_ = self.task == "regression"
        if not self.has_numbers_:
            super()._check_targets(y)

    def _numbered(self, y: np.ndarray, weights) -> dict[str, Any]:
        if self.has_numbers_:
            return numbered(y, weights, "squared_error")
        return super()._numbered(y, weights)

    def _settings(self) -> Settings:
        settings = super()._settings()
        return replace(settings, loss="squared_error") if self.has_numbers_ else settings

    def transform(self, X):
        """Return the explicit feature map: sqrt(theta) in one column of each map.

        A stump has two columns, one for each side, and a fern one for every cell.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        phi : sparse matrix or ndarray of shape (n_samples, n_columns)
            phi @ phi.T is the kernel.
        """
        codes, thetas = codes_of(self, X), self.maps_.split(self.theta_)
        families = zip(self.maps_.families, codes, thetas, strict=True)
        blocks = [_explicit_map(*family) for family in families]
        phi = sparse.csr_matrix(sparse.hstack(blocks, format="csr"))
        return phi if self.sparse_output else phi.toarray()

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None
            Names of the input features, where X had none.

        Returns
        -------
        names : ndarray of str
            Such as "petal width > 0.75" and "petal width <= 0.75". Cells of ferns are
            numbered, such as "fern 12 cell 3".
        """
        check_is_fitted(self)
        inputs = _check_feature_names_in(self, input_features)
        names = [
            name for maps in self.maps_.families for name in maps.column_names(inputs, self.levels_)
        ]
        return np.asarray(names, dtype=object)

    def kernel(self, X, Z=None):
        """Return the kernel matrix.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples_X, n_features)
        Z : {array-like, sparse matrix} of shape (n_samples_Z, n_features) or None
            None means X.

        Returns
        -------
        K : ndarray of shape (n_samples_X, n_samples_Z)
            Total weight of the maps on which two samples agree.
        """
        distance = self.distance(X, Z)
        return float(self.theta_.sum()) - distance

    def distance(self, X, Z=None):
        """Return the total weight of the maps on which two samples disagree.

        A metric: for stumps the city-block distance after warping each feature by its
        weights. The distance in the feature space of the kernel is sqrt(2 * distance).

        Parameters
        ----------
        X, Z
            See `kernel`.

        Returns
        -------
        D : ndarray of shape (n_samples_X, n_samples_Z)
        """
        codes = codes_of(self, X)
        others = codes if Z is None else codes_of(self, Z)
        return distance_of(self.maps_, codes, others, self.theta_)

    def warp(self, X):
        """Return psi(X): each used feature on the scale on which the kernel measures it.

        The kernel of stumps (and projections) is 1 - ||psi(x) - psi(z)||_1. That of ferns
        is no such distance.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        psi : ndarray of shape (n_samples, n_used_features)
        """
        codes, thetas, warped = codes_of(self, X), self.maps_.split(self.theta_), []
        for maps, family_codes, theta in zip(self.maps_.families, codes, thetas, strict=True):
            if maps.cells.is_cell.any():
                raise ValueError(
                    "warp needs maps that are stumps or projections; with ferns use "
                    "distance or transform."
                )
            warped.append(maps.cells.warp(family_codes, _slots(maps, theta)).T)
        return np.hstack(warped)


def codes_of(model, X) -> list[DenseCodes]:
    """Return the cell of each row in each group, family by family."""
    rows = rows_to_predict(model.rows_of(X), model.maps_, model.n_jobs)
    return [codes.dense() for codes in model.maps_.codes(rows)]


def distance_of(maps: MapSet, left: list, right: list, theta: np.ndarray) -> np.ndarray:
    """Return the total weight of maps on which left and right rows disagree, by their codes."""
    distance = np.zeros((left[0].n_rows, right[0].n_rows))
    families = zip(maps.families, left, right, maps.split(theta), strict=True)
    for family, left_codes, right_codes, weights in families:
        distance += family.cells.distance(left_codes, right_codes, _slots(family, weights))
    return distance


def _slots(maps, theta: np.ndarray) -> np.ndarray:
    """Return the weights of the slots of a family, zero in slots without a map."""
    weights = np.zeros(maps.cells.n_slots)
    weights[maps.cells.is_map] = theta
    return weights


def _explicit_map(maps, codes: DenseCodes, theta: np.ndarray) -> sparse.csr_matrix:
    """Return sqrt(theta) in one column of each map: that of the row's side or cell."""
    columns, n_columns = maps.cells.active_columns(codes)
    values = np.broadcast_to(np.sqrt(theta), columns.shape)
    indptr = np.arange(codes.n_rows + 1) * columns.shape[1]
    return sparse.csr_matrix(
        (values.ravel(), columns.ravel(), indptr), shape=(codes.n_rows, n_columns)
    )

"""Linear SVM, on the features themselves or on an explicit map of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.extmath import safe_sparse_dot

from mbkl_paper.baselines.base import AT_LEAST_ONE, POSITIVE, Array, CostRival

# Directions in which the rows vary less, relative to the largest, are rounding errors.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class Columns:
    """Features of the training rows, as the solver sees them.

    Parameters
    ----------
    original : ndarray or sparse matrix of shape (n_rows, n_columns)
    rotated : ndarray of shape (n_rows, rank) or None
        The same rows in coordinates of the space that they span, where that has fewer:
        all scalar products are the same, and so is the problem.
    rotation : ndarray of shape (rank, n_rows) or None
        Times `original`, the axes of these coordinates.
    """

    original: NDArray
    rotated: Array | None = None
    rotation: Array | None = None


class LinearSVM(CostRival):
    """Linear SVM with squared hinge loss, solved by liblinear, one-vs-rest.

    The objective of a class is ||w||^2 / 2 + C * sum of max(0, 1 - y (w . x + b))^2, or
    with ||w||_1 in place of the first term; the intercept is regularised as a weight.

    Parameters
    ----------
    feature_map : transformer or None, default=None
        Explicit map whose columns the SVM sees; None means the features themselves.
    C : float, default=1.0
        Cost.
    penalty : {"l2", "l1"}, default="l2"
        "l1" leaves out columns, other ones for each class.
    tol : float, default=1e-4
        Tolerance of liblinear.
    max_iter : int, default=1000
        Largest number of Newton iterations (sweeps for "l1").

    Attributes
    ----------
    feature_map_ : transformer or None
        The fitted map.
    coef_ : ndarray of shape (1 or n_classes, n_columns)
    intercept_ : ndarray of shape (1 or n_classes,)
    n_iter_ : int

    References
    ----------
    R.-E. Fan et al. "LIBLINEAR: A Library for Large Linear Classification." JMLR 2008.

    Examples
    --------
    >>> from mbkl_paper.baselines import HomogeneousKernelMap, LinearSVM
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearSVM(HomogeneousKernelMap("chi2"), C=10).fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints: dict = {
        "feature_map": [HasMethods(["fit", "transform"]), None],
        "C": [POSITIVE],
        "penalty": [StrOptions({"l1", "l2"})],
        "tol": [POSITIVE],
        "max_iter": [AT_LEAST_ONE],
    }

    def __init__(self, feature_map=None, *, C=1.0, penalty="l2", tol=1e-4, max_iter=1000):
        self.feature_map = feature_map
        self.C = C
        self.penalty = penalty
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, X, numbers) -> None:
        super()._learn(X, numbers)
        self.coef_, self.intercept_, self.n_iter_ = self._solution

    def _learn_features(self, X) -> Columns:
        self.feature_map_ = None if self.feature_map is None else clone(self.feature_map).fit(X)
        columns = self._features(X)
        if self.penalty == "l1" or columns.shape[1] <= columns.shape[0]:
            return Columns(columns)
        return _rotate(columns)

    def _features(self, X):
        return X if self.feature_map_ is None else self.feature_map_.transform(X)

    def _solve(self, features: Columns, numbers, C: float, smaller=None):
        """Return coefficients, intercepts and the number of iterations."""
        # The seed shuffles the columns of the l1 problem, whose solution it does not change.
        solver = LinearSVC(
            C=C,
            penalty=self.penalty,
            dual=False,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=0,
        )
        if features.rotation is None:
            coefficients = solver.fit(features.original, numbers).coef_
        else:
            turned = solver.fit(features.rotated, numbers).coef_ @ features.rotation
            coefficients = safe_sparse_dot(turned, features.original)
        return coefficients, solver.intercept_, int(np.max(solver.n_iter_))

    def _evaluate(self, solution, features) -> Array:
        coefficients, intercept, _ = solution
        return safe_sparse_dot(features, coefficients.T, dense_output=True) + intercept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self.feature_map is not None:
            inner = get_tags(self.feature_map).input_tags
            tags.input_tags.sparse = inner.sparse
            tags.input_tags.positive_only = inner.positive_only
        return tags


def _rotate(columns) -> Columns:
    """Return fewer columns with the same scalar products of the rows."""
    gram = safe_sparse_dot(columns, columns.T, dense_output=True)
    squares, directions = eigh(gram)
    kept = squares > _NEGLIGIBLE * max(squares[-1], 1e-300)
    lengths, directions = np.sqrt(squares[kept]), directions[:, kept]
    return Columns(columns, directions * lengths, (directions / lengths).T)

"""What the rivals share: validation, the step from scores to classes, and grids of costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

Array = NDArray[np.float64]

POSITIVE = Interval(Real, 0.0, None, closed="neither")
AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")


def one_vs_rest_labels(numbers: NDArray[np.intp], n_classes: int) -> Array:
    """Return +1 and -1 for each row and problem; two classes are one problem.

    Examples
    --------
    >>> import numpy as np
    >>> one_vs_rest_labels(np.array([0, 1]), 2).ravel()
    array([-1.,  1.])
    """
    targets = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    return np.where(numbers[:, None] == targets, 1.0, -1.0)


def best_class(scores: Array) -> NDArray[np.intp]:
    """Return the number of the class with the best score.

    Examples
    --------
    >>> import numpy as np
    >>> best_class(np.array([[0.5], [-0.5]])), best_class(np.array([[1.0, 3.0, 2.0]]))
    (array([1, 0]), array([1]))
    """
    return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)


class Validated(BaseEstimator):
    """An estimator that says by its tags which rows it takes."""

    _takes_sparse = True
    _takes_negative = True

    def _validate_rows(self, X, y="no_validation", *, reset: bool) -> Any:
        tags = get_tags(self).input_tags
        accepted = {"accept_sparse": "csr" if tags.sparse else False, "dtype": np.float64}
        checked = validate_data(self, X, y, reset=reset, **accepted)
        rows = checked[0] if isinstance(checked, tuple) else checked
        values = rows.data if sparse.issparse(rows) else rows
        if tags.positive_only and values.size and values.min() < 0:
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}, whose kernel is one "
                "of histograms. Scale the features to [0, 1], for example with "
                "mbkl_paper.baselines.Squash()."
            )
        return checked

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.positive_only = not self._takes_negative
        return tags


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Validated):
    """A transformer; children have `_learn`, which returns the number of columns, and `_map`."""

    _n_features_out: int

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None

        Returns
        -------
        self
        """
        self._n_features_out = self._learn(self._validate_rows(X, reset=True))
        return self

    def transform(self, X):
        """Return the map of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        columns : ndarray or sparse matrix of shape (n_samples, n_columns)
        """
        check_is_fitted(self)
        return self._map(self._validate_rows(X, reset=False))

    def _learn(self, X) -> int:
        raise NotImplementedError

    def _map(self, X):
        raise NotImplementedError


class Rival(ClassifierMixin, Validated):
    """A classifier that gives a score to each class.

    Children learn in `_learn`, from rows and numbers of classes, and return scores of
    shape (n_samples, 1 or n_classes) from `_scores`.
    """

    classes_: NDArray

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y):
        """Learn the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self
        """
        X, y = self._validate_rows(X, y, reset=True)
        check_classification_targets(y)
        self._learn(X, self._encode(y))
        return self

    def decision_function(self, X):
        """Return the scores of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, one score: positive means the second class.
        """
        check_is_fitted(self)
        scores = self._scores(self._validate_rows(X, reset=False))
        return scores[:, 0] if self.classes_.size == 2 else scores

    def predict(self, X):
        """Return the class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.classes_[best_class(self._scores(self._validate_rows(X, reset=False)))]

    def _encode(self, y) -> NDArray[np.intp]:
        """Return the numbers of the classes."""
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                "Training needs rows of at least two classes, but y has one class, "
                f"{self.classes_[0]}."
            )
        return numbers

    def _learn(self, X, numbers: NDArray[np.intp]) -> None:
        raise NotImplementedError

    def _scores(self, X) -> Array:
        raise NotImplementedError


class CostRival(Rival):
    """A rival that forms features of the rows, and then solves a problem with a cost C.

    The features do not depend on C, so that a grid of costs shares them.
    """

    C: float

    def _learn(self, X, numbers) -> None:
        self._solution = self._solve(self._learn_features(X), numbers, self.C)

    def _scores(self, X) -> Array:
        return self._evaluate(self._solution, self._features(X))

    def _learn_features(self, X) -> Any:
        """Learn the features from training rows, and return theirs."""
        raise NotImplementedError

    def _features(self, X) -> Any:
        """Return the features of new rows."""
        raise NotImplementedError

    def _solve(self, features, numbers: NDArray[np.intp], C: float, smaller=None) -> Any:
        """Return the solution for a cost; `smaller` is that for a smaller one, if known."""
        raise NotImplementedError

    def _evaluate(self, solution, features) -> Array:
        """Return the scores of rows with these features."""
        raise NotImplementedError

    def _share(self, X) -> Any:
        """Return what all parts of the rows can use."""
        return X

    def _part(self, shared, train, test) -> tuple[Any, Any]:
        """Return the features of training and test rows."""
        return self._learn_features(shared[train]), self._features(shared[test])

    def predict_parts(
        self, X, y, parts: Sequence[tuple[NDArray, NDArray]], costs: Sequence[float]
    ) -> Iterator[NDArray]:
        """Yield the predicted classes of the test rows of each part, one line a cost.

        Whatever does not depend on the cost, or on the part, is computed once. The
        estimator itself does not change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        parts : sequence of pairs of arrays
            Numbers of training and test rows.
        costs : sequence of float

        Yields
        ------
        y : ndarray of shape (n_costs, n_test)
        """
        model = clone(self)
        for C in costs:
            model.set_params(C=C)._validate_params()
        X, y = model._validate_rows(X, y, reset=True)
        shared = model._share(X)
        for train, test in parts:
            numbers = model._encode(y[train])
            features, new = model._part(shared, train, test)
            solution, predicted = None, {}
            for C in sorted(costs):
                solution = model._solve(features, numbers, C, solution)
                predicted[C] = model.classes_[best_class(model._evaluate(solution, new))]
            yield np.stack([predicted[C] for C in costs])

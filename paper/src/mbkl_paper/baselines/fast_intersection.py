"""Scores of an intersection-kernel SVM as sums of functions of one feature each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbkl_paper.baselines.base import Array


@dataclass(frozen=True)
class ExactFunctions:
    """What each feature adds to the scores, piecewise linear between support values.

    h(x) = sum of coefficient * min(x, s) over the support values s of a feature is the
    sum of coefficient * s over those up to x, plus x times the sum of the coefficients
    of the others. A binary search finds the place of x: the cost of a row grows with
    the logarithm of the number of support vectors alone.

    Parameters
    ----------
    knots : ndarray of shape (n_features, n_support)
        Sorted support values.
    constants, slopes : ndarray of shape (n_features, n_support + 1, n_columns)

    References
    ----------
    S. Maji, A. Berg, J. Malik. "Classification using Intersection Kernel Support Vector
    Machines is Efficient." CVPR 2008.

    Examples
    --------
    >>> import numpy as np
    >>> functions = ExactFunctions.of(np.array([[0.2], [0.6]]), np.array([[1.0], [-1.0]]))
    >>> functions.scores(np.array([[0.5]])).round(6)
    array([[-0.3]])
    """

    knots: Array
    constants: Array
    slopes: Array

    @classmethod
    def of(cls, support: Array, coefficients: Array) -> ExactFunctions:
        """Return the functions of support vectors (rows) with coefficients (rows)."""
        order = np.argsort(support, axis=0, kind="stable").T
        knots = np.take_along_axis(support.T, order, axis=1)
        ordered = coefficients[order]
        nothing = np.zeros((len(knots), 1, coefficients.shape[1]))
        constants = np.concatenate([nothing, np.cumsum(ordered * knots[:, :, None], axis=1)], 1)
        slopes = np.concatenate([nothing, np.cumsum(ordered[:, ::-1], axis=1)], 1)[:, ::-1]
        return cls(knots, constants, slopes)

    def scores(self, X: Array) -> Array:
        """Return the sums of the functions at the rows of X."""
        scores = np.zeros((X.shape[0], self.slopes.shape[2]))
        for feature, knots in enumerate(self.knots):
            values = X[:, feature]
            place = np.searchsorted(knots, values, side="right")
            scores += self.constants[feature, place] + values[:, None] * self.slopes[feature, place]
        return scores


@dataclass(frozen=True)
class Tables:
    """The same functions, linear between the ends of equal bins.

    Parameters
    ----------
    values : ndarray of shape (n_features, n_bins + 1, n_columns)
    scale : ndarray of shape (n_features,)
        Bins per unit of each feature. Beyond the last bin the functions are constant.

    Examples
    --------
    >>> import numpy as np
    >>> tables = Tables.of(np.array([[0.2], [0.6]]), np.array([[1.0], [-1.0]]), n_bins=30)
    >>> tables.scores(np.array([[0.5]])).round(6)
    array([[-0.3]])
    """

    values: Array
    scale: Array

    @classmethod
    def of(cls, support: Array, coefficients: Array, n_bins: int) -> Tables:
        """Return the functions at the ends of bins up to the largest support values."""
        highest = support.max(axis=0, initial=0.0)
        highest = np.where(highest > 0, highest, 1.0)
        ends = np.linspace(0.0, highest, n_bins + 1, axis=1)
        values = [
            np.minimum(line[:, None], column) @ coefficients
            for line, column in zip(ends, support.T, strict=True)
        ]
        return cls(np.array(values), n_bins / highest)

    def scores(self, X: Array) -> Array:
        """Return the sums of the functions at the rows of X."""
        n_features, n_ends, n_columns = self.values.shape
        scores = np.zeros((X.shape[0], n_columns))
        for feature in range(n_features):
            place = np.clip(X[:, feature] * self.scale[feature], 0.0, n_ends - 1)
            lower = np.minimum(place.astype(np.intp), n_ends - 2)
            share = (place - lower)[:, None]
            table = self.values[feature]
            scores += table[lower] * (1.0 - share) + table[lower + 1] * share
        return scores

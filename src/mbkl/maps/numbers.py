"""Numeric targets of a regression, shifted and scaled."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import Values, group_totals, levels_of, look_up, to_fixed_point

Array = NDArray[np.float64]

# Largest unit, in median distances from the median, of losses that are not squared.
_FAR = 10.0


@dataclass(frozen=True)
class Numbers:
    """The targets of a regression, of which y is the level: the rank among the distinct targets.

    Like a class, a level is an integer, depends neither on the order of the rows nor on the unit of
    the targets, and is the same for equal rows.
    """

    # (n_levels, n_columns): the targets of each level, scaled so that the loss of the best constant
    # is of the order of one
    values: Array
    loss: str  # "squared_error" or "absolute_error" or "quantile" or "poisson"
    quantile: float
    # (n_columns,): the targets as they were given are shift + unit * values
    shift: Array
    unit: Array

    @classmethod
    def of(
        cls, y: NDArray, weights: Array, loss: str, quantile: float = 0.5
    ) -> tuple[Numbers, NDArray[np.intp]]:
        """Return the targets, and the level of each row.

        >>> numbers, levels = Numbers.of(np.array([3.0, 1.0, 3.0]), np.ones(3), "absolute_error")
        >>> numbers.values.ravel(), levels, numbers.shift, numbers.unit
        (array([-3.,  0.]), array([1, 0, 1]), array([3.]), array([0.66666667]))
        """
        levels, place = levels_of(y.reshape(len(y), -1).astype(np.float64))
        return cls.of_levels(levels, place, weights, loss, quantile), place

    @classmethod
    def of_levels(
        cls, levels: Array, y: Values, weights: Values, loss: str, quantile: float = 0.5
    ) -> Numbers:
        """Return the targets with these levels, which are distinct and sorted.

        y is the level of each row, and may be on a cluster.
        """
        # Scaling by powers of two keeps targets of any size within range, and loses no bits.
        _, exponent = np.frexp(np.abs(levels).max(axis=0))
        levels = np.ldexp(levels, -exponent)
        # Sums by level make a weight of two the same as two rows, to the bit.
        mass = _mass(weights, y, len(levels)).astype(np.float64)
        share = (mass / mass.sum())[:, None]
        is_constant = levels.min(axis=0) == levels.max(axis=0)
        if loss == "poisson":
            mean = (share * levels).sum(axis=0)
            shift, unit = np.zeros_like(mean), np.where(mean > 0, mean, 1.0)
        elif loss == "squared_error":
            shift = np.where(is_constant, levels[0], (share * levels).sum(axis=0))
            unit = np.sqrt((share * (levels - shift) ** 2).sum(axis=0))
        else:
            shift = quantiles_of_levels(levels, y, weights, 0.5)
            distance = abs(levels - shift)
            unit = (share * distance).sum(axis=0)
            # Such a loss is robust: a few outliers must not make all other targets look equal.
            usual = quantiles_of_levels(distance, y, weights, 0.5)
            unit = np.where(usual > 0, np.minimum(unit, _FAR * usual), unit)
        unit = np.where(unit > 0, unit, 1.0)
        values = (levels - shift) / unit
        with np.errstate(under="ignore"):
            shift, unit = np.ldexp(shift, exponent), np.ldexp(unit, exponent)
        return cls(values, loss, quantile, shift, unit)

    def without(self, scores: Values, y: Values, weights: Values) -> tuple[Numbers, Values]:
        """Return the targets less the scores, and the level of each row.

        >>> numbers, y = Numbers.of(np.array([1.0, 3.0]), np.ones(2), "squared_error")
        >>> left, y = numbers.without(np.array([[0.5], [0.5]]), y, np.ones(2))
        >>> left.shift + left.unit * left.values.ravel()[y]
        array([0.5, 2.5])
        """
        levels, place = levels_of(self.of_rows(y) - scores)
        left = Numbers.of_levels(levels, place, weights, self.loss, self.quantile)
        shift, unit = self.shift + self.unit * left.shift, self.unit * left.unit
        return replace(left, shift=shift, unit=unit), place

    def of_rows(self, y: Values) -> Values:
        """Return the targets of rows with these levels."""
        return look_up(self.values, y)

    def quantiles(self, y: Values, weights: Values) -> Array:
        """Return the best constant of a quantile loss."""
        return quantiles_of_levels(self.values, y, weights, self.level)

    @property
    def n_columns(self) -> int:
        return self.values.shape[1]

    @property
    def level(self) -> float:
        """The quantile that the loss stands for."""
        return self.quantile if self.loss == "quantile" else 0.5

    def given(self, weights: Array, intercept: Array) -> tuple[Array, Array]:
        """Return weights and intercepts for the targets as they were given."""
        if self.loss == "poisson":  # scores are logarithms
            return weights, intercept + np.log(self.unit)
        return weights * self.unit, intercept * self.unit + self.shift


def weighted_quantiles(columns: Array, weights: Array, levels: Array) -> Array:
    """Return for each level the weighted quantile of each column.

    >>> columns, weights = np.array([[1.0], [2.0], [9.0]]), np.array([1.0, 1.0, 2.0])
    >>> weighted_quantiles(columns, weights, np.array([0.5, 0.6])).ravel()
    array([2., 9.])
    """
    return _quantiles(columns, to_fixed_point(weights[:, None])[0][:, 0], levels)


def quantiles_of_levels(levels: Array, y: Values, weights: Values, level: float) -> Array:
    """Return the weighted quantile of the targets of all rows, given their levels y.

    >>> quantiles_of_levels(np.array([[1.0], [9.0]]), np.array([0, 1, 1]), np.ones(3), 0.5)
    array([9.])
    """
    return _quantiles(levels, _mass(weights, y, len(levels)), np.array([level]))[0]


def _mass(weights: Values, y: Values, n_levels: int) -> NDArray[np.int64]:
    """Return the total weight of each level, as integers in some unit."""
    return group_totals(to_fixed_point(weights[:, None])[0][:, 0], y, n_levels)


def _quantiles(columns: Array, mass: NDArray[np.int64], levels: Array) -> Array:
    quantiles = np.empty((levels.size, columns.shape[1]))
    for position, column in enumerate(columns.T):
        order = np.argsort(column, kind="stable")
        running = np.cumsum(mass[order])
        # The tolerance is for levels that rounding has made a little too large.
        places = np.searchsorted(running, (levels - 1e-12) * float(running[-1]), side="left")
        quantiles[:, position] = column[order[np.minimum(places, column.size - 1)]]
    return quantiles

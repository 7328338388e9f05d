"""Numbers as targets, on a scale of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import Values, group_totals, levels_of, look_up, to_fixed_point

Array = NDArray[np.float64]

# How many times the median distance the mean distance may be, where losses are not squared.
_FAR = 10.0


@dataclass(frozen=True)
class Numbers:
    """What the levels of y stand for, where y is no class: y is the place of a number among all.

    Like a class, that place is whole, depends neither on the order of the rows nor on the unit of
    the numbers, and is the same for equal rows.
    """

    # (n_levels, n_columns): the numbers of each level, so that the loss of the best constant is
    # of the order of one
    values: Array
    loss: str  # "squared_error" or "absolute_error" or "quantile" or "poisson"
    quantile: float
    # (n_columns,): the numbers as they were given are shift + unit * values
    shift: Array
    unit: Array

    @classmethod
    def of(
        cls, y: NDArray, weights: Array, loss: str, quantile: float = 0.5
    ) -> tuple[Numbers, NDArray[np.intp]]:
        """Return the numbers, and the level of each row.

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
        """Return the numbers of which the level of each row is known, wherever the rows are.

        Levels are all different, and in order.
        """
        # Powers of two keep numbers of any size within range, and their bits.
        _, exponent = np.frexp(np.abs(levels).max(axis=0))
        levels = np.ldexp(levels, -exponent)
        # By level: a weight of two is the same as two rows, to the bit.
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
            away = abs(levels - shift)
            unit = (share * away).sum(axis=0)
            # A few far numbers that such a loss is to ignore must not make all others look equal.
            usual = quantiles_of_levels(away, y, weights, 0.5)
            unit = np.where(usual > 0, np.minimum(unit, _FAR * usual), unit)
        unit = np.where(unit > 0, unit, 1.0)
        values = (levels - shift) / unit
        with np.errstate(under="ignore"):
            shift, unit = np.ldexp(shift, exponent), np.ldexp(unit, exponent)
        return cls(values, loss, quantile, shift, unit)

    def without(self, scores: Values, y: Values, weights: Values) -> tuple[Numbers, Values]:
        """Return what scores leave of the numbers, with the level of each row.

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
        """Return the numbers of rows with these levels."""
        return look_up(self.values, y)

    def quantiles(self, y: Values, weights: Values) -> Array:
        """Return what the loss would predict for all rows alike, if it is one of quantiles."""
        return quantiles_of_levels(self.values, y, weights, self.level)

    @property
    def n_columns(self) -> int:
        return self.values.shape[1]

    @property
    def level(self) -> float:
        """The quantile that the loss stands for."""
        return self.quantile if self.loss == "quantile" else 0.5

    def given(self, weights: Array, intercept: Array) -> tuple[Array, Array]:
        """Return weights and intercepts for the numbers as they were given.

        Counts have scores that are logarithms.
        """
        if self.loss == "poisson":
            return weights, intercept + np.log(self.unit)
        return weights * self.unit, intercept * self.unit + self.shift


def weighted_quantiles(columns: Array, weights: Array, levels: Array) -> Array:
    """Return for each level the smallest number of each column that so much weight is up to.

    >>> columns, weights = np.array([[1.0], [2.0], [9.0]]), np.array([1.0, 1.0, 2.0])
    >>> weighted_quantiles(columns, weights, np.array([0.5, 0.6])).ravel()
    array([2., 9.])
    """
    return _quantiles(columns, to_fixed_point(weights[:, None])[0][:, 0], levels)


def quantiles_of_levels(levels: Array, y: Values, weights: Values, level: float) -> Array:
    """Return the same of rows of which only the level is known, wherever they are.

    >>> quantiles_of_levels(np.array([[1.0], [9.0]]), np.array([0, 1, 1]), np.ones(3), 0.5)
    array([9.])
    """
    return _quantiles(levels, _mass(weights, y, len(levels)), np.array([level]))[0]


def _mass(weights: Values, y: Values, n_levels: int) -> NDArray[np.int64]:
    """Return the weight of each level, in a unit of its own."""
    return group_totals(to_fixed_point(weights[:, None])[0][:, 0], y, n_levels)


def _quantiles(columns: Array, mass: NDArray[np.int64], levels: Array) -> Array:
    found = np.empty((levels.size, columns.shape[1]))
    for position, column in enumerate(columns.T):
        order = np.argsort(column, kind="stable")
        up_to = np.cumsum(mass[order])
        # A level that is met but for rounding is met.
        places = np.searchsorted(up_to, (levels - 1e-12) * float(up_to[-1]), side="left")
        found[:, position] = column[order[np.minimum(places, column.size - 1)]]
    return found

"""Step 0: on which side of each map each class lies.

Alone in an SVM with a free intercept, a map gets the weights (a, -a) on its two sides. Step 0
keeps the sign of a, one per map and class. A fern has a sign in each cell. In a cell of few rows
the sign is little more than chance, so it is shrunk towards zero. Numbers become two classes, above
and below the mean, in which a row weighs as much as its distance from the mean: a map then has the
sign of the difference of the means on its two sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.cells import Operator
from mbkl.engine.arrays import (
    Values,
    exact_sum,
    exact_total,
    namespace,
    to_fixed_point,
    total_of,
)
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.solvers.problem import positive_part

Array = NDArray[np.float64]

# Rows of both classes that are added to every cell of a fern, to shrink its sign.
_PRIOR_ROWS = 2.0


@dataclass(frozen=True)
class Shares:
    """Shares of the classes on the right side of each stump, or in each cell."""

    # (n_columns, n_classes or 1): p / t_p and n / t_n of the paper: the shares of the class, and of
    # all others. Two classes need one column, that of the second class
    own: Values
    rest: Values
    row: Values  # (n_classes or 1,): share of one row of the class plus that of one of the others


def shares_of(rows: LabelledRows) -> Shares:
    """Return the shares of classes or numbers on the sides and in the cells of the maps."""
    return class_shares(rows) if rows.numbers is None else number_shares(rows)


def number_shares(rows: LabelledRows) -> Shares:
    """Return the shares of distances above and below the mean, on the sides and in the cells."""
    assert rows.numbers is not None
    operator, place = rows.operator, rows.operator.to_device
    values, weights = place(rows.numbers.of_rows(rows.y)), place(rows.weights)[:, None]
    distances = weights * (values - exact_sum(weights * values) / exact_sum(weights))

    def share(side: Values) -> Values:
        integers, unit = to_fixed_point(side)
        total = total_of(integers, unit)
        return operator.mass(integers) * unit / namespace(total).where(total > 0, total, 1.0)

    above, below = share(positive_part(distances)), share(positive_part(-distances))
    # A row at the mean distance has a share of 2 / n_rows of either side.
    return Shares(above, below, 0.0 * above[0] + 4.0 / max(rows.n_rows, 1))


def class_shares(rows: LabelledRows) -> Shares:
    """Return the shares of the classes on the sides and in the cells of the maps."""
    operator, y, n_classes, weights = rows.operator, rows.y, rows.n_classes, rows.weights
    classes = operator.to_device(np.arange(n_classes))
    xp = namespace(classes)
    is_own = operator.to_device(y)[:, None] == classes
    integers, unit = to_fixed_point(xp.where(is_own, operator.to_device(weights)[:, None], 0.0))
    inside = operator.mass(integers) * unit
    totals = total_of(integers, unit)
    columns = slice(1, 2) if n_classes == 2 else slice(None)
    others = totals.sum() - totals[columns]
    rest_inside = inside.sum(axis=1)[:, None] - inside[:, columns]
    # A class without rows, as in some folds, has no share anywhere.
    own_total = xp.where(totals[columns] > 0, totals[columns], 1.0)
    rest_total = xp.where(others > 0, others, 1.0)
    own, rest = inside[:, columns] / own_total, rest_inside / rest_total
    # One row has the mean weight, so that the unit of the weights does not matter.
    mean = exact_total(weights) / max(weights.size, 1)
    return Shares(own, rest, mean / own_total + mean / rest_total)


def initial_signs(operator: Operator, shares: Shares, rule: str) -> Array:
    """Return +1, -1 or 0 (useless) for each stump and class, and a number from -1 to 1 for cells.

    See `signs_of_stumps` for the rule, which ferns ignore.
    """
    xp = namespace(shares.own)
    is_cell = operator.to_device(operator.is_cell)[:, None]
    is_map = operator.to_device(operator.spread(operator.is_map))[:, None]
    signs = xp.where(is_cell, signs_of_cells(shares), signs_of_stumps(shares, rule))
    return xp.where(is_map, signs, 0.0)


def signs_of_stumps(shares: Shares, rule: str) -> Array:
    """Return +1, -1 or 0 for each stump and class.

    "balanced" is the solution of the one-map SVM with class-balanced costs: the
    class goes to the side where its share is larger. "median" is the table of the
    paper with its sign corrected: only maps that have the majority of the class on
    one side and that of the rest on the other.

    >>> own, rest = np.array([[0.9], [0.9]]), np.array([[0.6], [0.2]])
    >>> signs_of_stumps(Shares(own, rest, np.ones(1)), "balanced").ravel()
    array([1., 1.])
    >>> signs_of_stumps(Shares(own, rest, np.ones(1)), "median").ravel()
    array([0., 1.])
    """
    if rule == "median":
        xp = namespace(shares.own)
        return xp.where(shares.own >= 0.5, 1.0, 0.0) - xp.where(shares.rest >= 0.5, 1.0, 0.0)
    difference = shares.own - shares.rest
    # Shares are ratios of rounded sums: a difference of a few units in the
    # last place is a tie.
    xp = namespace(difference)
    return xp.where(abs(difference) > 1e-12, xp.sign(difference), 0.0)


def signs_of_cells(shares: Shares) -> Array:
    """Return the shrunk difference of both shares, as a part of their sum, in each cell.

    It is near the sign of the difference in a cell of many rows mostly of one kind, and near zero
    in a cell of few rows.

    >>> own, rest = np.array([[0.001], [0.9]]), np.array([[0.0], [0.0]])
    >>> signs_of_cells(Shares(own, rest, np.array([0.002]))).ravel().round(2)
    array([0.2, 1. ])
    """
    difference = shares.own - shares.rest
    return difference / (shares.own + shares.rest + _PRIOR_ROWS * shares.row)

"""Step 0: on which side of each map each class lies.

Alone in an SVM with a free intercept, a map gets the weights (a, -a) on its two
sides. Step 0 keeps the sign of a, one per map and class; Step 1 finds its size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.fixed_point import to_fixed_point
from mbkl.learn.tables import StumpOperator


def class_shares(
    operator: StumpOperator, y: NDArray[np.intp], n_classes: int, weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of each class, and of the rest, to the right of each map.

    Parameters
    ----------
    operator : StumpOperator
    y : ndarray of shape (n_rows,)
    n_classes : int
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    own, rest : ndarray of shape (n_cells, n_classes or 1)
        p / t_p and n / t_n of the paper. Two classes need one column, that of
        the second class.
    """
    members = np.zeros((y.size, n_classes))
    members[np.arange(y.size), y] = weights
    integers, unit = to_fixed_point(members)
    sums = operator.engine.histogram(operator.codes, integers)
    totals = integers.sum(axis=0)
    # gradient = right - left and right + left = total.
    right = (operator.ladder.gradient(sums) + totals) * (unit / 2.0)
    totals = totals * unit
    columns = slice(1, 2) if n_classes == 2 else slice(None)
    others = totals.sum() - totals[columns]
    rest_right = right.sum(axis=1, keepdims=True) - right[:, columns]
    # A class without rows, as in some folds, has no share anywhere.
    own = right[:, columns] / np.where(totals[columns] > 0, totals[columns], 1.0)
    rest = rest_right / np.where(others > 0, others, 1.0)
    return own, rest


def initial_signs(
    own: NDArray[np.float64], rest: NDArray[np.float64], is_jump: NDArray[np.bool_], rule: str
) -> NDArray[np.int8]:
    """Return +1, -1 or 0 (no use) for each map and class.

    Parameters
    ----------
    own, rest : ndarray of shape (n_cells, n_columns)
        Shares to the right of each map: of the class, and of all others.
    is_jump : ndarray of shape (n_cells,)
        Which entries are maps.
    rule : {"balanced", "median"}
        "balanced" is the solution of the one-map SVM with class-balanced costs:
        the class goes to the side where its share is larger. "median" is the
        table of the paper with its sign corrected: only maps that have the
        majority of the class on one side and that of the rest on the other.

    Examples
    --------
    >>> import numpy as np
    >>> own, rest = np.array([[0.9], [0.9]]), np.array([[0.6], [0.2]])
    >>> initial_signs(own, rest, np.ones(2, dtype=bool), "balanced").ravel()
    array([1, 1], dtype=int8)
    >>> initial_signs(own, rest, np.ones(2, dtype=bool), "median").ravel()
    array([0, 1], dtype=int8)
    """
    if rule == "balanced":
        difference = own - rest
        # Shares are ratios of rounded sums: a difference of a few units in the
        # last place is a tie.
        signs = np.where(np.abs(difference) > 1e-12, np.sign(difference), 0.0)
    else:
        signs = (own >= 0.5).astype(np.int8) - (rest >= 0.5).astype(np.int8)
    return np.where(is_jump[:, None], signs, 0).astype(np.int8)

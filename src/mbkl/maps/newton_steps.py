"""The tables of grown ferns: damped Newton steps, cell by cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def newton_steps(sums: Array, held_out: Array, ridge: float) -> tuple[Array, Array]:
    """Return a Newton step for each cell, shrunk towards that of the cell it was divided from.

    A cell of few rows falls back on the one above it, and so on to the mean of all rows: this
    is what makes deep ferns safe.

    Parameters
    ----------
    sums, held_out : ndarray of shape (n_cells, n_columns, 2)
        Gradients and curvatures of rows that take part, and of those that do not.
    ridge : float

    Returns
    -------
    steps : ndarray of shape (n_cells, n_columns)
    gains : ndarray of shape (depth + 1,)
        What each level gains on the latter.
    """
    step = np.zeros((1, sums.shape[1]))
    gains = []
    for own, other in zip(_by_level(sums), _by_level(held_out), strict=True):
        step = np.repeat(step, len(own) // len(step), axis=0)
        change = -(own[..., 0] + own[..., 1] * step) / (own[..., 1] + ridge)
        gains.append(float(-(change * (other[..., 0] + other[..., 1] * step)).sum()))
        step = step + change
    return step, np.array(gains)


def _by_level(sums: NDArray) -> list[NDArray]:
    """Return the sums of the cells of every level, from all rows together to single cells."""
    levels = [sums]
    while len(levels[0]) > 1:
        levels.insert(0, levels[0][0::2] + levels[0][1::2])
    return levels

"""Orders of the levels of categories: what ferns may ask about, beside random halves of them.

A random half of the levels parts those that tell the same, such as "good" and "very good", as often
as any others. So levels are put in the order of the mean label of their rows, along the direction
in which these differ most where there are several classes, and stumps may cut that order in two. A
row must not see itself in it: in the sample, its level lies where the rows of other folds say.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.rows import Sample
from mbkl.engine.twins import leading_direction, level_cells

Array = NDArray[np.float64]

_FOLDS = 5
# Rows with the mean label that are added to every level.
_PRIOR_ROWS = 5.0
# Two levels have one order.
_FEWEST_LEVELS = 3


def ordered_columns(n_levels: NDArray[np.int64] | None) -> NDArray[np.intp]:
    """Return the categories whose levels are put in order."""
    none = np.empty(0, np.intp)
    return none if n_levels is None else np.flatnonzero(n_levels >= _FEWEST_LEVELS)


def steps_of_levels(
    sample: Sample, feature: int, n_levels: int, labels: Array
) -> tuple[Array, Array]:
    """Return how far off the mean the label of each row's level is, and the places of all levels.

    That of a row is by the rows of the other folds; for the places see `LevelCuts`.

    >>> X = np.repeat([0.0, 1.0, 2.0], 5)[:, None]
    >>> labels = np.repeat([1.0, -1.0, 1.0], 5)[:, None]
    >>> sample = Sample(X, np.zeros(15, int), np.ones(15))
    >>> steps_of_levels(sample, 0, 3, labels)[1].round(2).tolist()
    [0.67, 1.0, 0.0, 1.0, 0.67]
    """
    cells, n_cells = level_cells(sample.X[:, feature], n_levels), n_levels + 2
    weights = sample.weights / sample.weights.mean()
    moved = (labels - (weights[:, None] * labels).sum(axis=0) / weights.sum()) * weights[:, None]
    folds = np.arange(len(cells)) % _FOLDS  # their order is random

    def by_fold(values: Array) -> Array:
        sums = np.zeros(n_cells * _FOLDS)
        np.add.at(sums, cells * _FOLDS + folds, values)
        return sums.reshape(n_cells, _FOLDS)

    mass = by_fold(weights)
    total = mass.sum(axis=1, keepdims=True)
    means = [by_fold(column).sum(axis=1) for column in moved.T]
    means = np.column_stack(means) / (total + _PRIOR_ROWS)
    sums = by_fold((moved * leading_direction(means, total)).sum(axis=1))
    of_all = sums.sum(axis=1, keepdims=True)
    by_others = (of_all - sums) / (total - mass + _PRIOR_ROWS)
    steps = (of_all / (total + _PRIOR_ROWS))[:, 0]
    return by_others[cells, folds], _places(steps, total[:, 0])


def _places(steps: Array, mass: Array) -> Array:
    """Return which share of the cuts lies below each level.

    As for numbers, half of the cuts are uniform and half from the quantiles.
    """
    seen = mass > 0
    values, number = np.unique(steps[seen], return_inverse=True)
    if values.size < 2:
        return np.zeros(steps.size)
    below = np.cumsum(np.bincount(number, mass[seen]))[:-1]
    by_rank = np.append(0.0, below / below[-1])
    by_range = (values - values[0]) / (values[-1] - values[0])
    return np.interp(steps, values, (by_rank + by_range) / 2.0)

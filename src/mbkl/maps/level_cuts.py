"""Orders of the levels of categories, which stumps of ferns may cut, beside random halves.

A random half of the levels separates similar ones, such as "good" and "very good", as often as any
others. So levels are sorted by the mean label of their rows (target encoding), with several classes
along the leading direction of these means, and stumps may cut that order in two. To avoid leakage,
the value of a row in the sample is computed from the rows of other folds.
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
# Two levels have only one order.
_FEWEST_LEVELS = 3


def ordered_columns(n_levels: NDArray[np.int64] | None) -> NDArray[np.intp]:
    """Return the categories whose levels are sorted."""
    none = np.empty(0, np.intp)
    return none if n_levels is None else np.flatnonzero(n_levels >= _FEWEST_LEVELS)


def steps_of_levels(
    sample: Sample, feature: int, n_levels: int, labels: Array
) -> tuple[Array, Array]:
    """Return the target encoding of each row, by the rows of other folds, and that of all levels.

    The second are the places of `LevelCuts`, by all rows.

    >>> X = np.repeat([0.0, 1.0, 2.0], 5)[:, None]
    >>> labels = np.repeat([1.0, -1.0, 1.0], 5)[:, None]
    >>> sample = Sample(X, np.zeros(15, int), np.ones(15))
    >>> steps_of_levels(sample, 0, 3, labels)[1].round(2).tolist()
    [0.67, 1.0, 0.0, 1.0, 0.67]
    """
    cells, n_cells = level_cells(sample.X[:, feature], n_levels), n_levels + 2
    weights = sample.weights / sample.weights.mean()
    centred = (labels - (weights[:, None] * labels).sum(axis=0) / weights.sum()) * weights[:, None]
    folds = np.arange(len(cells)) % _FOLDS  # the order of the rows is random

    def by_fold(values: Array) -> Array:
        sums = np.zeros(n_cells * _FOLDS)
        np.add.at(sums, cells * _FOLDS + folds, values)
        return sums.reshape(n_cells, _FOLDS)

    mass = by_fold(weights)
    total = mass.sum(axis=1, keepdims=True)
    means = [by_fold(column).sum(axis=1) for column in centred.T]
    means = np.column_stack(means) / (total + _PRIOR_ROWS)
    sums = by_fold((centred * leading_direction(means, total)).sum(axis=1))
    all_folds = sums.sum(axis=1, keepdims=True)
    other_folds = (all_folds - sums) / (total - mass + _PRIOR_ROWS)
    steps = (all_folds / (total + _PRIOR_ROWS))[:, 0]
    return other_folds[cells, folds], _places(steps, total[:, 0])


def _places(steps: Array, mass: Array) -> Array:
    """Return the share of the cuts below each level.

    As for numeric features, half of the cuts are uniform and half are quantiles.
    """
    seen = mass > 0
    values, number = np.unique(steps[seen], return_inverse=True)
    if values.size < 2:
        return np.zeros(steps.size)
    below = np.cumsum(np.bincount(number, mass[seen]))[:-1]
    by_rank = np.append(0.0, below / below[-1])
    by_range = (values - values[0]) / (values[-1] - values[0])
    return np.interp(steps, values, (by_rank + by_range) / 2.0)

"""How far numbers are from their predictions, by place: intervals are wide where that is far.

A ridge regression with some of the maps learns the logarithms of the sizes of residuals of rows
that took no part. As every row is predicted by all others in closed form, its own residual has no
part in the spread that it is divided by, and intervals of such quotients cover as they should.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import limits
from mbkl.learn.algorithm import REFERENCE_ROWS, Kernel, Learner
from mbkl.learn.around_mean import left_out
from mbkl.learn.labelled_rows import SharedGram
from mbkl.maps.numbers import Numbers, weighted_quantiles

Array = NDArray[np.float64]

# Costs of a row that are tried, powers of the spread, and the coverage whose width decides.
_COSTS = (0.1, 0.3, 1.0)
_POWERS = (0.25, 0.5, 0.75, 1.0)
_COVERAGE = 0.9
# A logarithm of a residual near zero would be large beside all others: such ones count as this
# quantile of their sizes.
_SMALLEST = 0.1
# Weights of the maps that are enough.
_MOST_WEIGHTS = 20_000
_FEWEST_ROWS = 100


@dataclass(frozen=True)
class Spread:
    """Logarithm of the spread, as weights of the first maps.

    Parameters
    ----------
    weights : ndarray of shape (n_weights, n_columns)
    intercept : ndarray of shape (n_columns,)
    """

    weights: Array
    intercept: Array

    @classmethod
    def constant(cls, n_columns: int) -> Spread:
        """Return a spread of one everywhere."""
        return cls(np.zeros((0, n_columns)), np.zeros(n_columns))


def learn_spread(learner: Learner, kernel: Kernel, residuals: Array) -> tuple[Spread, Array]:
    """Return the spread whose intervals are narrowest, and that of each row.

    Parameters
    ----------
    learner : Learner
        On few rows, in the order of their own.
    kernel : Kernel
    residuals : ndarray of shape (n_rows, n_columns)
        Of the rows, by models that did not see them.

    Returns
    -------
    spread : Spread
    of_rows : ndarray of shape (n_rows, n_columns)
        One in the mean.
    """
    rows, n_columns = learner.rows, residuals.shape[1]
    nothing = Spread.constant(n_columns), np.ones_like(residuals)
    if rows.n_rows < _FEWEST_ROWS or not kernel.theta.any() or not residuals.any(axis=0).all():
        return nothing
    sizes = np.abs(residuals)
    sizes = np.log(np.maximum(sizes, _smallest(sizes, rows.weights)))
    numbers, y = Numbers.of(sizes, rows.weights, "squared_error")
    rows = replace(rows, y=y, n_classes=len(numbers.values), numbers=numbers, gram=None)
    settings = replace(learner.settings, loss="squared_error", theta_power=0.5)
    learner = Learner(rows, learner.prior, settings, learner.progress)
    own = _first_maps(learner, kernel)
    few = _with_gram_of(learner.take(rows.first(min(rows.n_rows, limits.ROWS_OF_A_COST))), own)
    C, scores = _best(few, own)
    solution = few.learn_classifier(own, C)
    # Other rows took no part.
    scores = np.concatenate([scores, learner.scores(solution)[len(scores) :]])
    weights, intercept = numbers.given(solution.weights, solution.intercept)
    logarithms = scores * numbers.unit + numbers.shift
    power = _best_power(residuals, logarithms, rows.weights)
    of_rows = np.exp(power * logarithms)
    mean = np.average(of_rows, axis=0, weights=rows.weights)
    kept = learner.rows.operator.spread(own.theta > 0)
    return Spread(power * weights[kept], power * intercept - np.log(mean)), of_rows / mean


def _smallest(sizes: Array, weights: Array) -> Array:
    """Return the smallest sizes that count, of each column."""
    found = weighted_quantiles(sizes, weights, np.array([_SMALLEST]))
    return np.where(found > 0, found, sizes.max(axis=0) * _SMALLEST)


def _first_maps(learner: Learner, kernel: Kernel) -> Kernel:
    """Return the kernel of the first maps, with stumps and ferns in proportion."""
    operator = learner.rows.operator
    n_weights = operator.collect(np.ones(operator.n_columns))
    has_cells = operator.collect(operator.is_cell.astype(float)) > 0
    kept = np.cumsum(np.where(kernel.theta > 0, n_weights, 0.0)) <= _MOST_WEIGHTS
    theta = np.where(kept, kernel.theta, 0.0)
    for kind in (has_cells, ~has_cells):
        if theta[kind].any():
            theta[kind] *= kernel.theta[kind].sum() / theta[kind].sum()
    return Kernel(theta / theta.sum()) if theta.any() else kernel


def _with_gram_of(learner: Learner, kernel: Kernel) -> Learner:
    """Return the learner with the kernel matrix of some of the maps."""
    gram = learner.rows.operator.gram(learner.weights_of(kernel))
    shared = SharedGram(lambda: gram, np.arange(len(gram)))
    return replace(learner, rows=replace(learner.rows, gram=shared))


def _best(learner: Learner, kernel: Kernel) -> tuple[float, Array]:
    """Return the cost with which rows are predicted best by all others, and these scores."""
    rows = learner.rows
    assert rows.numbers is not None
    targets = rows.numbers.of_rows(rows.y)
    costs = [cost * rows.n_rows / REFERENCE_ROWS for cost in _COSTS]
    scores = [left_out(learner, kernel, C) for C in costs]
    errors = [np.average((targets - each) ** 2, axis=0, weights=rows.weights) for each in scores]
    best = int(np.argmin([error.sum() for error in errors]))
    return costs[best], scores[best]


def _best_power(residuals: Array, logarithms: Array, weights: Array) -> Array:
    """Return the power of the spread with the narrowest intervals, of each column."""

    def widths(power: float) -> Array:
        spread = np.exp(power * logarithms)
        levels = np.array([1.0 - _COVERAGE, 1.0 + _COVERAGE]) / 2.0
        lower, upper = weighted_quantiles(residuals / spread, weights, levels)
        return (upper - lower) * np.average(spread, axis=0, weights=weights)

    powers = np.array([0.0, *_POWERS])
    return powers[np.argmin([widths(power) for power in powers], axis=0)]

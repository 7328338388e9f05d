"""How far off rows are that took no part in learning: for intervals, and for the cost.

With a squared error and the kernel matrix of few rows, every row is predicted by all others in
closed form. Else the rows are divided into folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import limits
from mbkl.engine.arrays import exact_sum, exact_total
from mbkl.learn.algorithm import Kernel, Learner
from mbkl.learn.around_mean import can_leave_out, left_out
from mbkl.learn.calibration import HeldOut, held_out_scores
from mbkl.maps.numbers import Numbers, weighted_quantiles
from mbkl.solvers.margins import Margins

Array = NDArray[np.float64]

# Costs that are tried are this factor apart, and so many times at most; the solver need not be
# more accurate than this for it.
_STEP, _MOST_STEPS, _ROUGHLY = 3.0, 5, 0.01

# Standard errors of a share of rows that chance may explain.
_BY_CHANCE = 2.0

# Quantiles that are kept of residuals, and where exponents end.
_MOST_VALUES, _LARGEST_SCORE = 2_000, 60.0


def held_out(learner: Learner, kernel: Kernel, C_kernel: float, C: float) -> HeldOut:
    """Return scores of rows that took no part."""
    rows = learner.rows
    if learner.settings.loss == "squared_error" and can_leave_out(learner, kernel):
        scores = left_out(learner, kernel, C)
        return HeldOut(scores, rows.y, rows.weights, np.arange(rows.n_rows))
    return held_out_scores(learner, C_kernel, C)


def best_cost(learner: Learner, C_kernel: float, C: float) -> float:
    """Return the cost with the smallest loss of held-out rows, beginning at the given one."""
    tried: dict[int, float] = {}
    settings = replace(learner.settings, tol=max(learner.settings.tol, _ROUGHLY))
    n_rows = min(learner.rows.n_rows, limits.ROWS_OF_A_COST)
    few = replace(learner, settings=settings).take(learner.rows.first(n_rows)).with_gram()
    # The cost of a row is the same for any number of them.
    few_C = C * n_rows / learner.rows.n_rows

    def loss(step: int) -> float:
        if step not in tried:
            inside = abs(step) <= _MOST_STEPS
            tried[step] = _loss_of(few, C_kernel, few_C * _STEP**step) if inside else np.inf
        return tried[step]

    best = 0
    for direction in (-1, 1):
        while loss(best + direction) < loss(best):
            best += direction
    return C * _STEP**best


def _loss_of(learner: Learner, C_kernel: float, C: float) -> float:
    """Return the loss of rows by models that did not see them."""
    found, numbers = held_out_scores(learner, C_kernel, C), learner.rows.numbers
    assert numbers is not None
    return mean_loss(numbers, found.y, found.scores, found.weights)


def mean_loss(numbers: Numbers, y: NDArray[np.intp], scores: Array, weights: Array) -> float:
    """Return the mean loss of numbers, for scores."""
    costs = weights[:, None]
    margins = Margins.of_numbers(numbers.values[y], costs, numbers.loss, numbers.quantile)
    return float(margins.exact_value(scores).mean()) / exact_total(weights)


def best_share(numbers: Numbers | None, drawn: HeldOut, grown: Array) -> float:
    """Return the share of the second scores in a mixture that has the smallest loss."""
    assert numbers is not None
    shares = np.linspace(0.0, 1.0, 11)
    losses = [
        mean_loss(numbers, drawn.y, (1.0 - share) * drawn.scores + share * grown, drawn.weights)
        for share in shares
    ]
    return float(shares[int(np.argmin(losses))])


def sure_shift(numbers: Numbers, y: NDArray[np.intp], scores: Array, weights: Array) -> Array:
    """Return what to add to scores of a quantile, for as many held-out rows below as it says.

    They are moved only as far as chance does not explain: few rows are predicted by models of
    fewer, which are further off.

    Examples
    --------
    >>> y = np.linspace(-1.0, 1.0, 401)
    >>> numbers, levels = Numbers.of(y, np.ones(401), "quantile", 0.9)
    >>> shift = sure_shift(numbers, levels, np.zeros((401, 1)), np.ones(401))
    >>> round(float((numbers.values <= shift).mean()), 2)
    0.87
    """
    away, level = numbers.values[y] - scores, numbers.level
    below = exact_sum(weights[:, None] * (away <= 0)) / exact_total(weights)
    by_chance = _BY_CHANCE * np.sqrt(level * (1.0 - level) / effective_rows(weights))
    wanted = np.clip(below, level - by_chance, level + by_chance)
    shift = np.zeros(scores.shape[1])
    for column in np.flatnonzero(wanted != below):
        shift[column] = weighted_quantiles(away[:, [column]], weights, wanted[[column]])[0, 0]
    return shift


def distances(numbers: Numbers, y: NDArray[np.intp], scores: Array) -> Array:
    """Return how far numbers are from predictions, in the unit of the targets.

    Those of counts are divided by the square root of the prediction.
    """
    if numbers.loss != "poisson":
        return (numbers.values[y] - scores) * numbers.unit
    means = np.exp(np.minimum(scores, _LARGEST_SCORE))
    return (numbers.values[y] - means) / np.sqrt(means) * np.sqrt(numbers.unit)


def effective_rows(weights: Array) -> float:
    """Return how many rows of equal weight tell as much."""
    return exact_total(weights) ** 2 / exact_total(weights**2)


@dataclass(frozen=True)
class Residuals:
    """How numbers are distributed around predictions of models that did not see them.

    Parameters
    ----------
    values : ndarray of shape (n_values, n_columns)
        Increasing quantiles of the residuals, at even levels, divided by the spread where they
        are.
    n_rows : float
        How many rows they are of.
    """

    values: Array
    n_rows: float

    @classmethod
    def of(cls, away: Array, weights: Array) -> Residuals:
        """Return the residuals of rows.

        Parameters
        ----------
        away : ndarray of shape (n_rows, n_columns)
            See `distances`.
        weights : ndarray of shape (n_rows,)
        """
        if not len(away):
            return cls(np.zeros((1, away.shape[1])), 0.0)
        n_values = min(len(away), _MOST_VALUES)
        levels = (np.arange(n_values) + 1.0) / n_values
        return cls(weighted_quantiles(away, weights, levels), effective_rows(weights))

    def bounds(self, coverage: float) -> tuple[Array, Array]:
        """Return what to add for the lower and the upper bound.

        Of n rows and a new one, each is as likely to have any place in their order: the levels are
        counted among n + 1.

        Examples
        --------
        >>> residuals = Residuals(np.arange(-9.0, 10.0)[:, None], 19)
        >>> residuals.bounds(0.9)
        (array([-9.]), array([9.]))
        >>> residuals.bounds(0.95)
        (array([-inf]), array([inf]))
        """
        return -self._upper(-self.values[::-1], coverage), self._upper(self.values, coverage)

    def _upper(self, values: Array, coverage: float) -> Array:
        level = (1.0 + coverage) / 2.0 * (1.0 + 1.0 / max(self.n_rows, 1e-9))
        if level > 1.0 + 1e-12:
            return np.full(values.shape[1], np.inf)
        place = int(np.ceil(level * len(values) - 1e-9)) - 1
        return values[min(place, len(values) - 1)]

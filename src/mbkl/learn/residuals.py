"""Residuals of held-out rows with numbers: for quantiles, intervals, and the choice of the cost.

With a squared error and the kernel matrix of few rows, leave-one-out predictions have a closed
form. Otherwise the rows are divided into folds.

Few rows are beyond a quantile near 0 or 1, and they alone say little about how it varies with the
features; all rows say how the mean varies, and most quantiles vary with it. So Step 2 is run twice
with one kernel (`AroundMean`): for the mean, then for the quantile of the residuals. Both give
weights of the same maps, which are added.

Intervals are wide where residuals are large (`Spread`). A ridge regression with some of the maps
learns the logarithms of the absolute residuals. Since the spread of a row is a leave-one-out
prediction, too, its own residual has no influence on it, and the intervals keep their coverage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import limits
from mbkl.engine.arrays import exact_sum, exact_total
from mbkl.learn.algorithm import REFERENCE_ROWS, Kernel, Learner
from mbkl.learn.calibration import HeldOut, held_out_scores
from mbkl.maps.numbers import Numbers, weighted_quantiles
from mbkl.solvers.problem import Margins, Solution

Array = NDArray[np.float64]

# The search for a cost: factor between costs, most steps from the first, tolerance of the solver.
_STEP, _MOST_STEPS, _ROUGH_TOL = 3.0, 5, 0.01

# Shares of rows that differ by fewer standard errors may differ by chance.
_STANDARD_ERRORS = 2.0

# Most quantiles of the residuals that are kept, and the largest exponent.
_MOST_VALUES, _LARGEST_SCORE = 2_000, 60.0
# Choice of the spread: costs of a row, powers of the spread, and the coverage of the intervals
# whose width decides.
_COSTS = (0.1, 0.3, 1.0)
_POWERS = (0.25, 0.5, 0.75, 1.0)
_COVERAGE = 0.9
# Absolute residuals below this quantile are raised to it: their logarithms would be outliers.
_LOW_QUANTILE = 0.1
# The spread is learned with the first maps, up to so many weights.
MOST_WEIGHTS = 20_000


@dataclass
class AroundMean(Learner):
    """The steps, where Step 2 fits a ridge regression and a quantile of its residuals."""

    row_cost: float = 1.0  # cost of a row in the ridge regression

    def learn_classifier(
        self, kernel: Kernel, C: float, start: Solution | None = None, **options
    ) -> Solution:
        """Run Step 2 for the mean, then for the quantile; see `Learner`."""
        rows, numbers = self.rows, self.rows.numbers
        assert numbers is not None
        ridge_cost = self.row_cost * rows.n_rows / REFERENCE_ROWS
        settings = replace(self.settings, loss="squared_error")
        means = Learner(rows, self.prior, settings, self.progress)
        mean = means.learn_classifier(kernel, ridge_cost, n_left_out=rows.n_rows)
        if mean.left_out is None:
            return super().learn_classifier(kernel, C, start, **options)
        residuals = numbers.of_rows(rows.y) - mean.left_out
        numbers, y = Numbers.of(residuals, rows.weights, numbers.loss, numbers.quantile)
        rows = replace(rows, y=y, n_classes=len(numbers.values), numbers=numbers)
        quantiles = Learner(rows, self.prior, self.settings, self.progress)
        solution = quantiles.learn_classifier(kernel, C, **options)
        weights, intercept = numbers.given(solution.weights, solution.intercept)
        return replace(
            solution, weights=mean.weights + weights, intercept=mean.intercept + intercept
        )


# ------------------------------------------------------------- residuals


def held_out_predictions(
    learner: Learner, solution: Solution, C_kernel: float, C: float
) -> HeldOut:
    """Return the leave-one-out scores of Step 2, or those of folds where it has none."""
    if solution.left_out is None:
        return held_out_scores(learner, C_kernel, C)
    rows = np.arange(len(solution.left_out))
    return HeldOut(solution.left_out, learner.rows.y[rows], learner.rows.weights[rows], rows)


def best_cost(learner: Learner, C_kernel: float, C: float) -> float:
    """Return the cost with the smallest loss of held-out rows, searched from the given one."""
    tried: dict[int, float] = {}
    settings = replace(learner.settings, tol=max(learner.settings.tol, _ROUGH_TOL))
    n_rows = min(learner.rows.n_rows, limits.ROWS_OF_A_COST)
    few = replace(learner, settings=settings).take(learner.rows.first(n_rows)).with_gram()
    # C grows with the number of rows, so that the cost of each row stays the same.
    few_C = C * n_rows / learner.rows.n_rows

    def loss(step: int) -> float:
        if step not in tried:
            is_allowed = abs(step) <= _MOST_STEPS
            tried[step] = _loss_of(few, C_kernel, few_C * _STEP**step) if is_allowed else np.inf
        return tried[step]

    best = 0
    for direction in (-1, 1):
        while loss(best + direction) < loss(best):
            best += direction
    return C * _STEP**best


def _loss_of(learner: Learner, C_kernel: float, C: float) -> float:
    """Return the cross-validated loss of the rows."""
    held_out, numbers = held_out_scores(learner, C_kernel, C), learner.rows.numbers
    assert numbers is not None
    return mean_loss(numbers, held_out.y, held_out.scores, held_out.weights)


def mean_loss(numbers: Numbers, y: NDArray[np.intp], scores: Array, weights: Array) -> float:
    """Return the mean loss of scores, for numbers given by their levels."""
    costs = weights[:, None]
    margins = Margins.of_numbers(numbers.values[y], costs, numbers.loss, numbers.quantile)
    return float(margins.exact_value(scores).mean()) / exact_total(weights)


def best_share(numbers: Numbers | None, drawn: HeldOut, grown: Array) -> float:
    """Return the share of grown ferns in the mixture with the smallest loss."""
    assert numbers is not None
    shares = np.linspace(0.0, 1.0, 11)
    losses = [
        mean_loss(numbers, drawn.y, (1.0 - share) * drawn.scores + share * grown, drawn.weights)
        for share in shares
    ]
    return float(shares[int(np.argmin(losses))])


def sure_shift(numbers: Numbers, y: NDArray[np.intp], scores: Array, weights: Array) -> Array:
    """Return the shift of scores that puts the share of held-out rows below near the quantile.

    It only corrects a deviation beyond chance, to the nearest share that chance may explain: models
    of held-out rows are fitted to fewer rows, and are off by more than that of all rows.

    >>> y = np.linspace(-1.0, 1.0, 401)
    >>> numbers, levels = Numbers.of(y, np.ones(401), "quantile", 0.9)
    >>> shift = sure_shift(numbers, levels, np.zeros((401, 1)), np.ones(401))
    >>> round(float((numbers.values <= shift).mean()), 2)
    0.87
    """
    errors, level = numbers.values[y] - scores, numbers.level
    below = exact_sum(weights[:, None] * (errors <= 0)) / exact_total(weights)
    by_chance = _STANDARD_ERRORS * np.sqrt(level * (1.0 - level) / effective_rows(weights))
    wanted = np.clip(below, level - by_chance, level + by_chance)
    shift = np.zeros(scores.shape[1])
    for column in np.flatnonzero(wanted != below):
        shift[column] = weighted_quantiles(errors[:, [column]], weights, wanted[[column]])[0, 0]
    return shift


def distances(numbers: Numbers, y: NDArray[np.intp], scores: Array) -> Array:
    """Return the errors of predictions, in the unit of the targets.

    Errors of counts are divided by the square root of the prediction.
    """
    if numbers.loss != "poisson":
        return (numbers.values[y] - scores) * numbers.unit
    means = np.exp(np.minimum(scores, _LARGEST_SCORE))
    return (numbers.values[y] - means) / np.sqrt(means) * np.sqrt(numbers.unit)


def effective_rows(weights: Array) -> float:
    """Return the effective sample size: rows of equal weight that give the same precision."""
    _, exponent = np.frexp(weights.max(initial=0.0))
    weights = np.ldexp(weights, -exponent)  # squares of tiny weights would be zero
    return exact_total(weights) ** 2 / exact_total(weights**2)


@dataclass(frozen=True)
class Residuals:
    """Distribution of numbers around the predictions of models that were fitted without them."""

    # (n_values, n_columns): increasing quantiles of the residuals, at even levels, each residual
    # divided by the spread of its row
    values: Array
    n_rows: float  # effective number of held-out rows

    @classmethod
    def of(cls, errors: Array, weights: Array) -> Residuals:
        """Return the distribution of the errors of rows, from `distances`."""
        if not len(errors):
            return cls(np.zeros((1, errors.shape[1])), 0.0)
        n_values = min(len(errors), _MOST_VALUES)
        levels = (np.arange(n_values) + 1.0) / n_values
        return cls(weighted_quantiles(errors, weights, levels), effective_rows(weights))

    def bounds(self, coverage: float) -> tuple[Array, Array]:
        """Return the residuals to add to a prediction for its lower and upper bound.

        Among n rows and a new one, the new residual has any rank with the same probability: levels
        are corrected for n + 1 rows, as in conformal prediction.

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


# ------------------------------------------------------------- spread


@dataclass(frozen=True)
class Spread:
    """A model of the logarithm of the spread: weights of the first maps, and an intercept."""

    weights: Array  # (n_weights, n_columns)
    intercept: Array  # (n_columns,)

    @classmethod
    def constant(cls, n_columns: int) -> Spread:
        """Return a spread of one everywhere."""
        return cls(np.zeros((0, n_columns)), np.zeros(n_columns))


def learn_spread(learner: Learner, kernel: Kernel, residuals: Array) -> tuple[Spread, Array]:
    """Return the spread with the narrowest intervals, and its values at the rows, one in the mean.

    The learner has few rows, in the order of their hashes, and residuals are those of held-out
    predictions.
    """
    rows, n_columns = learner.rows, residuals.shape[1]
    is_learnable = kernel.theta.any() and residuals.any(axis=0).all()
    if rows.n_rows < limits.FEWEST_ROWS_OF_A_SPREAD or not is_learnable:
        return Spread.constant(n_columns), np.ones_like(residuals)
    sizes = np.abs(residuals)
    log_sizes = np.log(np.maximum(sizes, _smallest(sizes, rows.weights)))
    numbers, y = Numbers.of(log_sizes, rows.weights, "squared_error")
    rows = replace(rows, y=y, n_classes=len(numbers.values), numbers=numbers, gram=None)
    settings = replace(learner.settings, loss="squared_error", theta_power=0.5)
    learner = Learner(rows, learner.prior, settings, learner.progress)
    kernel = _first_maps(learner, kernel)
    few = learner.take(rows.first(min(rows.n_rows, limits.ROWS_OF_A_COST))).with_gram(kernel)
    solution = _best_ridge(few, kernel)
    # The first rows have leave-one-out scores; the ridge was fitted without the others.
    others = learner.scores(solution)[few.rows.n_rows :]
    scores = np.concatenate([solution.left_out, others])
    weights, intercept = numbers.given(solution.weights, solution.intercept)
    logarithms = scores * numbers.unit + numbers.shift
    power = _best_power(residuals, logarithms, rows.weights)
    row_spreads = np.exp(power * logarithms)
    mean = np.average(row_spreads, axis=0, weights=rows.weights)
    kept = learner.rows.operator.spread(kernel.theta > 0)
    return Spread(power * weights[kept], power * intercept - np.log(mean)), row_spreads / mean


def _smallest(sizes: Array, weights: Array) -> Array:
    """Return the size of each column to which smaller ones are raised."""
    low = weighted_quantiles(sizes, weights, np.array([_LOW_QUANTILE]))
    return np.where(low > 0, low, sizes.max(axis=0) * _LOW_QUANTILE)


def _first_maps(learner: Learner, kernel: Kernel) -> Kernel:
    """Return the kernel of the first maps, with the shares of stumps and ferns unchanged."""
    operator = learner.rows.operator
    n_weights = operator.collect(np.ones(operator.n_columns))
    has_cells = operator.collect(operator.is_cell.astype(float)) > 0
    kept = np.cumsum(np.where(kernel.theta > 0, n_weights, 0.0)) <= MOST_WEIGHTS
    theta = np.where(kept, kernel.theta, 0.0)
    for kind in (has_cells, ~has_cells):
        if theta[kind].any():
            theta[kind] *= kernel.theta[kind].sum() / theta[kind].sum()
    return Kernel(theta / theta.sum()) if theta.any() else kernel


def _best_ridge(learner: Learner, kernel: Kernel) -> Solution:
    """Return the ridge regression of the cost with the least leave-one-out error."""
    rows = learner.rows
    assert rows.numbers is not None
    targets = rows.numbers.of_rows(rows.y)
    costs = [cost * rows.n_rows / REFERENCE_ROWS for cost in _COSTS]
    tried = [
        learner.learn_classifier(kernel, C, n_left_out=rows.n_rows, needs_left_out=True)
        for C in costs
    ]
    errors = [rows.weights @ (targets - each.left_out) ** 2 for each in tried]
    return tried[int(np.argmin([error.sum() for error in errors]))]


def _best_power(residuals: Array, logarithms: Array, weights: Array) -> Array:
    """Return the power of the spread with the narrowest intervals, for each column."""

    def widths(power: float) -> Array:
        spread = np.exp(power * logarithms)
        levels = np.array([1.0 - _COVERAGE, 1.0 + _COVERAGE]) / 2.0
        lower, upper = weighted_quantiles(residuals / spread, weights, levels)
        return (upper - lower) * np.average(spread, axis=0, weights=weights)

    powers = np.array([0.0, *_POWERS])
    return powers[np.argmin([widths(power) for power in powers], axis=0)]

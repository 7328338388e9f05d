"""Numbers of rows that took no part in learning: for quantiles, intervals, and the cost.

With a squared error and the kernel matrix of few rows, every row is predicted by all others in
closed form. Else the rows are divided into folds.

Few rows are beyond a quantile near 0 or 1, and they alone say little about how it moves from place
to place; all rows say how the mean moves, and most quantiles move with it. So Step 2 is taken
twice with one kernel (`AroundMean`): for the mean, then for the quantile of what is left of the
rows. Both are weights of the same maps, and add up.

Intervals are wide where numbers are far from their predictions (`Spread`). A ridge regression with
some of the maps learns the logarithms of the sizes of residuals. As every row is predicted by all
others, its own residual has no part in the spread that it is divided by, and intervals of such
quotients cover as they should.
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

# Costs that are tried are this factor apart, and so many times at most; the solver need not be
# more accurate than this for it.
_STEP, _MOST_STEPS, _ROUGHLY = 3.0, 5, 0.01

# Standard errors of a share of rows that chance may explain.
_BY_CHANCE = 2.0

# Quantiles that are kept of residuals, and where exponents end.
_MOST_VALUES, _LARGEST_SCORE = 2_000, 60.0
# Costs of a row that are tried, powers of the spread, and the coverage whose width decides.
_COSTS = (0.1, 0.3, 1.0)
_POWERS = (0.25, 0.5, 0.75, 1.0)
_COVERAGE = 0.9
# A logarithm of a residual near zero would be large beside all others: such ones count as this
# quantile of their sizes.
_SMALLEST = 0.1
# Weights of the maps that are enough.
MOST_WEIGHTS = 20_000


@dataclass
class AroundMean(Learner):
    """The steps, with a ridge regression before the quantile in Step 2."""

    row_cost: float = 1.0  # of a row in the ridge regression

    def learn_classifier(
        self, kernel: Kernel, C: float, start: Solution | None = None, **options
    ) -> Solution:
        """Run Step 2 twice; see `Learner`."""
        rows, numbers = self.rows, self.rows.numbers
        assert numbers is not None
        ridge_cost = self.row_cost * rows.n_rows / REFERENCE_ROWS
        settings = replace(self.settings, loss="squared_error")
        means = Learner(rows, self.prior, settings, self.progress)
        mean = means.learn_classifier(kernel, ridge_cost, n_left_out=rows.n_rows)
        if mean.left_out is None:
            return super().learn_classifier(kernel, C, start, **options)
        left = numbers.of_rows(rows.y) - mean.left_out
        own, y = Numbers.of(left, rows.weights, numbers.loss, numbers.quantile)
        rows = replace(rows, y=y, n_classes=len(own.values), numbers=own)
        rest = Learner(rows, self.prior, self.settings, self.progress)
        solution = rest.learn_classifier(kernel, C, **options)
        weights, intercept = own.given(solution.weights, solution.intercept)
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
    """How numbers are distributed around predictions of models that did not see them."""

    # (n_values, n_columns): increasing quantiles of the residuals, at even levels, divided by the
    # spread where they are
    values: Array
    n_rows: float  # how many rows they are of

    @classmethod
    def of(cls, away: Array, weights: Array) -> Residuals:
        """Return the residuals of rows, from `distances`."""
        if not len(away):
            return cls(np.zeros((1, away.shape[1])), 0.0)
        n_values = min(len(away), _MOST_VALUES)
        levels = (np.arange(n_values) + 1.0) / n_values
        return cls(weighted_quantiles(away, weights, levels), effective_rows(weights))

    def bounds(self, coverage: float) -> tuple[Array, Array]:
        """Return what to add for the lower and the upper bound.

        Of n rows and a new one, each is as likely to have any place in their order: the levels are
        counted among n + 1.

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
    """Logarithm of the spread, as weights of the first maps."""

    weights: Array  # (n_weights, n_columns)
    intercept: Array  # (n_columns,)

    @classmethod
    def constant(cls, n_columns: int) -> Spread:
        """Return a spread of one everywhere."""
        return cls(np.zeros((0, n_columns)), np.zeros(n_columns))


def learn_spread(learner: Learner, kernel: Kernel, residuals: Array) -> tuple[Spread, Array]:
    """Return the spread whose intervals are narrowest, and that of each row, one in the mean.

    The learner has few rows, in the order of their own, and residuals are those of the rows by
    models that did not see them.
    """
    rows, n_columns = learner.rows, residuals.shape[1]
    nothing = Spread.constant(n_columns), np.ones_like(residuals)
    is_known = kernel.theta.any() and residuals.any(axis=0).all()
    if rows.n_rows < limits.FEWEST_ROWS_OF_A_SPREAD or not is_known:
        return nothing
    sizes = np.abs(residuals)
    sizes = np.log(np.maximum(sizes, _smallest(sizes, rows.weights)))
    numbers, y = Numbers.of(sizes, rows.weights, "squared_error")
    rows = replace(rows, y=y, n_classes=len(numbers.values), numbers=numbers, gram=None)
    settings = replace(learner.settings, loss="squared_error", theta_power=0.5)
    learner = Learner(rows, learner.prior, settings, learner.progress)
    own = _first_maps(learner, kernel)
    few = learner.take(rows.first(min(rows.n_rows, limits.ROWS_OF_A_COST))).with_gram(own)
    solution = _best(few, own)
    # Other rows took no part.
    others = learner.scores(solution)[few.rows.n_rows :]
    scores = np.concatenate([solution.left_out, others])
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
    kept = np.cumsum(np.where(kernel.theta > 0, n_weights, 0.0)) <= MOST_WEIGHTS
    theta = np.where(kept, kernel.theta, 0.0)
    for kind in (has_cells, ~has_cells):
        if theta[kind].any():
            theta[kind] *= kernel.theta[kind].sum() / theta[kind].sum()
    return Kernel(theta / theta.sum()) if theta.any() else kernel


def _best(learner: Learner, kernel: Kernel) -> Solution:
    """Return the ridge regression of the cost with which rows are predicted best by all others."""
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
    """Return the power of the spread with the narrowest intervals, of each column."""

    def widths(power: float) -> Array:
        spread = np.exp(power * logarithms)
        levels = np.array([1.0 - _COVERAGE, 1.0 + _COVERAGE]) / 2.0
        lower, upper = weighted_quantiles(residuals / spread, weights, levels)
        return (upper - lower) * np.average(spread, axis=0, weights=weights)

    powers = np.array([0.0, *_POWERS])
    return powers[np.argmin([widths(power) for power in powers], axis=0)]

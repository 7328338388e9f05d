"""The contract of all solvers, and the losses of the rows.

A solver is a function

    minimise(problem, start, tol, max_iter, progress) -> Solution

that ends when the duality gap of every column is at most tol times its objective, after
max_iter iterations, when no further step helps, or when progress, which is called with the
solution so far before every step and at the end, returns True. A start is the solution of a
similar problem, or None. `mbkl.solvers.choose` picks the solver.

A loss is a convex function of the margin m, which is label * score for classes; numbers have
targets as well (`Margins`). All losses but the squared error are non-increasing. `support` is minus
the derivative, the dual variable of a row with unit cost. `dual_value` is minus the conjugate at
minus the support: by weak duality any feasible support bounds the optimum from below.

Interior-point methods treat the support as a variable. `conjugate_slope` and `conjugate_curvature`
are derivatives of the conjugate inside its bounds, for a row with the given cost. The bounds have
slacks if `needs_lower_slack` (support >= 0) or `needs_upper_slack` (support <= cost) is set;
otherwise the conjugate itself keeps the support from them. `offset` is the margin at which the
conjugate's slope is zero. A loss with a kink is smoothed over the widths of `path`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mbkl.engine.arrays import Values, cast, exact_sum, is_numpy, namespace, to_host

Array = NDArray[np.float64]

# Larger exponents are clipped.
_LARGEST_EXPONENT = 60.0
# Smaller values are raised to it before a logarithm or a division.
NEARLY_NOTHING = 1e-300


class MarginLoss:
    """Default attributes of the losses."""

    offset: ClassVar[float] = 0.0
    needs_lower_slack: ClassVar[bool] = False
    needs_upper_slack: ClassVar[bool] = False
    support_is_limited: ClassVar[bool] = False
    support_is_positive: ClassVar[bool] = True
    path: ClassVar[tuple[float, ...]] = ()


class Square(MarginLoss):
    """The square of offset - m, or of its positive part."""

    def dual_value(self, support: Values) -> Values:
        return self.offset * support - support**2 / 4.0

    def conjugate_slope(self, support: Values, costs: Values) -> Values:
        return support / (2.0 * costs)

    def conjugate_curvature(self, support: Values, costs: Values) -> Values:
        return 0.5 / costs


@dataclass(frozen=True)
class SquaredHinge(Square):
    """max(0, 1 - m) squared, the loss of liblinear's l1-regularised solver."""

    offset: ClassVar[float] = 1.0
    needs_lower_slack: ClassVar[bool] = True

    def value(self, margins: Values) -> Values:
        return positive_part(1.0 - margins) ** 2

    def support(self, margins: Values) -> Values:
        return 2.0 * positive_part(1.0 - margins)

    def curvature(self, margins: Values) -> Values:
        return namespace(margins).where(margins < 1.0, 2.0, 0.0)


@dataclass(frozen=True)
class SquaredError(Square):
    """m squared: the loss of a ridge regression."""

    support_is_positive: ClassVar[bool] = False

    def value(self, margins: Values) -> Values:
        return margins**2

    def support(self, margins: Values) -> Values:
        return -2.0 * margins

    def curvature(self, margins: Values) -> Values:
        return 0.0 * margins + 2.0


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """max(0, 1 - m), with a parabola of width `smoothing` in place of the kink."""

    offset: ClassVar[float] = 1.0
    needs_lower_slack: ClassVar[bool] = True
    needs_upper_slack: ClassVar[bool] = True
    support_is_limited: ClassVar[bool] = True
    path: ClassVar[tuple[float, ...]] = (0.5, 0.1, 0.02, 0.004, 0.0008)

    smoothing: float = 0.0

    def value(self, margins: Values) -> Values:
        shortfall = 1.0 - margins
        if not self.smoothing:
            return positive_part(shortfall)
        inside = namespace(margins).clip(shortfall, 0.0, self.smoothing)
        return inside**2 / (2.0 * self.smoothing) + positive_part(shortfall - self.smoothing)

    def support(self, margins: Values) -> Values:
        if not self.smoothing:
            return namespace(margins).where(margins < 1.0, 1.0, 0.0)
        return namespace(margins).clip((1.0 - margins) / self.smoothing, 0.0, 1.0)

    def curvature(self, margins: Values) -> Values:
        if not self.smoothing:
            return 0.0 * margins
        curved = (margins < 1.0) & (margins > 1.0 - self.smoothing)
        return namespace(margins).where(curved, 1.0 / self.smoothing, 0.0)

    def dual_value(self, support: Values) -> Values:
        return support

    def conjugate_slope(self, support: Values, costs: Values) -> Values:
        return np.zeros_like(support)

    conjugate_curvature = conjugate_slope


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-m))."""

    support_is_limited: ClassVar[bool] = True

    def value(self, margins: Values) -> Values:
        return namespace(margins).logaddexp(0.0 * margins, -margins)

    def support(self, margins: Values) -> Values:
        return expit(-margins)

    def curvature(self, margins: Values) -> Values:
        support = expit(-margins)
        return support * (1.0 - support)

    def dual_value(self, support: Values) -> Values:
        module = special if is_numpy(support) else namespace(support).special
        return -module.xlogy(support, support) - module.xlog1py(1.0 - support, -support)

    def conjugate_slope(self, support: Values, costs: Values) -> Values:
        return namespace(support).log(support.clip(min=NEARLY_NOTHING) / (costs - support))

    def conjugate_curvature(self, support: Values, costs: Values) -> Values:
        return 1.0 / support.clip(min=NEARLY_NOTHING) + 1.0 / (costs - support)


@dataclass(frozen=True)
class Exponential(MarginLoss):
    """exp(-m): the loss of a Poisson regression, with counts as tilts."""

    def value(self, margins: Values) -> Values:
        # Clipping keeps the loss finite in line searches with far too long steps.
        clipped = namespace(margins).clip(-margins, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
        return namespace(margins).exp(clipped)

    support = value
    curvature = value

    def dual_value(self, support: Values) -> Values:
        module = special if is_numpy(support) else namespace(support).special
        return support - module.xlogy(support, support)

    def conjugate_slope(self, support: Values, costs: Values) -> Values:
        return namespace(support).log(support / costs)

    def conjugate_curvature(self, support: Values, costs: Values) -> Values:
        return 1.0 / support


def positive_part(values: Values) -> Values:
    """Return the values, zero where they are negative."""
    return np.maximum(values, 0.0) if is_numpy(values) else values.clamp(min=0.0)


def expit(values: Values) -> Values:
    """Return the logistic function."""
    return special.expit(values) if is_numpy(values) else values.sigmoid()


Loss = SquaredHinge | Hinge | Logistic | SquaredError | Exponential

LOSSES: dict[str, Loss] = {
    "squared_hinge": SquaredHinge(),
    "hinge": Hinge(),
    "logistic": Logistic(),
}


def smoothing_path(loss: Loss) -> tuple[Loss, ...]:
    """Return the losses to minimise one after the other, each from the solution before.

    Newton's method does not apply to the kink of the hinge, which is therefore smoothed by
    parabolas of shrinking width; the last one is close to the hinge.
    """
    return tuple(Hinge(width) for width in loss.path) or (loss,)


def exact_loss(loss: Loss) -> Loss:
    """Return the loss without its smoothing."""
    return Hinge() if isinstance(loss, Hinge) else loss


# ------------------------------------------------------------- the losses of all rows


@dataclass(frozen=True)
class Margins:
    """Losses of all rows, for several independent problems side by side.

    The margin of a row is label * (score - target), and it costs

        cost * (loss(margin) - tilt * (score - target))

    minus the minimum of this. Classes have neither targets nor tilts. Numbers have the same label
    in all rows; targets and tilts turn their losses into margin losses: the squared error has
    targets, quantiles are a tilted hinge, and counts a tilted exponential.
    """

    labels: Values  # (n_rows, n_columns): +1 or -1
    costs: Values  # (n_rows, 1): cost of each row, positive
    loss: Loss
    # (n_rows, n_columns): None means zero
    targets: Values = None
    tilts: Values = None
    # Sums over the rows of each column; rows in a fixed order need no exact sum.
    total: Callable[[Values], Values] = exact_sum

    @classmethod
    def of_numbers(cls, numbers: Values, costs: Values, loss: str, quantile: float) -> Margins:
        """Return the losses of numbers: squared or absolute errors, a quantile, or Poisson.

        The loss of an absolute error is half of it, that of the quantile 0.5.

        >>> margins = Margins.of_numbers(np.array([[2.0]]), np.ones((1, 1)), "quantile", 0.9)
        >>> margins.value(np.array([[1.0]])).round(3), margins.value(np.array([[3.0]])).round(3)
        (array([0.9]), array([0.1]))
        """
        labels = 0 * numbers + 1
        if loss == "squared_error":
            return cls(labels, costs, SquaredError(), numbers)
        if loss == "poisson":
            return cls(-labels, costs, Exponential(), None, numbers)
        level = 0.5 if loss == "absolute_error" else quantile
        # The hinge has its kink where the margin is one.
        return cls(labels, costs, Hinge(), numbers - 1.0, (level - 1.0) * labels)

    @property
    def is_numeric(self) -> bool:
        """Whether rows have numbers, not classes."""
        return self.targets is not None or self.tilts is not None

    def columns(self, columns: NDArray[np.intp]) -> Margins:
        """Return some of the problems."""
        return self._some((slice(None), columns), self.costs)

    def rows(self, rows) -> Margins:
        """Return some of the rows."""
        return self._some(rows, self.costs[rows])

    def _some(self, which, costs: Values) -> Margins:
        targets = None if self.targets is None else self.targets[which]
        tilts = None if self.tilts is None else self.tilts[which]
        return replace(self, labels=self.labels[which], costs=costs, targets=targets, tilts=tilts)

    def of(self, scores: Values) -> Values:
        """Return the margins."""
        return self.labels * self._distances(scores)

    def _distances(self, scores: Values) -> Values:
        return scores if self.targets is None else scores - self.targets

    def signed(self, support: Values) -> Values:
        """Return minus the derivative of the loss by the score, given the supports."""
        signed = self.labels * support
        return signed if self.tilts is None else signed + self.costs * self.tilts

    def value(self, scores: Values) -> Values:
        """Total loss of each column, with the smoothing."""
        return self._total(self.loss, scores)

    def exact_value(self, scores: Values) -> Values:
        """Total loss of each column, without any smoothing."""
        return self._total(exact_loss(self.loss), scores)

    def _total(self, loss: Loss, scores: Values) -> Values:
        losses = loss.value(self.of(scores))
        if self.tilts is not None:
            losses = losses - self.tilts * self._distances(scores) - self._least()
        return self.total(self.costs * losses)

    def _least(self) -> Values:
        """Return the smallest value of each row's tilted loss."""
        return self.loss.dual_value(-self.labels * self.tilts)

    def support(self, scores: Values) -> Values:
        """Minus the derivative of the loss by the margin."""
        return self.costs * self.loss.support(self.of(scores))

    def curvature(self, scores: Values) -> Values:
        return self.costs * self.loss.curvature(self.of(scores))

    def dual_value(self, support: Values) -> Values:
        """Sum of the dual values of each column's support."""
        values = self.costs * self.loss.dual_value(support / self.costs)
        if self.targets is not None:
            values = values + self.targets * self.signed(support)
        if self.tilts is not None:
            values = values - self.costs * self._least()
        return self.total(values)

    def best_intercept(self, scores: Values, start: Values) -> Values:
        """Minimise the loss over a constant added to each column.

        Newton's method on the derivative, which is monotone; a step that would leave the bracket
        found so far is replaced by bisection.
        """
        xp = namespace(start)
        intercept = start
        low, high = start - np.inf, start + np.inf
        negligible = 1e-11 if is_numpy(scores) else 1e-6
        # If all rows are on one side, the best constant is infinite: stop at a slope this small.
        nothing = 1e-13 * self.total(self.costs)
        for _ in range(100):
            shifted = scores + cast(intercept, scores)
            support = self.support(shifted)
            slope = -self.total(self.signed(support))
            done = abs(slope) <= negligible * self.total(abs(support)) + nothing
            if done.all():
                break
            low = xp.where(slope < 0, intercept, low)
            high = xp.where(slope > 0, intercept, high)
            curvature = self.total(self.curvature(shifted))
            with np.errstate(divide="ignore", invalid="ignore"):
                proposal = intercept - slope / curvature
            # Scores and intercepts are of order one: doubling from there finds a bracket in a
            # few steps where there is no curvature.
            far = xp.where(
                slope < 0, intercept + 1 + abs(intercept), intercept - 1 - abs(intercept)
            )
            inside = (proposal > low) & (proposal < high)
            inside &= abs(proposal - intercept) <= 1 + abs(intercept)
            bracketed = xp.isfinite(low) & xp.isfinite(high)
            with np.errstate(invalid="ignore"):
                middle = xp.where(bracketed, (low + high) / 2, far)
            proposal = xp.where(inside, proposal, middle)
            # Stop at steps below the precision of the scores.
            moved = ~done & (cast(proposal, scores) != cast(intercept, scores))
            if not moved.any():
                break
            intercept = xp.where(moved, proposal, intercept)
        return intercept


# ------------------------------------------------------------- the contract


@dataclass(frozen=True)
class Problem:
    """What to minimise over weights w and a free intercept b, for each column of labels.

    The objective is price(w) + sum over rows of cost * loss(label * (Z w + b)), for classes; see
    `Margins` for numbers.
    """

    operator: Any  # the matrix Z of all maps on all rows, which need not be formed
    margins: Margins  # labels (or targets), costs and loss of the rows
    # (n_weights,): Step 2: the price is 1/2 sum penalty w^2. None means Step 1, with one column:
    # the price is sum w, and no weight may be negative
    penalty: Values = None
    # Returns Z diag(1 / penalty) Z', for a problem of few rows.
    gram: Callable[[], Array] | None = None
    # Returns how many samples the first rows were merged from. If given, solvers with a kernel
    # matrix also return leave-one-out scores of these rows (`Solution.left_out`).
    copies: Callable[[], Array] | None = None
    needs_left_out: bool = False  # whether to use a solver with a kernel matrix for these scores
    needs_weights: bool = True  # False: a solver that has supports need not return weights

    @property
    def n_rows(self) -> int:
        return self.margins.labels.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the weights."""
        return self.operator.n_columns, self.margins.labels.shape[1]

    def columns(self, columns: NDArray[np.intp]) -> Problem:
        """Return the problem of some of the columns."""
        return replace(self, margins=self.margins.columns(columns))

    def assess(
        self, weights: Values, scores: Values, intercept: Values, supports: Values = None
    ) -> tuple[Values, Values, Values]:
        """Return objective, duality gap and gradient of each column.

        The scores are those of the weights, without intercept. Supports of an interior-point solver
        have to be balanced: times their signs they sum to zero. None means those of the scores,
        which are balanced at the best intercept.
        """
        margins = self.margins
        shifted = scores + cast(intercept, scores)
        supports = margins.support(shifted) if supports is None else supports
        pull = self.operator.adjoint(margins.signed(supports))
        # Any supports that are feasible for the dual problem bound the optimum from below.
        if self.penalty is None:
            # Supports are feasible if no pull exceeds the price of one: scale them to be so.
            price, slope = weights.sum(axis=0), 1.0
            dual = margins.dual_value(supports / max(1.0, float(pull.max())))
        else:
            penalty = self.penalty[:, None]
            price, slope = 0.5 * (penalty * weights**2).sum(axis=0), penalty * weights
            dual = margins.dual_value(supports) - 0.5 * (pull**2 / penalty).sum(axis=0)
        objective = price + margins.exact_value(shifted)
        return objective, positive_part(objective - dual), slope - pull


@dataclass
class Solution:
    """The solution of a solver so far; a column (or entry) for each column of the problem.

    >>> Solution(np.ones((2, 1)), np.zeros(1), np.array([4.0]), np.array([1.0])).relative_gap
    0.25
    """

    weights: Values  # (n_weights, n_columns); None if only supports were needed
    # (n_columns,)
    intercept: Values
    objective: Values
    gap: Values
    n_iter: int = 0
    # (n_rows, n_columns): the variables of the dual problem, from a solver that has them
    supports: Values = None
    # (n_weights, n_columns): Step 1: price minus pull of each map, zero where its weight is not
    slack: Values = None
    # (n_first_rows, n_columns): Step 2: leave-one-out scores of the first rows
    left_out: Values = None

    @classmethod
    def nothing(cls, shape: tuple[int, int]) -> Solution:
        """Return the start with all weights zero."""
        intercept = np.zeros(shape[1])
        return cls(np.zeros(shape), intercept, np.inf + intercept, np.inf + intercept)

    @property
    def relative_gap(self) -> float:
        """The largest duality gap as a share of its objective, which may be zero."""
        gap, objective = to_host(self.gap), to_host(self.objective)
        share = np.where(gap > 0, np.inf, 0.0)
        return float(np.divide(gap, objective, out=share, where=objective > 0).max(initial=0.0))

    @property
    def standing(self) -> str:
        """The progress of the solver, in words."""
        return f"relative gap {self.relative_gap:.1e}"

    def is_within(self, tol: float) -> NDArray[np.bool_]:
        """Say in which columns the gap is at most tol times the objective."""
        return to_host(self.gap <= tol * self.objective)

    def on_host(self, fetch: Callable[[Values], Values] = to_host) -> Solution:
        """Return the solution as NumPy arrays, without the supports."""
        arrays: dict[str, Any] = {
            each.name: fetch(getattr(self, each.name)) for each in fields(self)
        }
        return Solution(**{**arrays, "supports": None})


def joined(solutions: list[Solution]) -> Solution:
    """Put the solutions of single columns side by side."""

    def side_by_side(name: str) -> Values:
        columns = [getattr(each, name) for each in solutions]
        return None if columns[0] is None else np.concatenate(columns, axis=-1)

    n_iter = max(each.n_iter for each in solutions)
    names = [each.name for each in fields(Solution) if each.name != "n_iter"]
    return Solution(**{name: side_by_side(name) for name in names}, n_iter=n_iter)


Progress = Callable[[Solution], bool]
# problem, start, tol, max_iter, progress -> solution
Minimise = Callable[[Problem, Solution | None, float, int, Progress], Solution]


def go_on(solution: Solution) -> bool:
    """Never stop: the default progress of a solver."""
    return False


class SharedProgress:
    """Progress that solvers in several threads share: an error in one call stops all of them.

    Calls are made one at a time. As a context it stops the solvers if their caller is interrupted.
    """

    def __init__(self, progress: Callable[[Any], bool]) -> None:
        self.is_told_to_stop = self.has_failed = False
        self._progress = progress
        self._lock = threading.Lock()

    def __call__(self, state: Any) -> bool:
        with self._lock:
            if self.has_failed:
                return True
            with self:
                is_told_to_stop = bool(self._progress(state))
            self.is_told_to_stop |= is_told_to_stop
            return is_told_to_stop

    def __enter__(self) -> SharedProgress:
        return self

    def __exit__(self, error: type[BaseException] | None, *rest) -> None:
        self.has_failed |= error is not None

"""A primal-dual interior-point method, with the supports of the rows as variables.

With few rows, or at high costs, nearly all rows end on the margin. Which of them are
inside then changes with every step of a method that follows the weights alone, and its
steps shrink to nothing. Here the supports are variables of their own, with slacks that go
to zero together with those of the weights: about twenty iterations whatever the cost, and
the hinge loss needs no smoothing.

Newton's method is applied to the optimality conditions

    price - Z'(label * alpha) - slack = 0,  weights * slack = barrier    (Step 1)
    penalty * weights - Z'(label * alpha) = 0                            (Step 2)
    offset - margin - h'(alpha) + low - high = 0,
    alpha * low = barrier,  (cost - alpha) * high = barrier,
    label'alpha = 0,    margin = label * (Z weights + b),

with h the conjugate of the loss, and `low` or `high` absent where h keeps alpha from that
bound by itself (and targets and tilts in their places, see `Margins`). With the slacks
eliminated, and signed = label * alpha, steps obey

    ratio * d_weights - Z' d_signed     = target + Z' signed,
    Z d_weights + D d_signed + d_b      = residual,
    sum of d_signed                     = - sum of signed,

with ratio = slack / weights (Step 1) or the penalty (Step 2) and a diagonal D. There are two
ways on from here. Where the matrix Z is at hand and its rows are few, the weights are
eliminated and a matrix of the size of the rows is factorised: exact, and good for several
right-hand sides, as Mehrotra's predictor and corrector need them. Else the supports are
eliminated, and a matrix of the size of the maps is factorised where these are few, or
conjugate gradients run over the maps, as in any Newton step.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize_scalar

from mbkl.engine.arrays import Values, exact_sum, namespace, one_blas_thread
from mbkl.solvers.newton_cg import NewtonSystem, weighted_means
from mbkl.solvers.problem import (
    NEARLY_NOTHING,
    Margins,
    Problem,
    Progress,
    Solution,
    go_on,
    positive_part,
)

Array = NDArray[np.float64]

# Steps of all variables have one length, so that an inaccurate one of a single row would
# hold up all.
_CG_ACCURACY = 0.01
# Mehrotra's steps can go in circles: what has not ended after so many goes on with plain ones.
_MOST_CORRECTED = 40
# Relative to the largest entry of a kernel matrix.
_RIDGE = 1e-10
# Where to start from the solution of a similar problem: weights above zero by this share of
# their mean; closer ones end at the boundary.
_INSIDE = 0.01
# Steps go at most this far towards a bound.
TO_BOUNDARY = 0.99
# At very high costs the rows on the margin change with every step, and progress can end
# before the gap closes.
_PATIENCE = 30


@dataclass(frozen=True)
class DenseMaps:
    """All maps on few rows as a matrix."""

    matrix: Array  # (n_rows, n_maps)

    n_threads = 1

    @property
    def n_columns(self) -> int:
        return self.matrix.shape[1]

    @property
    def is_wide(self) -> bool:
        """Whether there are at least as many maps as rows."""
        return self.matrix.shape[1] >= self.matrix.shape[0]

    def to_device(self, array: Array) -> Array:
        return array

    def forward(self, weights: Array) -> Array:
        return self.matrix @ weights

    def adjoint(self, residuals: Array) -> Array:
        return self.matrix.T @ residuals

    def gram(self, ratio: Array) -> Array:
        """Return Z diag(1 / ratio) Z'."""
        return (self.matrix / ratio[:, 0]) @ self.matrix.T


@dataclass(frozen=True)
class RootMaps(DenseMaps):
    """As many maps as rows that have the same kernel: the columns of a root of its matrix."""

    kernel: Array  # (n_rows, n_rows): matrix @ matrix.T

    @classmethod
    def of(cls, kernel: Array) -> RootMaps:
        """Return the maps of a kernel matrix."""
        # Rows of equal codes make a singular matrix.
        ridge = _RIDGE * float(kernel.diagonal().max(initial=1.0))
        with one_blas_thread():
            root = cholesky(kernel + ridge * np.eye(len(kernel)), lower=True, check_finite=False)
        return cls(root, kernel)

    @property
    def penalty(self) -> Array:
        return np.ones(len(self.kernel))

    def gram(self, ratio: Array) -> Array:
        """Return the kernel matrix, the same at all points of Step 2: ratios are penalties."""
        return self.kernel.copy()

    def combinations(self, weights: Array) -> Array:
        """Return the combinations of the rows that weights of the maps stand for."""
        with one_blas_thread():
            return solve_triangular(self.matrix, weights, lower=True, trans="T")


@dataclass
class Point:
    """Values (or steps) of all variables, and scores of the weights; None where there are none."""

    weights: Values
    slack: Values
    alpha: Values
    low: Values
    high: Values
    intercept: Values
    scores: Values

    def moved(self, step: Point, length: float) -> Point:
        """Return where a step leads."""
        pairs = ((getattr(self, each.name), getattr(step, each.name)) for each in fields(self))
        ahead = Point(*(None if old is None else old + length * new for old, new in pairs))
        # With huge costs supports would end as zero, by which nothing can be divided.
        return replace(ahead, alpha=ahead.alpha.clip(min=NEARLY_NOTHING))

    def products(self, costs: Values) -> tuple[Values | None, Values | None, Values | None]:
        """Return the complementary products of weights, low and high: zero at the solution."""
        return (
            None if self.slack is None else self.weights * self.slack,
            None if self.low is None else self.alpha * self.low,
            None if self.high is None else (costs - self.alpha) * self.high,
        )


def minimise(
    problem: Problem,
    start: Solution | None,
    tol: float,
    max_iter: int,
    progress: Progress = go_on,
) -> Solution:
    """Minimise a problem of one column; see `mbkl.solvers.problem`.

    It is solved exactly where the operator is `DenseMaps`.
    """
    is_exact = isinstance(problem.operator, DenseMaps)
    ending = Ending(tol, max_iter, progress)
    centring = 0.1
    # The bits of a product may depend on the number of threads of BLAS.
    with one_blas_thread() if is_exact else nullcontext():
        point = start_near(problem, start)
        for n_iter in range(max_iter + 1):
            solution = assessed(problem, point)
            solution.n_iter = n_iter
            if ending.is_here(solution):
                break
            try:
                newton = Newton(problem, point)
                is_corrected = is_exact and n_iter < _MOST_CORRECTED
                step = newton.corrected() if is_corrected else newton.centred(centring)
            except LinAlgError:  # costs beyond what double precision can hold
                break
            length = longest(problem.margins, point, step)
            point, centring = point.moved(step, length), next_centring(length)
    return solution


def start_near(problem: Problem, start: Solution | None) -> Point:
    """Return a point well inside: at a start, at equal weights (Step 1) or at none (Step 2)."""
    margins, operator = problem.margins, problem.operator
    loss, costs = margins.loss, margins.costs
    if start is not None:
        weights = inside(start.weights) if problem.penalty is None else start.weights
        scores, intercept = operator.forward(weights), start.intercept
    elif problem.penalty is None:
        weights, scores, intercept = equal_weights(problem)
    else:
        weights, scores = np.zeros(problem.shape), np.zeros((problem.n_rows, 1))
        intercept = margins.best_intercept(scores, np.zeros(1))
    shifted, xp = scores + intercept, namespace(scores)
    alpha = margins.support(shifted)
    # At the solution the supports are of the order of one in all.
    if loss.support_is_positive:
        mean = float(exact_sum(alpha)[0]) / problem.n_rows
        alpha = xp.clip(alpha, 0.1 * max(mean, 1.0 / problem.n_rows), np.inf)
    if loss.support_is_limited:
        alpha = xp.minimum(alpha, 0.95 * costs)
    if start is not None:  # which saves iterations; elsewhere it saves none
        alpha = balanced(margins, alpha)
    row = loss.offset - margins.of(shifted) - loss.conjugate_slope(alpha, costs)
    slack = None
    if problem.penalty is None:
        pull = operator.adjoint(margins.signed(alpha))
        slack = positive_part(1.0 - pull) + 0.1 * max(1.0, float(pull.max()) - 1.0)
    low = positive_part(-row) + 0.1 if loss.needs_lower_slack else None
    high = positive_part(row) + 0.1 if loss.needs_upper_slack else None
    return Point(weights, slack, alpha, low, high, intercept, scores)


def assessed(problem: Problem, point: Point) -> Solution:
    """Return the solution so far, with the best intercept, and its duality gap."""
    intercept = problem.margins.best_intercept(point.scores, point.intercept)
    supports = balanced(problem.margins, point.alpha)
    objective, gap, _ = problem.assess(point.weights, point.scores, intercept, supports)
    return Solution(point.weights, intercept, objective, gap, supports=supports, slack=point.slack)


def balanced(margins: Margins, alpha: Values) -> Values:
    """Return supports of which both signs have the same total, the smaller one.

    Those of any other are not feasible for the dual problem.
    """
    xp = namespace(alpha)
    signed = margins.signed(alpha)
    is_positive = signed > 0
    positive = exact_sum(xp.where(is_positive, signed, 0.0))
    negative = -exact_sum(xp.where(is_positive, 0.0, signed))
    smaller = xp.minimum(positive, negative)
    # A sign that no row has leaves nothing of the other.
    shares = [smaller / xp.where(total > 0.0, total, 1.0) for total in (positive, negative)]
    less = xp.where(is_positive, *shares)
    if margins.tilts is None:
        return alpha * less
    return margins.labels * (signed * less - margins.costs * margins.tilts)


def longest(margins: Margins, point: Point, step: Point, share: float = TO_BOUNDARY) -> float:
    """Return the longest step, at most one, this share of the way to the nearest bound."""
    lengths = [1.0]
    if margins.loss.support_is_positive:
        lengths.append(within(point.alpha, step.alpha, share))
    if margins.loss.support_is_limited:
        lengths.append(within(margins.costs - point.alpha, -step.alpha, share))
    if point.slack is not None:
        lengths.append(within(point.weights, step.weights, share))
        lengths.append(within(point.slack, step.slack, share))
    if point.low is not None:
        lengths.append(within(point.low, step.low, share))
    if point.high is not None:
        lengths.append(within(point.high, step.high, share))
    return min(lengths)


class Newton:
    """The conditions linearised at a point, for one or several aims."""

    def __init__(self, problem: Problem, point: Point) -> None:
        self._problem, self._point = problem, point
        margins = problem.margins
        self._room = margins.costs - point.alpha
        diagonal = margins.loss.conjugate_curvature(point.alpha, margins.costs)
        if point.low is not None:
            diagonal = diagonal + point.low / point.alpha
        if point.high is not None:
            diagonal = diagonal + point.high / self._room
        if point.slack is not None:
            self._ratio = point.slack / point.weights
        else:
            self._ratio = problem.penalty[:, None]
        kind: type[ExactSystem] | type[MapSystem] = MapSystem
        if isinstance(problem.operator, DenseMaps) and problem.operator.is_wide:
            kind = ExactSystem
        self._system = kind(problem.operator, diagonal, self._ratio)

    @cached_property
    def _products(self) -> list[Values | None]:
        return list(self._point.products(self._problem.margins.costs))

    def _mean(self, products) -> float:
        """Return the mean of the products, and None where there are none."""
        there = [values for values in products if values is not None]
        total = sum(float(exact_sum(values)[0]) for values in there)
        return total / max(sum(values.shape[0] for values in there), 1)

    def centred(self, centring: float) -> Point:
        """Return the step after which all products are this share of their mean."""
        aim = centring * self._mean(self._products)
        return self._towards(aim, aim, aim)

    def corrected(self) -> Point:
        """Return the step that Mehrotra's method predicts and corrects."""
        predictor = self._towards(0.0, 0.0, 0.0)
        mean = self._mean(self._products)
        if mean == 0.0:  # no bounds (logistic loss, free weights): plain damped Newton
            return predictor
        margins = self._problem.margins
        length = longest(margins, self._point, predictor, share=1.0)
        ahead = self._point.moved(predictor, length).products(margins.costs)
        centre = mean * (self._mean(ahead) / mean) ** 3
        # What the linearisation neglects, as far as the predictor can tell.
        errors = predictor.products(0.0)
        return self._towards(*(centre - (0.0 if each is None else each) for each in errors))

    def _towards(self, weights_aim, low_aim, high_aim) -> Point:
        """Return the step after which the complementary products have the given values."""
        problem, point, room = self._problem, self._point, self._room
        margins, loss, alpha = problem.margins, problem.margins.loss, point.alpha
        row = loss.offset - margins.of(point.scores + point.intercept)
        row = row - loss.conjugate_slope(alpha, problem.margins.costs)
        if point.low is not None:
            row = row + low_aim / alpha
        if point.high is not None:
            row = row - high_aim / room
        if point.slack is None:
            target = -self._ratio * point.weights
        else:
            target = weights_aim / point.weights - 1.0
        labels, signed = margins.labels, margins.signed(alpha)
        weights, scores, signed, shift = self._system.solve(target, labels * row, signed)
        slack, low, high, step = None, None, None, labels * signed
        if point.slack is not None:
            slack = weights_aim / point.weights - point.slack - self._ratio * weights
        if point.low is not None:
            low = (low_aim - point.low * step) / alpha - point.low
        if point.high is not None:
            high = (high_aim + point.high * step) / room - point.high
        return Point(weights, slack, step, low, high, shift, scores)


class ExactSystem:
    """The linearised conditions with the weights eliminated, factorised."""

    def __init__(self, maps: DenseMaps, diagonal: Array, ratio: Array) -> None:
        self._maps, self._ratio = maps, ratio
        matrix = maps.gram(ratio)
        matrix[np.diag_indices_from(matrix)] += diagonal[:, 0]
        self._factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        self._constant = self._solve(np.ones_like(diagonal))

    def _solve(self, right: Array) -> Array:
        return cho_solve(self._factor, right, check_finite=False)

    def solve(self, target: Array, residual: Array, signed: Array):
        """Return the steps of weights, scores, signed supports and intercept."""
        # The step of the weights is `fixed` plus what the step of the supports adds.
        fixed = (target + self._maps.adjoint(signed)) / self._ratio
        solved = self._solve(residual - self._maps.forward(fixed))
        shift = (solved + signed).sum(axis=0) / self._constant.sum(axis=0)
        step = solved - shift * self._constant
        weights = fixed + self._maps.adjoint(step) / self._ratio
        return weights, self._maps.forward(weights), step, shift


class DenseHessian:
    """Z' diag(curvature) Z + diag(penalty) with the intercept eliminated, factorised."""

    def __init__(self, maps: DenseMaps, curvature: Array, penalty: Array) -> None:
        centred = maps.matrix - (curvature[:, 0] @ maps.matrix) / curvature.sum()
        centred *= np.sqrt(curvature)
        hessian = centred.T @ centred
        hessian[np.diag_indices_from(hessian)] += penalty[:, 0]
        self._factor = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, right: Array, accuracy: float) -> Array:
        """Return the step of the weights; any accuracy is reached."""
        return cho_solve(self._factor, right, check_finite=False)


class MapSystem:
    """The linearised conditions with the supports eliminated: for conjugate gradients, or exact."""

    def __init__(self, operator, diagonal: Values, ratio: Values) -> None:
        self._operator, self._curvature = operator, 1.0 / diagonal
        kind = DenseHessian if isinstance(operator, DenseMaps) else NewtonSystem
        self._system = kind(operator, self._curvature, ratio)

    def solve(self, target: Values, residual: Values, signed: Values):
        """Return the steps of weights, scores, signed supports and intercept."""
        curvature = self._curvature
        wanted = signed + curvature * residual
        level = exact_sum(wanted) / exact_sum(curvature)
        right = target + self._operator.adjoint(wanted - curvature * level)
        weights = self._system.solve(right, _CG_ACCURACY)
        scores = self._operator.forward(weights)
        shift = level - weighted_means(scores, curvature)
        return weights, scores, curvature * (residual - scores - shift), shift


# ------------------------------------------- where to begin, how far to go, when to end


def inside(weights: Values) -> Values:
    """Return weights near the given ones, none of which is zero."""
    return weights + _INSIDE * weights.mean()


def equal_weights(problem: Problem) -> tuple[Values, Values, Values]:
    """Return equal weights at their best scale, their scores and the best intercept."""
    operator, margins, shape = problem.operator, problem.margins, problem.shape
    weights = operator.to_device(np.full(shape, 1.0 / shape[0]))
    scores = operator.forward(weights)
    nothing = 0.0 * scores[0]

    def value(exponent: float) -> float:
        scaled = 10.0**exponent * scores
        intercept = margins.best_intercept(scaled, nothing)
        return 10.0**exponent + float(margins.value(scaled + intercept)[0])

    # A start only: a tenth of a decade is near enough.
    best = minimize_scalar(value, bounds=(-3.0, 4.0), method="bounded", options={"xatol": 0.1})
    scale = 10.0 ** float(best.x)
    weights, scores = scale * weights, scale * scores
    return weights, scores, margins.best_intercept(scores, nothing)


def within(values: Values, step: Values, share: float = TO_BOUNDARY) -> float:
    """Return the longest step, at most one, that goes this share of the way to zero."""
    shrink = float((-step / values).max())
    return 1.0 if shrink <= share else share / shrink


class Ending:
    """Says whether a solution of one column is good enough, or not going to improve."""

    def __init__(self, tol: float, max_iter: int, progress: Progress) -> None:
        self._tol, self._max_iter, self._progress = tol, max_iter, progress
        self._objectives: list[float] = []

    def is_here(self, solution: Solution) -> bool:
        """Say whether to stop; to be asked once an iteration."""
        self._objectives.append(float(solution.objective[0]))
        return bool(
            self._progress(solution)
            or solution.is_within(self._tol).all()
            or self._stagnates()
            or solution.n_iter >= self._max_iter
        )

    def _stagnates(self) -> bool:
        """Tell whether the objective has hardly changed for many iterations."""
        if len(self._objectives) <= _PATIENCE:
            return False
        before, now = self._objectives[-_PATIENCE], self._objectives[-1]
        return abs(before - now) < 1e-5 * now


def next_centring(length: float) -> float:
    """Aim far down the central path after long steps, stay near it after short ones."""
    if length > 0.9:
        return 0.05
    if length > 0.7:
        return 0.1
    return 0.3 if length > 0.3 else 0.7

"""A primal-dual interior-point method, with the supports of the rows as variables.

With few rows, or at high costs, nearly all rows end on the margin. In a method with the weights
as its only variables, rows then enter and leave the margin with every step, and the steps become
tiny. Here the supports are variables as well, with slacks that go to zero together with those of
the weights: it takes about twenty iterations at any cost, and the hinge loss needs no smoothing.

Newton's method is applied to the optimality conditions

    price - Z'(label * alpha) - slack = 0,  weights * slack = barrier    (Step 1)
    penalty * weights - Z'(label * alpha) = 0                            (Step 2)
    offset - margin - h'(alpha) + low - high = 0,
    alpha * low = barrier,  (cost - alpha) * high = barrier,
    label'alpha = 0,    margin = label * (Z weights + b),

with h the conjugate of the loss. `low` or `high` is absent where h itself keeps alpha from that
bound; targets and tilts enter as in `Margins`. With the slacks eliminated, and
signed = label * alpha, the steps satisfy

    ratio * d_weights - Z' d_signed     = target + Z' signed,
    Z d_weights + D d_signed + d_b      = residual,
    sum of d_signed                     = - sum of signed,

with ratio = slack / weights (Step 1) or the penalty (Step 2) and a diagonal D. If the matrix Z is
given and has few rows, the weights are eliminated and a matrix with an entry for each pair of rows
is factorised: this is exact, and serves both right-hand sides of Mehrotra's predictor and
corrector. Otherwise the supports are eliminated. The matrix of the maps that remains is factorised
if they are few, and else the system is solved by conjugate gradients.
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

# All variables share one step length, so that an inaccurate step of one row would shorten all.
_CG_ACCURACY = 0.01
# Mehrotra's steps can cycle: after so many of them plain centred steps follow.
_MOST_CORRECTED = 40
# Ridge relative to the largest entry of a kernel matrix.
_RIDGE = 1e-10
# A warm start adds this share of the mean weight to all weights: points closer to the boundary
# would stay there.
_INSIDE = 0.01
# Steps go at most this share of the way to a bound.
TO_BOUNDARY = 0.99
# Stop after so many iterations without progress: at very high costs rounding can keep the gap open.
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
    """A square matrix of maps with a given kernel: the Cholesky factor of its matrix."""

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
        """Return the kernel matrix; in Step 2 ratios are the penalties, which are one here."""
        return self.kernel.copy()

    def combinations(self, weights: Array) -> Array:
        """Return the signed supports of the rows that give the weights of the maps."""
        with one_blas_thread():
            return solve_triangular(self.matrix, weights, lower=True, trans="T")


@dataclass
class Point:
    """Values (or steps) of all variables, and scores of the weights; None for absent variables."""

    weights: Values
    slack: Values
    alpha: Values
    low: Values
    high: Values
    intercept: Values
    scores: Values

    def moved(self, step: Point, length: float) -> Point:
        """Return the point after a step of this length."""
        pairs = ((getattr(self, each.name), getattr(step, each.name)) for each in fields(self))
        ahead = Point(*(None if old is None else old + length * new for old, new in pairs))
        # At huge costs supports would become zero, which are divisors.
        return replace(ahead, alpha=ahead.alpha.clip(min=NEARLY_NOTHING))

    def products(self, costs: Values) -> tuple[Values | None, Values | None, Values | None]:
        """Return the complementarity products of weights, low and high: zero at the solution."""
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

    With `DenseMaps` for an operator the linear systems are solved exactly.
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
    """Return an interior point: near a start, else at equal weights (Step 1) or zero (Step 2)."""
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
    # At the solution the sum of the supports is of the order of one.
    if loss.support_is_positive:
        mean = float(exact_sum(alpha)[0]) / problem.n_rows
        alpha = xp.clip(alpha, 0.1 * max(mean, 1.0 / problem.n_rows), np.inf)
    if loss.support_is_limited:
        alpha = xp.minimum(alpha, 0.95 * costs)
    if start is not None:  # balanced supports save iterations after a warm start only
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
    """Return the solution at a point, with the best intercept and the duality gap."""
    intercept = problem.margins.best_intercept(point.scores, point.intercept)
    supports = balanced(problem.margins, point.alpha)
    objective, gap, _ = problem.assess(point.weights, point.scores, intercept, supports)
    return Solution(point.weights, intercept, objective, gap, supports=supports, slack=point.slack)


def balanced(margins: Margins, alpha: Values) -> Values:
    """Return supports scaled so that both signs have the same total, the smaller one.

    Others are not feasible for the dual problem.
    """
    xp = namespace(alpha)
    signed = margins.signed(alpha)
    is_positive = signed > 0
    positive = exact_sum(xp.where(is_positive, signed, 0.0))
    negative = -exact_sum(xp.where(is_positive, 0.0, signed))
    smaller = xp.minimum(positive, negative)
    # If no row has one of the signs, the supports of the other become zero.
    shares = [smaller / xp.where(total > 0.0, total, 1.0) for total in (positive, negative)]
    less = xp.where(is_positive, *shares)
    if margins.tilts is None:
        return alpha * less
    return margins.labels * (signed * less - margins.costs * margins.tilts)


def longest(margins: Margins, point: Point, step: Point, share: float = TO_BOUNDARY) -> float:
    """Return the longest step length up to one, at most this share of that to the nearest bound."""
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
    """The optimality conditions linearised at a point, for one or several barriers."""

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
        """Return the mean of the products, zero without any."""
        present = [values for values in products if values is not None]
        total = sum(float(exact_sum(values)[0]) for values in present)
        return total / max(sum(values.shape[0] for values in present), 1)

    def centred(self, centring: float) -> Point:
        """Return the step to products that all equal this share of their mean."""
        barrier = centring * self._mean(self._products)
        return self._step(barrier, barrier, barrier)

    def corrected(self) -> Point:
        """Return the step of Mehrotra's predictor-corrector method."""
        predictor = self._step(0.0, 0.0, 0.0)
        mean = self._mean(self._products)
        if mean == 0.0:  # without bounds (logistic loss, free weights) this is a Newton step
            return predictor
        margins = self._problem.margins
        length = longest(margins, self._point, predictor, share=1.0)
        ahead = self._point.moved(predictor, length).products(margins.costs)
        centre = mean * (self._mean(ahead) / mean) ** 3
        # The second-order terms that the linearisation neglects, estimated by the predictor.
        errors = predictor.products(0.0)
        return self._step(*(centre - (0.0 if each is None else each) for each in errors))

    def _step(self, weights_aim, low_aim, high_aim) -> Point:
        """Return the step to complementarity products with the given values."""
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
        # `fixed` is the step of the weights for constant supports.
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
        """Return the step of the weights, which is exact whatever the accuracy."""
        return cho_solve(self._factor, right, check_finite=False)


class MapSystem:
    """The linearised conditions with the supports eliminated, in the space of the maps."""

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


# ------------------------------------------- starting points, step lengths and stopping


def inside(weights: Values) -> Values:
    """Return positive weights near the given ones."""
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

    # For a start the scale to a tenth of a decade is precise enough.
    best = minimize_scalar(value, bounds=(-3.0, 4.0), method="bounded", options={"xatol": 0.1})
    scale = 10.0 ** float(best.x)
    weights, scores = scale * weights, scale * scores
    return weights, scores, margins.best_intercept(scores, nothing)


def within(values: Values, step: Values, share: float = TO_BOUNDARY) -> float:
    """Return the longest step length up to one, at most this share of that to the first zero."""
    decrease = float((-step / values).max())
    return 1.0 if decrease <= share else share / decrease


class Ending:
    """The stopping rule for one column: a small gap, no progress, or an interruption."""

    def __init__(self, tol: float, max_iter: int, progress: Progress) -> None:
        self._tol, self._max_iter, self._progress = tol, max_iter, progress
        self._objectives: list[float] = []

    def is_here(self, solution: Solution) -> bool:
        """Say whether to stop; call it once in each iteration."""
        self._objectives.append(float(solution.objective[0]))
        return bool(
            self._progress(solution)
            or solution.is_within(self._tol).all()
            or self._stagnates()
            or solution.n_iter >= self._max_iter
        )

    def _stagnates(self) -> bool:
        """Say whether the objective has hardly changed for many iterations."""
        if len(self._objectives) <= _PATIENCE:
            return False
        before, now = self._objectives[-_PATIENCE], self._objectives[-1]
        return abs(before - now) < 1e-5 * now


def next_centring(length: float) -> float:
    """Return the centring after a step: little after long steps, much after short ones."""
    if length > 0.9:
        return 0.05
    if length > 0.7:
        return 0.1
    return 0.3 if length > 0.3 else 0.7

"""The problems of both steps for few rows: dense, exact, at home at any cost.

With few rows the Newton system is solved through a small matrix of their size,
exactly. Exact steps allow Mehrotra's predictor and corrector, and supports of the
rows as variables of their own: about twenty iterations whatever the cost, where a
method that has to find out which rows are inside the margin takes tiny steps once
costs are high. The hinge loss needs no smoothing.

Newton's method is applied to the optimality conditions (labels and map signs are
in S, so that the margins are S weights + label * b)

    price - S'alpha - slack = 0,  weights * slack = barrier     (Step 1: weights >= 0)
    penalty * weights - S'alpha = 0                             (Step 2)
    offset - margin - h'(alpha) + low - high = 0,
    alpha * low = barrier,        (cost - alpha) * high = barrier,
    label'alpha = 0,

with h the conjugate of the loss, and `low` or `high` absent where h keeps alpha
from that bound by itself. Eliminating all but the supports leaves

    (D + S diag(scale) S') d_alpha + label * d_b = right-hand side,
    D = h''(alpha) + low / alpha + high / (cost - alpha),

with scale = weights / slack in Step 1 and 1 / penalty in Step 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mbkl.learn.margins import Margins
from mbkl.solvers.blas import one_blas_thread
from mbkl.solvers.interior_point import WeightSolution, best_scale

Array = NDArray[np.float64]

_TO_BOUNDARY = 0.99
_NOTHING = np.zeros(0)


@dataclass
class Point:
    """Values (or steps) of all variables; slacks that do not exist are empty."""

    weights: Array
    slack: Array
    alpha: Array
    low: Array
    high: Array
    intercept: float

    def moved(self, step: Point, length: float) -> Point:
        return Point(
            self.weights + length * step.weights,
            self.slack + length * step.slack,
            self.alpha + length * step.alpha,
            self.low + length * step.low,
            self.high + length * step.high,
            self.intercept + length * step.intercept,
        )


@dataclass(frozen=True)
class DenseProblem:
    """One problem of Step 1 (penalty None) or Step 2.

    Parameters
    ----------
    maps : ndarray of shape (n_rows, n_maps)
        Signed by class (Step 1), not by label.
    margins : Margins
        One column.
    penalty : ndarray of shape (n_maps,) or None
        Quadratic penalty of each weight; None means a price of one and weights that
        must not be negative.
    """

    maps: Array
    margins: Margins
    penalty: Array | None = None

    @cached_property
    def labels(self) -> Array:
        return self.margins.labels[:, 0].astype(np.float64)

    @property
    def costs(self) -> Array:
        return self.margins.costs[:, 0]

    @cached_property
    def S(self) -> Array:
        return self.maps * self.labels[:, None]

    @cached_property
    def gram(self) -> Array:
        """S diag(1 / penalty) S' of Step 2."""
        assert self.penalty is not None
        return (self.S / self.penalty) @ self.S.T

    def products(self, point: Point) -> tuple[Array, Array, Array]:
        """Return the complementary products, zero at the solution."""
        return (
            point.weights * point.slack if point.slack.size else _NOTHING,
            point.alpha * point.low if point.low.size else _NOTHING,
            (self.costs - point.alpha) * point.high if point.high.size else _NOTHING,
        )

    def longest(self, point: Point, step: Point) -> float:
        """Return the longest step that keeps all variables inside their bounds."""
        shrink = [-step.alpha / point.alpha, -step.low / point.low, -step.high / point.high]
        if point.slack.size:
            shrink += [-step.weights / point.weights, -step.slack / point.slack]
        if self.margins.loss.support_is_limited:
            shrink.append(step.alpha / (self.costs - point.alpha))
        worst = max(float(values.max(initial=0.0)) for values in shrink)
        return 1.0 / worst if worst > 0 else np.inf

    def start(self) -> Point:
        """Return a point well inside: no weights, or equal ones at their best scale."""
        loss, labels, costs = self.margins.loss, self.labels, self.costs
        n_maps = self.maps.shape[1]
        scores = self.maps.sum(axis=1, keepdims=True) / n_maps
        if self.penalty is None:
            scale, best = best_scale(self.margins, scores)
        else:
            scale, best = 0.0, self.margins.best_intercept(0.0 * scores, np.zeros(1))
        intercept = float(best[0])
        shifted = scale * scores + intercept
        alpha = self.margins.support(shifted)[:, 0]
        # At the solution the supports are of the order of one in all.
        alpha = np.maximum(alpha, 0.1 * max(alpha.mean(), 1.0 / alpha.size))
        if loss.support_is_limited:
            alpha = np.clip(alpha, 0.05 * costs, 0.95 * costs)
        row = loss.offset - labels * shifted[:, 0] - loss.conjugate_slope(alpha, costs)
        slack = _NOTHING
        if self.penalty is None:
            pull = self.S.T @ alpha
            slack = np.maximum(1.0 - pull, 0.0) + 0.1 * max(1.0, float(pull.max()) - 1.0)
        return Point(
            np.full(n_maps, scale / n_maps),
            slack,
            alpha,
            np.maximum(-row, 0.0) + 0.1 if loss.needs_lower_slack else _NOTHING,
            np.maximum(row, 0.0) + 0.1 if loss.needs_upper_slack else _NOTHING,
            intercept,
        )

    def assess(self, point: Point) -> WeightSolution:
        """Return the solution so far, with the best intercept, and its duality gap."""
        scores = self.maps @ point.weights[:, None]
        intercept = self.margins.best_intercept(scores, np.array([point.intercept]))
        loss = float(self.margins.exact_value(scores + intercept)[0])
        # Made feasible for the dual problem, the supports bound the optimum from
        # below: both labels get the same total, no map pulls beyond its price.
        is_positive = self.labels > 0
        totals = point.alpha[is_positive].sum(), point.alpha[~is_positive].sum()
        lower = min(totals)
        shares = [lower / total if total > 0 else 0.0 for total in totals]
        alpha = point.alpha * np.where(is_positive, *shares)
        pull = self.S.T @ alpha
        if self.penalty is None:
            objective = float(point.weights.sum()) + loss
            alpha = alpha / max(1.0, float(pull.max()))
            dual = float(self.margins.dual_value(alpha[:, None])[0])
        else:
            objective = 0.5 * float((self.penalty * point.weights**2).sum()) + loss
            dual = float(self.margins.dual_value(alpha[:, None])[0])
            dual -= 0.5 * float((pull**2 / self.penalty).sum())
        gap = max(objective - dual, 0.0)
        return WeightSolution(point.weights, point.slack, intercept, objective, gap)


class NewtonStep:
    """The conditions linearised at a point, factorised once for several aims."""

    def __init__(self, problem: DenseProblem, point: Point) -> None:
        self._problem, self._point = problem, point
        loss, costs = problem.margins.loss, problem.costs
        self._room = costs - point.alpha
        diagonal = loss.conjugate_curvature(point.alpha, costs)
        if point.low.size:
            diagonal = diagonal + point.low / point.alpha
        if point.high.size:
            diagonal = diagonal + point.high / self._room
        if problem.penalty is None:
            self._scale = point.weights / point.slack
            matrix = (problem.S * self._scale) @ problem.S.T
        else:
            self._scale = 1.0 / problem.penalty
            matrix = problem.gram.copy()
        matrix[np.diag_indices_from(matrix)] += diagonal
        self._factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        self._by_label = self._solve(problem.labels)

    def _solve(self, right: Array) -> Array:
        return cho_solve(self._factor, right, check_finite=False)

    def towards(self, weights_aim: Array, low_aim: Array, high_aim: Array) -> Point:
        """Return the step after which the complementary products have the given values."""
        problem, point = self._problem, self._point
        S, labels, loss = problem.S, problem.labels, problem.margins.loss
        margins = S @ point.weights + labels * point.intercept
        row = loss.offset - margins - loss.conjugate_slope(point.alpha, problem.costs)
        if point.low.size:
            row = row + low_aim / point.alpha
        if point.high.size:
            row = row - high_aim / self._room
        # The step of the weights is `fixed` plus what the step of the supports adds.
        pull = S.T @ point.alpha
        if point.slack.size:
            fixed = self._scale * (pull - 1.0) + weights_aim / point.slack
        else:
            fixed = self._scale * pull - point.weights
        solution = self._solve(row - S @ fixed)
        shift = float(labels @ (solution + point.alpha)) / float(labels @ self._by_label)
        alpha = solution - shift * self._by_label
        weights = fixed + self._scale * (S.T @ alpha)
        slack, low, high = point.slack, point.low, point.high
        if slack.size:
            slack = weights_aim / point.weights - slack * (1.0 + weights / point.weights)
        if low.size:
            low = low_aim / point.alpha - low * (1.0 + alpha / point.alpha)
        if high.size:
            high = high_aim / self._room - high * (1.0 - alpha / self._room)
        return Point(weights, slack, alpha, low, high, shift)


def solve_densely(
    problem: DenseProblem,
    tol: float,
    max_iter: int,
    progress: Callable[[WeightSolution], bool] = lambda solution: False,
) -> WeightSolution:
    """Solve until the duality gap is at most tol * objective.

    Parameters
    ----------
    problem : DenseProblem
    tol : float
    max_iter : int
    progress : callable
        Called once an iteration with the solution so far; True stops.

    Returns
    -------
    solution : WeightSolution
    """
    # One thread of BLAS: the bits of a product may depend on their number. The limit is
    # that of the whole process, so fits in other threads wait rather than lift it.
    with one_blas_thread():
        point = problem.start()
        for n_iter in range(max_iter + 1):
            solution = problem.assess(point)
            solution.n_iter = n_iter
            finished = solution.gap <= tol * solution.objective
            if progress(solution) or finished or n_iter == max_iter:
                break
            try:
                point = _predict_and_correct(problem, point)
            except LinAlgError:  # costs beyond what double precision can hold
                break
    return solution


def _predict_and_correct(problem: DenseProblem, point: Point) -> Point:
    """Take one step of Mehrotra's method."""
    newton = NewtonStep(problem, point)
    products = problem.products(point)
    count = sum(values.size for values in products)
    if not count:  # no bounds (logistic loss, free weights): plain damped Newton
        step = newton.towards(_NOTHING, _NOTHING, _NOTHING)
        return point.moved(step, min(1.0, _TO_BOUNDARY * problem.longest(point, step)))
    mean = sum(float(values.sum()) for values in products) / count
    predictor = newton.towards(*(np.zeros_like(values) for values in products))
    length = min(1.0, problem.longest(point, predictor))
    ahead = problem.products(point.moved(predictor, length))
    mean_ahead = sum(float(values.sum()) for values in ahead) / count
    centre = mean * (mean_ahead / mean) ** 3
    # What the linearisation neglects, as far as the predictor can tell.
    weights_error = predictor.weights * predictor.slack if predictor.slack.size else _NOTHING
    low_error = predictor.alpha * predictor.low if predictor.low.size else _NOTHING
    high_error = -predictor.alpha * predictor.high if predictor.high.size else _NOTHING
    step = newton.towards(centre - weights_error, centre - low_error, centre - high_error)
    return point.moved(step, min(1.0, _TO_BOUNDARY * problem.longest(point, step)))

"""A primal-dual interior-point method for weights that must not be negative.

Minimises over theta >= 0 and a free intercept b

    sum_k theta_k  +  sum_rows cost * loss(label * (S theta + b)),

where S holds the signed maps. Thousands of nearly parallel maps make it hard to
guess which weights are zero, and methods that move along the boundary spend
their time on changing guesses. An interior point lets all weights shrink
together: the number of iterations hardly depends on the number of maps, and the
barrier is a diagonal term that the chain preconditioner takes in exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from mbkl.engine.namespace import Values, index_for, namespace, to_host
from mbkl.learn.losses import positive_part
from mbkl.learn.margins import Margins
from mbkl.solvers.conjugate_gradient import dot
from mbkl.solvers.newton_cg import NewtonSystem, weighted_means
from mbkl.solvers.primal_dual import TO_BOUNDARY, advance, assess, longest, start_at

Array = NDArray[np.float64]

# Inexact Newton steps: the certificate asks for residuals below tol, and a step
# in ten times less work beats an exact one (measured on HOG and pixel data).
_CG_ACCURACY = 0.1
# Steps shorter than this tell of rows that change sides (measured: all others are far longer).
_SHORT = 0.1
# Where to start from the solution of a similar problem: weights above zero by this share of
# their mean, slacks by this share of the price; closer ones end at the boundary (measured).
_INSIDE, _SLACK_INSIDE = 0.01, 0.03
# Maps with a weight far below the mean and a slack far from zero will most likely end
# at zero; leaving them out pays once they are this many (measured).
_UNLIKELY = 0.03
_WORTH_DROPPING = 0.4
# From so many maps a chain the first round is made, and later ones from those that the gradient
# shows to be missing, with tolerances that fall; which pays where that leaves out most maps
# (measured on HOG).
_MAPS_OF_A_CHAIN, _WORTH_THINNING = 16, 0.2
_GOALS, _LAST_GOAL, _ROUNDS = (0.05, 0.01), 0.7, 8
# At very high costs the rows on the margin change with every step and progress
# can end before the gap closes.
_PATIENCE = 30


@dataclass
class WeightSolution:
    """Where the solver stands; `support` are those of the rows, where it has its own."""

    theta: Array
    slack: Array
    intercept: Array
    objective: float = np.inf
    gap: float = np.inf
    n_iter: int = 0
    support: Array | None = None

    @property
    def relative_gap(self) -> float:
        return self.gap / self.objective

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Weights that are positive at the solution.

        Weight and slack are complementary: one of the two goes to zero. They are
        compared in their own units, the mean weight and the unit cost.
        """
        mean = self.theta.sum() / max(int((self.theta > 0).sum()), 1)
        positive = self.theta > self.slack * mean
        return positive if positive.any() else self.theta > 0

    def on_host(self) -> WeightSolution:
        """Return the solution as arrays of NumPy, without what rows have."""
        return replace(
            self,
            support=None,
            theta=to_host(self.theta),
            slack=to_host(self.slack),
            intercept=to_host(self.intercept),
        )


def minimise_weights(
    operator,
    margins: Margins,
    start: WeightSolution | None,
    tol: float,
    max_iter: int,
    progress: Callable[[WeightSolution], bool] = lambda solution: False,
) -> WeightSolution:
    """Minimise until the duality gap is at most tol * objective.

    Parameters
    ----------
    operator : PairOperator
        The signed maps S.
    margins : Margins
        One column.
    start : WeightSolution or None
        Solution of a similar problem, to start from.
    tol : float
    max_iter : int
    progress : callable
        Called once an iteration with the solution so far; True stops.

    Returns
    -------
    solution : WeightSolution
    """
    some = operator.thinned(_MAPS_OF_A_CHAIN)
    if some.sum() < _WORTH_THINNING * operator.is_map.sum():
        return _minimise_some(operator, margins, some, start, tol, max_iter, progress)
    solution = _interior_start(operator, margins, start)
    screened = _iterate(operator, margins, solution, tol, max_iter, progress, may_screen=True)
    if screened is None:
        return solution
    small_operator, small = _restrict(operator, solution, screened)
    _iterate(small_operator, margins, small, tol, max_iter, progress, may_screen=False)
    _extend(operator, small_operator, solution, small, screened)
    # The certificate is that of all maps; if a dropped one is missed, go on with all.
    scores = operator.forward(solution.theta[:, None])
    solution.intercept = margins.best_intercept(scores, solution.intercept)
    _assess(operator, margins, scores, solution)
    if solution.gap > tol * solution.objective and small.gap <= tol * small.objective:
        _iterate(operator, margins, solution, tol, max_iter, progress, may_screen=False)
    return solution


def _minimise_some(
    operator, margins: Margins, kept: NDArray[np.bool_], start, tol, max_iter, progress
) -> WeightSolution:
    """Minimise over some of the maps, then over those that all maps show to be missing.

    Neighbours in a long chain are nearly the same map: a few of each chain tell where the
    others are needed.
    """
    if start is not None:
        kept = kept | _is_likely(start.theta, operator.is_map)
    n_iter, last_goal = 0, _LAST_GOAL * tol
    for goal in (*(max(goal, last_goal) for goal in _GOALS), *_ROUNDS * (last_goal,)):
        part = operator.keep_maps(kept)
        small = _interior_start(part, margins, start and _at(start, operator, kept, part))
        small.n_iter = n_iter
        _iterate(part, margins, small, goal, max_iter, progress, may_screen=False)
        solution, gradient = _for_all(operator, margins, kept, part, small)
        n_iter = solution.n_iter
        is_unfinished = small.gap > goal * small.objective
        if solution.gap <= tol * solution.objective or is_unfinished:
            return solution
        if goal > last_goal:  # later on, what is dropped may be missed in the next round
            kept = _is_likely(solution.theta, operator.is_map)
        kept = kept | _is_missing(operator, gradient)
        start = solution
    solution = _interior_start(operator, margins, solution)
    solution.n_iter = n_iter
    _iterate(operator, margins, solution, tol, max_iter, progress, may_screen=False)
    return solution


def _is_likely(theta: Array, is_map: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say which weights are not on their way to zero."""
    return is_map & (theta > _UNLIKELY * theta[theta > 0].mean())


def _is_missing(operator, gradient: Array) -> NDArray[np.bool_]:
    """Say which maps would lower the objective most, of each run of neighbours."""
    chained = operator.is_chained
    best = operator.is_map & (gradient < 0.0)
    best[1:] &= ~chained[1:] | (gradient[1:] <= gradient[:-1])
    best[:-1] &= ~chained[1:] | (gradient[:-1] < gradient[1:])
    return best


def _at(solution: WeightSolution, operator, kept: NDArray[np.bool_], part) -> WeightSolution:
    """Return the weights of some of the maps."""
    theta = np.zeros(part.n_columns)
    theta[part.is_map] = solution.theta[kept & operator.is_map]
    return WeightSolution(theta, theta, solution.intercept, support=solution.support)


def _for_all(operator, margins: Margins, kept, part, small) -> tuple[WeightSolution, Array]:
    """Return the solution for some of the maps as one for all, and its gradient."""
    solution = WeightSolution(
        np.zeros(operator.n_columns), np.ones(operator.n_columns), small.intercept
    )
    solution.support = small.support
    own = kept & operator.is_map
    solution.theta[own] = small.theta[part.is_map]
    scores = part.forward(small.theta[:, None])
    gradient = _assess(operator, margins, scores, solution)
    solution.slack = np.where(operator.is_map, np.maximum(gradient, 0.0), 1.0)
    solution.slack[own] = small.slack[part.is_map]
    solution.n_iter = small.n_iter
    return solution, gradient


def _iterate(
    operator, margins: Margins, solution: WeightSolution, tol, max_iter, progress, may_screen
) -> NDArray[np.bool_] | None:
    """Improve `solution` in place; return the maps to keep when it is worth dropping the rest."""
    if solution.support is not None:
        _iterate_with_supports(operator, margins, solution, tol, max_iter, progress)
        return None
    scores = operator.forward(solution.theta[:, None])
    centring = 0.1
    history: list[float] = []
    while True:
        solution.intercept = margins.best_intercept(scores, solution.intercept)
        gradient = _assess(operator, margins, scores, solution)
        if _is_over(solution, history, tol, max_iter, progress):
            return None
        theta, slack = solution.theta, solution.slack
        if may_screen:
            kept = to_host((theta > _UNLIKELY * theta.mean()) | (slack < _UNLIKELY))
            if kept.sum() < _WORTH_DROPPING * kept.size:
                return kept
        barrier = centring * float(dot(theta, slack)) / theta.shape[0]
        shifted = scores + solution.intercept
        penalty = slack / theta
        curvature = margins.curvature(shifted)
        system = NewtonSystem(operator, curvature[:, 0], penalty)
        reduced = gradient - barrier / theta
        step = system.solve(-reduced, _CG_ACCURACY)
        slack_step = barrier / theta - slack - penalty * step
        # Weights that would become negative stop short of zero, each by itself: one of
        # thousands should not shorten the step of all.
        slack_length = longest(slack, slack_step)
        step = namespace(step).maximum(step, -TO_BOUNDARY * theta)
        change = operator.forward(step[:, None])
        shift = -weighted_means(change, curvature)
        slope = float(dot(reduced, step))
        length = _line_search(margins, theta, step, slope, barrier, shifted, change + shift)
        solution.theta = theta + length * step
        solution.intercept = solution.intercept + length * shift
        solution.slack = slack + slack_length * slack_step
        solution.n_iter += 1
        scores += length * change
        if length < _SHORT:
            _iterate_with_supports(operator, margins, solution, tol, max_iter, progress)
            return None
        centring = _next_centring(min(length, slack_length))


def _iterate_with_supports(
    operator, margins: Margins, solution: WeightSolution, tol, max_iter, progress
) -> None:
    """Improve `solution` in place by steps that rows which change sides do not shorten."""
    inside = solution.theta + _INSIDE * solution.theta.mean()
    point = start_at(operator, margins, inside, solution.intercept)
    centring = 0.1
    history: list[float] = []
    while True:
        solution.theta, solution.slack, solution.support = point.weights, point.slack, point.alpha
        quality = assess(operator, margins, point)
        solution.intercept = quality.intercept
        solution.objective, solution.gap = quality.objective, quality.gap
        if _is_over(solution, history, tol, max_iter, progress):
            return
        centring = _next_centring(advance(operator, margins, point, centring))
        solution.n_iter += 1


def _restrict(operator, solution: WeightSolution, kept: NDArray[np.bool_]):
    """Return the problem with some of the maps."""
    small_operator = operator.keep_maps(kept)
    barrier = float(dot(solution.theta, solution.slack)) / solution.theta.shape[0]
    theta = operator.to_device(np.full(small_operator.n_columns, barrier))
    slack = operator.to_device(np.ones(small_operator.n_columns))
    large, little = _places(operator, small_operator, kept, theta)
    theta[little], slack[little] = solution.theta[large], solution.slack[large]
    return small_operator, WeightSolution(theta, slack, solution.intercept, n_iter=solution.n_iter)


def _places(operator, small_operator, kept: NDArray[np.bool_], like: Values):
    """Return where the kept maps are among all and among themselves."""
    large = np.flatnonzero(kept & operator.is_map)
    little = np.flatnonzero(small_operator.is_map)
    return index_for(large, like), index_for(little, like)


def _extend(operator, small_operator, solution: WeightSolution, small: WeightSolution, kept):
    """Write the solution for some of the maps into that for all; the others are nearly zero."""
    barrier = float(dot(small.theta, small.slack)) / small.theta.shape[0]
    solution.theta = barrier / solution.slack
    large, little = _places(operator, small_operator, kept, solution.theta)
    solution.theta[large], solution.slack[large] = small.theta[little], small.slack[little]
    solution.intercept, solution.n_iter = small.intercept, small.n_iter
    solution.support = small.support


def _interior_start(operator, margins: Margins, start: WeightSolution | None) -> WeightSolution:
    """Return a point well inside: equal weights at their best scale, or near `start`."""
    n = operator.n_columns
    distance = 0.1 if start is None else _SLACK_INSIDE
    if start is None:
        theta = operator.to_device(np.full(n, 1.0 / n))
        scores = operator.forward(theta[:, None])
        scale, intercept = best_scale(margins, scores)
        theta, scores = scale * theta, scale * scores
    else:
        theta = operator.to_device(start.theta + _INSIDE * start.theta.mean())
        scores = operator.forward(theta[:, None])
        intercept = margins.best_intercept(scores, operator.to_device(start.intercept))
    solution = WeightSolution(theta, 0.0 * theta + 1.0, intercept)
    solution.support = None if start is None else start.support
    gradient = _assess(operator, margins, scores, solution)
    solution.slack = positive_part(gradient) + distance * max(1.0, -float(gradient.min()))
    return solution


def best_scale(margins: Margins, scores: Array) -> tuple[float, Array]:
    """Return the best common factor of weights that sum to one, and its intercept."""
    nothing = 0.0 * scores[0]

    def value(exponent: float) -> float:
        scaled = 10.0**exponent * scores
        intercept = margins.best_intercept(scaled, nothing)
        return 10.0**exponent + float(margins.value(scaled + intercept)[0])

    # A start only: a tenth of a decade is near enough.
    best = minimize_scalar(value, bounds=(-3.0, 4.0), method="bounded", options={"xatol": 0.1})
    scale = 10.0 ** float(best.x)
    return scale, margins.best_intercept(scale * scores, nothing)


def _assess(operator, margins: Margins, scores: Array, solution: WeightSolution) -> Array:
    """Update objective and duality gap; return the gradient."""
    shifted = scores + solution.intercept
    support = margins.support(shifted) if solution.support is None else solution.support
    pull = operator.adjoint(margins.labels * support)[:, 0]
    # Shrunk until no map pulls by more than its unit cost, the supports are
    # feasible for the dual problem and bound the optimum from below.
    feasible = support / max(1.0, float(pull.max()))
    solution.objective = float(solution.theta.sum() + margins.exact_value(shifted)[0])
    solution.gap = max(solution.objective - float(margins.dual_value(feasible)[0]), 0.0)
    return 1.0 - pull


def _is_over(solution: WeightSolution, history: list[float], tol, max_iter, progress) -> bool:
    """Note the objective; say whether it is good enough, asked to stop, or not going to improve."""
    history.append(solution.objective)
    finished = solution.gap <= tol * solution.objective
    stuck = len(history) > _PATIENCE and _stagnates(history)
    return progress(solution) or finished or stuck or solution.n_iter >= max_iter


def _stagnates(history: list[float]) -> bool:
    """Tell whether the objective has hardly changed for many iterations."""
    return abs(history[-_PATIENCE] - history[-1]) < 1e-5 * history[-1]


def _line_search(margins, theta, step, slope, barrier, scores, change) -> float:
    """Shorten the step until it lowers the barrier objective enough."""
    length = 1.0
    before = float(margins.value(scores)[0])
    total = float(step.sum())
    for _ in range(40):
        gain = float(margins.value(scores + length * change)[0]) - before + length * total
        gain -= barrier * float(namespace(step).log1p(length * step / theta).sum())
        if gain <= 1e-4 * length * slope:
            return length
        length /= 2
    return length


def _next_centring(length: float) -> float:
    """Aim far down the central path after long steps, stay near it after short ones."""
    if length > 0.9:
        return 0.05
    if length > 0.7:
        return 0.1
    return 0.3 if length > 0.3 else 0.7

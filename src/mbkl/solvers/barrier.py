"""A barrier method for non-negative weights: Step 1 with many pairs.

With thousands of nearly parallel maps it is hard to guess which weights are zero, and active-set
methods spend their time on changing the set. An interior point lets all weights shrink together:
the number of iterations hardly depends on the number of maps, and the barrier is a diagonal term
that the chain preconditioner handles exactly. Newton systems involve only the rows inside the
margin, so this is many times faster than `primal_dual` until rows enter and leave the margin with
every step; then that method takes over.

Most weights end at zero, and are never computed. The solver works on some of the maps. In each
round it adds the maps with the largest violations and drops maps whose weights converge to zero,
until the duality gap, which is that of all maps, is small enough.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import limits
from mbkl.engine.arrays import Values, is_numpy, namespace, one_blas_thread, to_host
from mbkl.solvers import primal_dual
from mbkl.solvers.newton_cg import NewtonSystem, descend, dot, weighted_means
from mbkl.solvers.primal_dual import (
    TO_BOUNDARY,
    DenseMaps,
    Ending,
    equal_weights,
    inside,
    next_centring,
    within,
)
from mbkl.solvers.problem import Problem, Progress, Solution, go_on, positive_part

Array = NDArray[np.float64]

# Newton systems are solved inexactly: an exact step takes ten times the work and gains less.
_CG_ACCURACY = 0.1
# After so many steps shorter than this, rows enter and leave the margin with every step.
_SHORT, _MOST_SHORT = 0.1, 3
# First slacks are above zero by this share of the largest violation: after a warm and a cold start.
_NEAR, _FAR = 0.03, 0.1
# Maps with a weight below this share of the mean most likely end at zero.
_UNLIKELY = 0.03
# Tolerance of the first round.
_FIRST_GOAL = 0.1
# Tolerance of later rounds, as a share of the gap of all maps.
_NEXT_GOAL = 0.1
# Tolerance of the last round, as a share of `tol`.
_LAST_GOAL = 0.7
# Maps are dropped only after a round that reduces the gap below this share.
_GAINED = 0.9
_ROUNDS = 30
# Fewest maps that may be added in a round.
_FEWEST_ADDED = 100


def minimise(
    problem: Problem,
    start: Solution | None,
    tol: float,
    max_iter: int,
    progress: Progress = go_on,
) -> Solution:
    """Minimise a problem of Step 1; see `mbkl.solvers.problem`.

    Begin with some of the maps, and add in each round maps whose pull exceeds their price. One pass
    over all maps in each round gives their pulls and the duality gap of the whole problem. With few
    pairs the matrix of the current maps is formed.
    """
    operator, margins = problem.operator, problem.margins
    has_few_pairs = problem.n_rows <= limits.FEW_PAIRS and is_numpy(margins.costs)
    solve = _solve_densely if has_few_pairs else _solve_by_passes
    if start is None:
        kept = _is_missing(operator, -_pull_at_zero(problem), _FEWEST_ADDED)
    else:
        kept = _is_likely(start)
    n_iter, gap, last_goal = 0, np.inf, _LAST_GOAL * tol
    goal, is_stopped = max(_FIRST_GOAL, last_goal), False

    def report(so_far: Solution) -> bool:
        nonlocal is_stopped
        is_stopped = progress(replace(so_far, n_iter=n_iter + so_far.n_iter))
        return is_stopped

    for _ in range(_ROUNDS):
        kept = kept & operator.is_map
        near = start and replace(start, weights=start.weights[kept], slack=None)
        small, scores = solve(problem, kept, near, goal, max_iter - n_iter, report)
        solution, gradient = _for_all_maps(problem, kept, small, scores)
        solution.n_iter = n_iter = n_iter + small.n_iter
        is_cut_short = is_stopped or not small.is_within(goal).all()
        if is_cut_short or solution.is_within(tol).all():
            return solution
        likely = _is_likely(solution)
        # Near the end, or after a round that gained little, dropped maps would be added again.
        if _FIRST_GOAL < solution.relative_gap < _GAINED * gap:
            kept = likely
        gap = solution.relative_gap
        most = max(int(likely.sum()), _FEWEST_ADDED)
        kept = kept | _is_missing(operator, to_host(gradient)[:, 0], most)
        goal, start = max(_NEXT_GOAL * gap, last_goal), solution
    solution = _follow(problem, _inside(problem, solution), tol, max_iter - n_iter, report)
    return replace(solution, n_iter=n_iter + solution.n_iter)


# ------------------------------------------------------------- some of the maps


def _pull_at_zero(problem: Problem) -> Array:
    """Return the pull of each map, minus the derivative of the loss, where all weights are zero."""
    margins = problem.margins
    scores = 0.0 * margins.costs
    intercept = margins.best_intercept(scores, scores[0])
    supports = margins.support(scores + intercept)
    return to_host(problem.operator.adjoint(margins.signed(supports)))[:, 0]


def _solve_by_passes(problem: Problem, kept, near: Solution | None, goal, max_iter, progress):
    """Solve for some of the maps; return the solution and its scores."""
    fewer = replace(problem, operator=problem.operator.keep_maps(kept))
    is_map = fewer.operator.is_map
    if near is not None:
        weights = problem.operator.to_device(np.zeros(fewer.shape))
        weights[is_map] = problem.operator.to_device(near.weights)
        near = replace(near, weights=weights)
    small = _follow(fewer, _inside(fewer, near), goal, max_iter, progress)
    scores = fewer.operator.forward(small.weights)
    return replace(small, weights=small.weights[is_map], slack=small.slack[is_map]), scores


def _solve_densely(problem: Problem, kept, near: Solution | None, goal, max_iter, progress):
    """Solve for some of the maps with their matrix; return the solution and its scores."""
    fewer = problem.operator.keep_maps(kept)
    matrix = fewer.dense()[:, fewer.is_map]
    small = primal_dual.minimise(
        replace(problem, operator=DenseMaps(matrix)), near, goal, max_iter, progress
    )
    with one_blas_thread():
        return small, matrix @ small.weights


def _for_all_maps(problem: Problem, kept, small: Solution, scores: Values):
    """Return the solution for some of the maps as a solution for all, and its gradient."""
    operator = problem.operator
    weights = operator.to_device(np.zeros(problem.shape))
    weights[kept] = small.weights
    objective, gap, gradient = problem.assess(weights, scores, small.intercept, small.supports)
    slack = positive_part(gradient)
    slack[~operator.is_map], slack[kept] = 1.0, small.slack
    return replace(small, weights=weights, objective=objective, gap=gap, slack=slack), gradient


def _is_likely(solution: Solution) -> NDArray[np.bool_]:
    """Say which weights most likely stay positive."""
    weights = to_host(solution.weights)[:, 0]
    return weights > _UNLIKELY * weights[weights > 0].mean()


def _is_missing(operator, gradient: Array, most: int) -> NDArray[np.bool_]:
    """Say which maps would lower the objective; of many, the best of each run of neighbours."""
    missing = operator.is_map & (gradient < 0.0)
    if missing.sum() > most:
        chained = operator.is_chained[1:]
        missing[1:] &= ~chained | (gradient[1:] <= gradient[:-1])
        missing[:-1] &= ~chained | (gradient[:-1] < gradient[1:])
    numbers = np.flatnonzero(missing)
    numbers = numbers[np.argsort(gradient[numbers], kind="stable")[:most]]
    return np.isin(np.arange(missing.size), numbers)


# ------------------------------------------------------------- the central path


def _follow(problem: Problem, solution: Solution, tol, max_iter, progress) -> Solution:
    """Follow the central path from an interior point."""
    if solution.supports is not None:
        return _with_supports(problem, solution, tol, max_iter, progress)
    operator, margins = problem.operator, problem.margins
    scores = operator.forward(solution.weights)
    ending = Ending(tol, max_iter, progress)
    centring, n_short = 0.1, 0
    while True:
        solution.intercept = margins.best_intercept(scores, solution.intercept)
        weights, slack = solution.weights, solution.slack
        solution.objective, solution.gap, gradient = problem.assess(
            weights, scores, solution.intercept
        )
        if ending.is_here(solution):
            return solution
        barrier = centring * float(dot(weights, slack)[0]) / weights.shape[0]
        shifted = scores + solution.intercept
        penalty = slack / weights
        curvature = margins.curvature(shifted)
        reduced = gradient - barrier / weights
        step = NewtonSystem(operator, curvature, penalty).solve(-reduced, _CG_ACCURACY)
        slack_step = barrier / weights - slack - penalty * step
        slack_length = within(slack, slack_step)
        # Truncate the step of each weight that would become negative, since a common step length
        # would be short with thousands of weights.
        step = namespace(step).maximum(step, -TO_BOUNDARY * weights)
        change = operator.forward(step)
        shift = -weighted_means(change, curvature)
        rise = _rise(margins, weights, step, barrier, shifted, change + shift)
        steps, _ = descend(rise, dot(reduced, step))
        length = float(steps[0])
        solution.weights = weights + length * step
        solution.intercept = solution.intercept + length * shift
        solution.slack = slack + slack_length * slack_step
        solution.n_iter += 1
        n_short += length < _SHORT
        if n_short == _MOST_SHORT:
            return _with_supports(problem, solution, tol, max_iter, progress)
        scores += length * change
        centring = next_centring(min(length, slack_length))


def _with_supports(problem: Problem, solution: Solution, tol, max_iter, progress) -> Solution:
    """Continue with the primal-dual method, whose steps stay long as rows cross the margin."""
    left = max_iter - solution.n_iter
    final = primal_dual.minimise(problem, solution, tol, left, progress)
    return replace(final, n_iter=solution.n_iter + final.n_iter)


def _inside(problem: Problem, start: Solution | None) -> Solution:
    """Return an interior point: near a start, else equal weights at their best scale."""
    operator, margins = problem.operator, problem.margins
    supports = None if start is None else start.supports
    if start is None:
        weights, scores, intercept = equal_weights(problem)
    else:
        weights = operator.to_device(inside(start.weights))
        scores = operator.forward(weights)
        intercept = margins.best_intercept(scores, operator.to_device(start.intercept))
    objective, gap, gradient = problem.assess(weights, scores, intercept, supports)
    distance = _FAR if start is None else _NEAR
    slack = positive_part(gradient) + distance * max(1.0, -float(gradient.min()))
    return Solution(weights, intercept, objective, gap, supports=supports, slack=slack)


def _rise(margins, weights, step, barrier: float, scores, change):
    """Return the change of the objective with its barrier as a function of the step length."""
    before, total = margins.value(scores), step.sum(axis=0)

    def rise(length: Values) -> Values:
        logarithms = namespace(step).log1p(length * step / weights).sum(axis=0)
        loss = margins.value(scores + length * change) - before
        return loss + length * total - barrier * logarithms

    return rise

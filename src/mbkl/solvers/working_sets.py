"""Step 1 over some of its maps at a time: most weights end at zero, and need not be computed.

A problem of few maps is solved, all maps are asked by how much each is worth more than its
price, the strongest of these are added, and maps on their way to zero are left out. One pass
over all maps a round also gives the certificate, the duality gap of the whole problem.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import limits
from mbkl.engine.arrays import Values
from mbkl.solvers import primal_dual
from mbkl.solvers.blas import one_blas_thread
from mbkl.solvers.primal_dual import DenseMaps
from mbkl.solvers.problem import Minimise, Problem, Progress, Solution, go_on

# Maps with a weight below this share of the mean will most likely end at zero (measured).
_UNLIKELY = 0.03
# Tolerances: of the first round, of later ones as a share of the gap of all maps, and as a share
# of tol at the end; and the most rounds.
_FIRST_GOAL, _NEXT_GOAL, _LAST_GOAL, _ROUNDS = 0.1, 0.1, 0.7, 30
# Gap of all maps above which maps are left out again.
_FAR = 0.1


def minimise(
    problem: Problem,
    start: Solution | None,
    tol: float,
    max_iter: int,
    progress: Progress = go_on,
    *,
    solve: Minimise,
    first: NDArray[np.bool_] | None = None,
) -> Solution:
    """Minimise a problem of Step 1; see `mbkl.solvers.problem`.

    Parameters
    ----------
    problem, start, tol, max_iter, progress
        See `mbkl.solvers.problem`.
    solve : callable
        The solver of problems of some of the maps that are too large to form their matrix.
    first : ndarray of shape (n_maps,) or None
        The maps to begin with; None means those that pull most.
    """
    operator = problem.operator
    is_map = operator.is_map
    kept = _strongest(problem) if first is None else first
    if start is not None:
        kept = kept | _is_likely(start)
    n_iter, last_goal = 0, _LAST_GOAL * tol

    is_told_to_end = False

    def tell(so_far: Solution) -> bool:
        nonlocal is_told_to_end
        is_told_to_end = progress(replace(so_far, n_iter=n_iter + so_far.n_iter))
        return is_told_to_end

    goal = max(_FIRST_GOAL, last_goal)
    for _ in range(_ROUNDS):
        kept = kept & is_map
        near = start and replace(start, weights=start.weights[kept], slack=None)
        is_small = float(problem.n_rows) * kept.sum() ** 2 <= limits.DENSE_WORK_OF_MAPS
        on_part = partial(_densely if is_small else _by_passes, solve=solve)
        small, scores = on_part(problem, kept, near, goal, max_iter - n_iter, tell)
        solution, gradient = _for_all_maps(problem, kept, small, scores)
        solution.n_iter = n_iter = n_iter + small.n_iter
        is_over = is_told_to_end or not small.is_within(goal).all()
        if is_over or solution.is_within(tol).all():
            return solution
        likely = _is_likely(solution)
        most = max(int(likely.sum()), limits.FIRST_MAPS)
        if solution.relative_gap > _FAR:  # later on, what is dropped is missed in the next round
            kept = likely
        kept = kept | _is_missing(operator, gradient[:, 0], most)
        goal, start = max(_NEXT_GOAL * solution.relative_gap, last_goal), solution
    solution = solve(problem, solution, tol, max_iter - n_iter, tell)
    return replace(solution, n_iter=n_iter + solution.n_iter)


def _densely(problem: Problem, kept, near, goal, max_iter, progress, solve):
    """Solve for some of the maps exactly, with their matrix; return the solution and its scores."""
    matrix = problem.operator.columns(kept)
    part = replace(problem, operator=DenseMaps(matrix))
    small = primal_dual.minimise(part, near, goal, max_iter, progress)
    with one_blas_thread():
        return small, matrix @ small.weights


def _by_passes(problem: Problem, kept, near, goal, max_iter, progress, solve: Minimise):
    """Solve for some of the maps by passes over them; return the solution and its scores."""
    part = replace(problem, operator=problem.operator.keep_maps(kept))
    own = part.operator.is_map
    if near is not None:
        weights = np.zeros(part.shape)
        weights[own] = near.weights
        near = replace(near, weights=weights)
    small = solve(part, near, goal, max_iter, progress)
    scores = part.operator.forward(small.weights)
    return replace(small, weights=small.weights[own], slack=small.slack[own]), scores


def _strongest(problem: Problem) -> NDArray[np.bool_]:
    """Say which maps pull most where all weights are zero, of each run of neighbours one."""
    margins = problem.margins
    scores = 0.0 * margins.costs
    supports = margins.support(scores + margins.best_intercept(scores, 0.0 * scores[0]))
    pull = problem.operator.adjoint(margins.labels * supports)[:, 0]
    candidates = _best_of_neighbours(problem.operator, -pull)
    return _lowest(-pull, candidates, limits.FIRST_MAPS)


def _lowest(values: Values, among: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Say which of some values are the lowest ones."""
    numbers = np.flatnonzero(among)
    order = np.argsort(values[numbers], kind="stable")[:most]
    chosen = np.zeros(among.size, dtype=bool)
    chosen[numbers[order]] = True
    return chosen


def _is_likely(solution: Solution) -> NDArray[np.bool_]:
    """Say which weights are not on their way to zero."""
    weights = solution.weights[:, 0]
    return weights > _UNLIKELY * weights[weights > 0].mean()


def _is_missing(operator, gradient: Values, most: int) -> NDArray[np.bool_]:
    """Say which maps would lower the objective; of many the best of each run of neighbours."""
    missing = operator.is_map & (gradient < 0.0)
    if missing.sum() > most:
        missing &= _best_of_neighbours(operator, gradient)
    return _lowest(gradient, missing, most)


def _best_of_neighbours(operator, gradient: Values) -> NDArray[np.bool_]:
    """Say which maps have a lower gradient than their neighbours in the chain."""
    chained, best = operator.is_chained, operator.is_map.copy()
    best[1:] &= ~chained[1:] | (gradient[1:] <= gradient[:-1])
    best[:-1] &= ~chained[1:] | (gradient[:-1] < gradient[1:])
    return best


def _for_all_maps(problem: Problem, kept, small: Solution, scores) -> tuple[Solution, Values]:
    """Return the solution for some of the maps as one for all, and its gradient."""
    weights = np.zeros(problem.shape)
    weights[kept] = small.weights
    objective, gap, gradient = problem.assess(weights, scores, small.intercept, small.supports)
    slack = np.where(problem.operator.is_map[:, None], np.maximum(gradient, 0.0), 1.0)
    slack[kept] = small.slack
    return replace(small, weights=weights, objective=objective, gap=gap, slack=slack), gradient

"""The choice of the solver by the size of a problem; `mbkl.engine.limits` holds the limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mbkl.engine import limits
from mbkl.solvers import barrier, gram_newton, newton_cg, primal_dual
from mbkl.solvers.primal_dual import RootMaps
from mbkl.solvers.problem import (
    Minimise,
    Problem,
    Progress,
    SharedProgress,
    Solution,
    SquaredError,
    SquaredHinge,
    go_on,
    joined,
    smoothing_path,
)

# All solvers: the type checker verifies here that they follow the contract.
SOLVERS: tuple[Minimise, ...] = (
    barrier.minimise,
    gram_newton.minimise,
    newton_cg.minimise,
    primal_dual.minimise,
)


def solve(
    problem: Problem,
    start: Solution | None,
    tol: float,
    max_iter: int,
    progress: Progress = go_on,
) -> Solution:
    """Solve a problem of either step by the fastest solver; see `mbkl.solvers.problem`."""
    return _solver_of(problem)(problem, start, tol, max_iter, progress)


def may_use_gram(n_rows: int, n_weights: int) -> bool:
    """Say whether the kernel matrix of the rows is the fastest way for the squared hinge."""
    return n_rows <= min(limits.FEW_ROWS_GRAM, n_weights)


def may_leave_out(operator, loss: str) -> bool:
    """Say whether Step 2 of classes can give leave-one-out scores."""
    return loss == "squared_hinge" and not operator.many_at_once


def is_for_device(operator, n_problems: int) -> bool:
    """Say whether so many problems are solved faster on a device than by a kernel matrix."""
    return operator.many_at_once and n_problems >= limits.PROBLEMS_AT_ONCE


def _solver_of(problem: Problem) -> Minimise:
    """Return the fastest solver of a problem."""
    if problem.penalty is None:
        return barrier.minimise
    if problem.operator.many_at_once:
        return _on_device
    loss = problem.margins.loss
    suits_gram = isinstance(loss, SquaredHinge) or problem.margins.is_numeric
    is_small = problem.needs_left_out or may_use_gram(problem.n_rows, problem.shape[0])
    has_few_kinks = bool(loss.path) and problem.n_rows <= limits.FEW_ROWS_HINGE
    if problem.gram is not None and ((suits_gram and is_small) or has_few_kinks):
        return _with_root if loss.path else _with_gram
    return _along_the_path


def _along_the_path(problem: Problem, start, tol, max_iter, progress) -> Solution:
    """Minimise each loss of the smoothing path, starting from the solution before."""
    n_iter, solution = 0, start
    for loss in smoothing_path(problem.margins.loss):
        stage = replace(problem, margins=replace(problem.margins, loss=loss))
        left = max(max_iter - n_iter, 1)
        solution = newton_cg.minimise(stage, solution, tol, left, progress)
        n_iter += solution.n_iter
    return replace(solution, n_iter=n_iter)


def _on_device(problem: Problem, start, tol, max_iter, progress) -> Solution:
    """Solve all columns at once on a device; weights that are not needed stay there."""
    solution = _along_the_path(problem, start, tol, max_iter, progress)
    return solution.on_host(problem.operator.to_host) if problem.needs_weights else solution


def _with_gram(problem: Problem, start, tol, max_iter, progress) -> Solution:
    """Solve by the kernel matrix; of few rows solve columns that rounding stops by its root."""
    shared = SharedProgress(progress)
    solution = gram_newton.minimise(problem, start, tol, max_iter, shared)
    stuck = np.flatnonzero(~solution.is_within(tol))
    is_cut_short = solution.n_iter == max_iter or shared.is_told_to_stop
    # A squared error is solved in one step, which the root does not improve.
    may_help = problem.n_rows <= limits.FEW_ROWS_STUCK
    may_help &= not isinstance(problem.margins.loss, SquaredError)
    if stuck.size and not is_cut_short and may_help:
        exact = _with_root(problem.columns(stuck), None, tol, max_iter, progress)
        variables = ("weights", "supports")
        both = [(name, getattr(solution, name), getattr(exact, name)) for name in variables]
        names = [name for name, old, new in both if old is not None and new is not None]
        better = (exact.gap < solution.gap[stuck]) & bool(names)
        stuck, better = stuck[better], np.flatnonzero(better)
        for name in (*names, "intercept", "objective", "gap"):
            getattr(solution, name)[..., stuck] = getattr(exact, name)[..., better]
    return solution


def _with_root(problem: Problem, start, tol, max_iter, progress) -> Solution:
    """Solve by a root of the kernel matrix and interior points, whose steps a kink leaves long.

    The start is ignored, so that the solution does not depend on what was solved before.
    """
    assert problem.gram is not None
    assert problem.penalty is not None
    maps = RootMaps.of(problem.gram())
    by_root = replace(problem, operator=maps, penalty=maps.penalty)
    columns = (by_root.columns(np.array([column])) for column in range(problem.shape[1]))
    solved = [primal_dual.minimise(each, None, tol, max_iter, progress) for each in columns]
    solution = joined(solved)
    if not np.isfinite(solution.weights).all():  # weights of rows that differ extremely
        return _along_the_path(problem, None, tol, max_iter, progress)
    supports = maps.combinations(solution.weights)
    weights = problem.operator.adjoint(supports) / problem.penalty[:, None]
    scores = problem.operator.forward(weights)
    objective, gap, _ = problem.assess(weights, scores, solution.intercept, solution.supports)
    return Solution(weights, solution.intercept, objective, gap, solution.n_iter, supports)

"""Which solver a problem gets, by its sizes; `mbkl.engine.limits` holds the numbers."""

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

# All solvers: here the type checker holds them to the contract.
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
    """Say whether rows of classes can be scored by all others while they are solved for."""
    return loss == "squared_hinge" and not operator.many_at_once


def is_for_device(operator, n_problems: int) -> bool:
    """Say whether so many problems are solved sooner at once than through a kernel matrix."""
    return operator.many_at_once and n_problems >= limits.PROBLEMS_AT_ONCE


def _solver_of(problem: Problem) -> Minimise:
    """Return what solves a problem fastest."""
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
    """Minimise each loss of the smoothing path, from the solution of the one before."""
    n_iter, solution = 0, start
    for loss in smoothing_path(problem.margins.loss):
        stage = replace(problem, margins=replace(problem.margins, loss=loss))
        left = max(max_iter - n_iter, 1)
        solution = newton_cg.minimise(stage, solution, tol, left, progress)
        n_iter += solution.n_iter
    return replace(solution, n_iter=n_iter)


def _on_device(problem: Problem, start, tol, max_iter, progress) -> Solution:
    """Solve all columns at once, on a device, where weights stay that are needed no further."""
    solution = _along_the_path(problem, start, tol, max_iter, progress)
    return solution.on_host(problem.operator.to_host) if problem.needs_weights else solution


def _with_gram(problem: Problem, start, tol, max_iter, progress) -> Solution:
    """Solve through the kernel matrix; columns that rounding stops, of few rows, by its root."""
    tell = SharedProgress(progress)
    solution = gram_newton.minimise(problem, start, tol, max_iter, tell)
    stuck = np.flatnonzero(~solution.is_within(tol))
    is_told_to_end = solution.n_iter == max_iter or tell.is_told_to_stop
    # What rounding leaves of a squared error is all there is.
    may_help = problem.n_rows <= limits.FEW_ROWS_STUCK
    may_help &= not isinstance(problem.margins.loss, SquaredError)
    if stuck.size and not is_told_to_end and may_help:
        exact = _with_root(problem.columns(stuck), None, tol, max_iter, progress)
        variables = ("weights", "supports")
        names = [name for name in variables if _both_have(name, solution, exact)]
        better = (exact.gap < solution.gap[stuck]) & bool(names)
        stuck, better = stuck[better], np.flatnonzero(better)
        for name in (*names, "intercept", "objective", "gap"):
            getattr(solution, name)[..., stuck] = getattr(exact, name)[..., better]
    return solution


def _both_have(name: str, one: Solution, other: Solution) -> bool:
    return getattr(one, name) is not None and getattr(other, name) is not None


def _with_root(problem: Problem, start, tol, max_iter, progress) -> Solution:
    """Solve through a root of the kernel matrix, by steps that a kink does not shorten.

    It begins anew whatever the start, and so finds the same whatever was solved before.
    """
    assert problem.gram is not None
    assert problem.penalty is not None
    maps = RootMaps.of(problem.gram())
    alike = replace(problem, operator=maps, penalty=maps.penalty)
    columns = (alike.columns(np.array([column])) for column in range(problem.shape[1]))
    own = [primal_dual.minimise(each, None, tol, max_iter, progress) for each in columns]
    solution = joined(own)
    if not np.isfinite(solution.weights).all():  # rows of which some weigh nothing beside others
        return _along_the_path(problem, None, tol, max_iter, progress)
    supports = maps.combinations(solution.weights)
    weights = problem.operator.adjoint(supports) / problem.penalty[:, None]
    scores = problem.operator.forward(weights)
    objective, gap, _ = problem.assess(weights, scores, solution.intercept, solution.supports)
    return Solution(weights, solution.intercept, objective, gap, solution.n_iter, supports)

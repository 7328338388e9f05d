"""Newton's method with conjugate gradients, for Step 2 with a smooth loss.

All columns share the passes over the data that give scores and gradients. Each has a
Newton system of its own, since each has other rows inside the margin.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from mbkl.engine.arrays import Values, cast, namespace, to_host
from mbkl.solvers.newton_system import NewtonSystem, descend, weighted_means
from mbkl.solvers.problem import FirstRows, Problem, Progress, Solution, go_on

# Relative to the objective: below this a smoothed loss, whose duality gap never
# closes, is solved as well as rounding allows.
_SMALLEST_GAIN = 1e-9
_SMALLEST_GAIN_SINGLE = 1e-6


def minimise(
    problem: Problem,
    start: Solution,
    tol: float,
    max_iter: int,
    progress: Progress = go_on,
    part: FirstRows | None = None,
    at_once: bool = False,
) -> Solution:
    """Minimise all columns side by side; see `mbkl.solvers.problem`.

    From `part` the Newton systems of many more rows are preconditioned; those of all columns are
    solved `at_once`, each on all rows, or one after the other.
    """
    operator, margins = problem.operator, problem.margins
    assert problem.penalty is not None
    penalty = problem.penalty[:, None]
    xp = namespace(start.weights)
    scores = operator.forward(start.weights)
    nowhere = np.inf + start.intercept
    solution = Solution(1.0 * start.weights, 1.0 * start.intercept, 1.0 * nowhere, nowhere)
    smallest_gain = _SMALLEST_GAIN if scores.itemsize == 8 else _SMALLEST_GAIN_SINGLE
    # A narrow parabola in place of a kink leaves no room for errors.
    coarse = nullcontext if margins.loss.path else operator.coarse
    columns = np.arange(nowhere.shape[0])  # those not solved yet
    first_size = np.nan * start.intercept
    for solution.n_iter in range(max_iter + 1):
        rest = problem.columns(columns)
        intercept = solution.intercept[columns]
        intercept = rest.margins.best_intercept(scores[:, columns], intercept)
        solution.intercept[columns] = intercept
        solution.objective[columns], solution.gap[columns], gradient = rest.assess(
            solution.weights[:, columns], scores[:, columns], intercept
        )
        closed = solution.is_within(tol)[columns]
        if progress(solution) or closed.all() or solution.n_iter == max_iter:
            break
        columns, gradient = columns[~closed], gradient[:, np.flatnonzero(~closed)]
        loss = margins.columns(columns)
        weights = solution.weights[:, columns]
        shifted = scores[:, columns] + cast(solution.intercept[columns], scores)
        curvature = loss.curvature(shifted)
        groups = [slice(None)] if at_once else [slice(k, k + 1) for k in range(columns.size)]
        directions, sizes = xp.empty_like(gradient), xp.empty_like(gradient[0])
        with coarse():
            for own in groups:
                system = NewtonSystem(operator, curvature[:, own], penalty, part)
                sizes[own] = system.size(gradient[:, own])
                accuracy = _accuracy(sizes[own], first_size[columns[own]])
                directions[:, own] = system.solve(-gradient[:, own], accuracy)
        first_size[columns] = xp.fmax(first_size[columns], sizes)
        change = operator.forward(directions)
        shifts = -weighted_means(change, curvature)
        steps, gains = descend(
            _rise(loss, penalty, weights, directions, shifted, change + cast(shifts, change)),
            (gradient * directions).sum(axis=0),
        )
        solution.weights[:, columns] += steps * directions
        solution.intercept[columns] += steps * shifts
        scores[:, columns] += cast(steps, change) * change
        moving = (steps > 0) & (gains > smallest_gain * solution.objective[columns])
        columns = columns[to_host(moving)]
        if not columns.size:
            break
    return solution


def _accuracy(size: Values, first_size: Values) -> Values:
    """Return how far to solve: loosely at first, then tighter as the gradient shrinks."""
    xp = namespace(size)
    share = size / xp.fmax(first_size, size)
    return xp.fmin(0.5 * share**0.5, 0.0 * share + 0.25)


def _rise(margins, penalty, weights, directions, scores, change):
    """Return a function that says how steps along the directions change the objectives."""
    linear = (penalty * weights * directions).sum(axis=0)
    square = (penalty * directions**2).sum(axis=0)
    before = margins.value(scores)

    def rise(steps: Values) -> Values:
        change_of_penalty = steps * linear + 0.5 * steps**2 * square
        return margins.value(scores + cast(steps, change) * change) - before + change_of_penalty

    return rise

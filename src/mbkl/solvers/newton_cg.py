"""Newton's method with conjugate gradients, several problems in lock-step.

Minimises, for each column y of the jumps a and the free intercept b,

    1/2 sum_k penalty_k a_ky^2  +  sum_rows cost * loss(label_y * (Z a_y + b_y)).

All columns share the passes over the data that give scores and gradients. The
Newton system of a column involves only the rows on which its loss is curved
(for the squared hinge those inside the margin), so it is solved on a copy of
just these rows' codes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.fixed_point import exact_sum
from mbkl.learn.margins import Margins
from mbkl.learn.operator import AnyOperator
from mbkl.solvers.conjugate_gradient import conjugate_gradient, dot
from mbkl.solvers.tridiagonal import ChainPreconditioner

Array = NDArray[np.float64]

# Copying the curved rows pays when it leaves out at least this share (measured).
_WORTH_COPYING = 0.8
_MAX_CG_ITER = 250
# Relative to the objective: below this a smoothed loss, whose duality gap never
# closes, is solved as well as rounding allows.
_SMALLEST_GAIN = 1e-9


@dataclass
class Solution:
    """Where a solver stands; arrays have one column (or entry) per problem.

    `alpha` are the coefficients of the rows, from a solver that has them.
    """

    jumps: Array
    intercept: Array
    objective: Array
    gap: Array
    n_iter: int = 0
    alpha: Array | None = None

    @property
    def relative_gap(self) -> float:
        return float((self.gap / self.objective).max(initial=0.0))


def minimise(
    operator: AnyOperator,
    margins: Margins,
    penalty: Array,
    jumps: Array,
    intercept: Array,
    tol: float,
    max_iter: int,
    progress: Callable[[Solution], bool] = lambda solution: False,
) -> Solution:
    """Minimise all columns until each one's duality gap is at most tol * objective.

    Parameters
    ----------
    operator : MapOperator or JointOperator
    margins : Margins
    penalty : ndarray of shape (n_cells,)
        Positive quadratic penalty of each jump.
    jumps, intercept : ndarray of shapes (n_cells, n_columns) and (n_columns,)
        Where to start.
    tol : float
    max_iter : int
    progress : callable
        Called once an iteration with the `Solution` so far; True stops.

    Returns
    -------
    solution : Solution
    """
    scores = operator.forward(jumps)
    solution = Solution(jumps.copy(), intercept.copy(), np.inf + intercept, np.inf + intercept)
    open_columns = np.arange(intercept.size)
    first_size = np.full(intercept.size, np.nan)
    for solution.n_iter in range(max_iter + 1):
        part = margins.columns(open_columns)
        start = solution.intercept[open_columns]
        solution.intercept[open_columns] = part.best_intercept(scores[:, open_columns], start)
        gradient = _assess(operator, part, penalty, scores, solution, open_columns)
        closed = solution.gap[open_columns] <= tol * solution.objective[open_columns]
        if progress(solution) or closed.all() or solution.n_iter == max_iter:
            break
        open_columns, gradient = open_columns[~closed], gradient[:, ~closed]
        part = margins.columns(open_columns)
        shifted = scores[:, open_columns] + solution.intercept[open_columns]
        directions = np.empty_like(gradient)
        curvature = part.curvature(shifted)
        for position, column in enumerate(open_columns):
            system = NewtonSystem(operator, curvature[:, position], penalty)
            size = system.size(gradient[:, position])
            first_size[column] = np.fmax(first_size[column], size)
            # Loose while far from the solution, then tighter: superlinear.
            accuracy = min(0.25, 0.5 * (size / first_size[column]) ** 0.5)
            directions[:, position] = system.solve(-gradient[:, position], accuracy)
        change = operator.forward(directions)
        shifts = -weighted_means(change, curvature)
        steps, gains = _line_search(
            part, penalty, solution.jumps[:, open_columns], directions, gradient,
            shifted, change + shifts,
        )  # fmt: skip
        solution.jumps[:, open_columns] += steps * directions
        solution.intercept[open_columns] += steps * shifts
        scores[:, open_columns] += steps * change
        moving = (steps > 0) & (gains > _SMALLEST_GAIN * solution.objective[open_columns])
        open_columns = open_columns[moving]
        if not open_columns.size:
            break
    return solution


def _assess(operator, part, penalty, scores, solution, columns) -> Array:
    """Update objective and duality gap of some columns; return their gradients."""
    jumps = solution.jumps[:, columns]
    shifted = scores[:, columns] + solution.intercept[columns]
    support = part.support(shifted)
    pull = operator.adjoint(part.labels * support)
    quadratic = 0.5 * (penalty[:, None] * jumps**2).sum(axis=0)
    dual = part.dual_value(support) - 0.5 * (pull**2 / penalty[:, None]).sum(axis=0)
    solution.objective[columns] = quadratic + part.exact_value(shifted)
    solution.gap[columns] = np.maximum(solution.objective[columns] - dual, 0.0)
    return penalty[:, None] * jumps - pull


class NewtonSystem:
    """The Hessian of one column, with the intercept eliminated.

    Parameters
    ----------
    operator : object with take_narrow, forward, adjoint_and_total, products
    curvature : ndarray of shape (n_rows,)
    penalty : ndarray of shape (n_cells,)
    """

    def __init__(self, operator, curvature: Array, penalty: Array) -> None:
        rows = np.flatnonzero(curvature)
        if rows.size < _WORTH_COPYING * curvature.size:
            operator, curvature = operator.take_narrow(rows), curvature[rows]
        self._operator, self._penalty = operator, penalty
        self._curvature = curvature[:, None]
        total, mean, diagonal, neighbour = operator.products(self._curvature)
        # Eliminating the intercept centres the columns.
        self._share = mean / total if total else mean
        chained = operator.is_chained[1:]
        neighbour[1:] -= np.where(chained, mean[1:] * self._share[:-1], 0.0)
        diagonal = np.maximum(diagonal - mean * self._share, 0.0)
        self._preconditioner = ChainPreconditioner(diagonal, neighbour, penalty)

    def size(self, gradient: Array) -> float:
        """Return the norm of the gradient that the preconditioner induces."""
        return max(dot(gradient, self._preconditioner.solve(gradient)), 0.0) ** 0.5

    def solve(self, right: Array, accuracy: float) -> Array:
        """Return the step of the jumps; that of the intercept follows from its scores."""
        step, _ = conjugate_gradient(
            self._product, self._preconditioner.solve, right, accuracy, _MAX_CG_ITER
        )
        return step

    def _product(self, direction: Array) -> Array:
        scores = self._operator.forward(direction[:, None])
        pull, total = self._operator.adjoint_and_total(self._curvature * scores)
        return self._penalty * direction + pull[:, 0] - self._share * total[0]


def weighted_means(scores: Array, weights: Array) -> Array:
    """Return the weighted mean of each column, zero where all weights are."""
    totals = exact_sum(weights)
    return exact_sum(weights * scores) / np.where(totals > 0, totals, 1.0)


def _line_search(part, penalty, jumps, directions, gradient, scores, change) -> tuple[Array, Array]:
    """Return for each column a step that lowers its objective enough (or zero), and the gain."""
    linear = (penalty[:, None] * jumps * directions).sum(axis=0)
    square = (penalty[:, None] * directions**2).sum(axis=0)
    slope = (gradient * directions).sum(axis=0)
    before = part.value(scores)
    steps = np.ones(slope.size)
    for _ in range(40):
        change_of_penalty = steps * linear + 0.5 * steps**2 * square
        gain = part.value(scores + steps * change) - before + change_of_penalty
        enough = gain <= 1e-4 * steps * slope
        if enough.all():
            return steps, -gain
        steps = np.where(enough, steps, steps / 2)
    return np.where(enough, steps, 0.0), -gain

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
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from mbkl.engine.fixed_point import exact_sum, exact_total
from mbkl.engine.namespace import Values, cast, index_for, is_numpy, namespace, to_host
from mbkl.learn.losses import Hinge, positive_part
from mbkl.learn.margins import Margins
from mbkl.learn.operator import AnyOperator
from mbkl.solvers.blas import one_blas_thread
from mbkl.solvers.conjugate_gradient import conjugate_gradient, dot
from mbkl.solvers.gram_newton import factor_of
from mbkl.solvers.tridiagonal import ChainPreconditioner

# Copying the curved rows pays when it leaves out at least this share (measured).
_WORTH_COPYING = 0.8
_MAX_CG_ITER = 250
# Share of the curved rows from which to precondition: more cost more than they save, and few
# tell nothing (measured).
_PART = 0.25
_FEWEST_OF_A_PART = 300
# Relative to the objective: below this a smoothed loss, whose duality gap never
# closes, is solved as well as rounding allows.
_SMALLEST_GAIN = 1e-9
_SMALLEST_GAIN_SINGLE = 1e-6


@dataclass
class Solution:
    """Where a solver stands; arrays have one column (or entry) per problem.

    `alpha` are the coefficients of the rows, from a solver that has them.
    """

    jumps: Values
    intercept: Values
    objective: Values
    gap: Values
    n_iter: int = 0
    alpha: Values | None = None

    @property
    def relative_gap(self) -> float:
        return float((self.gap / self.objective).max(initial=0.0))

    def on_host(self) -> Solution:
        """Return the solution with all but the jumps as arrays of NumPy."""
        return replace(
            self,
            intercept=to_host(self.intercept),
            objective=to_host(self.objective),
            gap=to_host(self.gap),
        )


@dataclass(frozen=True)
class FirstRows:
    """Some rows that are as good as random, from which Newton systems are preconditioned.

    Parameters
    ----------
    operator : MapOperator or JointOperator
        On these rows.
    numbers : slice or ndarray
        Which of all rows they are.
    gram : ndarray of shape (n_rows, n_rows) or None
        Z diag(1 / penalty) Z' of these rows.
    """

    operator: AnyOperator
    numbers: Any
    gram: Values = None

    def with_gram(self, kernel_weights: Values) -> FirstRows:
        """Return the same with their kernel matrix."""
        return replace(self, gram=self.operator.gram(kernel_weights))


def minimise(
    operator: AnyOperator,
    margins: Margins,
    penalty: Values,
    jumps: Values,
    intercept: Values,
    tol: float,
    max_iter: int,
    progress: Callable[[Solution], bool] = lambda solution: False,
    part: FirstRows | None = None,
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
    part : FirstRows or None
        A sample from which Newton systems of many more rows are preconditioned.

    Returns
    -------
    solution : Solution
    """
    xp = namespace(jumps)
    scores = operator.forward(jumps)
    solution = Solution(1.0 * jumps, 1.0 * intercept, np.inf + intercept, np.inf + intercept)
    smallest_gain = _SMALLEST_GAIN if scores.itemsize == 8 else _SMALLEST_GAIN_SINGLE
    open_columns = np.arange(intercept.shape[0])
    first_size = np.nan * intercept
    for solution.n_iter in range(max_iter + 1):
        rest = margins.columns(open_columns)
        start = solution.intercept[open_columns]
        solution.intercept[open_columns] = rest.best_intercept(scores[:, open_columns], start)
        gradient = _assess(operator, rest, penalty, scores, solution, open_columns)
        closed = to_host(solution.gap[open_columns] <= tol * solution.objective[open_columns])
        if progress(solution) or closed.all() or solution.n_iter == max_iter:
            break
        open_columns, gradient = open_columns[~closed], gradient[:, np.flatnonzero(~closed)]
        rest = margins.columns(open_columns)
        shifted = scores[:, open_columns] + cast(solution.intercept[open_columns], scores)
        curvature = rest.curvature(shifted)
        # A narrow parabola in place of a kink leaves no room for errors.
        coarse = nullcontext if isinstance(margins.loss, Hinge) else operator.coarse
        with coarse():
            directions, sizes = _directions(
                operator, curvature, penalty, gradient, first_size[open_columns], part
            )
        first_size[open_columns] = xp.fmax(first_size[open_columns], sizes)
        change = operator.forward(directions)
        shifts = -weighted_means(change, curvature)
        steps, gains = _line_search(
            rest, penalty, solution.jumps[:, open_columns], directions, gradient,
            shifted, change + cast(shifts, change),
        )  # fmt: skip
        solution.jumps[:, open_columns] += steps * directions
        solution.intercept[open_columns] += steps * shifts
        scores[:, open_columns] += cast(steps, change) * change
        moving = (steps > 0) & (gains > smallest_gain * solution.objective[open_columns])
        open_columns = open_columns[to_host(moving)]
        if not open_columns.size:
            break
    return solution


def _directions(operator, curvature, penalty, gradient, first_size, part) -> tuple[Values, Values]:
    """Return Newton steps, and the norms of the gradients that preconditioners induce."""
    if operator.in_lockstep:
        lockstep = LockstepSystem(operator, curvature, penalty)
        sizes = lockstep.size(gradient)
        return lockstep.solve(-gradient, _accuracy(sizes, first_size)), sizes
    directions, sizes = np.empty_like(gradient), np.empty(first_size.size)
    for position in range(first_size.size):
        system = NewtonSystem(operator, curvature[:, position], penalty, part)
        sizes[position] = system.size(gradient[:, position])
        accuracy = _accuracy(sizes[position], first_size[position])
        directions[:, position] = system.solve(-gradient[:, position], accuracy)
    return directions, sizes


def _accuracy(size: Values, first_size: Values) -> Values:
    """Return how far to solve: loosely far from the solution, then tighter: superlinear."""
    xp = namespace(size)
    share = size / xp.fmax(first_size, size)
    return xp.fmin(0.5 * share**0.5, 0.0 * share + 0.25)


def _assess(operator, margins, penalty, scores, solution, columns) -> Values:
    """Update objective and duality gap of some columns; return their gradients."""
    jumps = solution.jumps[:, columns]
    shifted = scores[:, columns] + cast(solution.intercept[columns], scores)
    support = margins.support(shifted)
    pull = operator.adjoint(margins.labels * support)
    quadratic = 0.5 * (penalty[:, None] * jumps**2).sum(axis=0)
    dual = margins.dual_value(support) - 0.5 * (pull**2 / penalty[:, None]).sum(axis=0)
    solution.objective[columns] = quadratic + margins.exact_value(shifted)
    solution.gap[columns] = positive_part(solution.objective[columns] - dual)
    return penalty[:, None] * jumps - pull


class NewtonSystem:
    """The Hessian of one column, with the intercept eliminated.

    Parameters
    ----------
    operator : object with take_narrow, forward, adjoint_and_total, products
    curvature : ndarray of shape (n_rows,)
    penalty : ndarray of shape (n_cells,)
    part : FirstRows or None
        See `minimise`.
    """

    def __init__(self, operator, curvature: Values, penalty: Values, part=None) -> None:
        preconditioner = None
        if is_numpy(curvature):
            rows = np.flatnonzero(curvature)
            if part is not None:
                of_part = curvature[part.numbers]
                first = np.flatnonzero(of_part)[: int(_PART * rows.size)]
                if first.size >= _FEWEST_OF_A_PART:
                    weights = of_part[first] * (exact_total(curvature) / of_part[first].sum())
                    preconditioner = PartPreconditioner(part, first, weights, penalty)
            if rows.size < _WORTH_COPYING * curvature.size:
                operator, curvature = operator.take_narrow(rows), curvature[rows]
        self._operator, self._penalty = operator, penalty
        self._curvature = curvature[:, None]
        share, diagonal, neighbour = _centred(operator, self._curvature)
        self._share = share[:, 0]
        self._preconditioner = preconditioner or ChainPreconditioner(
            diagonal[:, 0], neighbour[:, 0], penalty, operator.longest_chain
        )

    def size(self, gradient: Values) -> float:
        """Return the norm of the gradient that the preconditioner induces."""
        return max(float(dot(gradient, self._preconditioner.solve(gradient))), 0.0) ** 0.5

    def solve(self, right: Values, accuracy: float) -> Values:
        """Return the step of the jumps; that of the intercept follows from its scores."""
        step, _ = conjugate_gradient(
            self._product, self._preconditioner.solve, right, accuracy, _MAX_CG_ITER
        )
        return step

    def _product(self, direction: Values) -> Values:
        scores = self._operator.forward(direction[:, None])
        pull, total = self._operator.adjoint_and_total(self._curvature * scores)
        return self._penalty * direction + pull[:, 0] - self._share * total[0]


class PartPreconditioner:
    """The inverse of the Hessian as the first rows tell it, in closed form.

    The Hessian is the penalty plus what the rows add. Of many rows a part shows nearly
    the same; its rank is that of the part, so that the inverse takes a matrix of the size of
    the part alone (Woodbury's formula).

    Parameters
    ----------
    part : FirstRows
    rows : ndarray of shape (n_rows,)
        Some of these, with positive curvature.
    weights : ndarray of shape (n_rows,)
        Their curvature, as large together as that of all rows.
    penalty : ndarray of shape (n_cells,)
    """

    def __init__(self, part: FirstRows, rows, weights, penalty) -> None:
        self._operator, self._penalty = part.operator.take_narrow(rows), penalty
        self._share = weights / weights.sum()
        # Eliminating the intercept centres the columns.
        centred = part.gram[np.ix_(rows, rows)]
        with one_blas_thread():
            mean = centred @ self._share
            level = self._share @ mean
            # In place: of thousands of rows the matrix is large.
            centred -= mean
            centred -= mean[:, None]
            centred += level
            self._factor = factor_of(centred, weights)

    def solve(self, right: Values) -> Values:
        """Return the solution for one right-hand side."""
        scaled = right / self._penalty
        scores = self._operator.forward(scaled[:, None])[:, 0]
        scores -= dot(self._share, scores)
        with one_blas_thread():
            alpha = cho_solve(self._factor, scores, check_finite=False)
        alpha -= self._share * alpha.sum()
        return scaled - self._operator.adjoint(alpha[:, None])[:, 0] / self._penalty


class LockstepSystem:
    """The Hessians of all columns, on all rows: for a device that is fast at many at once.

    Parameters
    ----------
    operator : object with forward, adjoint_and_total, products, coarse
    curvature : tensor of shape (n_rows, n_columns)
    penalty : tensor of shape (n_cells,)
    """

    def __init__(self, operator, curvature: Values, penalty: Values) -> None:
        self._operator, self._curvature, self._penalty = operator, curvature, penalty[:, None]
        self._share, diagonal, neighbour = _centred(operator, curvature)
        self._preconditioner = ChainPreconditioner(
            diagonal, neighbour, penalty, operator.longest_chain
        )

    def size(self, gradient: Values) -> Values:
        """Return the norms of the gradients that the preconditioner induces."""
        return positive_part(dot(gradient, self._preconditioner.solve(gradient))) ** 0.5

    def solve(self, right: Values, accuracy: Values) -> Values:
        """Return the steps of the jumps."""
        step, _ = conjugate_gradient(
            self._product, self._preconditioner.solve, right, accuracy, _MAX_CG_ITER
        )
        return step

    def _product(self, direction: Values) -> Values:
        scores = self._operator.forward(direction)
        pull, total = self._operator.adjoint_and_total(self._curvature * scores)
        return self._penalty * direction + pull - self._share * total


def _centred(operator, curvature: Values) -> tuple[Values, Values, Values]:
    """Return the means of all maps, and their products with themselves and their neighbours.

    Eliminating the intercept centres the maps.
    """
    xp = namespace(curvature)
    total, mean, diagonal, neighbour = operator.products(curvature)
    share = mean / xp.where(total > 0.0, total, 1.0)
    chained = index_for(operator.is_chained[1:, None], mean)
    neighbour[1:] -= xp.where(chained, mean[1:] * share[:-1], 0.0)
    return share, positive_part(diagonal - mean * share), neighbour


def weighted_means(scores: Values, weights: Values) -> Values:
    """Return the weighted mean of each column, zero where all weights are."""
    totals = exact_sum(weights)
    return exact_sum(weights * scores) / namespace(totals).where(totals > 0, totals, 1.0)


def _line_search(
    margins, penalty, jumps, directions, gradient, scores, change
) -> tuple[Values, Values]:
    """Return for each column a step that lowers its objective enough (or zero), and the gain."""
    linear = (penalty[:, None] * jumps * directions).sum(axis=0)
    square = (penalty[:, None] * directions**2).sum(axis=0)
    slope = (gradient * directions).sum(axis=0)
    before = margins.value(scores)
    xp = namespace(slope)
    steps = 0.0 * slope + 1.0
    for _ in range(40):
        change_of_penalty = steps * linear + 0.5 * steps**2 * square
        gain = margins.value(scores + cast(steps, change) * change) - before + change_of_penalty
        enough = gain <= 1e-4 * steps * slope
        if enough.all():
            return steps, -gain
        steps = xp.where(enough, steps, steps / 2)
    return xp.where(enough, steps, 0.0), -gain

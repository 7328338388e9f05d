"""Newton steps: the Hessian, solved by conjugate gradients over the maps, and how far to go.

Only the rows on which the loss is curved matter (for the squared hinge those inside the
margin), so the system is solved on a copy of just these rows' codes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_solve

from mbkl.engine import limits
from mbkl.engine.arrays import Values, exact_sum, exact_total, index_for, is_numpy, namespace
from mbkl.solvers.blas import one_blas_thread
from mbkl.solvers.gram_newton import factor_of
from mbkl.solvers.losses import positive_part
from mbkl.solvers.problem import FirstRows
from mbkl.solvers.tridiagonal import ChainPreconditioner

_MAX_CG_ITER = 250
_MOST_HALVINGS = 40
_ENOUGH = 1e-4


class NewtonSystem:
    """The Hessian Z' diag(curvature) Z + diag(penalty), with the intercept eliminated.

    Several columns are systems of their own that share the passes: for a device, where that is
    hardly slower than one. Elsewhere there is one column. A system of many more rows is
    preconditioned from those of `part`.
    """

    def __init__(self, operator, curvature: Values, penalty: Values, part=None) -> None:
        preconditioner = None
        if is_numpy(curvature):
            rows = np.flatnonzero(curvature[:, 0])
            preconditioner = part and _of_a_part(part, curvature[:, 0], rows.size, penalty)
            if rows.size < limits.WORTH_COPYING * curvature.shape[0]:
                operator, curvature = operator.take_narrow(rows), curvature[rows]
        self._operator, self._curvature, self._penalty = operator, curvature, penalty
        self._share, diagonal, neighbour = _centred(operator, curvature)
        self._preconditioner = preconditioner or ChainPreconditioner(
            diagonal, neighbour, penalty, operator.longest_chain
        )

    def size(self, gradient: Values) -> Values:
        """Return the norms of the gradients that the preconditioner induces."""
        return positive_part(dot(gradient, self._preconditioner.solve(gradient))) ** 0.5

    def solve(self, right: Values, accuracy: Values) -> Values:
        """Return the steps of the weights; those of the intercepts follow from their scores."""
        step, _ = conjugate_gradient(
            self._product, self._preconditioner.solve, right, accuracy, _MAX_CG_ITER
        )
        return step

    def _product(self, direction: Values) -> Values:
        scores = self._operator.forward(direction)
        pull, total = self._operator.adjoint_and_total(self._curvature * scores)
        return self._penalty * direction + pull - self._share * total


def _of_a_part(
    part: FirstRows, curvature: Values, n_curved: int, penalty: Values
) -> PartPreconditioner | None:
    """Return what a part of the rows tells of the Hessian, if it has enough curved ones."""
    own = curvature[part.numbers]
    rows = np.flatnonzero(own)[: int(limits.SHARE_OF_A_PART * n_curved)]
    if rows.size < limits.FEWEST_OF_A_PART:
        return None
    weights = own[rows] * (exact_total(curvature) / own[rows].sum())
    return PartPreconditioner(part, rows, weights, penalty)


class PartPreconditioner:
    """The inverse of the Hessian as the first rows tell it, in closed form.

    The Hessian is the penalty plus what the rows add. Of many rows a part shows nearly the same;
    its rank is that of the part, so that the inverse takes a matrix of the size of the part alone
    (Woodbury's formula). The weights are the curvature of its rows, as large together as that of
    all rows.
    """

    def __init__(self, part: FirstRows, rows, weights, penalty: Values) -> None:
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
        scores = self._operator.forward(scaled)[:, 0]
        scores -= dot(self._share, scores)
        with one_blas_thread():
            alpha = cho_solve(self._factor, scores, check_finite=False)
        alpha -= self._share * alpha.sum()
        return scaled - self._operator.adjoint(alpha[:, None]) / self._penalty


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


def dot(left: Values, right: Values) -> Values:
    """Inner product of each column, whose bits do not depend on the threads of a library."""
    return (left * right).sum(axis=0)


def conjugate_gradient(
    product: Callable[[Values], Values],
    precondition: Callable[[Values], Values],
    right: Values,
    relative_tolerance: Values,
    max_iter: int,
) -> tuple[Values, int]:
    """Solve product(x) = right until the preconditioned residual is small.

    Columns are systems of their own that share the calls; each one stands still when it
    is solved.

    >>> matrix = np.diag([1.0, 2.0])
    >>> x, _ = conjugate_gradient(lambda v: matrix @ v, np.copy, np.ones(2), 1e-9, 9)
    >>> np.allclose(matrix @ x, 1)
    True
    """
    xp = namespace(right)
    solution, residual = 0.0 * right, 1.0 * right
    direction = precondition(residual)
    size = dot(residual, direction)
    goal = relative_tolerance**2 * size
    is_open = size > 0.0
    n_iter = 0
    while n_iter < max_iter and is_open.any():
        n_iter += 1
        image = product(direction)
        curvature = dot(direction, image)
        is_open = is_open & (curvature > 0.0)
        step = xp.where(is_open, size / xp.where(is_open, curvature, 1.0), 0.0)
        solution += step * direction
        residual -= step * image
        preconditioned = precondition(residual)
        previous, size = size, dot(residual, preconditioned)
        is_open = is_open & (size > goal)
        direction *= size / xp.where(previous > 0.0, previous, 1.0)
        direction += preconditioned
    return solution, n_iter


def descend(rise: Callable[[Values], Values], slope: Values) -> tuple[Values, Values]:
    """Halve steps of one until each lowers its objective by a share of what the slope promises.

    Slopes are derivatives at a step of zero, and `rise` returns the changes of the objectives for
    given steps. Returned are steps, zero where none lowers the objective enough, and gains.

    >>> descend(lambda step: 2.0 * step**2 - step, np.array([-1.0]))
    (array([0.25]), array([0.125]))
    """
    xp = namespace(slope)
    steps = 0.0 * slope + 1.0
    for _ in range(_MOST_HALVINGS):
        change = rise(steps)
        enough = change <= _ENOUGH * steps * slope
        if enough.all():
            return steps, -change
        steps = xp.where(enough, steps, steps / 2)
    return xp.where(enough, steps, 0.0), -change

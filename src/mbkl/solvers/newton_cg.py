"""Newton's method with conjugate gradients over the maps, for Step 2 with a smooth loss.

All columns share the passes over the data that give scores and gradients. Each column has its own
Newton system, which depends only on the rows where its loss is curved: those inside its margin. So
the system is solved on a copy of the codes of these rows.

Neighbouring maps of one group split almost the same rows, so their columns are almost parallel and
the condition number of a group grows with the square of its number of maps; a diagonal
preconditioner does not help. But nested maps form a Markov chain: given a map, those to its left
and right are uncorrelated. The inverse of a group's Gram matrix is therefore tridiagonal and
follows from the diagonal and the products of neighbours alone. With signs that differ from class to
class (Step 1) the chain is an approximation, for one class it is exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpttrf, dpttrs

from mbkl.engine import limits
from mbkl.engine.arrays import (
    Values,
    cast,
    exact_sum,
    index_for,
    is_numpy,
    namespace,
    to_host,
)
from mbkl.solvers.problem import Problem, Progress, Solution, go_on, positive_part

# Stop at steps that gain less than this share of the objective: the duality gap of a smoothed loss
# never closes.
_SMALLEST_GAIN = 1e-9
_SMALLEST_GAIN_SINGLE = 1e-6
_MAX_CG_ITER = 250
_MOST_HALVINGS = 40
_SUFFICIENT_DECREASE = 1e-4
# Ridge relative to the largest diagonal entry: maps that split no row with weight have zero
# curvature, and identical maps a correlation of exactly one.
_RIDGE = 1e-9


def minimise(
    problem: Problem,
    start: Solution | None,
    tol: float,
    max_iter: int,
    progress: Progress = go_on,
) -> Solution:
    """Minimise all columns side by side; see `mbkl.solvers.problem`.

    On a device the Newton systems of all columns are solved at once, each on all rows, which takes
    hardly longer than one; elsewhere they are solved one by one.
    """
    operator, margins = problem.operator, problem.margins
    assert problem.penalty is not None
    penalty = problem.penalty[:, None]
    start = start or Solution.nothing(problem.shape)
    weights, intercept = operator.to_device(start.weights), operator.to_device(start.intercept)
    xp = namespace(weights)
    scores = operator.forward(weights)
    nowhere = np.inf + intercept
    solution = Solution(1.0 * weights, 1.0 * intercept, 1.0 * nowhere, nowhere)
    smallest_gain = _SMALLEST_GAIN if scores.itemsize == 8 else _SMALLEST_GAIN_SINGLE
    columns = np.arange(nowhere.shape[0])  # columns that are not solved yet
    first_size = np.nan * intercept
    for solution.n_iter in range(max_iter + 1):
        unsolved = problem.columns(columns)
        intercept = solution.intercept[columns]
        intercept = unsolved.margins.best_intercept(scores[:, columns], intercept)
        solution.intercept[columns] = intercept
        solution.objective[columns], solution.gap[columns], gradient = unsolved.assess(
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
        each = [slice(k, k + 1) for k in range(columns.size)]
        groups = [slice(None)] if operator.many_at_once else each
        directions, sizes = xp.empty_like(gradient), xp.empty_like(gradient[0])
        for group in groups:
            system = NewtonSystem(operator, curvature[:, group], penalty)
            sizes[group] = system.size(gradient[:, group])
            accuracy = _accuracy(sizes[group], first_size[columns[group]])
            directions[:, group] = system.solve(-gradient[:, group], accuracy)
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
    """Return the accuracy of the Newton systems, which increases as the gradient shrinks."""
    xp = namespace(size)
    share = size / xp.fmax(first_size, size)
    return xp.fmin(0.5 * share**0.5, 0.0 * share + 0.25)


def _rise(margins, penalty, weights, directions, scores, change):
    """Return the change of the objectives as a function of the steps along the directions."""
    linear = (penalty * weights * directions).sum(axis=0)
    square = (penalty * directions**2).sum(axis=0)
    before = margins.value(scores)

    def rise(steps: Values) -> Values:
        change_of_penalty = steps * linear + 0.5 * steps**2 * square
        return margins.value(scores + cast(steps, change) * change) - before + change_of_penalty

    return rise


# ------------------------------------------------------------- Newton systems


class NewtonSystem:
    """The Hessian Z' diag(curvature) Z + diag(penalty), with the intercept eliminated.

    Several columns are independent systems that share the passes over the codes: on a device they
    take hardly longer than one. Elsewhere there is one column.
    """

    def __init__(self, operator, curvature: Values, penalty: Values) -> None:
        if is_numpy(curvature):
            rows = np.flatnonzero(curvature[:, 0])
            if rows.size < limits.WORTH_COPYING * curvature.shape[0]:
                operator, curvature = operator.take(rows), curvature[rows]
        self._operator, self._curvature, self._penalty = operator, curvature, penalty
        self._share, diagonal, neighbour = _centred(operator, curvature)
        longest = operator.longest_chain
        self._preconditioner = ChainPreconditioner(diagonal, neighbour, penalty, longest)

    def size(self, gradient: Values) -> Values:
        """Return the norms of the gradients in the metric of the preconditioner."""
        return positive_part(dot(gradient, self._preconditioner.solve(gradient))) ** 0.5

    def solve(self, right: Values, accuracy: Values) -> Values:
        """Return the steps of the weights; those of the intercepts follow from their scores."""
        precondition = self._preconditioner.solve
        return conjugate_gradient(self._product, precondition, right, accuracy, _MAX_CG_ITER)[0]

    def _product(self, direction: Values) -> Values:
        scores = self._operator.forward(direction)
        pull, total = self._operator.adjoint_and_total(self._curvature * scores)
        return self._penalty * direction + pull - self._share * total


def _centred(operator, curvature: Values) -> tuple[Values, Values, Values]:
    """Return the means of all maps, and the centred products with themselves and neighbours.

    Maps are centred by the elimination of the intercept.
    """
    xp = namespace(curvature)
    total, mean, diagonal, neighbour = operator.products(curvature)
    share = mean / xp.where(total > 0.0, total, 1.0)
    chained = index_for(operator.is_chained[1:, None], mean)
    neighbour[1:] -= xp.where(chained, mean[1:] * share[:-1], 0.0)
    return share, positive_part(diagonal - mean * share), neighbour


def weighted_means(scores: Values, weights: Values) -> Values:
    """Return the weighted mean of each column, zero if all weights are zero."""
    totals = exact_sum(weights)
    return exact_sum(weights * scores) / namespace(totals).where(totals > 0, totals, 1.0)


def dot(left: Values, right: Values) -> Values:
    """Return the inner products of the columns, with bits that do not depend on BLAS threads."""
    return (left * right).sum(axis=0)


def conjugate_gradient(
    product: Callable[[Values], Values],
    precondition: Callable[[Values], Values],
    right: Values,
    relative_tolerance: Values,
    max_iter: int,
) -> tuple[Values, int]:
    """Solve product(x) = right until the preconditioned residual is small.

    Columns are independent systems that share the calls; a solved column no longer changes.

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
    """Backtracking line search: halve steps of one until the decrease is sufficient.

    Slopes are derivatives at a step of zero, and `rise` returns the changes of the objectives for
    given steps. Returned are the steps, zero if none is sufficient, and the gains.

    >>> descend(lambda step: 2.0 * step**2 - step, np.array([-1.0]))
    (array([0.25]), array([0.125]))
    """
    xp = namespace(slope)
    steps = 0.0 * slope + 1.0
    for _ in range(_MOST_HALVINGS):
        change = rise(steps)
        enough = change <= _SUFFICIENT_DECREASE * steps * slope
        if enough.all():
            return steps, -change
        steps = xp.where(enough, steps, steps / 2)
    return xp.where(enough, steps, 0.0), -change


# ------------------------------------------------------------- preconditioning chains


class ChainPreconditioner:
    """Solve (G + diag(penalty)) x = r for a matrix G of chains.

    G is given by its diagonal and by neighbour[k] = G[k - 1, k], zero where a group begins. The
    length of the longest chain saves steps on a device. Arrays may have one column, and tensors
    several, each an independent system.

    >>> import numpy as np
    >>> G = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> solver = ChainPreconditioner(np.diag(G), np.array([0.0, 1.0]), np.ones(2))
    >>> np.allclose(solver.solve(np.array([1.0, 0.0])), np.linalg.solve(G + np.eye(2), [1, 0]))
    True
    """

    def __init__(
        self, diagonal: Values, neighbour: Values, penalty: Values, longest: int | None = None
    ) -> None:
        xp = namespace(diagonal)
        largest = float(diagonal.max()) if diagonal.shape[0] else 0.0
        variance = diagonal + _RIDGE * (largest or 1.0)
        deviation = xp.sqrt(variance)
        correlation = xp.zeros_like(variance)
        correlation[1:] = neighbour[1:] / (deviation[1:] * deviation[:-1])
        correlation = xp.clip(correlation, _RIDGE - 1.0, 1.0 - _RIDGE)
        # Regress each map on its left neighbour: the slope, and the inverse residual variance.
        slope = xp.zeros_like(variance)
        slope[1:] = correlation[1:] * deviation[1:] / deviation[:-1]
        precision = 1.0 / (variance * (1.0 - correlation**2))
        self._main = 1.0 * precision
        self._main[:-1] += slope[1:] ** 2 * precision[1:]
        self._side = -slope[1:] * precision[1:]
        # (inverse(P) + Q)^-1 = Q^-1/2 (I + Q^1/2 P Q^1/2)^-1 Q^1/2 P has no cancellation, however
        # different the penalties Q are.
        self._root = xp.sqrt(penalty)
        main = 1.0 + self._root**2 * self._main
        side = self._root[1:] * self._root[:-1] * self._side
        if is_numpy(main):
            factor = dpttrf(main.ravel(), side.ravel())[:2]
            self._solve = lambda right: dpttrs(*factor, right)[0]
        else:
            self._solve = _cyclic_reduction(main, side, longest or main.shape[0])

    def solve(self, right: Values) -> Values:
        """Return the solution for one right-hand side."""
        product = self._main * right
        product[1:] += self._side * right[:-1]
        product[:-1] += self._side * right[1:]
        product *= self._root
        return self._solve(product) / self._root


def _cyclic_reduction(main: Values, side: Values, longest: int) -> Callable[[Values], Values]:
    """Return a parallel solver for a symmetric tridiagonal matrix of short chains.

    Each step eliminates the neighbours at a distance and leaves those at twice the distance, until
    it exceeds the longest chain.
    """
    xp = namespace(main)
    left, right = xp.zeros_like(main), xp.zeros_like(main)
    left[1:], right[:-1] = side, side
    steps = []
    distance = 1
    while distance < min(longest, main.shape[0]):
        up, down = xp.zeros_like(main), xp.zeros_like(main)
        up[distance:] = -left[distance:] / main[:-distance]
        down[:-distance] = -right[:-distance] / main[distance:]
        steps.append((distance, up, down))
        new_left, new_right = xp.zeros_like(main), xp.zeros_like(main)
        main = 1.0 * main
        main[distance:] += up[distance:] * right[:-distance]
        main[:-distance] += down[:-distance] * left[distance:]
        new_left[distance:] = up[distance:] * left[:-distance]
        new_right[:-distance] = down[:-distance] * right[distance:]
        left, right = new_left, new_right
        distance *= 2

    def solve(right: Values) -> Values:
        for distance, up, down in steps:
            moved = 1.0 * right
            moved[distance:] += up[distance:] * right[:-distance]
            moved[:-distance] += down[:-distance] * right[distance:]
            right = moved
        return right / main

    return solve

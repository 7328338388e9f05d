"""Step 2: one-vs-rest SVMs with the learned kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.namespace import Values, index_for, is_numpy, namespace, to_host
from mbkl.learn.losses import exact_loss, smoothing_path
from mbkl.learn.margins import Margins
from mbkl.learn.operator import AnyOperator
from mbkl.solvers.dense_interior_point import DenseProblem, solve_densely
from mbkl.solvers.gram_newton import minimise_with_gram
from mbkl.solvers.newton_cg import FirstRows, Solution, minimise

Array = NDArray[np.float64]

# Up to here the dense solver is faster at high costs and little slower at low
# ones (measured); without it the hinge has to be approached through smooth losses.
_FEW_ROWS = 300
# Up to here, with more weights than rows, the kernel matrix of the rows is (measured).
FEW_ROWS_GRAM = 4_000
# Beyond, the solution on this many rows is a start that saves iterations, and so does what
# they tell of the curvature.
ROWS_OF_A_PART = 3_000
_START_TOL = 0.03
_FEW_ROWS_HINGE = 2_000
# Rows squared times maps: beyond this the matrix of all maps is too large.
_DENSE_WORK = 1e10


def one_vs_rest_labels(y: Values, n_classes: int) -> Values:
    """Return +1 and -1 for each row and problem; two classes are one problem.

    Examples
    --------
    >>> import numpy as np
    >>> one_vs_rest_labels(np.array([0, 1]), 2).ravel()
    array([-1,  1], dtype=int8)
    """
    xp = namespace(y)
    targets = index_for(np.array([1]) if n_classes == 2 else np.arange(n_classes), y)
    labels = xp.where(y[:, None] == targets, 1, -1)
    return labels.astype(np.int8) if is_numpy(labels) else labels.to(xp.int8)


def learn_classifier_weights(
    operator: AnyOperator,
    labels: NDArray[np.int8],
    costs: Array,
    kernel_weights: Array,
    loss: str,
    start: Solution | None,
    tol: float,
    max_iter: int,
    progress=lambda solution: False,
    gram: Callable[[], Array] | None = None,
    first_rows: Callable[[AnyOperator, int], FirstRows] | None = None,
) -> Solution:
    """Solve Step 2: the SVM whose feature map is sqrt(kernel weight) * (map, not map).

    With a free intercept the two weights of a map are opposite, and the SVM is
    one on jumps a of the maps z = +1 or -1 with the penalty sum a^2 / weight. The
    feature map of a fern is sqrt(kernel weight) in the column of the row's cell.

    Parameters
    ----------
    operator : MapOperator or JointOperator
    labels : ndarray of shape (n_rows, n_columns)
    costs : ndarray of shape (n_rows,)
    kernel_weights : ndarray of shape (n_slots,)
        Positive at every map; entries that are no map are ignored.
    loss : {"squared_hinge", "hinge", "logistic"}
    start : Solution or None
        Solution for another cost, to start from.
    tol, max_iter, progress
        See `minimise`.
    gram : callable or None
        Returns the kernel matrix of the rows, where it is known already or shared.
    first_rows : callable or None
        Returns a part of the rows that is as good as random, for a problem of many.
    """
    penalty = operator.penalty(kernel_weights)
    if operator.in_lockstep:
        return _solve_on_device(
            operator, labels, costs, penalty, loss, start, tol, max_iter, progress
        )
    if loss == "squared_hinge" and operator.n_rows <= min(FEW_ROWS_GRAM, operator.n_columns):
        matrix = operator.gram(kernel_weights) if gram is None else gram()
        return _solve_with_gram(
            operator, matrix, labels, costs, penalty, start, tol, max_iter, progress
        )
    few_rows = _FEW_ROWS_HINGE if loss == "hinge" else _FEW_ROWS
    if _is_dense(operator, few_rows):
        return _solve_densely(operator, labels, costs, penalty, loss, tol, max_iter, progress)
    part = None
    has_cells = bool(operator.is_cell.any())
    is_large = loss == "squared_hinge" and operator.n_columns > FEW_ROWS_GRAM
    if first_rows is not None and is_large and (start is None or has_cells):
        part = first_rows(operator, ROWS_OF_A_PART).with_gram(kernel_weights)
        if start is None:
            start = _start_on_a_part(part, labels, costs, penalty, progress)
        if not has_cells:  # chains of stumps are preconditioned by themselves
            part = None
    if start is None:
        start = _nothing((operator.n_columns, labels.shape[1]))
    return _follow_path(
        operator, labels, costs, penalty, loss, start, tol, max_iter, progress, part
    )


def _nothing(shape: tuple[int, int]) -> Solution:
    """Return no jumps at all, to start from."""
    intercept = np.zeros(shape[1])
    return Solution(np.zeros(shape), intercept, np.inf + intercept, np.inf + intercept)


def _follow_path(
    operator: AnyOperator,
    labels,
    costs,
    penalty,
    loss,
    solution,
    tol,
    max_iter,
    progress,
    part,
) -> Solution:
    """Minimise each loss of the smoothing path, from the solution of the one before."""
    n_iter = 0
    for stage in smoothing_path(loss):
        margins = Margins(labels, costs[:, None], stage)
        jumps, intercept = solution.jumps, solution.intercept
        left = max(max_iter - n_iter, 1)
        solution = minimise(operator, margins, penalty, jumps, intercept, tol, left, progress, part)
        n_iter += solution.n_iter
    solution.n_iter = n_iter
    return solution


def _solve_on_device(
    operator: AnyOperator, labels, costs, penalty, loss, start, tol, max_iter, progress
) -> Solution:
    """Solve all problems in lock-step on a device."""
    if start is None:
        start = _nothing((operator.n_columns, labels.shape[1]))
    start = replace(
        start,
        jumps=operator.to_device(start.jumps),
        intercept=operator.to_device(start.intercept),
    )
    costs = operator.to_device(costs, operator.row_dtype(labels.shape[1]))

    def tell(solution: Solution) -> bool:
        return progress(solution.on_host())

    penalty = operator.to_device(penalty)
    solution = _follow_path(
        operator, labels, costs, penalty, loss, start, tol, max_iter, tell, None
    )
    return replace(solution.on_host(), jumps=to_host(solution.jumps))


def _solve_with_gram(
    operator: AnyOperator, gram, labels, costs, penalty, start, tol, max_iter, progress
) -> Solution:
    """Solve each problem through the kernel matrix of the rows."""
    (loss,) = smoothing_path("squared_hinge")
    margins = Margins(labels, costs[:, None], loss)

    def tell(objective: float, gap: float, n_iter: int) -> bool:
        nothing = np.zeros(1)
        column = Solution(nothing, nothing, np.array([objective]), np.array([gap]), n_iter)
        return progress(column)

    before = None if start is None else start.alpha
    parts = minimise_with_gram(gram, margins, before, tol, max_iter, tell, operator.n_threads)
    alpha = np.column_stack([part.alpha for part in parts])
    solution = Solution(
        operator.adjoint(alpha) / penalty[:, None],
        np.array([part.intercept for part in parts]),
        np.array([part.objective for part in parts]),
        np.array([part.gap for part in parts]),
        max(part.n_iter for part in parts),
        alpha,
    )
    stuck = np.flatnonzero([part.stuck for part in parts])
    if stuck.size and _is_dense(operator, _FEW_ROWS):
        exact = _solve_densely(
            operator, labels[:, stuck], costs, penalty, "squared_hinge", tol, max_iter, progress
        )
        solution.jumps[:, stuck], solution.intercept[stuck] = exact.jumps, exact.intercept
        solution.objective[stuck], solution.gap[stuck] = exact.objective, exact.gap
    return solution


def _start_on_a_part(part: FirstRows, labels, costs, penalty, progress) -> Solution:
    """Solve for a part of the rows: a start for all of them."""
    labels, costs = labels[part.numbers], costs[part.numbers]
    operator, gram = part.operator, part.gram
    return _solve_with_gram(operator, gram, labels, costs, penalty, None, _START_TOL, 20, progress)


def _is_dense(operator: AnyOperator, most_rows: int) -> bool:
    """Say whether the matrix of all maps is small enough to be formed."""
    work = float(operator.n_rows) ** 2 * operator.n_columns
    return operator.n_rows <= most_rows and work <= _DENSE_WORK


def _solve_densely(
    operator: AnyOperator, labels, costs, penalty, loss, tol, max_iter, progress
) -> Solution:
    """Solve each problem with the dense solver."""
    maps = operator.dense()
    goal = exact_loss(smoothing_path(loss)[-1])
    parts = []
    for column in range(labels.shape[1]):
        margins = Margins(labels[:, column : column + 1], costs[:, None], goal)
        problem = DenseProblem(maps, margins, penalty)
        parts.append(solve_densely(problem, tol, max_iter, progress))
    return Solution(
        np.column_stack([part.theta for part in parts]),
        np.concatenate([part.intercept for part in parts]),
        np.array([part.objective for part in parts]),
        np.array([part.gap for part in parts]),
        max(part.n_iter for part in parts),
    )

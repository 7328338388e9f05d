"""Newton's method through the kernel matrix of all rows, for few rows and many maps.

The weights of the maps are combinations of the rows, w = Z' alpha / penalty, so that
the scores are K alpha + b with K = Z diag(1 / penalty) Z'. On the rows I where the loss
is curved, with curvature D, a Newton step solves

    (K_II + 1 / D) alpha_I + b = scores_I + alpha' / D - K_IJ alpha'_J,    sum(alpha) = 0,

with alpha' = label * support the signed supports of the scores. On the other rows J alpha is
alpha', which is zero for the squared hinge: its rows I are the support vectors. A squared error
is solved in one step. The matrix K serves all columns, all costs and all folds.

The Cholesky factor of the last step also gives leave-one-out scores: without one of the samples
that row i was merged from, its residual is divided by 1 - h, where h is the leverage of that
sample. This is exact as long as the other rows stay on their side of the margin, and always with a
squared error; rows outside the margin have no influence at all. The rows with such scores come last
in the factor, so that its lower right corner suffices.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, get_lapack_funcs

from mbkl.engine import limits
from mbkl.engine.arrays import block_of, one_blas_thread
from mbkl.solvers.problem import (
    Margins,
    Problem,
    Progress,
    SharedProgress,
    Solution,
    SquaredError,
    go_on,
    joined,
    positive_part,
)

Array = NDArray[np.float64]

_STEPS = 0.5 ** np.arange(12)
# Relative to the largest diagonal entry: rows of equal codes make a singular matrix.
_RIDGE = 1e-12
# Steps are computed in single precision, which takes half of the time, if the tolerance and the
# ratio of 1 / curvature to the largest entry of the kernel matrix are at least these, and
# 1 / curvature is below the last one.
_SINGLE_FROM_TOL, _SINGLE_FROM_RATIO = 1e-4, 1e-3
_LARGEST_SINGLE = 1e30


def minimise(
    problem: Problem,
    start: Solution | None,
    tol: float,
    max_iter: int,
    progress: Progress = go_on,
) -> Solution:
    """Minimise each column of a problem of Step 2; see `mbkl.solvers.problem`.

    Supports of the start, if it has any, serve as a warm start. A column ends early when rounding
    errors exceed any descent: at costs beyond the precision of the kernel matrix.
    """
    assert problem.gram is not None
    assert problem.penalty is not None
    gram, operator = problem.gram(), problem.operator
    # Rows with a kernel matrix are in the order of their hashes, so that plain sums do.
    margins = replace(problem.margins, total=partial(np.sum, axis=0))
    single = gram if tol < _SINGLE_FROM_TOL else gram.astype(np.float32)
    copies = None if problem.copies is None else problem.copies()
    n_columns = margins.labels.shape[1]
    shared = SharedProgress(progress)
    with one_blas_thread():
        begin, system = None if start is None else start.supports, None
        if begin is None:
            begin, system = _common_start(gram, single, margins)

        def solve(column: int) -> Solution:
            one, alpha = margins.columns(np.array([column])), begin[:, column]
            return _minimise_column(gram, single, one, alpha, tol, max_iter, shared, copies, system)

        if operator.n_threads == 1 or n_columns == 1 or len(gram) < limits.WORTH_THREADS:
            solution = joined([solve(column) for column in range(n_columns)])
        else:
            # As a context the shared progress stops all columns at an interrupt.
            with ThreadPoolExecutor(operator.n_threads) as pool, shared:
                solution = joined(list(pool.map(solve, range(n_columns))))
    pull = operator.adjoint(solution.supports) if problem.needs_weights else None
    solution.weights = None if pull is None else pull / problem.penalty[:, None]
    return solution


def _common_start(
    gram: Array, single: NDArray[np.floating], margins: Margins
) -> tuple[Array, _NewtonSystem | None]:
    """Return supports after one Newton step from zero for all columns, on the first rows.

    At zero weights all rows have the same curvature in all columns, which share one factor. The
    first rows are a random part, and enough for a start. A squared error is solved by the step
    of all rows, whose system is returned too.
    """
    n_rows, is_solved = len(gram), isinstance(margins.loss, SquaredError)
    is_all = n_rows < limits.WORTH_A_COMMON_PART or is_solved
    first = slice(0, n_rows if is_all else n_rows // 3)
    start, few = np.zeros(margins.labels.shape), margins.rows(first)
    shifted = start[first] + few.best_intercept(start[first], np.zeros(start.shape[1]))
    curvature = few.curvature(shifted)
    if not (curvature > 0).all() or (curvature != curvature[:, :1]).any():
        return start, None
    system = _NewtonSystem.of(gram[first, first], single[first, first], few, shifted)
    start[first], _ = system.solution()
    return start, system if is_solved else None


def factor_of(matrix: Array, curvature: Array):
    """Return the Cholesky factor of the matrix plus 1 / curvature; overwrites it."""
    largest = float(matrix.diagonal().max(initial=1.0))
    matrix[np.diag_indices_from(matrix)] += 1.0 / curvature + _RIDGE * largest
    return cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)


def _solved(factor, targets: Array) -> Array:
    """Return the solution of the linear system with this Cholesky factor."""
    targets = np.asfortranarray(targets, dtype=factor[0].dtype)
    return cho_solve(factor, targets, overwrite_b=True, check_finite=False).astype(np.float64)


def _minimise_column(
    gram: Array,
    single: NDArray[np.floating],
    margins: Margins,
    alpha: Array,
    tol: float,
    max_iter: int,
    shared: SharedProgress,
    copies: Array | None,
    system: _NewtonSystem | None,
) -> Solution:
    """Minimise one column; its solution has supports, and no weights yet.

    `single` is the kernel matrix in the precision of the steps, the system that of the step to
    alpha, if any. Copies ask for leave-one-out scores of the first rows, one for each entry.
    """
    scores = gram @ alpha
    intercept = margins.best_intercept(scores[:, None], np.zeros(1))
    for n_iter in range(max_iter + 1):
        shifted = scores[:, None] + intercept
        objective, gap = _assess(gram, margins, alpha, scores, shifted)
        solution = Solution(np.zeros((0, 1)), intercept, objective, gap, n_iter, alpha[:, None])
        done = solution.is_within(tol)[0] or n_iter == max_iter or shared.has_failed
        if shared(solution) or done:
            break
        system = _NewtonSystem.of(gram, single, margins, shifted)
        proposal, level = (each[..., 0] for each in system.solution())
        new_scores = gram @ proposal
        before = 0.5 * float(alpha @ scores) + float(margins.value(shifted)[0])
        step = _line_search(margins, alpha, scores, intercept, proposal, new_scores, level, before)
        if step == 0.0:
            break
        alpha = alpha + step * (proposal - alpha)
        scores = scores + step * (new_scores - scores)
        guess = intercept + step * (level - intercept)
        intercept = margins.best_intercept(scores[:, None], guess)
    if copies is not None:
        system = system or _NewtonSystem.of(gram, single, margins, shifted)
        solution.left_out = _leave_one_out_scores(system, margins, shifted, copies)
    return solution


def _assess(gram, margins: Margins, alpha, scores, shifted) -> tuple[Array, Array]:
    """Return objective and duality gap."""
    objective = 0.5 * float(alpha @ scores) + margins.exact_value(shifted)
    support = margins.support(shifted)
    signed = margins.signed(support)[:, 0]
    dual = margins.dual_value(support) - 0.5 * float(signed @ (gram @ signed))
    return objective, positive_part(objective - dual)


@dataclass(frozen=True)
class _NewtonSystem:
    """The quadratic model of the objective around scores, on the rows where the loss is curved."""

    rows: NDArray[np.intp]  # (n_curved_rows,): from the last to the first
    curvature: Array  # (n_curved_rows,)
    target: Array  # (n_curved_rows, n_columns): right-hand side
    others: Array  # (n_rows, n_columns): alpha of the rows J, zero on the rows I
    factor: tuple | None  # Cholesky factor of K_II + 1 / D; None without curved rows

    @classmethod
    def of(cls, gram, single, margins: Margins, shifted: Array) -> _NewtonSystem:
        """Return the model of columns with the same curvature."""
        curvature = margins.curvature(shifted)[:, 0]
        rows = np.flatnonzero(curvature)[::-1]
        curvature = curvature[rows]
        others = margins.signed(margins.support(shifted))
        target = shifted[rows] + others[rows] / curvature[:, None]
        others[rows] = 0.0
        if others.any():
            target -= gram[rows] @ others
        factor = None
        if rows.size:
            is_enough = 1.0 / curvature.max() >= _SINGLE_FROM_RATIO * gram.diagonal().max()
            is_in_range = 1.0 / curvature.min() < _LARGEST_SINGLE
            kernel = single if is_enough and is_in_range else gram
            factor = factor_of(block_of(kernel, rows, rows), curvature)
        return cls(rows, curvature, target, others, factor)

    def solution(self) -> tuple[Array, Array]:
        """Return the minimum of the model: signed supports and intercept of each column."""
        alpha = self.others.copy()
        if self.factor is None:
            return alpha, np.zeros(alpha.shape[1])
        both = np.column_stack([self.target, np.ones(self.rows.size)])
        solved = _solved(self.factor, both)
        constant = solved[:, -1:]
        level = (solved[:, :-1].sum(axis=0) + alpha.sum(axis=0)) / constant.sum()
        alpha[self.rows] = solved[:, :-1] - level * constant
        return alpha, level

    def leverages(self, n_rows: int) -> Array:
        """Return the leverage of each of the first rows: the share of its score due to itself."""
        leverages = np.zeros(n_rows)
        first = self.rows < n_rows
        if self.factor is None or not first.any():
            return leverages
        corner = self.factor[0][np.ix_(first, first)]
        (trtri,) = get_lapack_funcs(("trtri",), (corner,))
        # LAPACK leaves the entries above the diagonal undefined.
        columns = np.tril(trtri(corner, lower=1)[0])
        constant = _solved(self.factor, np.ones(self.rows.size))
        inverse = np.einsum("ij,ij->j", columns, columns) - constant[first] ** 2 / constant.sum()
        leverages[self.rows[first]] = 1.0 - inverse / self.curvature[first]
        return np.clip(leverages, 0.0, 1.0 - 1e-6)


def _leave_one_out_scores(
    system: _NewtonSystem, margins: Margins, shifted: Array, copies: Array
) -> Array:
    """Return the scores of the first rows, each without one of the samples merged into it."""
    n_rows = copies.size
    margins, shifted = margins.rows(slice(n_rows)), shifted[:n_rows]
    leverages = (system.leverages(n_rows) / copies)[:, None]
    pull, curvature = margins.signed(margins.support(shifted)), margins.curvature(shifted)
    residuals = np.divide(pull, curvature, out=np.zeros_like(pull), where=curvature > 0)
    return shifted - residuals * leverages / (1.0 - leverages)


def _line_search(
    margins: Margins, alpha, scores, intercept, proposal, new_scores, level, before
) -> float:
    """Return the best of some step lengths, or zero if none lowers the objective."""
    move, change = proposal - alpha, new_scores - scores
    linear, square = float(move @ scores), float(move @ change)
    quadratic = 0.5 * float(alpha @ scores)
    shift = level - intercept
    best, lowest = 0.0, before
    for step in _STEPS:
        moved = scores[:, None] + step * change[:, None] + intercept + step * shift
        penalty = quadratic + step * linear + 0.5 * step**2 * square
        value = penalty + float(margins.value(moved)[0])
        if value < lowest:
            best, lowest = float(step), value
        elif best:  # the objective is convex along the line: shorter steps are worse
            break
    return best

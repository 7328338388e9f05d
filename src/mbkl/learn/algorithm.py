"""Algorithm 1 of the paper on labelled codes: its steps in their order, and Step 2 itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mbkl.cells import Operator
from mbkl.engine.arrays import Values, cast, exact_total, index_for, is_numpy, namespace, to_host
from mbkl.learn.kernel_weights import KernelProblem, Shares, initial_signs, shares_of
from mbkl.learn.labelled_rows import LabelledRows, SharedGram, copies_of_rows
from mbkl.solvers.choose import may_use_gram, solve
from mbkl.solvers.problem import (
    LOSSES,
    FirstRows,
    Margins,
    Problem,
    Solution,
    go_on,
    smoothing_path,
)

if TYPE_CHECKING:
    from mbkl.learn.progress import Progress

Array = NDArray[np.float64]

# Losses are averaged over the rows, so that a cost means the same for two hundred
# rows as for two million; at this many rows it is the cost of a usual SVM.
REFERENCE_ROWS = 1000.0

# theta="reweighted": passes of theta <- norm of the jumps, and the share of the
# mean weight below which a map is dropped.
_REWEIGHTING_PASSES = 2
_DROP_BELOW = 0.05
# Of the weights of cells that are stored.
_STEP = 2.0**-26


_LOSS_OF_STEP_1 = {
    "hinge": "squared_hinge",
    "absolute_error": "squared_error",
    "quantile": "squared_error",
    "poisson": "squared_error",
}


@dataclass(frozen=True)
class Settings:
    """Options of the estimators that the steps need; see `MBKLClassifier`."""

    theta: str
    theta_shrinkage: float
    init_rule: str
    theta_power: float
    loss: str
    negatives_per_positive: int
    max_pairs: int
    tol: float
    max_iter: int
    seed: int

    @property
    def kernel_loss(self) -> str:
        """Loss of Step 1: smooth, as liblinear's in the experiments of the paper."""
        return _LOSS_OF_STEP_1.get(self.loss, self.loss)


@dataclass
class Kernel:
    """What Step 1 learned."""

    # (n_slots,): weights, summing to one; zero where there is no map or it is dropped
    theta: Array
    solution: Solution | None = None  # that of Step 1, if there was one to solve
    # Where its solver ended, before weights near zero were set to zero; a start for another cost.
    interior: Solution | None = None


@dataclass
class Learner:
    """The steps, on labelled rows."""

    rows: LabelledRows
    # (n_slots,): prior weight of each map, such as how many drawn ones it stands for; zero where
    # there is no map
    prior: Array
    settings: Settings
    progress: Progress

    def take(self, rows: NDArray[np.intp]) -> Learner:
        """Return a learner on some of the rows."""
        return replace(self, rows=self.rows.take(rows))

    @property
    def merged(self) -> Learner:
        """The learner on the same rows with equal ones merged."""
        return replace(self, rows=self.rows.merged)

    def with_gram(self) -> Learner:
        """Return the learner with a matrix of equal weights that all subsets share, if any can."""
        operator = self.rows.operator
        if not may_use_gram(operator.n_rows, operator.n_columns):
            return self

        @cache
        def whole() -> Array:
            return operator.gram(self.weights_of(Kernel(self._equal())))

        shared = SharedGram(whole, np.arange(operator.n_rows))
        own = shared if self.settings.theta == "ones" else None
        return replace(self, rows=replace(self.rows, gram=own, equal_gram=shared))

    def with_kernel(self, theta: Kernel) -> Callable[[float], tuple[Learner, Kernel]]:
        """Return a function of a shrinkage: the kernel, and a learner that has its matrix.

        Where few rows allow it, a matrix is formed once for all costs and shrinkages: the
        kernel is linear in theta, and its matrix a mean of the learned and the equal one.
        """
        rows, is_linear = self.rows, self.settings.theta_power == 0.5
        every_row = np.arange(rows.n_rows)

        @cache
        def learned() -> Array:
            return rows.operator.gram(self.weights_of(theta))

        def at(shrinkage: float) -> tuple[Learner, Kernel]:
            kernel, equal = self.shrunk(theta, shrinkage), rows.equal_gram
            if equal is None or not (is_linear and theta.theta.any()):
                return self, kernel

            @cache
            def mixed() -> Array:
                if shrinkage == 1.0:
                    return equal.matrix()
                if shrinkage == 0.0:
                    return learned()
                return (1.0 - shrinkage) * learned() + shrinkage * equal.matrix()

            return replace(self, rows=replace(rows, gram=SharedGram(mixed, every_row))), kernel

        return at

    def _equal(self) -> Array:
        """Return the weights of maps that nothing is known about."""
        return self.prior / self.prior.sum()

    def learn_kernel(self, C: float) -> Kernel:
        """Run Steps 0 and 1, and shrink theta as the settings say."""
        shrinkage = self.settings.theta_shrinkage
        if shrinkage == 1.0 and self.prior.any():  # whatever would be learned
            return Kernel(self._equal())
        return self.shrunk(self.learn_theta(C), shrinkage)

    def shrunk(self, kernel: Kernel, shrinkage: float) -> Kernel:
        """Move theta towards equal weights: a share of the way, 1 being all of it."""
        if shrinkage == 0.0 or self.settings.theta == "ones" or not self.prior.any():
            return kernel
        share = shrinkage if kernel.theta.any() else 1.0  # where nothing was learned
        return replace(kernel, theta=(1.0 - share) * kernel.theta + share * self._equal())

    def learn_theta(self, C: float, start: Kernel | None = None) -> Kernel:
        """Run Steps 0 and 1: find theta, or set it as the settings say.

        To start from is the kernel learned for another cost.
        """
        method = self.settings.theta
        if not self.prior.any():
            return Kernel(self.prior)
        if method == "ones":
            return Kernel(self._equal())
        if method == "alignment":
            return Kernel(self._alignment())
        if method == "reweighted":
            return self._reweighted(C)
        return self._learned(C, start)

    def learn_classifier(
        self,
        kernel: Kernel,
        C: float,
        start: Solution | None = None,
        *,
        leave_out: bool | str = False,
        tol: float | None = None,
    ) -> Solution:
        """Run Step 2: one-vs-rest SVMs with the kernel, whose weights are zero where theta is.

        To start from is the solution for another cost or other rows. `leave_out` (also "always")
        tells, where that is cheap, how the first rows are scored by all others.
        """
        with self.progress.stage("classifier weights") as iteration:
            return learn_classifier_weights(
                self.rows,
                self.weights_of(kernel),
                C * REFERENCE_ROWS,
                self.settings.loss,
                start,
                self.settings.tol if tol is None else tol,
                self.settings.max_iter,
                iteration,
                leave_out,
            )

    def weights_of(self, kernel: Kernel) -> Array:
        """Return the weights of the maps in the kernel of Step 2; they sum to one."""
        power = 2.0 * self.settings.theta_power
        kept = kernel.theta > 0
        # A merged map stands for several equal ones among which its theta is
        # shared; each contributes the power of its share.
        weights = np.zeros(kept.size)
        weights[kept] = self.prior[kept] ** (1.0 - power) * kernel.theta[kept] ** power
        return weights / weights.sum() if kept.any() else weights

    def scores(self, solution: Solution) -> Array:
        """Return the scores of all rows."""
        operator = self.rows.operator
        return to_host(operator.forward(operator.to_device(solution.weights))) + solution.intercept

    @cached_property
    def shares(self) -> Shares:
        """Shares of the classes on the sides and in the cells of the maps."""
        return shares_of(self.rows)

    @cached_property
    def signs(self) -> Array:
        """Step 0: the side of each map on which each class lies."""
        with self.progress.stage("initial guess"):
            return initial_signs(self.rows.operator, self.shares, self.settings.init_rule)

    @cached_property
    def kernel_problem(self) -> KernelProblem:
        """Step 1 for any cost."""
        settings = self.settings
        return KernelProblem.of(
            self.rows,
            self.signs,
            settings.kernel_loss,
            settings.negatives_per_positive,
            settings.max_pairs,
        )

    def smallest_useful_C(self) -> float:
        """Return the largest C_kernel at which all theta are zero, in closed form."""
        return self.kernel_problem.smallest_cost / REFERENCE_ROWS

    def _learned(self, C: float, start: Kernel | None) -> Kernel:
        """Step 1 of the paper."""
        problem = self.kernel_problem
        with self.progress.stage("kernel weights") as iteration:
            smallest = self.smallest_useful_C()
            if smallest >= C:
                if self.settings.theta_shrinkage == 0.0:
                    warnings.warn(_why_constant(C, smallest), UserWarning, stacklevel=2)
                return Kernel(np.zeros(self.prior.size))
            interior, solution = problem.solve(
                C * REFERENCE_ROWS,
                None if start is None else start.interior,
                self.settings.tol,
                self.settings.max_iter,
                iteration,
            )
            theta = solution.weights[:, 0]
            return Kernel(theta / theta.sum(), solution, interior)

    def _alignment(self) -> Array:
        """Weigh each map by how well it alone tells the classes apart."""
        with self.progress.stage("kernel weights"):
            theta = self.prior * self._squares(to_host(self.shares.own - self.shares.rest))
            return theta / theta.sum() if theta.any() else theta

    def _reweighted(self, C: float) -> Kernel:
        """Start from equal weights and move each to the norm of its map's jumps.

        The fixed point is the group lasso over maps; a few passes keep the
        accuracy of equal weights with fewer maps.
        """
        kernel = Kernel(self._equal())
        solution = None
        for _ in range(_REWEIGHTING_PASSES):
            solution = self.learn_classifier(kernel, C, solution)
            norms = np.sqrt(self._squares(solution.weights))
            if not norms.any():
                return kernel
            theta = np.where(norms > _DROP_BELOW * norms[norms > 0].mean(), norms, 0.0)
            kernel = Kernel(theta / theta.sum())
        return kernel

    def _squares(self, columns: Array) -> Array:
        """Return for each map the sum of squares over its sides or cells, and the classes."""
        operator = self.rows.operator
        # A stump has one column for two sides, and the penalty of both.
        sides = operator.penalty(np.ones(operator.n_slots))
        return operator.collect(sides * (columns**2).sum(axis=1))

    def warn_if_not_converged(self, step: str, solution: Solution, remedy: str) -> None:
        """Warn with the value, the tolerance and the reason or the remedy."""
        tol, reason = self.settings.tol, self.progress.reason_to_stop()
        if solution.n_iter >= self.settings.max_iter:
            reason = None
        if solution.relative_gap > tol:
            warnings.warn(
                f"{step} stopped after {solution.n_iter} iterations at a relative duality gap of "
                f"{solution.relative_gap:.1e}, above tol={tol:g}"
                f"{f', because {reason}.' if reason else f'. {remedy}'}",
                ConvergenceWarning,
                stacklevel=3,
            )


def _why_constant(C: float, smallest: float) -> str:
    """Say why Step 1 learns nothing, and what to do."""
    if np.isinf(smallest):
        return (
            "Step 0 finds no map that tells the rows apart, and the model is constant. "
            "Try init_rule='balanced', quantile thresholds or theta='ones'."
        )
    return (
        f"C_kernel={C:g} is too small to learn a kernel: all theta are zero up to "
        f"C_kernel={smallest:.3g}, and the model is constant. Set C_kernel above that."
    )


# ------------------------------------------------------------- Step 2


def one_vs_rest_labels(y: Values, n_classes: int) -> Values:
    """Return +1 and -1 for each row and problem; two classes are one problem.

    >>> one_vs_rest_labels(np.array([0, 1]), 2).ravel()
    array([-1,  1], dtype=int8)
    """
    xp = namespace(y)
    targets = index_for(np.array([1]) if n_classes == 2 else np.arange(n_classes), y)
    labels = xp.where(y[:, None] == targets, 1, -1)
    return labels.astype(np.int8) if is_numpy(labels) else labels.to(xp.int8)


def n_problems_of(rows: LabelledRows) -> int:
    """Return how many problems are solved side by side."""
    if rows.numbers is not None:
        return rows.numbers.n_columns
    return 1 if rows.n_classes == 2 else rows.n_classes


def margins_of(rows: LabelledRows, costs: Values, loss: str, place=lambda array: array) -> Margins:
    """Return the losses of rows of known class, or with numbers.

    `place` brings an array to where the costs are, which are of shape (n_rows, 1).
    """
    if rows.numbers is None:
        return Margins(one_vs_rest_labels(place(rows.y), rows.n_classes), costs, LOSSES[loss])
    numbers = cast(place(rows.numbers.of_rows(rows.y)), costs)
    return Margins.of_numbers(numbers, costs, loss, rows.numbers.quantile)


def learn_classifier_weights(
    rows: LabelledRows,
    kernel_weights: Array,
    cost: float,
    loss: str,
    start: Solution | None,
    tol: float,
    max_iter: int,
    progress: Callable[[Solution], bool] = go_on,
    leave_out: bool | str = False,
) -> Solution:
    """Solve Step 2: the SVM whose feature map is sqrt(kernel weight) * (map, not map).

    With a free intercept the two weights of a map are opposite, and the SVM is one on jumps a of
    the maps z = +1 or -1 with the penalty sum a^2 / weight. The feature map of a fern is
    sqrt(kernel weight) in the column of the row's cell.

    Kernel weights are of shape (n_slots,), zero where there is no map, or it is left out. The cost
    is that of all rows together. For numbers the loss is one of `Margins.of_numbers`. For the
    others see `Learner.learn_classifier` and `mbkl.solvers.problem`.
    """
    whole = rows.operator
    costs = cost / exact_total(rows.weights) * rows.weights
    kept = kernel_weights > 0
    if not kept.any():
        return _constant(rows, costs, loss)
    operator = whole.keep_maps(kept)
    own_weights = np.ones(operator.n_slots)
    own_weights[operator.is_map] = kernel_weights[kept]
    columns, own_columns = whole.spread(kept), operator.spread(operator.is_map)
    if start is not None:
        start = _moved(start, columns, own_columns, operator.n_columns)
    problem = _problem(operator, rows, costs, own_weights, loss, leave_out)
    solution = solve(problem, start, tol, max_iter, progress)
    return _moved(solution, own_columns, columns, whole.n_columns)


def rounded_cells(operator: Operator, weights: Array) -> Array:
    """Return the weights with those of cells rounded, so that little has to be stored.

    Cells of ferns are many, and most of their weights tiny: steps of one part in sixty million
    of the margin move scores by far less than the tolerance of any solver.
    """
    return np.where(operator.is_cell[:, None], np.rint(weights / _STEP) * _STEP, weights)


def _problem(
    operator: Operator,
    rows: LabelledRows,
    costs: Array,
    kernel_weights: Array,
    loss: str,
    leave_out: bool | str,
) -> Problem:
    """Return what to minimise, with the ways that few and many rows allow."""
    n_columns = n_problems_of(rows)
    costs = operator.to_device(costs, operator.row_dtype(n_columns))

    def gram() -> Array:
        return operator.gram(kernel_weights) if rows.gram is None else rows.gram.matrix()

    def first_rows(n_rows: int) -> FirstRows:
        numbers = rows.first(n_rows)
        part = operator.take(numbers)
        copies = partial(copies_of_rows, part, rows.weights[numbers], rows.seed)
        return FirstRows(part, numbers, part.gram(kernel_weights), copies if leave_out else None)

    copies = partial(copies_of_rows, operator, rows.weights, rows.seed)
    penalty = operator.to_device(operator.penalty(kernel_weights))
    margins = margins_of(rows, costs[:, None], loss, operator.to_device)
    left_out = copies if leave_out else None
    always = leave_out == "always"
    return Problem(operator, margins, penalty, gram, first_rows, left_out, always)


def _moved(solution: Solution, columns, new_columns, n_columns: int) -> Solution:
    """Return the weights of some columns at other places, zero elsewhere."""
    weights = np.zeros((n_columns, solution.intercept.size))
    weights[new_columns] = solution.weights[columns]
    return replace(solution, weights=weights)


def _constant(rows: LabelledRows, costs: Array, loss: str) -> Solution:
    """Return the classifier without any map: an intercept per class."""
    margins = margins_of(rows, costs[:, None], loss)
    margins = replace(margins, loss=smoothing_path(margins.loss)[-1])
    scores = 0.0 * margins.labels
    intercept = margins.best_intercept(scores, np.zeros(margins.labels.shape[1]))
    objective = margins.exact_value(scores + intercept)
    weights = np.zeros((rows.operator.n_columns, margins.labels.shape[1]))
    return Solution(weights, intercept, objective, np.zeros_like(objective))

"""Algorithm 1 of the paper on labelled codes: Steps 0, 1 and 2 in their order."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mbkl.engine.arrays import Values, exact_total, one_blas_thread, to_host
from mbkl.learn.classifier_weights import classifier_problem, constant_classifier, moved
from mbkl.learn.initial_guess import Shares, initial_signs, shares_of
from mbkl.learn.kernel_weights import KernelProblem
from mbkl.learn.labelled_rows import LabelledRows, SharedGram
from mbkl.solvers.choose import may_use_gram, solve
from mbkl.solvers.problem import Solution

if TYPE_CHECKING:
    from mbkl.learn.progress import Progress

Array = NDArray[np.float64]

# Losses are averaged over the rows, so that a cost means the same for any number of rows; at this
# many rows it equals the cost of a standard SVM.
REFERENCE_ROWS = 1000.0

# theta="reweighted": number of passes of theta <- norm of the jumps, and the share of the mean
# weight below which a map is dropped.
_REWEIGHTING_PASSES = 2
_DROP_BELOW = 0.05

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

    # (n_slots,): kernel weights, which sum to one; zero in slots without a map or a dropped one
    theta: Array
    solution: Solution | None = None  # of Step 1, if it was solved
    # The solution before weights near zero were set to zero: a warm start for another cost.
    interior: Solution | None = None


@dataclass
class Learner:
    """Steps 0, 1 and 2 on labelled rows."""

    rows: LabelledRows
    # (n_slots,): prior weight of each map, such as the number of equal maps that were drawn; zero
    # in slots without a map
    prior: Array
    settings: Settings
    progress: Progress

    def take(self, rows: NDArray[np.intp]) -> Learner:
        """Return the learner on some of the rows."""
        return replace(self, rows=self.rows.take(rows))

    @property
    def merged(self) -> Learner:
        """The learner on the rows with equal ones merged."""
        return replace(self, rows=self.rows.merged)

    def with_gram(self, kernel: Kernel | None = None) -> Learner:
        """Return the learner with a kernel matrix that all costs and subsets of rows share.

        With many rows no matrix is formed. With `theta="ones"` the kernel need not be given.
        """
        operator = self.rows.operator
        is_known = kernel is not None or (self.settings.theta == "ones" and self.prior.any())
        if self.rows.gram is not None or not is_known:
            return self
        kernel = kernel or Kernel(self._equal_theta())
        if not (kernel.theta.any() and may_use_gram(operator.n_rows, operator.n_columns)):
            return self
        weights = self.weights_of(kernel)
        shared = SharedGram(cache(lambda: operator.gram(weights)), np.arange(operator.n_rows))
        return replace(self, rows=replace(self.rows.hashed, gram=shared))

    def with_equal_weights(self) -> Learner:
        """Return the learner with equal kernel weights, which skips Step 1."""
        return replace(self, settings=replace(self.settings, theta="ones")).with_gram()

    def _equal_theta(self) -> Array:
        """Return equal kernel weights: those of the prior."""
        return self.prior / self.prior.sum()

    def learn_kernel(self, C: float) -> Kernel:
        """Run Steps 0 and 1, and shrink theta as the settings say."""
        shrinkage = self.settings.theta_shrinkage
        if shrinkage == 1.0 and self.prior.any():  # nothing of a learned theta would be left
            return Kernel(self._equal_theta())
        return self.shrunk(self.learn_theta(C), shrinkage)

    def shrunk(self, kernel: Kernel, shrinkage: float) -> Kernel:
        """Move theta this share of the way towards equal weights."""
        if shrinkage == 0.0 or self.settings.theta == "ones" or not self.prior.any():
            return kernel
        share = shrinkage if kernel.theta.any() else 1.0  # equal weights where all theta are zero
        return replace(kernel, theta=(1.0 - share) * kernel.theta + share * self._equal_theta())

    def learn_theta(self, C: float, start: Kernel | None = None) -> Kernel:
        """Run Steps 0 and 1: learn theta, or set it as the settings say.

        The kernel of another cost serves as a warm start.
        """
        method = self.settings.theta
        if not self.prior.any():
            return Kernel(self.prior)
        if method == "ones":
            return Kernel(self._equal_theta())
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
        n_left_out: int = 0,
        needs_left_out: bool = False,
        only_supports: bool = False,
        tol: float | None = None,
    ) -> Solution:
        """Run Step 2: one-vs-rest SVMs with the kernel, whose weights are zero where theta is.

        The solution for another cost or other rows serves as a warm start. `n_left_out` asks for
        leave-one-out scores of the first rows where they are cheap, `needs_left_out` for a solver
        that has them. With `only_supports` a solver that has supports omits the weights.
        """
        with self.progress.stage("classifier weights") as iteration:
            whole, weights, loss = self.rows.operator, self.weights_of(kernel), self.settings.loss
            costs = self.costs(C)
            kept = weights > 0
            if not kept.any():
                return constant_classifier(self.rows, costs, loss)
            rows = self.rows.keep_maps(kept)
            problem = replace(
                classifier_problem(rows, weights[kept], costs, loss),
                copies=partial(rows.copies, n_left_out) if n_left_out else None,
                needs_left_out=needs_left_out,
                needs_weights=not only_supports,
            )
            columns, kept_columns = whole.spread(kept), rows.operator.spread(rows.operator.is_map)
            if start is not None:
                start = moved(start, columns, kept_columns, rows.operator.n_columns)
            tol = self.settings.tol if tol is None else tol
            solution = solve(problem, start, tol, self.settings.max_iter, iteration)
            return moved(solution, kept_columns, columns, whole.n_columns)

    def costs(self, C: float) -> Values:
        """Return the costs of the rows in Step 2."""
        return C * REFERENCE_ROWS / exact_total(self.rows.weights) * self.rows.weights

    def weights_of(self, kernel: Kernel) -> Array:
        """Return the weights of the maps in the kernel of Step 2; they sum to one."""
        power = 2.0 * self.settings.theta_power
        kept = kernel.theta > 0
        # A merged map stands for several equal maps that share its theta; each of them
        # contributes the power of its share.
        weights = np.zeros(kept.size)
        weights[kept] = self.prior[kept] ** (1.0 - power) * kernel.theta[kept] ** power
        return weights / weights.sum() if kept.any() else weights

    def scores(self, solution: Solution) -> Array:
        """Return the scores of all rows."""
        operator = self.rows.operator
        scores = operator.forward(operator.to_device(solution.weights))
        return operator.to_host(scores) + to_host(solution.intercept)

    def scores_beside(self, training: Learner, solution: Solution) -> Array:
        """Return the scores of these rows by a solution of training rows that share the matrix."""
        if solution.weights is not None:
            return self.scores(solution)
        assert self.rows.gram is not None
        assert training.rows.gram is not None
        with one_blas_thread():
            kernel = self.rows.gram.beside(training.rows.gram)
            return kernel @ solution.supports + solution.intercept

    @cached_property
    def shares(self) -> Shares:
        """Shares of the classes on the sides of stumps and in the cells of ferns."""
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
        """Run Step 1 of the paper."""
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
        """Weigh each map by how well it alone separates the classes."""
        with self.progress.stage("kernel weights"):
            theta = self.prior * self._squares(to_host(self.shares.own - self.shares.rest))
            return theta / theta.sum() if theta.any() else theta

    def _reweighted(self, C: float) -> Kernel:
        """Start from equal weights and move each to the norm of its map's jumps.

        The fixed point is the group lasso over maps; a few passes keep the
        accuracy of equal weights with fewer maps.
        """
        kernel = Kernel(self._equal_theta())
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
        # A stump has one column for its two sides; its penalty counts both.
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

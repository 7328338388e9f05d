"""Algorithm 1 of the paper on binned data, for one cost or a path of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mbkl.engine.fixed_point import exact_total, to_fixed_point
from mbkl.engine.namespace import Values, to_host
from mbkl.learn.classifier_weights import (
    FEW_ROWS_GRAM,
    learn_classifier_weights,
    one_vs_rest_labels,
)
from mbkl.learn.device_pairs import DevicePairs
from mbkl.learn.initial_guess import Shares, class_shares, initial_signs
from mbkl.learn.kernel_weights import (
    AnyPairs,
    PairOperator,
    learn_kernel_weights,
    pair_margins,
    rounded,
    smallest_cost,
)
from mbkl.learn.losses import smoothing_path
from mbkl.learn.margins import Margins
from mbkl.learn.operator import AnyOperator
from mbkl.learn.pairs import Pairs, row_hashes, sample_pairs
from mbkl.progress import Progress
from mbkl.solvers.interior_point import WeightSolution
from mbkl.solvers.newton_cg import FirstRows, Solution

Array = NDArray[np.float64]

# Losses are averaged over the rows, so that a cost means the same for two hundred
# rows as for two million; at this many rows it is the cost of a usual SVM.
REFERENCE_ROWS = 1000.0

# theta="reweighted": passes of theta <- norm of the jumps, and the share of the
# mean weight below which a map is dropped.
_REWEIGHTING_PASSES = 2
_DROP_BELOW = 0.05


@dataclass(frozen=True)
class Settings:
    """Options of the estimators that the steps need; see `MBKLClassifier`."""

    theta: str
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
        return "squared_hinge" if self.loss == "hinge" else self.loss


@dataclass
class Kernel:
    """What Step 1 learned.

    Parameters
    ----------
    theta : ndarray of shape (n_slots,)
        Weights, summing to one; zero where there is no map or it is dropped.
    solution : WeightSolution or None
        The solution of Step 1, if there was one to solve.
    interior : WeightSolution or None
        Where its solver ended, before weights near zero were set to zero; a start for
        another cost.
    """

    theta: Array
    solution: WeightSolution | None = None
    interior: WeightSolution | None = None


@dataclass
class SharedGram:
    """The kernel matrix of all rows, computed once, of which learners have parts.

    Parameters
    ----------
    whole : callable
        Returns the matrix of all rows.
    rows : ndarray of shape (n_rows,)
    """

    whole: Callable[[], Array]
    rows: NDArray[np.intp]

    def take(self, rows: NDArray[np.intp]) -> SharedGram:
        return SharedGram(self.whole, self.rows[rows])

    def matrix(self) -> Array:
        return self.whole()[np.ix_(self.rows, self.rows)]


@dataclass
class Learner:
    """Labelled codes, on which the steps are run.

    Parameters
    ----------
    operator : MapOperator or JointOperator
    multiplicity : ndarray of shape (n_slots,)
        How many drawn maps each map stands for; zero where there is no map.
    y : ndarray of shape (n_rows,)
        Class of each row.
    n_classes : int
    weights : ndarray of shape (n_rows,)
        Positive.
    settings : Settings
    progress : Progress
    gram : SharedGram or None
        The kernel matrix of the rows, where theta is the same for all parts of them.
    """

    operator: AnyOperator
    multiplicity: Array
    y: Values
    n_classes: int
    weights: Values
    settings: Settings
    progress: Progress
    gram: SharedGram | None = None

    def take(self, rows: NDArray[np.intp]) -> Learner:
        """Return a learner on some of the rows."""
        return replace(
            self,
            operator=self.operator.take(rows),
            y=self.y[rows],
            weights=self.weights[rows],
            gram=None if self.gram is None else self.gram.take(rows),
        )

    def with_gram(self) -> Learner:
        """Return the learner with a kernel matrix that all its parts share, if they can."""
        few = self.operator.n_rows <= min(FEW_ROWS_GRAM, self.operator.n_columns)
        if self.settings.theta != "ones" or not few or self.operator.in_lockstep:
            return self

        @cache
        def whole() -> Array:
            return self.operator.gram(self._kernel_weights(self.learn_kernel(1.0)))

        return replace(self, gram=SharedGram(whole, np.arange(self.operator.n_rows)))

    @property
    def n_different(self) -> int:
        """Number of different rows; on a device equal ones are not merged."""
        if not self.operator.in_lockstep:
            return self.y.size
        hashes = row_hashes(self.operator, self.settings.seed)
        return len(np.unique(np.column_stack([hashes, self.y.astype(np.uint64)]), axis=0))

    def canonical(self) -> Learner:
        """Return the same data with equal rows merged, in an order that is their own.

        Equal means the same codes and class. The result of the steps then cannot
        depend on the order of the rows, nor on whether a row is repeated or weighted.
        """
        if self.operator.in_lockstep:  # where the order of sums is that of the device anyway
            return self
        rows, weights = self.merged_rows()
        return replace(self.take(rows), weights=weights)

    def merged_rows(self) -> tuple[NDArray[np.intp], Array]:
        """Return one of each set of equal rows, in an order of their own, and their weights."""
        hashes = row_hashes(self.operator, self.settings.seed)
        integers, unit = to_fixed_point(self.weights[:, None])
        rows, merged = merge_equal_rows(hashes, self.y, integers[:, 0])
        return rows, merged * unit

    def first_rows(self, operator: AnyOperator, n_rows: int) -> FirstRows:
        """Return a part of the rows that is as good as random: in their own order, the first."""
        return FirstRows(operator.take(np.arange(n_rows)), slice(n_rows))

    def learn_kernel(self, C: float, start: Kernel | None = None) -> Kernel:
        """Run Steps 0 and 1: find theta, or set it as the settings say.

        Parameters
        ----------
        C : float
            Cost of Step 1.
        start : Kernel or None
            Kernel learned for another cost, to start from.
        """
        method = self.settings.theta
        if not self.multiplicity.any():
            return Kernel(self.multiplicity)
        if method == "ones":
            return Kernel(self.multiplicity / self.multiplicity.sum())
        if method == "alignment":
            return Kernel(self._alignment())
        if method == "reweighted":
            return self._reweighted(C)
        return self._learned(C, start)

    def learn_classifier(self, kernel: Kernel, C: float, start: Solution | None = None) -> Solution:
        """Run Step 2: one-vs-rest SVMs with the kernel.

        Returns
        -------
        solution : Solution
            Its weights are those of all maps, zero where theta is.
        """
        with self.progress.stage("classifier weights") as iteration:
            kept = kernel.theta > 0
            if not kept.any():
                return self._constant(C)
            operator = self.operator.keep_maps(kept)
            kernel_weights = np.ones(operator.n_slots)
            kernel_weights[operator.is_map] = self._kernel_weights(kernel)[kept]
            columns, own_columns = self.operator.spread(kept), operator.spread(operator.is_map)
            local_start = None
            if start is not None:
                jumps = np.zeros((operator.n_columns, start.intercept.size))
                jumps[own_columns] = start.jumps[columns]
                local_start = replace(start, jumps=jumps)
            solution = learn_classifier_weights(
                operator,
                one_vs_rest_labels(self.operator.to_device(self.y), self.n_classes),
                C * REFERENCE_ROWS / exact_total(self.weights) * self.weights,
                kernel_weights,
                self.settings.loss,
                local_start,
                self.settings.tol,
                self.settings.max_iter,
                iteration,
                None if self.gram is None else self.gram.matrix,
                self.first_rows,
            )
            everywhere = np.zeros((columns.size, solution.intercept.size))
            everywhere[columns] = solution.jumps[own_columns]
            solution.jumps = everywhere
        return solution

    def _kernel_weights(self, kernel: Kernel) -> Array:
        """Return the weights of the maps in the kernel of Step 2; they sum to one."""
        power = 2.0 * self.settings.theta_power
        kept = kernel.theta > 0
        # A merged map stands for several equal ones among which its theta is
        # shared; each contributes the power of its share.
        weights = np.zeros(kept.size)
        weights[kept] = self.multiplicity[kept] ** (1.0 - power) * kernel.theta[kept] ** power
        return weights / weights.sum()

    def scores(self, solution: Solution) -> Array:
        """Return the scores of all rows."""
        jumps = self.operator.to_device(solution.jumps)
        return to_host(self.operator.forward(jumps)) + solution.intercept

    @cached_property
    def shares(self) -> Shares:
        """Shares of the classes on the sides and in the cells of the maps."""
        return class_shares(self.operator, self.y, self.n_classes, self.weights)

    @cached_property
    def signs(self) -> Array:
        """Step 0: the side of each map on which each class lies."""
        with self.progress.stage("initial guess"):
            return initial_signs(self.operator, self.shares, self.settings.init_rule)

    @cached_property
    def _pairs(self) -> tuple[Pairs, AnyPairs, float]:
        pairs = sample_pairs(
            self.operator,
            self.y,
            self.n_classes,
            self.weights,
            self.settings.negatives_per_positive,
            self.settings.max_pairs,
            self.settings.seed,
        )
        kind: type[AnyPairs] = DevicePairs if self.operator.in_lockstep else PairOperator
        operator = kind.of(self.operator, pairs, self.signs)
        return pairs, operator, smallest_cost(operator, pairs, self.settings.kernel_loss)

    def smallest_useful_C(self) -> float:
        """Return the largest C_kernel at which all theta are zero, in closed form."""
        pairs, _, smallest = self._pairs
        return smallest * pairs.weights.sum() / REFERENCE_ROWS

    def _learned(self, C: float, start: Kernel | None) -> Kernel:
        """Step 1 of the paper."""
        _ = self.signs  # Step 0, a stage of its own
        with self.progress.stage("kernel weights") as iteration:
            pairs, operator, _ = self._pairs
            smallest = self.smallest_useful_C()
            if np.isinf(smallest):
                warnings.warn(
                    "Step 0 finds no map that tells the classes apart, and the model is constant. "
                    "Try init_rule='balanced', quantile thresholds or theta='ones'.",
                    UserWarning,
                    stacklevel=2,
                )
                return Kernel(np.zeros(operator.n_columns))
            if smallest >= C:
                warnings.warn(
                    f"C_kernel={C:g} is too small to learn a kernel: all theta are zero up to "
                    f"C_kernel={smallest:.3g}, and the model is constant. Set C_kernel above that.",
                    UserWarning,
                    stacklevel=2,
                )
                return Kernel(np.zeros(operator.n_columns))
            cost = C * REFERENCE_ROWS / pairs.weights.sum()
            solution = learn_kernel_weights(
                operator,
                pairs,
                self.settings.kernel_loss,
                cost,
                None if start is None else start.interior,
                self.settings.tol,
                self.settings.max_iter,
                iteration,
            )
            margins = pair_margins(operator, pairs, self.settings.kernel_loss, cost)
            result = rounded(operator, margins, solution, self.settings.tol).on_host()
            return Kernel(result.theta / result.theta.sum(), result, solution.on_host())

    def _alignment(self) -> Array:
        """Weigh each map by how well it alone tells the classes apart."""
        with self.progress.stage("kernel weights"):
            difference = to_host(self.shares.own - self.shares.rest)
            separation = self._squares(difference)
            theta = self.multiplicity * separation
            return theta / theta.sum() if theta.any() else theta

    def _reweighted(self, C: float) -> Kernel:
        """Start from equal weights and move each to the norm of its map's jumps.

        The fixed point is the group lasso over maps; a few passes keep the
        accuracy of equal weights with fewer maps.
        """
        kernel = Kernel(self.multiplicity / self.multiplicity.sum())
        solution = None
        for _ in range(_REWEIGHTING_PASSES):
            solution = self.learn_classifier(kernel, C, solution)
            norms = np.sqrt(self._squares(solution.jumps))
            if not norms.any():
                return kernel
            theta = np.where(norms > _DROP_BELOW * norms[norms > 0].mean(), norms, 0.0)
            kernel = Kernel(theta / theta.sum())
        return kernel

    def _squares(self, columns: Array) -> Array:
        """Return for each map the sum of squares over its sides or cells, and the classes."""
        # A stump has one column for two sides, and the penalty of both.
        sides = self.operator.penalty(np.ones(self.operator.n_slots))
        return self.operator.collect(sides * (columns**2).sum(axis=1))

    def _constant(self, C: float) -> Solution:
        """Return the classifier without any map: an intercept per class."""
        labels = one_vs_rest_labels(self.y, self.n_classes)
        costs = (C * REFERENCE_ROWS / exact_total(self.weights) * self.weights)[:, None]
        margins = Margins(labels, costs, smoothing_path(self.settings.loss)[-1])
        scores = 0.0 * labels
        intercept = margins.best_intercept(scores, np.zeros(labels.shape[1]))
        objective = margins.exact_value(scores + intercept)
        jumps = np.zeros((self.operator.n_columns, labels.shape[1]))
        return Solution(jumps, intercept, objective, np.zeros_like(objective))


def merge_equal_rows(
    hashes: NDArray[np.uint64], y: NDArray[np.intp], weights: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return one of each set of equal rows, in the order of their hashes, and their weights.

    Examples
    --------
    >>> import numpy as np
    >>> hashes = np.array([[7, 2], [5, 1], [7, 2]], dtype=np.uint64)
    >>> merge_equal_rows(hashes, np.zeros(3, int), np.array([1, 1, 2]))
    (array([1, 0]), array([1, 3]))
    """
    low, high = hashes.T
    order = np.lexsort((y, low, high))
    low, high, y = low[order], high[order], y[order]
    fresh = np.ones(y.size, dtype=bool)
    fresh[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1]) | (y[1:] != y[:-1])
    return order[fresh], np.add.reduceat(weights[order], np.flatnonzero(fresh))


def warn_if_not_converged(
    step: str, solution: Solution | WeightSolution, remedy: str, learner: Learner
) -> None:
    """Warn with the value, the tolerance and the reason or the remedy."""
    tol, reason = learner.settings.tol, learner.progress.reason_to_stop()
    if solution.n_iter >= learner.settings.max_iter:
        reason = None
    if solution.relative_gap > tol:
        warnings.warn(
            f"{step} stopped after {solution.n_iter} iterations at a relative duality gap of "
            f"{solution.relative_gap:.1e}, above tol={tol:g}"
            f"{f', because {reason}.' if reason else f'. {remedy}'}",
            ConvergenceWarning,
            stacklevel=3,
        )

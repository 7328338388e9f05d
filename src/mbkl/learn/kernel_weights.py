"""Step 1: the weights of the kernel, one theta >= 0 per map for all classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import to_host
from mbkl.learn.device_pairs import DevicePairs
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.learn.pairs import Pairs, pairs_of, pairs_of_a_row
from mbkl.learn.signed_maps import SignedMaps
from mbkl.solvers.choose import solve
from mbkl.solvers.losses import LOSSES, positive_part
from mbkl.solvers.margins import Margins
from mbkl.solvers.problem import Problem, Progress, Solution, go_on

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KernelProblem:
    """Step 1 for any cost."""

    operator: Any
    pairs: Pairs
    loss: str  # smooth: no method here is good at the kink of the hinge with many pairs

    @classmethod
    def of(
        cls,
        rows: LabelledRows,
        signs: Array,
        loss: str,
        negatives_per_positive: int,
        max_pairs: int,
    ) -> KernelProblem:
        """Return the problem of the pairs of all rows, or of a class-balanced part of them."""
        rows = rows.balanced(max_pairs // pairs_of_a_row(rows, negatives_per_positive))
        pairs = pairs_of(rows, negatives_per_positive)
        kind = DevicePairs if rows.operator.many_at_once else SignedMaps
        return cls(kind.of(rows.operator, pairs, signs), pairs, loss)

    def margins(self, cost: float) -> Margins:
        """Return the losses of the pairs, as functions of their scores; a cost for all of them."""
        place, pairs = self.operator.to_device, self.pairs
        costs = cost / pairs.weights.sum() * place(pairs.weights)
        labels = place(pairs.labels)[:, None]
        if self.loss not in LOSSES:
            return Margins.of_numbers(labels, costs[:, None], self.loss, 0.5)
        return Margins(labels, costs[:, None], LOSSES[self.loss])

    @cached_property
    def smallest_cost(self) -> float:
        """The cost up to which all weights are zero, in closed form.

        With all weights zero the scores are the best constant; a map enters when its
        pull on the pairs exceeds the unit price of its weight.
        """
        margins = self.margins(float(self.pairs.weights.sum()))
        scores = 0.0 * margins.costs
        intercept = margins.best_intercept(scores, 0.0 * scores[0])
        support = margins.support(scores + intercept)
        pull = float(self.operator.adjoint(margins.signed(support)).max())
        return np.inf if pull <= 0.0 else 1.0 / pull * self.pairs.weights.sum()

    def solve(
        self,
        cost: float,
        start: Solution | None,
        tol: float,
        max_iter: int,
        progress: Progress = go_on,
    ) -> tuple[Solution, Solution]:
        """Return where the solver ended, and the solution with weights near zero set to zero."""
        margins = self.margins(cost)
        interior = solve(Problem(self.operator, margins), start, tol, max_iter, progress)
        return interior.on_host(), rounded(self.operator, margins, interior, tol).on_host()


def rounded(operator: Any, margins: Margins, solution: Solution, tol: float) -> Solution:
    """Set the weights on their way to zero to zero; update objective and gap.

    Where so many are on their way that the gap would exceed tol, they stay.
    """
    useful = operator.is_signed
    result = _keep_weights(operator, margins, solution, is_positive(solution) & useful)
    if solution.relative_gap <= tol < result.relative_gap:
        return _keep_weights(operator, margins, solution, operator.is_map & useful)
    return result


def is_positive(solution: Solution) -> NDArray[np.bool_]:
    """Say which weights are positive at the solution.

    Weight and slack are complementary: one of the two goes to zero. They are
    compared in their own units, the mean weight and the price of one.
    """
    weights, slack = to_host(solution.weights)[:, 0], to_host(solution.slack)[:, 0]
    mean = weights.sum() / max(int((weights > 0).sum()), 1)
    positive = weights > slack * mean
    return positive if positive.any() else weights > 0


def _keep_weights(
    operator: Any, margins: Margins, solution: Solution, useful: NDArray[np.bool_]
) -> Solution:
    weights = operator.to_device(np.where(useful[:, None], to_host(solution.weights), 0.0))
    scores = operator.forward(weights)
    intercept = margins.best_intercept(scores, operator.to_device(solution.intercept))
    objective = weights.sum(axis=0) + margins.exact_value(scores + intercept)
    # The lower bound of the optimum stays what it was.
    gap = positive_part(objective - (solution.objective - solution.gap))
    return replace(solution, weights=weights, intercept=intercept, objective=objective, gap=gap)

"""Step 2 for quantiles far from the middle: a ridge regression first, then what it leaves.

Few rows are beyond a quantile near 0 or 1, and they alone say little about how it moves from place
to place; all rows say how the mean moves, and most quantiles move with it. So Step 2 is taken
twice with one kernel: for the mean, in which every row is predicted by all others in closed form,
then for the quantile of what is left of the rows. Both are weights of the same maps, and add up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import exact_total
from mbkl.learn.algorithm import REFERENCE_ROWS, Kernel, Learner
from mbkl.maps.numbers import Numbers
from mbkl.solvers.blas import one_blas_thread
from mbkl.solvers.choose import may_use_gram
from mbkl.solvers.gram_newton import left_out_residuals
from mbkl.solvers.problem import Solution

Array = NDArray[np.float64]


@dataclass
class AroundMean(Learner):
    """The steps, with a ridge regression before the quantile in Step 2.

    Parameters
    ----------
    rows, prior, settings, progress
        See `Learner`.
    row_cost : float
        Cost of a row in the ridge regression.
    """

    row_cost: float = 1.0

    def learn_classifier(
        self, kernel: Kernel, C: float, start: Solution | None = None, **options
    ) -> Solution:
        """Run Step 2 twice; see `Learner`."""
        if not can_leave_out(self, kernel):
            return super().learn_classifier(kernel, C, start, **options)
        rows, numbers = self.rows, self.rows.numbers
        assert numbers is not None
        ridge_cost = self.row_cost * rows.n_rows / REFERENCE_ROWS
        settings = replace(self.settings, loss="squared_error")
        means = Learner(rows, self.prior, settings, self.progress)
        mean = means.learn_classifier(kernel, ridge_cost)
        left = numbers.of_rows(rows.y) - left_out(means, kernel, ridge_cost)
        own, y = Numbers.of(left, rows.weights, numbers.loss, numbers.quantile)
        rows = replace(rows, y=y, n_classes=len(own.values), numbers=own)
        rest = Learner(rows, self.prior, self.settings, self.progress)
        solution = rest.learn_classifier(kernel, C, **options)
        weights, intercept = own.given(solution.weights, solution.intercept)
        return replace(
            solution, weights=mean.weights + weights, intercept=mean.intercept + intercept
        )


def can_leave_out(learner: Learner, kernel: Kernel) -> bool:
    """Say whether a closed form tells how each row is predicted by all others."""
    rows = learner.rows
    is_small = rows.n_rows > 1 and may_use_gram(rows.n_rows, rows.operator.n_columns)
    return is_small and bool(kernel.theta.any())


def left_out(learner: Learner, kernel: Kernel, C: float) -> Array:
    """Return the score of each row by a ridge regression of all others, in closed form."""
    rows = learner.rows
    assert rows.numbers is not None
    costs = C * REFERENCE_ROWS / exact_total(rows.weights) * rows.weights
    gram = rows.gram.matrix() if rows.gram else rows.operator.gram(learner.weights_of(kernel))
    targets = rows.numbers.values[rows.y]
    with one_blas_thread():
        return targets - left_out_residuals(gram, 2.0 * costs, targets)

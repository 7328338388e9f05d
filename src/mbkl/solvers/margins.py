"""The part of both objectives that sees the rows: losses, and the best intercept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import Values, cast, exact_sum, is_numpy, namespace
from mbkl.solvers.losses import Loss, exact_loss


@dataclass(frozen=True)
class Margins:
    """Losses of all rows, for several independent problems side by side.

    Parameters
    ----------
    labels : ndarray of shape (n_rows, n_columns)
        +1 or -1.
    costs : ndarray of shape (n_rows, 1)
        Cost of each row, positive.
    loss : Loss
    """

    labels: Values
    costs: Values
    loss: Loss

    def columns(self, columns: NDArray[np.intp]) -> Margins:
        return Margins(self.labels[:, columns], self.costs, self.loss)

    def value(self, scores: Values) -> Values:
        """Total loss of each column, as the solver minimises it."""
        return exact_sum(self.costs * self.loss.value(self.labels * scores))

    def exact_value(self, scores: Values) -> Values:
        """Total loss of each column, without any smoothing."""
        return exact_sum(self.costs * exact_loss(self.loss).value(self.labels * scores))

    def support(self, scores: Values) -> Values:
        """Minus the derivative by the score, times the label: not negative."""
        return self.costs * self.loss.support(self.labels * scores)

    def curvature(self, scores: Values) -> Values:
        return self.costs * self.loss.curvature(self.labels * scores)

    def dual_value(self, support: Values) -> Values:
        """Sum of the dual values of each column's support."""
        return exact_sum(self.costs * self.loss.dual_value(support / self.costs))

    def best_intercept(self, scores: Values, start: Values) -> Values:
        """Minimise the loss over a constant added to each column.

        Newton's method on the derivative, which is monotone, kept inside the
        bracket seen so far and halving it where a Newton step would leave it.
        """
        xp = namespace(start)
        intercept = start
        low, high = start - np.inf, start + np.inf
        negligible = 1e-11 if is_numpy(scores) else 1e-6
        for _ in range(100):
            shifted = scores + cast(intercept, scores)
            support = self.support(shifted)
            slope = -exact_sum(self.labels * support)
            done = abs(slope) <= negligible * exact_sum(support)
            if done.all():
                break
            low = xp.where(slope < 0, intercept, low)
            high = xp.where(slope > 0, intercept, high)
            curvature = exact_sum(self.curvature(shifted))
            with np.errstate(divide="ignore", invalid="ignore"):
                proposal = intercept - slope / curvature
            # Scores and intercepts are of order one: doubling from there finds
            # a bracket in a few steps where the curvature says nothing.
            far = xp.where(
                slope < 0, intercept + 1 + abs(intercept), intercept - 1 - abs(intercept)
            )
            inside = (proposal > low) & (proposal < high)
            inside &= abs(proposal - intercept) <= 1 + abs(intercept)
            bracketed = xp.isfinite(low) & xp.isfinite(high)
            with np.errstate(invalid="ignore"):
                middle = xp.where(bracketed, (low + high) / 2, far)
            proposal = xp.where(inside, proposal, middle)
            moved = ~done & (proposal != intercept)
            if not moved.any():
                break
            intercept = xp.where(moved, proposal, intercept)
        return intercept

"""The part of both objectives that sees the rows: losses, and the best intercept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.fixed_point import exact_sum
from mbkl.learn.losses import Loss, exact_loss

Array = NDArray[np.float64]


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

    labels: NDArray
    costs: Array
    loss: Loss

    def columns(self, columns: NDArray[np.intp]) -> Margins:
        return Margins(self.labels[:, columns], self.costs, self.loss)

    def value(self, scores: Array) -> Array:
        """Total loss of each column, as the solver minimises it."""
        return exact_sum(self.costs * self.loss.value(self.labels * scores))

    def exact_value(self, scores: Array) -> Array:
        """Total loss of each column, without any smoothing."""
        return exact_sum(self.costs * exact_loss(self.loss).value(self.labels * scores))

    def support(self, scores: Array) -> Array:
        """Minus the derivative by the score, times the label: not negative."""
        return self.costs * self.loss.support(self.labels * scores)

    def curvature(self, scores: Array) -> Array:
        return self.costs * self.loss.curvature(self.labels * scores)

    def dual_value(self, support: Array) -> Array:
        """Sum of the dual values of each column's support."""
        return exact_sum(self.costs * self.loss.dual_value(support / self.costs))

    def best_intercept(self, scores: Array, start: Array) -> Array:
        """Minimise the loss over a constant added to each column.

        Newton's method on the derivative, which is monotone, kept inside the
        bracket seen so far and halving it where a Newton step would leave it.
        """
        intercept = start.copy()
        low = np.full_like(intercept, -np.inf)
        high = np.full_like(intercept, np.inf)
        for _ in range(100):
            shifted = scores + intercept
            support = self.support(shifted)
            slope = -exact_sum(self.labels * support)
            done = np.abs(slope) <= 1e-11 * exact_sum(support)
            if done.all():
                break
            low = np.where(slope < 0, intercept, low)
            high = np.where(slope > 0, intercept, high)
            curvature = exact_sum(self.curvature(shifted))
            with np.errstate(divide="ignore", invalid="ignore"):
                proposal = intercept - slope / curvature
            # Scores and intercepts are of order one: doubling from there finds
            # a bracket in a few steps where the curvature says nothing.
            far = np.where(
                slope < 0, intercept + 1 + abs(intercept), intercept - 1 - abs(intercept)
            )
            inside = (proposal > low) & (proposal < high)
            inside &= np.abs(proposal - intercept) <= 1 + np.abs(intercept)
            bracketed = np.isfinite(low) & np.isfinite(high)
            with np.errstate(invalid="ignore"):
                middle = np.where(bracketed, (low + high) / 2, far)
            proposal = np.where(inside, proposal, middle)
            moved = ~done & (proposal != intercept)
            if not moved.any():
                break
            intercept = np.where(moved, proposal, intercept)
        return intercept

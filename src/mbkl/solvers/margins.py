"""The part of both objectives that sees the rows: losses, and the best intercept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import Values, cast, exact_sum, is_numpy, namespace
from mbkl.solvers.losses import Exponential, Hinge, Loss, SquaredError, exact_loss


@dataclass(frozen=True)
class Margins:
    """Losses of all rows, for several independent problems side by side.

    The margin of a row is label * (score - target), and it costs

        cost * (loss(margin) - tilt * (score - target))

    less the smallest value that this can have. Classes have neither targets nor tilts. Numbers
    have one label, and with these two all their losses are margin losses too: the squared error
    has targets, quantiles are a tilted hinge, and counts a tilted exponential.
    """

    labels: Values  # (n_rows, n_columns): +1 or -1
    costs: Values  # (n_rows, 1): cost of each row, positive
    loss: Loss
    # (n_rows, n_columns): None means zero
    targets: Values = None
    tilts: Values = None

    @classmethod
    def of_numbers(cls, numbers: Values, costs: Values, loss: str, quantile: float) -> Margins:
        """Return the losses of numbers: of squared or absolute errors, a quantile, or Poisson.

        The absolute error is half of it: the loss of the quantile 0.5.

        >>> margins = Margins.of_numbers(np.array([[2.0]]), np.ones((1, 1)), "quantile", 0.9)
        >>> margins.value(np.array([[1.0]])).round(3), margins.value(np.array([[3.0]])).round(3)
        (array([0.9]), array([0.1]))
        """
        labels = 0 * numbers + 1
        if loss == "squared_error":
            return cls(labels, costs, SquaredError(), numbers)
        if loss == "poisson":
            return cls(-labels, costs, Exponential(), None, numbers)
        level = 0.5 if loss == "absolute_error" else quantile
        # The hinge has its kink where the margin is one.
        return cls(labels, costs, Hinge(), numbers - 1.0, (level - 1.0) * labels)

    @property
    def is_numeric(self) -> bool:
        """Whether rows have numbers, not classes."""
        return self.targets is not None or self.tilts is not None

    def columns(self, columns: NDArray[np.intp]) -> Margins:
        """Return some of the problems."""
        return self._part((slice(None), columns), self.costs)

    def rows(self, rows) -> Margins:
        """Return some of the rows."""
        return self._part(rows, self.costs[rows])

    def _part(self, which, costs: Values) -> Margins:
        targets = None if self.targets is None else self.targets[which]
        tilts = None if self.tilts is None else self.tilts[which]
        return replace(self, labels=self.labels[which], costs=costs, targets=targets, tilts=tilts)

    def of(self, scores: Values) -> Values:
        """Return the margins."""
        return self.labels * self._distances(scores)

    def _distances(self, scores: Values) -> Values:
        return scores if self.targets is None else scores - self.targets

    def signed(self, support: Values) -> Values:
        """Return minus the derivative by the score, of rows with these supports."""
        signed = self.labels * support
        return signed if self.tilts is None else signed + self.costs * self.tilts

    def value(self, scores: Values) -> Values:
        """Total loss of each column, as the solver minimises it."""
        return self._total(self.loss, scores)

    def exact_value(self, scores: Values) -> Values:
        """Total loss of each column, without any smoothing."""
        return self._total(exact_loss(self.loss), scores)

    def _total(self, loss: Loss, scores: Values) -> Values:
        losses = loss.value(self.of(scores))
        if self.tilts is not None:
            losses = losses - self.tilts * self._distances(scores) - self._least()
        return exact_sum(self.costs * losses)

    def _least(self) -> Values:
        """Return the smallest value of each row's tilted loss."""
        return self.loss.dual_value(-self.labels * self.tilts)

    def support(self, scores: Values) -> Values:
        """Minus the derivative of the loss by the margin."""
        return self.costs * self.loss.support(self.of(scores))

    def curvature(self, scores: Values) -> Values:
        return self.costs * self.loss.curvature(self.of(scores))

    def dual_value(self, support: Values) -> Values:
        """Sum of the dual values of each column's support."""
        values = self.costs * self.loss.dual_value(support / self.costs)
        if self.targets is not None:
            values = values + self.targets * self.signed(support)
        if self.tilts is not None:
            values = values - self.costs * self._least()
        return exact_sum(values)

    def best_intercept(self, scores: Values, start: Values) -> Values:
        """Minimise the loss over a constant added to each column.

        Newton's method on the derivative, which is monotone, kept inside the
        bracket seen so far and halving it where a Newton step would leave it.
        """
        xp = namespace(start)
        intercept = start
        low, high = start - np.inf, start + np.inf
        negligible = 1e-11 if is_numpy(scores) else 1e-6
        # Where all rows are on one side, the best constant is infinite: this is near enough.
        nothing = 1e-13 * exact_sum(self.costs)
        for _ in range(100):
            shifted = scores + cast(intercept, scores)
            support = self.support(shifted)
            slope = -exact_sum(self.signed(support))
            done = abs(slope) <= negligible * exact_sum(abs(support)) + nothing
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

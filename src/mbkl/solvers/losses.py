"""Margin losses, with what the solvers and their certificates need of them.

A loss is a convex function of the margin m, which is label * score for classes; numbers have
targets as well (`mbkl.solvers.margins`). All but the squared error never increase.
`support` is minus its derivative, the dual variable of a row with unit cost.
`dual_value` is minus the conjugate at minus the support: weak duality bounds the
optimum from below with any support that is feasible.

Interior-point methods treat the support as a variable. `conjugate_slope` and
`conjugate_curvature` are derivatives of the conjugate, for a row with the given
cost, without its bounds: those have slacks where `needs_lower_slack` (support >= 0)
or `needs_upper_slack` (support <= cost) says so. `offset` is the margin at which
the conjugate's slope is zero. A loss with a kink is smoothed over the widths of `path`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from mbkl.engine.arrays import Values, is_numpy, namespace

# Exponents are cut off here.
_LARGEST = 60.0


class MarginLoss:
    """What most losses have in common, of what the solvers ask for."""

    offset: ClassVar[float] = 0.0
    needs_lower_slack: ClassVar[bool] = False
    needs_upper_slack: ClassVar[bool] = False
    support_is_limited: ClassVar[bool] = False
    support_is_positive: ClassVar[bool] = True
    path: ClassVar[tuple[float, ...]] = ()


class Square(MarginLoss):
    """The square of offset - m, or of a part of it."""

    def dual_value(self, support: Values) -> Values:
        return self.offset * support - support**2 / 4.0

    def conjugate_slope(self, support: Values, costs: Values) -> Values:
        return support / (2.0 * costs)

    def conjugate_curvature(self, support: Values, costs: Values) -> Values:
        return 0.5 / costs


@dataclass(frozen=True)
class SquaredHinge(Square):
    """max(0, 1 - m) squared, the loss of liblinear's l1-regularised solver."""

    offset: ClassVar[float] = 1.0
    needs_lower_slack: ClassVar[bool] = True

    def value(self, margins: Values) -> Values:
        return positive_part(1.0 - margins) ** 2

    def support(self, margins: Values) -> Values:
        return 2.0 * positive_part(1.0 - margins)

    def curvature(self, margins: Values) -> Values:
        return namespace(margins).where(margins < 1.0, 2.0, 0.0)


@dataclass(frozen=True)
class SquaredError(Square):
    """m squared: the loss of a ridge regression."""

    support_is_positive: ClassVar[bool] = False

    def value(self, margins: Values) -> Values:
        return margins**2

    def support(self, margins: Values) -> Values:
        return -2.0 * margins

    def curvature(self, margins: Values) -> Values:
        return 0.0 * margins + 2.0


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """max(0, 1 - m), with a parabola of width `smoothing` in place of the kink."""

    offset: ClassVar[float] = 1.0
    needs_lower_slack: ClassVar[bool] = True
    needs_upper_slack: ClassVar[bool] = True
    support_is_limited: ClassVar[bool] = True
    path: ClassVar[tuple[float, ...]] = (0.5, 0.1, 0.02, 0.004, 0.0008)

    smoothing: float = 0.0

    def value(self, margins: Values) -> Values:
        shortfall = 1.0 - margins
        if not self.smoothing:
            return positive_part(shortfall)
        inside = namespace(margins).clip(shortfall, 0.0, self.smoothing)
        return inside**2 / (2.0 * self.smoothing) + positive_part(shortfall - self.smoothing)

    def support(self, margins: Values) -> Values:
        if not self.smoothing:
            return namespace(margins).where(margins < 1.0, 1.0, 0.0)
        return namespace(margins).clip((1.0 - margins) / self.smoothing, 0.0, 1.0)

    def curvature(self, margins: Values) -> Values:
        if not self.smoothing:
            return 0.0 * margins
        curved = (margins < 1.0) & (margins > 1.0 - self.smoothing)
        return namespace(margins).where(curved, 1.0 / self.smoothing, 0.0)

    def dual_value(self, support: Values) -> Values:
        return support

    def conjugate_slope(self, support: Values, costs: Values) -> Values:
        return np.zeros_like(support)

    conjugate_curvature = conjugate_slope


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-m))."""

    support_is_limited: ClassVar[bool] = True

    def value(self, margins: Values) -> Values:
        return namespace(margins).logaddexp(0.0 * margins, -margins)

    def support(self, margins: Values) -> Values:
        return expit(-margins)

    def curvature(self, margins: Values) -> Values:
        support = expit(-margins)
        return support * (1.0 - support)

    def dual_value(self, support: Values) -> Values:
        module = special if is_numpy(support) else namespace(support).special
        return -module.xlogy(support, support) - module.xlog1py(1.0 - support, -support)

    def conjugate_slope(self, support: Values, costs: Values) -> Values:
        return namespace(support).log(support / (costs - support))

    def conjugate_curvature(self, support: Values, costs: Values) -> Values:
        return 1.0 / support + 1.0 / (costs - support)


@dataclass(frozen=True)
class Exponential(MarginLoss):
    """exp(-m), which tilted by counts is the loss of a Poisson regression."""

    def value(self, margins: Values) -> Values:
        # Steps that are far too long give a number all the same.
        return namespace(margins).exp(namespace(margins).clip(-margins, -_LARGEST, _LARGEST))

    support = value
    curvature = value

    def dual_value(self, support: Values) -> Values:
        module = special if is_numpy(support) else namespace(support).special
        return support - module.xlogy(support, support)

    def conjugate_slope(self, support: Values, costs: Values) -> Values:
        return namespace(support).log(support / costs)

    def conjugate_curvature(self, support: Values, costs: Values) -> Values:
        return 1.0 / support


def positive_part(values: Values) -> Values:
    """Return the values, zero where they are negative."""
    return np.maximum(values, 0.0) if is_numpy(values) else values.clamp(min=0.0)


def expit(values: Values) -> Values:
    """Return the logistic function."""
    return special.expit(values) if is_numpy(values) else values.sigmoid()


Loss = SquaredHinge | Hinge | Logistic | SquaredError | Exponential

LOSSES: dict[str, Loss] = {
    "squared_hinge": SquaredHinge(),
    "hinge": Hinge(),
    "logistic": Logistic(),
}


def smoothing_path(loss: Loss) -> tuple[Loss, ...]:
    """Return the losses to minimise one after the other, the last being near the goal.

    The hinge has a kink, where Newton's method does not apply; it is approached through parabolas
    of shrinking width, each solution starting the next.
    """
    if not isinstance(loss, Hinge):
        return (loss,)
    return tuple(Hinge(width) for width in loss.path)


def exact_loss(loss: Loss) -> Loss:
    """Return the loss that a smoothed one stands for."""
    return Hinge() if isinstance(loss, Hinge) else loss

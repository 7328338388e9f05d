"""Margin losses, with what the solvers and their certificates need of them.

A loss is a convex, non-increasing function of the margin m = label * score.
`support` is minus its derivative, the dual variable of a row with unit cost.
`dual_value` is minus the conjugate at minus the support: weak duality bounds the
optimum from below with any support in [0, support_limit].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlog1py, xlogy

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SquaredHinge:
    """max(0, 1 - m) squared, the loss of liblinear's l1-regularised solver."""

    def value(self, margins: Array) -> Array:
        return np.maximum(0.0, 1.0 - margins) ** 2

    def support(self, margins: Array) -> Array:
        return 2.0 * np.maximum(0.0, 1.0 - margins)

    def curvature(self, margins: Array) -> Array:
        return 2.0 * (margins < 1.0)

    def dual_value(self, support: Array) -> Array:
        return support - support**2 / 4.0


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 - m), with a parabola of width `smoothing` in place of the kink."""

    smoothing: float = 0.0

    def value(self, margins: Array) -> Array:
        shortfall = 1.0 - margins
        if not self.smoothing:
            return np.maximum(0.0, shortfall)
        inside = np.clip(shortfall, 0.0, self.smoothing)
        return inside**2 / (2.0 * self.smoothing) + np.maximum(0.0, shortfall - self.smoothing)

    def support(self, margins: Array) -> Array:
        return np.clip((1.0 - margins) / self.smoothing, 0.0, 1.0)

    def curvature(self, margins: Array) -> Array:
        return ((margins < 1.0) & (margins > 1.0 - self.smoothing)) / self.smoothing

    def dual_value(self, support: Array) -> Array:
        return support


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-m))."""

    def value(self, margins: Array) -> Array:
        return np.logaddexp(0.0, -margins)

    def support(self, margins: Array) -> Array:
        return expit(-margins)

    def curvature(self, margins: Array) -> Array:
        support = expit(-margins)
        return support * (1.0 - support)

    def dual_value(self, support: Array) -> Array:
        return -xlogy(support, support) - xlog1py(1.0 - support, -support)


Loss = SquaredHinge | Hinge | Logistic


def smoothing_path(name: str) -> tuple[Loss, ...]:
    """Return the losses to minimise one after the other, the last being the goal.

    The hinge has a kink, where Newton's method does not apply; it is approached
    through parabolas of shrinking width, each solution starting the next.

    Examples
    --------
    >>> smoothing_path("squared_hinge")
    (SquaredHinge(),)
    """
    if name == "squared_hinge":
        return (SquaredHinge(),)
    if name == "logistic":
        return (Logistic(),)
    return tuple(Hinge(width) for width in (0.5, 0.1, 0.02, 0.004, 0.0008))


def exact_loss(loss: Loss) -> Loss:
    """Return the loss that a smoothed one stands for."""
    return Hinge() if isinstance(loss, Hinge) else loss

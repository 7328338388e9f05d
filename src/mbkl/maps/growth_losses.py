"""The losses that ferns are grown to lower, told by their gradient and curvature.

An objective has, for scores of shape (n_rows, n_columns) in single precision,

    n_columns                 of the scores
    is_numeric                whether y are levels of numbers, not classes
    usual_curvature           of a row and column where all classes are as likely
    usual_rate                share of a Newton step that suits it
    ends_at_zero              whether progress is told by what is left of the loss, too
    start(y, weights)         the best constant, one number a column
    derivatives(scores, y)    gradient and curvature of each row and column, arrays of their own
    pack(loops, ...)          the same in small integers, see `Twins.pack_residuals`
    value(scores, y)          loss of each row
    of_rows(y)                y as a device has it: classes, or the numbers of the levels

Derivatives and losses are computed where the scores are, and nothing is sent there meanwhile, so
that a device can record them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import Values, cast, exact_sum, is_numpy, namespace, numbers_below, to_host
from mbkl.engine.twins import Twins
from mbkl.maps.numbers import Numbers
from mbkl.solvers.problem import expit

Single = NDArray[np.float32]

SMALL_RATE = 0.1


@dataclass(frozen=True)
class Targets:
    """What rows are to be told apart by."""

    y: Any  # (n_rows,): class of each row, or level of `numbers`
    n_classes: int
    weights: Any  # (n_rows,)
    numbers: Numbers | None = None  # what y stands for, where it is no class
    # (n_rows,): which rows decide when growth ends; None leaves it to chance
    held_out: Any = None


class _Packed:
    """What all losses share."""

    def pack(self, loops: Twins, scores, y, weights, units, packed) -> tuple[float, float]:
        """Write derivatives times weights as small integers, where NumPy has the rows."""
        return loops.pack_residuals(*self.derivatives(scores, y), weights, units, packed)

    def derivatives(self, scores, y) -> tuple[Values, Values]:
        raise NotImplementedError


@dataclass(frozen=True)
class _OfClasses(_Packed):
    """What the losses of classes share."""

    n_classes: int

    is_numeric, ends_at_zero = False, False

    @property
    def n_columns(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    def of_rows(self, y) -> NDArray[np.int64]:
        """Return the classes of rows, which Torch takes as an index."""
        return y.astype(np.int64)


@dataclass(frozen=True)
class LogLoss(_OfClasses):
    """Log loss of two classes in one column, of more in one column each (softmax).

    >>> gradient, _ = LogLoss(2).derivatives(np.zeros((2, 1), np.float32), np.array([0, 1]))
    >>> gradient.ravel().tolist()
    [0.5, -0.5]
    """

    @property
    def usual_curvature(self) -> float:
        return (1 - 1 / self.n_classes) / self.n_classes

    @property
    def usual_rate(self) -> float:
        # Of two classes half of the ferns are as good (`python -m benchmarks.suite --all-rows`).
        return 0.2 if self.n_classes == 2 else SMALL_RATE

    def start(self, y, weights):
        own = y[:, None] == numbers_below(self.n_classes, y)
        share = to_host(exact_sum(namespace(y).where(own, weights[:, None], 0.0)))
        logs = np.log(np.maximum(share / share.sum(), 1e-6))
        return (logs[1:] - logs[:1] if self.n_classes == 2 else logs).astype(np.float32)

    def pack(self, loops, scores, y, weights, units, packed):
        return loops.log_loss_residuals(scores, y, weights, units, packed)

    def derivatives(self, scores, y):
        if self.n_classes == 2:
            chance = expit(scores)
            return chance - cast((y == 1)[:, None], scores), chance * (1 - chance)
        chance = namespace(scores).exp(_shifted(scores))
        chance /= chance.sum(axis=0)
        chance = chance.T
        curvature = chance * (1 - chance)
        chance[numbers_below(len(y), y), y] -= 1
        return chance, curvature

    def value(self, scores, y):
        xp = namespace(scores)
        if self.n_classes == 2:
            margin = xp.where(y == 1, scores[:, 0], -scores[:, 0])
            over = (-margin).clip(min=0)
            return over + xp.log(1 + xp.exp(-abs(margin)))
        shifted = _shifted(scores)
        return xp.log(xp.exp(shifted).sum(axis=0)) - shifted[y, numbers_below(len(y), y)]


def _shifted(scores: Values) -> Values:
    """Return scores less the largest of their row, each class a line of its own.

    Sums over short rows would take longer than all else.
    """
    if not is_numpy(scores):
        return (scores - scores.amax(dim=1, keepdim=True)).T
    lines = np.ascontiguousarray(scores.T)
    lines -= lines.max(axis=0)
    return lines


@dataclass(frozen=True)
class HingeLoss(_OfClasses):
    """Squared hinge of one class against the rest, a column each; two classes are one column."""

    usual_curvature, usual_rate = 2.0, SMALL_RATE

    def start(self, y, weights):
        labels = self._labels(y)
        means = exact_sum(labels * weights[:, None]) / exact_sum(weights[:, None])
        return to_host(means).astype(np.float32)

    def derivatives(self, scores, y):
        labels = self._labels(y)
        slack = (1 - labels * scores).clip(min=0)
        return -2 * labels * slack, 2 * cast(slack > 0, scores)

    def value(self, scores, y):
        return ((1 - self._labels(y) * scores).clip(min=0) ** 2).sum(axis=1)

    def _labels(self, y: NDArray) -> Single:
        is_pair = self.n_classes == 2
        own = y[:, None] == (1 if is_pair else numbers_below(self.n_classes, y))
        return np.where(own, np.float32(1), np.float32(-1)) if is_numpy(own) else 2.0 * own - 1.0


@dataclass(frozen=True)
class _OfNumbers(_Packed):
    """What the losses of numbers share."""

    numbers: Numbers  # the targets of each level of y

    is_numeric, ends_at_zero = True, False
    # Of a row at the best constant, about.
    usual_curvature, usual_rate = 1.0, SMALL_RATE

    @property
    def n_columns(self) -> int:
        return self.numbers.n_columns

    @cached_property
    def _values(self) -> Single:
        return self.numbers.values.astype(np.float32)

    def of_rows(self, y) -> Single:
        """Return the numbers of rows with these levels."""
        return self._values[y]

    def _targets(self, y) -> Values:
        return self.of_rows(y) if is_numpy(y) else y

    def start(self, y, weights):
        means = exact_sum(self.numbers.of_rows(y) * weights[:, None]) / exact_sum(weights[:, None])
        return means.astype(np.float32)


@dataclass(frozen=True)
class SquaredErrorLoss(_OfNumbers):
    """Half the squared error, a column for each target.

    >>> numbers, y = Numbers.of(np.array([1.0, -1.0]), np.ones(2), "squared_error")
    >>> SquaredErrorLoss(numbers).derivatives(np.zeros((2, 1), np.float32), y)[0].ravel().tolist()
    [-1.0, 1.0]
    """

    ends_at_zero = True
    # Residuals are rounded to a share of the largest: a few far ones must not blur all others.
    _LARGEST = 30.0

    def derivatives(self, scores, y):
        residuals = (scores - self._targets(y)).clip(-self._LARGEST, self._LARGEST)
        return residuals, namespace(scores).ones_like(scores)

    def value(self, scores, y):
        return ((scores - self._targets(y)) ** 2).sum(axis=1) / 2


@dataclass(frozen=True)
class QuantileLoss(_OfNumbers):
    """Pinball loss with its corner rounded off; that of 0.5 is half the absolute error."""

    # Half the width of what is rounded off, the mean distance from the median being one.
    _WIDTH = 0.1
    usual_curvature = 0.5

    def start(self, y, weights):
        return self.numbers.quantiles(y, weights).astype(np.float32)

    def derivatives(self, scores, y):
        over = scores - self._targets(y)
        slope = (over / self._WIDTH).clip(-1, 1) / 2 + (0.5 - float(self.numbers.level))
        # The curvature of the smallest parabola above the loss that touches it here.
        return slope, 0.5 / abs(over).clip(min=self._WIDTH)

    def value(self, scores, y):
        over, level = scores - self._targets(y), float(self.numbers.level)
        return namespace(over).where(over > 0, (1 - level) * over, -level * over).sum(axis=1)


@dataclass(frozen=True)
class PoissonLoss(_OfNumbers):
    """Poisson deviance of counts, of which the scores are the logarithms of the means."""

    _LARGEST_SCORE = 30.0

    def start(self, y, weights):
        return np.log(np.maximum(super().start(y, weights), np.float32(1e-9)))

    def derivatives(self, scores, y):
        means = self._means(scores)
        return means - self._targets(y), means

    def value(self, scores, y):
        return (self._means(scores) - self._targets(y) * scores).sum(axis=1)

    def _means(self, scores: Values) -> Values:
        return namespace(scores).exp(scores.clip(max=self._LARGEST_SCORE))


Objective = LogLoss | HingeLoss | SquaredErrorLoss | QuantileLoss | PoissonLoss
OBJECTIVES: dict[str, type[LogLoss | HingeLoss]] = {
    "log_loss": LogLoss,
    "squared_hinge": HingeLoss,
}
_OBJECTIVES_OF_NUMBERS: dict[str, type[SquaredErrorLoss | QuantileLoss | PoissonLoss]] = {
    "squared_error": SquaredErrorLoss,
    "absolute_error": QuantileLoss,
    "quantile": QuantileLoss,
    "poisson": PoissonLoss,
}


def objective_of(name: str, targets: Targets) -> Objective:
    """Return what ferns are grown to lower: that of a name for classes, the loss of numbers."""
    if targets.numbers is not None:
        return _OBJECTIVES_OF_NUMBERS[targets.numbers.loss](targets.numbers)
    return OBJECTIVES[name](targets.n_classes)

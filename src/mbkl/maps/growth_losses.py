"""The losses that ferns are grown to lower, with their gradients and curvatures.

An objective has, for scores of shape (n_rows, n_columns) in single precision,

    n_columns                 number of columns of the scores
    is_numeric                whether y are levels of numeric targets, not classes
    usual_curvature           of a row and column at the start, with all classes equally likely
    usual_rate                default share of a Newton step
    ends_at_zero              whether the loss can fall to zero, so that small rests matter
    start(y, weights)         the best constant, one number per column
    derivatives(scores, y)    gradient and curvature of each row and column, as new arrays
    pack(loops, ...)          the same in small integers, see `Twins.pack_residuals`
    value(scores, y)          loss of each row
    of_rows(y)                y as a device needs it: classes, or numeric targets

Derivatives and losses are computed where the scores are, without copies to or from the device, so
that they can be recorded there.
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
    """The labels and weights of the rows."""

    y: Any  # (n_rows,): class of each row, or level of `numbers`
    n_classes: int
    weights: Any  # (n_rows,)
    numbers: Numbers | None = None  # the numeric targets that y stands for, if it is no class
    # (n_rows,): which rows are held out for early stopping; None draws them
    held_out: Any = None


class _Loss:
    """Base class of all losses."""

    def pack(self, loops: Twins, scores, y, weights, units, packed) -> tuple[float, float]:
        """Write derivatives times weights as small integers, for rows in memory."""
        return loops.pack_residuals(*self.derivatives(scores, y), weights, units, packed)

    def derivatives(self, scores, y) -> tuple[Values, Values]:
        raise NotImplementedError


@dataclass(frozen=True)
class _ClassLoss(_Loss):
    """Base class of the losses of classes."""

    n_classes: int

    is_numeric, ends_at_zero = False, False

    @property
    def n_columns(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    def of_rows(self, y) -> NDArray[np.int64]:
        """Return the classes of rows in a type that Torch takes as an index."""
        return y.astype(np.int64)


@dataclass(frozen=True)
class LogLoss(_ClassLoss):
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
        # For two classes half of the ferns are as good (`python -m benchmarks.suite --all-rows`).
        return 0.2 if self.n_classes == 2 else SMALL_RATE

    def start(self, y, weights):
        is_class = y[:, None] == numbers_below(self.n_classes, y)
        share = to_host(exact_sum(namespace(y).where(is_class, weights[:, None], 0.0)))
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
            return (-margin).clip(min=0) + xp.log(1 + xp.exp(-abs(margin)))
        shifted = _shifted(scores)
        return xp.log(xp.exp(shifted).sum(axis=0)) - shifted[y, numbers_below(len(y), y)]


def _shifted(scores: Values) -> Values:
    """Return scores less the largest of their row, transposed to a line for each class.

    Sums over short rows would take most of the time.
    """
    if not is_numpy(scores):
        return (scores - scores.amax(dim=1, keepdim=True)).T
    lines = np.ascontiguousarray(scores.T)
    lines -= lines.max(axis=0)
    return lines


@dataclass(frozen=True)
class HingeLoss(_ClassLoss):
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
        is_class = y[:, None] == (1 if self.n_classes == 2 else numbers_below(self.n_classes, y))
        if not is_numpy(is_class):
            return 2.0 * is_class - 1.0
        return np.where(is_class, np.float32(1), np.float32(-1))


@dataclass(frozen=True)
class _NumericLoss(_Loss):
    """Base class of the losses of regression."""

    numbers: Numbers  # the targets of each level of y

    is_numeric, ends_at_zero = True, False
    # The curvature is about that of a row at the best constant.
    usual_curvature, usual_rate = 1.0, SMALL_RATE

    @property
    def n_columns(self) -> int:
        return self.numbers.n_columns

    @cached_property
    def _values(self) -> Single:
        return self.numbers.values.astype(np.float32)

    def of_rows(self, y) -> Single:
        """Return the targets of rows with these levels."""
        return self._values[y]

    def _targets(self, y) -> Values:
        return self.of_rows(y) if is_numpy(y) else y

    def start(self, y, weights):
        means = exact_sum(self.numbers.of_rows(y) * weights[:, None]) / exact_sum(weights[:, None])
        return means.astype(np.float32)


@dataclass(frozen=True)
class SquaredErrorLoss(_NumericLoss):
    """Half the squared error, a column for each target.

    >>> numbers, y = Numbers.of(np.array([1.0, -1.0]), np.ones(2), "squared_error")
    >>> SquaredErrorLoss(numbers).derivatives(np.zeros((2, 1), np.float32), y)[0].ravel().tolist()
    [-1.0, 1.0]
    """

    ends_at_zero = True
    # Residuals are rounded relative to the largest: outliers must not make this too coarse.
    _LARGEST = 30.0

    def derivatives(self, scores, y):
        residuals = (scores - self._targets(y)).clip(-self._LARGEST, self._LARGEST)
        return residuals, namespace(scores).ones_like(scores)

    def value(self, scores, y):
        return ((scores - self._targets(y)) ** 2).sum(axis=1) / 2


@dataclass(frozen=True)
class QuantileLoss(_NumericLoss):
    """Pinball loss with a smoothed corner; that of 0.5 is half the absolute error."""

    # Half the width of the smoothed corner, where the mean distance from the median is one.
    _WIDTH = 0.1
    usual_curvature = 0.5

    def start(self, y, weights):
        return self.numbers.quantiles(y, weights).astype(np.float32)

    def derivatives(self, scores, y):
        errors = scores - self._targets(y)
        slope = (errors / self._WIDTH).clip(-1, 1) / 2 + (0.5 - float(self.numbers.level))
        # The curvature of the narrowest parabola that touches the loss here and bounds it above.
        return slope, 0.5 / abs(errors).clip(min=self._WIDTH)

    def value(self, scores, y):
        errors, level = scores - self._targets(y), float(self.numbers.level)
        where = namespace(errors).where
        return where(errors > 0, (1 - level) * errors, -level * errors).sum(axis=1)


@dataclass(frozen=True)
class PoissonLoss(_NumericLoss):
    """Poisson deviance of counts; scores are the logarithms of the means."""

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
_NUMERIC_OBJECTIVES: dict[str, type[SquaredErrorLoss | QuantileLoss | PoissonLoss]] = {
    "squared_error": SquaredErrorLoss,
    "absolute_error": QuantileLoss,
    "quantile": QuantileLoss,
    "poisson": PoissonLoss,
}


def objective_of(name: str, targets: Targets) -> Objective:
    """Return the objective: by name for classes, by the loss of the targets in a regression."""
    if targets.numbers is not None:
        return _NUMERIC_OBJECTIVES[targets.numbers.loss](targets.numbers)
    return OBJECTIVES[name](targets.n_classes)

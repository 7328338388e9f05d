"""What ferns are grown to lower: losses by their gradient and curvature at the scores.

An objective has, for scores of shape (n_rows, n_columns) in single precision,

    n_columns                 of the scores
    usual_curvature           of a row and column where all classes are as likely
    start(y, weights)         the best constant, one number a column
    derivatives(scores, y)    gradient and curvature of each row and column
    value(scores, y)          loss of each row
    sends_nothing             whether all these are computed where the scores are, without copies
                              of arrays to there, so that a device can record them
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mbkl.engine.arrays import (
    Values,
    cast,
    exact_sum,
    is_numpy,
    namespace,
    numbers_below,
    to_host,
)

Single = NDArray[np.float32]


@dataclass(frozen=True)
class LogLoss:
    """Log loss of two classes in one column, of more in one column each (softmax).

    Parameters
    ----------
    n_classes : int

    Examples
    --------
    >>> import numpy as np
    >>> gradient, _ = LogLoss(2).derivatives(np.zeros((2, 1), np.float32), np.array([0, 1]))
    >>> gradient.ravel().tolist()
    [0.5, -0.5]
    """

    n_classes: int

    sends_nothing = True

    @property
    def n_columns(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def usual_curvature(self) -> float:
        return (1 - 1 / self.n_classes) / self.n_classes

    def start(self, y, weights):
        own = y[:, None] == numbers_below(self.n_classes, y)
        share = to_host(exact_sum(namespace(y).where(own, weights[:, None], 0.0)))
        logs = np.log(np.maximum(share / share.sum(), 1e-6))
        return (logs[1:] - logs[:1] if self.n_classes == 2 else logs).astype(np.float32)

    def derivatives(self, scores, y):
        if self.n_classes == 2:
            chance = expit(scores) if is_numpy(scores) else scores.sigmoid()
            return chance - cast((y == 1)[:, None], scores), chance * (1 - chance)
        chance = self._chances(scores)
        curvature = chance * (1 - chance)
        chance[numbers_below(len(y), y), y] -= 1
        return chance, curvature

    def value(self, scores, y):
        xp = namespace(scores)
        if self.n_classes == 2:
            margin = xp.where(y == 1, scores[:, 0], -scores[:, 0])
            return xp.logaddexp(xp.zeros_like(margin), -margin)
        shifted = scores - _largest(scores)
        return xp.log(xp.exp(shifted).sum(axis=1)) - shifted[numbers_below(len(y), y), y]

    def _chances(self, scores: Single) -> Single:
        chance = namespace(scores).exp(scores - _largest(scores))
        chance /= chance.sum(axis=1, keepdims=True)
        return chance


def _largest(scores: Values) -> Values:
    """Return the largest score of each row."""
    if is_numpy(scores):
        return scores.max(axis=1, keepdims=True)
    return scores.amax(dim=1, keepdim=True)


@dataclass(frozen=True)
class HingeLoss:
    """Squared hinge of one class against the rest, a column each; two classes are one column.

    Parameters
    ----------
    n_classes : int
    """

    n_classes: int

    sends_nothing = True

    @property
    def n_columns(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    usual_curvature = 2.0

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


Objective = LogLoss | HingeLoss
OBJECTIVES: dict[str, type[Objective]] = {
    "log_loss": LogLoss,
    "squared_hinge": HingeLoss,
}

"""What the interior-point methods share: where to begin, how far to go, when to end."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from mbkl.engine.arrays import Values
from mbkl.solvers.problem import Problem, Progress, Solution

# Where to start from the solution of a similar problem: weights above zero by this share of
# their mean; closer ones end at the boundary.
_INSIDE = 0.01
# Steps go at most this far towards a bound.
TO_BOUNDARY = 0.99
# At very high costs the rows on the margin change with every step, and progress can end
# before the gap closes.
_PATIENCE = 30


def inside(weights: Values) -> Values:
    """Return weights near the given ones, none of which is zero."""
    return weights + _INSIDE * weights.mean()


def equal_weights(problem: Problem) -> tuple[Values, Values, Values]:
    """Return equal weights at their best scale, their scores and the best intercept."""
    operator, margins, shape = problem.operator, problem.margins, problem.shape
    weights = operator.to_device(np.full(shape, 1.0 / shape[0]))
    scores = operator.forward(weights)
    nothing = 0.0 * scores[0]

    def value(exponent: float) -> float:
        scaled = 10.0**exponent * scores
        intercept = margins.best_intercept(scaled, nothing)
        return 10.0**exponent + float(margins.value(scaled + intercept)[0])

    # A start only: a tenth of a decade is near enough.
    best = minimize_scalar(value, bounds=(-3.0, 4.0), method="bounded", options={"xatol": 0.1})
    scale = 10.0 ** float(best.x)
    weights, scores = scale * weights, scale * scores
    return weights, scores, margins.best_intercept(scores, nothing)


def within(values: Values, step: Values, share: float = TO_BOUNDARY) -> float:
    """Return the longest step, at most one, that goes this share of the way to zero."""
    shrink = float((-step / values).max())
    return 1.0 if shrink <= share else share / shrink


class Ending:
    """Says whether a solution of one column is good enough, or not going to improve."""

    def __init__(self, tol: float, max_iter: int, progress: Progress) -> None:
        self._tol, self._max_iter, self._progress = tol, max_iter, progress
        self._objectives: list[float] = []

    def is_here(self, solution: Solution) -> bool:
        """Say whether to stop; to be asked once an iteration."""
        self._objectives.append(float(solution.objective[0]))
        return bool(
            self._progress(solution)
            or solution.is_within(self._tol).all()
            or self._stagnates()
            or solution.n_iter >= self._max_iter
        )

    def _stagnates(self) -> bool:
        """Tell whether the objective has hardly changed for many iterations."""
        if len(self._objectives) <= _PATIENCE:
            return False
        before, now = self._objectives[-_PATIENCE], self._objectives[-1]
        return abs(before - now) < 1e-5 * now


def next_centring(length: float) -> float:
    """Aim far down the central path after long steps, stay near it after short ones."""
    if length > 0.9:
        return 0.05
    if length > 0.7:
        return 0.1
    return 0.3 if length > 0.3 else 0.7

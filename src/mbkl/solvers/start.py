"""Where to begin: a point well inside the bounds of Step 1."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from mbkl.engine.arrays import Values
from mbkl.solvers.problem import Problem

# Where to start from the solution of a similar problem: weights above zero by this share of
# their mean; closer ones end at the boundary (measured).
_INSIDE = 0.01


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

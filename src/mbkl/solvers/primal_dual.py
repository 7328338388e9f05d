"""An interior-point method for weights at costs so high that rows change sides.

With few rows, or high costs, nearly all rows end on the margin. Which of them are
inside then changes with every step of a method that follows the weights alone, and its
steps shrink to nothing. Here the supports of the rows are variables of their own, with
slacks that go to zero together with those of the weights: the optimality conditions,
their linearisation and the names are those of `dense_interior_point`, but the system is
solved by conjugate gradients over the maps,

    (S' W S + slack / weights) d_weights = right-hand side,   W = 1 / D,

with the intercept eliminated, which takes the same passes over the codes as any
Newton step.
"""

from __future__ import annotations

from dataclasses import dataclass

from mbkl.engine.fixed_point import exact_sum
from mbkl.engine.namespace import Values, namespace
from mbkl.learn.losses import positive_part
from mbkl.learn.margins import Margins
from mbkl.solvers.conjugate_gradient import dot
from mbkl.solvers.newton_cg import NewtonSystem, weighted_means

# Steps of all variables have one length, so that an inaccurate one of a single row would
# hold up all (measured: with 0.1 up to twice the iterations).
_CG_ACCURACY = 0.01
TO_BOUNDARY = 0.99


@dataclass
class Point:
    """Values of all variables, and the scores of the weights; `low` is None without bound."""

    weights: Values
    slack: Values
    alpha: Values
    low: Values | None
    intercept: Values
    scores: Values


def start_at(operator, margins: Margins, weights: Values, intercept: Values) -> Point:
    """Return a point well inside with the given weights."""
    loss, labels, costs = margins.loss, margins.labels, margins.costs
    xp = namespace(weights)
    scores = operator.forward(weights[:, None])
    shifted = scores + intercept
    alpha = margins.support(shifted)
    # At the solution the supports are of the order of one in all.
    alpha = alpha + 0.1 * (exact_sum(alpha) + 1.0) / alpha.shape[0]
    if loss.support_is_limited:
        alpha = xp.minimum(alpha, 0.95 * costs)
    alpha = alpha * _balance(alpha, labels)
    low = None
    if loss.needs_lower_slack:
        row = loss.offset - labels * shifted - loss.conjugate_slope(alpha, costs)
        low = positive_part(-row) + 0.1
    pull = operator.adjoint(labels * alpha)[:, 0]
    slack = positive_part(1.0 - pull) + 0.1 * max(1.0, float(pull.max()) - 1.0)
    return Point(weights, slack, alpha, low, intercept, scores)


def _balance(alpha: Values, labels: Values) -> Values:
    """Return factors that give both labels the same total, the smaller one."""
    xp = namespace(alpha)
    positive = exact_sum(xp.where(labels > 0, alpha, 0.0))
    negative = exact_sum(xp.where(labels > 0, 0.0, alpha))
    smaller = xp.minimum(positive, negative)
    return xp.where(labels > 0, smaller / positive, smaller / negative)


@dataclass(frozen=True)
class Assessment:
    """Objective with the best intercept, and a lower bound from the supports."""

    intercept: Values
    objective: float
    gap: float


def assess(operator, margins: Margins, point: Point) -> Assessment:
    """Return how good a point is."""
    intercept = margins.best_intercept(point.scores, point.intercept)
    loss = float(margins.exact_value(point.scores + intercept)[0])
    objective = float(point.weights.sum()) + loss
    # Shrunk until no map pulls by more than its unit cost, the supports are
    # feasible for the dual problem: both labels have had the same total from the start.
    pull = float(operator.adjoint(margins.labels * point.alpha).max())
    dual = float(margins.dual_value(point.alpha / max(1.0, pull))[0])
    return Assessment(intercept, objective, max(objective - dual, 0.0))


def advance(operator, margins: Margins, point: Point, centring: float) -> float:
    """Move a point by a Newton step towards smaller products; return the length of the step."""
    loss, labels, costs = margins.loss, margins.labels, margins.costs
    weights, slack, alpha, low = point.weights, point.slack, point.alpha, point.low
    products, count = float(dot(weights, slack)), weights.shape[0]
    if low is not None:
        products, count = products + float(exact_sum(alpha * low)[0]), count + alpha.shape[0]
    aim = centring * products / count
    diagonal = loss.conjugate_curvature(alpha, costs)
    row = loss.offset - labels * (point.scores + point.intercept)
    row = row - loss.conjugate_slope(alpha, costs)
    if low is not None:
        diagonal, row = diagonal + low / alpha, row + aim / alpha
    curvature = 1.0 / diagonal
    wanted = labels * (alpha + curvature * row)
    level = exact_sum(wanted) / exact_sum(curvature)
    right = operator.adjoint(wanted - curvature * level)[:, 0] - 1.0 + aim / weights
    system = NewtonSystem(operator, curvature[:, 0], slack / weights)
    step = system.solve(right, _CG_ACCURACY)
    change = operator.forward(step[:, None])
    shift = level - weighted_means(change, curvature)
    alpha_step = curvature * (row - labels * (change + shift))
    slack_step = aim / weights - slack - slack / weights * step
    length = min(longest(weights, step), longest(slack, slack_step), longest(alpha, alpha_step))
    if loss.support_is_limited:
        length = min(length, longest(costs - alpha, -alpha_step))
    if low is not None:
        low_step = aim / alpha - low - low / alpha * alpha_step
        length = min(length, longest(low, low_step))
        point.low = low + length * low_step
    point.weights, point.slack = weights + length * step, slack + length * slack_step
    point.alpha, point.scores = alpha + length * alpha_step, point.scores + length * change
    point.intercept = point.intercept + length * shift
    return length


def longest(values: Values, step: Values) -> float:
    """Return the longest step, at most one, that keeps all values positive."""
    shrink = float((-step / values).max())
    return 1.0 if shrink <= TO_BOUNDARY else TO_BOUNDARY / shrink

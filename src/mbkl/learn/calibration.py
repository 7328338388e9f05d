"""Probabilities: one rule for all scores, chosen on rows that the model has not seen."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from mbkl.engine import limits
from mbkl.engine.arrays import collected, exact_total
from mbkl.learn.algorithm import Kernel, Learner
from mbkl.learn.classifier_weights import n_problems_of
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.solvers.choose import is_for_device, may_leave_out
from mbkl.solvers.problem import Solution, go_on

Array = NDArray[np.float64]

N_FOLDS = 3
# Where no kernel matrix tells how rows are scored without them, a fifth is held out.
_SHARES_HELD_OUT = 5
_MANY_COPIES = 3
_LOOSELY, _CLOSELY = 0.03, 0.003
# Offsets in units of the margin. -3 is the softmax to all digits that matter, and 1 is where the
# squared hinge has its minimum for known probabilities: score = 2 * probability - 1.
_OFFSETS = (-3.0, -1.0, -0.5, 0.0, 0.5, 0.75, 1.0)
# Bounds of the logarithm of the temperature, and how near it has to be found: with an offset, and
# of a softmax alone.
_TEMPERATURES, _NEAR = (np.log(0.1), 4.0), 0.02
_ANY_TEMPERATURES, _NEARER = (-7.0, 7.0), 1e-5
# Of grown ferns in a mixture.
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
# The progress of a solver that is no stage of its own.
_QUIETLY: Any = SimpleNamespace(stage=lambda name: nullcontext(go_on))


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities; see `log_probabilities`."""

    temperature: float = 1.0  # divisor of the scores
    offset: float | None = None  # added to them before; None means the softmax


@dataclass(frozen=True)
class HeldOut:
    """Scores of rows by models that did not see them."""

    scores: NDArray[np.float64]  # (n_rows, n_columns)
    # (n_rows,)
    y: NDArray[np.intp]
    weights: NDArray[np.float64]
    rows: NDArray[np.intp] | None = None  # their numbers, where they are here

    def some(self, rows: NDArray[np.intp]) -> HeldOut:
        """Return the scores of some of the rows."""
        numbers = None if self.rows is None else self.rows[rows]
        return HeldOut(self.scores[rows], self.y[rows], self.weights[rows], numbers)


# What is known of a squared hinge that has not over-fitted.
THEORETICAL = Calibration(0.1, 1.0)


def log_probabilities(scores: Array, temperature: float, offset: float | None) -> Array:
    """Return the logarithms of probabilities, with the largest where the largest score is.

    They are in proportion to log(1 + exp((score + offset) / temperature)): nearly linear in
    scores far above -offset, as those of a squared hinge ask for, and exponential below, as
    those of the softmax are everywhere. Scores are of shape (n_rows, n_classes), with one column
    for two classes. None for the offset means the softmax of the scores by the temperature.

    >>> scores = np.array([[0.5, -0.5, -1.0]])
    >>> np.exp(log_probabilities(scores, 0.1, 1.0)).round(2)
    array([[0.72, 0.24, 0.03]])
    """
    if offset is None:
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        return log_softmax(scores / temperature, axis=1)
    if scores.shape[1] == 1:
        scores = np.column_stack([-scores, scores])
    scaled = (scores + offset) / temperature
    # log(1 + e^s) is e^s to all digits where s is this small.
    return log_softmax(
        np.where(scaled < -40.0, scaled, np.log(np.logaddexp(0.0, np.maximum(scaled, -40.0)))),
        axis=1,
    )


def left_out_scores(
    learner: Learner, kernel: Kernel, C: float, solution: Solution, mixes: bool = False
) -> HeldOut:
    """Return scores of some rows by models that have not seen them.

    The solver has them at no cost where it solved all rows through their kernel matrix. Otherwise
    some of the rows are solved for once more. To be mixed with what
    other models of all rows say, they have to be by a model of all others.
    """
    rows, scores = learner.rows, solution.left_out
    if mixes and rows.n_rows > limits.FEW_ROWS_GRAM:
        return _solved_without_first(learner, kernel, C, solution)
    if scores is None:
        return _scores_of_a_part(learner, kernel, C)
    first = rows.first(len(scores))
    numbers = None if rows.places is None else first
    return HeldOut(scores, rows.y[first], rows.weights[first], numbers)


def _solved_without_first(
    learner: Learner, kernel: Kernel, C: float, solution: Solution
) -> HeldOut:
    """Return scores of the first rows by a model of all others, which is near that of all rows."""
    order = learner.rows.first(learner.rows.n_rows)
    outside, inside = np.split(order, [limits.ROWS_LEFT_OUT])
    part = learner.take(inside)
    own_C = C * exact_total(part.rows.weights) / exact_total(learner.rows.weights)
    near = _solved_quietly(part, kernel, own_C, solution, tol=_CLOSELY)
    return _scored(learner.take(outside), near, outside)


def _scores_of_a_part(learner: Learner, kernel: Kernel, C: float) -> HeldOut:
    """Return scores of rows that a model of some rows has not seen."""
    rows = _part_of(learner)
    part = replace(learner, rows=rows)
    # The cost of a row is the same for any number of them.
    C *= exact_total(rows.weights) / exact_total(learner.rows.weights)
    if may_leave_out(rows.operator, learner.settings.loss):
        wanted = {"n_left_out": limits.ROWS_LEFT_OUT, "needs_left_out": True, "only_supports": True}
        solution = _solved_quietly(part, kernel, C, **wanted, tol=_LOOSELY)
        if solution.left_out is not None:  # there are maps
            n_rows = len(solution.left_out)
            return HeldOut(solution.left_out, rows.y[:n_rows], rows.weights[:n_rows])
    folds = rows.folds(_SHARES_HELD_OUT)
    inside, outside = np.flatnonzero(folds > 0), np.flatnonzero(folds == 0)
    if rows.operator.many_at_once:  # some of very many classes have few rows
        outside = outside[np.isin(rows.y[outside], rows.y[inside])][: limits.ROWS_LEFT_OUT]
    copies = rows.copies()
    # With many copies none would be like those held out.
    if not _can_hold_out(part, inside, outside) or copies.mean() > _MANY_COPIES:
        inside = outside = np.arange(rows.y.size)
    own_C = C * inside.size / rows.y.size
    wanted = {"only_supports": rows.operator.many_at_once}  # weights may stay where they are
    solution = _solved_quietly(part.take(inside), kernel, own_C, **wanted, tol=_LOOSELY)
    return replace(_scored(part.take(outside), solution, outside), rows=None)


def _part_of(learner: Learner) -> LabelledRows:
    """Return the rows that are solved for once more: here, or all of many problems on a device."""
    rows = learner.rows
    n_problems = n_problems_of(rows.n_classes, rows.numbers)
    if is_for_device(rows.operator, n_problems):
        n_rows = max(limits.ROWS_OF_A_PART, limits.ROWS_OF_A_CLASS * n_problems)
        return rows.take(rows.first(n_rows))
    is_squared = learner.settings.loss == "squared_hinge"
    return rows.some_here(limits.ROWS_TO_CALIBRATE if is_squared else limits.ROWS_OF_A_PART)


def _solved_quietly(learner: Learner, kernel: Kernel, *arguments, **options) -> Solution:
    """Run Step 2 without a stage and warnings: the fit on all rows warns of the same things."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return replace(learner, progress=_QUIETLY).learn_classifier(kernel, *arguments, **options)


def _can_hold_out(learner: Learner, inside, outside) -> bool:
    """Say whether there are rows outside, and inside some of all their classes, two at least."""
    rows = learner.rows
    if rows.numbers is not None or not (inside.size and outside.size):
        return bool(inside.size and outside.size)
    known = np.unique(rows.y[inside])
    return known.size > 1 and bool(np.isin(np.unique(rows.y[outside]), known).all())


# ---------------------------------------------------------------- rules


def fit_rule(found: HeldOut, calibration: str | None, is_mixed: bool = True) -> Calibration:
    """Return the rule with the smallest log loss: margins by softplus, log odds by the softmax.

    >>> found = HeldOut(np.array([[0.6]] * 4 + [[-0.9]]), np.array([1, 1, 1, 0, 0]), np.ones(5))
    >>> rule = fit_rule(found, "auto")
    >>> np.exp(log_probabilities(found.scores[:1], rule.temperature, rule.offset)).round(2)
    array([[0.2, 0.8]])
    """
    if not len(found.y):
        return Calibration()
    # The softmax is the limit of the smallest offsets.
    offsets: tuple[float | None, ...] = (None, *_OFFSETS) if is_mixed else _OFFSETS
    bounds, near = _TEMPERATURES, _NEAR
    if calibration == "temperature":
        offsets, bounds, near = (None,), _ANY_TEMPERATURES, _NEARER

    def loss(log_temperature: float, offset: float | None) -> float:
        return exact_total(log_losses(Calibration(float(np.exp(log_temperature)), offset), found))

    @cache
    def best(place: int) -> tuple[float, float]:
        """Return the smallest loss with an offset, and where it is."""
        if not 0 <= place < len(offsets):
            return np.inf, 0.0
        options = {"bounds": bounds, "method": "bounded", "options": {"xatol": near}}
        least = minimize_scalar(loss, args=(offsets[place],), **options)
        return float(least.fun), float(least.x)

    # Down the hill from the middle: from the softmax to margins the loss has one valley.
    place = len(offsets) // 2
    for step in (-1, 1):
        while best(place + step)[0] < best(place)[0]:
            place += step
    return Calibration(float(np.exp(best(place)[1])), offsets[place])


def log_losses(rule: Calibration, found: HeldOut) -> Array:
    """Return the log loss of each row, times its weight."""
    values = log_probabilities(found.scores, rule.temperature, rule.offset)
    return -found.weights * values[np.arange(found.y.size), found.y]


def best_mixture(drawn: HeldOut, grown: Array) -> tuple[float, float]:
    """Return the share of the second scores in a mixture of the smallest log loss, and their unit.

    One are margins, the other logarithms of odds: the unit is that in which they spread alike.

    >>> margins = HeldOut(np.array([[0.5], [0.5], [-1.0]]), np.array([1, 0, 0]), np.ones(3))
    >>> best_mixture(margins, np.array([[4.0], [-2.0], [-4.0]]))[0] > 0.5
    True
    """
    spreads = [_spread(drawn.scores), _spread(grown)]
    if min(spreads) == 0.0:
        return 0.0, 1.0
    unit = spreads[0] / spreads[1]
    losses = np.empty((len(_SHARES), len(drawn.y)))
    for number, share in enumerate(_SHARES):
        mixed = replace(drawn, scores=(1.0 - share) * drawn.scores + share * unit * grown)
        losses[number] = log_losses(fit_rule(mixed, "auto"), mixed)
    # Of what cannot be told apart, that which leans on neither.
    worse = losses - losses[int(np.argmin(losses.sum(axis=1)))]
    errors = worse.std(axis=1) * np.sqrt(len(drawn.y))
    alike = np.array(_SHARES)[~(worse.sum(axis=1) > errors)]
    return float(min(alike, key=lambda share: abs(share - 0.5))), unit


def _spread(scores: Array) -> float:
    return float(np.sqrt(((scores - scores.mean(axis=0)) ** 2).mean()))


# ---------------------------------------------------------------- folds


def held_out_scores(learner: Learner, C_kernel: float, C: float) -> HeldOut:
    """Return scores of all rows by models that did not see them; few rows may all be seen."""
    labelled = learner.rows
    folds = labelled.folds(N_FOLDS)
    parts = []
    for fold in range(N_FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if not _can_hold_out(learner, inside, outside):
            continue
        part = learner.take(inside).merged
        with warnings.catch_warnings():
            # The fit on all rows warns of the same things.
            warnings.simplefilter("ignore")
            solution = part.learn_classifier(part.learn_kernel(C_kernel), C)
        parts.append(_scored(learner.take(outside), solution, outside))
    if not parts:  # too few rows of some class to hold any out
        solution = learner.learn_classifier(learner.learn_kernel(C_kernel), C)
        return _scored(learner, solution, np.arange(labelled.n_rows))
    return _joined(parts)


def _scored(learner: Learner, solution: Solution, rows) -> HeldOut:
    y, weights = collected(learner.rows.y), collected(learner.rows.weights)
    is_here = isinstance(rows, np.ndarray)
    return HeldOut(collected(learner.scores(solution)), y, weights, rows if is_here else None)


def _joined(parts: list[HeldOut]) -> HeldOut:
    rows = [part.rows for part in parts if part.rows is not None]
    return HeldOut(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate(rows) if rows else None,
    )

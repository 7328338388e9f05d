"""Probabilities: one calibration rule for all scores, chosen on held-out rows."""

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
# Without leave-one-out scores a fifth of the rows is held out: one of five folds.
_FOLDS_OF_A_PART = 5
_MANY_COPIES = 3
# Tolerances of the solver for held-out scores, and for those of a mixture.
_LOOSE_TOL, _CLOSE_TOL = 0.03, 0.003
# Offsets in units of the margin: -3 is practically the softmax, and 1 suits the minimum of the
# squared hinge, score = 2 * probability - 1.
_OFFSETS = (-3.0, -1.0, -0.5, 0.0, 0.5, 0.75, 1.0)
# Bounds and precision of the logarithm of the temperature, with an offset and for a softmax alone.
_LOG_TEMPERATURES, _PRECISION = (np.log(0.1), 4.0), 0.02
_SOFTMAX_LOG_TEMPERATURES, _SOFTMAX_PRECISION = (-7.0, 7.0), 1e-5
# Shares of grown ferns in a mixture that are tried.
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
# Progress that times, prints and stops nothing.
_NO_PROGRESS: Any = SimpleNamespace(stage=lambda name: nullcontext(go_on))


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities; see `log_probabilities`."""

    temperature: float = 1.0  # scores are divided by it
    offset: float | None = None  # added to the scores before; None means the softmax


@dataclass(frozen=True)
class HeldOut:
    """Scores of rows by models that were fitted without them."""

    scores: NDArray[np.float64]  # (n_rows, n_columns)
    # (n_rows,)
    y: NDArray[np.intp]
    weights: NDArray[np.float64]
    rows: NDArray[np.intp] | None = None  # row numbers; None for rows of a part, or elsewhere

    def some(self, rows: NDArray[np.intp]) -> HeldOut:
        """Return the scores of some of the rows."""
        numbers = None if self.rows is None else self.rows[rows]
        return HeldOut(self.scores[rows], self.y[rows], self.weights[rows], numbers)


# The rule for scores near the minimum of the squared hinge, score = 2 * probability - 1.
THEORETICAL = Calibration(0.1, 1.0)


def log_probabilities(scores: Array, temperature: float, offset: float | None) -> Array:
    """Return the logarithms of probabilities, with the largest where the largest score is.

    Probabilities are proportional to log(1 + exp((score + offset) / temperature)): nearly linear in
    scores far above -offset, as suits a squared hinge, and exponential below, as the softmax is
    everywhere. Scores are of shape (n_rows, n_classes), with one column for two classes. Without
    an offset, probabilities are the softmax of score / temperature.

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
    # For s < -40, log(1 + e^s) equals e^s in double precision.
    return log_softmax(
        np.where(scaled < -40.0, scaled, np.log(np.logaddexp(0.0, np.maximum(scaled, -40.0)))),
        axis=1,
    )


def left_out_scores(
    learner: Learner, kernel: Kernel, C: float, solution: Solution, mixes: bool = False
) -> HeldOut:
    """Return scores of some rows by models that were fitted without them.

    A solver with a kernel matrix of all rows has leave-one-out scores at no cost. Otherwise Step 2
    is run again on a part of the rows; for a mixture on all rows but the ones to score, as the
    share of a mixture has to suit models of all rows.
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
    """Return scores of the first rows by a model of all others, started at that of all rows."""
    order = learner.rows.first(learner.rows.n_rows)
    outside, inside = np.split(order, [limits.ROWS_LEFT_OUT])
    part = learner.take(inside)
    part_C = C * exact_total(part.rows.weights) / exact_total(learner.rows.weights)
    without = _solved_quietly(part, kernel, part_C, solution, tol=_CLOSE_TOL)
    return _held_out(learner.take(outside), without, outside)


def _scores_of_a_part(learner: Learner, kernel: Kernel, C: float) -> HeldOut:
    """Return held-out scores within a part of the rows."""
    rows = _part_of(learner)
    part = replace(learner, rows=rows)
    # C shrinks with the number of rows, so that the cost of each row stays the same.
    C *= exact_total(rows.weights) / exact_total(learner.rows.weights)
    if may_leave_out(rows.operator, learner.settings.loss):
        wanted = {"n_left_out": limits.ROWS_LEFT_OUT, "needs_left_out": True, "only_supports": True}
        solution = _solved_quietly(part, kernel, C, **wanted, tol=_LOOSE_TOL)
        if solution.left_out is not None:  # None without any map
            n_rows = len(solution.left_out)
            return HeldOut(solution.left_out, rows.y[:n_rows], rows.weights[:n_rows])
    folds = rows.folds(_FOLDS_OF_A_PART)
    inside, outside = np.flatnonzero(folds > 0), np.flatnonzero(folds == 0)
    if rows.operator.many_at_once:  # of very many classes some may have no row inside
        outside = outside[np.isin(rows.y[outside], rows.y[inside])][: limits.ROWS_LEFT_OUT]
    copies = rows.copies()
    # Where most samples have copies, folds of distinct rows are unlike new samples.
    if not _can_hold_out(part, inside, outside) or copies.mean() > _MANY_COPIES:
        inside = outside = np.arange(rows.y.size)
    part_C = C * inside.size / rows.y.size
    wanted = {"only_supports": rows.operator.many_at_once}  # leaves the weights on the device
    solution = _solved_quietly(part.take(inside), kernel, part_C, **wanted, tol=_LOOSE_TOL)
    return replace(_held_out(part.take(outside), solution, outside), rows=None)


def _part_of(learner: Learner) -> LabelledRows:
    """Return the rows for held-out scores: few in memory, or more of many classes on a device."""
    rows = learner.rows
    n_problems = n_problems_of(rows.n_classes, rows.numbers)
    if is_for_device(rows.operator, n_problems):
        n_rows = max(limits.ROWS_OF_A_PART, limits.ROWS_OF_A_CLASS * n_problems)
        return rows.take(rows.first(n_rows))
    is_squared = learner.settings.loss == "squared_hinge"
    return rows.some_here(limits.ROWS_TO_CALIBRATE if is_squared else limits.ROWS_OF_A_PART)


def _solved_quietly(learner: Learner, kernel: Kernel, *args, **options) -> Solution:
    """Run Step 2 without a stage or warnings: the fit on all rows gives the same warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return replace(learner, progress=_NO_PROGRESS).learn_classifier(kernel, *args, **options)


def _can_hold_out(learner: Learner, inside, outside) -> bool:
    """Say whether both parts have rows, and the inner one two classes and all the outer ones."""
    rows = learner.rows
    if rows.numbers is not None or not (inside.size and outside.size):
        return bool(inside.size and outside.size)
    known = np.unique(rows.y[inside])
    return known.size > 1 and bool(np.isin(np.unique(rows.y[outside]), known).all())


# ---------------------------------------------------------------- rules


def fit_rule(held_out: HeldOut, calibration: str | None, is_mixed: bool = True) -> Calibration:
    """Return the rule with the smallest log loss; mixed scores may be log odds, for the softmax.

    >>> held_out = HeldOut(np.array([[0.6]] * 4 + [[-0.9]]), np.array([1, 1, 1, 0, 0]), np.ones(5))
    >>> rule = fit_rule(held_out, "auto")
    >>> np.exp(log_probabilities(held_out.scores[:1], rule.temperature, rule.offset)).round(2)
    array([[0.2, 0.8]])
    """
    if not len(held_out.y):
        return Calibration()
    # The softmax comes first, as it is the limit of small offsets.
    offsets: tuple[float | None, ...] = (None, *_OFFSETS) if is_mixed else _OFFSETS
    bounds, precision = _LOG_TEMPERATURES, _PRECISION
    if calibration == "temperature":
        offsets, bounds, precision = (None,), _SOFTMAX_LOG_TEMPERATURES, _SOFTMAX_PRECISION

    def loss(log_temperature: float, offset: float | None) -> float:
        rule = Calibration(float(np.exp(log_temperature)), offset)
        return exact_total(log_losses(rule, held_out))

    @cache
    def best(place: int) -> tuple[float, float]:
        """Return the smallest loss with an offset, and its logarithm of the temperature."""
        if not 0 <= place < len(offsets):
            return np.inf, 0.0
        options = {"bounds": bounds, "method": "bounded", "options": {"xatol": precision}}
        least = minimize_scalar(loss, args=(offsets[place],), **options)
        return float(least.fun), float(least.x)

    # Descend from the middle offset: as a function of the offset the loss has one minimum.
    place = len(offsets) // 2
    for step in (-1, 1):
        while best(place + step)[0] < best(place)[0]:
            place += step
    return Calibration(float(np.exp(best(place)[1])), offsets[place])


def log_losses(rule: Calibration, held_out: HeldOut) -> Array:
    """Return the log loss of each row, times its weight."""
    values = log_probabilities(held_out.scores, rule.temperature, rule.offset)
    return -held_out.weights * values[np.arange(held_out.y.size), held_out.y]


def best_mixture(drawn: HeldOut, grown: Array) -> tuple[float, float]:
    """Return the share of grown ferns in the mixture with the least log loss, and their scale.

    Scores of drawn maps are margins, those of grown ferns log odds: the scale gives both the same
    spread.

    >>> margins = HeldOut(np.array([[0.5], [0.5], [-1.0]]), np.array([1, 0, 0]), np.ones(3))
    >>> best_mixture(margins, np.array([[4.0], [-2.0], [-4.0]]))[0] > 0.5
    True
    """
    spreads = [_spread(drawn.scores), _spread(grown)]
    if min(spreads) == 0.0:
        return 0.0, 1.0
    scale = spreads[0] / spreads[1]
    losses = np.empty((len(_SHARES), len(drawn.y)))
    for number, share in enumerate(_SHARES):
        mixed = replace(drawn, scores=(1.0 - share) * drawn.scores + share * scale * grown)
        losses[number] = log_losses(fit_rule(mixed, "auto"), mixed)
    # Of the shares within one standard error of the best, take the one nearest to one half.
    excess = losses - losses[int(np.argmin(losses.sum(axis=1)))]
    errors = excess.std(axis=1) * np.sqrt(len(drawn.y))
    good = np.array(_SHARES)[~(excess.sum(axis=1) > errors)]
    return float(min(good, key=lambda share: abs(share - 0.5))), scale


def _spread(scores: Array) -> float:
    return float(np.sqrt(((scores - scores.mean(axis=0)) ** 2).mean()))


# ---------------------------------------------------------------- folds


def held_out_scores(learner: Learner, C_kernel: float, C: float) -> HeldOut:
    """Return scores of all rows by models of other folds, or training scores of too few rows."""
    folds = learner.rows.folds(N_FOLDS)
    parts = []
    for fold in range(N_FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if not _can_hold_out(learner, inside, outside):
            continue
        part = learner.take(inside).merged
        with warnings.catch_warnings():
            # The fit on all rows gives the same warnings.
            warnings.simplefilter("ignore")
            solution = part.learn_classifier(part.learn_kernel(C_kernel), C)
        parts.append(_held_out(learner.take(outside), solution, outside))
    if not parts:  # some class has too few rows to hold any out
        solution = learner.learn_classifier(learner.learn_kernel(C_kernel), C)
        return _held_out(learner, solution, np.arange(learner.rows.n_rows))
    return _joined(parts)


def _held_out(learner: Learner, solution: Solution, rows) -> HeldOut:
    """Return the scores of the learner's rows, which have these numbers in a larger set."""
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

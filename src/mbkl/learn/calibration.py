"""Probabilities by temperature scaling: one divisor for all scores."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from mbkl.engine.arrays import collected, exact_total
from mbkl.learn.algorithm import Learner
from mbkl.solvers.problem import Solution

N_FOLDS = 3


@dataclass(frozen=True)
class Temperature:
    """The divisor of all scores."""

    value: float


@dataclass(frozen=True)
class HeldOut:
    """Scores of rows by models that did not see them.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_columns)
    y, weights : ndarray of shape (n_rows,)
    rows : ndarray of shape (n_rows,) or None
        Their numbers, where they are here.
    """

    scores: NDArray[np.float64]
    y: NDArray[np.intp]
    weights: NDArray[np.float64]
    rows: NDArray[np.intp] | None


def calibrate(learner: Learner, C_kernel: float, C: float) -> Temperature:
    """Return the temperature that suits rows held out from learning."""
    found = held_out_scores(learner, C_kernel, C)
    return Temperature(fit_temperature(found.scores, found.y, found.weights))


def held_out_scores(learner: Learner, C_kernel: float, C: float) -> HeldOut:
    """Return scores of all rows by models that did not see them; few rows may all be seen."""
    labelled = learner.rows
    folds = labelled.folds(N_FOLDS)
    parts = []
    for fold in range(N_FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        some_class_is_out = labelled.numbers is None and (
            np.unique(labelled.y[inside]).size < labelled.n_classes
        )
        if not (inside.size and outside.size) or some_class_is_out:
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


def fit_temperature(scores: NDArray, y: NDArray[np.intp], weights: NDArray) -> float:
    """Return the divisor of the scores with the smallest log loss.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[3.0], [3.0], [3.0], [-3.0]])
    >>> round(fit_temperature(scores, np.array([1, 1, 0, 0]), np.ones(4)), 2) > 1
    True
    """
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])

    def log_loss(log_temperature: float) -> float:
        log_probabilities = log_softmax(scores / np.exp(log_temperature), axis=1)
        return -exact_total(weights * log_probabilities[np.arange(y.size), y])

    return float(np.exp(minimize_scalar(log_loss, bounds=(-7.0, 7.0), method="bounded").x))

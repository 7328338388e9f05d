"""Probabilities by temperature scaling: one divisor for all scores."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from mbkl.engine.arrays import exact_total
from mbkl.learn.algorithm import Learner
from mbkl.learn.labelled_rows import LabelledRows, row_hashes

_N_FOLDS = 3


@dataclass(frozen=True)
class Temperature:
    """The divisor of all scores."""

    value: float


def calibrate(learner: Learner, C_kernel: float, C: float) -> Temperature:
    """Return the temperature that suits rows held out from learning."""
    scores, rows = held_out_scores(learner, C_kernel, C)
    y, weights = learner.rows.y[rows], learner.rows.weights[rows]
    return Temperature(fit_temperature(scores, y, weights))


def held_out_scores(learner: Learner, C_kernel: float, C: float) -> tuple[NDArray, NDArray]:
    """Return scores of rows by models that did not see them.

    Returns
    -------
    scores : ndarray of shape (n_rows, n_columns)
    rows : ndarray of shape (n_rows,)
    """
    labelled = learner.rows
    folds = hash_folds(labelled)
    scores, rows = [], []
    for fold in range(_N_FOLDS):
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
        scores.append(learner.take(outside).scores(solution))
        rows.append(outside)
    if not rows:  # too few rows of some class to hold any out
        solution = learner.learn_classifier(learner.learn_kernel(C_kernel), C)
        return learner.scores(solution), np.arange(labelled.y.size)
    return np.concatenate(scores), np.concatenate(rows)


def hash_folds(labelled: LabelledRows) -> NDArray[np.intp]:
    """Divide the rows of each class into folds of equal weight by a hash of their codes.

    Rows with numbers are divided all together.

    Equal rows go to the same fold, so a weight of two is the same as two rows.
    """
    hashes = row_hashes(labelled.operator, labelled.seed + 1)[:, 0]
    folds = np.empty(labelled.y.size, dtype=np.intp)
    kinds = labelled.y if labelled.numbers is None else np.zeros_like(labelled.y)
    for kind in range(int(kinds.max(initial=0)) + 1):
        rows = np.flatnonzero(kinds == kind)
        order = rows[np.argsort(hashes[rows], kind="stable")]
        before = np.concatenate([[0.0], np.cumsum(labelled.weights[order])])
        first_equal = np.searchsorted(hashes[order], hashes[order], side="left")
        share = before[first_equal] / before[-1]
        folds[order] = np.minimum((share * _N_FOLDS).astype(np.intp), _N_FOLDS - 1)
    return folds


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

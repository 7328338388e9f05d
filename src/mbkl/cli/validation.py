"""How good classifiers are on rows that they did not see."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.cli.models import encoded_for_training
from mbkl.tabular import Frame, FrameError


@dataclass(frozen=True)
class Split:
    """Rows to learn from, and rows to be right about."""

    X_train: Any
    y_train: NDArray
    X_test: Any
    y_test: NDArray


@dataclass(frozen=True)
class Outcome:
    """What was predicted for rows whose labels are known.

    Parameters
    ----------
    labels, predictions : ndarray of shape (n_rows,)
    probabilities : ndarray of shape (n_rows, n_classes) or None
    seconds : float
        What the fit took.
    """

    labels: NDArray
    predictions: NDArray
    probabilities: NDArray[np.float64] | None
    seconds: float = 0.0

    @property
    def accuracy(self) -> float:
        """Share of the rows with the right label."""
        return float((self.labels == self.predictions).mean())


def splits_of(frame: Frame, test: Frame | None, n_folds: int, seed: int) -> Iterator[Split]:
    """Yield one split for a test frame, or those of a cross-validation.

    Each learns anew how to encode columns, so that no test row has a say in it.

    Parameters
    ----------
    frame : Frame
    test : Frame or None
    n_folds : int
        If there is no test frame.
    seed : int

    Yields
    ------
    split : Split
    """
    pairs: Iterator[tuple[Frame, Frame]]
    if test is not None:
        pairs = iter([(frame, test)])
    else:
        folds = _folds(frame, n_folds, seed)
        pairs = ((frame.take(inside), frame.take(outside)) for inside, outside in folds)
    for train, held_out in pairs:
        # Not all classifiers take all names of features.
        (X_train, X_test), _ = encoded_for_training(train, held_out, with_names=False)
        yield Split(X_train, train.y, X_test, held_out.y)


def try_out(classifier: Any, split: Split) -> Outcome:
    """Fit a classifier on one side of a split and predict the other.

    Parameters
    ----------
    classifier : estimator
    split : Split

    Returns
    -------
    outcome : Outcome
    """
    began = time.perf_counter()
    classifier.fit(split.X_train, split.y_train)
    seconds = time.perf_counter() - began
    return outcome_of(classifier, split.X_test, split.y_test, seconds)


def outcome_of(classifier: Any, X: Any, y: NDArray, seconds: float = 0.0) -> Outcome:
    """Return what a fitted classifier predicts."""
    probabilities = classifier.predict_proba(X) if hasattr(classifier, "predict_proba") else None
    return Outcome(y, classifier.predict(X), probabilities, seconds)


def joined(outcomes: list[Outcome]) -> Outcome:
    """Return the outcomes of several folds as one; its seconds are those of a mean fold."""
    probabilities = [one.probabilities for one in outcomes if one.probabilities is not None]
    return Outcome(
        np.concatenate([one.labels for one in outcomes]),
        np.concatenate([one.predictions for one in outcomes]),
        np.concatenate(probabilities) if probabilities else None,
        float(np.mean([one.seconds for one in outcomes])),
    )


def figures(outcome: Outcome, classes: NDArray) -> dict[str, Any]:
    """Return all figures of an outcome, by name.

    Parameters
    ----------
    outcome : Outcome
    classes : ndarray
        Sorted.

    Returns
    -------
    figures : dict
    """
    from sklearn import metrics

    y, guess = outcome.labels, outcome.predictions
    precision, recall, f1, n_rows = metrics.precision_recall_fscore_support(
        y, guess, labels=classes, zero_division=0.0
    )
    result: dict[str, Any] = {
        "rows": y.size,
        "accuracy": outcome.accuracy,
        "balanced_accuracy": float(recall[n_rows > 0].mean()),
        "always_the_most_frequent": float(n_rows.max() / y.size),
    }
    if outcome.probabilities is not None:
        result["log_loss"] = float(metrics.log_loss(y, outcome.probabilities, labels=classes))
    result["classes"] = [
        {"label": label, "rows": n, "precision": p, "recall": r, "f1": f}
        for label, n, p, r, f in zip(
            classes.tolist(),
            n_rows.tolist(),
            precision.tolist(),
            recall.tolist(),
            f1.tolist(),
            strict=True,
        )
    ]
    result["confusion"] = metrics.confusion_matrix(y, guess, labels=classes)
    return result


def _folds(frame: Frame, n_folds: int, seed: int) -> list[tuple[NDArray, NDArray]]:
    """Return rows inside and outside of each fold, all classes in proportion."""
    from sklearn.model_selection import StratifiedKFold

    classes, counts = np.unique(frame.y, return_counts=True)
    if counts.min() < n_folds:
        raise FrameError(
            f"{frame.path}, column '{frame.target}': class '{classes[counts.argmin()]}' has "
            f"{counts.min()} rows, too few for {n_folds} folds. Use fewer (--folds), or a test "
            "file (--test)."
        )
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(np.zeros(frame.n_rows), frame.y))

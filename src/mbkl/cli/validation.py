"""How good classifiers are on rows that they did not see."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.cli.console import Console
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

    alone = rows_alone_in_their_class(frame.y)
    others = np.setdiff1d(np.arange(frame.n_rows), alone)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A class with fewer rows than folds is outside of some of them only.
        warnings.simplefilter("ignore", UserWarning)
        pairs = list(folds.split(others, frame.y[others]))
    return [(np.union1d(others[inside], alone), others[outside]) for inside, outside in pairs]


def folds_for(frame: Frame, n_folds: int, console: Console) -> int:
    """Return how many folds there can be, and say so if some classes have too few rows.

    Parameters
    ----------
    frame : Frame
    n_folds : int
        As many as wanted.
    console : Console

    Returns
    -------
    n_folds : int
        At most as many as rows of the largest class.
    """
    classes, counts = np.unique(frame.y, return_counts=True)
    if counts.max() < 2:
        raise FrameError(
            f"{frame.path}, column '{frame.target}': each class has one row only, so that none "
            "can be held out. Choose another column (--target), or a test file (--test)."
        )
    few = [f"'{label}'" for label in classes[counts < n_folds]]
    if few:
        shown = ", ".join(few[:5]) + (", ..." if len(few) > 5 else "")
        console.note(
            f"{len(few)} classes have fewer rows than there are folds: {shown}. A class with one "
            "row is learned from, but never tested."
        )
    return min(n_folds, int(counts.max()))


def rows_alone_in_their_class(labels: NDArray) -> NDArray[np.intp]:
    """Return the rows whose label no other row has.

    Examples
    --------
    >>> rows_alone_in_their_class(np.array(["u", "w", "u"]))
    array([1])
    """
    _, first, counts = np.unique(labels, return_index=True, return_counts=True)
    return np.sort(first[counts == 1])

"""What models say about rows whose classes or numbers are known, and which rows to hold out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

# Share of the rows that intervals are to hold.
COVERAGE = 0.9


@dataclass(frozen=True)
class Outcome:
    """What was predicted for rows, and the seconds of the fit.

    More are probabilities, of shape (n_rows, n_classes), or bounds that are to hold the numbers,
    of shape (n_rows, 2) or (n_rows, n_targets, 2); None where a model has neither.
    """

    truth: NDArray
    predictions: NDArray
    more: NDArray[np.float64] | None
    seconds: float


def outcome_of(model: Any, X: Any, y: NDArray, seconds: float = 0.0) -> Outcome:
    """Return what a fitted model predicts."""
    more = None
    if hasattr(model, "predict_interval"):
        more = model.predict_interval(X, COVERAGE)
    elif hasattr(model, "predict_proba"):
        more = model.predict_proba(X)
    return Outcome(y, model.predict(X), more, seconds)


def joined(outcomes: Sequence[Any]) -> Any:
    """Return the outcomes of several folds as one; its seconds are those of a mean fold."""

    def rows_of(name: str) -> NDArray | None:
        found = [getattr(one, name) for one in outcomes]
        return None if any(own is None for own in found) else np.concatenate(found)

    by_row = {name: rows_of(name) for name in ("truth", "predictions", "more")}
    return replace(outcomes[0], **by_row, seconds=float(np.mean([own.seconds for own in outcomes])))


def folds_of(
    y: NDArray, are_classes: bool, n_folds: int, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the rows to learn from and those to be right about, fold by fold.

    There are fewer folds where no class has so many rows, and none where each has one. A class with
    one row is learned from, but never tested.
    """
    kind: type[KFold | StratifiedKFold] = KFold
    others, most = np.arange(len(y)), len(y)
    if are_classes:
        kind = StratifiedKFold
        _, first, counts = np.unique(y, return_index=True, return_counts=True)
        others, most = np.setdiff1d(others, first[counts == 1]), counts.max()
    if most < 2:
        return
    folds = kind(min(n_folds, most), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A class with fewer rows than folds is outside of some of them only.
        warnings.simplefilter("ignore", UserWarning)
        pairs = list(folds.split(others, y[others]))
    for _, outside in pairs:
        yield np.setdiff1d(np.arange(len(y)), others[outside]), others[outside]

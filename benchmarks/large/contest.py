"""One fit of each contestant on the same rows, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.common import n_cores
from benchmarks.data import Dataset
from mbkl import MBKLClassifier

OURS, REFERENCE = "MBKLClassifier", "LightGBM"


def _lightgbm():
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=n_cores(), random_state=0, verbose=-1)


def _catboost():
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        thread_count=n_cores(), random_seed=0, verbose=False, allow_writing_files=False
    )


def _forest():
    return RandomForestClassifier(n_jobs=n_cores(), random_state=0)


# All with their defaults.
CONTESTANTS: dict[str, Callable] = {
    OURS: lambda: MBKLClassifier(random_state=0),
    REFERENCE: _lightgbm,
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "CatBoost": _catboost,
    "RandomForest": _forest,
}
# Forests without a limit on their depth take gigabytes of memory beyond so many rows.
MOST_ROWS_OF_A_FOREST = 1_000_000


@dataclass(frozen=True)
class Outcome:
    """What one fit came to."""

    accuracy: float
    auc: float
    log_loss: float
    seconds: float
    seconds_of_prediction: float


def compete(name: str, data: Dataset) -> Outcome | None:
    """Fit and test one contestant; None where it is left out."""
    if name == "RandomForest" and len(data.y_train) > MOST_ROWS_OF_A_FOREST:
        return None
    model = CONTESTANTS[name]()
    began = time.perf_counter()
    model.fit(data.X_train, data.y_train)
    fitted = time.perf_counter()
    chances = model.predict_proba(data.X_test)
    ended = time.perf_counter()
    classes = np.unique(data.y_train)
    chances = chances / chances.sum(axis=1, keepdims=True)
    right = classes[chances.argmax(axis=1)] == data.y_test
    auc = roc_auc_score(data.y_test, chances[:, 1]) if classes.size == 2 else np.nan
    loss = log_loss(data.y_test, chances, labels=classes)
    return Outcome(float(right.mean()), auc, loss, fitted - began, ended - fitted)

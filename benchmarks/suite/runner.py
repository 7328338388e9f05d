"""Measurement of missing results, unit by unit."""

from __future__ import annotations

import pickle
import statistics
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from benchmarks.common import n_cores, say, seconds, versions
from benchmarks.data import Dataset
from benchmarks.suite.datasets import Table
from benchmarks.suite.methods import setup_fingerprint, source_fingerprint
from benchmarks.suite.protocol import Protocol
from benchmarks.suite.store import Result, Store, Unit
from benchmarks.suite.tasks import Task, is_ours

# Predictions are repeated at most this often, and until they have taken this many seconds.
_PREDICTIONS = 5
_PREDICTION_SECONDS = 0.5
_LONGEST_MESSAGE = 300


def plan(
    task: Task, names: Iterable[str], methods: Iterable[str], protocol: Protocol
) -> list[Unit]:
    """Return all units, grouped by data set."""
    source = source_fingerprint()
    setups = {method: setup_fingerprint(task.methods[method]) for method in methods}
    return [
        Unit(name, fold, method, protocol.fingerprint, setup, source if is_ours(method) else None)
        for name in names
        for fold in protocol.folds_of(name, task.sets)
        for method, setup in setups.items()
    ]


def run(
    task: Task, units: Sequence[Unit], store: Store, protocol: Protocol, retry: bool = False
) -> None:
    """Measure the units that have no result yet.

    Parameters
    ----------
    task : Task
    units : sequence of Unit
        As `plan` returns them.
    store : Store
        Store of the results.
    protocol : Protocol
    retry : bool
        Whether to measure failed units again.
    """
    pending = [unit for unit in units if _is_pending(store.get(unit), retry)]
    say(f"{len(units) - len(pending)} of {len(units)} results are there already")
    if any(is_ours(unit.method) for unit in pending):
        from mbkl.warmup import warmup

        warmup()
    n_done = len(units) - len(pending)
    for name, of_set in groupby(pending, key=lambda unit: unit.data_set):
        table = task.sets.load(name)
        for number, of_fold in groupby(of_set, key=lambda unit: unit.fold):
            fold = protocol.fold(table, number)
            for unit in of_fold:
                result = measure(task, unit.method, table, fold, protocol.seed)
                store.add(unit, result)
                n_done += 1
                left = _seconds_left(units, store, retry)
                say(f"{n_done}/{len(units)}, {_duration(left)} left: {_line(task, unit, result)}")


def _is_pending(result: Result | None, retry: bool) -> bool:
    return result is None or (retry and result.error is not None)


def measure(task: Task, method: str, table: Table, fold: Dataset, seed: int) -> Result:
    """Fit and test a method; an exception gives a result with its message."""
    sizes = {
        "train_rows": len(fold.y_train),
        "predict_rows": len(fold.y_test),
        "n_features": table.X.shape[1],
        "n_classes": len(np.unique(table.y)),
        "versions": versions(),
    }
    with warnings.catch_warnings():
        # Costs at the ends of a grid may fit nothing or not converge, which is expected.
        warnings.simplefilter("ignore")
        try:
            _warm_up(task, method)
            model = task.methods[method](table.X, seed, n_cores())
            fit_seconds = seconds(lambda: model.fit(fold.X_train, fold.y_train))
            predictions, predict_seconds = _predict(model, fold.X_test)
            model_bytes = _size(model)
            measures = task.measured(model, fold, predictions)
        except Exception as error:
            message = f"{type(error).__name__}: {error}".splitlines()[0][:_LONGEST_MESSAGE]
            return Result(error=message, **sizes)
        return Result(
            measures=measures,
            fit_seconds=fit_seconds,
            predict_seconds=predict_seconds,
            model_bytes=model_bytes,
            **sizes,
        )


def _warm_up(task: Task, method: str) -> None:
    """Fit a few rows, so that imports and the start of processes are not timed."""
    X, y = task.few_rows()
    task.methods[method](X, 0, n_cores()).fit(X, y).predict(X)


def _predict(model: BaseEstimator, X: NDArray) -> tuple[NDArray, float]:
    """Return the predictions and the median time of a call."""
    taken: list[float] = []
    while not taken or (len(taken) < _PREDICTIONS and sum(taken) < _PREDICTION_SECONDS):
        began = time.perf_counter()
        predictions = model.predict(X)
        taken.append(time.perf_counter() - began)
    return predictions, statistics.median(taken)


def _size(model: BaseEstimator) -> int:
    """Return the length of the pickled model, of a search that of its best estimator."""
    return len(pickle.dumps(getattr(model, "best_estimator_", model)))


# ---------------------------------------------------------------- progress


def _line(task: Task, unit: Unit, result: Result) -> str:
    what = f"{unit.data_set}, fold {unit.fold + 1}, {unit.method}"
    if result.error is not None:
        return f"{what}: FAILED, {result.error}"
    times = f"fit {result.fit_seconds:.2f} s, predict {result.predict_seconds:.2f} s"
    return f"{what}: {task.measure} {task.written(result.measures[task.measure])}, {times}"


def _seconds_left(units: Sequence[Unit], store: Store, retry: bool) -> float:
    known: dict[Unit, float] = {}
    pending: list[Unit] = []
    for unit in units:
        result = store.get(unit)
        if result is None or _is_pending(result, retry):
            pending.append(unit)
        else:
            known[unit] = result.fit_seconds + result.predict_seconds
    return estimate_left(pending, known)


def estimate_left(pending: Iterable[Unit], known: Mapping[Unit, float]) -> float:
    """Estimate the seconds that units will take from those that are measured.

    The estimate is the mean over other folds of the same data set and method, else over the
    method on other data sets, else over all units.
    """
    by_set_and_method: dict[tuple[str, str], list[float]] = {}
    by_method: dict[str, list[float]] = {}
    for unit, taken in known.items():
        by_set_and_method.setdefault((unit.data_set, unit.method), []).append(taken)
        by_method.setdefault(unit.method, []).append(taken)
    everything = list(known.values()) or [0.0]
    return sum(
        statistics.fmean(
            by_set_and_method.get((unit.data_set, unit.method))
            or by_method.get(unit.method)
            or everything
        )
        for unit in pending
    )


def _duration(value: float) -> str:
    """Format a duration in hours and minutes, in minutes, or in seconds if it is short."""
    if value < 100:
        return f"about {value:.0f} s"
    hours, minutes = divmod(round(value / 60), 60)
    return f"about {hours} h {minutes:02d} min" if hours else f"about {minutes} min"

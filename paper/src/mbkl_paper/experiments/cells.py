"""Measure systems on splits, cell by cell, and keep every result as soon as it is there."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from threadpoolctl import threadpool_limits

from mbkl_paper.experiments.common import say, source_fingerprint, versions
from mbkl_paper.experiments.sets import Part, Problem
from mbkl_paper.experiments.store import Cell, CellStore, Unit
from mbkl_paper.experiments.systems import Choice, System, choose

# Predictions of less than so many seconds are repeated so often.
_SLOW_PREDICTION, _PREDICTIONS = 1.0, 5
_LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class Task:
    """A unit, and what it takes to measure it."""

    unit: Unit
    problem: Problem
    system: System


def plan(problem: Problem, systems: Iterable[System]) -> list[Task]:
    """Return all tasks of a set, those of a system together."""
    source, protocol = source_fingerprint(), problem.settings.fingerprint
    tasks = []
    for system in systems:
        own = (protocol, system.fingerprint(problem.settings), source if system.is_ours else None)
        for split in range(len(problem.splits)):
            tasks.append(Task(Unit(problem.name, split, system.name, *own), problem, system))
    return tasks


# ---------------------------------------------------------------- a cell


@dataclass(frozen=True)
class Fitted:
    """A system that has learned from training rows."""

    train: NDArray
    model: BaseEstimator
    choice: Choice
    choice_seconds: float
    fit_seconds: float


def fit(task: Task, data: Part, train: NDArray) -> Fitted:
    """Choose the costs of a system, and fit all training rows with them."""
    settings = task.problem.settings
    began = time.perf_counter()
    choice = choose(task.system, settings, data.X_train, data.y_train, joblib.cpu_count())
    choice_seconds = time.perf_counter() - began
    model = task.system.build(settings).set_params(**choice.parameters)
    with threadpool_limits(1):
        fit_seconds = _seconds(lambda: model.fit(data.X_train, data.y_train))
    return Fitted(train, model, choice, choice_seconds, fit_seconds)


def test(fitted: Fitted, data: Part) -> Cell:
    """Predict the test rows."""
    model, choice = fitted.model, fitted.choice
    with threadpool_limits(1):
        began = time.perf_counter()
        guess = model.predict(data.X_test)
        predict_seconds = time.perf_counter() - began
        if predict_seconds < _SLOW_PREDICTION:
            predict_seconds = statistics.median(
                _seconds(lambda: model.predict(data.X_test)) for _ in range(_PREDICTIONS)
            )
    timings = getattr(model, "timings_", {})
    return Cell(
        accuracy=float(accuracy_score(data.y_test, guess)),
        balanced_accuracy=float(balanced_accuracy_score(data.y_test, guess)),
        fit_seconds=fitted.fit_seconds,
        predict_seconds=predict_seconds,
        train_rows=len(data.y_train),
        predict_rows=len(data.y_test),
        n_features=data.X_train.shape[1],
        n_classes=len(np.unique(data.y_train)),
        versions=versions(),
        C=choice.parameters.get("C"),
        C_kernel=choice.parameters.get("C_kernel"),
        choice_accuracy=choice.accuracy,
        choice_seconds=fitted.choice_seconds,
        n_maps=_n_maps(model),
        step_1_seconds=timings.get("initial guess", 0.0) + timings.get("kernel weights", 0.0),
        step_1_gap=_gap(model),
        theta_shrinkage=choice.parameters.get("theta_shrinkage"),
        thresholds=getattr(choice.parameters.get("maps"), "thresholds", None),
    )


def _seconds(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _gap(model: BaseEstimator) -> float | None:
    """Return the relative duality gap of Step 1, where it was run."""
    gap = float(getattr(model, "gap_", (np.nan,))[0])
    return None if np.isnan(gap) else gap


def _n_maps(model: BaseEstimator) -> int:
    """Return how many binary maps a model asks for, of all classes together."""
    if hasattr(model, "n_maps_"):
        return int(model.n_maps_)
    return int(model.coef_.any(axis=0).sum()) if getattr(model, "penalty", "") == "l1" else 0


# ---------------------------------------------------------------- all cells


def run(tasks: Sequence[Task], store: CellStore, retry: bool = False) -> None:
    """Measure the tasks that have no result yet, and with `retry` those that failed."""
    pending = [task for task in tasks if _is_pending(store.get(task.unit), retry)]
    n_done = len(tasks) - len(pending)
    say(f"{n_done} of {len(tasks)} results are there already")
    if any(task.system.is_ours for task in pending):
        from mbkl.warmup import warmup

        warmup()
    began = time.perf_counter()
    fitted: Fitted | None = None
    last: Task | None = None
    for position, task in enumerate(pending, start=1):
        if last is None or (last.problem, last.system) != (task.problem, task.system):
            fitted = None
        fitted, cell = _measure(task, fitted)
        last = task
        store.add(task.unit, cell)
        left = (time.perf_counter() - began) / position * (len(pending) - position) / 60
        done = f"{n_done + position}/{len(tasks)}, about {left:.0f} min left"
        say(f"{done}: {_line(task.unit, cell)}")


def _is_pending(cell: Cell | None, retry: bool) -> bool:
    return cell is None or (retry and cell.error is not None)


def _measure(task: Task, previous: Fitted | None) -> tuple[Fitted | None, Cell]:
    """Measure a cell; splits that differ in their test rows alone share a fit."""
    train, _ = task.problem.splits[task.unit.fold]
    data = task.problem.part(task.unit.fold)
    fitted = None
    try:
        with warnings.catch_warnings():
            # Costs at the ends of a grid may fit nothing or not converge; that is no news here.
            warnings.simplefilter("ignore")
            if previous is not None and np.array_equal(previous.train, train):
                fitted = previous
            else:
                fitted = fit(task, data, train)
            return fitted, test(fitted, data)
    except (ValueError, MemoryError, ArithmeticError) as error:
        message = f"{type(error).__name__}: {error}".splitlines()[0][:_LONGEST_MESSAGE]
        return fitted, Cell(error=message, versions=versions())


def _line(unit: Unit, cell: Cell) -> str:
    what = f"{unit.data_set}, split {unit.fold + 1}, {unit.method}"
    if cell.error is not None:
        return f"{what}: FAILED, {cell.error}"
    times = f"choice {cell.choice_seconds:.1f} s, fit {cell.fit_seconds:.2f} s"
    return f"{what}: {100 * cell.accuracy:.2f} %, {times}, predict {cell.predict_seconds:.3f} s"

"""Cells: what is kept, what is measured again, and what is shared."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from mbkl_paper.experiments import cells, quick, sets, systems
from mbkl_paper.experiments.cells import plan, run
from mbkl_paper.experiments.collection import collect
from mbkl_paper.experiments.store import Cell, CellStore

LINEAR = systems.SYSTEMS["linear"]


@pytest.fixture
def problem(tmp_path):
    """Return a small set of two splits."""
    return sets.load({"quick_cells": quick.SETS["quick_cells"]}, tmp_path)["quick_cells"]


def test_cells_come_back_and_killed_lines_are_ignored(tmp_path, problem, capsys):
    path = tmp_path / "cells.jsonl"
    first, second = plan(problem, [LINEAR])
    cell = Cell(accuracy=0.75, C=10.0, choice_accuracy=0.5, n_maps=3)
    CellStore(path).add(first.unit, cell)
    with path.open("a") as file:
        file.write('{"data_set": "quick_ce')
    store = CellStore(path)
    assert "ignored 1 unreadable line" in capsys.readouterr().out
    assert store.get(first.unit) == cell
    store.add(second.unit, cell)
    assert CellStore(path).get(second.unit) == cell


def test_an_interrupted_run_goes_on(tmp_path, problem, monkeypatch):
    tasks = plan(problem, [LINEAR, systems.SYSTEMS["chi2"]])
    measured = []

    def measure(task, previous):
        measured.append((task.system.name, task.unit.fold))
        if len(measured) == 3:
            raise KeyboardInterrupt
        return None, Cell(accuracy=0.5, error="ValueError: no" if len(measured) == 1 else None)

    monkeypatch.setattr(cells, "_measure", measure)
    path = tmp_path / "cells.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(tasks, CellStore(path))
    run(tasks, CellStore(path))
    assert measured[3:] == [("chi2", 0), ("chi2", 1)]
    run(tasks, CellStore(path))
    assert len(measured) == 5
    run(tasks, CellStore(path), retry=True)
    assert measured[5:] == [("linear", 0)]


def test_only_ours_depend_on_the_source(problem, monkeypatch):
    both = [systems.MBKL, LINEAR]
    store = CellStore(None)
    for task in plan(problem, both):
        store.add(task.unit, Cell(accuracy=0.5))
    monkeypatch.setattr(cells, "source_fingerprint", lambda: "another")
    tasks = plan(problem, both)
    assert [store.get(task.unit) is None for task in tasks] == [True, True, False, False]
    collection = collect(tasks, store)
    assert collection.n_outdated == 2
    assert collection.is_complete(problem.name, "mbkl")


def test_units_change_with_parameters_and_protocol(problem):
    unit = plan(problem, [LINEAR])[0].unit
    other = replace(LINEAR, parameters={"tol": 0.1})
    assert plan(problem, [other])[0].unit.setup != unit.setup
    problem.settings = replace(problem.settings, n_folds=3)
    assert plan(problem, [LINEAR])[0].unit.protocol != unit.protocol


def test_splits_with_the_same_training_rows_share_a_fit(problem, monkeypatch):
    (train, test), _ = problem.splits
    problem.splits = [(train, test[:50]), (train, test[50:]), (test, train)]
    fits = []
    fit = cells.fit
    monkeypatch.setattr(cells, "fit", lambda *arguments: fits.append(1) or fit(*arguments))
    store = CellStore(None)
    tasks = plan(problem, [LINEAR])
    run(tasks, store)
    assert len(fits) == 2
    data = problem.part(1)
    first = store.get(tasks[0].unit)
    model = LINEAR.build(problem.settings).set_params(C=first.C).fit(data.X_train, data.y_train)
    expected = accuracy_score(data.y_test, model.predict(data.X_test))
    assert store.get(tasks[1].unit).accuracy == expected


def test_a_system_that_raises_is_recorded(problem):
    broken = replace(LINEAR, parameters={"penalty": "l3"})
    store = CellStore(None)
    tasks = plan(problem, [broken])
    run(tasks, store)
    collection = collect(tasks, store)
    assert "penalty" in collection.failures[problem.name, "linear"]
    assert not collection.cells


def test_measures_of_a_cell(problem):
    measured = [systems.VARIANTS["θ as learned"], systems.SYSTEMS["l1_maps"]]
    store, tasks = CellStore(None), plan(problem, measured)
    run(tasks, store)
    ours, l1 = store.get(tasks[0].unit), store.get(tasks[2].unit)
    assert 0 < ours.n_maps < 100
    assert 0 < l1.n_maps <= 100
    assert ours.C in systems.COSTS
    assert ours.C_kernel in (0.01, 0.1, 1.0)
    assert 0 < ours.step_1_seconds < ours.fit_seconds
    assert 0.5 < ours.choice_accuracy <= 1
    assert (ours.train_rows, ours.predict_rows, ours.n_features, ours.n_classes) == (
        100,
        100,
        30,
        2,
    )
    assert np.isfinite(ours.predict_seconds)

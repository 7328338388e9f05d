"""The file of results, and runs that are stopped, resumed or hit by errors."""

import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.suite import methods, report, runner
from benchmarks.suite.collection import collect
from benchmarks.suite.protocol import Protocol
from benchmarks.suite.store import Result, Store, Unit
from benchmarks.suite.tasks import CLASSIFICATION

UNIT = Unit("glass", 0, "LinearSVC", "protocol", "setup", None)
RESULT = Result(measures={"accuracy": 0.75}, fit_seconds=2.0, predict_rows=10)


def test_results_come_back(tmp_path):
    path = tmp_path / "new" / "results.jsonl"
    store = Store(path)
    store.add(UNIT, RESULT)
    again = Store(path)
    assert again.get(UNIT) == RESULT
    assert again.get(replace(UNIT, setup="other")) is None


def test_latest_result_counts(tmp_path):
    path = tmp_path / "results.jsonl"
    Store(path).add(UNIT, Result(error="ValueError: no"))
    Store(path).add(UNIT, RESULT)
    assert Store(path).get(UNIT) == RESULT


@pytest.mark.parametrize("cut", [1, 2, 30, 200])
def test_half_written_last_line_is_ignored(tmp_path, capsys, cut):
    path = tmp_path / "results.jsonl"
    second, third = replace(UNIT, fold=1), replace(UNIT, fold=2)
    for unit in (UNIT, second):
        Store(path).add(unit, RESULT)
    lines = path.read_bytes()
    path.write_bytes(lines[:-cut])
    store = Store(path)
    # Without its end alone, the line is still whole.
    assert (store.get(UNIT), store.get(second)) == (RESULT, RESULT if cut == 1 else None)
    assert ("ignored 1 unreadable" in capsys.readouterr().out) == (cut > 1)
    store.add(third, RESULT)
    again = Store(path)
    assert (again.get(UNIT), again.get(third)) == (RESULT, RESULT)
    json.loads(path.read_text().splitlines()[-1])


def test_run_measures_only_what_is_missing(tmp_path, monkeypatch):
    protocol = Protocol(n_folds=2)
    units = runner.plan(CLASSIFICATION, ["wine"], ["SVC-RBF default", "RandomForest"], protocol)
    measured = []

    def measure(task, method, table, fold, seed):
        measured.append(method)
        if len(measured) == 3:
            raise KeyboardInterrupt
        return Result({"accuracy": 0.5}, error="ValueError: no" if len(measured) == 1 else None)

    monkeypatch.setattr(runner, "measure", measure)
    path = tmp_path / "results.jsonl"
    with pytest.raises(KeyboardInterrupt):
        runner.run(CLASSIFICATION, units, Store(path), protocol)
    runner.run(CLASSIFICATION, units, Store(path), protocol)
    assert len(measured) == 3 + 2
    runner.run(CLASSIFICATION, units, Store(path), protocol)
    assert len(measured) == 5
    runner.run(CLASSIFICATION, units, Store(path), protocol, retry=True)
    assert measured[5:] == ["SVC-RBF default"]


def test_a_method_that_raises_is_recorded(monkeypatch, capsys):
    def broken(X, seed, n_jobs):
        raise ValueError("too many cooks\nand more")

    monkeypatch.setitem(methods.METHODS, "LinearSVC", broken)
    monkeypatch.setattr(runner, "setup_fingerprint", lambda factory: factory.__name__)
    protocol = Protocol(n_folds=2)
    units = runner.plan(CLASSIFICATION, ["wine"], ["LinearSVC", "SVC-RBF default"], protocol)
    store = Store(None)
    runner.run(CLASSIFICATION, units, store, protocol)
    assert "FAILED, ValueError: too many cooks" in capsys.readouterr().out
    collection = collect(units, store)
    report.write(CLASSIFICATION, collection, protocol, "command", print_only=True)
    printed = capsys.readouterr().out
    assert "LinearSVC failed on wine: ValueError: too many cooks" in printed
    assert "Methods not measured yet, or on few data sets: LinearSVC." in printed
    assert "| failed |" in printed
    assert collection.methods == ["SVC-RBF default"]


def test_estimate_prefers_the_same_set_then_the_same_method():
    known = {UNIT: 10.0, replace(UNIT, data_set="pima"): 2.0, replace(UNIT, method="EBM"): 60.0}
    same_set = replace(UNIT, fold=1)
    same_method = replace(UNIT, data_set="dna")
    other = replace(UNIT, data_set="dna", method="SVC")
    assert runner.estimate_left([same_set], known) == 10.0
    assert runner.estimate_left([same_method], known) == 6.0
    assert runner.estimate_left([other], known) == pytest.approx(24.0)
    assert runner.estimate_left([other], {}) == 0.0


@pytest.mark.parametrize(("n_features", "has_pairs"), [(200, True), (201, False)])
def test_ebm_learns_no_pairs_of_many_features(n_features, has_pairs):
    pytest.importorskip("interpret")
    rows = np.zeros((2, n_features), dtype=np.float32)
    assert (methods.METHODS["EBM"](rows, 0, 1).interactions != 0) == has_pairs

"""The benchmark of devices runs, and stands in for sets that are not there."""

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="Torch is not installed.")

from benchmarks.gpu import __main__ as benchmark
from benchmarks.gpu.sets import QUICK, SHAPES, Shape, load, planted


def test_a_quick_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(benchmark, "SETTINGS", {})
    monkeypatch.setenv("OUT", str(tmp_path))
    benchmark.main(["--quick"])
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert len(found["lines"]) == len(QUICK)
    assert found["stages"]["whole fit"] > found["stages"]["stumps"] > 0
    assert "nothing recorded" in capsys.readouterr().out


def test_planted_rows_have_the_shape_and_classes_that_can_be_told():
    data = planted("letters", Shape(2_000, 16, 26))
    assert data.X_train.shape == (2_000, 16)
    assert np.unique(data.y_train).size > 20


def test_sets_that_are_missing_are_planted(monkeypatch):
    monkeypatch.delenv("MBKL_DATA", raising=False)
    data = load("letter", SHAPES["letter"])
    assert data.name == "letter (planted)"
    assert data.X_train.shape == (16_000, 16)


def test_planted_numbers_and_categories():
    numbers = planted("numbers", Shape(500, 6, 0))
    assert np.unique(numbers.y_train).size > 400
    categories = planted("categories", Shape(500, 6, 2, n_categories=3))
    levels = categories.X_train[:, :3]
    np.testing.assert_array_equal(levels, np.round(levels))
    assert levels.max(axis=0).tolist() == pytest.approx([999, 199, 11], abs=5)

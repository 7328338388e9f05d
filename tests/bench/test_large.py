"""The benchmark of many rows, on few."""

import numpy as np
from benchmarks import large
from benchmarks.common import Memory
from benchmarks.data import gaussian_dataset


def test_outcomes_are_those_of_probabilities():
    outcome = large.compete(large.OURS, gaussian_dataset(200, 4))
    assert 0.5 < outcome.accuracy <= 1
    assert 0 < outcome.log_loss < 1
    assert outcome.seconds > 0
    line = large.memory_line(Memory(result=outcome, before=0, peak=2**20), 100)
    assert line["accuracy"] == f"{100 * outcome.accuracy:.2f}"


def test_planted_rows_are_drawn_anew_for_each_seed(monkeypatch):
    monkeypatch.setattr(large, "TEST_ROWS", 50)
    first, other = large.planted(30, 0), large.planted(30, 1)
    assert first.X_train.shape == (30, large.N_FEATURES)
    assert len(first.y_test) == 50
    assert not np.array_equal(first.X_train, other.X_train)

"""The benchmark of many rows, on few."""

import numpy as np
import pytest
from benchmarks.data import gaussian_dataset
from benchmarks.large import growth, sets
from benchmarks.large.contest import OURS, compete

RIVAL = "HistGradientBoosting"


@pytest.fixture(scope="module")
def outcomes():
    data = gaussian_dataset(200, 4)
    return data, {name: compete(name, data) for name in (OURS, RIVAL)}


def test_outcomes_are_those_of_probabilities(outcomes):
    for outcome in outcomes[1].values():
        assert 0.5 < outcome.accuracy <= 1
        assert 0.5 < outcome.auc <= 1
        assert 0 < outcome.log_loss < 1
        assert outcome.seconds > 0


def test_lines_name_the_best_rival(outcomes):
    line = sets.line_of(*outcomes)
    assert line["best rival"].endswith(RIVAL)
    assert "time of LightGBM's" not in line
    assert [mean["contestant"] for mean in sets.means({"one": outcomes[1]})] == [OURS, RIVAL]


def test_a_forest_is_left_out_of_very_many_rows(monkeypatch):
    monkeypatch.setattr("benchmarks.large.contest.MOST_ROWS_OF_A_FOREST", 10)
    assert compete("RandomForest", gaussian_dataset(50, 2)) is None


def test_planted_rows_are_drawn_anew_for_each_seed(monkeypatch):
    monkeypatch.setattr(growth, "TEST_ROWS", 50)
    first, other = growth.planted(30, 0), growth.planted(30, 1)
    assert first.X_train.shape == (30, growth.N_FEATURES)
    assert len(first.y_test) == 50
    assert not np.array_equal(first.X_train, other.X_train)

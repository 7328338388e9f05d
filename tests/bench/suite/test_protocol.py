"""Which rows a method gets, and the fingerprints of what a result depends on."""

import os
import sys

import numpy as np
import pytest
from benchmarks.suite import datasets, methods, runner
from benchmarks.suite.protocol import ALL_ROWS, STANDARD, Protocol, draw
from benchmarks.suite.tasks import CLASSIFICATION


@pytest.mark.parametrize("sets", [datasets.CLASSES, datasets.NUMBERS], ids=lambda sets: sets.folder)
def test_development_sets_are_every_second_one_at_least(data_folder, sets):
    if not (data_folder / sets.folder).is_dir():
        pytest.skip("The data sets of the suite are not stored here.")
    assert set(sets.names()[::2]) <= set(sets.development) < set(sets.names())
    assert list(sets.development) == sorted(sets.development)


def test_draw_keeps_proportions_and_small_classes():
    y = np.repeat([0, 1, 2], [9_000, 990, 10])
    drawn = draw(y, 1_000, seed=0)
    assert np.bincount(y[drawn]).tolist() == [900, 99, 1]
    assert np.unique(drawn).size == 1_000
    with_small = draw(y, 1_000, seed=0, rows_per_class=5)
    assert np.bincount(y[with_small]).tolist() == [896, 99, 5]
    np.testing.assert_array_equal(drawn, draw(y, 1_000, seed=0))


@pytest.mark.parametrize("limit", [None, 100, 101])
def test_draw_takes_all_rows_when_they_are_few(limit):
    assert draw(np.zeros(100), limit, seed=0).tolist() == list(range(100))


def test_folds_share_no_rows_and_obey_the_limits(make_data):
    X, y = make_data(n_rows=120, n_classes=3)
    X[:, 0] = np.arange(120)
    protocol = Protocol(train_rows=50, test_rows=30)
    tested = []
    for number in range(3):
        fold = protocol.fold(datasets.Table("made up", X, y), number)
        assert (len(fold.y_train), len(fold.y_test)) == (50, 30)
        assert not set(fold.X_train[:, 0]) & set(fold.X_test[:, 0])
        np.testing.assert_array_equal(fold.y_train, y[fold.X_train[:, 0].astype(int)])
        tested.extend(fold.X_test[:, 0])
    assert len(set(tested)) == 90


def test_numbers_are_drawn_from_all_of_their_range():
    X, y = np.zeros((1_000, 1)), np.arange(1_000.0)
    table = datasets.Table("made up", X, y, has_classes=False)
    parts = [Protocol(train_rows=100).fold(table, number) for number in range(3)]
    assert all(400 < part.y_train.mean() < 600 for part in parts)
    assert sorted(np.concatenate([part.y_test for part in parts])) == y.tolist()


def test_official_split_is_kept(make_data):
    X, y = make_data(n_rows=20)
    X[:, 0] = np.arange(20)
    table = datasets.Table("made up", X, y, (np.arange(12), np.arange(12, 20)))
    fold = STANDARD.fold(table, 0)
    assert sorted(fold.X_train[:, 0]) == list(range(12))
    assert fold.X_test[:, 0].tolist() == list(range(12, 20))


def test_protocol_fingerprint_changes_with_the_protocol():
    different = [STANDARD, ALL_ROWS, Protocol(seed=1), Protocol(n_folds=5)]
    assert len({protocol.fingerprint for protocol in different}) == 4
    assert Protocol().fingerprint == STANDARD.fingerprint


def test_source_fingerprint_changes_with_content_and_name(tmp_path):
    (tmp_path / "inner").mkdir()
    file = tmp_path / "inner" / "one.py"
    file.write_text("a = 1\n")
    before = methods.source_fingerprint(tmp_path)
    (tmp_path / "inner" / "one.pyc").write_bytes(b"compiled")
    assert methods.source_fingerprint(tmp_path) == before
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "one.py").write_text("no classifier computes with it\n")
    assert methods.source_fingerprint(tmp_path) == before
    file.write_text("a = 2\n")
    after = methods.source_fingerprint(tmp_path)
    file.rename(tmp_path / "inner" / "two.py")
    assert len({before, after, methods.source_fingerprint(tmp_path)}) == 3


def test_setup_fingerprint_changes_with_parameters_only(monkeypatch, run_python):
    before = methods.setup_fingerprint(methods.METHODS["LinearSVC"])
    elsewhere = run_python(
        "from benchmarks.suite.methods import METHODS, setup_fingerprint\n"
        "print(setup_fingerprint(METHODS['LinearSVC']))",
        PYTHONPATH=os.pathsep.join(sys.path),
    )
    assert elsewhere.stdout.strip() == before, elsewhere.stderr
    monkeypatch.setattr(methods, "LINEAR_COSTS", (0.1, 1))
    assert methods.setup_fingerprint(methods.METHODS["LinearSVC"]) != before


def test_only_mbkl_depends_on_the_source():
    units = runner.plan(
        CLASSIFICATION, ["wine"], ["MBKLClassifier", "LinearSVC"], Protocol(n_folds=2)
    )
    sources = {unit.method: unit.source for unit in units}
    assert sources == {"MBKLClassifier": methods.source_fingerprint(), "LinearSVC": None}

import numpy as np
import pytest

from mbkl.engine import stream_engine
from mbkl.engine.codes import DenseCodes, coarsening
from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.engine.stream_engine import StreamEngine, is_on_disk
from mbkl.maps.ferns import Ferns
from mbkl.maps.stumps import Stumps


@pytest.fixture
def engines(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_engine, "FEW_ROWS", 5)
    return NumpyEngine(), StreamEngine(NumpyEngine(), tmp_path, block_rows=16)


@pytest.fixture
def codes(engines, make_data):
    """The same codes in memory and in a file."""
    X, _ = make_data(100, 4)
    both = [Stumps().fit_codes(X, np.ones(100), 20, 0, engine)[1] for engine in engines]
    assert is_on_disk(both[1])
    assert not is_on_disk(both[0])
    return both


def values(codes):
    """Return the codes of a file as an array."""
    stored = getattr(codes, "bundles", codes).values
    if isinstance(stored, np.ndarray):
        return stored
    return np.concatenate([block for _, block in stored.blocks()], axis=1)


def test_the_two_hot_operations(engines, codes):
    generator = np.random.default_rng(0)
    tables = generator.normal(size=(codes[0].n_cells, 3))
    residuals = generator.integers(-100, 100, size=(100, 3))
    for form in (lambda engine, own: own, lambda engine, own: engine.bundle(own)):
        scores, sums = [], []
        for engine, own in zip(engines, codes, strict=True):
            shaped = form(engine, own)
            scores.append(engine.gather(shaped, tables))
            sums.append(engine.histogram(shaped, residuals))
        np.testing.assert_array_equal(scores[0], scores[1])
        np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(engines[0].counts(codes[0]), engines[1].counts(codes[1]))


def test_bundles_are_bundled_once(engines, codes):
    memory, disk = engines
    bundled = disk.bundle(codes[1])
    assert disk.bundle(bundled) is bundled
    np.testing.assert_array_equal(values(bundled), values(memory.bundle(codes[0])))


@pytest.mark.parametrize("rows", [[3, 1], [99, 0, 50] * 20, np.arange(0, 100, 2)])
def test_taking_rows(engines, codes, rows):
    rows = np.asarray(rows)
    for form in (lambda engine, own: own, lambda engine, own: engine.bundle(own)):
        taken = [
            engine.take(form(engine, own), rows) for engine, own in zip(engines, codes, strict=True)
        ]
        assert is_on_disk(taken[1]) == (rows.size > 16)
        np.testing.assert_array_equal(values(taken[0]), values(taken[1]))
        again = engines[1].take(taken[1], np.array([1, 0]))
        np.testing.assert_array_equal(values(again), values(taken[0])[:, [1, 0]])


def test_fewer_boundaries_and_fewer_groups(engines, codes):
    keep = np.random.default_rng(0).random(codes[0].n_cells - codes[0].n_groups) < 0.5
    plan = coarsening(codes[0].offsets, keep)
    coarse = [engine.coarsen(own, plan) for engine, own in zip(engines, codes, strict=True)]
    np.testing.assert_array_equal(values(coarse[0]), values(coarse[1]))
    groups = np.array([0, 2])
    kept = [engine.keep_groups(own, groups) for engine, own in zip(engines, codes, strict=True)]
    np.testing.assert_array_equal(values(kept[0]), values(kept[1]))
    np.testing.assert_array_equal(kept[0].offsets, kept[1].offsets)


def test_ferns_fall_in_the_same_cells(engines, make_data):
    X, _ = make_data(100, 4)
    drawn = [Ferns(depth=3).fit_codes(X, np.ones(100), 20, 0, engine) for engine in engines]
    np.testing.assert_array_equal(values(drawn[0][1]), values(drawn[1][1]))
    np.testing.assert_array_equal(drawn[0][0].numbers, drawn[1][0].numbers)


def test_codes_in_memory_are_left_to_the_inner_engine(engines):
    memory, disk = engines
    codes = DenseCodes(np.array([[0, 1, 1]], dtype=np.uint8), np.array([0, 2]))
    tables = np.array([[5.0], [7.0]])
    np.testing.assert_array_equal(disk.gather(codes, tables), memory.gather(codes, tables))
    assert not is_on_disk(disk.take(codes, np.array([0])))
    assert not is_on_disk(disk.keep_groups(codes, np.array([0])))
    same = disk.agreement(codes, codes, np.ones(1))
    np.testing.assert_array_equal(same, memory.agreement(codes, codes, np.ones(1)))

"""Both engines against the definitions, and against each other to the bit."""

import importlib.util
import os
import sys

import numpy as np
import pytest

from mbkl.engine import choose_engine
from mbkl.engine.codes import SparseCodes, coarsening, densify
from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.maps.binning import BinEdges, bin_columns

KINDS = ["dense", "sparse"]
THREADS = [1, 2, 4]
CELLS_BY_TYPE = [
    (np.uint8, (3, 256, 2, 9, 4)),
    (np.uint16, (300, 2, 65_536)),
    (np.uint32, (2, 70_000, 5)),
]
SHAPES = [
    pytest.param(130, (3, 5, 2, 9, 4), id="five groups"),
    pytest.param(5000, (3, 5, 2, 9), id="several blocks of rows"),
    pytest.param(3, (2,) * 11, id="fewer rows than groups"),
    pytest.param(1, (4, 2, 3), id="one row"),
    pytest.param(40, (7,), id="one group"),
]


def same_bits(left, right) -> bool:
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


def same_codes(left, right) -> bool:
    if isinstance(left, SparseCodes):
        parts = ("indptr", "rows", "values", "zero_codes", "offsets")
    else:
        parts = ("values", "offsets")
    return type(left) is type(right) and all(
        same_bits(getattr(left, part), getattr(right, part)) for part in parts
    )


def tables_for(codes, n_columns, seed=1):
    return np.random.default_rng(seed).normal(size=(codes.n_cells, n_columns))


def residuals_for(codes, n_columns, seed=2):
    return np.random.default_rng(seed).integers(-(2**40), 2**40, size=(codes.n_rows, n_columns))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_rows", "n_cells"), SHAPES)
@pytest.mark.parametrize("n_columns", [1, 3])
def test_gather_is_the_sum_of_table_entries(engine, make_codes, kind, n_rows, n_cells, n_columns):
    codes = make_codes(n_rows, n_cells, kind=kind)
    tables = tables_for(codes, n_columns)
    values = densify(codes).values.astype(int)
    expected = sum(tables[codes.offsets[g] + values[g]] for g in range(codes.n_groups))
    np.testing.assert_allclose(engine.gather(codes, tables), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_rows", "n_cells"), SHAPES)
@pytest.mark.parametrize("n_columns", [1, 3])
def test_histogram_is_the_sum_per_cell(engine, make_codes, kind, n_rows, n_cells, n_columns):
    codes = make_codes(n_rows, n_cells, kind=kind)
    residuals = residuals_for(codes, n_columns)
    values = densify(codes).values.astype(int)
    expected = np.zeros((codes.n_cells, n_columns), dtype=np.int64)
    for group in range(codes.n_groups):
        for row in range(codes.n_rows):
            expected[codes.offsets[group] + values[group, row]] += residuals[row]
    np.testing.assert_array_equal(engine.histogram(codes, residuals), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_take_is_indexing(engine, make_codes, kind):
    codes = make_codes(kind=kind)
    rows = np.array([5, 0, 129, 5, 77])
    taken = engine.take(codes, rows)
    assert taken.n_rows == 5
    np.testing.assert_array_equal(densify(taken).values, densify(codes).values[:, rows])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_columns", [1, 3])
def test_no_rows_are_no_trouble(engine, make_codes, kind, n_columns):
    codes = engine.take(make_codes(kind=kind), np.array([], dtype=np.intp))
    assert engine.gather(codes, tables_for(codes, n_columns)).shape == (0, n_columns)
    sums = engine.histogram(codes, residuals_for(codes, n_columns))
    np.testing.assert_array_equal(sums, np.zeros((codes.n_cells, n_columns)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_columns", [1, 3])
def test_no_groups_score_zero(engine, make_codes, kind, n_columns):
    codes = make_codes(n_rows=6, n_cells=(), kind=kind)
    np.testing.assert_array_equal(
        engine.gather(codes, np.empty((0, n_columns))), np.zeros((6, n_columns))
    )
    assert engine.histogram(codes, residuals_for(codes, n_columns)).shape == (0, n_columns)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share_kept", [0.0, 0.4, 1.0])
def test_coarsen_joins_neighbouring_cells(engine, make_codes, kind, share_kept):
    codes = make_codes(kind=kind)
    generator = np.random.default_rng(3)
    keep = generator.random(codes.n_cells - codes.n_groups) < share_kept
    plan = coarsening(codes.offsets, keep)
    coarse = engine.coarsen(codes, plan)
    values, new_values = densify(codes).values, densify(coarse).values
    position = 0
    for group in range(codes.n_groups):
        n_boundaries = codes.offsets[group + 1] - codes.offsets[group] - 1
        kept = keep[position : position + n_boundaries]
        position += n_boundaries
        climbed = np.concatenate([[0], np.cumsum(kept)])
        if kept.any():
            place = int(np.flatnonzero(plan.groups == group)[0])
            np.testing.assert_array_equal(new_values[place], climbed[values[group].astype(int)])
        else:
            assert group not in plan.groups


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize("n_columns", [1, 5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "n_cells"), CELLS_BY_TYPE)
def test_engines_give_the_same_bits(
    make_codes, make_numba_engine, dtype, n_cells, kind, n_columns, n_threads
):
    codes = make_codes(300, n_cells, dtype, kind)
    tables, residuals = tables_for(codes, n_columns), residuals_for(codes, n_columns)
    rows = np.random.default_rng(4).integers(codes.n_rows, size=77)
    keep = np.random.default_rng(5).random(codes.n_cells - codes.n_groups) < 0.3
    plan = coarsening(codes.offsets, keep)
    twin, engine = NumpyEngine(), make_numba_engine(n_threads)
    assert same_bits(engine.gather(codes, tables), twin.gather(codes, tables))
    assert same_bits(engine.histogram(codes, residuals), twin.histogram(codes, residuals))
    assert same_codes(engine.take(codes, rows), twin.take(codes, rows))
    assert same_codes(engine.coarsen(codes, plan), twin.coarsen(codes, plan))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_rows", "n_cells"), SHAPES)
@pytest.mark.parametrize("n_columns", [1, 3])
def test_engines_give_the_same_bits_for_any_shape(
    make_codes, make_numba_engine, kind, n_rows, n_cells, n_columns
):
    codes = make_codes(n_rows, n_cells, kind=kind)
    tables = tables_for(codes, n_columns)
    expected = NumpyEngine().gather(codes, tables)
    for n_threads in THREADS:
        assert same_bits(make_numba_engine(n_threads).gather(codes, tables), expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_order_of_tables_and_residuals_does_not_matter(engine, make_codes, order):
    codes = make_codes()
    tables, residuals = tables_for(codes, 3), residuals_for(codes, 3)
    assert same_bits(
        engine.gather(codes, np.asarray(tables, order=order)), engine.gather(codes, tables)
    )
    assert same_bits(
        engine.histogram(codes, np.asarray(residuals, order=order)),
        engine.histogram(codes, residuals),
    )


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_thresholds", [1, 40, 400])
def test_engines_bin_the_same(make_numba_engine, n_threads, dtype, order, n_thresholds):
    generator = np.random.default_rng(6)
    X = generator.normal(size=(150, 4)).astype(dtype, order=order)
    X[generator.random(X.shape) < 0.1] = np.nan
    features = np.array([3, 0, 2])
    thresholds = np.sort(generator.normal(size=(3, n_thresholds)).astype(np.float32), axis=1)
    edges = BinEdges(
        thresholds.ravel().astype(np.float64), np.arange(4, dtype=np.int64) * n_thresholds
    )
    expected = np.empty((3, 150), dtype=edges.code_dtype)
    NumpyEngine().bin(X, features, edges, expected)
    found = np.empty_like(expected)
    make_numba_engine(n_threads).bin(X, features, edges, found)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize("n_columns", [1, 3, 6])
@pytest.mark.parametrize("n_rows", [1, 300])
def test_engines_score_the_same(make_numba_engine, n_threads, n_columns, n_rows):
    generator = np.random.default_rng(7)
    X = generator.normal(size=(n_rows, 5))
    X[generator.random(X.shape) < 0.1] = np.nan
    features = np.array([4, 0, 2])
    groups = [np.linspace(-1, 1, 5), np.array([-np.inf, 0.0]), np.linspace(-2, 2, 300)]
    offsets = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    edges = BinEdges(np.concatenate(groups), offsets)
    tables = generator.normal(size=(edges.cell_offsets[-1], n_columns))
    engine, twin = make_numba_engine(n_threads), NumpyEngine()
    expected = twin.gather(bin_columns(X, features, edges, twin), tables)
    assert same_bits(twin.score(X, features, edges, tables), expected)
    assert same_bits(engine.score(X, features, edges, tables), expected)


def test_small_problems_need_no_compiler(run_python):
    code = "from mbkl.engine import choose_engine; print(type(choose_engine(299_999)).__name__)"
    assert run_python(code).stdout.strip() == "NumpyEngine"


def test_large_problems_are_compiled(make_numba_engine):
    engine = choose_engine(10**9, n_jobs=3)
    assert isinstance(engine, make_numba_engine)
    assert engine.n_threads == 3


def test_without_numba_everything_still_runs(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "mbkl.engine.numba_engine", raising=False)
    assert isinstance(choose_engine(10**9), NumpyEngine)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_starts_threads_of_its_own(run_python):
    code = """
import os, signal, warnings
import numpy as np
from mbkl.engine import numba_engine
from mbkl.engine.codes import DenseCodes
warnings.simplefilter("ignore")
numba_engine._SMALLEST_SHARE = 1
engine = numba_engine.NumbaEngine(2)
codes = DenseCodes(np.zeros((4, 50), dtype=np.uint8), np.arange(5) * 2)
tables = np.ones((8, 1))
engine.gather(codes, tables)
child = os.fork()
if child == 0:
    signal.alarm(60)  # instead of waiting for ever for threads that do not exist
    os._exit(0 if (engine.gather(codes, tables) == 4).all() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(code).stdout.strip() == "0"

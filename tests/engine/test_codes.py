"""Codes: what their operations mean, their two forms in memory and how cells are joined."""

import functools
import operator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.engine.codes import Codes, DenseCodes, SparseCodes, coarsening
from mbkl.engine.twins import TWINS

KINDS = pytest.mark.parametrize("kind", ["dense", "sparse"])
SHAPES = pytest.mark.parametrize(
    ("n_rows", "n_cells"),
    [
        pytest.param(130, (3, 5, 2, 9, 4), id="five groups"),
        pytest.param(5000, (3, 5, 2, 9), id="several blocks of rows"),
        pytest.param(3, (2,) * 11, id="fewer rows than groups"),
        pytest.param(1, (4, 2, 3), id="one row"),
        pytest.param(40, (7,), id="one group"),
    ],
)
COLUMNS = pytest.mark.parametrize("n_columns", [1, 3, 6])


def tables_for(codes, n_columns, seed=1):
    return np.random.default_rng(seed).normal(size=(codes.n_cells, n_columns))


def residuals_for(codes, n_columns, seed=2):
    return np.random.default_rng(seed).integers(-(2**40), 2**40, size=(codes.n_rows, n_columns))


# --- The two hot operations ---


@KINDS
@SHAPES
@COLUMNS
def test_gather_is_the_sum_of_table_entries(loops, make_codes, kind, n_rows, n_cells, n_columns):
    codes = replace(make_codes(n_rows, n_cells, kind=kind), loops=loops)
    tables = tables_for(codes, n_columns)
    values = codes.dense().values.astype(int)
    expected = sum(tables[codes.offsets[g] + values[g]] for g in range(codes.n_groups))
    np.testing.assert_allclose(codes.gather(tables), expected, atol=1e-12)


@KINDS
@SHAPES
@COLUMNS
def test_histogram_is_the_sum_per_cell(loops, make_codes, kind, n_rows, n_cells, n_columns):
    codes = replace(make_codes(n_rows, n_cells, kind=kind), loops=loops)
    residuals = residuals_for(codes, n_columns)
    values = codes.dense().values.astype(int)
    expected = np.zeros((codes.n_cells, n_columns), dtype=np.int64)
    for group in range(codes.n_groups):
        np.add.at(expected, codes.offsets[group] + values[group], residuals)
    np.testing.assert_array_equal(codes.histogram(residuals), expected)


@KINDS
def test_counts_are_the_numbers_of_rows(loops, make_codes, kind):
    codes = replace(make_codes(kind=kind), loops=loops)
    values = codes.dense().values
    expected = [
        np.bincount(line, minlength=size)
        for line, size in zip(values, np.diff(codes.offsets), strict=True)
    ]
    np.testing.assert_array_equal(codes.counts(), np.concatenate(expected))


@KINDS
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_order_of_tables_and_residuals_does_not_matter(loops, make_codes, kind, order):
    codes = replace(make_codes(kind=kind), loops=loops)
    tables, residuals = tables_for(codes, 3), residuals_for(codes, 3)
    found = codes.gather(np.asarray(tables, order=order))
    assert found.tobytes() == codes.gather(tables).tobytes()
    found = codes.histogram(np.asarray(residuals, order=order))
    assert found.tobytes() == codes.histogram(residuals).tobytes()


# --- Some rows, some groups, fewer cells ---


@KINDS
def test_take_is_indexing(loops, make_codes, kind):
    codes = replace(make_codes(kind=kind), loops=loops)
    rows = np.array([5, 0, 129, 5, 77])
    taken = codes.take(rows)
    assert (taken.n_rows, taken.loops) == (5, loops)
    np.testing.assert_array_equal(taken.dense().values, codes.dense().values[:, rows])


@KINDS
@pytest.mark.parametrize("n_columns", [1, 3])
def test_no_rows_are_no_trouble(loops, make_codes, kind, n_columns):
    codes = replace(make_codes(kind=kind), loops=loops).take(np.array([], dtype=np.intp))
    assert codes.gather(tables_for(codes, n_columns)).shape == (0, n_columns)
    sums = codes.histogram(residuals_for(codes, n_columns))
    np.testing.assert_array_equal(sums, np.zeros((codes.n_cells, n_columns)))


@KINDS
@pytest.mark.parametrize("n_columns", [1, 3])
def test_no_groups_score_zero(loops, make_codes, kind, n_columns):
    codes = replace(make_codes(n_rows=6, n_cells=(), kind=kind), loops=loops)
    scores = codes.gather(np.empty((0, n_columns)))
    np.testing.assert_array_equal(scores, np.zeros((6, n_columns)))
    assert codes.histogram(residuals_for(codes, n_columns)).shape == (0, n_columns)


@KINDS
@pytest.mark.parametrize("share_kept", [0.0, 0.4, 1.0])
def test_coarsen_joins_neighbouring_cells(loops, make_codes, kind, share_kept):
    codes = replace(make_codes(kind=kind), loops=loops)
    generator = np.random.default_rng(3)
    keep = generator.random(codes.n_cells - codes.n_groups) < share_kept
    plan = coarsening(codes.offsets, keep)
    coarse = codes.coarsen(plan)
    values, new_values = codes.dense().values, coarse.dense().values
    np.testing.assert_array_equal(coarse.offsets, plan.offsets)
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


@KINDS
@pytest.mark.parametrize("groups", [[0, 1, 2, 3, 4], [3, 0], []])
def test_groups_are_kept_with_their_cells(make_codes, kind, groups):
    codes, groups = make_codes(kind=kind), np.array(groups, dtype=np.intp)
    kept = codes.keep_groups(groups)
    np.testing.assert_array_equal(kept.dense().values, codes.dense().values[groups])
    np.testing.assert_array_equal(np.diff(kept.offsets), np.diff(codes.offsets)[groups])


def test_renumbered_codes_have_the_new_numbers_of_their_cells(loops, make_codes):
    codes = replace(make_codes(), loops=loops)
    groups, offsets = np.array([3, 1]), np.array([0, 300, 600])
    numbers = np.random.default_rng(0).integers(300, size=codes.n_cells).astype(np.uint16)
    renumbered = codes.renumbered(groups, numbers, offsets)
    cells = codes.offsets[groups, None] + codes.values[groups]
    np.testing.assert_array_equal(renumbered.values, numbers[cells])
    assert renumbered.values.dtype == np.uint16
    assert renumbered.offsets is offsets


# --- Their forms ---


@KINDS
def test_sizes(make_codes, kind):
    codes = make_codes(n_rows=20, n_cells=(3, 4), kind=kind)
    assert (codes.n_rows, codes.n_groups, codes.n_cells) == (20, 2, 7)


def test_dense_codes_store_every_value(make_codes):
    assert make_codes(n_rows=20, n_cells=(3, 4)).values.size == 40


def test_sparse_codes_store_what_differs_from_zero(make_codes):
    codes = make_codes(n_rows=20, n_cells=(3, 4), kind="sparse")
    different = codes.dense().values != codes.zero_codes[:, None]
    rows, cells, groups = codes.entries
    np.testing.assert_array_equal(rows, np.nonzero(different.T)[0])
    np.testing.assert_array_equal(groups, np.nonzero(different.T)[1])
    np.testing.assert_array_equal(cells - codes.offsets[groups], codes.dense().values[groups, rows])
    np.testing.assert_array_equal(codes.zero_cells, codes.offsets[:-1] + codes.zero_codes)


def test_the_dense_form_fills_in_the_code_of_zero():
    rows, cells, zero_codes = np.array([[2, 0], [0, 5], [1, 2]])
    codes = SparseCodes.of(rows, cells, 3, zero_codes, np.array([0, 2, 6]), TWINS)
    np.testing.assert_array_equal(codes.dense().values, [[1, 1, 0], [3, 2, 2]])


@KINDS
def test_the_dense_form_has_the_same_loops(loops, make_codes, kind):
    codes = replace(make_codes(kind=kind), loops=loops)
    assert codes.dense().loops is loops


def test_dense_codes_are_their_own_dense_form(make_codes):
    codes = make_codes()
    assert codes.dense() is codes


@KINDS
def test_numbers_of_codes_in_memory_stay_here(make_codes, kind):
    codes, array = make_codes(kind=kind), np.ones(3)
    assert codes.place(array) is array
    assert codes.row_dtype(100) == np.float64
    assert not codes.many_at_once


def test_the_twins_are_the_default(make_codes):
    assert make_codes().loops is TWINS
    assert "loops" not in repr(make_codes(n_rows=2))


@given(st.lists(st.lists(st.booleans(), max_size=6), max_size=5))
def test_coarsening_counts_kept_boundaries(groups):
    offsets = np.concatenate([[0], np.cumsum([len(kept) + 1 for kept in groups])]).astype(np.int64)
    plan = coarsening(offsets, np.array(functools.reduce(operator.iadd, groups, []), dtype=bool))
    expected = [np.concatenate([[0], np.cumsum(kept)]) for kept in groups]
    np.testing.assert_array_equal(plan.new_codes, np.concatenate([[], *expected]))
    with_boundary = [group for group, kept in enumerate(groups) if any(kept)]
    np.testing.assert_array_equal(plan.groups, with_boundary)
    n_cells = [sum(groups[group]) + 1 for group in with_boundary]
    np.testing.assert_array_equal(np.diff(plan.offsets), n_cells)


@pytest.mark.parametrize(("n_kept", "dtype"), [(255, np.uint8), (256, np.uint16)])
def test_coarse_codes_have_the_smallest_type(n_kept, dtype):
    keep = np.arange(299) < n_kept
    assert coarsening(np.array([0, 300]), keep).dtype == dtype


def test_codes_cannot_be_changed_by_accident(make_codes):
    with pytest.raises(AttributeError):
        make_codes().values = None
    assert isinstance(make_codes(), DenseCodes)
    assert isinstance(make_codes(), Codes)

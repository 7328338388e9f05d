"""Codes: their types, their two forms and how cells are joined."""

import functools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.engine.codes import DenseCodes, SparseCodes, coarsening, densify, smallest_code_dtype


@pytest.mark.parametrize(
    ("n_cells", "dtype"),
    [
        (1, np.uint8),
        (256, np.uint8),
        (257, np.uint16),
        (65_536, np.uint16),
        (65_537, np.uint32),
        (70_001, np.uint32),
    ],
)
def test_smallest_type_that_numbers_the_cells(n_cells, dtype):
    assert smallest_code_dtype(n_cells) == dtype
    assert np.iinfo(dtype).max >= n_cells - 1


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_sizes(make_codes, kind):
    codes = make_codes(n_rows=20, n_cells=(3, 4), kind=kind)
    assert (codes.n_rows, codes.n_groups, codes.n_cells) == (20, 2, 7)


def test_dense_codes_store_every_value(make_codes):
    assert make_codes(n_rows=20, n_cells=(3, 4)).n_stored == 40


def test_sparse_codes_store_what_differs_from_zero(make_codes):
    codes = make_codes(n_rows=20, n_cells=(3, 4), kind="sparse")
    different = densify(codes).values != codes.zero_codes[:, None]
    assert codes.n_stored == different.sum()
    np.testing.assert_array_equal(codes.groups, np.nonzero(different)[0])
    np.testing.assert_array_equal(codes.rows, np.nonzero(different)[1])
    np.testing.assert_array_equal(codes.zero_cells, codes.offsets[:-1] + codes.zero_codes)


def test_densify_fills_in_the_code_of_zero():
    codes = SparseCodes(
        indptr=np.array([0, 1, 2]),
        rows=np.array([2, 0], dtype=np.int32),
        values=np.array([0, 3], dtype=np.uint8),
        zero_codes=np.array([1, 2]),
        offsets=np.array([0, 2, 6]),
        n_rows=3,
    )
    np.testing.assert_array_equal(densify(codes).values, [[1, 1, 0], [3, 2, 2]])


def test_densify_leaves_dense_codes_alone(make_codes):
    codes = make_codes()
    assert densify(codes) is codes


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

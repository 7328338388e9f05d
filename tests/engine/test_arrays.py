"""Arrays of any kind, and sums that do not depend on the order of their terms."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mbkl.engine.arrays import (
    cast,
    exact_sum,
    exact_total,
    group_sums,
    index_for,
    is_numpy,
    look_up,
    namespace,
    offsets_of,
    running_sum,
    smallest_code_dtype,
    to_fixed_point,
    to_host,
    total_of,
)

values = st.floats(-1e300, 1e300, allow_nan=False)


def tensor(array):
    """Return a tensor of Torch, or skip where there is none."""
    return pytest.importorskip("torch", reason="Torch is not installed.").as_tensor(array)


# --- Sums in any order ---


@given(st.lists(values, min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_order_does_not_matter(terms, random):
    shuffled = terms.copy()
    random.shuffle(shuffled)
    first = exact_sum(np.array(terms)[:, None])
    second = exact_sum(np.array(shuffled)[:, None])
    assert first.tobytes() == second.tobytes()


@given(arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=values))
def test_each_term_is_rounded_by_half_a_unit_at_most(terms):
    integers, unit = to_fixed_point(terms)
    assert (np.abs(integers * unit - terms) <= unit / 2).all()


@given(arrays(np.float64, st.tuples(st.integers(1, 40), st.just(1)), elements=values))
def test_sum_is_near_the_true_one(terms):
    _, unit = to_fixed_point(terms)
    true = math.fsum(terms[:, 0])
    found = float(exact_sum(terms)[0])
    assert abs(found - true) <= len(terms) * unit[0] / 2 + abs(true) * 1e-15


@pytest.mark.parametrize("n_rows", [1, 2, 3, 1000, 1024, 1025])
@pytest.mark.parametrize("largest", [1.0, 1.999, 3.0, 1e-300, 1e300])
@pytest.mark.parametrize("sign", [1, -1])
def test_twice_the_sum_fits_in_64_bits(n_rows, largest, sign):
    integers, unit = to_fixed_point(np.full((n_rows, 1), sign * largest))
    total = sum(int(value) for value in integers[:, 0])
    assert abs(2 * total) < 2**63
    assert total * float(unit[0]) == pytest.approx(n_rows * sign * largest, rel=1e-9)


@pytest.mark.parametrize("n_rows", [2, 1000])
def test_most_of_the_64_bits_are_used(n_rows):
    integers, _ = to_fixed_point(np.full((n_rows, 1), 1.0))
    assert abs(int(integers.sum())) > 2**58


@given(arrays(np.float64, (7, 2), elements=values))
def test_unit_is_a_power_of_two(terms):
    _, unit = to_fixed_point(terms)
    assert (np.frexp(unit)[0] == 0.5).all()


@pytest.mark.parametrize("tiny", [0.0, 5e-324, 1e-310])
def test_tiny_columns_stay_finite(tiny):
    terms = np.array([[tiny, 1.0], [tiny, -0.5]])
    total = exact_sum(terms)
    assert total[0] == pytest.approx(2 * tiny, abs=1e-300)
    assert total[1] == 0.5


def test_columns_have_units_of_their_own():
    _, unit = to_fixed_point(np.array([[1e-12, 1e12]]))
    assert unit[1] / unit[0] > 1e20


def test_no_rows_sum_to_zero():
    np.testing.assert_array_equal(exact_sum(np.empty((0, 2))), [0.0, 0.0])


def test_a_total_is_the_sum_of_one_column():
    terms = np.random.default_rng(0).normal(size=50)
    assert exact_total(terms) == exact_sum(terms[:, None])[0]
    assert isinstance(exact_total(terms), float)


def test_integers_and_unit_have_the_total_of_the_values():
    terms = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_array_equal(total_of(*to_fixed_point(terms)), exact_sum(terms))


def test_tensors_are_added_as_they_are():
    terms = tensor(np.array([[0.5, 1.0], [2.0, -4.0]], dtype=np.float32))
    same, unit = to_fixed_point(terms)
    assert same is terms
    assert unit.tolist() == [1.0, 1.0]
    assert exact_sum(terms).tolist() == [2.5, -3.0]
    assert exact_sum(terms).dtype == unit.dtype


# --- Arrays and tensors alike ---


def test_arrays_and_numbers_are_of_numpy():
    assert is_numpy(np.ones(2))
    assert is_numpy(1.5)
    assert namespace(np.ones(2)) is np


def test_tensors_have_a_module_of_their_own():
    torch = pytest.importorskip("torch", reason="Torch is not installed.")
    assert not is_numpy(torch.ones(2))
    assert namespace(torch.ones(2)) is torch


@pytest.mark.parametrize("place", [np.asarray, tensor], ids=["array", "tensor"])
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_group_sums_are_those_of_slices(place, sizes):
    offsets = offsets_of(np.array(sizes))
    numbers = np.arange(2.0 * offsets[-1]).reshape(-1, 2)
    expected = [numbers[a:b].sum(axis=0) for a, b in pairwise(offsets)]
    np.testing.assert_array_equal(to_host(group_sums(place(numbers), offsets)), expected)
    np.testing.assert_array_equal(to_host(running_sum(place(numbers))), numbers.cumsum(axis=0))


@pytest.mark.parametrize("place", [np.asarray, tensor], ids=["array", "tensor"])
def test_an_index_and_a_type_are_those_of_another_array(place):
    reference = place(np.arange(4, dtype=np.float32))
    chosen = reference[index_for(np.array([3, 0]), reference)]
    assert to_host(chosen).tolist() == [3.0, 0.0]
    assert cast(place(np.ones(2)), reference).dtype == reference.dtype
    assert cast(reference, reference) is reference


def test_entries_of_a_table_are_looked_up():
    table = np.array([5.0, 7.0])
    np.testing.assert_array_equal(look_up(table, np.array([1, 0, 1])), [7.0, 5.0, 7.0])


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

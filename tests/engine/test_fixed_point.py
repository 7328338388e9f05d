"""Sums that do not depend on the order of their terms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mbkl.engine.fixed_point import exact_sum, to_fixed_point

values = st.floats(-1e300, 1e300, allow_nan=False)


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

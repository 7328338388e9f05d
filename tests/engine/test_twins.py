"""What the loops over arrays mean: twins and compiled ones against the definitions.

Passes over codes are in test_codes, cells of rows in tests/maps.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from mbkl.engine.twins import (
    MOST_PACKED,
    ROWS_PACKED,
    TWINS,
    as_float32,
    exponential,
    has_one_weight,
    just_above,
)

WEIGHTS = {
    "equal": lambda n: np.full(n, 0.1),
    "unequal": lambda n: np.random.default_rng(1).random(n),
    "some zero": lambda n: np.where(np.arange(n) % 3, 0.3, 0.0),
    "all zero": np.zeros,
}
EVERY_WEIGHTS = pytest.mark.parametrize("kind", WEIGHTS)
EVERY_TYPE = pytest.mark.parametrize(
    ("dtype", "n_cells"), [(np.uint8, (3, 256, 2, 9)), (np.uint16, (3, 300, 2, 9))]
)


@EVERY_WEIGHTS
@EVERY_TYPE
def test_agreement_is_the_weight_of_equal_codes(loops, make_codes, dtype, n_cells, kind):
    values = make_codes(40, n_cells, dtype).values
    others = make_codes(25, n_cells, dtype, seed=1).values
    weights = WEIGHTS[kind](4)
    expected = np.tensordot(weights, values[:, :, None] == others[:, None, :], axes=1)
    np.testing.assert_allclose(loops.agreement(values, others, weights), expected, atol=1e-12)


@EVERY_WEIGHTS
def test_agreement_with_itself_is_symmetric(loops, make_codes, kind):
    values, weights = make_codes(530).values, WEIGHTS[kind](5)
    result = loops.agreement(values, values, weights)
    assert result.tobytes() == np.ascontiguousarray(result.T).tobytes()
    # The same codes in another array are no reason for another result.
    assert loops.agreement(values, values.copy(), weights).tobytes() == result.tobytes()


@EVERY_WEIGHTS
def test_agreement_of_no_rows(loops, make_codes, kind):
    values, weights = make_codes(6).values, WEIGHTS[kind](5)
    none = values[:, :0]
    assert loops.agreement(none, values, weights).shape == (0, 6)
    assert loops.agreement(values, none, weights).shape == (6, 0)
    assert loops.agreement(none, none, weights).shape == (0, 0)


def test_no_groups_do_not_agree(loops, make_codes):
    values = make_codes(5, n_cells=()).values
    np.testing.assert_array_equal(loops.agreement(values, values, np.empty(0)), np.zeros((5, 5)))
    np.testing.assert_array_equal(
        loops.city_block(np.empty((0, 5)), np.empty((0, 4))), np.zeros((5, 4))
    )


def test_city_block_is_the_usual_distance(loops):
    generator = np.random.default_rng(0)
    left, right = generator.normal(size=(6, 50)), generator.normal(size=(6, 33))
    for other in (left, right):
        expected = cdist(left.T, other.T, metric="cityblock")
        np.testing.assert_allclose(loops.city_block(left, other), expected, atol=1e-12)


def test_city_block_of_no_rows(loops):
    none, some = np.empty((3, 0)), np.ones((3, 4))
    assert loops.city_block(none, some).shape == (0, 4)
    assert loops.city_block(some, none).shape == (4, 0)
    assert loops.city_block(none, none).shape == (0, 0)


def test_a_distance_to_oneself_is_exactly_zero(loops):
    positions = np.random.default_rng(0).normal(size=(40, 20))
    assert not np.diag(loops.city_block(positions, positions)).any()


@EVERY_TYPE
@pytest.mark.parametrize("new_dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("groups", [[0, 1, 2, 3], [2, 0], [1, 1], []])
def test_renumber_looks_up_the_kept_groups(loops, make_codes, dtype, n_cells, groups, new_dtype):
    codes = make_codes(90, n_cells, dtype)
    groups = np.array(groups, dtype=np.intp)
    numbers = np.random.default_rng(2).integers(256, size=codes.n_cells).astype(new_dtype)
    expected = np.empty((groups.size, 90), dtype=new_dtype)
    for position, group in enumerate(groups):
        for row in range(90):
            expected[position, row] = numbers[codes.offsets[group] + codes.values[group, row]]
    found = loops.renumber(codes.values, codes.offsets, groups, numbers)
    assert found.dtype == new_dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("weights", "same"),
    [
        (np.full(3, 0.1), True),
        (np.array([0.1, 0.2]), False),
        (np.empty(0), True),
        (np.ones(2**16), True),
    ],
    ids=["equal", "unequal", "none", "too many to count"],
)
def test_equal_weights_are_recognised(weights, same):
    assert has_one_weight(weights) is same


def test_values_are_compared_as_float32():
    values = np.array([1.0 + 1e-12, 1e39, -1e39, np.nan])
    np.testing.assert_array_equal(as_float32(values), [1.0, np.inf, -np.inf, np.nan])


def test_just_above_is_the_first_value_on_the_right():
    thresholds = np.array([0.0, 1.0, -3.5])
    above = just_above(thresholds)
    assert (as_float32(above) > thresholds).all()
    between = thresholds + (above - thresholds) / 4
    np.testing.assert_array_equal(as_float32(between), thresholds)


# --- Growing ferns ---


def plain_gains(codes, order, residuals, starts, n_codes, ridge):
    """Return the gains of all cuts by the definition, one cell and code at a time."""
    gradient, curvature = residuals >> 32, residuals & 0xFFFFFFFF
    gains = np.full((len(codes), 256), -1.0)
    for feature, own in enumerate(codes):
        gains[feature, : n_codes[feature]] = 0.0
        for code in range(n_codes[feature]):
            for first, last in pairwise(starts):
                if last - first < 2:  # a cell of one row cannot be divided
                    continue
                above = own[order[first:last]] > code
                for side in (above, ~above):
                    g = gradient[first:last][side].sum(axis=0)
                    h = curvature[first:last][side].sum(axis=0)
                    gains[feature, code] += (g**2 / (h + ridge)).sum()
    return gains


@pytest.mark.parametrize("n_columns", [1, 3])
@given(
    n_rows=st.integers(1, 40),
    n_cells=st.integers(1, 9),
    ridge=st.floats(0.1, 1e4),
    seed=st.integers(0, 2**32 - 1),
)
def test_gains_are_those_of_the_definition(n_columns, n_rows, n_cells, ridge, seed):
    generator = np.random.default_rng(seed)
    n_codes = np.array([2, 5, 256])
    codes = generator.integers(0, n_codes[:, None], (3, n_rows)).astype(np.uint8)
    order = generator.permutation(n_rows)
    starts = np.array([0, *np.sort(generator.integers(0, n_rows + 1, n_cells - 1)), n_rows])
    g, h = generator.integers([[[-4096]], [[0]]], 4096, (2, n_rows, n_columns))
    residuals, none = (g << 32) + h, np.zeros(3, np.int64)
    expected = plain_gains(codes, order, residuals, starts, n_codes, ridge)
    cells = (np.arange(3), order, residuals, starts)
    found, cuts = TWINS.best_cuts(codes, *cells, n_codes, none, none, ridge)
    np.testing.assert_allclose(found, expected.max(axis=1), rtol=1e-12)
    # Of cuts that are as good but for rounding, any.
    np.testing.assert_allclose(expected[np.arange(3), cuts], found, rtol=1e-12)


def test_shifted_codes_are_coarser_codes():
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 200, (2, 90)).astype(np.uint8)
    residuals = generator.integers(0, 2**40, (90, 1))
    order, starts = generator.permutation(90), np.array([0, 50, 90])
    shifts, moves = np.array([3, 4]), np.array([5, 0])
    coarse = ((codes + moves[:, None]) >> shifts[:, None]).astype(np.uint8)
    n_coarse, none = ((199 + moves) >> shifts) + 1, np.zeros(2, np.int64)
    cells, n_codes = (np.arange(2), order, residuals, starts), np.array([200, 200])
    found = TWINS.best_cuts(codes, *cells, n_codes, shifts, moves, 1.0)
    same = TWINS.best_cuts(coarse, *cells, n_coarse, none, none, 1.0)
    np.testing.assert_array_equal(found, same)


def test_features_that_are_not_asked_do_not_count():
    generator = np.random.default_rng(0)
    codes, n_codes = generator.integers(0, 9, (4, 60)).astype(np.uint8), np.full(4, 9)
    residuals, order = generator.integers(0, 2**40, (60, 2)), np.arange(60)
    cells, none = (order, residuals, np.array([0, 20, 60])), np.zeros(4, np.int64)
    gains, cuts = TWINS.best_cuts(codes, np.arange(4), *cells, n_codes, none, none, 1.0)
    asked = np.array([3, 1])
    found = TWINS.best_cuts(codes, asked, *cells, n_codes, none[:2], none[:2], 1.0)
    np.testing.assert_array_equal(found, (gains[asked], cuts[asked]))


@pytest.mark.parametrize("n_columns", [1, 4])
def test_packed_sums_are_sums_of_both_halves(loops, n_columns):
    generator = np.random.default_rng(0)
    n_rows, n_cells = ROWS_PACKED + 7, 5
    g = generator.integers(-MOST_PACKED, MOST_PACKED, (n_rows, n_columns), endpoint=True)
    h = generator.integers(0, MOST_PACKED, (n_rows, n_columns), endpoint=True)
    cells = generator.integers(n_cells, size=n_rows).astype(np.uint16)
    expected = np.zeros((n_cells, n_columns, 2), np.int64)
    np.add.at(expected, cells, np.stack([g, h], axis=-1))
    packed = ((g << 16) + h).astype(np.int32)
    np.testing.assert_array_equal(loops.histogram_packed(cells, packed, n_cells), expected)


@pytest.mark.parametrize("n_columns", [1, 4])
@pytest.mark.parametrize("sign", [-1, 1])
def test_packed_sums_of_the_largest_residuals_do_not_overflow(loops, n_columns, sign):
    n_rows = 3 * ROWS_PACKED + 1
    packed = np.full((n_rows, n_columns), (sign * MOST_PACKED << 16) + MOST_PACKED, np.int32)
    sums = loops.histogram_packed(np.zeros(n_rows, np.uint16), packed, 1)
    assert (sums == n_rows * MOST_PACKED * np.array([sign, 1])).all()


@pytest.mark.parametrize("weight", [1.0, 3.0, 1e6, 1e30])
def test_residuals_that_are_too_large_are_cut_off(loops, weight):
    gradient = np.array([[-1.0, 0.25], [0.5, -0.125]], np.float32) * np.float32(weight)
    packed, units = np.empty((2, 2), np.int32), (np.float32(2**13), np.float32(2**14))
    ones = np.ones(2, np.float32)
    largest = loops.pack_residuals(gradient, np.abs(gradient), ones, units, packed)
    assert largest == (np.abs(gradient).max(),) * 2
    exact = gradient.astype(float)
    np.testing.assert_array_equal(
        packed >> 16, np.rint(exact * 2**13).clip(-MOST_PACKED, MOST_PACKED)
    )
    np.testing.assert_array_equal(
        packed & 0xFFFF, np.minimum(np.rint(np.abs(exact) * 2**14), MOST_PACKED)
    )


@given(st.floats(-87, 87, width=32))
def test_exponentials_are_those_of_numpy(value):
    found = exponential(np.array([value], np.float32))
    np.testing.assert_allclose(found, np.exp(np.float64(value)), rtol=2e-7)


def test_exponentials_beyond_the_largest_are_that_of_the_largest():
    found = exponential(np.array([87.0, 1e30, -87.0, -1e30], np.float32))
    assert found[0] == found[1] < np.finfo(np.float32).max
    assert found[2] == found[3] > 0


def test_a_cell_is_a_leading_digit_and_which_codes_are_above_their_cuts(loops, make_codes):
    values, leading = make_codes(50).values, np.arange(50, dtype=np.uint8) % 2
    cells = np.empty(50, np.uint16)
    features, cuts = np.array([3, 0, 3]), np.array([4, 1, 7])
    loops.fern_cells(values, features, cuts, np.zeros((3, 256), bool), leading, cells)
    for row in range(50):
        digits = [leading[row], *(values[features, row] > cuts).astype(int)]
        assert cells[row] == int("".join(map(str, digits)), base=2)


def test_a_stump_without_a_cut_asks_whether_the_code_is_in_its_set(loops, make_codes):
    values, leading = make_codes(50).values, np.zeros(50, np.uint8)
    cells, members = np.empty(50, np.uint16), np.zeros((1, 256), bool)
    members[0, [0, 2]] = True
    loops.fern_cells(values, np.array([3]), np.array([-1]), members, leading, cells)
    np.testing.assert_array_equal(cells, np.isin(values[3], [0, 2]))


def test_a_table_is_added_by_cell(loops):
    cells, table = np.array([2, 0, 2], np.uint16), np.arange(6, dtype=np.float32).reshape(3, 2)
    scores = np.ones((3, 2), np.float32)
    loops.add_table(cells, table, scores)
    np.testing.assert_array_equal(scores, [[5, 6], [1, 2], [5, 6]])


def test_some_codes_of_some_rows(loops, make_codes):
    values = make_codes(20).values
    taken = loops.take_some(values, np.array([4, 1]), np.array([3, 3, 0]))
    np.testing.assert_array_equal(taken, values[[4, 1]][:, [3, 3, 0]])

"""What the loops over arrays mean: twins and compiled ones against the definitions.

Passes over codes are in test_codes and test_bundles, cells of rows in tests/maps.
"""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mbkl.engine.twins import as_float32, has_one_weight, just_above

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
        (np.ones(2**16), False),
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

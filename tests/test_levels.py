"""Levels of frames as numbers."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from mbkl.levels import (
    _counted,
    chosen_columns,
    counts_of,
    learn_levels,
    names_among,
    numbers_as_levels,
    to_numbers,
)


def learned(X, wanted="from_dtype"):
    return learn_levels(X, wanted, list(X.columns))


FRAME = pd.DataFrame(
    {
        "age": [31, 52, 8],
        "town": ["Rome", None, "Bonn"],
        "member": [True, False, True],
        "maybe": pd.array([True, None, False], dtype="boolean"),
        "size": pd.Categorical(["S", "L", None], categories=["S", "M", "L"], ordered=True),
        "rooms": pd.array([1, None, 3], dtype="Int64"),
        "grade": pd.Categorical([2.0, 1.0, 2.0]),
    }
)
LEVELS = [None, ["Bonn", "Rome"], [False, True], [False, True], ["S", "L"], None, [1, 2]]
NUMBERS = [
    [31, 1, 1, 1, 0, 1, 1],
    [52, np.nan, 0, np.nan, 1, np.nan, 0],
    [8, 0, 1, 0, np.nan, 3, 1],
]


def test_columns_of_pandas():
    numbers, levels = learned(FRAME)
    assert levels == LEVELS
    np.testing.assert_array_equal(numbers, NUMBERS)


def test_columns_of_polars():
    frame = pl.from_pandas(FRAME.drop(columns="grade"))
    numbers, levels = learned(frame.with_columns(pl.col("size").cast(pl.Enum(["S", "M", "L"]))))
    assert levels == LEVELS[:-1]
    np.testing.assert_array_equal(numbers, np.array(NUMBERS)[:, :-1])


def test_categories_of_polars():
    frame = pl.DataFrame({"a": pl.Series(["x", None, "y"], dtype=pl.Categorical)})
    numbers, levels = learned(frame)
    assert levels == [["x", "y"]]
    np.testing.assert_array_equal(numbers, [[0], [np.nan], [1]])


def test_missing_and_new_levels():
    frame = pd.DataFrame({"town": ["Oslo", "", None, np.nan, "Rome"]})
    numbers = to_numbers(frame, [["Bonn", "Rome"]])
    np.testing.assert_array_equal(numbers, [[2], [np.nan], [np.nan], [np.nan], [1]])


def test_plain_numbers_are_left_alone():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    X = np.eye(2)
    for given in (frame, X, pl.from_pandas(frame)):
        assert learn_levels(given, "from_dtype", None) == (given, None) or given is X
        assert to_numbers(given, [None, None]) is given
    assert learn_levels(X, "from_dtype", None)[1] is None


def test_numbers_become_levels_if_asked_for():
    numbers, levels = learn_levels(np.array([[10.0, 0.1], [30.0, 0.2], [10.0, 0.1]]), [0, 1], None)
    assert levels == [[10, 30], [float(np.float32(0.1)), float(np.float32(0.2))]]
    np.testing.assert_array_equal(numbers, [[0, 0], [1, 1], [0, 0]])
    # float32 and float64 have the same levels.
    single = np.array([[30.0, 0.2]], dtype=np.float32)
    np.testing.assert_array_equal(to_numbers(single, levels), [[1, 1]])


def test_single_precision_stays():
    frame = pd.DataFrame({"a": np.ones(2, np.float32), "b": ["x", "y"]})
    assert learned(frame)[0].dtype == np.float32


def test_a_column_of_missing_values_alone():
    numbers, levels = learned(pd.DataFrame({"a": [None, None]}))
    assert levels == [[]]
    assert np.isnan(numbers).all()
    assert counts_of(levels).tolist() == [1]


def test_an_array_of_objects():
    X = np.array([["a", 1.5], ["b", None]], dtype=object)
    numbers, levels = learn_levels(X, [0], None)
    assert levels == [["a", "b"], None]
    np.testing.assert_array_equal(numbers, [[0, 1.5], [1, np.nan]])


def test_lists_of_numbers_and_text():
    numbers, levels = learn_levels([["a", 1.5], ["b", None]], [0], None)
    assert levels == [["a", "b"], None]
    np.testing.assert_array_equal(numbers, [[0, 1.5], [1, np.nan]])
    np.testing.assert_array_equal(to_numbers([["b", 2.5]], levels), [[1, 2.5]])


def test_objects_that_are_numbers():
    frame = pd.DataFrame({"a": pd.Series([1, None, 2.5], dtype=object), "b": ["x", "y", "x"]})
    assert learned(frame)[1] == [None, ["x", "y"]]


def test_levels_that_are_one_in_single_precision():
    numbers, levels = learned(pd.DataFrame({"a": pd.Categorical([0.5, 0.5 + 1e-12, 2.0])}))
    assert levels == [[0.5, 2]]
    np.testing.assert_array_equal(numbers, [[0], [0], [1]])


def test_decimals_are_numbers():
    frame = pd.DataFrame({"a": [Decimal("1.5"), None, Decimal("2.25")]})
    numbers, levels = learned(frame)
    assert levels == [None]
    np.testing.assert_array_equal(numbers, [[1.5], [np.nan], [2.25]])
    assert learned(frame, ["a"])[1] == [[1.5, 2.25]]
    (levels,) = learned(pd.DataFrame({"a": pd.Categorical([Decimal("1.5"), Decimal(2)])}))[1]
    assert levels == [1.5, 2]
    assert [type(level) for level in levels] == [float, int]


@pytest.mark.parametrize("frame", [pd.DataFrame(index=range(10)), pl.DataFrame()])
def test_frames_without_columns(frame):
    with pytest.raises(ValueError, match="X has no columns"):
        learned(frame)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (["a", 1], TypeError, "column 'a' mixes types; make all its values text"),
        ([datetime.date(2020, 1, 1)] * 2, ValueError, "holds date; turn it to text or numbers"),
        (pd.to_datetime(["2020-01-01"] * 2), ValueError, "holds Timestamp.*TableEncoder"),
        (
            pd.Categorical([1.0, np.inf]),
            ValueError,
            "X contains infinity, as a level of column 'a'",
        ),
        (pd.interval_range(0, 2), ValueError, "Column 'a' holds Interval; turn it to text"),
    ],
)
def test_values_that_are_no_levels(values, error, message):
    with pytest.raises(error, match=message):
        learned(pd.DataFrame({"a": values}))


def test_text_that_is_not_to_be_a_category():
    with pytest.raises(ValueError, match="column 'town' holds text, not numbers; convert it"):
        learned(FRAME[["age", "town"]], None)
    numbers, levels = learned(FRAME[["age", "member"]], None)
    assert levels == [None, None]
    np.testing.assert_array_equal(numbers[:, 1], [1, 0, 1])


@pytest.mark.parametrize(
    ("levels", "values", "message"),
    [
        (["a", "b"], [1, 2], "holds number, but text in training; convert it to text"),
        ([1, 2], ["1", "2"], "holds text, but number in training; convert it to number"),
    ],
)
def test_another_kind_of_values_than_in_training(levels, values, message):
    with pytest.raises(ValueError, match=message):
        to_numbers(pd.DataFrame({"a": values}), [levels])


def test_booleans_may_come_as_numbers():
    numbers = to_numbers(pd.DataFrame({"a": [1.0, 0.0, np.nan]}), [[False, True]])
    np.testing.assert_array_equal(numbers[:, 0], [1, 0, np.nan])


@pytest.mark.parametrize("wanted", [["b"], [1], [False, True], np.array([1])])
def test_names_indices_and_masks(wanted):
    assert chosen_columns(wanted, 2, ["a", "b"]).tolist() == [False, True]
    assert chosen_columns([], 2, None).tolist() == [False, False]


@pytest.mark.parametrize(
    ("wanted", "names", "message"),
    [
        (["c"], ["a", "b"], "has 'c', which is no column of X; it has a, b"),
        (["a"], None, "has 'a', which is no column of X; it has no names: use indices or a mask"),
        ([True], None, "of 2 booleans, one for each column"),
        ([2], None, "has 2, which is no column of X; it has 0, 1"),
        ([-1], None, "has -1, which is no column"),
        ([0.5], None, "must be 'from_dtype', None, or a list"),
        ([[0, 1]], None, "must be 'from_dtype', None, or a list"),
    ],
)
def test_columns_that_do_not_exist(wanted, names, message):
    with pytest.raises(ValueError, match=message):
        chosen_columns(wanted, 2, names)


def test_sparse_matrices_have_no_categories():
    X = sparse.csr_array(np.eye(2))
    assert learn_levels(X, "from_dtype", None)[0] is X
    with pytest.raises(ValueError, match="needs a dense X or a frame"):
        learn_levels(X, [0], None)


@pytest.mark.parametrize("bound", [0.5, -2.0, 2e6])
def test_level_numbers_of_rows_that_are_read_by_blocks(bound):
    ranges = np.array([min(bound, 0.0)]), np.array([bound])
    with pytest.raises(ValueError, match="no level number; rows that are read by blocks"):
        numbers_as_levels(ranges, np.array([True]))
    assert numbers_as_levels((np.array([np.nan]),) * 2, np.array([True])) == [[]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("shift", [0, 2**60])
def test_whole_numbers_are_counted_as_they_would_be_sorted(dtype, shift):
    generator = np.random.default_rng(0)
    values = generator.integers(0, 100, size=60).astype(dtype)
    if np.dtype(dtype).itemsize == 8:
        values += dtype(shift)
    for has_missing in (False, np.dtype(dtype).kind == "f"):
        values[: 5 * has_missing] = np.nan if has_missing else values[0]
        different, place = _counted(values)
        expected = np.unique(values, return_inverse=True)
        assert different.dtype == dtype
        np.testing.assert_array_equal(different, expected[0])
        np.testing.assert_array_equal(place, expected[1])


@pytest.mark.parametrize(
    "values", [[0.5, 1.0], [-1.0, 1e-17], [np.nan], [], [0.0, 1e9], [np.inf, 1.0], [-128.0, 1e300]]
)
def test_other_numbers_are_not_counted(values):
    assert _counted(np.array(values, dtype=float)) is None


def towns(n_rows=6_000, n_towns=600, seed=0):
    """Return rows with the number of a town, an amount and noise, and what each of them tells."""
    generator = np.random.default_rng(seed)
    town = generator.integers(n_towns, size=n_rows)
    amount = generator.integers(2_000, size=n_rows)
    X = np.column_stack([town, amount, generator.integers(1_000, size=n_rows)]).astype(float)
    return X, generator.normal(size=n_towns)[town], amount / 1_000


@pytest.mark.parametrize("kind", ["classes", "text", "many classes", "numbers", "several numbers"])
def test_numbers_that_are_names_are_told_from_amounts(kind):
    X, of_town, of_amount = towns()
    noise = np.random.default_rng(1).normal(size=len(X))
    y = {
        "classes": of_town + of_amount + noise > 1,
        "text": np.where(of_town + of_amount + noise > 1, "yes", "no"),
        "many classes": np.digitize(of_town + of_amount + noise, [-1, 0, 1, 2]),
        "numbers": of_town + of_amount + noise,
        "several numbers": np.column_stack([of_town + noise, of_amount]),
    }[kind]
    assert names_among(X, y).tolist() == [True, False, False]
    order = np.random.default_rng(2).permutation(len(X))
    assert names_among(X[order], y[order]).tolist() == [True, False, False]
    X[::7] = np.nan
    assert names_among(X, y).tolist() == [True, False, False]
    assert names_among(X.astype(np.float32), y).tolist() == [True, False, False]


def test_numbers_are_amounts_where_values_tell_nothing_of_their_own():
    X, of_town, of_amount = towns()
    assert not names_among(X, of_amount > 1).any()
    assert not names_among(X, np.random.default_rng(0).normal(size=len(X))).any()
    assert not names_among(X, np.zeros(len(X))).any()
    assert not names_among(X + 0.5, of_town > 0).any()
    assert not names_among(X[:500], of_town[:500] > 0).any()
    few = X.copy()
    few[:, 0] %= 200  # each value has a code of its own
    assert not names_among(few, few[:, 0] * 7919 % 5 == 0).any()
    rare, *_ = towns(n_towns=4_000)
    assert not names_among(rare, rare[:, 0] * 7919 % 5 == 0).any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_without_names_of_every_kind(dtype):
    X = np.zeros((2_000, 5), dtype)
    X[:, 1] = np.nan
    X[:, 2] = np.finfo(dtype).max
    X[::2, 2] = -np.finfo(dtype).max
    X[:, 3] = np.arange(2_000) % 256
    X[:, 4] = np.arange(2_000)  # an index
    for y in (X[:, 3] > 100, np.zeros(2_000), np.arange(2_000.0)):
        assert not names_among(X, y).any()
    assert not names_among(X[:0], y[:0]).any()
    assert not names_among(X[:, 3:4].astype(np.uint8), y).any()

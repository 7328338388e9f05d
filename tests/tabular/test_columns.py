"""Columns as numbers, labels and text; what is an index, and what is to be learned."""

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather
from sklearn.exceptions import NotFittedError

from mbkl.tabular import BadValueError, TableEncoder, read_frame, task_of
from mbkl.tabular.columns import index_names, is_number, is_text, to_numbers


def numbers(values, kind=None):
    return to_numbers(pa.chunked_array([pa.array(values, kind)]), "a")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None, 3], [1, np.nan, 3]),
        ([0.5, float("nan")], [0.5, np.nan]),
        ([True, False, None], [1, 0, np.nan]),
        ([date(1970, 1, 2), None], [1, np.nan]),
        ([date(1969, 12, 31)], [-1]),
        ([datetime(1970, 1, 1, 12)], [0.5]),
        ([datetime(1970, 1, 2, tzinfo=UTC)], [1]),
        ([time(0, 1, 0, 500_000)], [60.5]),
        ([timedelta(minutes=1)], [60]),
        (np.array([86_400_000_000_001], dtype="M8[ns]"), [1]),
        ([Decimal("1.25")], [1.25]),
        ([None, None], [np.nan, np.nan]),
        (["1", " 2e3 ".strip(), None], [1, 2000, np.nan]),
        ([2**60], [2.0**60]),
    ],
    ids=repr,
)
def test_what_can_be_a_number(values, expected):
    np.testing.assert_array_equal(numbers(values), expected)
    assert is_number(pa.chunked_array([values])) or is_text(pa.chunked_array([values]))


@pytest.mark.parametrize("kind", ["f4", "i1", "u8", "f8"])
def test_all_widths_of_numbers(kind):
    np.testing.assert_array_equal(numbers(np.array([1, 2], dtype=kind)), [1, 2])


def test_a_dictionary_of_numbers():
    column = pa.chunked_array([pa.array([5, 5, 7]).dictionary_encode()])
    assert is_number(column)
    np.testing.assert_array_equal(to_numbers(column, "a"), [5, 5, 7])


def test_text_in_place_of_a_number_has_a_row():
    with pytest.raises(BadValueError, match="row 2, column 'a': 'x1' is no number") as caught:
        numbers(["1", None, "x1", "y"])
    assert caught.value.row == 2


def test_infinity_has_a_row():
    with pytest.raises(BadValueError, match="row 1, column 'a': infinity"):
        numbers([1.0, float("-inf")])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_all_kinds_of_text(kind):
    assert is_text(pa.chunked_array([pa.array(["a"], kind)]))


@pytest.mark.parametrize("values", [[[1]], [{"a": 1}], [b"x"]])
def test_what_is_neither(values):
    column = pa.chunked_array([values])
    assert not is_number(column)
    assert not is_text(column)


# ---------------------------------------------------------------- index columns


NUMBERS = {"counted": range(40), "from one": range(1, 41), "with gaps": range(0, 400, 10)}


@pytest.fixture
def frame():
    """Rows whose order tells the label."""
    draw = np.random.default_rng(0)
    return pd.DataFrame({"a": draw.normal(size=40), "y": np.repeat(["no", "yes"], 20)})


@pytest.mark.parametrize("values", NUMBERS.values(), ids=list(NUMBERS))
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_first_columns_without_a_name(values, shuffled, name):
    values = np.random.default_rng(0).permutation(values) if shuffled else list(values)
    assert index_names(pa.table({name: values, "a": values})) == [name]
    assert index_names(pa.table({"a": values, name: values})) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([f"row {number}" for number in range(40)], True),
        ([float(number) for number in range(40)], True),
        ([*range(20), *range(20)], True),
        ([0.5 * number for number in range(40)], False),
        (["red", "blue"] * 20, False),
        ([1, 2, 3, 4] * 10, False),
        ([None, *range(39)], False),
    ],
)
def test_values_must_tell_rows_apart(values, expected):
    assert bool(index_names(pa.table({"Unnamed: 0": values, "a": [1] * 40}))) == expected


def test_an_index_saved_twice():
    columns = pa.table({"Unnamed: 0.1": [2, 1], "Unnamed: 0": [1, 2], "a": [5, 6]})
    assert index_names(columns) == ["Unnamed: 0.1", "Unnamed: 0"]


@pytest.mark.parametrize("name", [None, "key"])
def test_the_index_of_a_frame_in_memory(frame, name):
    shuffled = frame.sample(frac=1.0, random_state=0).rename_axis(name)
    encoder = TableEncoder().fit(shuffled[["a"]])
    assert encoder.get_feature_names_out().tolist() == ["a"]
    assert encoder.notes_ == []
    np.testing.assert_array_equal(encoder.transform(frame[["a"]])["a"], frame["a"])


def test_row_numbers_read_by_pandas(frame, tmp_path):
    frame.to_csv(tmp_path / "a.csv")
    encoder = TableEncoder().fit(pd.read_csv(tmp_path / "a.csv").drop(columns="y"))
    assert encoder.get_feature_names_out().tolist() == ["a"]
    assert "'Unnamed: 0' is left out" in encoder.notes_[0]
    assert encoder.transform(frame).shape == (40, 1)


@pytest.mark.parametrize("name", [None, "key"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_the_index_in_files(frame, tmp_path, name, ending):
    path = tmp_path / f"a.{ending}"
    shuffled = frame.sample(frac=1.0, random_state=0).rename_axis(name)
    if ending == "csv":
        shuffled.to_csv(path)
    elif ending == "parquet":
        shuffled.to_parquet(path)
    else:
        feather.write_feather(pa.Table.from_pandas(shuffled), path)
    found = read_frame(path, target="y")
    if ending == "csv" and name:  # nothing tells it from other columns
        assert found.names == ["key", "a"]
    else:
        assert found.names == ["a"]
        assert "is left out" in found.notes[-1]


def test_an_index_can_be_kept_or_be_the_target(frame, tmp_path):
    frame.set_index("y").to_parquet(tmp_path / "a.parquet")
    assert read_frame(tmp_path / "a.parquet", target="y").labels.tolist() == list(frame["y"])
    assert read_frame(tmp_path / "a.parquet", keep=["y"]).names == ["a", "y"]


def test_row_names_of_r(tmp_path):
    (tmp_path / "a.csv").write_text('"a" "y"\n"row 1" 1 u\n"row 2" 2 v\n')
    assert read_frame(tmp_path / "a.csv", target="y").columns.to_pydict() == {"a": [1, 2]}


# ---------------------------------------------------------------- tasks


DRAW = np.random.default_rng(0)

CLASSES = {
    "text": ["a", "b"] * 5,
    "text, all different": [f"key {number}" for number in range(50)],
    "booleans": [True, False],
    "categories of numbers": pd.Series([1.5, 2.5, 1.5]).astype("category"),
    "dates": [date(2020, 1, day) for day in range(1, 30)],
    "two numbers": [-1, 1],
    "two numbers, each once": [3, 7],
    "whole numbers in float64": [1.0, 2.0, 1.0, 2.0],
    "missing ones": [0, None, 1, 0],
    "marks of wine": DRAW.integers(3, 10, 100),
    "codes of 100 classes": np.repeat(np.arange(100), 6),
    "codes from 1": np.tile(np.arange(1, 27), 300),
    "one value": [5, 5, 5],
    "nothing": [None, None],
}
NUMBERS = {
    "fractions": [0.5, 1.0, 1.5] * 10,
    "fractions in float32": np.array([0.5, 1.0], dtype=np.float32),
    "prices": DRAW.integers(300, 20_000, 1_000),
    "few rows, all different": [10, 25, 31, 47],
    "counts": DRAW.poisson(30, 5_000),
    "ages": np.repeat(np.arange(17, 80), 30),
    "years": np.repeat(np.arange(1950, 2000), 30),
    "infinite ones": [1.0, np.inf, 2.0],
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    assert task_of(CLASSES[name]) == "classification"


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    assert task_of(NUMBERS[name]) == "regression"


@pytest.mark.parametrize("wrap", [list, np.asarray, pd.Series, lambda v: pa.chunked_array([v])])
def test_containers_of_all_kinds(wrap):
    assert task_of(wrap([0.5, 1.5])) == "regression"
    assert task_of(wrap(["a", "b"])) == "classification"


def test_the_order_and_missing_values_do_not_matter():
    prices = NUMBERS["prices"].astype(float)
    assert task_of(np.append(prices[::-1], np.nan)) == "regression"


# ---------------------------------------------------------------- TableEncoder


PEOPLE = {
    "age": [31, None, 8, 50],
    "town": ["Rome", "Bonn", "Rome", None],
    "flag": [True, False, True, True],
    "born": [date(1970, 1, 2), date(1970, 1, 1), None, date(1970, 1, 3)],
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=lambda m: m.__module__)
def test_frames_of_all_kinds_give_the_same(make):
    encoder = TableEncoder().fit(make(PEOPLE))
    expected = pd.DataFrame(
        {
            "age": [31, np.nan, 8, 50],
            "town": ["Rome", "Bonn", "Rome", None],
            "flag": [1.0, 0.0, 1.0, 1.0],
            "born": [1, 0, np.nan, 2],
        }
    )
    again = TableEncoder.from_rules(json.loads(json.dumps(encoder.rules_)))
    for own in (encoder, again):
        pd.testing.assert_frame_equal(own.transform(make(PEOPLE)), expected, check_dtype=False)
    assert encoder.get_feature_names_out().tolist() == list(PEOPLE)
    assert [rule["kind"] for rule in encoder.rules_] == ["number", "text", "number", "number"]


def test_the_order_of_columns_does_not_matter_and_others_are_ignored():
    frame = pd.DataFrame(PEOPLE)
    encoder = TableEncoder().fit(frame)
    mixed = frame[["town", "born", "flag", "age"]].assign(more="x")
    pd.testing.assert_frame_equal(encoder.transform(mixed), encoder.transform(frame))


def test_a_missing_column_is_named_with_a_remedy():
    encoder = TableEncoder().fit(pd.DataFrame(PEOPLE))
    with pytest.raises(ValueError, match="no column 'age'; did you mean 'Age'"):
        encoder.transform(pd.DataFrame(PEOPLE).rename(columns={"age": "Age"}))


def test_numbers_for_text_and_text_for_numbers():
    encoder = TableEncoder().fit(pa.table({"code": ["1", "2", "x", "x"], "n": [1, 2, 3, 4.5]}))
    new = encoder.transform(pa.table({"code": [2, 1], "n": ["7", "8.5"]}))
    assert new.to_numpy().tolist() == [["2", 7.0], ["1", 8.5]]
    with pytest.raises(BadValueError, match="row 1, column 'n': 'seven' is no number"):
        encoder.transform(pa.table({"code": ["1", "2"], "n": ["7", "seven"]}))


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([5] * 40, "'a' is always 5"),
        (["x"] * 40, "'a' is always 'x'"),
        ([None] * 40, "'a' is left out: it is empty"),
        (pa.array([None] * 40, pa.string()), "'a' is left out: it is empty"),
        (pa.array([None] * 40, pa.float64()), "'a' is empty"),
        (list(range(40)), "'a' counts the rows"),
        ([f"key {number}" for number in range(40)], "'a' is left out: 40 different texts"),
        ([f"key {number // 2 * 2}" for number in range(40)], None),
        ([f"key {min(number, 25)}" for number in range(40)], "'a' is left out: 26 different"),
        ([[1, 2]] * 40, "'a' is left out: its values"),
    ],
    ids=str,
)
def test_what_the_user_is_told(values, note):
    encoder = TableEncoder().fit(pa.table({"a": values, "b": [0.5, 1, 4, 2] * 10}))
    assert [note in found for found in encoder.notes_] == ([] if note is None else [True])
    left_out = note is not None and "left out" in note
    assert [rule["name"] for rule in encoder.rules_] == (["b"] if left_out else ["a", "b"])


@pytest.mark.parametrize("kind", [pa.null(), pa.string()])
def test_a_column_that_was_empty_may_hold_anything(kind):
    seen = pa.table({"remark": pa.array([None] * 4, kind), "n": [0.5, 1, 4, 2]})
    encoder = TableEncoder().fit(seen)
    assert encoder.transform(pa.table({"remark": ["late"], "n": [3.0]})).to_numpy().tolist() == [
        [3.0]
    ]


def test_missing_values_next_to_one_value_are_not_constant():
    encoder = TableEncoder().fit(pa.table({"a": [1, None, 1], "b": ["x", None, "x"]}))
    assert encoder.notes_ == []


def test_nothing_left_is_an_error():
    with pytest.raises(ValueError, match="No column is left"):
        TableEncoder().fit(pa.table({"key": [f"k{number}" for number in range(30)]}))


def test_a_frame_without_columns_is_an_error():
    with pytest.raises(ValueError, match="No column is left"):
        TableEncoder().fit(pd.DataFrame(index=[0, 1]))


def test_columns_of_the_same_name_are_an_error():
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="Duplicate column names"):
        TableEncoder().fit(frame)
    frame = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ValueError, match="Duplicate column names"):
        TableEncoder().fit(frame)


def test_columns_that_mix_types_are_an_error():
    with pytest.raises(TypeError, match=r"column a .*mixes types"):
        TableEncoder().fit(pd.DataFrame({"a": [1, "x"]}, dtype=object))


def test_infinity_is_an_error():
    with pytest.raises(BadValueError, match="column 'a': infinity"):
        TableEncoder().fit(pa.table({"a": [1.0, np.inf]}))


@pytest.mark.parametrize("rule", [{}, {"name": "a"}, {"name": "a", "kind": "one-hot"}, {"kind": 1}])
def test_rules_that_are_none(rule):
    with pytest.raises(ValueError, match="A rule needs"):
        TableEncoder.from_rules([rule])


def test_unfitted_use():
    with pytest.raises(NotFittedError):
        TableEncoder().transform(pd.DataFrame(PEOPLE))
    with pytest.raises(NotFittedError):
        TableEncoder().get_feature_names_out()

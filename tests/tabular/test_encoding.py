"""TableEncoder."""

import json
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from mbkl.tabular import BadValueError, TableEncoder

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

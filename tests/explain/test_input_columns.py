"""Columns as people know them."""

import numpy as np

from mbkl.explain.input_columns import InputColumn, input_columns


def test_levels_there_and_back():
    size = InputColumn("size", "category", ("S", "L"))
    assert [size.words(value) for value in (0, 1.0, np.nan, 2.0)] == [
        "S",
        "L",
        "missing",
        "missing",
    ]


def test_numbers_whole_ones_and_dates_in_words():
    row = np.array([0.1, 3.0, 18_000.0, np.nan], dtype=np.float32)
    kinds = ("number", "whole", "date", "number")
    words = [InputColumn("a", kind).words(value) for kind, value in zip(kinds, row, strict=True)]
    assert words == ["0.1", "3", "2019-04-14", "missing"]
    assert InputColumn("a", "date").words(18_000.9) == "2019-04-14"  # in the evening


def test_kinds_of_a_file_and_levels_of_the_model():
    kinds = {"age": "whole", "member": "category"}
    age, town, member, rest = input_columns(
        ["age", "town", "member", "rest"], [None, ["Rome"], None, None], kinds
    )
    assert (age.kind, rest.kind) == ("whole", "number")
    assert (town.kind, town.levels) == ("category", ("Rome",))
    assert member.levels == ("false", "true")


def test_whole_features_are_found():
    X = np.array([[1.0, 0.5], [np.nan, 2.0]])
    assert [column.kind for column in input_columns(["a", "b"], [None] * 2, X=X)] == [
        "whole",
        "number",
    ]

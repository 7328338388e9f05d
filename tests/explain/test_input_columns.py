"""Columns as people know them."""

import numpy as np
import pytest

from mbkl.explain.input_columns import InputColumn, columns_of_features, columns_of_rules

TOWN = InputColumn("town", (1, 2), "category", ("Rome", "Bonn"), True)
SIZE = InputColumn("size", (0,), "category", ("S", "L"))


@pytest.mark.parametrize("column", [TOWN, SIZE])
def test_levels_there_and_back(column):
    for level, words in ((0, column.levels[0]), (1, column.levels[1]), (None, "missing")):
        row = np.zeros(3)
        row[list(column.features)] = column.encoded(level)
        assert column.words(row) == words


def test_numbers_whole_ones_and_dates_in_words():
    row = np.array([0.1, 3.0, 18_000.0, np.nan], dtype=np.float32)
    kinds = ("number", "whole", "date", "number")
    columns = [InputColumn("a", (place,), kind) for place, kind in enumerate(kinds)]
    assert [column.words(row) for column in columns] == ["0.1", "3", "2019-04-14", "missing"]


def test_columns_of_an_encoder():
    kinds = {"age": "number", "town": "text", "member": "number"}
    rules = [{"name": name, "kind": kind} for name, kind in kinds.items()]
    age, town, member = columns_of_rules(
        rules, {"age": "whole", "member": "category"}, [None, ["Rome"], None]
    )
    assert (age.kind, age.features) == ("whole", (0,))
    assert (town.kind, town.levels, town.features) == ("category", ("Rome",), (1,))
    assert member.levels == ("false", "true")


def test_whole_features_are_found():
    X = np.array([[1.0, 0.5], [np.nan, 2.0]])
    assert [column.kind for column in columns_of_features(["a", "b"], [None] * 2, X)] == [
        "whole",
        "number",
    ]

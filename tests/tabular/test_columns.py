"""One column at a time."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from mbkl.tabular.columns import BadValueError, is_number, is_text, to_numbers


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

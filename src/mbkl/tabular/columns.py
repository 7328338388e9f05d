"""One column at a time: what kind it is, and how it becomes numbers, text or labels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

_SECONDS_PER_DAY = 86_400
_PLAIN_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


class BadValueError(ValueError):
    """A value that a column cannot hold.

    Parameters
    ----------
    row : int
        Its place in the column, from 0.
    column : str
    reason : str
        What is wrong and what to do.
    """

    def __init__(self, row: int, column: str, reason: str) -> None:
        super().__init__(f"row {row}, column '{column}': {reason}")
        self.row, self.column, self.reason = row, column, reason


def is_text(column: pa.ChunkedArray) -> bool:
    """Say whether a column holds text."""
    from pyarrow import types

    kind = _kind(column)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_number(column: pa.ChunkedArray) -> bool:
    """Say whether a column can be numbers: numbers, booleans, dates, times or nothing at all."""
    from pyarrow import types

    kind = _kind(column)
    tests = (_is_numeric, types.is_boolean, types.is_temporal, types.is_null)
    return any(test(kind) for test in tests)


def kinds_of(frame: pa.Table) -> dict[str, str]:
    """Return the kinds of columns that are more than numbers: whole ones, dates and booleans."""
    from pyarrow import types

    tests = {
        "whole": types.is_integer,
        "category": types.is_boolean,
        "date": lambda kind: types.is_date(kind) or types.is_timestamp(kind),
    }
    return {
        field.name: name
        for field in frame.schema
        for name, test in tests.items()
        if test(field.type)
    }


def is_measure(column: pa.ChunkedArray) -> bool:
    """Say whether a column holds numbers, and no categories of them."""
    return _is_numeric(column.type)


def _is_numeric(kind: pa.DataType) -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def is_whole(column: pa.ChunkedArray) -> bool:
    """Say whether a column holds whole numbers, and all of them."""
    import pyarrow as pa
    from pyarrow import types

    if column.null_count or not is_measure(column):
        return False
    if types.is_integer(column.type):
        return True
    values = column.cast(pa.float64(), safe=False).to_numpy()
    return bool(np.all(np.isfinite(values) & (values == np.round(values))))


def _kind(column: pa.ChunkedArray) -> pa.DataType:
    """Return the type of the values, also of those in a dictionary."""
    from pyarrow import types

    return column.type.value_type if types.is_dictionary(column.type) else column.type


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as text: numbers as they are written, booleans as true and false."""
    import pyarrow as pa

    return column.cast(pa.string())


def to_numbers(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where a value is missing.

    Booleans are 0 and 1, dates days since 1970-01-01 (with the time of the day as a
    fraction), times and durations seconds.
    """
    import pyarrow as pa
    from pyarrow import types

    column = column.cast(_kind(column))
    if is_text(column):
        column = _parsed(column, name)
    scale = 1.0
    if types.is_date(column.type) or types.is_timestamp(column.type):
        column, scale = _microseconds(column, pa.timestamp("us")), 1e6 * _SECONDS_PER_DAY
    elif types.is_time(column.type):
        column, scale = _microseconds(column, pa.time64("us")), 1e6
    elif types.is_duration(column.type):
        column, scale = _microseconds(column, pa.duration("us")), 1e6
    elif types.is_boolean(column.type):
        column = column.cast(pa.int8())
    # Not checked for exactness: an integer beyond 2^53 is rounded.
    values = column.cast(pa.float64(), safe=False).to_numpy() / scale
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        reason = "infinity is no value to learn from. Replace it, or leave the field empty."
        raise BadValueError(int(infinite[0]), name, reason)
    return values


def _microseconds(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.cast(kind, safe=False).cast(pa.int64())


def _parsed(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return text as numbers, or say which row holds none."""
    import pyarrow as pa

    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        row, value = first_that_is_no_number(column)
        reason = f"'{value}' is no number. Correct it, or leave the field empty."
        raise BadValueError(row, name, reason) from None


def first_that_is_no_number(column: pa.ChunkedArray) -> tuple[int, str]:
    """Return the first row of text that is no plain number, and its value."""
    import pyarrow.compute as pc

    wrong = pc.invert(pc.match_substring_regex(as_text(column), _PLAIN_NUMBER))
    row = int(np.flatnonzero(wrong.fill_null(False).to_numpy())[0])
    return row, column[row].as_py()


def is_plain_number(text: str) -> bool:
    """Say whether a text is a plain number."""
    return re.match(_PLAIN_NUMBER, text) is not None


def share_of_numbers(values: pa.Array) -> float:
    """Return which part of some texts are plain numbers."""
    import pyarrow.compute as pc

    return pc.mean(pc.match_substring_regex(values, _PLAIN_NUMBER)).as_py() or 0.0


def to_labels(column: pa.ChunkedArray) -> NDArray:
    """Return class labels without missing ones: integers where all are, else text."""
    import pyarrow as pa
    from pyarrow import types

    column = column.cast(_kind(column))
    if types.is_integer(column.type):
        return column.cast(pa.int64()).to_numpy()
    if is_whole(column):
        return column.cast(pa.float64()).to_numpy().astype(np.int64)
    return as_text(column).to_numpy().astype(str)

"""One column at a time: its kind, whether it is an index, and how it becomes numbers or labels."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

Task = Literal["classification", "regression"]

_SECONDS_PER_DAY = 86_400
_PLAIN_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
# What pandas calls a column without a name, and an index without one.
_NO_NAME = re.compile(r"(Unnamed: \d+(\.\d+)?|__index_level_\d+__)?")
# As many different whole numbers are classes, if they come twice on average.
_FEW = 20
# More of them are, if they count from 0 or 1 and each comes so often.
_OFTEN = 5


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


# ---------------------------------------------------------------- kinds


def _kind(column: pa.ChunkedArray) -> pa.DataType:
    """Return the type of the values, also of those in a dictionary."""
    return column.type.value_type if types.is_dictionary(column.type) else column.type


def is_text(column: pa.ChunkedArray) -> bool:
    """Say whether a column holds text."""
    kind = _kind(column)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_number(column: pa.ChunkedArray) -> bool:
    """Say whether a column can be numbers: numbers, booleans, dates, times or nothing at all."""
    tests = (_is_numeric, types.is_boolean, types.is_temporal, types.is_null)
    return any(test(_kind(column)) for test in tests)


def is_measure(column: pa.ChunkedArray) -> bool:
    """Say whether a column holds numbers, and no categories of them."""
    return _is_numeric(column.type)


def _is_numeric(kind: pa.DataType) -> bool:
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def is_whole(column: pa.ChunkedArray) -> bool:
    """Say whether a column holds whole numbers, and all of them."""
    return is_measure(column) and not column.null_count and _are_whole(_floats(column))


def _are_whole(numbers: NDArray[np.float64]) -> bool:
    return bool(np.all(np.isfinite(numbers) & (numbers == np.round(numbers))))


def kinds_of(frame: pa.Table) -> dict[str, str]:
    """Return the kinds of columns that are more than numbers: whole ones, dates and booleans."""
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


def is_plain_number(text: str) -> bool:
    """Say whether a text is a plain number."""
    return re.match(_PLAIN_NUMBER, text) is not None


def are_plain_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Say which texts are plain numbers; nothing where one is missing."""
    return pc.match_substring_regex(column, _PLAIN_NUMBER)


# ---------------------------------------------------------------- values


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    # Not checked for exactness: an integer beyond 2^53 is rounded.
    return column.cast(pa.float64(), safe=False).to_numpy()


def to_numbers(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where a value is missing.

    Booleans are 0 and 1, dates days since 1970-01-01 (with the time of the day as a
    fraction), times and durations seconds.
    """
    column = column.cast(_kind(column))
    scale = 1.0
    if is_text(column):
        column = _parsed(column.cast(pa.string()), name)
    elif types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif types.is_time(column.type) or types.is_duration(column.type):
        unit = pa.time64("us") if types.is_time(column.type) else pa.duration("us")
        column, scale = column.cast(unit, safe=False).cast(pa.int64()), 1e6
    elif types.is_temporal(column.type):
        column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        scale = 1e6 * _SECONDS_PER_DAY
    values = _floats(column) / scale
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        reason = "infinity is no value to learn from. Replace it, or leave the field empty."
        raise BadValueError(int(infinite[0]), name, reason)
    return values


def _parsed(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return text as numbers, or say which row holds none."""
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        row = pc.index(are_plain_numbers(column), False).as_py()
        reason = f"'{column[row]}' is no number. Correct it, or leave the field empty."
        raise BadValueError(row, name, reason) from None


def to_labels(column: pa.ChunkedArray) -> NDArray:
    """Return class labels without missing ones: integers where all are, else text."""
    column = column.cast(_kind(column))
    if types.is_integer(column.type):
        return column.cast(pa.int64()).to_numpy()
    if is_whole(column):
        return _floats(column).astype(np.int64)
    return column.cast(pa.string()).to_numpy().astype(str)


# ---------------------------------------------------------------- row numbers and row names


def index_names(columns: pa.Table) -> list[str]:
    """Return the columns that say which row it is, and nothing about new ones.

    They are the index that pandas wrote beside the columns, and first columns without a name
    whose whole numbers or texts are different in half of the rows or more: row names of R, an
    index of pandas, also shuffled or cut.
    """
    names = written_index(columns.schema)
    for name, column in zip(columns.column_names, columns.columns, strict=True):
        if name in names:
            continue
        if not (is_unnamed(name) and (is_text(column) or is_whole(column))):
            break
        if 2 * len(column.unique()) < len(column):
            break
        names.append(name)
    return names


def is_unnamed(name: str) -> bool:
    """Say whether a column has no name, or one that pandas made up for it."""
    return _NO_NAME.fullmatch(name) is not None


def written_index(schema: pa.Schema) -> list[str]:
    """Return the columns that pandas says are the index of its frame."""
    metadata = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    found = metadata.get("index_columns", [])
    return [name for name in found if isinstance(name, str) and name in schema.names]


def note_on_index(names: list[str]) -> str:
    """Say that columns are left out, and how to keep them."""
    shown = ", ".join(f"'{name}'" for name in names)
    return (
        f"Index {shown} is left out: it tells rows apart, and nothing about new ones. To learn "
        "from it, make it a column with a name."
    )


# ---------------------------------------------------------------- what is to be learned


def task_of(target: Any) -> Task:
    """Say whether a target is made of classes or of numbers.

    Text, booleans, categories and dates are classes. Numbers with fractions are numbers. Whole
    numbers are classes if there are few of them, or if they look like codes of classes: all
    from 0 or 1 to the largest, and each often. Counts and prices have gaps, and rare values.

    Parameters
    ----------
    target : array-like of shape (n_rows,)
        Also a series, or a column of pyarrow. Missing values do not matter.

    Returns
    -------
    task : {"classification", "regression"}

    Examples
    --------
    >>> from mbkl.tabular import task_of
    >>> task_of(["yes", "no"]), task_of([0, 1, 1, 0]), task_of([326, 401, 2757, 554])
    ('classification', 'classification', 'regression')
    """
    if not isinstance(target, pa.ChunkedArray):
        target = pa.chunked_array([pa.array(target, from_pandas=True)])
    if not is_measure(target):
        return "classification"
    numbers = _floats(target.drop_null())
    values, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    if not _are_whole(values):
        return "regression"
    if values.size <= max(2, min(_FEW, counts.sum() // 2)):
        return "classification"
    no_gaps = values[-1] - values[0] + 1 == values.size
    are_codes = values[0] in (0, 1) and no_gaps and counts.min() >= _OFTEN
    return "classification" if are_codes else "regression"

"""Columns of frames: their kinds, conversion to numbers and labels, and `TableEncoder`."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mbkl.extras import require

Task = Literal["classification", "regression"]

_SECONDS_PER_DAY = 86_400
_PLAIN_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
# Names that pandas gives to unnamed columns and indices.
_NO_NAME = re.compile(r"(Unnamed: \d+(\.\d+)?|__index_level_\d+__)?")
# At most this many different integers are classes, if each occurs twice on average.
_FEW_CLASSES = 20
# More integers are classes only if they count from 0 or 1 and each occurs at least this often.
_OCCURRENCES_OF_A_CODE = 5
# At most this many different texts are never taken for keys, however few rows there are.
_FEW_TEXTS = 16
KINDS = ("number", "text")


class BadValueError(ValueError):
    """A value that a column cannot hold.

    Parameters
    ----------
    row : int
        Index of the row, from 0.
    column : str
    reason : str
        The error, and its remedy.
    """

    def __init__(self, row: int, column: str, reason: str) -> None:
        super().__init__(f"row {row}, column '{column}': {reason}")
        self.row, self.column, self.reason = row, column, reason


# ---------------------------------------------------------------- kinds


def _kind(column: pa.ChunkedArray) -> pa.DataType:
    """Return the type of the values, of a dictionary that of its entries."""
    return column.type.value_type if types.is_dictionary(column.type) else column.type


def is_text(column: pa.ChunkedArray) -> bool:
    kind = _kind(column)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_number(column: pa.ChunkedArray) -> bool:
    """Say whether a column converts to numbers: numbers, booleans, dates, times or all null."""
    tests = (_is_numeric, types.is_boolean, types.is_temporal, types.is_null)
    return any(test(_kind(column)) for test in tests)


def is_measure(column: pa.ChunkedArray) -> bool:
    """Say whether a column has a numeric type and is not categorical."""
    return _is_numeric(column.type)


def _is_numeric(kind: pa.DataType) -> bool:
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def is_whole(column: pa.ChunkedArray) -> bool:
    """Say whether a column holds whole numbers without missing values."""
    return is_measure(column) and not column.null_count and _are_whole(_floats(column))


def _are_whole(numbers: NDArray[np.float64]) -> bool:
    return bool(np.all(np.isfinite(numbers) & (numbers == np.round(numbers))))


def kinds_of(frame: pa.Table) -> dict[str, str]:
    """Return the kinds of the columns that hold integers, booleans or dates."""
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
    return re.match(_PLAIN_NUMBER, text) is not None


def are_plain_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Say which texts are plain numbers; null where a text is missing."""
    return pc.match_substring_regex(column, _PLAIN_NUMBER)


# ---------------------------------------------------------------- values


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    # safe=False rounds integers beyond 2^53 without an error.
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
    """Return text as numbers, or raise an error that names the first row that is no number."""
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        row = pc.index(are_plain_numbers(column), False).as_py()
        reason = f"'{column[row]}' is no number. Correct it, or leave the field empty."
        raise BadValueError(row, name, reason) from None


def to_labels(column: pa.ChunkedArray) -> NDArray:
    """Return class labels of a column without nulls: integers if all are whole, else text."""
    column = column.cast(_kind(column))
    if types.is_integer(column.type):
        return column.cast(pa.int64()).to_numpy()
    if is_whole(column):
        return _floats(column).astype(np.int64)
    return column.cast(pa.string()).to_numpy().astype(str)


# ---------------------------------------------------------------- row numbers and row names


def index_names(columns: pa.Table) -> list[str]:
    """Return the columns that identify rows, and so are useless for new rows.

    They are the index columns that pandas declares, and unnamed first columns whose integers or
    texts are at least half as many different values as rows: row names of R, or an index of
    pandas, also shuffled or cut.
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
    """Say whether a column has no name, or a name that pandas gives to unnamed columns."""
    return _NO_NAME.fullmatch(name) is not None


def written_index(schema: pa.Schema) -> list[str]:
    """Return the columns that the metadata of pandas declares as index."""
    metadata = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    names = metadata.get("index_columns", [])
    return [name for name in names if isinstance(name, str) and name in schema.names]


def note_on_index(names: list[str]) -> str:
    """Return a note that index columns are left out, and how to keep them."""
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
        Also a series, or a column of pyarrow. Missing values are ignored.

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
    if values.size <= max(2, min(_FEW_CLASSES, counts.sum() // 2)):
        return "classification"
    no_gaps = values[-1] - values[0] + 1 == values.size
    is_frequent = counts.min() >= _OCCURRENCES_OF_A_CODE
    are_codes = values[0] in (0, 1) and no_gaps and is_frequent
    return "classification" if are_codes else "regression"


# ---------------------------------------------------------------- all columns of a frame


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn columns of booleans, dates and times into numbers, and leave out useless columns.

    The estimators of this package take text as it is, and need this for dates and times only;
    for other estimators add a `OneHotEncoder` of scikit-learn after it.

    Numbers stay as they are, missing ones are NaN. Booleans become 0 and 1, dates days
    since 1970-01-01, times and durations seconds. Text stays text. Text that is different in more
    than half of the rows, such as names and keys, is left out. An empty text is a missing value.
    The index of a pandas frame is ignored, and an unnamed first column that numbers the rows is
    left out.

    Attributes
    ----------
    rules_ : list of dict
        The `name` and the `kind`, "number" or "text", of each column that is used.
    notes_ : list of str
        Notes for the user on columns that are left out or constant.
    feature_names_in_, n_features_in_ : ndarray, int
        Names and number of the columns seen during fit.

    Examples
    --------
    >>> import pandas as pd
    >>> from mbkl.tabular import TableEncoder
    >>> day = pd.to_datetime(["1970-01-03", None, "1970-01-02"])
    >>> frame = pd.DataFrame({"day": day, "town": ["Rome", "Bonn", "Rome"]})
    >>> TableEncoder().fit_transform(frame)
       day  town
    0  2.0  Rome
    1  NaN  Bonn
    2  1.0  Rome
    >>> TableEncoder().fit(frame).rules_
    [{'name': 'day', 'kind': 'number'}, {'name': 'town', 'kind': 'text'}]
    """

    @classmethod
    def from_rules(cls, rules: list[dict[str, Any]]) -> TableEncoder:
        """Return a fitted encoder.

        Parameters
        ----------
        rules : list of dict
            As in `rules_`; they may come from JSON.

        Returns
        -------
        encoder : TableEncoder

        Examples
        --------
        >>> import pandas as pd
        >>> from mbkl.tabular import TableEncoder
        >>> encoder = TableEncoder.from_rules([{"name": "late", "kind": "number"}])
        >>> encoder.transform(pd.DataFrame({"late": [True, False]}))
           late
        0   1.0
        1   0.0
        """
        for rule in rules:
            has_name = isinstance(rule, dict) and isinstance(rule.get("name"), str)
            if not has_name or rule.get("kind") not in KINDS:
                kinds = ", ".join(KINDS)
                raise ValueError(f"A rule needs a name and one of the kinds {kinds}, got {rule}")
        encoder = cls()
        encoder.rules_, encoder.notes_ = list(rules), []
        return encoder

    def fit(self, X, y=None):
        """Learn the kinds of the columns.

        Parameters
        ----------
        X : dataframe of pandas or polars, or pyarrow.Table
        y : None
            Ignored.

        Returns
        -------
        self : TableEncoder
        """
        frame = _arrow(X)
        self.feature_names_in_ = np.array(frame.column_names, dtype=object)
        self.n_features_in_ = frame.num_columns
        index = index_names(frame)
        self.rules_, self.notes_ = [], [note_on_index(index)] if index else []
        for name, column in zip(frame.column_names, frame.columns, strict=True):
            if name in index:
                continue
            kind, note = _rule_of(name, column)
            if kind is not None:
                self.rules_.append({"name": name, "kind": kind})
            if note:
                self.notes_.append(note)
        if not self.rules_:
            raise ValueError("No column is left to learn from. " + " ".join(self.notes_))
        return self

    def transform(self, X):
        """Return the columns as numbers and text.

        Parameters
        ----------
        X : dataframe of pandas or polars, or pyarrow.Table
            Columns are identified by their names, in any order; others are ignored.

        Returns
        -------
        columns : dataframe of pandas
        """
        check_is_fitted(self)
        frame = _arrow(X)
        self._check_names(frame.column_names)
        columns = {rule["name"]: _encoded(rule, frame.column(rule["name"])) for rule in self.rules_}
        return require("pandas", "cli").DataFrame(columns)

    def _check_names(self, names: list[str]) -> None:
        present, wanted = set(names), self.get_feature_names_out().tolist()
        missing = [name for name in wanted if name not in present]
        if not missing:
            return
        # A column that is itself expected is not a misspelling of the missing one.
        close = closest(missing[0], sorted(present.difference(wanted)))
        if close is not None:
            raise ValueError(f"no column '{missing[0]}'; did you mean '{close}'?")
        shown = ", ".join(f"'{name}'" for name in missing[:5])
        more = f" and {len(missing) - 5} others" if len(missing) > 5 else ""
        raise ValueError(
            f"no column {shown}{more}, as in training; add what is missing, with empty fields "
            "where nothing is known."
        )

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns of `transform`.

        Parameters
        ----------
        input_features : None
            Ignored: the rules hold the names.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        return np.array([rule["name"] for rule in self.rules_], dtype=object)


def _arrow(X) -> pa.Table:
    """Return a dataframe as a table of pyarrow, without its index."""
    try:
        frame = pa.Table.from_pandas(X, preserve_index=False) if hasattr(X, "iloc") else pa.table(X)
    except pa.ArrowException as error:
        where = str(error.args[-1]).removeprefix("Conversion failed for ")
        raise TypeError(
            f"argument must be a string or a number: {where} mixes types; make all its values "
            "text or all of them numbers."
        ) from None
    if len(set(frame.column_names)) < frame.num_columns:
        raise ValueError("Duplicate column names found in X; rename one.")
    return frame


def _rule_of(name: str, column: pa.ChunkedArray) -> tuple[str | None, str | None]:
    """Return the kind of a column, None if it is left out, and a note for the user or None."""
    empty = f"Column '{name}' is left out: it is empty."
    if types.is_null(column.type):  # its type in new rows is unknown
        return None, empty
    if is_number(column):
        note = _note_on_numbers(name, to_numbers(column, name), not is_measure(column))
        return "number", note
    if not is_text(column):
        return None, f"Column '{name}' is left out: its values ({column.type}) are no numbers."
    texts = [text for text in column.cast(pa.string()).unique().to_pylist() if text]
    n_values = len(column) - column.null_count
    if not texts:
        return None, empty
    all_different = len(texts) == n_values > 2
    if all_different or len(texts) > max(_FEW_TEXTS, n_values / 2):
        return None, (
            f"Column '{name}' is left out: {len(texts)} different texts in {n_values} rows "
            "tell nothing about other rows."
        )
    is_constant = len(texts) == 1 and not column.null_count
    return "text", f"Column '{name}' is always '{texts[0]}'." if is_constant else None


def _note_on_numbers(name: str, numbers: NDArray[np.float64], is_date: bool) -> str | None:
    present = numbers[~np.isnan(numbers)]
    if not present.size:
        return f"Column '{name}' is empty."
    if present.size == numbers.size and present.min() == present.max():
        return f"Column '{name}' is always {present[0]:g}."
    # Consecutive dates are no row numbers: new rows have dates too.
    if not is_date and numbers.size > 2 and (np.diff(np.sort(numbers)) == 1).all():
        return (
            f"Column '{name}' counts the rows; leave it out unless the order of the rows is "
            "known for new ones too."
        )
    return None


def _encoded(rule: dict[str, Any], column: pa.ChunkedArray) -> NDArray:
    """Return a column as numbers, or as text with None for missing values."""
    if rule["kind"] == "number":
        return to_numbers(column, rule["name"])
    return np.array([text or None for text in column.cast(pa.string()).to_pylist()], dtype=object)


def closest(name: str, names: Sequence[str]) -> str | None:
    """Return the most similar of some names, or None if none is similar."""
    by_lower_case = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), list(by_lower_case), n=1)
    return by_lower_case[close[0]] if close else None

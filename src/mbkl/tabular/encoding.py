"""TableEncoder: frames as the estimators take them, by rules that fit in a JSON file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mbkl.extras import require
from mbkl.tabular.columns import (
    index_names,
    is_measure,
    is_number,
    is_text,
    note_on_index,
    to_numbers,
)
from mbkl.tabular.frame import closest

KINDS = ("number", "text")
# So many different texts are no keys, in however few rows.
_FEW_TEXTS = 16


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn columns of booleans, dates and times into numbers, and leave out what tells nothing.

    The estimators of this package take text as it is, and need this for dates and times alone;
    for other estimators put a `OneHotEncoder` of scikit-learn behind it.

    Numbers stay as they are, missing ones are NaN. Booleans become 0 and 1, dates days
    since 1970-01-01, times and durations seconds. Text stays text. Text that is different in more
    than half of the rows, such as names and keys, is left out. An empty text is a missing one. The
    index of a frame of pandas is no column, and a first column without a name that numbers the
    rows is left out.

    Attributes
    ----------
    rules_ : list of dict
        For each column that is used its `name` and its `kind`: "number" or "text".
    notes_ : list of str
        Columns that are left out or constant, in words.

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
            As in `rules_`, also after a round trip through JSON.

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
            is_whole = isinstance(rule, dict) and isinstance(rule.get("name"), str)
            if not is_whole or rule.get("kind") not in KINDS:
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
        index = index_names(frame)
        self.rules_, self.notes_ = [], [note_on_index(index)] if index else []
        for name, column in zip(frame.column_names, frame.columns, strict=True):
            if name in index:
                continue
            kind, note = _kind(name, column)
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
            Columns are found by their names, in any order; others are ignored.

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
        """Raise an error if columns are missing."""
        present, wanted = set(names), self.get_feature_names_out().tolist()
        missing = [name for name in wanted if name not in present]
        if not missing:
            return
        # A column that has a use of its own is not one that was misspelt.
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
    """Return a dataframe as columns of arrow, without its index."""
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


def _kind(name: str, column: pa.ChunkedArray) -> tuple[str | None, str | None]:
    """Return the kind of a column (None leaves it out), and what to tell the user."""
    empty = f"Column '{name}' is left out: it is empty."
    if types.is_null(column.type):  # new rows may have anything here
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
    # A date for each row is no number of it: new rows have dates too.
    if not is_date and numbers.size > 2 and (np.diff(np.sort(numbers)) == 1).all():
        return (
            f"Column '{name}' counts the rows; leave it out unless the order of the rows is "
            "known for new ones too."
        )
    return None


def _encoded(rule: dict[str, Any], column: pa.ChunkedArray) -> NDArray:
    """Return a column as numbers, or as text with None where it is missing."""
    if rule["kind"] == "number":
        return to_numbers(column, rule["name"])
    return np.array([text or None for text in column.cast(pa.string()).to_pylist()], dtype=object)

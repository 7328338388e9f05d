"""TableEncoder: columns of any kind become numbers, by rules that fit in a JSON file."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from mbkl.extras import require
from mbkl.tabular.columns import as_text, is_measure, is_number, is_text, to_numbers
from mbkl.tabular.frame import closest
from mbkl.tabular.index import index_names, note_on_index

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("number", "text", "one-hot", "ordinal")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn columns of numbers, text, booleans and dates into columns of numbers.

    The estimators of this package take text as it is, and need this for dates alone, with
    ``keep_text=True``; it is there for other estimators.

    Numbers stay as they are, missing ones are NaN. Booleans become 0 and 1, dates days
    since 1970-01-01, times and durations seconds. Text with few different values
    becomes a column of zeros and ones for each value; a missing or new value is zero in
    all of them. Text with more of them becomes the place of its value in the list of
    values, the most frequent one first; a missing or new value is NaN. Text that is
    different in more than half of the rows, such as names and keys, is left out. An empty
    text is a missing one. The index of a frame of pandas is no column, and a first column
    without a name that numbers the rows is left out.

    Parameters
    ----------
    max_one_hot : int, default=16
        Largest number of different values with a column for each.
    keep_text : bool, default=False
        Whether text stays text: `transform` then returns a frame of pandas where there is any.

    Attributes
    ----------
    rules_ : list of dict
        For each column that is used its `name`, its `kind` ("number", "text", "one-hot" or
        "ordinal") and its `categories`, by falling frequency and then by name.
    rules : list of dict
        The same.
    notes_ : list of str
        Columns that are left out or constant, in words.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X has string names.

    Examples
    --------
    >>> import pandas as pd
    >>> from mbkl.tabular import TableEncoder
    >>> frame = pd.DataFrame({"age": [31, None, 8], "town": ["Rome", "Bonn", "Rome"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.get_feature_names_out()
    array(['age', 'town=Rome', 'town=Bonn'], dtype=object)
    >>> encoder.transform(frame)
    array([[31.,  1.,  0.],
           [nan,  0.,  1.],
           [ 8.,  1.,  0.]])
    >>> encoder.rules[1]
    {'name': 'town', 'kind': 'one-hot', 'categories': ['Rome', 'Bonn']}
    """

    _parameter_constraints: dict = {
        "max_one_hot": [Interval(Integral, 0, None, closed="left")],
        "keep_text": ["boolean"],
    }

    def __init__(self, *, max_one_hot=16, keep_text=False):
        self.max_one_hot = max_one_hot
        self.keep_text = keep_text

    @classmethod
    def from_rules(cls, rules: list[dict[str, Any]]) -> TableEncoder:
        """Return a fitted encoder.

        Parameters
        ----------
        rules : list of dict
            As in `rules`, also after a round trip through JSON.

        Returns
        -------
        encoder : TableEncoder

        Examples
        --------
        >>> import pandas as pd
        >>> from mbkl.tabular import TableEncoder
        >>> rules = [{"name": "size", "kind": "ordinal", "categories": ["S", "L"]}]
        >>> TableEncoder.from_rules(rules).transform(pd.DataFrame({"size": ["L", "XL"]}))
        array([[ 1.],
               [nan]])
        """
        encoder = cls()
        encoder.rules_ = [_checked_rule(rule) for rule in rules]
        encoder.feature_names_in_ = np.array([rule["name"] for rule in rules], dtype=object)
        encoder.n_features_in_ = len(rules)
        encoder.notes_ = []
        return encoder

    @property
    def rules(self) -> list[dict[str, Any]]:
        """How each column that is used becomes numbers."""
        check_is_fitted(self)
        return self.rules_

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the kinds of the columns and the values of text.

        Parameters
        ----------
        X : dataframe, pyarrow.Table or array-like of shape (n_rows, n_columns)
        y : None
            Ignored.

        Returns
        -------
        self : TableEncoder
        """
        frame = self._validated(X, reset=True)
        index = index_names(frame)
        self.rules_, self.notes_ = [], [note_on_index(index)] if index else []
        for name, column in zip(frame.column_names, frame.columns, strict=True):
            if name in index:
                continue
            rule, note = _rule(name, column, self.max_one_hot, self.keep_text)
            if rule is not None:
                self.rules_.append(rule)
            if note:
                self.notes_.append(note)
        if not self.rules_:
            raise ValueError("No column is left to learn from. " + " ".join(self.notes_))
        return self

    def transform(self, X):
        """Return the columns as numbers.

        Parameters
        ----------
        X : dataframe, pyarrow.Table or array-like of shape (n_rows, n_columns)
            Columns with names are found by them, in any order; others are ignored.

        Returns
        -------
        numbers : ndarray or dataframe of shape (n_rows, n_columns_out)
        """
        check_is_fitted(self)
        frame = self._validated(X, reset=False)
        self._check_names(frame.column_names)
        if any(rule["kind"] == "text" for rule in self.rules_):
            pandas = require("pandas", "cli")
            return pandas.DataFrame(
                {rule["name"]: _kept(rule, frame.column(rule["name"])) for rule in self.rules_}
            )
        widths = [_width(rule) for rule in self.rules_]
        # Filled by columns, which is also how the maps are binned.
        numbers = np.zeros((frame.num_rows, sum(widths)), order="F")
        ends = np.cumsum(widths)
        for rule, width, end in zip(self.rules_, widths, ends, strict=True):
            _fill(numbers[:, end - width : end], rule, frame.column(rule["name"]))
        return numbers

    def _check_names(self, names: list[str]) -> None:
        """Raise an error if columns are missing."""
        present, wanted = set(names), [rule["name"] for rule in self.rules_]
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
            The name of the column, and its value as in "town=Rome" where it has several.
        """
        check_is_fitted(self)
        names = []
        for rule in self.rules_:
            one_hot = rule["kind"] == "one-hot"
            endings = [f"={category}" for category in rule["categories"]] if one_hot else [""]
            names += [rule["name"] + ending for ending in endings]
        return np.array(names, dtype=object)

    def _validated(self, X, reset: bool) -> pa.Table:
        """Return X with named columns."""
        if hasattr(X, "__arrow_c_stream__"):
            frame = _arrow(X)
            if reset:
                validate_data(self, X, skip_check_array=True)
            return frame
        X = validate_data(
            self, X, reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=1
        )
        if reset or not hasattr(self, "feature_names_in_"):
            names = [f"x{number}" for number in range(X.shape[1])]
        else:
            names = list(self.feature_names_in_)
        return _arrow(dict(zip(names, X.T, strict=True)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _arrow(X) -> pa.Table:
    """Return a dataframe, or arrays by name, as columns of arrow."""
    pa = require("pyarrow", "cli")
    if isinstance(X, dict) or hasattr(X, "iloc"):  # of pandas: its index is none of the items
        arrays = [_array(values, name) for name, values in X.items()]
        frame = pa.table(arrays, names=[str(name) for name, _ in X.items()])
    else:
        frame = pa.table(X)
    if len(set(frame.column_names)) < frame.num_columns:
        raise ValueError("Two columns of X have the same name; rename one.")
    return frame


def _array(values, name) -> pa.Array:
    import pyarrow as pa

    values = np.ascontiguousarray(values) if isinstance(values, np.ndarray) else values
    try:
        # From pandas means that NaN is a missing value.
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise TypeError(
            f"argument must be a string or a number: column '{name}' mixes types; "
            "make all its values text or all of them numbers."
        ) from None


def _rule(
    name: str, column: pa.ChunkedArray, max_one_hot: int, keep_text: bool
) -> tuple[dict[str, Any] | None, str | None]:
    """Return how a column becomes numbers (None: not at all), and what to tell the user."""
    from pyarrow import types

    empty = f"Column '{name}' is left out: it is empty."
    if types.is_null(column.type):  # new rows may have anything here
        return None, empty
    if is_number(column):
        note = _note_on_numbers(name, to_numbers(column, name), not is_measure(column))
        return {"name": name, "kind": "number", "categories": []}, note
    if not is_text(column):
        return None, f"Column '{name}' is left out: its values ({column.type}) are no numbers."
    categories = _categories(column)
    n_values = len(column) - column.null_count
    if not categories:
        return None, empty
    if _is_key(len(categories), n_values, max_one_hot):
        return None, (
            f"Column '{name}' is left out: {len(categories)} different texts in {n_values} rows "
            "tell nothing about other rows."
        )
    kind = "one-hot" if len(categories) <= max_one_hot else "ordinal"
    constant = len(categories) == 1 and not column.null_count
    note = f"Column '{name}' is always '{categories[0]}'." if constant else None
    if keep_text:
        return {"name": name, "kind": "text", "categories": []}, note
    return {"name": name, "kind": kind, "categories": categories}, note


def _is_key(n_categories: int, n_values: int, max_one_hot: int) -> bool:
    """Say whether text is different in all rows, or too often to have a column for each."""
    all_different = n_categories == n_values > 2
    return all_different or n_categories > max(max_one_hot, n_values / 2)


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


def _categories(column: pa.ChunkedArray) -> list[str]:
    """Return the different texts, the most frequent first, equally frequent ones by name."""
    counts = as_text(column).drop_null().value_counts().to_pylist()
    ordered = sorted(counts, key=lambda one: (-one["counts"], one["values"]))
    return [one["values"] for one in ordered if one["values"]]


def _width(rule: dict[str, Any]) -> int:
    return len(rule["categories"]) if rule["kind"] == "one-hot" else 1


def _kept(rule: dict[str, Any], column: pa.ChunkedArray) -> NDArray:
    """Return a column as numbers, or as text with None where it is missing."""
    if rule["kind"] == "number":
        return to_numbers(column, rule["name"])
    return np.array([text or None for text in as_text(column).to_pylist()], dtype=object)


def _fill(block: NDArray[np.float64], rule: dict[str, Any], column: pa.ChunkedArray) -> None:
    """Write a column, as numbers, into its block of the output."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if rule["kind"] == "number":
        block[:, 0] = to_numbers(column, rule["name"])
        return
    known = pa.array(rule["categories"], pa.string())
    codes = pc.index_in(as_text(column), value_set=known, skip_nulls=True)
    if rule["kind"] == "ordinal":
        block[:, 0] = codes.cast(pa.float64()).to_numpy()
        return
    positions = codes.fill_null(-1).to_numpy()
    rows = np.flatnonzero(positions >= 0)
    block[rows, positions[rows]] = 1.0


def _checked_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule that holds what it must."""
    kind = rule.get("kind") if isinstance(rule, dict) else None
    if kind not in KINDS or not isinstance(rule.get("name"), str):
        raise ValueError(f"A rule needs a name and one of the kinds {', '.join(KINDS)}, got {rule}")
    categories = rule.get("categories", [])
    if not isinstance(categories, list) or not all(isinstance(one, str) for one in categories):
        raise ValueError(f"The categories of '{rule['name']}' must be a list of texts.")
    return {"name": rule["name"], "kind": kind, "categories": categories}

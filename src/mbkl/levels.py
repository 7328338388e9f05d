"""Categories of frames as level numbers.

A categorical column becomes the numbers of its levels: 0, 1, ... for those seen in training, NaN
for a missing value, and one beyond the last for a new level. The engine and the maps see a matrix
of numbers, and the number of levels of each column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import rankdata

Level = str | int | float | bool
Levels = list[Level] | None

# All level numbers up to this are exact in float32.
_MOST_LEVELS = 1_000_000
# Distinct whole numbers of a range below this are found by counting.
_MOST_COUNTED = 10_000


@dataclass(frozen=True)
class NoLevels(Sequence):
    """The levels of columns that all hold numbers: a sequence of None in constant memory.

    >>> list(NoLevels(2))
    [None, None]
    """

    n_columns: int

    def __len__(self) -> int:
        return self.n_columns

    def __getitem__(self, place):
        _ = range(self.n_columns)[place]  # raises an IndexError for places beyond
        return None


@dataclass(frozen=True)
class Column:
    """A column of a frame."""

    name: str  # for messages
    # (n_rows,): numbers, or objects for all other types, None where a value is missing
    values: NDArray
    # Levels in the order in which the type of the column lists them.
    declared: Sequence | None = None

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers, and not declared as levels."""
        return self.values.dtype != object and self.declared is None

    def objects(self) -> list:
        """Return the values, None where one is missing: NaN, or an empty text."""
        return [None if value == "" or value != value else value for value in self.values.tolist()]

    def numbers(self) -> NDArray:
        """Return the column as numbers; raise an error for text."""
        if self.values.dtype != object:
            return self.values
        if self._kind(self.values) == "text":
            raise ValueError(
                f"could not convert string to float: column {self.name} holds text, not numbers; "
                "convert it, or learn from it as a category (categorical_features)."
            )
        return self.values.astype(np.float64)

    def levels(self) -> list[Level]:
        """Return the distinct values, in declared order if there is one, otherwise sorted."""
        values = self._distinct()[0].objects()
        self._kind(values)
        levels = {_plain(value) for value in set(values) - {None}}
        if len(levels) > _MOST_LEVELS:
            raise ValueError(f"Column {self.name} has more than {_MOST_LEVELS:,} levels.")
        if not levels.isdisjoint((np.inf, -np.inf)):
            raise ValueError(f"X contains infinity, as a level of column {self.name}.")
        if self.declared is not None:
            # Levels that differ in double precision only are one.
            return [level for level in dict.fromkeys(map(_plain, self.declared)) if level in levels]
        return sorted(levels)

    def level_numbers(self, levels: list[Level]) -> NDArray[np.float64]:
        """Return the number of each value's level; NaN is missing, one beyond the last is new."""
        column, rows = self._distinct()
        values = column.objects()
        new, old = self._kind(values), self._kind(levels)
        if "text" in (new, old) and None not in (new, old) and new != old:
            raise ValueError(
                f"Column {self.name} holds {new}, but {old} in training; convert it to {old}."
            )
        place = {level: float(number) for number, level in enumerate(levels)}
        number_of = {value: place.get(_plain(value), float(len(levels))) for value in set(values)}
        number_of[None] = np.nan
        numbers = np.fromiter(map(number_of.__getitem__, values), np.float64, len(values))
        return numbers if rows is None else numbers[rows]

    def _distinct(self) -> tuple[Column, NDArray[np.intp] | None]:
        """Return a column of the distinct values, and their places in the rows; None for objects.

        Objects stay as they are: finding distinct values first saves time with numbers only.
        """
        if self.values.dtype == object:
            return self, None
        distinct, place = _counted(self.values) or np.unique(self.values, return_inverse=True)
        return replace(self, values=distinct), place

    def _kind(self, values: Iterable) -> str | None:
        """Return "text", "boolean" or "number", or None if all are missing; others are errors."""
        types = {type(value) for value in values} - {type(None)}
        kinds = {_kind_of(each) for each in types}
        if len(kinds) > 1:
            raise TypeError(
                f"argument must be a string or a number: column {self.name} mixes types; make all "
                "its values text, or all of them numbers."
            )
        if "other" in kinds:
            raise ValueError(
                f"Column {self.name} holds {types.pop().__name__}; turn it to text or numbers "
                "first, as mbkl.tabular.TableEncoder does with dates and times."
            )
        return kinds.pop() if kinds else None


def _counted(values: NDArray) -> tuple[NDArray, NDArray[np.intp]] | None:
    """Return the distinct values and the place of each row's; None unless whole and of low range.

    Counting is several times faster than sorting.

    >>> _counted(np.array([7.0, np.nan, 5.0, 7.0]))
    (array([ 5.,  7., nan]), array([1, 2, 0, 1]))
    >>> _counted(np.array([0.5, 1.0]))
    """
    if values.dtype.kind not in "iuf" or not values.size:
        return None
    wide = values.astype(np.int64) if values.dtype.kind == "i" else np.ascontiguousarray(values)
    low, high = np.fmin.reduce(wide), np.fmax.reduce(wide)
    if not float(high) - float(low) < _MOST_COUNTED:  # also true if all values are NaN
        return None
    is_missing = np.isnan(wide)
    place = np.where(is_missing, _MOST_COUNTED, wide - low).astype(np.intp)
    if ((place.astype(wide.dtype) + low != wide) & ~is_missing).any():
        return None
    is_present = np.bincount(place, minlength=_MOST_COUNTED + 1) > 0
    distinct = np.flatnonzero(is_present).astype(wide.dtype) + low
    if is_present[_MOST_COUNTED]:
        distinct[-1] = np.nan
    return distinct.astype(values.dtype), (np.cumsum(is_present) - 1)[place]


def _kind_of(values: type) -> str:
    if issubclass(values, str):
        return "text"
    if issubclass(values, bool | np.bool_):
        return "boolean"
    return "number" if issubclass(values, Real | Decimal) else "other"


def _plain(value: Any) -> Level:
    """Return a level as JSON stores it: whole numbers as int, others rounded to float32."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float | Decimal):
        value = float(value)
        return int(value) if value.is_integer() else float(np.float32(value))
    return value


# ---------------------------------------------------------------- frames


def is_frame(X) -> bool:
    """Say whether X is a frame of pandas or polars."""
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_columns"))


def columns_of(X) -> list[Column]:
    """Return the columns of a frame of pandas or polars, or of an array."""
    if hasattr(X, "iloc"):
        return [_pandas_column(f"'{name}'", X.iloc[:, i]) for i, name in enumerate(X.columns)]
    if hasattr(X, "get_columns"):
        return [_polars_column(f"'{column.name}'", column) for column in X.get_columns()]
    # Lists hold what they hold: as an array of one type, numbers beside texts would be texts.
    X = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got an array of shape {X.shape}.")
    values = X.astype(object) if X.dtype.kind in "US" else X
    return [Column(f"{number}", column) for number, column in enumerate(values.T)]


def _pandas_column(name: str, series) -> Column:
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if hasattr(dtype, "subtype"):  # a sparse column
        return Column(name, np.asarray(series))
    if kind in "iuf":
        plain = isinstance(dtype, np.dtype)
        return Column(
            name, series.to_numpy() if plain else series.to_numpy(np.float64, na_value=np.nan)
        )
    values = np.array(series.astype(object), dtype=object)
    values[series.isna().to_numpy()] = None
    if hasattr(dtype, "categories"):
        return Column(name, values, dtype.categories.tolist())
    column = Column(name, values, [False, True] if kind == "b" else None)
    if kind != "b" and column._kind(values) == "number":
        return Column(name, column.numbers())
    return column


def _polars_column(name: str, series) -> Column:
    kind = str(series.dtype)
    if kind.startswith(("Int", "UInt", "Float", "Decimal")):
        return Column(name, (series if kind == "Float32" else series.cast(float)).to_numpy())
    declared = [False, True] if kind == "Boolean" else None
    if kind.startswith("Enum"):
        declared = series.dtype.categories.to_list()
    values = np.empty(len(series), dtype=object)
    values[:] = series.to_list()
    return Column(name, values, declared)


# ---------------------------------------------------------------- which columns


def chosen_columns(wanted: Any, n_columns: int, names: Sequence[str] | None) -> NDArray[np.bool_]:
    """Return which columns are named by indices, names or a mask.

    >>> chosen_columns(["b"], 2, ["a", "b"])
    array([False,  True])
    """
    chosen = np.zeros(n_columns, dtype=bool)
    if wanted is None or isinstance(wanted, str) or not len(wanted):
        return chosen
    items = np.asarray(wanted)
    if items.dtype.kind == "b" and items.shape == (n_columns,):
        return items
    if items.ndim != 1 or items.dtype.kind not in "iuUO":
        raise ValueError(
            "categorical_features must be 'from_dtype', None, or a list of names, of indices or of "
            f"{n_columns} booleans, one for each column, got {wanted!r}."
        )
    known: Sequence = (
        range(n_columns) if items.dtype.kind in "iu" else list(() if names is None else names)
    )
    for item in items.tolist():
        if item not in known:
            shown = ", ".join(map(str, known[:10])) + (", ..." if len(known) > 10 else "")
            raise ValueError(
                f"categorical_features has {item!r}, which is no column of X; it has "
                f"{shown or 'no names: use indices or a mask'}."
            )
        chosen[known.index(item)] = True
    return chosen


# Whole numbers with more distinct values than a byte has, and so many rows a value in the mean, may
# be names. They are names if values explain y so many times as well as bins of neighbouring values,
# and better by so many standard errors, as there may be very many columns.
_FEWEST_VALUES, _ROWS_OF_A_VALUE = 257, 3
_TIMES_AS_WELL, _STANDARD_ERRORS = 2.0, 6.0
# Rows of mean y that shrink the mean of each value; most classes and targets that are compared.
_PRIOR_ROWS, _MOST_TARGETS = 5.0, 3


def names_among(X: NDArray, y: NDArray) -> NDArray[np.bool_]:
    """Return which columns have numbers that are names, such as post codes, judged by y.

    In such columns rows of the same value are more alike than rows of neighbouring values.

    >>> town = np.random.default_rng(0).integers(2_000, size=20_000)
    >>> X = np.column_stack([town, np.arange(20_000) // 10])
    >>> names_among(X, town * 7919 % 5 == 0)
    array([ True, False])
    """
    are_names = np.zeros(X.shape[1], dtype=bool)
    if len(X) < _FEWEST_VALUES * _ROWS_OF_A_VALUE:
        return are_names
    targets: NDArray | None = None
    for number in np.flatnonzero(_is_whole(X[:_FEWEST_VALUES])):
        column = X[:, number]
        low, high = float(np.fmin.reduce(column)), float(np.fmax.reduce(column))
        if high - low < _FEWEST_VALUES - 1 or not _is_whole(column):
            continue
        targets = _centred(y) if targets is None else targets
        # Rows sorted by value and target, so that sums do not depend on the order of the rows.
        order = np.lexsort((*targets.T, column))[: np.count_nonzero(~np.isnan(column))]
        are_names[number] = _is_explained_by_value(column[order], targets[order])
    return are_names


def _is_whole(values: NDArray) -> NDArray[np.bool_]:
    """Say in which columns all values are whole or missing."""
    return (np.isnan(values) | (values == np.rint(values))).all(axis=0)


def _centred(y: NDArray) -> NDArray[np.float64]:
    """Return standardised columns for y: indicators of frequent classes, or ranks of numbers."""
    if y.ndim == 1 and (y.dtype.kind not in "iuf" or np.unique(y).size <= _FEWEST_VALUES):
        classes, place, counts = np.unique(y, return_inverse=True, return_counts=True)
        most = np.argsort(-counts, kind="stable")[: min(_MOST_TARGETS, classes.size - 1)]
        columns = (place[:, None] == most).astype(np.float64)
    else:
        columns = rankdata(y.reshape(len(y), -1)[:, :_MOST_TARGETS], axis=0) / len(y)
    spread = columns.std(axis=0)
    return (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _is_explained_by_value(column: NDArray, targets: NDArray[np.float64]) -> bool:
    """Say whether sorted values explain targets far better than bins of neighbouring values."""
    starts = np.flatnonzero(np.append(True, column[1:] != column[:-1]))
    if not _FEWEST_VALUES <= starts.size <= column.size / _ROWS_OF_A_VALUE:
        return False
    by_value = _gains(starts, targets)
    # Bins with about the same number of rows, which never split the rows of a value.
    even = np.arange(_FEWEST_VALUES) * column.size // _FEWEST_VALUES
    first = np.unique(np.searchsorted(starts, even, side="right") - 1)
    by_bin = _gains(starts[first], targets)
    excess = np.add.reduceat(by_value, first) - by_bin
    error = excess.std() * np.sqrt(excess.size)
    is_significant = excess.sum() > _STANDARD_ERRORS * error
    return bool(is_significant and by_value.sum() > _TIMES_AS_WELL * max(by_bin.sum(), 0.0))


def _gains(starts: NDArray[np.intp], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the leave-one-out gain of the shrunk mean of each group of rows.

    The gain is half of the decrease of the squared error.
    """
    n_rows = np.diff(np.append(starts, len(targets)))[:, None]
    total, squares = np.add.reduceat(targets, starts), np.add.reduceat(targets**2, starts)
    others = n_rows - 1 + _PRIOR_ROWS
    explained = (total**2 - squares) / others
    size = ((n_rows - 2) * total**2 + squares) / others**2
    return (explained - size / 2).sum(axis=1)


# ---------------------------------------------------------------- in fit and predict


def learn_levels(X, wanted: Any, names: Sequence[str] | None) -> tuple[Any, list[Levels] | None]:
    """Return X as numbers, and the levels of each column; None for numbers.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 8], "town": ["Rome", None]})
    >>> matrix, levels = learn_levels(frame, "from_dtype", ["age", "town"])
    >>> matrix.tolist(), levels
    ([[31.0, 0.0], [8.0, nan]], [None, ['Rome']])
    """
    if sparse.issparse(X):
        if chosen_columns(wanted, X.shape[1], names).any():
            raise ValueError(
                "categorical_features needs a dense X or a frame; a sparse matrix has numbers."
            )
        return X, None
    if is_frame(X) and not len(X.columns):
        raise ValueError("X has no columns; at least one is needed.")
    if _is_numeric(X) and (wanted is None or isinstance(wanted, str)):
        return X, None
    columns = columns_of(X)
    if isinstance(wanted, str) and wanted == "from_dtype":
        chosen = [not column.is_number for column in columns]
    else:
        chosen = chosen_columns(wanted, len(columns), names).tolist()
    levels = [
        column.levels() if is_chosen else None
        for column, is_chosen in zip(columns, chosen, strict=True)
    ]
    return _matrix_of(columns, levels), levels


def to_numbers(X, levels: Sequence[Levels]):
    """Return new rows as numbers, with the levels that were learned.

    >>> import pandas as pd
    >>> to_numbers(pd.DataFrame({"town": ["Bonn", "Rome"]}), [["Rome"]]).tolist()
    [[1.0], [0.0]]
    """
    if all(known is None for known in levels) and _is_numeric(X):
        return X
    return _matrix_of(columns_of(X.toarray() if sparse.issparse(X) else X), levels)


def _matrix_of(columns: list[Column], levels: Sequence[Levels]) -> NDArray:
    arrays = [
        column.numbers() if known is None else column.level_numbers(known)
        for column, known in zip(columns, levels, strict=True)
    ]
    kinds = {array.dtype for array, known in zip(arrays, levels, strict=True) if known is None}
    dtype = np.float32 if kinds <= {np.dtype(np.float32)} else np.float64
    return np.array(arrays, dtype).T


def _is_numeric(X) -> bool:
    """Say whether X is an array, or a frame of plain numbers."""
    return not is_frame(X) or all(
        re.match(r"u?int\d|float\d", str(kind).lower()) for kind in X.dtypes
    )


def numbers_as_levels(ranges: tuple, is_category: NDArray[np.bool_]) -> list[Levels]:
    """Return the levels of rows that are read by blocks: whole numbers up to the largest value.

    The ranges begin with the smallest and the largest values of all columns.

    >>> ranges = np.array([0.0, 1.5]), np.array([2.0, 7.5])
    >>> numbers_as_levels(ranges, np.array([True, False]))
    [[0, 1, 2], None]
    """
    levels: list[Levels] = [None] * is_category.size
    for feature in np.flatnonzero(is_category):
        low, high = (float(np.nan_to_num(side[feature], nan=-1.0)) for side in ranges[:2])
        for bound in (low, high):
            if not bound.is_integer() or not -1 <= bound < _MOST_LEVELS:
                raise ValueError(
                    f"categorical_features has column {feature}, but {bound:g} is no level number; "
                    "rows that are read by blocks need whole numbers from 0 to "
                    f"{_MOST_LEVELS - 1:,}, such as the codes of a categorical column."
                )
        levels[feature] = list(range(int(high) + 1))
    return levels


def check_level_numbers(levels: Sequence[Levels]) -> None:
    """Raise an error unless all levels are level numbers, as rows read by blocks hold them."""
    for known in levels:
        if known is not None and known != list(range(len(known))):
            raise ValueError(
                f"Rows that are read by blocks hold level numbers, but the model has levels such "
                f"as {known[0]!r}; predict a frame, or learn from level numbers."
            )


def counts_of(levels: Sequence[Levels]) -> NDArray[np.int64] | None:
    """Return how many levels each column has, 0 for numbers; None if there are no categories.

    >>> counts_of([None, ["Bonn", "Rome"]])
    array([0, 2])
    """
    if isinstance(levels, NoLevels) or all(known is None for known in levels):
        return None
    # A category whose values are all missing has no level, but 0 would mean numbers.
    return np.array([0 if known is None else max(len(known), 1) for known in levels])

"""Columns as people know them: which features of X each became, and the names of its cells.

A column of numbers is one feature. A category is one feature whose values number its levels, or
a feature of zeros and ones for each level. Explanations and the report speak of columns only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = ("number", "whole", "date", "category")
_ROWS_TO_LOOK_AT = 10_000


@dataclass(frozen=True)
class InputColumn:
    """One column of what a user brought.

    Parameters
    ----------
    name : str
    features : tuple of int
        Columns of X that it became.
    kind : {"number", "whole", "date", "category"}
        A date is a number of days since 1970-01-01.
    levels : tuple of str
        Of a category: the label of each of its features, or of each value of its feature.
    has_feature_a_level : bool
        Whether each level has a feature of zeros and ones.

    Examples
    --------
    >>> town = InputColumn("town", (1, 2), "category", ("Rome", "Bonn"), True)
    >>> town.encoded(1), town.encoded(None)
    ([0.0, 1.0], [0.0, 0.0])
    >>> town.words(np.array([31.0, 0.0, 1.0])), town.words(np.array([31.0, 0.0, 0.0]))
    ('Bonn', 'missing')
    """

    name: str
    features: tuple[int, ...]
    kind: str = "number"
    levels: tuple[str, ...] = ()
    has_feature_a_level: bool = False

    def encoded(self, level: int | None) -> list[float]:
        """Return the values of the features for a level; None is a missing or new one."""
        if not self.has_feature_a_level:
            return [np.nan if level is None else float(level)]
        return [float(place == level) for place in range(len(self.features))]

    def level_of(self, rows: NDArray) -> NDArray[np.intp]:
        """Return the level of each of some rows of X, and their number where it is missing."""
        if self.has_feature_a_level:
            own = rows[:, list(self.features)] == 1
            return np.where(own.any(axis=1), own.argmax(axis=1), len(self.levels))
        values = rows[:, self.features[0]].astype(np.float64)
        is_known = (values >= 0) & (values < len(self.levels))
        return np.where(is_known, np.nan_to_num(values), len(self.levels)).astype(np.intp)

    def words(self, row: NDArray) -> str:
        """Return what a row of X has in this column, as people write it."""
        if self.kind == "category":
            return (*self.levels, "missing")[self.level_of(row[None])[0]]
        value = float(row[self.features[0]])
        if np.isnan(value):
            return "missing"
        if self.kind == "date":
            return str(np.datetime64(round(value), "D"))
        # As it was written: 0.1, not the float32 number next to it with all its digits.
        return f"{float(str(row[self.features[0]])):g}" if self.kind == "number" else f"{value:.0f}"


def columns_of_rules(
    rules: Sequence[Mapping[str, Any]],
    kinds: Mapping[str, str],
    known: Sequence[Sequence | None],
) -> tuple[InputColumn, ...]:
    """Return the columns that a `TableEncoder` encoded.

    Kinds are those of columns that are not plain numbers or text, by name; known are the levels
    of features that are categories of the model.

    Examples
    --------
    >>> rules = [{"name": "age", "kind": "number"}, {"name": "sex", "kind": "text"}]
    >>> columns = columns_of_rules(rules, {"age": "whole"}, [None, ["f", "m"]])
    >>> [column.kind for column in columns]
    ['whole', 'category']
    """
    columns = []
    for place, (rule, own) in enumerate(zip(rules, known, strict=True)):
        kind = "category" if own is not None else kinds.get(rule["name"], "number")
        levels = tuple(map(str, own or ()))
        if kind == "category" and not levels:  # such as booleans, which are numbers of two values
            levels = ("false", "true")
        columns.append(InputColumn(str(rule["name"]), (place,), kind, levels))
    return tuple(columns)


def columns_of_features(
    names: Sequence[str], known: Sequence[Sequence | None], X=None
) -> tuple[InputColumn, ...]:
    """Return a column for each feature of X; whole ones are those with no other numbers."""
    some = None if X is None else X[:_ROWS_TO_LOOK_AT]
    is_whole = [False] * len(names)
    if isinstance(some, np.ndarray):
        with np.errstate(invalid="ignore"):
            is_whole = (np.isnan(some) | (some == np.rint(some))).all(axis=0).tolist()
    columns = []
    for place, (name, levels, whole) in enumerate(zip(names, known, is_whole, strict=True)):
        if levels is None:
            columns.append(InputColumn(name, (place,), "whole" if whole else "number"))
        else:
            words = tuple(str(level) for level in levels)
            columns.append(InputColumn(name, (place,), "category", words))
    return tuple(columns)

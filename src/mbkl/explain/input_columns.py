"""Columns as people know them: what kind each is, and its values in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ROWS_TO_LOOK_AT = 10_000


@dataclass(frozen=True)
class InputColumn:
    """One column of what a user brought.

    Parameters
    ----------
    name : str
    kind : {"number", "whole", "date", "category"}
        A date is a number of days since 1970-01-01.
    levels : tuple of str
        Of a category, whose values number them.

    Examples
    --------
    >>> town = InputColumn("town", "category", ("Rome", "Bonn"))
    >>> town.words(1.0), town.words(np.nan), InputColumn("day", "date").words(18_000.0)
    ('Bonn', 'missing', '2019-04-14')
    """

    name: str
    kind: str = "number"
    levels: tuple[str, ...] = ()

    def level_of(self, values: NDArray) -> NDArray[np.intp]:
        """Return the level of each value, and their number where it is missing or new."""
        is_known = (values >= 0) & (values < len(self.levels))
        return np.where(is_known, np.nan_to_num(values), len(self.levels)).astype(np.intp)

    def words(self, value: float) -> str:
        """Return a value as people write it."""
        if self.kind == "category":
            return (*self.levels, "missing")[self.level_of(np.asarray(value))]
        if np.isnan(value):
            return "missing"
        if self.kind == "date":
            return str(np.datetime64(int(np.floor(value)), "D"))
        # As it was written: 0.1, not the float32 number next to it with all its digits.
        return f"{float(str(value)):g}" if self.kind == "number" else f"{value:.0f}"


def input_columns(
    names: Sequence[str],
    known: Sequence[Sequence | None],
    kinds: Mapping[str, str] | None = None,
    X=None,
) -> tuple[InputColumn, ...]:
    """Return a column for each feature, of which categories of the model have known levels.

    Kinds are those of columns by name, else numbers are whole where X has no others.

    Examples
    --------
    >>> [column.kind for column in input_columns(["age", "sex"], [None, ["f", "m"]])]
    ['number', 'category']
    """
    is_whole = [False] * len(names)
    if isinstance(X, np.ndarray):
        some = X[:_ROWS_TO_LOOK_AT]
        with np.errstate(invalid="ignore"):
            is_whole = (np.isnan(some) | (some == np.rint(some))).all(axis=0).tolist()
    columns = []
    for name, own, whole in zip(names, known, is_whole, strict=True):
        if own is not None:
            columns.append(InputColumn(name, "category", tuple(map(str, own))))
            continue
        kind = (kinds or {}).get(name, "whole" if whole else "number")
        # Booleans are numbers of two values.
        columns.append(InputColumn(name, kind, ("false", "true") if kind == "category" else ()))
    return tuple(columns)

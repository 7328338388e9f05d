"""Columns as users know them: the kind of each, its values as text, and notes on leaks.

A column that predicts the target by itself is an identifier or a leak.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ROWS_TO_LOOK_AT = 10_000
# A leak explains at least this share of what a constant prediction leaves unexplained.
_ALMOST_ALL = 0.98
_MOST_ROWS, _MOST_NAMES = 50_000, 5


@dataclass(frozen=True)
class InputColumn:
    """One column of the data of a user.

    Parameters
    ----------
    name : str
    kind : {"number", "whole", "date", "category"}
        A date is a number of days since 1970-01-01.
    levels : tuple of str
        Levels of a category; its values are indices of levels.

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
        """Return the level of each value; len(levels) for missing values and new levels."""
        is_known = (values >= 0) & (values < len(self.levels))
        return np.where(is_known, np.nan_to_num(values), len(self.levels)).astype(np.intp)

    def words(self, value: float) -> str:
        """Return a value as text."""
        if self.kind == "category":
            return (*self.levels, "missing")[self.level_of(np.asarray(value))]
        if np.isnan(value):
            return "missing"
        if self.kind == "date":
            return str(np.datetime64(int(np.floor(value)), "D"))
        # The shortest text: 0.1, not all digits of the float32 number next to it.
        return f"{float(str(value)):g}" if self.kind == "number" else f"{value:.0f}"


def input_columns(
    names: Sequence[str],
    known: Sequence[Sequence | None],
    kinds: Mapping[str, str] | None = None,
    X=None,
) -> tuple[InputColumn, ...]:
    """Return a column for each feature; `known` has the levels of categories, None for others.

    `kinds` are the kinds of columns by name. Other columns are whole if all their values in X are.

    >>> [column.kind for column in input_columns(["age", "sex"], [None, ["f", "m"]])]
    ['number', 'category']
    """
    is_whole = [False] * len(names)
    if isinstance(X, np.ndarray):
        some = X[:_ROWS_TO_LOOK_AT]
        with np.errstate(invalid="ignore"):
            is_whole = (np.isnan(some) | (some == np.rint(some))).all(axis=0).tolist()
    columns = []
    for name, levels, whole in zip(names, known, is_whole, strict=True):
        if levels is not None:
            columns.append(InputColumn(name, "category", tuple(map(str, levels))))
            continue
        kind = (kinds or {}).get(name, "whole" if whole else "number")
        # A category without known levels is boolean.
        columns.append(InputColumn(name, kind, ("false", "true") if kind == "category" else ()))
    return tuple(columns)


# ---------------------------------------------------------------- leaks


def notes_on_leaks(
    columns: Iterable[tuple[str, NDArray, bool]], y: NDArray, target: str, are_classes: bool
) -> list[str]:
    """Return a note on the columns each of which predicts y almost perfectly, if there are any.

    A column is its name, its values, and whether these are level numbers of a category. Of several
    targets, columns of y, one is enough.

    >>> columns = [("id", np.arange(200), False), ("size", np.arange(200) % 7, False)]
    >>> notes_on_leaks(columns, np.repeat(["no", "yes"], 100), "churn", True)
    ["Column 'id' alone tells 'churn' almost perfectly: leave it out if it is known only \
afterwards, or just numbers the rows."]
    """
    every = -(-len(y) // _MOST_ROWS)
    some = y[::every]
    targets = list(some.reshape(len(some), -1).T)
    if are_classes:
        targets = [np.unique(each, return_inverse=True)[1] for each in targets]
    predicts = _predicts_classes if are_classes else _predicts_numbers
    leaks = [
        f"'{name}'"
        for name, values, is_category in columns
        if any(predicts(values[::every], is_category, each) for each in targets)
    ]
    if not leaks:
        return []
    shown = " or ".join(leaks[:_MOST_NAMES])
    predicted = f"'{target}'" if len(targets) == 1 else f"one of '{target}'"
    return [
        f"Column {shown} alone tells {predicted} almost perfectly: leave it out if it is known "
        "only afterwards, or just numbers the rows."
    ]


def _predicts_classes(values: NDArray, is_category: bool, classes: NDArray[np.intp]) -> bool:
    """Say whether nearly all rows are of the most frequent class of their value.

    Each interval of values with the same most frequent class counts as one more error, because a
    row is needed to learn it. So does each level of a category: names that occur once predict
    nothing.
    """
    places = np.unique(values, return_inverse=True)[1]
    n_classes = classes.max() + 1
    pairs, counts = np.unique(places * n_classes + classes, return_counts=True)
    order = np.lexsort((counts, pairs // n_classes))
    most = order[np.append(np.diff(pairs[order] // n_classes) > 0, True)]
    n_intervals = (
        most.size if is_category else 1 + np.count_nonzero(np.diff(pairs[most] % n_classes))
    )
    wrong = classes.size - counts[most].sum() + n_intervals - 1
    return bool(wrong < (1 - _ALMOST_ALL) * (classes.size - np.bincount(classes).max()))


def _predicts_numbers(values: NDArray, is_category: bool, y: NDArray) -> bool:
    """Say whether rows of equal or neighbouring values have nearly the same number."""
    if is_category:
        return False
    places = np.unique(values, return_inverse=True)[1]
    means = np.bincount(places, y) / np.bincount(places)
    unexplained = ((y - means[places]) ** 2).sum() + (np.diff(means) ** 2).sum() / 2
    return bool(unexplained < (1 - _ALMOST_ALL) * ((y - y.mean()) ** 2).sum())

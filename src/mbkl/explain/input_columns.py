"""Columns as people know them: what kind each is, its values in words, and what is odd about it.

A column that tells by itself what is to be predicted is an identifier or a leak.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ROWS_TO_LOOK_AT = 10_000
# Of what a constant prediction does not tell, the share that such a column tells.
_ALMOST_ALL = 0.98
_MOST_ROWS, _MOST_NAMES = 50_000, 5


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


# ---------------------------------------------------------------- leaks


def notes_on_leaks(
    columns: Iterable[tuple[str, NDArray, bool]], y: NDArray, target: str, are_classes: bool
) -> list[str]:
    """Return a note on the columns each of which tells nearly all of y, if there are any.

    A column is its name, its numbers, and whether these number the levels of a category. Of several
    targets, columns of y, it may tell any.

    >>> columns = [("id", np.arange(200), False), ("size", np.arange(200) % 7, False)]
    >>> notes_on_leaks(columns, np.repeat(["no", "yes"], 100), "churn", True)
    ["Column 'id' alone tells 'churn' almost perfectly: leave it out if it is known only \
afterwards, or just numbers the rows."]
    """
    every = -(-len(y) // _MOST_ROWS)
    some = y[::every]
    targets = list(some.reshape(len(some), -1).T)
    if are_classes:
        targets = [np.unique(own, return_inverse=True)[1] for own in targets]
    tells = _tells_classes if are_classes else _tells_numbers
    found = [
        f"'{name}'"
        for name, values, is_category in columns
        if any(tells(values[::every], is_category, own) for own in targets)
    ]
    if not found:
        return []
    shown = " or ".join(found[:_MOST_NAMES])
    told = f"'{target}'" if len(targets) == 1 else f"one of '{target}'"
    return [
        f"Column {shown} alone tells {told} almost perfectly: leave it out if it is known only "
        "afterwards, or just numbers the rows."
    ]


def _tells_classes(values: NDArray, is_category: bool, classes: NDArray[np.intp]) -> bool:
    """Say whether few rows are of another class than most with their value.

    Each interval in which that class is the same counts as one more: it is learned from a row. Of
    a category each level does, so that names which come once tell nothing.
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


def _tells_numbers(values: NDArray, is_category: bool, y: NDArray) -> bool:
    """Say whether rows of the same value, or of neighbouring ones, have nearly the same number."""
    if is_category:
        return False
    places = np.unique(values, return_inverse=True)[1]
    means = np.bincount(places, y) / np.bincount(places)
    unexplained = ((y - means[places]) ** 2).sum() + (np.diff(means) ** 2).sum() / 2
    return bool(unexplained < (1 - _ALMOST_ALL) * ((y - y.mean()) ** 2).sum())

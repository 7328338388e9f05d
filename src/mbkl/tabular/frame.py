"""What is read from a file: columns, labels, and where each row came from."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.tabular.columns import BadValueError, is_text, to_labels


class FrameError(ValueError):
    """A frame that cannot be used; one line with the file, the place and the remedy."""


@dataclass(frozen=True)
class Frame:
    """Rows of a file.

    Parameters
    ----------
    path : str
        The file, for messages.
    columns : pyarrow.Table or csr_array
        The features; sparse where the file is.
    row_numbers : ndarray of shape (n_rows,)
        Rows of the file, from 1 below the header.
    labels : ndarray of shape (n_rows,) or None
        Text or integers.
    target : str or None
        Column that the labels come from.
    notes : tuple of str
        What the user may want to know.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import numpy as np
    >>> frame = Frame("data.csv", pa.table({"a": [1, 2], "b": ["x", "y"]}), np.array([1, 2]))
    >>> frame.with_target("b").labels
    array(['x', 'y'], dtype='<U1')
    >>> frame.with_target(-1).names
    ['a']
    """

    path: str
    columns: Any
    row_numbers: NDArray[np.intp]
    labels: NDArray | None = None
    target: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.row_numbers.size

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a sparse matrix."""
        return not hasattr(self.columns, "column_names")

    @property
    def names(self) -> list[str]:
        """Names of the features, in order."""
        if self.is_sparse:
            return [f"x{number}" for number in range(self.columns.shape[1])]
        return list(self.columns.column_names)

    @property
    def y(self) -> NDArray:
        """The labels, which must be there."""
        if self.labels is None:
            shown = ", ".join(self.names[:20]) + (", ..." if len(self.names) > 20 else "")
            raise FrameError(
                f"{self.path}: which column holds the labels? Name the target (--target); there "
                f"are: {shown}."
            )
        return self.labels

    @contextmanager
    def errors_located(self) -> Iterator[None]:
        """Make errors about the columns name the file and its row."""
        try:
            yield
        except BadValueError as error:
            place = f"{self.path}, row {self.row_numbers[error.row]}, column '{error.column}'"
            raise FrameError(f"{place}: {error.reason}") from None
        except ValueError as error:
            raise FrameError(f"{self.path}: {error}") from None

    @property
    def text_names(self) -> list[str]:
        """Columns of text, and the one of the labels if they are: to read other rows alike."""
        if self.is_sparse:
            return []
        names = [name for name in self.names if is_text(self.columns.column(name))]
        labels_are_text = self.labels is not None and self.labels.dtype.kind == "U"
        return [*names, self.target] if labels_are_text and self.target else names

    def check_labels(self, classes: NDArray) -> None:
        """Raise an error if there are labels that are none of the classes."""
        unknown = np.setdiff1d(self.y, classes)
        if unknown.size:
            known = ", ".join(map(str, classes))
            raise FrameError(
                f"{self.path}, column '{self.target}': label '{unknown[0]}' is none of those "
                f"learned: {known}."
            )

    def take(self, rows: NDArray[np.intp]) -> Frame:
        """Return some of the rows."""
        return replace(
            self,
            columns=self.columns[rows] if self.is_sparse else self.columns.take(rows),
            row_numbers=self.row_numbers[rows],
            labels=None if self.labels is None else self.labels[rows],
        )

    def without(self, names: Sequence[str]) -> Frame:
        """Return the frame without some columns."""
        if not names:
            return self
        if self.is_sparse:
            raise FrameError(f"{self.path}: a sparse matrix has no columns to leave out by name.")
        for name in names:
            self.position(name)
        return replace(self, columns=self.columns.drop_columns(list(names)))

    def position(self, column: str | int) -> int:
        """Return the place of a column, given by its name or its place (negative: from the end)."""
        names = self.names
        if column in names:
            return names.index(str(column))
        try:
            return range(len(names))[int(column)]
        except (ValueError, IndexError):
            raise FrameError(f"{self.path}: no column '{column}'{suggestion(column, names)}") from (
                None
            )

    def with_target(self, target: str | int | None) -> Frame:
        """Return the frame with the labels taken out of a column.

        Rows without a label are left out. None keeps the labels that the format brings.
        """
        if target is None:
            return self
        if self.is_sparse:
            raise FrameError(f"{self.path}: labels are the first of each line, there is no column.")
        name = self.names[self.position(target)]
        column = self.columns.column(name)
        frame = replace(self, columns=self.columns.drop_columns([name]), target=name)
        present = np.flatnonzero(column.is_valid().to_numpy())
        if present.size < self.n_rows:
            first = np.flatnonzero(column.is_null().to_numpy())[0]
            note = (
                f"{self.n_rows - present.size} rows without a label in '{name}' are left out "
                f"(the first is row {self.row_numbers[first]})."
            )
            frame = replace(frame.take(present), notes=(*self.notes, note))
            column = column.take(present)
        try:
            return replace(frame, labels=to_labels(column))
        except ValueError as error:
            raise FrameError(f"{self.path}, column '{name}': {error}") from None


def suggestion(name: str | int, names: Sequence[str]) -> str:
    """Return what to write instead of a name that does not exist.

    Examples
    --------
    >>> suggestion("Age", ["age", "town"])
    "; did you mean 'age'?"
    >>> suggestion("y", ["age", "town"])
    '; there are: age, town.'
    """
    close = closest(name, names)
    if close is not None:
        return f"; did you mean '{close}'?"
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"; there are: {shown}."


def closest(name: str | int, names: Sequence[str]) -> str | None:
    """Return the name that is most like another one, if any is."""
    by_lower_case = {known.lower(): known for known in names}
    close = difflib.get_close_matches(str(name).lower(), list(by_lower_case), n=1)
    return by_lower_case[close[0]] if close else None

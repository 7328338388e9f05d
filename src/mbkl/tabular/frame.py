"""What is read from a file: columns, labels, and where each row came from."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mbkl.tabular.columns import (
    BadValueError,
    Task,
    index_names,
    is_text,
    note_on_index,
    task_of,
    to_labels,
    to_numbers,
)


class FrameError(ValueError):
    """A file that cannot be used; one line with the file, the place and the remedy."""


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
    labels : ndarray of shape (n_rows,) or (n_rows, n_targets) or None
        Text or integers, or float64 where numbers are to be learned.
    targets : tuple of str
        Columns that the labels come from.
    task : {"classification", "regression"} or None
        What there is to learn, see `task_of`; None without labels.
    header : bool
        Whether the file has names of columns.
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
    targets: tuple[str, ...] = ()
    task: Task | None = None
    header: bool = True
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
    def target(self) -> str | None:
        """What is to be learned, in words."""
        return ", ".join(self.targets) or None

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
        return [*names, *self.targets] if labels_are_text else names

    def with_classes(self, classes: NDArray) -> Frame:
        """Return the frame with labels spelt as classes are; others are an error."""
        labels = self.y
        if classes.dtype.kind == "U":
            labels = labels.astype(str)
            # What was true and false in one file may be text, such as TRUE, in another.
            if set(classes) <= {"true", "false"}:
                labels = np.char.lower(labels)
        unknown = np.setdiff1d(labels, classes)
        if unknown.size:
            known = ", ".join(map(str, classes[:20])) + (", ..." if classes.size > 20 else "")
            raise FrameError(
                f"{self.path}, column '{self.target}': label '{unknown[0]}' is none of those "
                f"learned: {known}. Correct it, leave its rows out, or learn from some of them."
            )
        return replace(self, labels=labels)

    def with_note(self, note: str) -> Frame:
        """Return the frame with one more thing to tell the user."""
        return replace(self, notes=(*self.notes, note))

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

    def without_index(self, keep: Sequence[str] = ()) -> Frame:
        """Return the frame without columns that number or name the rows, and with a note."""
        names = [] if self.is_sparse else index_names(self.columns)
        names = [name for name in names if name not in keep]
        return self.without(names).with_note(note_on_index(names)) if names else self

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

    def with_target(
        self, target: str | int | Sequence[str | int] | None, task: Task | None = None
    ) -> Frame:
        """Return the frame with the labels taken out of a column, or numbers out of several.

        Rows without a label are left out. No target keeps the labels that the format brings,
        no task finds out which it is.
        """
        wanted = [target] if isinstance(target, str | int) else list(target or ())
        if not wanted or wanted == list(self.targets):
            return self
        if self.is_sparse:
            raise FrameError(f"{self.path}: labels are the first of each line, there is no column.")
        names = [self.names[self.position(one)] for one in wanted]
        if len(set(names)) < len(names):
            raise FrameError(f"{self.path}: the targets {', '.join(names)} name a column twice.")
        rest = replace(self, columns=self.columns.drop_columns(names))
        return rest.with_labels(self.columns.select(names), task)

    def with_labels(self, columns: pa.Table, task: Task | None = None) -> Frame:
        """Return the frame with these labels, and without rows that have none."""
        names = columns.column_names
        frame = replace(self, targets=tuple(names))
        is_missing = [one.is_null(nan_is_null=True).to_numpy() for one in columns.columns]
        missing = np.flatnonzero(np.any(is_missing, axis=0))
        if missing.size:
            present = np.setdiff1d(np.arange(self.n_rows), missing)
            rows = "1 row" if missing.size == 1 else f"{missing.size} rows"
            note = (
                f"Left out: {rows} without a label in '{frame.target}' "
                f"(the first is row {self.row_numbers[missing[0]]})."
            )
            frame, columns = frame.take(present).with_note(note), columns.take(present)
        if len(names) > 1 and task == "classification":
            raise FrameError(f"{self.path}: several targets must be numbers; name one for classes.")
        with frame.errors_located():
            if len(names) > 1:
                numbers = zip(columns.columns, names, strict=True)
                labels = np.column_stack([to_numbers(*each) for each in numbers])
                return replace(frame, labels=labels, task="regression")
            (column,) = columns.columns
            task = task or task_of(column)
            labels = to_labels(column) if task == "classification" else to_numbers(column, *names)
        return replace(frame, labels=labels, task=task)


def suggestion(name: str | int, names: Sequence[str]) -> str:
    """Return what to write instead of a name that does not exist."""
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

"""What is read from a file: columns, labels, and where each row came from."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

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
    columns : pyarrow.Table
        The features.
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
    columns: pa.Table
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
    def names(self) -> list[str]:
        """Names of the features, in order."""
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

    @property
    def text_names(self) -> list[str]:
        """Columns of text, and the one of the labels if they are: to read other rows alike."""
        names = [name for name in self.names if is_text(self.columns.column(name))]
        labels_are_text = self.labels is not None and self.labels.dtype.kind == "U"
        return [*names, *self.targets] if labels_are_text else names

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

    def column(self, name: str | int) -> pa.ChunkedArray:
        """Return a column by its name, or by its place (negative: from the end)."""
        return self.columns.column(self._found(name))

    def without(self, names: Sequence[str]) -> Frame:
        """Return the frame without some columns."""
        return replace(self, columns=self.columns.drop_columns([self._found(one) for one in names]))

    def without_index(self, keep: Sequence[str] = ()) -> Frame:
        """Return the frame without columns that number or name the rows, and with a note."""
        names = [name for name in index_names(self.columns) if name not in keep]
        if not names:
            return self
        return replace(self.without(names), notes=(*self.notes, note_on_index(names)))

    def with_target(
        self, target: str | int | Sequence[str | int] | None, task: Task | None = None
    ) -> Frame:
        """Return the frame with the labels taken out of a column, or numbers out of several.

        Rows without a label are left out. No task finds out which it is.
        """
        wanted = [target] if isinstance(target, str | int) else list(target or ())
        if not wanted:
            return self
        names = [self._found(one) for one in wanted]
        if len(set(names)) < len(names):
            raise FrameError(f"{self.path}: the targets {', '.join(names)} name a column twice.")
        if len(names) > 1 and task == "classification":
            raise FrameError(f"{self.path}: several targets must be numbers; name one for classes.")
        missing = [self.column(name).is_null(nan_is_null=True).to_numpy() for name in names]
        reason = f"without a label in '{', '.join(names)}'"
        known = self._without_rows(np.any(missing, axis=0), reason)
        labels = [known.column(name) for name in names]
        frame = replace(known.without(names), targets=tuple(names))
        with frame.errors_located():
            task = task or ("regression" if len(names) > 1 else task_of(labels[0]))
            if task == "classification":
                return replace(frame, labels=to_labels(labels[0]), task=task)
            numbers = [to_numbers(*each) for each in zip(labels, names, strict=True)]
        y = numbers[0] if len(names) == 1 else np.column_stack(numbers)
        return replace(frame, labels=y, task=task)

    def _without_rows(self, is_left_out: NDArray[np.bool_], reason: str) -> Frame:
        """Return the other rows, with a note."""
        numbers = self.row_numbers[is_left_out]
        if not numbers.size:
            return self
        rows = "1 row" if numbers.size == 1 else f"{numbers.size} rows"
        note = f"Left out: {rows} {reason} (the first is row {numbers[0]})."
        return replace(
            self,
            columns=self.columns.filter(~is_left_out),
            row_numbers=self.row_numbers[~is_left_out],
            notes=(*self.notes, note),
        )

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

    def _found(self, column: str | int) -> str:
        """Return the name of a column, given by its name or its place."""
        names = self.names
        if column in names:
            return str(column)
        try:
            return names[int(column)]
        except (ValueError, IndexError):
            close = closest(str(column), names)
            shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            remedy = f"there are: {shown}." if close is None else f"did you mean '{close}'?"
            raise FrameError(f"{self.path}: no column '{column}'; {remedy}") from None


def closest(name: str, names: Sequence[str]) -> str | None:
    """Return the name that is most like another one, if any is."""
    by_lower_case = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), list(by_lower_case), n=1)
    return by_lower_case[close[0]] if close else None

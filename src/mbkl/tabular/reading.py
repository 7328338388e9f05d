"""Readers of files: text, Parquet, Arrow and matrices as frames with labels and row numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import feather, parquet
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from mbkl.tabular.columns import (
    BadValueError,
    Task,
    are_plain_numbers,
    closest,
    index_names,
    is_plain_number,
    is_text,
    is_unnamed,
    note_on_index,
    task_of,
    to_labels,
    to_numbers,
)
from mbkl.tabular.delimited import Dialect, read_delimited, unique

_NO_TEXT = ("", "?", "NA", "na", "<NA>", "N/A", "n/a", "#N/A", "null", "NULL", "None")
_MISSING = (*_NO_TEXT, "NaN", "nan", "-nan", "NaT")
# Numbers with a thousands separator, such as 1,234.5, or with a sign of a currency or of percent.
_UNIT = r"\s*[$€£¥%]?\s*"
_GROUPED = rf"^[+-]?{_UNIT}[+-]?(\d{{{{1,3}}}}([,.' ]\d{{{{3}}}})+|\d+)([{{0}}]\d*)?{_UNIT}$"
# Date formats besides ISO 8601; 12/10/2020 is ambiguous and not accepted.
_LIKE_A_DATE = re.compile(r"\d{1,4}([./])\d{1,2}\1\d{2,4}( \d.*)?")
_DATES = [
    f"{day}{time}" for day in ("%d.%m.%Y", "%Y/%m/%d") for time in ("", " %H:%M", " %H:%M:%S")
]
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_DELIMITED = (".csv", ".tsv", ".txt", ".data")
_ARROW = (".arrow", ".feather", ".ipc")
_PARQUET = (".parquet", ".pq")
_SVMLIGHT = (".svm", ".svmlight", ".libsvm")
_NUMPY = (".npy", ".npz")


class FrameError(ValueError):
    """A file cannot be used; the message names the file, the place and the remedy."""


@dataclass(frozen=True)
class Frame:
    """Rows of a file.

    Parameters
    ----------
    path : str
        The file, for messages.
    columns : pyarrow.Table
        The features; no columns if they are a matrix.
    row_numbers : ndarray of shape (n_rows,)
        Row numbers in the file; the first row below the header is 1.
    labels : ndarray of shape (n_rows,) or (n_rows, n_targets) or None
        Text or integers of classes, float64 of numbers.
    targets : tuple of str
        Names of the columns of the labels.
    task : {"classification", "regression"} or None
        What the labels are, see `task_of`; None without labels.
    header : bool
        Whether the file has names of columns.
    notes : tuple of str
        Notes for the user.
    matrix : csr_array or None
        The features, if the file holds a sparse matrix.

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
    matrix: sparse.csr_array | None = None

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
        """Names of the targets, as text."""
        return ", ".join(self.targets) or None

    @property
    def y(self) -> NDArray:
        """The labels; an error if there are none."""
        if self.labels is None:
            shown = ", ".join(self.names[:20]) + (", ..." if len(self.names) > 20 else "")
            raise FrameError(
                f"{self.path}: which column holds the labels? Name the target (--target); there "
                f"are: {shown}."
            )
        return self.labels

    @contextmanager
    def errors_located(self) -> Iterator[None]:
        """Turn errors about columns into errors that name the file and the row."""
        try:
            yield
        except BadValueError as error:
            place = f"{self.path}, row {self.row_numbers[error.row]}, column '{error.column}'"
            raise FrameError(f"{place}: {error.reason}") from None
        except ValueError as error:
            raise FrameError(f"{self.path}: {error}") from None

    def column(self, name: str | int) -> pa.ChunkedArray:
        """Return a column by its name, or by its place (negative: from the end)."""
        return self.columns.column(self._resolved(name))

    def without(self, names: Sequence[str]) -> Frame:
        """Return the frame without some columns."""
        resolved = [self._resolved(name) for name in names]
        return replace(self, columns=self.columns.drop_columns(resolved))

    def without_index(self, keep: Sequence[str] = ()) -> Frame:
        """Return the frame without index columns, and with a note on them."""
        names = [name for name in index_names(self.columns) if name not in keep]
        if not names:
            return self
        return replace(self.without(names), notes=(*self.notes, note_on_index(names)))

    def with_target(
        self, target: str | int | Sequence[str | int] | None, task: Task | None = None
    ) -> Frame:
        """Return the frame with its target columns as labels; several targets are numbers.

        Rows without a label are left out. A task of None is inferred from the labels.
        """
        wanted = [target] if isinstance(target, str | int) else list(target or ())
        if not wanted:
            return self
        names = [self._resolved(column) for column in wanted]
        if len(set(names)) < len(names):
            raise FrameError(f"{self.path}: the targets {', '.join(names)} name a column twice.")
        if len(names) > 1 and task == "classification":
            raise FrameError(f"{self.path}: several targets must be numbers; name one for classes.")
        missing = [self.column(name).is_null(nan_is_null=True).to_numpy() for name in names]
        reason = f"without a label in '{', '.join(names)}'"
        known = self._without_rows(np.any(missing, axis=0), reason)
        if not known.row_numbers.size:
            raise FrameError(
                f"{self.path}, column '{', '.join(names)}': the label is empty in all rows. Choose "
                "another column (--target)."
            )
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
        """Return the frame without some rows, and with a note on them."""
        numbers = self.row_numbers[is_left_out]
        if not numbers.size:
            return self
        rows = "1 row" if numbers.size == 1 else f"{numbers.size} rows"
        note = f"Left out: {rows} {reason} (the first is row {numbers[0]})."
        return replace(
            self,
            columns=self.columns.filter(~is_left_out),
            matrix=None if self.matrix is None else self.matrix[~is_left_out],
            row_numbers=self.row_numbers[~is_left_out],
            notes=(*self.notes, note),
        )

    def with_classes(self, classes: NDArray) -> Frame:
        """Return the frame with labels spelt like the classes; unknown labels are an error."""
        labels = self.y
        if classes.dtype.kind == "U":
            labels = labels.astype(str)
            # Booleans of one file may be text, such as TRUE, in another.
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

    def _resolved(self, column: str | int) -> str:
        """Return the name of a column, given by its name or its position."""
        names = self.names
        if column in names:
            return str(column)
        try:
            return names[int(column)]
        except (ValueError, IndexError):
            raise self._unknown(column) from None

    def _unknown(self, column: str | int) -> FrameError:
        close = closest(str(column), self.names)
        shown = ", ".join(self.names[:10]) + (", ..." if len(self.names) > 10 else "")
        remedy = f"there are: {shown}." if close is None else f"did you mean '{close}'?"
        return FrameError(f"{self.path}: no column '{column}'; {remedy}")


# ---------------------------------------------------------------- files


def read_frame(
    path: str | Path,
    *,
    target: str | int | Sequence[str | int] | None = None,
    task: Task | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    text: Sequence[str] = (),
    missing: Sequence[str] = (),
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Frame:
    r"""Read a file into columns.

    The ending of the name tells the format: .csv, .tsv, .txt, .data (also .gz, .bz2, .zst),
    .parquet, .arrow and .feather, .svm, .svmlight and .libsvm (also .gz, .bz2), .npy and .npz
    (arrays X and y, or a sparse matrix of SciPy). The format of a text file is detected.
    Features of matrices are x0, x1, ... and their labels, if the file has some, y.

    Columns that number or name the rows are left out: an index that pandas wrote, or an
    unnamed first column. Columns with duplicate names get a number after the name.

    Parameters
    ----------
    path : path
    target : str, int, sequence of them or None
        Column of the labels: its name, or its position (0 is the first, -1 the last); several
        columns are numbers. None means the labels in the file of a matrix, if any.
    task : {"classification", "regression"} or None
        What the labels are; None means the result of `task_of`.
    drop : sequence of str
        Columns to leave out.
    keep : sequence of str
        Columns never to leave out as an index.
    text : sequence of str
        Columns whose numbers are names, such as post codes.
    missing : sequence of str
        More marks of missing values in text files and in text columns, besides the empty
        field, ?, NA, N/A, NaN, null and None.
    header : bool or None
        Whether the first line of a text file holds the names of the columns; if not, they
        are column_1, column_2, ... None means names, unless the line has numbers that cannot
        be names.
    delimiter : str or None
        Separates fields; a space means any number of spaces. None is detected.
    decimal : str or None
        Decimal separator, in text files. None is detected.
    encoding : str or None
        Encoding of a text file. None is detected: UTF-8, UTF-16 with a byte-order mark, else
        Windows-1252.

    Returns
    -------
    frame : Frame

    Raises
    ------
    FrameError
        Names the file, the place and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mbkl.tabular import read_frame
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age,town,rich\n31,Rome,yes\n?,Bonn,no\n")
    >>> frame = read_frame(path, target="rich")
    >>> frame.names, frame.labels.tolist()
    (['age', 'town'], ['yes', 'no'])
    """
    path = Path(path)
    kind = _format(path)
    detected: Dialect | None = None
    matrix: sparse.csr_array | None = None
    notes: list[str] = []
    marks = (*_MISSING, *missing)
    try:
        if kind in _DELIMITED:
            delimiter = delimiter or ("\t" if kind == ".tsv" else None)
            dialect = Dialect(header, delimiter, decimal, encoding, marks, frozenset(text))
            columns, detected, notes = read_delimited(path, dialect)
        elif kind in _PARQUET:
            columns = parquet.ParquetFile(path).read()
        elif kind in _ARROW:
            columns = feather.read_table(path, memory_map=False)
        else:
            columns, matrix = _read_matrix(path, kind)
            if target is None and "y" in columns.column_names:
                target = ["y"]
    except (pa.ArrowException, OSError, LookupError, ValueError, EOFError, BadZipFile) as error:
        raise FrameError(f"{path}: {_reason(error, kind)}") from None
    n_rows = columns.num_rows if matrix is None else matrix.shape[0]
    if not n_rows:
        raise FrameError(f"{path}: there are no rows, only the names of columns.")
    clean, more_notes = _cleaned(columns, detected, header is None, text, keep, marks)
    frame = Frame(
        str(path),
        clean,
        np.arange(1, n_rows + 1),
        header=detected is None or bool(detected.header),
        notes=(*notes, *more_notes),
        matrix=matrix,
    )
    for name in text:
        if name not in (*frame.names, *keep):
            raise frame._unknown(name)
    return frame.without(drop).with_target(target, task).without_index(keep)


def _format(path: Path) -> str:
    """Return the ending of a file name, which gives the format."""
    if not path.exists():
        raise FrameError(f"{path}: there is no such file.")
    if path.is_dir():
        raise FrameError(f"{path} is a folder; name a file in it.")
    endings = [ending.lower() for ending in path.suffixes if ending.lower() not in _COMPRESSED]
    known = (*_DELIMITED, *_PARQUET, *_ARROW, *_SVMLIGHT, *_NUMPY)
    if not endings or endings[-1] not in known:
        raise FrameError(
            f"{path}: the name does not tell the format; save the file as one of "
            f"{', '.join(known)}."
        )
    return endings[-1]


def _read_matrix(path: Path, kind: str) -> tuple[pa.Table, sparse.csr_array | None]:
    """Return columns x0, x1, ... and the labels y; a sparse matrix stays a matrix.

    Feature x7 of an svmlight file has index 7; if indices begin with 1, x0 is empty. Nothing is
    unpickled.
    """
    labels = None
    if kind in _SVMLIGHT:
        X, labels = load_svmlight_file(str(path), zero_based=True)
    else:
        X = np.load(path, allow_pickle=False)
        if not isinstance(X, np.ndarray):
            with X as arrays:
                if "format" in arrays:
                    X = sparse.load_npz(path)
                elif "X" in arrays:
                    X, labels = arrays["X"], arrays.get("y")
                else:
                    names = ", ".join(arrays)
                    raise FrameError(f"the features must be an array named X; there are: {names}")
    if X.ndim != 2 or not X.size or X.dtype.kind not in "biuf":
        raise FrameError(f"X must be numbers in rows and columns, not {X.dtype} of shape {X.shape}")
    if labels is not None and labels.shape != X.shape[:1]:
        raise FrameError(f"{X.shape[0]} rows need as many labels y, not shape {labels.shape}")
    named = {} if labels is None else {"y": labels}
    matrix = None
    if sparse.issparse(X):
        matrix = sparse.csr_array(X)
        # Some methods do not support indices of eight bytes.
        if max(matrix.nnz, *matrix.shape) < np.iinfo(np.int32).max:
            matrix.indices, matrix.indptr = np.int32(matrix.indices), np.int32(matrix.indptr)
    else:
        named = {f"x{place}": np.ascontiguousarray(x) for place, x in enumerate(X.T)} | named
    # from_pandas=True makes NaN a missing value.
    columns = {name: pa.array(values, from_pandas=True) for name, values in named.items()}
    return pa.table(columns), matrix


def _reason(error: Exception, kind: str) -> str:
    """Return the message of a reader's error, with a remedy where one is known."""
    words = " ".join(str(error).split())
    if isinstance(error, FrameError):
        return f"{words}."
    if "allow_pickle" in words:
        words = "plain arrays alone are read, no objects"
    if "Empty CSV file" in words or "Could not skip initial" in words:
        return "there are no rows, only the names of columns."
    if "Expected" in words and "columns, got" in words:
        words = words.removeprefix("CSV parse error: ")
        return (
            f"{words[:200]}. Correct this row (the first line counts as row 1), or name the "
            "delimiter (--delimiter)."
        )
    if kind in _DELIMITED and isinstance(error, ValueError) and not isinstance(error, OSError):
        return f"{words[:300]}."
    if kind in _DELIMITED and isinstance(error, LookupError):
        return f"{words[:300]}. Name another encoding (--encoding), or leave it out."
    return f"this is no readable {kind} file, or a damaged one ({words[:200]})."


def _cleaned(
    columns: pa.Table,
    dialect: Dialect | None,
    header_is_guessed: bool,
    text: Sequence[str],
    keep: Sequence[str],
    missing: Sequence[str],
) -> tuple[pa.Table, list[str]]:
    """Return columns with distinct names and cleaned text, and notes for the user."""
    written = [name.strip() for name in columns.column_names]
    names = list(unique(written))
    notes = _notes_on_names(written, names, dialect is not None and header_is_guessed)
    clean = {}
    for name, column in zip(names, columns.columns, strict=True):
        if is_unnamed(name) and column.null_count == len(column) and name not in keep:
            continue  # the lines end with a delimiter
        if name in text or is_text(column):
            column = _trimmed(column, missing)
            if dialect and name not in text:
                column, more = _as_numbers(column, name, dialect.decimal)
                notes += more
        clean[name] = column
    # The metadata of pandas are needed later to find its index.
    return pa.table(clean).replace_schema_metadata(columns.schema.metadata), notes


def _notes_on_names(written: list[str], names: list[str], guessed: bool) -> list[str]:
    """Return notes on renamed columns, and on a first line that may have been misunderstood."""
    notes = []
    changed = [new for old, new in zip(written, names, strict=True) if old not in ("", new)]
    if changed:
        shown = ", ".join(f"'{name}'" for name in changed[:10])
        notes.append(f"Columns whose names came before are now named {shown}.")
    if guessed and names[0] == "column_1":
        notes.append(
            "The first line holds numbers, not names (--header, if it does): the columns are "
            f"'column_1' to '{names[-1]}'."
        )
    numbers = [name for name in names if is_plain_number(name)]
    if guessed and numbers and names != [str(number) for number in range(len(names))]:
        notes.append(
            f"Names of columns are numbers, such as '{numbers[0]}'; if the file has no line of "
            "names, say so (header=False, --no-header)."
        )
    return notes


def _trimmed(column: pa.ChunkedArray, missing: Sequence[str]) -> pa.ChunkedArray:
    """Return text without surrounding spaces; marks of missing values become null."""
    # Each different text is trimmed once.
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    values = pc.utf8_trim_whitespace(encoded.dictionary)
    absent = pc.is_in(values, pa.array(missing, pa.string()))
    values = pc.if_else(absent, pa.scalar(None, pa.string()), values)
    return pa.chunked_array([values.take(encoded.indices)])


def _as_numbers(
    column: pa.ChunkedArray, name: str, decimal: str | None
) -> tuple[pa.ChunkedArray, list[str]]:
    """Return text as numbers or dates if all of it is, and notes if most of it is."""
    if column.null_count == len(column):
        return column, []
    numbers = column
    if pc.all(pc.match_substring_regex(column, _GROUPED.format(decimal))).as_py():
        numbers = pc.replace_substring_regex(column, f"[^0-9{decimal}+-]", "")
    numbers = pc.replace_substring(numbers, decimal, ".")
    try:
        return numbers.cast(pa.float64()), []
    except pa.ArrowInvalid:
        pass
    example = column.drop_null()[0].as_py()
    if _LIKE_A_DATE.fullmatch(example):
        for form in _DATES:
            dates = pc.strptime(column, form, "s", error_is_null=True)
            if dates.null_count == column.null_count:
                return dates, []
        return column, [f"Column '{name}' is text: dates as '{example}' are to be as 2020-12-31."]
    if pc.mean(are_plain_numbers(numbers.unique())).as_py() <= 0.5:
        return column, []
    row = pc.index(are_plain_numbers(numbers), False).as_py()
    value = column[row].as_py()
    note = (
        f"Column '{name}' is text because of '{value}' in row {row + 1}; if that means a missing "
        f"value, say so (missing, --missing '{value}')."
    )
    return column, [note]

"""Files to frames: CSV, Parquet, Arrow, svmlight and NumPy. Nothing is unpickled."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import feather, parquet

from mbkl.tabular.columns import (
    Task,
    as_text,
    first_that_is_no_number,
    is_plain_number,
    is_text,
    is_unnamed,
    share_of_numbers,
)
from mbkl.tabular.delimited import Dialect, Layout, read_delimited, unique
from mbkl.tabular.frame import Frame, FrameError

_MISSING = ("", "?", "NA", "na", "<NA>", "N/A", "n/a", "#N/A", "null", "NULL", "None")
_MISSING_NUMBERS = ("NaN", "nan", "-nan", "NaT")
# Digits in groups of three, such as 1,234.5; what stands between them is no decimal. Signs of
# currencies and of percent are the same for all.
_SIGN = r"\s*[$€£¥%]?\s*"
_GROUPED = rf"^[+-]?{_SIGN}[+-]?(\d{{{{1,3}}}}([,.' ]\d{{{{3}}}})+|\d+)([{{0}}]\d*)?{_SIGN}$"
# Dates as people write them, besides 2020-12-31; 12/10/2020 may be two days.
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
_MATRIX_NAMES = ("X", "x", "data", "features")
_LABEL_NAMES = ("y", "Y", "target", "labels", "label")


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
    .parquet, .arrow and .feather, .svm, .svmlight and .libsvm (also .gz), .npy and .npz
    (arrays X and y, or a sparse matrix of SciPy). How a text file is written is found out.

    Columns that number or name the rows are left out: an index that pandas wrote, or a first
    column without a name. Columns of the same name get a number behind it.

    Parameters
    ----------
    path : path
    target : str, int, sequence of them or None
        Column of the labels: its name, or its place from 0, or from the end from -1; several
        columns are numbers. None takes the labels that the format brings (svmlight, y of .npz).
    task : {"classification", "regression"} or None
        What the labels are; None asks `task_of`.
    drop : sequence of str
        Columns to leave out.
    keep : sequence of str
        Columns not to leave out, whatever they look like.
    text : sequence of str
        Columns whose numbers are names, such as post codes.
    missing : sequence of str
        What else means a missing value in text files and in text columns; always so are an
        empty field, ?, NA, N/A, NaN, null and None.
    header : bool or None
        Whether the first line of a text file holds the names of the columns; without them they
        are column_1, column_2, ... None takes it for names unless it holds numbers that are
        none.
    delimiter : str or None
        Separates fields; a space stands for any number of them. None finds out.
    decimal : str or None
        Before the fraction of a number, in text files. None finds out.
    encoding : str or None
        Of a text file. None finds out: UTF-8, UTF-16 with its mark, else Windows-1252.

    Returns
    -------
    frame : Frame

    Raises
    ------
    FrameError
        With the file, the place and the remedy.

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
    if kind in _SVMLIGHT:
        frame = _read_svmlight(path, task)
    elif kind in _NUMPY:
        frame = _read_numpy(path, task)
    else:
        delimiter = delimiter or ("\t" if kind == ".tsv" else None)
        marks = (*_MISSING, *_MISSING_NUMBERS, *missing)
        dialect = Dialect(header, delimiter, decimal, encoding, marks, frozenset(text))
        frame = _read_columns(path, kind, dialect, keep)
    if not frame.n_rows:
        raise FrameError(f"{path}: there are no rows, only the names of columns.")
    return frame.without(drop).with_target(target, task).without_index(keep)


def _format(path: Path) -> str:
    """Return the ending that tells the format."""
    if not path.exists():
        raise FrameError(f"{path}: there is no such file.")
    if path.is_dir():
        raise FrameError(f"{path} is a folder; name a file in it.")
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSED:
        endings.pop()
    known = (*_DELIMITED, *_PARQUET, *_ARROW, *_SVMLIGHT, *_NUMPY)
    if not endings or endings[-1] not in known:
        raise FrameError(
            f"{path}: the name does not tell the format; save the file as one of "
            f"{', '.join(known)}."
        )
    return endings[-1]


def _read_columns(path: Path, kind: str, dialect: Dialect, keep: Sequence[str]) -> Frame:
    """Read a file of named columns."""
    layout: Layout | None = None
    notes: list[str] = []
    try:
        if kind in _DELIMITED:
            columns, layout, notes = read_delimited(path, dialect)
        elif kind in _PARQUET:
            columns = parquet.ParquetFile(path).read()
        else:
            columns = feather.read_table(path, memory_map=False)
    except (pa.ArrowException, OSError, LookupError, ValueError) as error:
        raise FrameError(f"{path}: {_reason(error, kind)}") from None
    stripped = [name.strip() for name in columns.column_names]
    names = list(unique(stripped))
    notes += _notes_on_names(stripped, names, layout is not None and dialect.header is None)
    clean = {}
    for name, column in zip(names, columns.columns, strict=True):
        if is_unnamed(name) and column.null_count == len(column) and name not in keep:
            continue  # a delimiter at the end of each line
        if name in dialect.text or is_text(column):
            column = _trimmed(column, dialect.missing)
        if layout and name not in dialect.text and is_text(column):
            column, note = _as_numbers(column, name, layout.decimal)
            notes += note
        clean[name] = column
    row_numbers = np.arange(1, columns.num_rows + 1)
    # What pandas wrote about the index is still needed.
    columns = pa.table(clean).replace_schema_metadata(columns.schema.metadata)
    header = layout.header if layout else True
    return Frame(str(path), columns, row_numbers, header=header, notes=tuple(notes))


def _reason(error: Exception, kind: str) -> str:
    """Return in words what a reader did not like."""
    words = " ".join(str(error).split())
    if "Empty CSV file" in words:
        return "there are no rows, only the names of columns."
    if "Expected" in words and "columns, got" in words:
        words = words.removeprefix("CSV parse error: ")
        return (
            f"{words[:200]}. Correct this row (the first line counts as row 1), or name the "
            "delimiter (--delimiter)."
        )
    if kind in _DELIMITED and isinstance(error, ValueError) and not isinstance(error, OSError):
        return f"{words[:300]}."
    if isinstance(error, LookupError):
        return f"{words[:300]}. Name another encoding (--encoding), or leave it out."
    return f"this is no readable {kind} file, or a damaged one ({words[:200]})."


def _notes_on_names(written: list[str], names: list[str], guessed: bool) -> list[str]:
    """Say which columns got other names, and whether the names may be none."""
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
    counted = [str(number) for number in range(len(names))]
    if guessed and numbers and names != counted:
        notes.append(
            f"Names of columns are numbers, such as '{numbers[0]}'; if the file has no line of "
            "names, say so (header=False, --no-header)."
        )
    return notes


def _trimmed(column: pa.ChunkedArray, missing: Sequence[str]) -> pa.ChunkedArray:
    """Return text without spaces around it, and nothing where it means so."""
    # Done once for each different text.
    encoded = as_text(column).combine_chunks().dictionary_encode()
    values = pc.utf8_trim_whitespace(encoded.dictionary)
    absent = pc.is_in(values, pa.array(missing, pa.string()))
    values = pc.if_else(absent, pa.scalar(None, pa.string()), values)
    return pa.chunked_array([values.take(encoded.indices)])


def _as_numbers(
    column: pa.ChunkedArray, name: str, decimal: str
) -> tuple[pa.ChunkedArray, list[str]]:
    """Return text as numbers or dates if all of it is; and a note if most of it is numbers."""
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
    some = column.drop_null()[0].as_py()
    if _LIKE_A_DATE.fullmatch(some):
        for form in _DATES:
            dates = pc.strptime(column, form, "s", error_is_null=True)
            if dates.null_count == column.null_count:
                return dates, []
        return column, [f"Column '{name}' is text: dates as '{some}' are to be as 2020-12-31."]
    if share_of_numbers(numbers.unique()) <= 0.5:
        return column, []
    row, _ = first_that_is_no_number(numbers)
    value = column[row].as_py()
    note = (
        f"Column '{name}' is text because of '{value}' in row {row + 1}; if that means a missing "
        f"value, say so (missing, --missing '{value}')."
    )
    return column, [note]


# ---------------------------------------------------------------- matrices


def _read_svmlight(path: Path, task: Task | None = None) -> Frame:
    """Read a file of lines `label index:value ...`.

    Feature x7 is the one with index 7; where indices begin with 1, x0 is empty.
    """
    from sklearn.datasets import load_svmlight_file

    if not path.stat().st_size:
        raise FrameError(f"{path}: the file is empty.")
    try:
        X, labels = load_svmlight_file(str(path), zero_based=True)
    except (ValueError, OSError, EOFError) as error:
        raise FrameError(
            f"{path}: this is no svmlight file (lines 'label index:value ...'): {error}"
        ) from None
    return _matrix_frame(path, X, labels, task)


def _read_numpy(path: Path, task: Task | None = None) -> Frame:
    """Read X (and y) from an .npz file, a sparse matrix of SciPy, or a matrix from .npy."""
    from scipy import sparse

    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return _matrix_frame(path, content)
        with content as arrays:
            if "format" in arrays:
                return _matrix_frame(path, sparse.load_npz(path))
            matrix = next((arrays[name] for name in _MATRIX_NAMES if name in arrays), None)
            labels = next((arrays[name] for name in _LABEL_NAMES if name in arrays), None)
            names = ", ".join(arrays.files)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        hint = "objects are not read" if "allow_pickle" in str(error) else str(error)
        raise FrameError(f"{path}: this is no file of plain arrays ({hint}).") from None
    if matrix is None:
        raise FrameError(
            f"{path}: the features must be an array named X (and the labels y); there are: {names}."
        )
    return _matrix_frame(path, matrix, labels, task)


def _matrix_frame(
    path: Path, X: Any, labels: NDArray | None = None, task: Task | None = None
) -> Frame:
    """Check shapes and types, and name the columns x0, x1, ..."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise FrameError(
            f"{path}: the features must be numbers in rows and columns, not an array of shape "
            f"{X.shape} and type {X.dtype}."
        )
    if labels is not None and labels.shape != X.shape[:1]:
        raise FrameError(
            f"{path}: {X.shape[0]} rows need as many labels, not an array of shape {labels.shape}."
        )
    columns: Any
    if not isinstance(X, np.ndarray):
        columns = _narrow(X)
    else:
        # From pandas means that NaN is a missing value.
        arrays = [pa.array(np.ascontiguousarray(column), from_pandas=True) for column in X.T]
        columns = pa.table(arrays, names=[f"x{number}" for number in range(X.shape[1])])
    row_numbers = np.arange(1, X.shape[0] + 1)
    frame = Frame(str(path), columns, row_numbers)
    if labels is None:
        return frame
    return frame.with_labels(pa.table({"y": pa.array(labels, from_pandas=True)}), task)


def _narrow(matrix: Any) -> Any:
    """Return a sparse matrix by rows, with indices of four bytes: not all rivals take eight."""
    from scipy.sparse import csr_array

    rows = csr_array(matrix)
    if max(rows.nnz, *rows.shape) < np.iinfo(np.int32).max:
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows

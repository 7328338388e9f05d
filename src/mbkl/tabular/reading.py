"""Files to frames: CSV, Parquet, Arrow, svmlight, and NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mbkl.extras import require
from mbkl.tabular.columns import (
    as_text,
    first_that_is_no_number,
    is_plain_number,
    is_text,
    share_of_numbers,
)
from mbkl.tabular.frame import Frame, FrameError
from mbkl.tabular.matrices import read_numpy, read_svmlight

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "None")
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_DELIMITED = (".csv", ".tsv", ".txt", ".data")
_ARROW = (".arrow", ".feather", ".ipc")
_PARQUET = (".parquet", ".pq")
_SVMLIGHT = (".svm", ".svmlight", ".libsvm")
_NUMPY = (".npy", ".npz")
_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Dialect:
    """How to read columns; see `read_frame`."""

    text: set[str]
    missing: list[str]
    header: bool
    delimiter: str | None
    encoding: str


def read_frame(
    path: str | Path,
    *,
    target: str | int | None = None,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    missing: Sequence[str] = (),
    header: bool = True,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Frame:
    r"""Read a file into columns.

    The ending of the name tells the format: .csv, .tsv, .txt, .data (also .gz, .bz2, .zst),
    .parquet, .arrow and .feather, .svm, .svmlight and .libsvm (also .gz), .npy and .npz
    (arrays X and y, or a sparse matrix of SciPy).

    Parameters
    ----------
    path : path
    target : str, int or None
        Column of the labels: its name, or its place from 0, or from the end from -1. None
        takes the labels that the format brings (svmlight, y of .npz).
    drop : sequence of str
        Columns to leave out.
    text : sequence of str
        Columns whose numbers are names, such as post codes.
    missing : sequence of str
        What else means a missing value in text files and in text columns; always so are an
        empty field, ?, NA, N/A, NaN, null and None.
    header : bool
        Whether the first line of a text file holds the names of the columns.
    delimiter : str or None
        None finds out.
    encoding : str
        Of a text file.

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
    if not path.exists():
        raise FrameError(f"{path}: there is no such file.")
    kind = _format(path)
    if kind in _SVMLIGHT:
        frame = read_svmlight(path)
    elif kind in _NUMPY:
        frame = read_numpy(path)
    else:
        dialect = Dialect(set(text), [*MISSING, *missing], header, delimiter, encoding)
        frame = _read_columns(path, kind, dialect)
    if not frame.n_rows:
        raise FrameError(f"{path}: there are no rows, only the names of columns.")
    return frame.without(drop).with_target(target)


def _format(path: Path) -> str:
    """Return the ending that tells the format."""
    if path.is_dir():
        raise FrameError(f"{path} is a folder; name a file in it.")
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSED:
        endings.pop()
    known = (*_DELIMITED, *_PARQUET, *_ARROW, *_SVMLIGHT, *_NUMPY)
    if not endings or endings[-1] not in known:
        raise FrameError(
            f"{path}: the name does not tell the format; rename the file to end with one of "
            f"{', '.join(known)}."
        )
    return endings[-1]


def _read_columns(path: Path, kind: str, dialect: Dialect) -> Frame:
    """Read a file of named columns."""
    pa = require("pyarrow", "cli")
    delimited = kind in _DELIMITED
    try:
        if delimited:
            columns = _read_delimited(path, kind, dialect)
        elif kind in _PARQUET:
            columns = require("pyarrow.parquet", "cli").read_table(path)
        else:
            columns = require("pyarrow.feather", "cli").read_table(path, memory_map=False)
    except (pa.ArrowException, OSError, LookupError, UnicodeError) as error:
        raise FrameError(f"{path}: {_reason(error, kind)}") from None
    stripped = [name.strip() for name in columns.column_names]
    names = [name or f"column {number}" for number, name in enumerate(stripped)]
    _check_names(path, names)
    notes = _notes_on_header(names) if delimited else []
    clean = {}
    for name, column in zip(names, columns.columns, strict=True):
        if delimited and pa.types.is_binary(column.type):
            raise FrameError(
                f"{path}, column '{name}': the text is not UTF-8. Name its encoding "
                "(encoding, --encoding latin-1)."
            )
        if name in dialect.text:
            clean[name] = _trimmed(column, dialect)
        elif is_text(column):
            clean[name] = _trimmed(column, dialect)
            if delimited:
                clean[name], note = _as_numbers(clean[name], name)
                notes += note
        else:
            clean[name] = column
    row_numbers = np.arange(1, columns.num_rows + 1)
    return Frame(str(path), pa.table(clean), row_numbers, notes=tuple(notes))


def _read_delimited(path: Path, kind: str, dialect: Dialect) -> pa.Table:
    """Read a text file; values of each column have one type, text if nothing else fits."""
    import pyarrow as pa
    from pyarrow import csv

    delimiter = dialect.delimiter or _find_delimiter(path, kind, dialect.encoding)
    options: dict[str, Any] = {
        "parse_options": csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            null_values=dialect.missing,
            strings_can_be_null=True,
            column_types=dict.fromkeys(dialect.text, pa.string()),
        ),
    }
    reading = csv.ReadOptions(
        encoding=dialect.encoding, autogenerate_column_names=not dialect.header
    )
    try:
        return csv.read_csv(path, read_options=reading, **options)
    except pa.ArrowInvalid:
        # With one thread the reader knows the number of the row.
        reading.use_threads = False
        return csv.read_csv(path, read_options=reading, **options)


def _find_delimiter(path: Path, kind: str, encoding: str) -> str:
    """Return what separates the fields: the most frequent candidate of the first line."""
    if kind == ".tsv":
        return "\t"
    import pyarrow as pa

    with pa.input_stream(str(path)) as stream:
        first = stream.read(100_000).decode(encoding, errors="replace").split("\n", 1)[0]
    return max(_DELIMITERS, key=first.count)


def _reason(error: Exception, kind: str) -> str:
    """Return in words what a reader did not like."""
    words = " ".join(str(error).split())
    if "Empty CSV file" in words:
        return "the file is empty."
    if "Expected" in words and "columns, got" in words:
        words = words.removeprefix("CSV parse error: ")
        return f"{words[:200]}. Correct this row (the header counts as row 1), or the delimiter."
    if kind in _DELIMITED:
        return f"{words[:300]}. Is the encoding right?"
    return f"this is no readable {kind} file, or a damaged one ({words[:200]})."


def _check_names(path: Path, names: list[str]) -> None:
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise FrameError(
            f"{path}: {count} columns are named '{name}'. Rename them; or, if there is no line of "
            "names, say so (header=False, --no-header)."
        )


def _notes_on_header(names: list[str]) -> list[str]:
    """Return a note if names are numbers, but not those that count the columns."""
    counted = [str(number) for number in range(len(names))]
    if names == counted or not all(map(is_plain_number, names)):
        return []
    return [
        "The names of the columns are numbers; if the file has no line of names, say so "
        "(header=False, --no-header)."
    ]


def _trimmed(column: pa.ChunkedArray, dialect: Dialect) -> pa.ChunkedArray:
    """Return text without spaces around it, and nothing where it means so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Done once for each different text.
    encoded = as_text(column).combine_chunks().dictionary_encode()
    values = pc.utf8_trim_whitespace(encoded.dictionary)
    absent = pc.is_in(values, pa.array(dialect.missing, pa.string()))
    values = pc.if_else(absent, pa.scalar(None, pa.string()), values)
    return pa.chunked_array([values.take(encoded.indices)])


def _as_numbers(column: pa.ChunkedArray, name: str) -> tuple[pa.ChunkedArray, list[str]]:
    """Return text as numbers if all of it is; and a note if most of it is."""
    import pyarrow as pa

    if column.null_count == len(column):
        return column, []
    try:
        return column.cast(pa.float64()), []
    except pa.ArrowInvalid:
        pass
    if share_of_numbers(column.unique()) <= 0.5:
        return column, []
    row, value = first_that_is_no_number(column)
    note = (
        f"Column '{name}' is text because of '{value}' in row {row + 1}; if that means a missing "
        f"value, say so (missing, --missing '{value}')."
    )
    return column, [note]

"""Delimited text files: detection of their dialect, and reading by pyarrow."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv as reader

from mbkl.tabular.columns import is_plain_number

_DELIMITERS = (",", ";", "\t", "|")
_SPACES = " "
# Characters and lines at the beginning of a file from which its dialect is detected.
_SAMPLE, _LINES = 2**24, 1_000
# Bytes that are parsed at a time; must exceed the longest line.
_BLOCK = 2**24
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Empty lines, comments, and the line that tells Excel the delimiter.
_NO_ROW = re.compile(r"\s*$|[#%]|sep=.$")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
_COMMA_NUMBER, _POINT_NUMBER = re.compile(r"[+-]?[\d.]*,\d+"), re.compile(r"[+-]?[\d,]*\.\d+")


@dataclass(frozen=True)
class Dialect:
    """The format of a text file; None is detected. See `read_frame`."""

    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    text: frozenset[str] = frozenset()
    # Always detected: names of the columns, and the number of lines above the rows.
    names: tuple[str, ...] = ()
    n_skipped: int = 0


def read_delimited(path: Path, dialect: Dialect) -> tuple[pa.Table, Dialect, list[str]]:
    """Read a text file; return its columns, the detected dialect and notes for the user.

    Names may be empty or duplicate. Each column has one type, which is text if no other fits.
    """
    with pa.input_stream(str(path)) as stream:
        content = stream.read()
    text, encoding = _decoded(content, dialect.encoding)
    try:
        detected = _detected(text, dialect)
        if detected.delimiter == _SPACES:
            text = _with_commas(text, detected.n_skipped)
            columns = _parsed(text.encode(), replace(detected, delimiter=",", n_skipped=0))
        else:
            columns = _parsed(content if encoding == "utf-8" else text.encode(), detected)
    except csv.Error as error:
        raise ValueError(f"{error}; a quote may not be closed") from None
    if dialect.encoding or encoding.startswith("utf"):
        return columns, detected, []
    note = f"The text is not UTF-8: read as {encoding} (encoding, --encoding names another)."
    return columns, detected, [note]


def _decoded(content: bytes, encoding: str | None) -> tuple[str, str]:
    """Return the text and its encoding, which is given or detected."""
    known = encoding or next((name for mark, name in _BOMS.items() if content.startswith(mark)), "")
    if not known and b"\0" in content[:_BLOCK]:
        raise ValueError(
            "this is no text; if it is, name its encoding (--encoding, such as utf-16-le)"
        )
    tried = [known] if known else ["utf-8", "cp1252", "latin-1"]
    for name in tried:
        try:
            return content.decode(name).removeprefix("\ufeff"), name
        except UnicodeError:
            continue
    raise ValueError(f"the text is not {name}. Name its encoding (--encoding), or leave it out")


def _detected(text: str, dialect: Dialect) -> Dialect:
    """Detect the missing parts of a dialect from the beginning of a file."""
    lines = list(islice(io.StringIO(text[:_SAMPLE], newline=None), _LINES))
    n_skipped = next((n for n, line in enumerate(lines) if not _NO_ROW.match(line)), len(lines))
    if n_skipped == len(lines):
        raise ValueError("the file is empty")
    delimiter = (dialect.delimiter or _delimiter(lines[n_skipped:])).replace("\\t", "\t")
    if len(delimiter) != 1:
        raise ValueError(f"the delimiter must be one character, not '{delimiter}' (--delimiter)")
    if dialect.decimal and len(dialect.decimal) != 1:
        raise ValueError(
            f"the decimal mark must be one character, not '{dialect.decimal}' (--decimal)"
        )
    if n_skipped and re.match(r"#\S", lines[n_skipped - 1]):
        # A line that looks like a comment holds names if it has as many fields as the next line.
        width = len(next(_rows(lines[n_skipped - 1 :], delimiter)))
        n_skipped -= width > 1 and width == len(next(_rows(lines[n_skipped:], delimiter)))
    reader = _rows(lines[n_skipped:], delimiter)
    first, n_lines = next(reader), reader.line_num
    body = [row for row in reader if row]
    decimal = dialect.decimal or _decimal([first, *body], delimiter)
    header = not _is_data(first, decimal) if dialect.header is None else dialect.header
    if header:
        n_skipped += n_lines
        names = [name.strip() for name in first]
        names[0] = names[0].removeprefix("#")
        names = _fitting(names, body)
    else:
        names = [f"column_{number + 1}" for number in range(len(first))]
    detected = replace(dialect, header=header, delimiter=delimiter, decimal=decimal)
    return replace(detected, names=tuple(names), n_skipped=n_skipped)


def _rows(lines: list[str], delimiter: str) -> Any:
    """Return a reader of rows; a run of spaces is one delimiter."""
    if delimiter == _SPACES:
        lines = [line.replace("\t", " ").strip() + "\n" for line in lines]
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter == _SPACES)


def _delimiter(lines: list[str]) -> str:
    """Return the delimiter for which most rows have the same, and the largest, number of fields."""

    def quality(delimiter: str) -> tuple[float, int]:
        try:
            widths = Counter(len(row) for row in _rows(lines, delimiter) if row)
        except csv.Error:  # a field exceeds the size limit
            return 0.0, 1
        width, count = widths.most_common(1)[0]
        return (count / widths.total() if width > 1 else 0.0), width

    best = max(_DELIMITERS, key=quality)
    if quality(best)[0] == 1.0:
        return best
    # Spaces delimit only if all rows have equally many; files of R have one name less than fields.
    first, *widths = [len(row) for row in _rows(lines, _SPACES) if row]
    widths = widths or [first]
    same = len(set(widths)) == 1 and widths[0] - first in (0, 1)
    return _SPACES if first > 1 and same else best


def _decimal(rows: list[list[str]], delimiter: str) -> str:
    """Return the decimal separator of most numbers."""
    fields = [field.strip() for row in rows for field in row]
    if delimiter == ",":  # a quoted 1,234 is an integer with a thousands separator
        fields = [field for field in fields if not _THOUSANDS.fullmatch(field)]
    commas = sum(_COMMA_NUMBER.fullmatch(field) is not None for field in fields)
    points = sum(_POINT_NUMBER.fullmatch(field) is not None for field in fields)
    return "," if commas > points else "."


def _is_data(first: list[str], decimal: str) -> bool:
    """Say whether a first line is data: it has numbers with signs or fractions, or duplicates."""
    fields = [field.strip().replace(decimal, ".") for field in first]
    numbers = [field for field in fields if is_plain_number(field)]
    return any(not one.isdigit() for one in numbers) or len(set(numbers)) < len(numbers)


def _fitting(names: list[str], body: list[list[str]]) -> list[str]:
    """Return as many names as rows have fields, if one name is missing or superfluous."""
    width = Counter(map(len, body)).most_common(1)[0][0] if body else len(names)
    if width == len(names) - 1 and not names[-1]:
        return names[:-1]
    if width == len(names) + 1:
        # Rows end with a delimiter, or begin with row names as R writes them.
        at_the_end = not any(row[-1].strip() for row in body if len(row) == width)
        return [*names, ""] if at_the_end else ["", *names]
    return names


def _parsed(content: bytes, dialect: Dialect) -> pa.Table:
    # The reader needs distinct names, so columns are first named by their positions.
    places = {str(place): name for place, name in enumerate(dialect.names)}
    text = {place: pa.string() for place, name in places.items() if name in dialect.text}
    options: dict[str, Any] = {
        "parse_options": reader.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        "convert_options": reader.ConvertOptions(
            null_values=dialect.missing,
            strings_can_be_null=True,
            decimal_point=dialect.decimal,
            column_types=text,
        ),
    }
    reading = reader.ReadOptions(
        column_names=list(places), block_size=_BLOCK, skip_rows=dialect.n_skipped
    )
    try:
        columns = reader.read_csv(pa.py_buffer(content), read_options=reading, **options)
    except pa.ArrowInvalid:
        # With a single thread the error names the row.
        reading.use_threads = False
        columns = reader.read_csv(pa.py_buffer(content), read_options=reading, **options)
    return columns.rename_columns(list(dialect.names))


def _with_commas(text: str, n_skipped: int) -> str:
    """Return rows separated by runs of spaces as rows separated by commas."""
    target = io.StringIO()
    lines = io.StringIO(text, newline=None).readlines()
    csv.writer(target).writerows(_rows(lines[n_skipped:], _SPACES))
    return target.getvalue()


def unique(names: list[str]) -> Iterator[str]:
    """Yield distinct names as pandas does: number duplicates, and name columns without names."""
    taken = set(names)
    seen: set[str] = set()
    for place, name in enumerate(names):
        base = free = name or f"Unnamed: {place}"
        number = 0
        while free in seen or (number and free in taken):
            number += 1
            free = f"{base}.{number}"
        seen.add(free)
        yield free

"""Text files: how they are written is found out, pyarrow reads them."""

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
# Characters and lines at the beginning that tell how a file is written.
_SAMPLE, _LINES = 2**24, 1_000
# Bytes that are parsed at once: more than the longest line.
_BLOCK = 2**24
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Comments, and the line that tells Excel the delimiter.
_NO_ROW = re.compile(r"\s*$|[#%]|sep=.$")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
_COMMA_NUMBER, _POINT_NUMBER = re.compile(r"[+-]?[\d.]*,\d+"), re.compile(r"[+-]?[\d,]*\.\d+")


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; None is found out. See `read_frame`."""

    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    text: frozenset[str] = frozenset()
    # Found out alone: names of the columns, and how many lines are above the rows.
    names: tuple[str, ...] = ()
    n_skipped: int = 0


def read_delimited(path: Path, dialect: Dialect) -> tuple[pa.Table, Dialect, list[str]]:
    """Read a text file: columns, whose names may be empty or come twice, what was found, notes.

    Values of each column have one type, text if nothing else fits.
    """
    with pa.input_stream(str(path)) as stream:
        content = stream.read()
    text, encoding = _decoded(content, dialect.encoding)
    try:
        found = _found_out(text, dialect)
        if found.delimiter == _SPACES:
            text = _with_commas(text, found.n_skipped)
            columns = _parsed(text.encode(), replace(found, delimiter=",", n_skipped=0))
        else:
            columns = _parsed(content if encoding == "utf-8" else text.encode(), found)
    except csv.Error as error:
        raise ValueError(f"{error}; a quote may not be closed") from None
    if dialect.encoding or encoding.startswith("utf"):
        return columns, found, []
    note = f"The text is not UTF-8: read as {encoding} (encoding, --encoding names another)."
    return columns, found, [note]


def _decoded(content: bytes, encoding: str | None) -> tuple[str, str]:
    """Return the text and its encoding, which is named or found out."""
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


def _found_out(text: str, dialect: Dialect) -> Dialect:
    """Find out how a file is written from its beginning."""
    lines = list(islice(io.StringIO(text[:_SAMPLE], newline=None), _LINES))
    n_skipped = next((n for n, line in enumerate(lines) if not _NO_ROW.match(line)), len(lines))
    if n_skipped == len(lines):
        raise ValueError("the file is empty")
    delimiter = (dialect.delimiter or _delimiter(lines[n_skipped:])).replace("\\t", "\t")
    if len(delimiter) != 1:
        raise ValueError(f"the delimiter must be one character, not '{delimiter}' (--delimiter)")
    if n_skipped and re.match(r"#\S", lines[n_skipped - 1]):
        # Names of columns may look like a comment.
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
    found = replace(dialect, header=header, delimiter=delimiter, decimal=decimal)
    return replace(found, names=tuple(names), n_skipped=n_skipped)


def _rows(lines: list[str], delimiter: str) -> Any:
    """Return a reader of rows; of those separated by spaces, runs of them count as one."""
    if delimiter == _SPACES:
        lines = [line.replace("\t", " ").strip() + "\n" for line in lines]
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter == _SPACES)


def _delimiter(lines: list[str]) -> str:
    """Return what divides most rows into the same number of fields, and into most of them."""

    def how_good(delimiter: str) -> tuple[float, int]:
        try:
            widths = Counter(len(row) for row in _rows(lines, delimiter) if row)
        except csv.Error:  # a field that is longer than fields are
            return 0.0, 1
        width, count = widths.most_common(1)[0]
        return (count / widths.total() if width > 1 else 0.0), width

    best = max(_DELIMITERS, key=how_good)
    if how_good(best)[0] == 1.0:
        return best
    # Sentences have spaces as well, but not each the same number. R leaves out a name.
    first, *widths = [len(row) for row in _rows(lines, _SPACES) if row]
    widths = widths or [first]
    same = len(set(widths)) == 1 and widths[0] - first in (0, 1)
    return _SPACES if first > 1 and same else best


def _decimal(rows: list[list[str]], delimiter: str) -> str:
    """Return what stands before the fraction of most numbers."""
    fields = [field.strip() for row in rows for field in row]
    if delimiter == ",":  # in quotes 1,234 is one thousand and more
        fields = [field for field in fields if not _THOUSANDS.fullmatch(field)]
    commas = sum(_COMMA_NUMBER.fullmatch(field) is not None for field in fields)
    points = sum(_POINT_NUMBER.fullmatch(field) is not None for field in fields)
    return "," if commas > points else "."


def _is_data(first: list[str], decimal: str) -> bool:
    """Say whether a first line cannot be names: numbers with signs or fractions, or one twice."""
    fields = [field.strip().replace(decimal, ".") for field in first]
    numbers = [field for field in fields if is_plain_number(field)]
    return any(not one.isdigit() for one in numbers) or len(set(numbers)) < len(numbers)


def _fitting(names: list[str], body: list[list[str]]) -> list[str]:
    """Return as many names as rows have fields, where one is missing or one too many."""
    width = Counter(map(len, body)).most_common(1)[0][0] if body else len(names)
    if width == len(names) - 1 and not names[-1]:
        return names[:-1]
    if width == len(names) + 1:
        # A delimiter at the end of rows, or row names as R writes them.
        at_the_end = not any(row[-1].strip() for row in body if len(row) == width)
        return [*names, ""] if at_the_end else ["", *names]
    return names


def _parsed(content: bytes, dialect: Dialect) -> pa.Table:
    # Names may come twice, and the reader knows columns by their names.
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
        # With one thread the reader knows the number of the row.
        reading.use_threads = False
        columns = reader.read_csv(pa.py_buffer(content), read_options=reading, **options)
    return columns.rename_columns(list(dialect.names))


def _with_commas(text: str, n_skipped: int) -> str:
    """Return rows whose fields are separated by runs of spaces as some with commas."""
    target = io.StringIO()
    lines = io.StringIO(text, newline=None).readlines()
    csv.writer(target).writerows(_rows(lines[n_skipped:], _SPACES))
    return target.getvalue()


def unique(names: list[str]) -> Iterator[str]:
    """Yield names, as pandas does: a number behind one that came before, a place for none."""
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

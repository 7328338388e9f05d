"""Row numbers and row names: they say which row it is, and nothing about new ones."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from mbkl.tabular.columns import is_text, is_whole

if TYPE_CHECKING:
    import pyarrow as pa

# What pandas calls a column without a name, and an index without one.
_NO_NAME = re.compile(r"(Unnamed: \d+(\.\d+)?|__index_level_\d+__)?")


def index_names(columns: pa.Table) -> list[str]:
    """Return the columns that number or name the rows.

    They are the index that pandas wrote beside the columns, and first columns without a name
    whose whole numbers or texts are different in half of the rows or more: row names of R, an
    index of pandas, also shuffled or cut.
    """
    names = written_index(columns.schema)
    for name, column in zip(columns.column_names, columns.columns, strict=True):
        if name in names:
            continue
        if not (is_unnamed(name) and (is_text(column) or is_whole(column))):
            break
        if 2 * len(column.unique()) < len(column):
            break
        names.append(name)
    return names


def is_unnamed(name: str) -> bool:
    """Say whether a column has no name, or one that pandas made up for it."""
    return _NO_NAME.fullmatch(name) is not None


def written_index(schema: pa.Schema) -> list[str]:
    """Return the columns that pandas says are the index of its frame."""
    metadata = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    found = metadata.get("index_columns", [])
    return [name for name in found if isinstance(name, str) and name in schema.names]


def note_on_index(names: list[str]) -> str:
    """Say that columns are left out, and how to keep them."""
    shown = ", ".join(f"'{name}'" for name in names)
    return (
        f"Index {shown} is left out: it tells rows apart, and nothing about new ones. To learn "
        "from it, make it a column with a name."
    )

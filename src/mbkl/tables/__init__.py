"""Tables: files of many formats, and columns of any kind as numbers."""

from __future__ import annotations

from mbkl.tables.columns import BadValueError
from mbkl.tables.encoding import TableEncoder
from mbkl.tables.reading import read_table
from mbkl.tables.table import Table, TableError

__all__ = ["BadValueError", "Table", "TableEncoder", "TableError", "read_table"]

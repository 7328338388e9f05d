"""Frames and files of users: readers of many formats, and encoding of columns as numbers."""
# ruff: noqa: E402

from __future__ import annotations

from mbkl.extras import require

# All modules need pyarrow: report a missing one before anything else.
require("pyarrow", "cli")

from mbkl.tabular.columns import BadValueError, TableEncoder, task_of
from mbkl.tabular.reading import Frame, FrameError, read_frame

__all__ = ["BadValueError", "Frame", "FrameError", "TableEncoder", "read_frame", "task_of"]

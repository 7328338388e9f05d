"""People's frames and files: many formats, and columns of any kind as numbers."""
# ruff: noqa: E402

from __future__ import annotations

from mbkl.extras import require

# All of it rests on pyarrow: whoever has none is told so before anything else.
require("pyarrow", "cli")

from mbkl.tabular.columns import BadValueError, TableEncoder, task_of
from mbkl.tabular.reading import Frame, FrameError, read_frame

__all__ = ["BadValueError", "Frame", "FrameError", "TableEncoder", "read_frame", "task_of"]

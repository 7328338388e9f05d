"""People's frames and files: many formats, and columns of any kind as numbers."""

from __future__ import annotations

from mbkl.tabular.columns import BadValueError
from mbkl.tabular.encoding import TableEncoder
from mbkl.tabular.frame import Frame, FrameError
from mbkl.tabular.reading import read_frame
from mbkl.tabular.task import task_of

__all__ = ["BadValueError", "Frame", "FrameError", "TableEncoder", "read_frame", "task_of"]

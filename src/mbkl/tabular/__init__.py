"""Frames: files of many formats, and columns of any kind as numbers."""

from __future__ import annotations

from mbkl.tabular.columns import BadValueError
from mbkl.tabular.encoding import TableEncoder
from mbkl.tabular.frame import Frame, FrameError
from mbkl.tabular.reading import read_frame

__all__ = ["BadValueError", "Frame", "FrameError", "TableEncoder", "read_frame"]

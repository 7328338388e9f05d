"""Files that commands write: whole or not at all."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import typer

from mbkl.extras import require

_PICTURES = (".png", ".svg", ".pdf")


def check_output(path: Path, *inputs: Path | None) -> None:
    """Find out before any work whether a file can be written; never over one that is read."""
    folder = path.parent
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it.")
    if not folder.is_dir():
        raise ValueError(f"{path}: there is no folder {folder}; make it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{path}: nothing can be written to the folder {folder}; choose another.")
    if path.exists() and any(one and one.exists() and path.samefile(one) for one in inputs):
        raise ValueError(f"{path} is read by this command; choose another name for what it writes.")


def check_picture(path: Path, *inputs: Path | None) -> None:
    """Find out before any work whether a picture can be drawn, see `check_output`."""
    if path.suffix not in _PICTURES:
        raise typer.BadParameter(f"{path} must end with one of {', '.join(_PICTURES)}.")
    require("matplotlib", "plot")
    check_output(path, *inputs)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib, in the format that the name ends with, and close it."""
    from matplotlib import pyplot

    from mbkl.io.container import write_atomically

    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], dpi=120, bbox_inches="tight")
    pyplot.close(figure)
    write_atomically(path, iter([content.getvalue()]))

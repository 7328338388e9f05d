"""What the user sees: results on stdout, all else on stderr, and files, whole or not at all."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mbkl.extras import require

# Of what is left of a step, the part that one of unknown many parts is taken to do.
_PART_OF_A_STEP = 0.2
_PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Console:
    """Where results, messages and progress go."""

    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No messages and no progress, only results.")
    ] = False
    as_json: Annotated[
        bool, typer.Option("--json", help="Results as JSON on stdout, all else on stderr.")
    ] = False

    def say(self, message: str) -> None:
        """Print a message."""
        if not self.quiet:
            print(message, file=sys.stderr)

    def note(self, *messages: str) -> None:
        """Print what the user may not expect."""
        for message in messages:
            self.say(f"note: {message}")

    def result(self, content: Mapping[str, Any], show: Callable[[], None] | None = None) -> None:
        """Print a result: as JSON if asked for, else by a function of its own."""
        if self.as_json:
            print(json.dumps(_plain(content), indent=2, allow_nan=False))
        elif show is not None:
            show()

    def grid(
        self, rows: Sequence[Sequence[Any]], header: Sequence[str] = ("", ""), left: int = 1
    ) -> None:
        """Print rows on stdout; the first columns are left-aligned."""
        from rich.console import Console as Screen
        from rich.table import Table

        grid = Table(box=None, pad_edge=False, show_header=any(header))
        for position, name in enumerate(header):
            grid.add_column(name, justify="left" if position < left else "right")
        for row in rows:
            grid.add_row(*(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row))
        # A file or a pipe has no width: nothing is to be cut there.
        Screen(markup=False, width=None if sys.stdout.isatty() else 1_000).print(grid)

    @contextmanager
    def steps(self, *shares: float) -> Iterator[Steps]:
        """Show progress through steps that take about these shares of the time."""
        from rich.console import Console as Screen
        from rich.progress import BarColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

        columns = (BarColumn(), TimeElapsedColumn(), "left:", TimeRemainingColumn())
        shown = not self.quiet and sys.stderr.isatty()
        screen = Screen(stderr=True)
        with Progress(
            "{task.description}", *columns, console=screen, transient=True, disable=not shown
        ) as bar:
            yield Steps(bar, shares)


class Steps:
    """A bar that moves on from step to step, and as a callback of scikit-learn within one."""

    def __init__(self, bar: Any, shares: Sequence[float]) -> None:
        self._bar, self._shares = bar, iter(shares)
        self._task = bar.add_task("", total=sum(shares))
        self._step, self._done, self._end = "", 0.0, 0.0

    def begin(self, step: str) -> None:
        """Begin the next step."""
        self._step, self._done = step, self._end
        self._end += next(self._shares)
        self._bar.update(self._task, description=step, completed=self._done)

    def watch(self, estimator: Any) -> Any:
        """Return an estimator whose stages will be parts of this step, nobody knows how many."""
        # Before scikit-learn 1.9 there are no callbacks.
        if hasattr(estimator, "set_callbacks"):
            estimator.set_callbacks(self)
        return estimator

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing: the bar is there."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: the bar stays."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Show the name of a stage."""
        if context.task_name not in ("fit", "iteration"):
            self._bar.update(self._task, description=f"{self._step}: {context.task_name}")

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Move on by a fifth of what is left of this step."""
        self._done += _PART_OF_A_STEP * (self._end - self._done)
        self._bar.update(self._task, completed=self._done)


def _plain(value: Any) -> Any:
    """Return what JSON can hold: no arrays, no paths, and null for what is no number."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


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


def check_picture(path: Path | None, *inputs: Path | None) -> None:
    """Find out before any work whether a picture can be drawn, if one is wanted."""
    if path is None:
        return
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

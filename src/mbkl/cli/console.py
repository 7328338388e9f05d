"""What the user sees: results on stdout, all else on stderr, and files, whole or not at all."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from mbkl.cli.options import Config
from mbkl.extras import require

_PICTURES = (".png", ".svg", ".pdf")
# Nobody knows how many stages a fit has, and iterations a stage: the part that each is taken to do
# of what is left.
_PART_OF_A_STAGE, _PART_OF_AN_ITERATION = 0.2, 0.002


@dataclass(frozen=True)
class Grid:
    """Rows to print, of which the first columns are aligned to the left."""

    rows: Sequence[Sequence[Any]]
    header: Sequence[str] = ("", "")
    n_left: int = 1

    def print(self) -> None:
        from rich.console import Console as Screen
        from rich.table import Table

        grid = Table(box=None, pad_edge=False, show_header=any(self.header))
        for position, name in enumerate(self.header):
            grid.add_column(name, justify="left" if position < self.n_left else "right")
        for row in self.rows:
            grid.add_row(*(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row))
        # A file or a pipe has no width: nothing is to be cut there.
        Screen(markup=False, width=None if sys.stdout.isatty() else 1_000).print(grid)


@dataclass
class Console:
    """Where results, messages and progress go."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No messages, only results.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON on stdout.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came up.")] = False
    config: Config = None
    _bar: Any = field(default=None, init=False)
    _notes: set[str] = field(default_factory=set, init=False)
    # Shares of all the work: what is done, and what will be after this step.
    _done: float = field(default=0.0, init=False)
    _end: float = field(default=0.0, init=False)

    def say(self, message: str) -> None:
        if not self.quiet:
            print(message, file=sys.stderr)

    def note(self, *messages: str) -> None:
        """Print what the user may not expect, and once only: not for each file, or each fold."""
        for message in messages:
            if message not in self._notes:
                self._notes.add(message)
                self.say(f"note: {message}")

    def result(self, content: Mapping[str, Any], *grids: Grid) -> None:
        """Print a result: all of it as JSON if asked for, else what people want to see of it."""
        self.end_steps()
        if self.as_json:
            from mbkl.explain.shapes import plain

            print(json.dumps(plain(content), indent=2))
            return
        for number, grid in enumerate(grids):
            if number:
                print()
            grid.print()

    def picture(self, figure: Any, path: Path) -> None:
        """Write a figure of matplotlib, in the format that the name ends with, and close it."""
        from matplotlib import pyplot

        from mbkl.engine.files import write_atomically

        content = io.BytesIO()
        figure.savefig(content, format=path.suffix[1:], dpi=120, bbox_inches="tight")
        pyplot.close(figure)
        write_atomically(path, iter([content.getvalue()]))
        self.say(f"picture: {path}")

    def step(self, words: str, part: float = 1 / 3) -> None:
        """Show what is being done from now on: about this part of all that is left to do."""
        self._done = self._end
        self._end += part * (1 - self._end)
        self.show(words)

    def advance(self, part: float) -> None:
        """Take a part of what is left of this step to be done."""
        self._done += part * (self._end - self._done)
        self.show()

    def show(self, words: str | None = None) -> None:
        """Show on a terminal what is done, the time since the beginning and about that left."""
        if self.quiet or not sys.stderr.isatty():
            return
        if self._bar is None:
            from rich.console import Console as Screen
            from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

            taken, left = TimeElapsedColumn(), "{task.fields[left]}"
            columns = SpinnerColumn(), "{task.description}", taken, left
            screen = Screen(stderr=True)
            self._bar = Progress(*columns, console=screen, transient=True, redirect_stdout=False)
            self._bar.add_task("", left="")
            self._bar.start()
        (task,) = self._bar.tasks
        words_left = ""
        if self._done:
            seconds = task.elapsed * (1 - self._done) / self._done
            words_left = f"about {timedelta(seconds=round(seconds))} left"
        self._bar.update(task.id, description=words, left=words_left)

    def end_steps(self) -> None:
        """Show no more what is being done."""
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._end = None, 0.0

    def watched(self, estimator: Any, step: str, part: float) -> Any:
        """Return an estimator whose stages are shown as parts of a step."""
        self.step(step, part)
        # Before scikit-learn 1.9 there are no callbacks.
        if hasattr(estimator, "set_callbacks"):
            estimator.set_callbacks(_Stages(self, step))
        return estimator


@dataclass(frozen=True)
class _Stages:
    """A callback of scikit-learn that shows the stages of a fit."""

    console: Console
    step: str

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        if context.task_name not in ("fit", "iteration"):
            self.console.show(f"{self.step}: {context.task_name}")

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        is_iteration = context.task_name == "iteration"
        self.console.advance(_PART_OF_AN_ITERATION if is_iteration else _PART_OF_A_STAGE)

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing, as in the other one: scikit-learn asks for all four."""

    teardown = setup


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

"""Output: results on stdout, messages and progress on stderr, and pictures as files."""

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
# How many stages a fit and iterations a stage will have is unknown; each is assumed to do this
# share of the remaining work.
_PART_OF_A_STAGE, _PART_OF_AN_ITERATION = 0.2, 0.002


@dataclass(frozen=True)
class Grid:
    """Rows to print; the first `n_left` columns are aligned to the left."""

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
        # A file or a pipe has no width, so lines must not be cut there.
        Screen(markup=False, width=None if sys.stdout.isatty() else 1_000).print(grid)


@dataclass
class Console:
    """Prints results, messages and progress."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No messages, only results.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON on stdout.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came up.")] = False
    config: Config = None
    _bar: Any = field(default=None, init=False)
    _notes: set[str] = field(default_factory=set, init=False)
    # Shares of all work that are done now, and that will be done after the current step.
    _done: float = field(default=0.0, init=False)
    _end: float = field(default=0.0, init=False)

    def say(self, message: str) -> None:
        if not self.quiet:
            print(message, file=sys.stderr)

    def note(self, *messages: str) -> None:
        """Print notes for the user, each only once, not again for each file or fold."""
        for message in messages:
            if message not in self._notes:
                self._notes.add(message)
                self.say(f"note: {message}")

    def result(self, content: Mapping[str, Any], *grids: Grid) -> None:
        """Print a result: with --json all of its content, else its grids."""
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
        """Write a matplotlib figure in the format of the file name, and close it."""
        from matplotlib import pyplot

        from mbkl.engine.files import write_atomically

        content = io.BytesIO()
        figure.savefig(content, format=path.suffix[1:], dpi=120, bbox_inches="tight")
        pyplot.close(figure)
        write_atomically(path, iter([content.getvalue()]))
        self.say(f"picture: {path}")

    def step(self, words: str, part: float = 1 / 3) -> None:
        """Begin a step, which is expected to take this part of the remaining work."""
        self._done = self._end
        self._end += part * (1 - self._end)
        self.show(words)

    def advance(self, part: float) -> None:
        """Count a part of the rest of the current step as done."""
        self._done += part * (self._end - self._done)
        self.show()

    def show(self, words: str | None = None) -> None:
        """Show the current work, the time since the start and the time left, on a terminal."""
        if self.quiet or not sys.stderr.isatty():
            return
        if self._bar is None:
            from rich.console import Console as Screen
            from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

            elapsed, left = TimeElapsedColumn(), "{task.fields[left]}"
            columns = SpinnerColumn(), "{task.description}", elapsed, left
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
        """Remove the display of progress."""
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._end = None, 0.0

    def watched(self, estimator: Any, step: str, part: float) -> Any:
        """Begin a step, and make an estimator show its stages as parts of the step."""
        self.step(step, part)
        # Callbacks need scikit-learn 1.9.
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
        """Do nothing; scikit-learn requires all four methods."""

    teardown = setup


def check_output(path: Path, *inputs: Path | None) -> None:
    """Raise an error, before any work, if a file cannot be written or is one of the inputs."""
    folder = path.parent
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it.")
    if not folder.is_dir():
        raise ValueError(f"{path}: there is no folder {folder}; make it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{path}: nothing can be written to the folder {folder}; choose another.")
    if path.exists() and any(file and file.exists() and path.samefile(file) for file in inputs):
        raise ValueError(f"{path} is read by this command; choose another name for what it writes.")


def check_picture(path: Path | None, *inputs: Path | None) -> None:
    """Raise an error, before any work, if a picture is wanted and cannot be drawn."""
    if path is None:
        return
    if path.suffix not in _PICTURES:
        raise typer.BadParameter(f"{path} must end with one of {', '.join(_PICTURES)}.")
    require("matplotlib", "plot")
    check_output(path, *inputs)

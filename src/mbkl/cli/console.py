"""What the user sees: results on stdout, all else on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

# Of what is left of a step, the part that one of unknown many parts is taken to do.
_PART_OF_A_STEP = 0.2


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

    def note(self, message: str) -> None:
        """Print something that the user may not expect."""
        self.say(f"note: {message}")

    def notes(self, messages: Iterable[str]) -> None:
        """Print several of them."""
        for message in messages:
            self.note(message)

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
            grid.add_row(*(cell if isinstance(cell, str) else _figure(cell) for cell in row))
        # A file or a pipe has no width: nothing is to be cut there.
        Screen(markup=False, width=None if sys.stdout.isatty() else 1_000).print(grid)

    @contextmanager
    def steps(self, **shares: float) -> Iterator[Steps]:
        """Show progress through steps that take about these shares of the time."""
        from rich.console import Console as Screen
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        shown = not self.quiet and sys.stderr.isatty()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
        )
        with Progress(
            *columns, console=Screen(stderr=True), transient=True, disable=not shown
        ) as bar:
            yield Steps(bar, shares)


class Steps:
    """A bar that moves on from step to step, by about how long each takes."""

    def __init__(self, bar: Any, shares: Mapping[str, float]) -> None:
        self._bar, self._shares = bar, shares
        self._task = bar.add_task("", total=sum(shares.values()))
        self._step, self._done, self._end = "", 0.0, 0.0

    def begin(self, step: str, detail: str = "") -> None:
        """Begin a step; those before it are done."""
        names = list(self._shares)
        before = names[: names.index(step)]
        self._done = sum(self._shares[name] for name in before)
        self._step, self._end = step, self._done + self._shares[step]
        self._bar.update(self._task, description=detail or step, completed=self._done)

    def part(self, detail: str) -> None:
        """Say that one of the parts of this step, nobody knows how many, begins."""
        self._bar.update(self._task, description=f"{self._step}: {detail}")

    def part_is_done(self) -> None:
        """Move on by a fifth of what is left of this step."""
        self._done += _PART_OF_A_STEP * (self._end - self._done)
        self._bar.update(self._task, completed=self._done)

    def watch(self, estimator: Any) -> Any:
        """Return an estimator whose stages will be parts of this step."""
        # Before scikit-learn 1.9 there are no callbacks.
        if hasattr(estimator, "set_callbacks"):
            estimator.set_callbacks(_Stages(self))
        return estimator


class _Stages:
    """Callback of scikit-learn that shows the stages of a fit."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing: the bar is there."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: the bar stays."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Show the name of a stage."""
        if context.task_name not in ("fit", "iteration"):
            self._steps.part(context.task_name)

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Move on."""
        self._steps.part_is_done()


def _figure(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


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

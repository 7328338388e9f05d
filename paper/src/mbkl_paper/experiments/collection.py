"""The measured cells that a report is about, by data set and system."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mbkl_paper.experiments.cells import Task
from mbkl_paper.experiments.sets import Problem
from mbkl_paper.experiments.store import Cell, CellStore

Pair = tuple[str, str]


@dataclass(frozen=True)
class Collection:
    """Cells by data set and system.

    Parameters
    ----------
    problems : dict from str to Problem
        Those with a cell.
    cells : dict from (data set, system) to list of Cell
        Those without an error, one a split.
    failures : dict from (data set, system) to str
    n_outdated : int
        Cells that were measured with another source of mbkl.
    """

    problems: Mapping[str, Problem]
    cells: Mapping[Pair, list[Cell]]
    failures: Mapping[Pair, str]
    n_outdated: int

    def has(self, name: str, system: str) -> bool:
        """Say whether any split is measured."""
        return (name, system) in self.cells

    def is_complete(self, name: str, system: str) -> bool:
        """Say whether all splits are measured."""
        return len(self.cells.get((name, system), ())) == len(self.problems[name].splits)

    def values(self, name: str, system: str, field: str = "accuracy") -> list[float]:
        """Return a measure of all splits."""
        return [getattr(cell, field) for cell in self.cells[name, system]]

    def mean(self, name: str, system: str, field: str = "accuracy") -> float:
        """Return the mean over splits of a measure."""
        return statistics.fmean(self.values(name, system, field))

    def median(self, name: str, system: str, field: str) -> float:
        """Return the median over splits of a measure."""
        return statistics.median(self.values(name, system, field))

    def sizes(self, name: str, system: str) -> list[int]:
        """Return the numbers of initial maps that a system was measured with, beside its own."""
        found = [other.partition("@") for set_name, other in self.cells if set_name == name]
        return sorted(int(size) for base, _, size in found if base == system and size)

    def n_swept_splits(self, name: str) -> int:
        """Return how many splits every number of initial maps has been measured on."""
        return min(
            len(cells)
            for (found, other), cells in self.cells.items()
            if found == name and "@" in other
        )


def collect(tasks: Iterable[Task], store: CellStore) -> Collection:
    """Gather the cells of tasks; of mbkl the last ones, whatever its source was."""
    latest = store.latest()
    problems: dict[str, Problem] = {}
    cells: dict[Pair, list[Cell]] = {}
    failures: dict[Pair, str] = {}
    n_outdated = 0
    for task in tasks:
        unit, cell = latest.get(replace(task.unit, source=None), (task.unit, None))
        if cell is None:
            continue
        problems[unit.data_set] = task.problem
        n_outdated += unit.source != task.unit.source
        pair = (unit.data_set, unit.method)
        if cell.error is None:
            cells.setdefault(pair, []).append(cell)
        else:
            failures.setdefault(pair, cell.error)
    return Collection(problems, cells, failures, n_outdated)

"""The file of cells: a line of JSON for each, written as soon as it is measured."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mbkl_paper.experiments.common import say


@dataclass(frozen=True)
class Unit:
    """One system on one split of one data set, and what its result depends on.

    Parameters
    ----------
    data_set : str
    fold : int
        Number of the split.
    method : str
        Name of the system.
    protocol, setup : str
        Fingerprints of the protocol and of the parameters of the system.
    source : str or None
        Fingerprint of the source of mbkl; None for the rivals, whose results stay
        valid when mbkl changes.
    """

    data_set: str
    fold: int
    method: str
    protocol: str
    setup: str
    source: str | None


@dataclass(frozen=True)
class Cell:
    """What was measured on a split; times of fit and test are of one thread, at chosen costs.

    Parameters
    ----------
    accuracy, balanced_accuracy : float
    fit_seconds : float
    predict_seconds : float
        Of all test rows.
    train_rows, predict_rows, n_features, n_classes : int
    versions : str
        Of the libraries.
    error : str or None
        Message of a system that failed; then the measures are zero.
    C, C_kernel : float or None
        Chosen costs.
    choice_accuracy : float or None
        In the cross-validation that chose them.
    choice_seconds : float
        Of that, on all cores.
    n_maps : int
        Binary maps kept; zero for systems without.
    step_1_seconds : float
        Of Steps 0 and 1 of MBKL.
    step_1_gap : float or None
        Relative duality gap at which Step 1 ended.
    theta_shrinkage : float or None
        Chosen with the costs: how far θ was moved towards equal weights.
    thresholds : str or None
        Chosen with the costs: how those of the stumps were drawn.
    """

    accuracy: float = 0.0
    balanced_accuracy: float = 0.0
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    train_rows: int = 0
    predict_rows: int = 0
    n_features: int = 0
    n_classes: int = 0
    versions: str = ""
    error: str | None = None
    C: float | None = None
    C_kernel: float | None = None
    choice_accuracy: float | None = None
    choice_seconds: float = 0.0
    n_maps: int = 0
    step_1_seconds: float = 0.0
    step_1_gap: float | None = None
    theta_shrinkage: float | None = None
    thresholds: str | None = None


class CellStore:
    """Cells by unit; a killed run loses at most the one it was measuring.

    Parameters
    ----------
    path : Path or None
        File of the cells; None keeps them in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._cells: dict[Unit, Cell] = {}
        if path is not None and path.exists():
            self._read(path)

    def get(self, unit: Unit) -> Cell | None:
        """Return the latest cell of a unit, or None."""
        return self._cells.get(unit)

    def latest(self) -> dict[Unit, tuple[Unit, Cell]]:
        """Return the last unit and cell that were kept, by the unit without its source."""
        return {replace(unit, source=None): (unit, cell) for unit, cell in self._cells.items()}

    def add(self, unit: Unit, cell: Cell) -> None:
        """Keep a cell, and write it at once."""
        self._cells[unit] = cell
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            # The line before may lack its end, if writing it was interrupted.
            file.write(f"\n{json.dumps({**asdict(unit), **asdict(cell)})}\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self, path: Path) -> None:
        n_unreadable = 0
        for line in filter(None, path.read_text(encoding="utf-8", errors="replace").splitlines()):
            try:
                fields = json.loads(line)
                unit = Unit(**{name: fields.pop(name) for name in Unit.__dataclass_fields__})
                self._cells[unit] = Cell(**fields)
            except (ValueError, KeyError, TypeError):
                n_unreadable += 1
        if n_unreadable:
            say(f"ignored {n_unreadable} unreadable line(s) of {path.name}, as a killed run leaves")

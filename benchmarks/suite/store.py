"""The file of results: a line of JSON for each unit, written when it is measured."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.common import say


@dataclass(frozen=True)
class Unit:
    """One method on one fold of one data set, with fingerprints of all that determines its result.

    Parameters
    ----------
    data_set : str
    fold : int
    method : str
    protocol, setup : str
        Fingerprints of the protocol and of the parameters of the method.
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
class Result:
    """The measurements of a unit, or the error that prevented them.

    Parameters
    ----------
    measures : dict from str to float
        Measures of the task; NaN for those that a method does not have.
    fit_seconds : float
        Seconds of the fit, including the choice of parameters.
    predict_seconds : float
        Seconds of the prediction of all test rows.
    train_rows, predict_rows, n_features, n_classes : int
        For a regression, n_classes is the number of distinct targets.
    model_bytes : int
        Length of the pickled model, without the record of a search.
    versions : str
        Versions of the libraries.
    error : str or None
        Message of a method that failed; it has no measures.
    """

    measures: dict[str, float] = field(default_factory=dict)
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    train_rows: int = 0
    predict_rows: int = 0
    n_features: int = 0
    n_classes: int = 0
    model_bytes: int = 0
    versions: str = ""
    error: str | None = None


class Store:
    """Results by unit; a killed run loses at most the unit it was measuring.

    Parameters
    ----------
    path : Path or None
        File of the results; None keeps them in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._results: dict[Unit, Result] = {}
        if path is not None and path.exists():
            self._read(path)

    def get(self, unit: Unit) -> Result | None:
        """Return the latest result of a unit, or None."""
        return self._results.get(unit)

    def add(self, unit: Unit, result: Result) -> None:
        """Store a result, and write it to the file at once."""
        self._results[unit] = result
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+b") as file:
            if _ends_within_line(file):
                file.write(b"\n")
            file.write(f"{json.dumps({**asdict(unit), **asdict(result)})}\n".encode())
            file.flush()
            os.fsync(file.fileno())

    def _read(self, path: Path) -> None:
        n_unreadable = 0
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                fields = json.loads(line)
                unit = Unit(**{name: fields.pop(name) for name in Unit.__dataclass_fields__})
                self._results[unit] = Result(**fields)
            except (ValueError, KeyError, TypeError):
                n_unreadable += 1
        if n_unreadable:
            say(f"ignored {n_unreadable} unreadable line(s) of {path.name}, as a killed run leaves")


def _ends_within_line(file) -> bool:
    """Say whether the last line is incomplete, because writing it was interrupted."""
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"

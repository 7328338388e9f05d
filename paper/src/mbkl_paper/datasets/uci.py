"""Liver and Sonar: two small tables of the UCI repository."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbkl_paper.datasets import files
from mbkl_paper.datasets.benchmark import Benchmark, Description, Printed
from mbkl_paper.datasets.files import DatasetError
from mbkl_paper.datasets.protocols import StratifiedFolds

_LICENCE = "CC BY 4.0, as the UCI repository lists it."


@dataclass(frozen=True)
class _Table:
    """What a table holds: its columns, and the marks of its classes in the last one."""

    description: Description
    text_name: str
    n_rows: int
    feature_names: tuple[str, ...]
    classes: dict[str, str]

    def load(self, data_home: files.DataHome) -> Benchmark:
        """Read the set in one of its two forms."""
        readers = {self.text_name: self._read_text, f"{self.description.name}.npz": self._read_npz}
        path, X, labels = files.read_first(self.description, data_home, readers)
        class_names, names = tuple(self.classes.values()), self.feature_names
        files.check_array(path, "X", X, (self.n_rows, len(names)), np.floating)
        y = files.check_labels(path, "y", labels, self.n_rows, class_names)
        X = X.astype(np.float32)
        return Benchmark(self.description, y, class_names, StratifiedFolds(), X, names)

    def _read_text(self, path: Path) -> tuple[Path, NDArray, NDArray]:
        marks = list(self.classes)
        rows: list[list[float]] = []
        labels: list[int] = []
        for number, line in enumerate(files.read_lines(path), start=1):
            fields = [text.strip() for text in line.split(",")]
            if fields == [""] or (not rows and _is_header(fields)):
                continue
            if len(fields) != len(self.feature_names) + 1:
                raise DatasetError(
                    f"{path}: row {number} has {len(fields)} columns where "
                    f"{len(self.feature_names) + 1} are expected."
                )
            if fields[-1] not in marks:
                raise DatasetError(f"{path}: row {number} has the unknown class {fields[-1]!r}.")
            with files.reading(f"{path}: row {number}"):
                rows.append([float(text) for text in fields[:-1]])
            labels.append(marks.index(fields[-1]))
        files.check_count(path, "rows", len(rows), self.n_rows)
        return path, np.array(rows), np.array(labels)

    def _read_npz(self, path: Path) -> tuple[Path, NDArray, NDArray]:
        stored = files.read_npz(path, "X", "y")
        return path, stored["X"], stored["y"]


def _is_header(fields: list[str]) -> bool:
    """Say whether a line before all rows has names, or a single number, as some copies do."""
    return len(fields) == 1 or not fields[0].replace(".", "", 1).isdigit()


_LIVER = _Table(
    Description(
        name="liver",
        source="UCI Machine Learning Repository, Liver Disorders (BUPA Medical Research).",
        licence=_LICENCE,
        printed=Printed(2, 276, 69, "attributes", 6),
    ),
    text_name="bupa.data",
    n_rows=345,
    feature_names=("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks"),
    classes={"1": "selector=1", "2": "selector=2"},
)
_SONAR = _Table(
    Description(
        name="sonar",
        source="UCI Machine Learning Repository, Connectionist Bench (Sonar, Mines vs. Rocks).",
        licence=_LICENCE,
        # 208 - 166 rows are tested on; printed is 32, in the wrong column.
        printed=Printed(2, 166, 42, "attributes", 60),
    ),
    text_name="sonar.all-data",
    n_rows=208,
    feature_names=tuple(f"band {number}" for number in range(1, 61)),
    classes={"R": "rock", "M": "mine"},
)


def load_liver(data_home: files.DataHome = None) -> Benchmark:
    """Read the liver disorders: 345 rows of 6 attributes, two classes.

    Read are bupa.data or liver.npz. The class is the column "selector", as in the
    paper, though its authors meant it to part training from test rows. The protocol
    is stratified 5-fold cross-validation; `splits` takes n_repeats.

    Parameters
    ----------
    data_home : path or None
        See `mbkl_paper.datasets.load`.

    Returns
    -------
    benchmark : Benchmark
        With the raw attributes in `X`.

    Examples
    --------
    >>> from mbkl_paper import datasets
    >>> datasets.load_liver(data_home="missing")
    Traceback (most recent call last):
    ...
    mbkl_paper.datasets.files.DatasetNotFoundError: The set liver was not found...
    """
    return _LIVER.load(data_home)


def load_sonar(data_home: files.DataHome = None) -> Benchmark:
    """Read the sonar echoes of mines and rocks: 208 rows of 60 attributes, two classes.

    Read are sonar.all-data or sonar.npz. The protocol is stratified 5-fold
    cross-validation; `splits` takes n_repeats.

    Parameters
    ----------
    data_home : path or None
        See `mbkl_paper.datasets.load`.

    Returns
    -------
    benchmark : Benchmark
        With the raw attributes in `X`.

    Examples
    --------
    >>> from mbkl_paper import datasets
    >>> datasets.load_sonar(data_home="missing")
    Traceback (most recent call last):
    ...
    mbkl_paper.datasets.files.DatasetNotFoundError: The set sonar was not found...
    """
    return _SONAR.load(data_home)

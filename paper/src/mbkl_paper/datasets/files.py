"""Files of the benchmarks: where they are looked for, and what is checked in them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mbkl_paper.datasets.benchmark import Description

DataHome = str | PathLike[str] | None
Result = TypeVar("Result")


class DatasetError(ValueError):
    """A file of a benchmark is damaged, incomplete or not what it should be."""


class DatasetNotFoundError(FileNotFoundError):
    """The files of a benchmark are not where they were looked for."""


def read_first(
    description: Description, data_home: DataHome, readers: Mapping[str, Callable[[Path], Result]]
) -> Result:
    """Read the first form of a set that is there.

    Parameters
    ----------
    description : Description
        Name and source of the set.
    data_home : path or None
        See `mbkl_paper.datasets.load`.
    readers : mapping from str to callable
        A pattern of paths within the folder of the set, and what reads the first
        path that fits it.

    Returns
    -------
    result
        What the reader returned.
    """
    folders = _folders(description.name, data_home)
    for folder in folders:
        for pattern, reader in readers.items():
            found = min(folder.glob(pattern), default=None)
            if found is not None:
                return reader(found)
    name = description.name
    places = ", ".join(map(str, folders)) or (
        "no folder, as neither data_home nor the environment variable MBKL_DATA names one"
    )
    raise DatasetNotFoundError(
        f"The set {name} was not found. Looked for {' or '.join(readers)} in: {places}. "
        f"Nothing is downloaded; the set comes from: {description.source} Put one of these "
        f"files in HOME/paper/{name}/ and name HOME by data_home or MBKL_DATA."
    )


def _folders(name: str, data_home: DataHome) -> list[Path]:
    if data_home is not None:
        home = Path(data_home).expanduser()
        return [home / "paper" / name, home / name, home]
    shared = os.environ.get("MBKL_DATA")
    return [Path(shared, "paper", name), Path(shared, name)] if shared else []


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Say what was being read when a reader fails.

    Damage makes readers of archives raise almost any error, so none is left out.
    """
    try:
        yield
    except DatasetError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise DatasetError(f"{what} cannot be read, or was cut short ({kind}: {error}).") from error


def read_npz(path: Path, *keys: str) -> dict[str, NDArray]:
    """Return the named arrays of an npz file; pickled objects are refused."""
    arrays = {}
    with reading(path), np.load(path, allow_pickle=False) as stored:
        for key in keys:
            if key not in stored:
                raise DatasetError(f"{path}: the key {key!r} is missing.")
            with reading(f"{path}: the key {key!r}"):
                arrays[key] = stored[key]
    return arrays


def read_mat(path: Path, *keys: str) -> dict[str, Any]:
    """Return the named variables of a MATLAB file."""
    from scipy.io import loadmat

    with reading(path):
        stored = loadmat(path, appendmat=False, variable_names=keys)
    for key in keys:
        if key not in stored:
            raise DatasetError(f"{path}: the variable {key!r} is missing.")
    return stored


def mat_indices(path: Path, key: str, values: NDArray) -> NDArray[np.intp]:
    """Return a vector of whole numbers, which MATLAB counts from 1, counted from 0."""
    with reading(f"{path}: the variable {key!r}"):
        flat = np.ravel(values)
        indices = flat.astype(np.intp)
    if (indices != flat).any():
        raise DatasetError(f"{path}: {key!r} has values that are no whole numbers.")
    return indices - 1


def mat_texts(path: Path, key: str, cells: NDArray) -> tuple[str, ...]:
    """Return the texts of a cell array of MATLAB, however deep each is wrapped."""

    def unwrap(cell) -> str:
        while isinstance(cell, np.ndarray):
            cell = cell.item()
        return str(cell).strip()

    with reading(f"{path}: the variable {key!r}"):
        return tuple(unwrap(cell) for cell in np.ravel(cells))


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, which may be packed by gzip."""
    opener = gzip.open if path.suffix == ".gz" else open
    with reading(path), opener(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def check_count(where: object, what: str, found: int, expected: int) -> None:
    """Refuse a set of which a part is missing."""
    if found != expected:
        raise DatasetError(f"{where} has {found:,} {what} where {expected:,} are expected.")


def check_array(
    path: Path, key: str, array: NDArray, shape: tuple[int | None, ...], *kinds: type
) -> None:
    """Refuse an array of another shape (None fits all), of none of these kinds, or with NaN."""
    fits = all(wanted in (None, size) for wanted, size in zip(shape, array.shape))
    if array.ndim != len(shape) or not fits:
        raise DatasetError(f"{path}: {key!r} has shape {array.shape} where {shape} is expected.")
    if not any(np.issubdtype(array.dtype, kind) for kind in kinds):
        raise DatasetError(f"{path}: {key!r} has the unexpected dtype {array.dtype}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = np.argwhere(~np.isfinite(array))[0, 0]
        raise DatasetError(f"{path}: {key!r} has a NaN or infinite value in row {row}.")


def check_labels(
    path: Path, key: str, y: NDArray, n_rows: int, class_names: tuple[str, ...]
) -> NDArray[np.intp]:
    """Return class numbers, refused where one is out of range or a class has no row."""
    check_array(path, key, y, (n_rows,), np.integer)
    wrong = np.flatnonzero((y < 0) | (y >= len(class_names)))
    if wrong.size:
        raise DatasetError(
            f"{path}: {key!r} has {y[wrong[0]]} in row {wrong[0]}, out of the range of the "
            f"{len(class_names)} classes."
        )
    counts = np.bincount(y, minlength=len(class_names))
    if not counts.all():
        raise DatasetError(f"{path}: no row is of the class {class_names[counts.argmin()]!r}.")
    return y.astype(np.intp)


def check_parts(path: Path, parts: Mapping[str, NDArray], sizes: Mapping[str, int]) -> None:
    """Refuse parts that are not a division of all rows into parts of these sizes."""
    n_rows = sum(sizes.values())
    for key, size in sizes.items():
        check_array(path, key, parts[key], (size,), np.integer)
        if parts[key].min() < 0 or parts[key].max() >= n_rows:
            raise DatasetError(f"{path}: {key!r} names a row out of range; there are {n_rows:,}.")
    times = np.bincount(np.concatenate([parts[key] for key in sizes]), minlength=n_rows)
    if times.max() > 1:
        raise DatasetError(f"{path}: row {times.argmax()} is twice in {', '.join(sizes)}.")

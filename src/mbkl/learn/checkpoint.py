"""Finished stages of a long fit, kept in a file: a fit that was killed goes on from there.

A stage's result is a data class of arrays and numbers. The file is a NumPy archive with an
array for each field, and is replaced as a whole: it is never half-written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import typing
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TypeVar

import joblib
import numpy as np
from scipy import sparse

from mbkl import __version__
from mbkl.engine.rows import rows_at_once

T = TypeVar("T")

_IDENTITY = "identity"
# These do not change what is learned, or are kept (the seed) or compared (the folds) otherwise.
_WITHOUT_EFFECT = {
    "cache_folder",
    "checkpoint",
    "cv",
    "max_memory",
    "max_time",
    "n_jobs",
    "random_state",
    "verbose",
}


class Checkpoint:
    """Results of the stages of one fit.

    Its identity is a fingerprint of the data and settings: a file of another fit is an error.

    >>> import tempfile
    >>> from dataclasses import dataclass
    >>> from pathlib import Path
    >>> @dataclass
    ... class Result:
    ...     value: float
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fit.checkpoint"
    ...     first = Checkpoint(path, "same").recall("stage", Result, lambda: Result(2.0))
    ...     second = Checkpoint(path, "same").recall("stage", Result, lambda: Result(3.0))
    >>> first, second
    (Result(value=2.0), Result(value=2.0))
    """

    def __init__(self, path: Path, identity: str = "") -> None:
        self._path = path
        self._stored: dict[str, np.ndarray] = {_IDENTITY: np.array(identity)}
        _check_folder(path)
        if path.exists():
            self._stored = _read(path, identity)

    def recall(
        self, stage: str, kind: type[T], compute: Callable[[], T], finished=lambda: True
    ) -> T:
        """Return the result of a stage, a data class: as kept, or computed and kept.

        `finished` says after the computation whether it ran to its end; else it is not kept.
        """
        prefix = f"{stage}/"
        if any(name.startswith(prefix) for name in self._stored):
            return _unpack(kind, prefix, self._stored)
        result = compute()
        if finished():
            self._stored.update(_pack(result, prefix))
            _write(self._path, self._stored)
        return result


def open_checkpoint(estimator, *arrays) -> Checkpoint:
    """Return the checkpoint that the estimator names, for a fit on these arrays."""
    return Checkpoint(Path(estimator.checkpoint), _fingerprint(estimator, arrays))


def _fingerprint(estimator, arrays) -> str:
    digest = hashlib.sha256(f"{__version__} {type(estimator).__name__}".encode())
    parameters = estimator.get_params(deep=False)
    kept = {name: value for name, value in parameters.items() if name not in _WITHOUT_EFFECT}
    digest.update(joblib.hash(kept).encode())
    if isinstance(estimator.random_state, int | np.integer):
        digest.update(f"seed={estimator.random_state}\n".encode())
    for array in _plain_arrays(arrays):
        digest.update(f"{array.dtype} {array.shape}\n".encode())
        text = array.astype(str) if array.dtype.hasobject else array
        digest.update(np.ascontiguousarray(text).data)
    return digest.hexdigest()


def _plain_arrays(arrays) -> Iterator[np.ndarray]:
    for array in arrays:
        if sparse.issparse(array):
            yield np.array([array.format, *map(str, array.shape)])
            yield from (array.data, array.indices, array.indptr)
        elif hasattr(array, "blocks"):
            yield from (block for _, block in array.blocks(rows_at_once(array.shape[1])))
        else:
            yield np.asarray(array)


def _pack(result, prefix: str) -> dict[str, np.ndarray]:
    """Return the fields as arrays, those of data classes within by longer names."""
    packed: dict[str, np.ndarray] = {}
    for field in fields(result):
        value, name = getattr(result, field.name), f"{prefix}{field.name}"
        if is_dataclass(value):
            packed.update(_pack(value, f"{name}/"))
        elif value is not None:
            packed[name] = np.asarray(value)
    return packed


def _unpack(kind, prefix: str, stored: dict[str, np.ndarray]):
    hints = typing.get_type_hints(kind)
    values = {}
    for field in fields(kind):
        name = f"{prefix}{field.name}"
        if name in stored:
            value = stored[name]
            values[field.name] = value.item() if value.ndim == 0 else value
        elif any(key.startswith(f"{name}/") for key in stored):
            (inner,) = filter(is_dataclass, typing.get_args(hints[field.name]))
            values[field.name] = _unpack(inner, f"{name}/", stored)
        else:
            values[field.name] = None
    return kind(**values)


def _check_folder(path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"checkpoint={str(path)!r} must name a file in a folder that exists.")


def _read(path: Path, identity: str) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path):  # a single array is no archive
            pass
        with np.load(path, allow_pickle=False) as archive:
            stored = {name: archive[name] for name in archive.files}
        own = str(stored[_IDENTITY])
    except (OSError, RuntimeError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"checkpoint={str(path)!r} is not a readable checkpoint ({error}). "
            "Delete the file to start the fit anew."
        ) from error
    if own != identity:
        raise ValueError(
            f"checkpoint={str(path)!r} is that of a fit with other data, parameters or another "
            "version. Delete the file or name another one."
        )
    return stored


def _write(path: Path, stored: dict[str, np.ndarray]) -> None:
    """Replace the file as a whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **stored)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise

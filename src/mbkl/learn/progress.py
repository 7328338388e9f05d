"""Stages of a fit: they are timed, printed on demand, open to callbacks, and kept in a file.

A fit that was killed resumes from that file. The result of a stage is a data class of arrays and
numbers. The file is a NumPy archive with an array for each field, and is replaced as a whole: it
is never half-written.
"""

from __future__ import annotations

import hashlib
import io
import time
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TypeVar

import joblib
import numpy as np
from scipy import sparse

from mbkl import __version__
from mbkl.engine.files import write_atomically
from mbkl.engine.rows import rows_at_once

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in: this scikit-learn has no callbacks."""

    def with_callbacks(method):
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]

T = TypeVar("T")
_IDENTITY = "identity"
# Parameters that do not change the model, or whose effect is checked otherwise (seed and folds).
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


class Progress:
    """Time the stages of one fit, print them, and call the estimator's callbacks.

    The estimator's `verbose` decides what is printed: 1 for stages, 2 for iterations. Its
    `max_time`, if it has one, is the time after which solvers are told to stop. Stages in the
    checkpoint `saved` are not run again.
    """

    def __init__(self, estimator, saved: Checkpoint | None = None) -> None:
        self._saved = saved
        self.timings: dict[str, float] = {}
        self._nested: list[float] = []
        self._estimator = estimator
        self._began = time.perf_counter()
        self._max_time = getattr(estimator, "max_time", None)
        self._stopped_by_callback = False
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator)

    def used(self) -> float:
        """Return the share of the time allowed that is used; zero if there is no limit."""
        if self._max_time is None:
            return 0.0
        return (time.perf_counter() - self._began) / self._max_time

    def reason_to_stop(self) -> str | None:
        """Return why solvers are to stop early, or None."""
        if self._stopped_by_callback:
            return "a callback asked to"
        return f"max_time={self._max_time:g} s is over" if self.used() >= 1.0 else None

    def recall(self, stage: str, kind: type[T], compute: Callable[[], T]) -> T:
        """Return the result of a stage, from the checkpoint if it is there."""
        if self._saved is None:
            return compute()
        return self._saved.recall(stage, kind, compute, lambda: self.reason_to_stop() is None)

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[..., bool]]:
        """Run one stage; yields a function to call once an iteration with its solution.

        That function returns True when the solver is to stop: a callback asked to, in
        this stage or before, or the time is over. Every solver makes one step at least.
        """
        began = time.perf_counter()
        context = None
        if self._context is not None:
            context = self._context.subcontext(task_name=name, max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self._estimator)

        def iteration(solution) -> bool:
            if self._estimator.verbose > 1:
                print(
                    f"[mbkl]   {name}, iteration {solution.n_iter}: {solution.standing}",
                    flush=True,
                )
            if context is not None:
                task = context.subcontext(task_name="iteration")
                task.call_on_fit_task_begin(estimator=self._estimator)
                is_stopped = task.call_on_fit_task_end(estimator=self._estimator)
                self._stopped_by_callback |= bool(is_stopped)
            return solution.n_iter > 0 and self.reason_to_stop() is not None

        self._nested.append(0.0)
        try:
            yield iteration
        finally:
            if context is not None:
                context.call_on_fit_task_end(estimator=self._estimator)
            elapsed = time.perf_counter() - began
            # The time of a nested stage counts for that stage alone.
            without_nested = elapsed - self._nested.pop()
            if self._nested:
                self._nested[-1] += elapsed
            self.timings[name] = self.timings.get(name, 0.0) + without_nested
        if self._estimator.verbose:
            print(f"[mbkl] {name}: {elapsed:.2f} s", flush=True)

    def finish(self) -> dict[str, float]:
        """End the fit; return the seconds of each stage and of the whole."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)
        return {**self.timings, "total": time.perf_counter() - self._began}


# ------------------------------------------------------------- the file


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
        if path.is_dir() or not path.parent.is_dir():
            raise ValueError(f"checkpoint={str(path)!r} must name a file in a folder that exists.")
        self._path = path
        self._stored: dict[str, np.ndarray] = {_IDENTITY: np.array(identity)}
        if path.exists():
            self._stored = _read(path, identity)

    def recall(
        self, stage: str, kind: type[T], compute: Callable[[], T], finished=lambda: True
    ) -> T:
        """Return the stored result of a stage, a data class; compute and store it if missing.

        It is stored only if `finished` says afterwards that the computation was not cut short.
        """
        prefix = f"{stage}/"
        if any(name.startswith(prefix) for name in self._stored):
            return _unpack(kind, prefix, self._stored)
        result = compute()
        if finished():
            self._stored.update(_pack(result, prefix))
            content = io.BytesIO()
            np.savez(content, **self._stored)  # type: ignore[arg-type]
            write_atomically(self._path, [content.getbuffer()])
        return result


def open_checkpoint(estimator, *arrays) -> Checkpoint:
    """Return the checkpoint that the estimator names, for a fit on these arrays."""
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
    return Checkpoint(Path(estimator.checkpoint), digest.hexdigest())


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
    """Return the fields as arrays by name; names of nested data classes contain their field."""
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


def _read(path: Path, identity: str) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            stored = dict(archive)
        stored_identity = str(stored[_IDENTITY])
    except Exception as error:  # whatever the file may be
        raise ValueError(
            f"checkpoint={str(path)!r} is not a readable checkpoint. "
            "Delete the file to start the fit anew."
        ) from error
    if stored_identity != identity:
        raise ValueError(
            f"checkpoint={str(path)!r} is that of a fit with other data, parameters or another "
            "version. Delete the file or name another one."
        )
    return stored

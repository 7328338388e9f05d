"""Counts what a fit does: codes read, rows summed, bytes streamed, calls and bytes sent.

The counted functions are wrapped while a fit runs; what one of them calls in turn is not
counted again.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unittest import mock

import numpy as np

from mbkl.engine import fixed_point, numba_engine, numpy_engine, stream_engine
from mbkl.engine.bundles import BundledCodes
from mbkl.engine.disk_array import DiskArray
from mbkl.learn import algorithm
from mbkl.solvers import gram_newton, newton_cg

# Up to here the engine makes passes of one column each.
FEW_COLUMNS = 4


@dataclass
class Tally:
    """What was done, by operation.

    Parameters
    ----------
    here : dict
        Work of this process.
    on_workers : dict
        Work of all workers of a cluster together.
    """

    here: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    on_workers: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, operation: str, amount: float, remote: bool = False) -> None:
        """Count some work."""
        (self.on_workers if remote else self.here)[operation] += amount


def _kind(codes, n_columns: int) -> str:
    if n_columns > FEW_COLUMNS:
        return "many columns"
    return "bundles" if isinstance(codes, BundledCodes) else "one column"


def _is_remote(codes) -> bool:
    values = (codes.bundles if isinstance(codes, BundledCodes) else codes).values
    return not isinstance(values, np.ndarray | DiskArray)


def _pass_over(name: str) -> Callable:
    def count(tally: Tally, engine, codes, columns) -> None:
        n_columns, remote = columns.shape[1], _is_remote(codes)
        tally.add(f"{name}, {_kind(codes, n_columns)}", codes.n_stored * n_columns, remote)
        tally.add(f"rows of {name}", codes.n_rows * n_columns, remote)

    return count


def _take(tally: Tally, engine, codes, rows) -> None:
    per_row = codes.n_stored / max(codes.n_rows, 1)
    tally.add("take", per_row * rows.size, _is_remote(codes))


def _bin(tally: Tally, engine, X, features, edges, out) -> None:
    remote = not isinstance(out, np.ndarray | DiskArray)
    tally.add("bin", features.size * out.shape[1], remote)


def _bin_ferns(tally: Tally, engine, X, ferns, out) -> None:
    remote = not isinstance(out, np.ndarray | DiskArray)
    tally.add("bin ferns", ferns.features.size * out.shape[1], remote)


def _agreement(tally: Tally, engine, codes, others, weights) -> None:
    share = 0.5 if codes is others else 1.0
    tally.add("agreement", share * codes.n_stored * others.n_rows)


def _city_block(tally: Tally, engine, positions, others) -> None:
    share = 0.5 if positions is others else 1.0
    tally.add("city block", share * positions.size * others.shape[1])


def _row_state(tally: Tally, values) -> None:
    tally.add("row state", values.size, hasattr(values, "magnitude"))


def _order(tally: Tally, hashes, y, weights) -> None:
    tally.add("order", len(y))


def _order_on_workers(tally: Tally, learner) -> None:
    tally.add("order", learner.y.size, remote=True)


def _factor(tally: Tally, matrix, curvature) -> None:
    tally.add("factor", len(matrix) ** 3 / 3)
    tally.add("centre", matrix.size)


def _read(tally: Tally, array, rows) -> None:
    tally.add("read", array.shape[0] * (rows.stop - rows.start) * array.dtype.itemsize)


def _write(tally: Tally, array, rows, values) -> None:
    tally.add("write", values.size * array.dtype.itemsize)


def _round_trip(tally: Tally, crew, calls) -> None:
    tally.add("round trips", 1)
    tally.add("bytes out", sum(array_bytes(call) for call in calls))


def _answers(tally: Tally, calls, results) -> None:
    # Histograms are as many as there are workers; samples are bounded all together.
    whole = calls[0][1] in ("histogram", "counts")
    tally.add("bytes back" if whole else "bytes of samples", array_bytes(results))


def _exchange(tally: Tally, crew, *arguments) -> None:
    tally.add("exchanges", 1)


def _task(tally: Tally, crew, *arguments, **options) -> None:
    tally.add("tasks", 1)


def array_bytes(value) -> int:
    """Return the bytes of all arrays in nested tuples, lists and instructions.

    Examples
    --------
    >>> import numpy as np
    >>> array_bytes([np.zeros(3), ("name", np.zeros(2, np.uint8))])
    26
    """
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple | list):
        return sum(map(array_bytes, value))
    return array_bytes(value.arguments) if hasattr(value, "arguments") else 0


_ENGINE_METHODS: dict[str, Callable] = {
    "gather": _pass_over("gather"),
    "histogram": _pass_over("histogram"),
    "take": _take,
    "bin": _bin,
    "bin_ferns": _bin_ferns,
    "agreement": _agreement,
    "city_block": _city_block,
}
_ENGINES = [numpy_engine.NumpyEngine, numba_engine.NumbaEngine, stream_engine.StreamEngine]
_PLACES: list[tuple[object, str, Callable]] = [
    (fixed_point, "_magnitude", _row_state),
    (algorithm, "merge_equal_rows", _order),
    (gram_newton, "factor_of", _factor),
    (newton_cg, "factor_of", _factor),
]
# Read ahead by a thread of its own, within a pass: never hidden by it.
_ALWAYS: list[tuple[object, str, Callable]] = [
    (DiskArray, "read", _read),
    (DiskArray, "write", _write),
]


@contextlib.contextmanager
def counted(with_dask: bool = False) -> Iterator[Tally]:
    """Count what is done inside the context."""
    tally, inside = Tally(), threading.local()
    engines: list[type] = list(_ENGINES)
    places, always = list(_PLACES), list(_ALWAYS)
    if with_dask:
        crew = importlib.import_module("mbkl.dask.crew")
        engines.append(importlib.import_module("mbkl.dask.engine").DaskEngine)
        learner = importlib.import_module("mbkl.dask.learner").DaskLearner
        places.append((learner, "canonical", _order_on_workers))
        always += [
            (crew.DaskCrew, "_run_all", _round_trip),
            (crew.DaskCrew, "_submit", _task),
            (crew.DaskCrew, "exchange", _exchange),
        ]
    places += [
        (engine, name, count)
        for engine in engines
        for name, count in _ENGINE_METHODS.items()
        if name in vars(engine)
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, count in always:
            wrapped = _counting(getattr(owner, name), count, tally)
            stack.enter_context(mock.patch.object(owner, name, wrapped))
        for owner, name, count in places:
            wrapped = _counting(getattr(owner, name), count, tally, inside)
            stack.enter_context(mock.patch.object(owner, name, wrapped))
        yield tally


def _counting(function: Callable, count: Callable, tally: Tally, inside=None) -> Callable:
    """Return a function that also counts, unless it is called by another counted one."""

    def wrapper(*arguments, **options):
        outermost = inside is None or not getattr(inside, "busy", False)
        if outermost:
            count(tally, *arguments, **options)
        if inside is None or not outermost:
            result = function(*arguments, **options)
        else:
            inside.busy = True
            try:
                result = function(*arguments, **options)
            finally:
                inside.busy = False
        if count is _round_trip:
            _answers(tally, arguments[1], result)
        return result

    return wrapper

"""Counts the operations of a fit: codes read, rows summed, bytes streamed, calls, bytes sent.

The counted functions are wrapped while a fit runs. A counted function that another one calls
is not counted again.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from unittest import mock

import numpy as np

from mbkl.engine import arrays
from mbkl.engine.codes import DenseCodes, SparseCodes
from mbkl.engine.compiled import Compiled
from mbkl.engine.files import DiskArray, FileCodes, FileRows
from mbkl.engine.rows import ArrayRows, SparseRows
from mbkl.engine.twins import Twins
from mbkl.learn import labelled_rows
from mbkl.solvers import gram_newton


@dataclass
class Tally:
    """Amounts of work by operation.

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


def n_stored(codes) -> int:
    """Return the number of codes that a pass looks up.

    Examples
    --------
    >>> import numpy as np
    >>> n_stored(DenseCodes(np.zeros((2, 5), np.uint8), np.array([0, 3, 6])))
    10
    """
    if isinstance(codes, SparseCodes):
        return codes.indicators.nnz
    return codes.n_rows * codes.n_groups


def _kind(n_columns: int) -> str:
    return "many columns" if n_columns > 1 else "one column"


def _is_remote(codes_or_rows) -> bool:
    return hasattr(codes_or_rows, "crew")


def _pass_over(name: str) -> Callable:
    def count(tally: Tally, codes, columns) -> None:
        n_columns, remote = columns.shape[1], _is_remote(codes)
        tally.add(f"{name}, {_kind(n_columns)}", n_stored(codes) * n_columns, remote)
        tally.add(f"rows of {name}", codes.n_rows * n_columns, remote)

    return count


def _take(tally: Tally, codes, rows) -> None:
    per_row = n_stored(codes) / max(codes.n_rows, 1)
    tally.add("take", per_row * rows.size, _is_remote(codes))


def _bin(tally: Tally, rows, features, edges) -> None:
    tally.add("bin", features.size * rows.shape[0], _is_remote(rows))


def _bin_ferns(tally: Tally, rows, ferns) -> None:
    tally.add("bin ferns", ferns.features.size * rows.shape[0], _is_remote(rows))


def _agreement(tally: Tally, loops, values, others, weights) -> None:
    share = 0.5 if values is others else 1.0
    tally.add("agreement", share * values.size * others.shape[1])


def _city_block(tally: Tally, loops, positions, others) -> None:
    share = 0.5 if positions is others else 1.0
    tally.add("city block", share * positions.size * others.shape[1])


def _row_state(tally: Tally, values) -> None:
    tally.add("row state", values.size, hasattr(values, "magnitude"))


def _order(tally: Tally, hashes, y, weights) -> None:
    tally.add("order", len(y))


def _order_on_workers(tally: Tally, rows) -> None:
    tally.add("order", rows.n_rows, remote=True)


def _factor(tally: Tally, matrix, curvature) -> None:
    tally.add("factor", len(matrix) ** 3 / 3)
    tally.add("centre", matrix.size)


def _read(tally: Tally, array, rows, groups=None) -> None:
    tally.add("read", array.shape[0] * (rows.stop - rows.start) * array.dtype.itemsize)


def _write(tally: Tally, array, rows, values) -> None:
    tally.add("write", values.size * array.dtype.itemsize)


def _round_trip(tally: Tally, crew, calls) -> None:
    tally.add("round trips", 1)
    tally.add("bytes out", sum(array_bytes(call) for call in calls))


def _answers(tally: Tally, calls, results) -> None:
    # Each worker returns a whole histogram; the total size of samples is bounded.
    methods = [each for each in calls[0][1] if isinstance(each, str)]
    is_histogram = methods in (["histogram"], ["counts"])
    tally.add("bytes back" if is_histogram else "bytes of samples", array_bytes(results))


def _exchange(tally: Tally, crew, *arguments) -> None:
    tally.add("exchanges", 1)


def _task(tally: Tally, crew, *arguments, **options) -> None:
    tally.add("tasks", 1)


def array_bytes(value) -> int:
    """Return the bytes of all arrays in nested tuples, lists and expressions.

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


_OF_CODES: dict[str, Callable] = {
    "gather": _pass_over("gather"),
    "histogram": _pass_over("histogram"),
    "take": _take,
}
_OF_ROWS: dict[str, Callable] = {"bin": _bin, "bin_ferns": _bin_ferns}
_OF_LOOPS: dict[str, Callable] = {"agreement": _agreement, "city_block": _city_block}


def _methods(owners: Iterable[object], counts: dict[str, Callable]) -> list[tuple]:
    return [(owner, name, count) for owner in owners for name, count in counts.items()]


_PLACES: list[tuple[object, str, Callable]] = [
    *_methods((DenseCodes, SparseCodes, FileCodes), _OF_CODES),
    *_methods((ArrayRows, SparseRows, FileRows), _OF_ROWS),
    *_methods((Twins, Compiled), _OF_LOOPS),
    (arrays, "magnitude", _row_state),
    (labelled_rows, "merge_equal_rows", _order),
    (gram_newton, "factor_of", _factor),
]
# A thread reads ahead during a pass, so these are counted within passes, too.
_ALWAYS: list[tuple[object, str, Callable]] = [
    (DiskArray, "read", _read),
    (DiskArray, "write", _write),
]


@contextlib.contextmanager
def counted(with_dask: bool = False) -> Iterator[Tally]:
    """Count the operations inside the context."""
    tally, inside = Tally(), threading.local()
    places, always = list(_PLACES), list(_ALWAYS)
    if with_dask:
        crew = importlib.import_module("mbkl.dask.crew").Crew
        codes = importlib.import_module("mbkl.dask.rows").RemoteCodes
        matrix = importlib.import_module("mbkl.dask.rows").RemoteMatrix
        rows = importlib.import_module("mbkl.dask.rows").RemoteLabelledRows
        places += _methods([codes], _OF_CODES) + _methods([matrix], _OF_ROWS)
        always += [
            (crew, "_run_all", _round_trip),
            (crew, "_submit", _task),
            (crew, "exchange", _exchange),
            (vars(rows)["merged"], "func", _order_on_workers),  # the function of a cached property
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
    """Return a function that also counts, unless another counted function calls it."""

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

"""Arrays of NumPy and tensors of Torch alike, and bits that do not depend on order or threads.

Floating-point addition is not associative, so a sum over rows would depend on how the rows
are divided among threads or machines. Rounding every term once to a multiple of a power of
two and adding integers makes the sum exact from there on: the same bits in any order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from mbkl.extras import require

# NumPy's arrays or Torch's tensors: what solvers are written for.
Values = Any

# One bit is the sign; one more is head room, since a map's gradient is
# 2 * suffix - total and must fit in the same 64 bits.
_MAGNITUDE_BITS = 61


def is_numpy(array) -> bool:
    """Say whether functions of NumPy apply to an array: it is not on a device."""
    return isinstance(array, float) or hasattr(array, "__array_ufunc__")


def namespace(array) -> ModuleType:
    """Return the module whose functions apply to an array."""
    return np if is_numpy(array) else require("torch", "gpu")


def cast(array: Values, reference: Values) -> Values:
    """Return an array with the data type of another, on the same device."""
    if is_numpy(reference):
        return array if array.dtype == reference.dtype else array.astype(reference.dtype)
    return array.to(dtype=reference.dtype)


def index_for(index: NDArray, reference: Values) -> Values:
    """Return an index of NumPy as one for another array."""
    if is_numpy(reference):
        return index
    return require("torch", "gpu").as_tensor(index, device=reference.device)


def to_host(array: Values) -> NDArray:
    """Return an array of NumPy; anything else than a tensor as it is."""
    return array.detach().cpu().numpy() if type(array).__module__ == "torch" else array


def numbers_below(count: int, reference: Values) -> Values:
    """Return the numbers from zero on, on the device of another array."""
    if is_numpy(reference):
        return np.arange(count)
    return namespace(reference).arange(count, device=reference.device)


def look_up(table: NDArray, index: Values) -> Values:
    """Return the entries of a table that an array of the rows asks for."""
    if hasattr(index, "apply"):
        return index.apply(np.take, table, index, axis=0)
    return table[index]


def block_of(matrix: NDArray, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray:
    """Return some rows and columns of a matrix: in half the time of an index of both.

    >>> block_of(np.arange(9).reshape(3, 3), np.array([2, 0]), np.array([1]))
    array([[7],
           [1]])
    """
    return matrix.take(rows, axis=0).take(columns, axis=1)


def levels_of(columns: Values) -> tuple[NDArray, Values]:
    """Return the different rows of an array, in order, and the place of each row among them.

    >>> levels_of(np.array([[3.0], [1.0], [3.0]]))
    (array([[1.],
           [3.]]), array([1, 0, 1]))
    """
    if hasattr(columns, "levels"):
        return columns.levels()
    if columns.shape[1] == 1:  # many times faster
        levels, place = np.unique(columns, return_inverse=True)
        return levels[:, None], place.reshape(-1)
    levels, place = np.unique(columns, axis=0, return_inverse=True)
    return levels, place.reshape(-1)


def is_fresh(*keys: NDArray) -> NDArray[np.bool_]:
    """Say of sorted entries which ones differ from the one before in some key.

    >>> is_fresh(np.array([0, 0, 1]), np.array([5, 5, 5]))
    array([ True, False,  True])
    """
    fresh = np.ones(keys[0].size, dtype=bool)
    fresh[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return fresh


def group_totals(integers: Values, group: Values, n_groups: int) -> NDArray[np.int64]:
    """Return the sum of the integers of each group's rows.

    >>> group_totals(np.array([1, 2, 4]), np.array([0, 2, 0]), 3)
    array([5, 0, 2])
    """
    if hasattr(integers, "group_totals"):
        return integers.group_totals(group, n_groups)
    totals = np.zeros(n_groups, dtype=np.int64)
    np.add.at(totals, group, integers)
    return totals


def collected(array: Values) -> NDArray:
    """Return an array of NumPy that is here, wherever its rows are."""
    return array.collected() if hasattr(array, "collected") else to_host(array)


def running_sum(values: Values) -> Values:
    """Return the sums of all rows up to each one."""
    if is_numpy(values):
        return np.cumsum(values, axis=0)
    # A device adds up lines side by side, and columns with a thread for each.
    return values.t().contiguous().cumsum(1).t().contiguous()


def group_sums(values: Values, offsets: NDArray[np.int64]) -> Values:
    """Return the sum of the rows of each group, none of which is empty.

    >>> group_sums(np.arange(5.0), np.array([0, 2, 5]))
    array([1., 9.])
    """
    if is_numpy(values):
        return np.add.reduceat(values, offsets[:-1], axis=0)
    running = running_sum(values)[index_for(offsets[1:] - 1, values)]
    running[1:] -= running[:-1].clone()
    return running


def to_fixed_point(values: Values) -> tuple[Values, Values]:
    """Round each column to integers whose sum cannot overflow, and return them with their unit.

    The values are integers * unit up to rounding, the unit of a column a power of two. Tensors
    stay as they are, and the unit is one: a device adds up in an order of its own.

    >>> integers, unit = to_fixed_point(np.array([[0.25], [-0.5]]))
    >>> float(integers.sum() * unit[0])
    -0.25
    """
    if not is_numpy(values):
        return values, values.new_ones(values.shape[1], dtype=namespace(values).float64)
    _, exponent = np.frexp(magnitude(values))
    count_bits = max(int(values.shape[0] - 1).bit_length(), 0)
    power = _MAGNITUDE_BITS - count_bits - exponent
    # A factor beyond 2^1023 would overflow for columns of tiny values.
    factor = np.ldexp(1.0, np.minimum(power, 1000))
    return np.rint(values * factor).astype(np.int64), 1.0 / factor


def magnitude(values: Values) -> Values:
    """Return the largest magnitude of each column."""
    if hasattr(values, "magnitude"):
        return values.magnitude()
    return np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))


def exact_sum(values: Values) -> Values:
    """Sum over rows with a result that does not depend on their order."""
    return total_of(*to_fixed_point(values))


def exact_total(values: Values) -> float:
    """Sum one number a row, with a result that does not depend on the order of the rows."""
    return float(exact_sum(values[:, None])[0])


def total_of(integers: Values, unit: Values) -> Values:
    """Return the sum over rows of what `to_fixed_point` returned."""
    if is_numpy(integers):
        return integers.sum(axis=0) * unit
    return integers.sum(axis=0, dtype=unit.dtype)


def smallest_code_dtype(n_cells: int) -> np.dtype:
    """Return the smallest unsigned type that can number `n_cells` cells.

    >>> smallest_code_dtype(256), smallest_code_dtype(257)
    (dtype('uint8'), dtype('uint16'))
    """
    for dtype in (np.uint8, np.uint16):
        if n_cells <= np.iinfo(dtype).max + 1:
            return np.dtype(dtype)
    return np.dtype(np.uint32)


def offsets_of(sizes: NDArray) -> NDArray[np.int64]:
    """Return where groups of these sizes begin, and where the last one ends.

    >>> offsets_of(np.array([2, 3]))
    array([0, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


_one_at_a_time = threading.RLock()


def _unlock_child() -> None:
    """Make a new lock in a forked child: the old one may be held by a thread it lacks."""
    global _one_at_a_time
    _one_at_a_time = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_child)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread; fits in other threads wait, as the limit is global."""
    with _one_at_a_time, _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Return what sets the limits: to look for libraries takes milliseconds."""
    return ThreadpoolController()

"""Functions for NumPy arrays and Torch tensors alike, and sums that do not depend on order.

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

# A NumPy array or a Torch tensor: solvers take either.
Values = Any

# Of 64 bits one is the sign; two are head room for a map's gradient, 2 * suffix - total,
# which is at most three times as large as a sum.
_MAGNITUDE_BITS = 61


def is_numpy(array) -> bool:
    """Say whether NumPy functions apply to an array, so that it is not a Torch tensor."""
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
    """Return a NumPy index in the form, and on the device, that indexing `reference` needs."""
    if is_numpy(reference):
        return index
    return require("torch", "gpu").as_tensor(index, device=reference.device)


def to_host(array: Values) -> NDArray:
    """Return a tensor as a NumPy array, and anything else unchanged."""
    return array.detach().cpu().numpy() if type(array).__module__ == "torch" else array


def numbers_below(count: int, reference: Values) -> Values:
    """Return the integers 0 to count - 1 on the device of `reference`."""
    if is_numpy(reference):
        return np.arange(count)
    return namespace(reference).arange(count, device=reference.device)


def look_up(table: NDArray, index: Values) -> Values:
    """Return table[index], also for an index that is divided among the workers of a cluster."""
    if hasattr(index, "apply"):
        return index.apply(np.take, table, index, axis=0)
    return table[index]


def block_of(matrix: NDArray, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray:
    """Return some rows and columns of a matrix, in half the time of indexing by both at once.

    >>> block_of(np.arange(9).reshape(3, 3), np.array([2, 0]), np.array([1]))
    array([[7],
           [1]])
    """
    return matrix.take(rows, axis=0).take(columns, axis=1)


def levels_of(columns: Values) -> tuple[NDArray, Values]:
    """Return the distinct rows of an array, sorted, and the index among them of each row.

    >>> levels_of(np.array([[3.0], [1.0], [3.0]]))
    (array([[1.],
           [3.]]), array([1, 0, 1]))
    """
    if hasattr(columns, "levels"):
        return columns.levels()
    if columns.shape[1] == 1:  # many times faster than with axis=0
        levels, place = np.unique(columns, return_inverse=True)
        return levels[:, None], place.reshape(-1)
    levels, place = np.unique(columns, axis=0, return_inverse=True)
    return levels, place.reshape(-1)


def is_fresh(*keys: NDArray) -> NDArray[np.bool_]:
    """Mark the sorted entries that differ from the entry before them in any key.

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
    """Return an array as NumPy in local memory, from a device or the workers of a cluster."""
    return array.collected() if hasattr(array, "collected") else to_host(array)


def running_sum(values: Values) -> Values:
    """Return the sums of all rows up to each one."""
    if is_numpy(values):
        return np.cumsum(values, axis=0)
    # A GPU scans contiguous lines in parallel, but strided columns with one thread each.
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

    Up to rounding, values = integers * unit, where the unit of each column is a power of two.
    Tensors are returned unchanged with unit one, since a device sums in no fixed order.

    >>> integers, unit = to_fixed_point(np.array([[0.25], [-0.5]]))
    >>> float(integers.sum() * unit[0])
    -0.25
    """
    if not is_numpy(values):
        return values, values.new_ones(values.shape[1], dtype=namespace(values).float64)
    _, exponent = np.frexp(magnitude(values))
    count_bits = max(int(values.shape[0] - 1).bit_length(), 0)
    power = _MAGNITUDE_BITS - count_bits - exponent
    # For columns of tiny values the factor must not exceed 2^1023.
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
    """Sum a vector with a result that does not depend on the order of its entries."""
    return float(exact_sum(values[:, None])[0])


def total_of(integers: Values, unit: Values) -> Values:
    """Return the column sums of values in fixed point, see `to_fixed_point`."""
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
    """Return where each group of these sizes begins, and where the last one ends.

    >>> offsets_of(np.array([2, 3]))
    array([0, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


_blas_lock = threading.RLock()


def _unlock_child() -> None:
    """Make a new lock in a forked child: a thread that it does not have may hold the old one."""
    global _blas_lock
    _blas_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_child)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; other threads wait at this lock, as the limit is global."""
    with _blas_lock, _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Return the controller of thread pools, made once as finding libraries takes milliseconds."""
    return ThreadpoolController()

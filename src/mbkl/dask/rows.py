"""Numbers for each row, in parts on the workers, for code that is written for NumPy.

What is computed from them is not computed until a result is needed here: a whole chain of
operations goes to the workers at once, and a sum or a histogram comes back.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from mbkl.dask.crew import Crew, Node
from mbkl.dask.store import (
    column_sums,
    distinct,
    itself,
    places,
    totals_below,
    totals_of_groups,
)
from mbkl.engine.arrays import magnitude


@dataclass(frozen=True)
class RowSet:
    """Some of the rows, as each store numbers its own."""

    node: Node
    size: int  # how many there are
    # If given, these rows are collected here, in this order of them as they come from the stores,
    # one store after the other.
    order: NDArray[np.intp] | None = field(default=None)


class RemoteRows(NDArrayOperatorsMixin):
    """An array of shape (n_rows,) or (n_rows, n_columns) in parts on the workers.

    An array without rows, `like`, has the same type and number of columns.
    """

    def __init__(self, crew: Crew, node: Node, like: NDArray, n_rows: int) -> None:
        self._crew, self.node, self._like = crew, node, like
        self.n_rows = n_rows

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_rows, *self._like.shape[1:])

    @property
    def dtype(self) -> np.dtype:
        return self._like.dtype

    @property
    def itemsize(self) -> int:
        return self._like.itemsize

    @property
    def ndim(self) -> int:
        return self._like.ndim

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.n_rows

    def __array__(self, *arguments, **options):
        raise TypeError("Rows on the workers are not gathered here as an array.")

    # Computed later ----------------------------------------------------------------------

    def apply(self, function: Callable, *arguments, **options) -> RemoteRows:
        """Return a function of arrays; row by row, and not computed yet."""
        samples = [each._like if isinstance(each, RemoteRows) else each for each in arguments]
        with np.errstate(all="ignore"):
            like = function(*samples, **options)
        node = Node(self._crew, function, arguments, options)
        return RemoteRows(self._crew, node, like, self.n_rows)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if method != "__call__":
            return NotImplemented
        result = self.apply(ufunc, *inputs, **options)
        if out is None:
            return result
        (target,) = out
        target.node, target._like = result.node, result._like
        return target

    def __array_function__(self, function, types, arguments, options):
        if function is np.flatnonzero:
            return self._nonzero()
        if function in (np.where, np.clip):
            return self.apply(function, *arguments, **options)
        return NotImplemented

    def astype(self, dtype) -> RemoteRows:
        return self.apply(np.asarray, self, dtype=np.dtype(dtype))

    def __getitem__(self, index):
        if not isinstance(index, RowSet):
            return self.apply(operator.getitem, self, index)
        if index.order is None:
            taken = Node(self._crew, operator.getitem, (self, index))
            return RemoteRows(self._crew, taken, self._like, index.size)
        return np.concatenate(self._crew.call(operator.getitem, self, index))[index.order]

    def __setitem__(self, index, value) -> None:
        changed = self.apply(_with_columns, self, index, value)
        self.node = changed.node

    # Computed now --------------------------------------------------------------------------

    def magnitude(self) -> NDArray[np.float64]:
        """Return the largest magnitude of each column."""
        return np.max(self._crew.call(magnitude, self), axis=0)

    def sum(self, axis: int) -> NDArray[np.int64]:
        """Return the sum of each column, of integers: that of others depends on the order."""
        if axis != 0 or self.dtype.kind not in "iu":
            raise TypeError("Only integers can be added up over the rows of all workers.")
        return np.sum(self._crew.call(column_sums, self), axis=0)

    def group_totals(self, group: RemoteRows, n_groups: int) -> NDArray[np.int64]:
        """Return the sum of the integers of each group's rows."""
        totals = np.zeros(n_groups, dtype=np.int64)
        for groups, own in self._crew.call(totals_of_groups, self, group):
            totals[groups] += own
        return totals

    def levels(self) -> tuple[NDArray, RemoteRows]:
        """Return the different rows, here, and the place of each row among them."""
        values = self[:, 0] if self.shape[1] == 1 else self
        levels = distinct(np.concatenate(self._crew.call(distinct, values)))
        return levels.reshape(len(levels), -1), self.apply(places, levels, values)

    def totals_below(self, integers: RemoteRows, bounds: NDArray) -> NDArray[np.int64]:
        """Return the sum of the integers of rows whose number is below each bound."""
        return np.sum(self._crew.call(totals_below, self, integers, bounds), axis=0)

    def collected(self) -> NDArray:
        """Return the numbers of all rows, here."""
        return np.concatenate(self._crew.call(itself, self))

    def _nonzero(self) -> RowSet:
        rows = Node(self._crew, np.flatnonzero, (self,))
        return RowSet(rows, sum(self._crew.call(len, rows)))


def _with_columns(values: NDArray, index, new: NDArray) -> NDArray:
    """Return a copy with other numbers in some columns."""
    changed = values.copy()
    changed[index] = new
    return changed

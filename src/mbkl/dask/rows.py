"""Numbers for each row, in parts on the workers, for code that is written for NumPy.

What is computed from them is not computed until a result is needed here: a whole chain of
operations goes to the workers at once, and a sum or a histogram comes back.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from mbkl.dask.crew import Crew
from mbkl.dask.store import Instruction, Reference


class Node:
    """An array of the stores; until it is computed, with what it is computed from."""

    def __init__(self, crew: Crew, function=None, arguments: tuple = (), options=None) -> None:
        self.key = crew.new_key()
        self.function, self.arguments, self.options = function, arguments, options or {}
        weakref.finalize(self, crew.forget, self.key)

    @property
    def is_computed(self) -> bool:
        return self.function is None

    def program(self) -> list[Instruction]:
        """Return what computes this node; it and all it needs then count as computed."""
        steps: list[Instruction] = []
        nodes: list[Node] = []
        self._collect(steps, nodes, set())
        for node in nodes:
            # What nothing else refers to is forgotten from here on.
            node.function, node.arguments = None, ()
        return steps

    def _collect(self, steps: list, nodes: list, seen: set) -> None:
        if self.is_computed or self.key in seen:
            return
        seen.add(self.key)
        for each in self.arguments:
            if isinstance(each, Node):
                each._collect(steps, nodes, seen)
        arguments = tuple(
            Reference(each.key) if isinstance(each, Node) else each for each in self.arguments
        )
        steps.append(Instruction(self.key, self.function, arguments, self.options))
        nodes.append(self)


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
        self._crew, self._node, self._like = crew, node, like
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
        nodes = tuple(each._node if isinstance(each, RemoteRows) else each for each in arguments)
        return RemoteRows(self._crew, Node(self._crew, function, nodes, options), like, self.n_rows)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if method != "__call__":
            return NotImplemented
        result = self.apply(ufunc, *inputs, **options)
        if out is None:
            return result
        (target,) = out
        target._node, target._like = result._node, result._like
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
            taken = Node(self._crew, operator.getitem, (self._node, index.node))
            return RemoteRows(self._crew, taken, self._like, index.size)
        parts = self._reduce("pick", index.node.key)
        return np.concatenate(parts)[index.order]

    def __setitem__(self, index, value) -> None:
        changed = self.apply(_with_columns, self, index, value)
        self._node = changed._node

    # Computed now --------------------------------------------------------------------------

    def magnitude(self) -> NDArray[np.float64]:
        """Return the largest magnitude of each column."""
        return np.max(self._reduce("largest"), axis=0)

    def sum(self, axis: int) -> NDArray[np.int64]:
        """Return the sum of each column, of integers: that of others depends on the order."""
        if axis != 0 or self.dtype.kind not in "iu":
            raise TypeError("Only integers can be added up over the rows of all workers.")
        return np.sum(self._reduce("total"), axis=0)

    def group_totals(self, group: RemoteRows, n_groups: int) -> NDArray[np.int64]:
        """Return the sum of the integers of each group's rows."""
        totals = np.zeros(n_groups, dtype=np.int64)
        for groups, own in self._reduce("group_totals", group.compute_now()):
            totals[groups] += own
        return totals

    def totals_below(self, integers: RemoteRows, bounds: NDArray) -> NDArray[np.int64]:
        """Return the sum of the integers of rows whose number is below each bound."""
        return np.sum(self._reduce("totals_below", integers.compute_now(), bounds), axis=0)

    def collected(self) -> NDArray:
        """Return the numbers of all rows, here."""
        return np.concatenate(self._reduce("fetch"))

    def histogram(self, codes: Node) -> NDArray[np.int64]:
        """Return the sums over the rows in each cell."""
        program = self._node.program()
        return np.sum(
            self._crew.call("histogram", codes.key, self._node.key, program=program), axis=0
        )

    def compute_now(self) -> int:
        """Let the stores compute the array; return its name."""
        self._crew.call("shape", program=self._node.program())
        return self._node.key

    def _nonzero(self) -> RowSet:
        rows = Node(self._crew)
        return RowSet(rows, sum(self._reduce("find", rows.key)))

    def _reduce(self, method: str, *arguments) -> list[Any]:
        return self._crew.call(method, self._node.key, *arguments, program=self._node.program())


def _with_columns(values: NDArray, index, new: NDArray) -> NDArray:
    """Return a copy with other numbers in some columns."""
    changed = values.copy()
    changed[index] = new
    return changed

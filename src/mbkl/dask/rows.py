"""What the workers hold, for code that is written for arrays, codes and rows in memory.

Arrays are not computed until a result is needed here: a whole chain of operations goes to the
workers at once, and a sum or a histogram comes back. Tables and ferns go out likewise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partialmethod, reduce

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from mbkl.dask.crew import Crew, Node
from mbkl.dask.store import (
    ask,
    distinct,
    divide_all,
    divide_keys,
    first_of_equal,
    itself,
    pick_codes,
    places,
    sample_of,
    smallest_keys,
    tell_apart,
    totals_below,
    totals_of_groups,
)
from mbkl.engine.arrays import magnitude, to_fixed_point
from mbkl.engine.codes import Codes, DenseCodes
from mbkl.engine.rows import Rows, Sample
from mbkl.engine.twins import TWINS, Twins
from mbkl.maps.growing_rows import (
    Chosen,
    Draft,
    GrowingRows,
    GrowthSample,
    growing_rows,
    table_of,
)
from mbkl.maps.objectives import Objective


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

    dtype = property(operator.attrgetter("_like.dtype"))
    itemsize = property(operator.attrgetter("_like.itemsize"))
    ndim = property(operator.attrgetter("_like.ndim"))

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
        return np.sum(self._crew.call(ask, self, "sum", 0), axis=0)

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


@dataclass(frozen=True)
class RemoteCodes(Codes):
    """Codes of which every store has those of its own rows."""

    crew: Crew
    node: Node  # names the codes that each store has
    n_rows: int
    offsets: NDArray[np.int64]  # (n_groups + 1,)
    loops: Twins  # for codes that are collected here: those of few rows

    def gather(self, tables: NDArray[np.float64]) -> RemoteRows:
        scores = Node(self.crew, ask, (self, "gather", tables))
        return RemoteRows(self.crew, scores, np.empty((0, tables.shape[1])), self.n_rows)

    def histogram(self, residuals: RemoteRows) -> NDArray[np.int64]:
        return np.sum(self.crew.call(ask, self, "histogram", residuals), axis=0)

    def counts(self) -> NDArray[np.int64]:
        return np.sum(self.crew.call(ask, self, "counts"), axis=0)

    def take(self, rows: RowSet) -> Codes:
        if rows.order is not None:
            values = np.concatenate(self.crew.call(pick_codes, self, rows), axis=1)
            return DenseCodes(values[:, rows.order], self.offsets, self.loops)
        return replace(self, node=Node(self.crew, ask, (self, "take", rows)), n_rows=rows.size)

    def renumbered(self, groups, numbers: NDArray, offsets) -> RemoteCodes:
        arguments = (self, "renumbered", groups, numbers, offsets)
        node = self.crew.keep("number-cells", ask, *arguments)
        return replace(self, node=node, offsets=offsets)

    def keep_groups(self, groups: NDArray[np.intp]) -> RemoteCodes:
        node = Node(self.crew, ask, (self, "keep_groups", groups))
        return replace(self, node=node, offsets=self.kept_offsets(groups))


class RemoteGrowingRows:
    """What `GrowingRows` are, put together from those of all stores."""

    def __init__(self, codes, objective: Objective, y, weights, keys, seed: int) -> None:
        self._crew, self._loops, self._objective, self._y = codes.crew, codes.loops, objective, y
        self.offsets, self.n_rows = codes.offsets, codes.n_rows
        rows = (codes, objective, y, weights, keys, seed)
        self._node = Node(self._crew, GrowingRows, rows)

    def hold_out(self, share: float) -> int:
        return sum(self._all("hold_out", share))

    def start(self) -> NDArray[np.float32]:
        weights = Node(self._crew, ask, (self._node, "training_weights"))
        own = RemoteRows(self._crew, weights, np.empty(0), self.n_rows)
        return self._objective.start(self._y, own)

    def begin(self, intercept: NDArray[np.float32]) -> None:
        self._all("begin", intercept)

    def refresh(self, units: tuple, table: NDArray[np.float32] | None) -> NDArray[np.float64]:
        return np.max(self._all("refresh", units, table), axis=0)

    def watch(self, levels: RemoteCodes) -> int:
        return min(self._all("watch", levels))

    def table(self, features, cuts, members, units, ridge: float, rate: float) -> tuple:
        sums = self.fill(features, cuts, members)
        return table_of(sums, units, ridge, rate, self._loops)

    def held_out_loss(self) -> float:
        return float(sum(self._all("held_out_loss")))

    def held_out_scores(self) -> tuple[NDArray[np.float32], NDArray]:
        scores, y = zip(*self._all("held_out_scores"), strict=True)
        return np.concatenate(scores), np.concatenate(y)

    def sample(self, *arguments) -> GrowthSample:
        found = self._crew.call(sample_of, self._node, *arguments)
        codes, residuals = zip(*found, strict=True)
        loops = self._loops.alone
        return GrowthSample(np.concatenate(codes, axis=1), np.concatenate(residuals), loops)

    def choose(self, drafts: Sequence[Draft]) -> list[Chosen]:
        return self._loops.each(lambda number: drafts[number].choose(), range(len(drafts)))

    def _all(self, method: str, *arguments) -> list:
        return self._crew.call(ask, self._node, method, *arguments)

    def _sum(self, method: str, *arguments) -> NDArray[np.int64]:
        return np.sum(self._all(method, *arguments), axis=0)

    fill = partialmethod(_sum, "fill")
    fill_levels = partialmethod(_sum, "fill_levels")
    size_of_share = partialmethod(_sum, "size_of_share")


growing_rows.register(RemoteCodes, RemoteGrowingRows)


class RemoteMatrix(Rows):
    """The rows of X in all stores, put together from what they say of theirs.

    >>> from mbkl.dask.crew import local_crew
    >>> X, y = np.array([[1.0], [4.0], [2.0]]), np.array([0, 1, 0])
    >>> crew = local_crew([(X[:2], y[:2], None), (X[2:], y[2:], None)])
    >>> RemoteMatrix(crew).column_ranges()[:2]
    (array([1.]), array([4.]))
    """

    def __init__(self, crew: Crew, loops: Twins = TWINS) -> None:
        self.crew, self.loops = crew, loops
        shapes = crew.call("shape")
        widths = {width for _, width in shapes if width is not None}
        if len(widths) > 1:
            raise ValueError(f"Partitions of X have different numbers of columns: {widths}.")
        self.shape = (sum(n_rows for n_rows, _ in shapes), max(widths, default=0))

    def classes(self) -> NDArray:
        """Return all labels that occur, sorted."""
        found = [labels for store in self.crew.call("classes") for labels in store]
        return distinct(np.concatenate(found)) if found else np.empty(0)

    def labelled(self, classes: NDArray) -> tuple[RemoteRows, RemoteRows]:
        """Return the places of all rows' labels among all, and weights."""
        y = self.crew.keep("labels", "encode", classes)
        weights = self.crew.keep("weights", "weigh")
        n_rows = self.shape[0]
        return (
            RemoteRows(self.crew, y, np.empty(0, np.intp), n_rows),
            RemoteRows(self.crew, weights, np.empty(0), n_rows),
        )

    def collected(self) -> tuple[NDArray, NDArray, NDArray]:
        """Return X, targets and weights of all rows, which must be few; the stores keep none."""
        parts = [part for store in self.crew.call("pieces") for part in store]
        X, y, weights = zip(*parts, strict=True)
        return np.concatenate(X), np.concatenate(y), np.concatenate(weights)

    def column_ranges(self) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        """Return smallest and largest value of each column, and which ones have NaN."""
        low, high, missing = zip(*self.crew.work("ranges", "of_rows", "column_ranges"), strict=True)
        return reduce(np.fmin, low), reduce(np.fmax, high), reduce(np.logical_or, missing)

    def keys_apart(self, y: RemoteRows, weights: RemoteRows, seed: int) -> RemoteRows:
        keys = self.crew.keep("hash-rows", "of_rows", "keys", y, seed)
        arguments = (divide_all, (keys, weights), tell_apart)
        (_, told), _ = self.crew.exchange("tell-apart", *arguments)
        return RemoteRows(self.crew, told, np.empty(0, np.uint64), self.shape[0])

    def sample(self, y: RemoteRows | None, weights: RemoteRows, n_rows: int, seed: int):
        keys = self.crew.keep("hash-rows", "of_rows", "keys", y, seed)
        candidates = np.concatenate(self.crew.call(smallest_keys, keys, n_rows))
        chosen = np.unique(candidates)[:n_rows]
        integers, unit = to_fixed_point(weights[:, None])
        parts = self.crew.call("rows_of_keys", keys, chosen, y, integers)
        X = np.empty((chosen.size, self.shape[1]), dtype=np.float32)
        y_of_sample = np.empty(chosen.size, np.intp)
        mass = np.zeros(chosen.size, dtype=np.int64)
        for place, rows, own_labels, own_mass in parts:
            if place.size:
                X[place], y_of_sample[place] = rows, own_labels
            mass += own_mass
        n_different = 0
        if y is not None:  # only the choice of maps asks for it, and of labelled rows
            _, n_different = self.crew.exchange("count", divide_keys, (keys,), first_of_equal)
        return Sample(X, y_of_sample, mass * unit, n_different)

    def bin(self, features, edges) -> RemoteCodes:
        return self._codes("bin", edges.cell_offsets, "bin", features, edges)

    def bin_ferns(self, ferns) -> RemoteCodes:
        return self._codes("bin-ferns", ferns.cell_offsets, "bin_ferns", ferns)

    def _codes(self, name: str, offsets: NDArray[np.int64], *arguments) -> RemoteCodes:
        node = self.crew.keep(name, "of_rows", *arguments)
        return RemoteCodes(self.crew, node, self.shape[0], offsets, self.loops)

    def release(self) -> None:
        self.crew.call("release_rows")

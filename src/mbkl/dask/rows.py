"""Arrays, codes and rows on the workers, with the interfaces of those in memory.

Arrays are lazy: a chain of operations goes to the workers at once, with tables or ferns, when a
result such as a sum or a histogram is needed here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial, partialmethod, reduce
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from mbkl.dask import store
from mbkl.dask.crew import Crew, Node
from mbkl.dask.store import invoke
from mbkl.engine import limits
from mbkl.engine.arrays import magnitude, to_fixed_point
from mbkl.engine.codes import Codes, DenseCodes
from mbkl.engine.rows import Rows, Sample
from mbkl.engine.twins import TWINS, Twins
from mbkl.learn.labelled_rows import (
    LabelledRows,
    cell_numbers,
    equal_quota,
    hashes_of,
    smallest_of_kinds,
)
from mbkl.maps.growing_rows import GrowingRows, GrowthSample, growing_rows
from mbkl.maps.growth_losses import Objective


@dataclass(frozen=True)
class RowSet:
    """Some of the rows; each store knows the numbers of its rows among them."""

    node: Node
    size: int  # number of rows
    # None leaves the rows on the workers. Else they are collected here store by store, then sorted
    # in this order.
    order: NDArray[np.intp] | None = None


class RemoteRows(NDArrayOperatorsMixin):
    """An array of shape (n_rows,) or (n_rows, n_columns) in parts on the workers.

    `like` is an array without rows, of the same type and number of columns.
    """

    def __init__(self, crew: Crew, node: Node, like: NDArray, n_rows: int) -> None:
        self.crew, self.node, self._like = crew, node, like
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

    # Lazy operations ---------------------------------------------------------------------

    def apply(self, function: Callable, *arguments, **options) -> RemoteRows:
        """Return the result of a row-by-row function of arrays, as a lazy array."""
        call = partial(function, **options) if options else function
        samples = [each._like if isinstance(each, RemoteRows) else each for each in arguments]
        with np.errstate(all="ignore"):
            like = call(*samples)
        return RemoteRows(self.crew, Node(self.crew, call, *arguments), like, self.n_rows)

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
            rows = Node(self.crew, np.flatnonzero, self)
            return RowSet(rows, sum(self.crew.call(len, rows)))
        if function in (np.where, np.clip):
            return self.apply(function, *arguments, **options)
        return NotImplemented

    def astype(self, dtype) -> RemoteRows:
        return self.apply(np.asarray, self, dtype=np.dtype(dtype))

    def __getitem__(self, index):
        if not isinstance(index, RowSet):
            return self.apply(operator.getitem, self, index)
        if index.order is None:
            taken = Node(self.crew, operator.getitem, self, index)
            return RemoteRows(self.crew, taken, self._like, index.size)
        return np.concatenate(self.crew.call(operator.getitem, self, index))[index.order]

    def __setitem__(self, index, value) -> None:
        changed = self.apply(_with_columns, self, index, value)
        self.node = changed.node

    # Results here --------------------------------------------------------------------------

    def magnitude(self) -> NDArray[np.float64]:
        return np.max(self.crew.call(magnitude, self), axis=0)

    def sum(self, axis: int) -> NDArray[np.int64]:
        """Return the sum of each column of integers; sums of floats would depend on the order."""
        if axis != 0 or self.dtype.kind not in "iu":
            raise TypeError("Only integers can be added up over the rows of all workers.")
        return np.sum(self.crew.call(invoke, self, "sum", 0), axis=0)

    def group_totals(self, group: RemoteRows, n_groups: int) -> NDArray[np.int64]:
        totals = np.zeros(n_groups, dtype=np.int64)
        for groups, of_store in self.crew.call(store.totals_of_groups, self, group):
            totals[groups] += of_store
        return totals

    def levels(self) -> tuple[NDArray, RemoteRows]:
        """Return the distinct rows, here, and the lazy index of each row among them."""
        values = self[:, 0] if self.shape[1] == 1 else self
        levels = store.distinct(np.concatenate(self.crew.call(store.distinct, values)))
        return levels.reshape(len(levels), -1), self.apply(store.places, levels, values)

    def totals_below(self, integers: RemoteRows, bounds: NDArray) -> NDArray[np.int64]:
        return np.sum(self.crew.call(store.totals_below, self, integers, bounds), axis=0)

    def collected(self) -> NDArray:
        return np.concatenate(self.crew.call(store.identity, self))


def _with_columns(values: NDArray, index, new: NDArray) -> NDArray:
    changed = values.copy()
    changed[index] = new
    return changed


@dataclass(frozen=True)
class RemoteCodes(Codes):
    """Codes of all rows; each store has the codes of its rows."""

    crew: Crew
    node: Node  # the codes of each store
    n_rows: int
    offsets: NDArray[np.int64]  # (n_groups + 1,)
    loops: Twins  # for codes of few rows, which are collected here

    def gather(self, tables: NDArray[np.float64]) -> RemoteRows:
        scores = Node(self.crew, invoke, self, "gather", tables)
        return RemoteRows(self.crew, scores, np.empty((0, tables.shape[1])), self.n_rows)

    def histogram(self, residuals: RemoteRows) -> NDArray[np.int64]:
        return np.sum(self.crew.call(invoke, self, "histogram", residuals), axis=0)

    def counts(self) -> NDArray[np.int64]:
        return np.sum(self.crew.call(invoke, self, "counts"), axis=0)

    def take(self, rows: RowSet) -> Codes:
        if rows.order is not None:
            parts = self.crew.call(lambda codes, kept: codes.values[:, kept], self, rows)
            values = np.concatenate(parts, axis=1)[:, rows.order]
            return DenseCodes(values, self.offsets, self.loops)
        return replace(self, node=Node(self.crew, invoke, self, "take", rows), n_rows=rows.size)

    def renumbered(self, groups, numbers: NDArray, offsets) -> RemoteCodes:
        node = Node(self.crew, invoke, self, "renumbered", groups, numbers, offsets)
        return replace(self, node=node, offsets=offsets)

    def with_groups(self, sizes, *values) -> RemoteCodes:
        node = Node(self.crew, invoke, self, "with_groups", sizes, *values)
        return replace(self, node=node, offsets=self.more_offsets(sizes))


class RemoteGrowingRows(GrowingRows):
    """Rows that ferns grow on, on all workers; combines the answers of the stores."""

    def __init__(self, codes, objective: Objective, y, weights, keys, seed: int) -> None:
        self._crew, self._loops, self._objective, self._y = codes.crew, codes.loops, objective, y
        self.offsets, self.n_rows = codes.offsets, codes.n_rows
        rows = (codes, objective, y, weights, keys, seed)
        self._node = Node(self._crew, GrowingRows, *rows)

    def _combined(self, combine: Callable, method: str, *arguments):
        return combine(self._crew.call(invoke, self._node, method, *arguments))

    set_scores: Any = partialmethod(_combined, list, "set_scores")
    fill: Any = partialmethod(_combined, sum, "fill")
    held_out_loss: Any = partialmethod(_combined, sum, "held_out_loss")
    refresh: Any = partialmethod(_combined, partial(np.max, axis=0), "refresh")
    sizes_of_shares: Any = partialmethod(_combined, sum, "sizes_of_shares")

    def hold_out(self, rows) -> int:
        self.n_held_out = self._combined(sum, "hold_out", rows)
        return self.n_held_out

    def training_weights(self) -> Any:
        weights = Node(self._crew, invoke, self._node, "training_weights")
        return RemoteRows(self._crew, weights, np.empty(0), self.n_rows)

    def held_out_scores(self) -> tuple[NDArray[np.float32], NDArray]:
        scores, y = zip(*self._combined(list, "held_out_scores"), strict=True)
        return np.concatenate(scores), np.concatenate(y)

    def samples(self, drafts, chances) -> list[GrowthSample]:
        by_store = self._crew.call(store.samples_of, self._node, drafts, chances)
        by_sample = (zip(*parts, strict=True) for parts in zip(*by_store, strict=True))
        loops = self._loops.alone
        return [
            GrowthSample(np.concatenate(codes, axis=1), np.concatenate(residuals), loops)
            for codes, residuals in by_sample
        ]


growing_rows.register(RemoteCodes, RemoteGrowingRows)


class RemoteMatrix(Rows):
    """The rows of X in all stores; combines the answers of the stores."""

    def __init__(self, crew: Crew, loops: Twins = TWINS) -> None:
        self.crew, self.loops = crew, loops
        # Take over the only references, so that the stores delete arrays that are not needed here.
        (self._rows, self._labels, self._weights), crew.loaded = crew.loaded, ()
        shapes = crew.call(getattr, self._rows, "shape")
        widths = {width for n_rows, width in shapes if n_rows}
        if len(widths) > 1:
            raise ValueError(f"Partitions of X have different numbers of columns: {widths}.")
        self.shape = (sum(n_rows for n_rows, _ in shapes), max(widths, default=0))

    def labelled(self) -> tuple[NDArray, RemoteRows, RemoteRows]:
        """Return the distinct targets, here, the index of each row's among them, and weights."""
        parts = [labels for labels in self.crew.call(store.distinct, self._labels) if len(labels)]
        classes = store.distinct(np.concatenate(parts)) if parts else np.empty(0)
        y = self._array(Node(self.crew, store.places, classes, self._labels), np.intp)
        weights = self._array(self._weights, np.float64)
        self._labels = self._weights = None
        return classes, y, weights

    def collected(self) -> tuple[NDArray, NDArray, NDArray]:
        """Return X, targets and weights of all rows, which must be few."""
        all_rows = Node(self.crew, lambda rows: rows.take(np.arange(rows.shape[0])), self._rows)
        nodes = (all_rows, self._labels, self._weights)
        answers = [self.crew.call(store.identity, node) for node in nodes]
        # Stores without rows are skipped: their arrays may have another type.
        parts = [[part for part in by_store if len(part)] for by_store in answers]
        X, y, weights = map(np.concatenate, parts)
        return X, y, weights

    def column_ranges(self) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        low, high, missing = zip(*self.crew.call(invoke, self._rows, "column_ranges"), strict=True)
        return reduce(np.fmin, low), reduce(np.fmax, high), reduce(np.logical_or, missing)

    def keys_apart(self, y: RemoteRows, weights: RemoteRows, seed: int) -> RemoteRows:
        keys = Node(self.crew, invoke, self._rows, "keys", y, seed)
        functions = store.divide_all, store.distinct_keys
        _, distinct, _ = self.crew.exchange("tell-apart", *functions, keys, weights)
        return self._array(distinct, np.uint64)

    def sample(self, y: RemoteRows | None, weights: RemoteRows, n_rows: int, seed: int):
        keys = Node(self.crew, invoke, self._rows, "keys", y, seed)
        candidates = self.crew.call(lambda part: np.unique(part)[:n_rows], keys)
        chosen = np.unique(np.concatenate(candidates))[:n_rows]
        integers, unit = to_fixed_point(weights[:, None])
        parts = self.crew.call(store.rows_of_keys, self._rows, keys, chosen, y, integers)
        X = np.empty((chosen.size, self.shape[1]), dtype=np.float32)
        y_of_sample = np.empty(chosen.size, np.intp)
        mass = np.zeros(chosen.size, dtype=np.int64)
        for place, rows, labels, mass_of_store in parts:
            if place.size:
                X[place], y_of_sample[place] = rows, labels
            mass += mass_of_store
        n_different = 0
        if y is not None:  # only the choice of maps needs it, which passes y
            functions = store.divide_all, store.first_of_equal
            n_different = self.crew.exchange("count", *functions, keys, weights)[-1]
        return Sample(X, y_of_sample, mass * unit, n_different)

    def bin(self, features, edges) -> RemoteCodes:
        return self._codes(edges.cell_offsets, "bin", features, edges)

    def bin_ferns(self, ferns) -> RemoteCodes:
        return self._codes(ferns.cell_offsets, "bin_ferns", ferns)

    def _codes(self, offsets: NDArray[np.int64], method: str, *arguments) -> RemoteCodes:
        node = Node(self.crew, invoke, self._rows, method, *arguments)
        self.crew.work(method.replace("_", "-"), node)
        return RemoteCodes(self.crew, node, self.shape[0], offsets, self.loops)

    def _array(self, node: Node, dtype) -> RemoteRows:
        return RemoteRows(self.crew, node, np.empty(0, dtype), self.shape[0])

    def release(self) -> None:
        self._rows = None


@dataclass
class RemoteLabelledRows(LabelledRows):
    """Labelled rows on the workers: the same operations, and the same bits."""

    y: Any
    weights: Any
    # Sums of the random numbers of the cells of each row, from which its hashes are computed.
    sums: RemoteRows | None = None

    @property
    def crew(self) -> Crew:
        return self.y.crew

    @cached_property
    def merged(self) -> LabelledRows:
        """The rows with equal ones merged; few rows are collected here."""
        sums: Any = self.operator.gather(cell_numbers(self.operator, self.seed))
        integers, unit = to_fixed_point(self.weights[:, None])
        functions = store.divide_merged, store.merge_equal
        arrays = (sums, self.seed, self.y, integers)
        rows, mass, n_rows = self.crew.exchange("merge-rows", *functions, *arrays)
        merged = replace(self, sums=sums)
        if n_rows < self.n_rows:
            merged = merged.take(RowSet(rows, n_rows))
        merged.weights = RemoteRows(self.crew, mass, np.empty(0, np.int64), n_rows) * unit[0]
        return merged if n_rows > limits.FEW_ROWS_GRAM else merged.some_here(n_rows)

    def take(self, rows: Any) -> Any:
        """Return some of the rows, here if their order is given, else on the workers."""
        taken: Any = super().take(rows)
        if rows.order is None:
            return replace(taken, sums=None if self.sums is None else self.sums[rows])
        values = {field.name: getattr(taken, field.name) for field in fields(LabelledRows)}
        return LabelledRows(**values)

    def folds(self, n_folds: int) -> Any:
        """Divide rows with numbers into folds of equal weight by a hash of their codes."""
        seed = self.seed + 1
        sums: Any = self.operator.gather(cell_numbers(self.operator, seed))
        hashes = sums.apply(hashes_of, sums, seed)[:, 0]
        integers = to_fixed_point(self.weights[:, None])[0][:, 0]
        total = int(integers[:, None].sum(axis=0)[0])
        folds = self.y * 0
        for fold in range(1, n_folds):
            # Rows of this fold and later ones have at least this weight before them.
            wanted = -(-fold * total // n_folds)
            folds = folds + (hashes >= _first_above(hashes, integers, wanted))
        return folds

    def first(self, n_rows: int) -> Any:
        """Return the first rows in the order of learning, which their hashes give."""
        answers = self.crew.call(store.first_hashes, self.sums, self.seed, self.y, n_rows)
        return self._row_set(answers, store.learning_order(*_joined(answers))[:n_rows])

    def some_here(self, n_rows: int) -> LabelledRows:
        """Return at most `n_rows` of the first rows, here."""
        return self.take(self.first(min(n_rows, self.n_rows)))

    def balanced(self, n_rows: int) -> LabelledRows:
        """Return at most `n_rows` rows, here, with classes as balanced as possible."""
        if self.n_rows <= n_rows:
            return self.some_here(n_rows)
        has_classes = self.numbers is None
        kinds = self.y * has_classes
        is_of_kind = kinds[:, None] == np.arange(self.n_classes if has_classes else 1)
        quota = equal_quota(is_of_kind.astype(np.int64).sum(axis=0), n_rows)
        answers = self.crew.call(store.smallest_hashes, self.sums, self.seed, self.y, kinds, quota)
        hashes, labels = _joined(answers)
        chosen = smallest_of_kinds(hashes[:, 0], labels * has_classes, quota)
        return self.take(self._row_set(answers, chosen))

    def _row_set(self, answers: list, chosen: NDArray[np.intp]) -> RowSet:
        """Return some of the rows in the answers of the stores, to be collected in learning order.

        Each store answers with (hashes, y, rows); `chosen` are indices into all of these.
        """
        chosen = np.sort(chosen)
        starts = np.cumsum([0] + [rows.size for _, _, rows in answers])
        places = np.split(chosen, np.searchsorted(chosen, starts[1:-1]))
        by_store = [
            rows[place - start]
            for (_, _, rows), place, start in zip(answers, places, starts[:-1], strict=True)
        ]
        node = self.crew.keep_each(by_store)
        hashes, labels = _joined(answers)
        return RowSet(node, chosen.size, store.learning_order(hashes[chosen], labels[chosen]))


def _joined(answers: list) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    hashes, labels, _ = zip(*answers, strict=True)
    return np.concatenate(hashes), np.concatenate(labels)


def _first_above(hashes: RemoteRows, integers: RemoteRows, wanted: int) -> np.uint64:
    """Return the smallest bound below which hashes have the wanted weight, found byte by byte."""
    low = 0
    for shift in range(56, -8, -8):
        bounds = low + (np.arange(256, dtype=np.uint64) << np.uint64(shift))
        below = hashes.totals_below(integers, bounds)
        # The result lies above the last bound with less weight, and at most at the next bound.
        low = int(bounds[max(int(np.searchsorted(below, wanted)) - 1, 0)])
    return np.uint64(low + 1)

"""The rows of X: statistics for drawing maps, and the making of their codes.

Rows of this file are in memory, or read block by block, and their codes are in memory.
`files`, `device` and `mbkl.dask` have rows whose codes are elsewhere, with the same methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite

from mbkl.engine.arrays import group_totals, is_fresh, to_fixed_point
from mbkl.engine.codes import Codes, DenseCodes, SparseCodes
from mbkl.engine.keys import GOLDEN, scramble
from mbkl.engine.twins import TWINS, Twins, as_float32

# Values read at a time: a few megabytes.
_VALUES_AT_ONCE = 1_000_000
_SPARSE_VALUES_AT_ONCE = 4_000_000
_CODES_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Sample:
    """Distinct rows of X, each with the total weight of all rows equal to it."""

    X: NDArray[np.floating]  # (n_rows, n_features)
    y: NDArray[np.intp]  # (n_rows,)
    weights: NDArray[np.float64]  # (n_rows,)
    n_different: int = 0  # number of distinct rows that these were drawn from


def copies_of(keys: Sequence[Hashable], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimate how many samples each of the merged rows stands for.

    A weight may count equal samples, or say how much a single one matters. Rows that differ in
    their class alone have the same key and show that samples repeat: their weights count samples
    if they are whole numbers, and otherwise the lightest of them is one sample. All other rows
    count as one.

    >>> copies_of(["a", "a", "b"], np.array([4.0, 6.0, 9.0])).tolist()
    [2.0, 3.0, 1.0]
    """
    counts = Counter(keys)
    is_shared = np.array([counts[key] > 1 for key in keys], dtype=bool)
    shared = weights[is_shared]
    are_whole = shared.size > 0 and shared.max() < 2**53 and (shared == np.rint(shared)).all()
    unit = np.gcd.reduce(shared.astype(np.int64)) if are_whole else shared.min(initial=np.inf)
    return np.where(is_shared, weights / unit, 1.0)


class Rows:
    """Rows that are read from the first to the last, block by block."""

    shape: tuple[int, int]
    dtype: np.dtype
    loops: Twins  # the loops that compute their codes
    in_files = False  # whether the rows may be larger than memory
    reads_blocks = True  # whether the rows can be read block by block

    @property
    def bytes_to_copy(self) -> int:
        """Bytes that a copy of the rows takes in memory; none if they are in memory already."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        """Yield all rows in order, `step` at a time, as a slice and their values."""
        raise NotImplementedError

    def check_finite(self) -> None:
        """Raise ValueError for infinities; NaN are missing values. Files are checked when read."""

    def in_memory(self) -> MatrixRows:
        """Return the same rows as an array."""
        return ArrayRows(self.take(np.arange(self.shape[0])))

    def some(self, rows: NDArray[np.intp]) -> Rows:
        """Return some of the rows, given by increasing numbers."""
        return SomeRows(self, rows)

    def take(self, rows: NDArray[np.intp]) -> NDArray:
        """Return some rows as an array, in the given order.

        >>> SomeRows(ArrayRows(np.arange(4)[:, None]), np.arange(4)).take(np.array([3, 1])).ravel()
        array([3, 1])
        """
        order = np.argsort(rows, kind="stable")
        taken = np.empty((rows.size, self.shape[1]), dtype=self.dtype)
        for places, block in SomeRows(self, rows[order]).blocks(rows_at_once(self.shape[1])):
            taken[order[places]] = block
        return taken

    def column_ranges(self) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        """Return the smallest and largest value of each column, and which columns have NaN."""
        blocks = self.blocks(rows_at_once(self.shape[1]))
        return ranges_of_blocks(block for _, block in blocks)

    def keys(self, y, seed: int) -> NDArray[np.uint64]:
        """Return a random number for each row that depends on its values and class alone."""
        keys, factors = _keys_of_labels(self.shape, y, seed)
        for rows, block in self.blocks(rows_at_once(self.shape[1])):
            keys[rows] += _bits(block) @ factors
        return scramble(keys)

    def keys_apart(self, y, weights, seed: int) -> Any:
        """Return keys that differ even for equal rows; see `told_apart`."""
        return told_apart(self.keys(y, seed), weights)

    def sample(self, y, weights, n_rows: int, seed: int) -> Sample:
        """Draw up to `n_rows` rows by a hash of their values, equal ones of one class merged.

        Neither the order of the rows nor the format of X has any influence, and a row of weight
        two is the same as two rows. None for y means that the class does not matter.

        >>> rows, y = ArrayRows(np.array([[1.0], [1.0], [2.0]])), np.array([0, 0, 1])
        >>> sorted(rows.sample(y, np.ones(3), 10, seed=0).weights.tolist())
        [1.0, 2.0]
        """
        keys = self.keys(y, seed)
        distinct, first, place = np.unique(keys, return_index=True, return_inverse=True)
        integers, unit = to_fixed_point(weights[:, None])
        mass = group_totals(integers[:, 0], place, distinct.size)
        rows = first[:n_rows]
        labels = np.zeros(rows.size, dtype=np.intp) if y is None else y[rows]
        return Sample(to_float32(self.take(rows)), labels, mass[:n_rows] * unit, distinct.size)

    def values(self, weights, n_rows: int, seed: int) -> tuple[Any, NDArray[np.float64]]:
        """Return up to about `n_rows` rows, and their weights, to estimate distributions from."""
        sample = self.sample(None, weights, n_rows, seed)
        return sample.X, sample.weights

    def bin(self, features: NDArray[np.intp], edges: Any) -> Codes:
        """Return the codes of some columns: how many thresholds are below a value, none for NaN."""
        raise NotImplementedError

    def bin_ferns(self, ferns: Any) -> Codes:
        """Return the cell of each fern that each row falls in."""
        raise NotImplementedError

    def block(self, rows: slice) -> Rows:
        """Return some rows next to each other."""
        raise NotImplementedError

    def score(self, features: NDArray[np.intp], edges: Any, tables: NDArray) -> NDArray[np.float64]:
        """Return for each row the sum of the table entries of its cells, see `bin`."""
        return self._scored(lambda rows: rows.bin(features, edges), features.size, tables)

    def score_ferns(self, ferns: Any, tables: NDArray) -> NDArray[np.float64]:
        """Return for each row the sum of the table entries of its cells, see `bin_ferns`."""
        return self._scored(lambda rows: rows.bin_ferns(ferns), ferns.n_maps, tables)

    def _scored(self, code: Callable[[Rows], Codes], n_groups: int, tables: NDArray) -> NDArray:
        scores = np.empty((self.shape[0], tables.shape[1]))
        for block in steps(self.shape[0], _CODES_AT_ONCE // max(n_groups, 1)):
            scores[block] = code(self.block(block)).gather(tables)
        return scores

    def release(self) -> None:
        """Free the memory of the rows, once only their codes are needed."""


@dataclass(frozen=True)
class MatrixRows(Rows):
    """The rows of a matrix in memory."""

    X: Any  # (n_rows, n_features)
    loops: Twins = TWINS

    bytes_to_copy = 0

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.X.shape

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return self.X.dtype

    def block(self, rows: slice) -> Self:
        return replace(self, X=self.X[rows])

    def with_columns(self, X: NDArray) -> ArrayRows:
        """Return rows with other columns, computed with the same loops."""
        return ArrayRows(X, self.loops)

    def in_memory(self) -> Self:
        return self

    def check_finite(self) -> None:
        assert_all_finite(self.X, allow_nan=True, input_name="X")

    def some(self, rows: NDArray[np.intp]) -> Self:
        return replace(self, X=self.X[rows])


class ArrayRows(MatrixRows):
    """The rows of an array in memory."""

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        for rows in steps(self.X.shape[0], step):
            yield rows, self.X[rows]

    def take(self, rows: NDArray[np.intp]) -> NDArray:
        return self.X[rows]

    def column_ranges(self) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        return ranges_of_blocks([self.X])

    def bin(self, features, edges) -> DenseCodes:
        values = self.loops.bin(self.X, features, edges)
        return DenseCodes(values, edges.cell_offsets, self.loops)

    def bin_ferns(self, ferns) -> DenseCodes:
        return DenseCodes(self.loops.bin_ferns(self.X, ferns), ferns.cell_offsets, self.loops)


class SparseRows(MatrixRows):
    """The rows of a sparse matrix, CSR or CSC, which is never made dense as a whole."""

    reads_blocks = False

    def take(self, rows: NDArray[np.intp]) -> NDArray:
        return self.X[rows].toarray()

    def column_ranges(self) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        X = without_duplicates(self.X)
        low, high = X.nanmin(axis=0).toarray().ravel(), X.nanmax(axis=0).toarray().ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            missing = np.isnan(np.asarray(X.sum(axis=0)).ravel())
        return low, high, missing

    def keys(self, y, seed: int) -> NDArray[np.uint64]:
        keys, factors = _keys_of_labels(self.shape, y, seed)
        rows = without_duplicates(sparse.csr_array(self.X))
        terms = _bits(rows.data) * factors[rows.indices]
        running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms)])
        return scramble(keys + running[rows.indptr[1:]] - running[rows.indptr[:-1]])

    def values(self, weights, n_rows: int, seed: int) -> tuple[Any, NDArray[np.float64]]:
        return self.X, weights

    def bin(self, features, edges) -> Codes:
        columns = without_duplicates(sparse.csc_array(self.X))
        zeros = np.empty(features.size, dtype=np.int64)
        rows, cells = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for group, feature in enumerate(features):
            thresholds = edges.thresholds[edges.offsets[group] : edges.offsets[group + 1]]
            entries = slice(columns.indptr[feature], columns.indptr[feature + 1])
            data = as_float32(columns.data[entries])
            entry_codes = np.searchsorted(thresholds, data, side="left")
            entry_codes[np.isnan(data)] = 0
            zeros[group] = np.searchsorted(thresholds, 0.0, side="left")
            stored = entry_codes != zeros[group]
            rows.append(columns.indices[entries][stored])
            cells.append(edges.cell_offsets[group] + entry_codes[stored])
        stored_cells = np.concatenate(rows), np.concatenate(cells)
        codes = SparseCodes.of(*stored_cells, self.shape[0], zeros, edges.cell_offsets, self.loops)
        bytes_dense = features.size * self.shape[0] * edges.code_dtype.itemsize
        bytes_sparse = sum(map(len, rows)) * (4 + edges.code_dtype.itemsize)
        return codes if bytes_sparse < bytes_dense else codes.dense()

    def bin_ferns(self, ferns) -> DenseCodes:
        used, places = np.unique(ferns.features, return_inverse=True)
        sets = None if ferns.sets is None else ferns.sets.of_columns(used)
        narrow = replace(ferns, features=places, sets=sets)
        rows = sparse.csr_array(self.X)
        values = np.empty((ferns.n_maps, self.shape[0]), dtype=ferns.numbers.dtype)
        for block in steps(self.shape[0], _SPARSE_VALUES_AT_ONCE // max(used.size, 1)):
            dense = np.ascontiguousarray(rows[block][:, used].toarray())
            values[:, block] = self.loops.bin_ferns(dense, narrow)
        return DenseCodes(values, ferns.cell_offsets, self.loops)

    def score(self, features, edges, tables) -> NDArray[np.float64]:
        return self.bin(features, edges).gather(tables)  # sparse codes need no blocks


class SomeRows(Rows):
    """Some rows of another object, in increasing order, selected as blocks are read.

    >>> part = SomeRows(ArrayRows(np.arange(10).reshape(5, 2)), np.array([1, 4]))
    >>> [block.tolist() for _, block in part.blocks(5)]
    [[[2, 3], [8, 9]]]
    """

    def __init__(self, whole: Rows, rows: NDArray[np.intp]) -> None:
        self.whole, self._rows = whole, rows
        self.shape, self.dtype = (rows.size, whole.shape[1]), whole.dtype
        self.in_files, self.reads_blocks = whole.in_files, whole.reads_blocks

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        yield from blocks_of(self._pieces(step), step)

    def _pieces(self, step: int) -> Iterator[NDArray]:
        for all_rows, block in self.whole.blocks(step):
            first, last = np.searchsorted(self._rows, [all_rows.start, all_rows.stop])
            if first < last:
                yield block[self._rows[first:last] - all_rows.start]


class FloatRows(Rows):
    """An array of any numbers, whose blocks are converted to floating point as they are read.

    >>> [block.dtype for _, block in FloatRows(np.ones((3, 1), np.uint8)).blocks(3)]
    [dtype('float32')]
    """

    def __init__(self, X: NDArray) -> None:
        self._X, self.shape = X, X.shape
        self.dtype = np.dtype(np.float32 if np.can_cast(X.dtype, np.float32) else np.float64)

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        for rows in steps(self.shape[0], step):
            values = self._X[rows].astype(self.dtype)
            if np.isinf(values).any():
                raise ValueError("X has infinite values; remove or clip them.")
            yield rows, values


class BlockRows(Rows):
    """Rows read by another object that has `shape`, `dtype` and `blocks(step)`."""

    in_files = True

    def __init__(self, source) -> None:
        self._source, self.shape, self.dtype = source, source.shape, source.dtype

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        yield from self._source.blocks(step)


def as_rows(X) -> Rows:
    """Return the rows of an array, a sparse matrix or an object that reads blocks of rows."""
    if isinstance(X, Rows):
        return X
    if hasattr(X, "blocks"):
        return BlockRows(X)
    return SparseRows(X) if sparse.issparse(X) else ArrayRows(X)


def first_by_hash(X, y, n_rows: int, seed: int) -> NDArray[np.intp]:
    """Draw up to `n_rows` rows by a hash of their values; return their numbers in order."""
    if X.shape[0] <= n_rows:
        return np.arange(X.shape[0])
    keys = as_rows(X).keys(y, seed)
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    # Equal rows have equal keys: the number of the copy makes their hashes different.
    copy = np.arange(keys.size) - np.searchsorted(sorted_keys, sorted_keys, side="left")
    with np.errstate(over="ignore"):
        numbers = scramble(sorted_keys + copy.astype(np.uint64) * GOLDEN)
    return np.sort(order[np.argsort(numbers, kind="stable")[:n_rows]])


def told_apart(keys: NDArray[np.uint64], weights) -> NDArray[np.uint64]:
    """Return keys that differ even for equal rows, which are numbered in order of weight."""
    order = np.lexsort((weights, keys))
    copy = np.arange(keys.size)
    copy -= np.maximum.accumulate(np.where(is_fresh(keys[order]), copy, 0))
    with np.errstate(over="ignore"):
        moved = keys.copy()
        moved[order] += copy.astype(np.uint64) * GOLDEN
        return np.where(moved == keys, keys, scramble(moved))


def ranges_of_blocks(blocks: Iterable) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
    """Return the smallest and largest value of each column, and which columns have NaN."""
    low = high = np.full(1, np.nan)
    missing = np.zeros(1, dtype=bool)
    for block in blocks:
        low = np.fmin(low, np.fmin.reduce(block, axis=0))
        high = np.fmax(high, np.fmax.reduce(block, axis=0))
        missing = missing | np.isnan(np.add.reduce(block, axis=0, dtype=np.float64))
    return low, high, missing


def without_duplicates(X):
    """Return a sparse matrix without duplicate entries; the given matrix is not changed."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def blocks_of(pieces: Iterable[NDArray], step: int) -> Iterator[tuple[slice, NDArray]]:
    """Regroup pieces of any lengths into blocks of `step` rows.

    >>> pieces = [np.zeros((2, 1)), np.zeros((5, 1))]
    >>> [rows for rows, _ in blocks_of(pieces, 3)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 7, None)]
    """
    start, waiting, n_waiting = 0, [], 0
    for piece in pieces:
        waiting.append(piece)
        n_waiting += len(piece)
        while n_waiting >= step:
            joined = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
            yield slice(start, start + step), joined[:step]
            start, waiting, n_waiting = start + step, [joined[step:]], n_waiting - step
    if n_waiting:
        yield slice(start, start + n_waiting), np.concatenate(waiting)


def steps(length: int, step: int) -> Iterator[slice]:
    """Yield slices that cover a range.

    >>> list(steps(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, length, max(step, 1)):
        yield slice(start, min(start + max(step, 1), length))


def rows_at_once(n_features: int) -> int:
    """Return how many rows of a file to read at a time: a few megabytes."""
    return max(1, _VALUES_AT_ONCE // max(n_features, 1))


def key_factors(n_features: int, seed: int) -> NDArray[np.uint64]:
    """Return a random odd number for each column of X, and one for the class."""
    generator = np.random.Generator(np.random.Philox([seed, 1]))
    return generator.integers(2**64, size=n_features + 1, dtype=np.uint64) | np.uint64(1)


def _keys_of_labels(shape, y, seed: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return a hash of each row's class, and a factor for each column of X."""
    factors = key_factors(shape[1], seed)
    labels = np.zeros(shape[0], np.uint64) if y is None else y.astype(np.uint64)
    return scramble(labels * factors[-1]), factors[:-1]


def to_float32(values: NDArray) -> NDArray[np.float32]:
    """Round values to float32, as they are compared; those beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _bits(values: NDArray) -> NDArray[np.uint64]:
    """Return the bits of the values as float32; those of -0.0 and of NaN are made unique."""
    single = to_float32(values) + np.float32(0.0)
    single[np.isnan(single)] = np.float32(np.nan)
    return single.view(np.uint32).astype(np.uint64)

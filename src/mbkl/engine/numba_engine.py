"""The default engine for all but small data: Numba kernels on a thread pool."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import kernels
from mbkl.engine.bundles import BundledCodes
from mbkl.engine.codes import DenseCodes, SparseCodes
from mbkl.engine.numpy_engine import (
    AnyCodes,
    NumpyEngine,
    score_of_zero,
    take_sparse,
)

# Blocks shorter than this many codes cost less than handing them to a thread
# (up to a hundred microseconds, measured).
_SMALLEST_SHARE = 300_000
# Up to here the kernels of one column, called once for each, are faster (measured).
_FEW_COLUMNS = 4


class NumbaEngine(NumpyEngine):
    """The two hot operations and the moves between codes, compiled and threaded.

    Parameters
    ----------
    n_threads : int
        Threads that share the blocks of one operation. The result is the same
        for any number.
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads

    def gather(self, codes: AnyCodes, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        tables = np.ascontiguousarray(tables)
        n_columns = tables.shape[1]
        arguments: tuple
        if isinstance(codes, BundledCodes):
            bundles = codes.bundles
            expanded = np.empty((bundles.n_cells, n_columns))
            arguments = (codes.members, codes.offsets, bundles.offsets, tables, expanded)
            self._share(bundles.n_groups, expanded.size, kernels.expand_tables, *arguments)
            return self.gather(bundles, expanded)
        if 1 < n_columns <= _FEW_COLUMNS and isinstance(codes, DenseCodes):
            columns = [self.gather(codes, tables[:, [column]]) for column in range(n_columns)]
            return np.concatenate(columns, axis=1)
        if isinstance(codes, SparseCodes):
            scores = np.tile(score_of_zero(codes, tables), (codes.n_rows, 1))
            arguments = (codes.indptr, codes.rows, codes.values, codes.offsets, codes.zero_cells)
            kernel = kernels.gather_sparse
        else:
            scores = np.empty((codes.n_rows, n_columns))
            arguments = (codes.values, codes.offsets)
            kernel = kernels.gather_one if n_columns == 1 else kernels.gather_many
        self._share(codes.n_rows, codes.n_stored * n_columns, kernel, *arguments, tables, scores)
        return scores

    def histogram(self, codes: AnyCodes, residuals: NDArray[np.int64]) -> NDArray[np.int64]:
        residuals = np.ascontiguousarray(residuals)
        n_columns = residuals.shape[1]
        sums = np.empty((codes.n_cells, n_columns), dtype=np.int64)
        arguments: tuple
        if isinstance(codes, BundledCodes):
            bundles = codes.bundles
            bundled = self.histogram(bundles, residuals)
            arguments = (codes.members, codes.offsets, bundles.offsets, bundled, sums)
            self._share(bundles.n_groups, bundled.size, kernels.fold_sums, *arguments)
            return sums
        if 1 < n_columns <= _FEW_COLUMNS and isinstance(codes, DenseCodes):
            columns = [self.histogram(codes, residuals[:, [column]]) for column in range(n_columns)]
            return np.concatenate(columns, axis=1)
        if isinstance(codes, SparseCodes):
            arguments = (codes.indptr, codes.rows, codes.values, codes.offsets, codes.zero_cells)
            arguments += (residuals, residuals.sum(axis=0), sums)
            kernel = kernels.histogram_sparse
        else:
            arguments = (codes.values, codes.offsets, residuals, sums)
            kernel = kernels.histogram_one if n_columns == 1 else kernels.histogram_many
        self._share(codes.n_groups, codes.n_stored * n_columns, kernel, *arguments)
        return sums

    def take(self, codes, rows: NDArray[np.intp]):
        if isinstance(codes, BundledCodes):
            return replace(codes, bundles=self.take(codes.bundles, rows))
        if isinstance(codes, SparseCodes):
            return take_sparse(codes, rows)
        values = np.empty((codes.n_groups, len(rows)), dtype=codes.values.dtype)
        self._share(codes.n_groups, values.size, kernels.take_rows, codes.values, rows, values)
        return DenseCodes(values, codes.offsets)

    def agreement(
        self, codes: DenseCodes, others: DenseCodes, weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        shape = (codes.n_rows, others.n_rows)
        same = weights.size < 2**16 and bool((weights == weights[:1]).all())
        if same:
            counts = self._compare(kernels.count_agreement, codes.values, others.values, shape)
            return (weights[0] if weights.size else 0.0) * counts
        return self._compare(kernels.agreement, codes.values, others.values, shape, weights)

    def city_block(
        self, positions: NDArray[np.float64], others: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        shape = (positions.shape[1], others.shape[1])
        return self._compare(kernels.city_block, positions, others, shape)

    def _compare(self, kernel: Callable, left, right, shape, *arguments) -> NDArray[np.float64]:
        """Run a kernel that compares all rows of two sides."""
        symmetric = left is right
        result = np.empty(shape)
        work = left.size * shape[1]
        self._share(
            shape[0], work, kernel, left, right, *arguments, symmetric, result, falling=symmetric
        )
        return result

    def renumber(self, codes: DenseCodes, groups, numbers: NDArray, out: NDArray) -> None:
        arguments = (codes.values, groups, codes.offsets, numbers, out)
        self._share(groups.size, out.size, kernels.translate, *arguments)

    def bin_ferns(self, X, ferns, out: NDArray) -> None:
        raw_offsets = ferns.raw_offsets
        stumps = (ferns.features, ferns.thresholds, ferns.offsets, ferns.factors)
        arguments = (X, *stumps, raw_offsets, ferns.numbers, out)
        self._share(X.shape[0], X.shape[0] * ferns.features.size, kernels.bin_ferns, *arguments)

    def bin(self, X, features, edges, out: NDArray) -> None:
        arguments = _search(X, features, edges)
        self._share(X.shape[0], out.size, kernels.bin_dense, *arguments, out)

    def score(self, X, features, edges, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = np.empty((X.shape[0], tables.shape[1]))
        arguments = (*_search(X, features, edges), np.ascontiguousarray(tables), scores)
        n_codes = X.shape[0] * features.size
        self._share(X.shape[0], n_codes, kernels.score_dense, *arguments)
        return scores

    def _share(
        self, length: int, n_codes: int, kernel: Callable, *arguments, falling: bool = False
    ) -> None:
        """Run `kernel` over range(length), divided among the threads.

        Work that falls along the range, to nothing at its end, is divided accordingly.
        """
        n_shares = max(1, min(self.n_threads, length, n_codes // _SMALLEST_SHARE))
        if n_shares == 1:
            kernel(*arguments, 0, length)
            return
        bounds = [length * share // n_shares for share in range(n_shares + 1)]
        if falling:
            bounds = [round(length * (1.0 - (1.0 - part / length) ** 0.5)) for part in bounds]
        pool = _pool(self.n_threads)
        others = [
            pool.submit(kernel, *arguments, bounds[share], bounds[share + 1])
            for share in range(1, n_shares)
        ]
        kernel(*arguments, bounds[0], bounds[1])
        for other in others:
            other.result()


def _search(X, features, edges) -> tuple:
    """Return the arguments by which a kernel finds the cell of a value."""
    guide = edges.guide
    limits = (guide.low, guide.scale, guide.counts, guide.offsets)
    return (X, features, edges.thresholds, edges.offsets, *limits)


_pools: dict[int, ThreadPoolExecutor] = {}


def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return a pool shared by all engines of one process: threads start once."""
    if n_threads not in _pools:
        _pools[n_threads] = ThreadPoolExecutor(n_threads - 1, thread_name_prefix="mbkl")
    return _pools[n_threads]

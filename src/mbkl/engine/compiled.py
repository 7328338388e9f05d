"""The compiled loops on a thread pool, used for all but small data."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import growth_loops, loops
from mbkl.engine.keys import salted
from mbkl.engine.limits import SMALLEST_SHARE
from mbkl.engine.twins import Twins, has_one_weight

# `choose_stumps` pads several columns of residuals to a multiple of this, a vector register.
_LANES = 4


class Compiled(Twins):
    """The loops over codes in memory, and over rows of X, compiled and threaded.

    The result is the same for any number of threads.
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads

    def gather(self, values: NDArray, offsets, tables: NDArray) -> NDArray[np.float64]:
        n_rows, n_columns = values.shape[1], tables.shape[1]
        scores = np.empty((n_rows, n_columns))
        loop = loops.gather_one if n_columns == 1 else loops.gather_many
        arguments = (values, offsets, np.ascontiguousarray(tables), scores)
        self.share(n_rows, values.size * n_columns, loop, *arguments)
        return scores

    def histogram(self, values: NDArray, offsets, residuals: NDArray) -> NDArray[np.int64]:
        n_columns = residuals.shape[1]
        sums = np.empty((int(offsets[-1]), n_columns), dtype=np.int64)
        loop = loops.histogram_one if n_columns == 1 else loops.histogram_many
        arguments = (values, offsets, np.ascontiguousarray(residuals), sums)
        self.share(values.shape[0], values.size * n_columns, loop, *arguments)
        return sums

    def take(self, values: NDArray, rows: NDArray[np.intp]) -> NDArray:
        return self.take_some(values, np.arange(len(values)), rows)

    def renumber(self, values: NDArray, offsets, groups, numbers: NDArray) -> NDArray:
        renumbered = np.empty((groups.size, values.shape[1]), dtype=numbers.dtype)
        arguments = (values, groups, offsets, numbers, renumbered)
        self.share(groups.size, renumbered.size, loops.translate, *arguments)
        return renumbered

    def agreement(self, values, others, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        if has_one_weight(weights):
            counts = self._compare(loops.count_agreements, values, others)
            counts *= weights[0] if weights.size else 0.0
            return counts
        return self._compare(loops.agreement, values, others, weights)

    def city_block(
        self, positions: NDArray[np.float64], others: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return self._compare(loops.city_block, positions, others)

    def _compare(self, loop: Callable, left, right, *arguments) -> NDArray[np.float64]:
        """Run a loop that compares each row on the left with each on the right."""
        symmetric = left is right
        result = np.empty((left.shape[1], right.shape[1]))
        arguments = (left, right, *arguments, symmetric, result)
        work = left.size * right.shape[1]
        self.share(len(result), work, loop, *arguments, falling=symmetric)
        return result

    def bin(self, X, features, edges) -> NDArray:
        values = np.empty((features.size, X.shape[0]), dtype=edges.code_dtype)
        search = (features, edges.thresholds, edges.offsets)
        arguments = (X, search, values)
        self.share(X.shape[0], values.size, loops.bin_dense, *arguments)
        return values

    def bin_ferns(self, X, ferns: Any) -> NDArray:
        values = np.empty((ferns.n_maps, X.shape[0]), dtype=ferns.numbers.dtype)
        stumps = (ferns.features, ferns.thresholds, ferns.offsets, ferns.factors)
        arrays = (*stumps, ferns.raw_offsets, ferns.numbers, *_set_arrays(ferns))
        self.share(X.shape[0], X.shape[0] * ferns.features.size, loops.bin_ferns, X, arrays, values)
        return values

    def each(self, task: Callable[[int], Any], numbers: Sequence[int]) -> list:
        n_workers = min(self.n_threads, len(numbers)) - 1  # beside this thread
        if n_workers < 1:
            return super().each(task, numbers)
        results: list[Any] = [None] * len(numbers)
        waiting = iter(enumerate(numbers))

        def work() -> None:
            for position, number in waiting:
                results[position] = task(number)

        workers = [_pool(self.n_threads).submit(work) for _ in range(n_workers)]
        work()
        for worker in workers:
            worker.result()
        return results

    @property
    def alone(self) -> Compiled:
        return Compiled()

    def take_some(self, values: NDArray, groups, rows: NDArray[np.intp]) -> NDArray:
        taken = np.empty((len(groups), len(rows)), dtype=values.dtype)
        self.share(len(groups), taken.size, loops.take_some, values, groups, rows, taken)
        return taken

    def fern_cells(self, values, features, cuts, members, leading, cells) -> None:
        arguments = (values, features, cuts, members, leading, cells)
        self.share(cells.size, cells.size * len(features), growth_loops.fern_cells, *arguments)

    def histogram_packed(self, cells, packed, n_cells: int) -> NDArray[np.int64]:
        partial_sums: list[NDArray[np.int64]] = []

        def add_up(start: int, stop: int) -> None:
            sums = np.zeros((n_cells, packed.shape[1], 2), dtype=np.int64)
            growth_loops.histogram_packed(cells, packed, sums, start, stop)
            partial_sums.append(sums)

        self.share(cells.size, packed.size, add_up)
        return sum(partial_sums[1:], start=partial_sums[0])

    def choose_stumps(
        self, codes, is_category, n_codes, levels, is_ranked, residuals, ridge: float
    ) -> tuple[NDArray, ...]:
        shape, n_columns = levels.asked.shape, residuals.shape[1]
        # Columns of zeros fill up the lanes, for each number of which the loop is compiled anew.
        n_padding = -n_columns % _LANES if n_columns > 1 else 0
        residuals = np.pad(residuals, ((0, 0), (0, n_padding))) if n_padding else residuals
        lanes = (0,) * residuals.shape[1]
        category = np.where(is_category, np.cumsum(is_category) - 1, -1)
        features, cuts, n_above = np.zeros((3, shape[0]), dtype=np.int64)
        stumps = features, cuts, n_above, np.empty((shape[0], 256), np.uint8), np.empty(shape)
        inputs = (codes, category, n_codes, *levels, is_ranked, residuals, n_columns, ridge, lanes)
        growth_loops.choose_stumps(*inputs, *stumps)
        return stumps

    def draw_rows(self, keys, rows, chances, salt: int) -> tuple[NDArray, NDArray]:
        return growth_loops.draw_rows(keys, rows, chances, salted(salt))

    # These are not divided among threads: they are short, or the caller runs several at once.
    pack_residuals = staticmethod(growth_loops.pack_residuals)
    log_loss_residuals = staticmethod(growth_loops.log_loss_residuals)
    add_table = staticmethod(growth_loops.add_table)
    sizes_of_residuals = staticmethod(growth_loops.sizes_of_residuals)
    weigh_residuals = staticmethod(growth_loops.weigh_residuals)
    newton_steps = staticmethod(growth_loops.newton_steps)

    def share(
        self, length: int, n_codes: int, loop: Callable, *arguments, falling: bool = False
    ) -> None:
        """Run `loop` over range(length), divided among the threads.

        `falling` says that the work falls linearly to zero at the end of the range, as in a
        triangle of a matrix.
        """
        n_shares = max(1, min(self.n_threads, length, n_codes // SMALLEST_SHARE))
        if n_shares == 1:  # growth calls loops of a few microseconds thousands of times
            loop(*arguments, 0, length)
            return
        parts = [share / n_shares for share in range(n_shares + 1)]
        if falling:
            parts = [1.0 - (1.0 - part) ** 0.5 for part in parts]
        bounds = [round(length * part) for part in parts]
        self.each(lambda share: loop(*arguments, bounds[share], bounds[share + 1]), range(n_shares))


_pools: dict[int, ThreadPoolExecutor] = {}


def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return the thread pool of this process, whose threads start once."""
    if n_threads not in _pools:
        _pools[n_threads] = ThreadPoolExecutor(n_threads - 1, thread_name_prefix="mbkl")
    return _pools[n_threads]


def announce_if_cold() -> None:
    """Tell the user on stderr, in one line, that the first fit waits for the compiler."""
    folder = getattr(getattr(loops.gather_one, "_cache", None), "cache_path", None)
    if folder is None or not any(Path(folder).glob("loops.gather_one*.nbi")):
        print(
            "mbkl: compiling loops, once per machine; `mbkl warmup` does it ahead of time.",
            file=sys.stderr,
            flush=True,
        )


def _forget_pools() -> None:
    """Forget the thread pools in a forked child, which does not inherit their threads."""
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


def _set_arrays(ferns: Any) -> tuple[NDArray, NDArray, NDArray]:
    """Return the level sets of the stumps as arrays, empty where all stumps have thresholds."""
    if ferns.sets is None:
        return np.full(ferns.features.size, -1), np.zeros(0, bool), np.zeros(0, np.int64)
    return ferns.sets.starts, ferns.sets.members, ferns.sets.n_levels

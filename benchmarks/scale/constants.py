"""The constants of the cost model: the time of one unit of each operation on this machine."""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common import n_cores, seconds
from benchmarks.scale.cluster import local_cluster
from benchmarks.scale.counting import n_stored
from benchmarks.scale.dask_overhead import crew_of, curvature_on
from benchmarks.scale.problems import Shape, rows_of
from mbkl.engine.arrays import one_blas_thread
from mbkl.engine.codes import DenseCodes
from mbkl.engine.compiled import Compiled
from mbkl.engine.files import DiskArray
from mbkl.engine.rows import ArrayRows
from mbkl.learn.labelled_rows import merge_equal_rows
from mbkl.maps import Ferns, Stumps
from mbkl.solvers.gram_newton import factor_of
from mbkl.solvers.problem import LOSSES, Margins

# Cells of a feature of stumps, and of a fern.
STUMP_CELLS, FERN_CELLS, COLUMNS = 10, 128, 10


@dataclass(frozen=True)
class Sizes:
    """How much to measure."""

    n_rows: int = 200_000
    many_rows: int = 5_000_000
    n_groups: int = 200
    n_ferns: int = 100
    few_rows: int = 3_000
    matrix: int = 2_000
    file_bytes: int = 400_000_000
    tasks: int = 1_000
    transfer: int = 4_000_000
    repeats: int = 7


QUICK = Sizes(4_000, 8_000, 20, 10, 200, 100, 1_000_000, 20, 100_000, 2)


@dataclass
class Constants:
    """Seconds of one unit of each operation, on one core.

    Parameters
    ----------
    unit : dict
        Seconds for each operation that `counting` counts.
    on_all_cores : dict
        The same with all cores, for operations that use threads.
    bandwidth : float
        Bytes that one core copies in a second, read and written.
    cold_read : float
        Seconds to read a byte that is not in the page cache.
    large_row_state : float
        Seconds for a number of row arrays that exceed the caches.
    message : float
        Additional seconds of a call to all workers for each further worker.
    """

    unit: dict[str, float] = field(default_factory=dict)
    on_all_cores: dict[str, float] = field(default_factory=dict)
    bandwidth: float = np.nan
    cold_read: float = np.nan
    large_row_state: float = np.nan
    message: float = np.nan

    def round_trip(self, n_workers: int) -> float:
        """Return the seconds of a call to all workers, without any array."""
        return self.unit["round trips"] + (n_workers - 1) * self.message


def measure(sizes: Sizes) -> Constants:
    """Measure all constants."""
    costs = Constants()
    _measure_passes(costs, sizes)
    _measure_binning(costs, sizes)
    _measure_rows(costs, sizes)
    _measure_few_rows(costs, sizes)
    _measure_files(costs, sizes)
    _measure_dask(costs, sizes)
    return costs


def _median(work: Callable[[], object], sizes: Sizes) -> float:
    work()
    return statistics.median(seconds(work) for _ in range(sizes.repeats))


def _codes(n_cells: int, sizes: Sizes) -> DenseCodes:
    generator = np.random.default_rng(0)
    values = generator.integers(n_cells, size=(sizes.n_groups, sizes.n_rows), dtype=np.uint8)
    return DenseCodes(values, n_cells * np.arange(sizes.n_groups + 1), Compiled(1))


def _measure_passes(costs: Constants, sizes: Sizes) -> None:
    generator = np.random.default_rng(0)
    few = replace(sizes, n_groups=max(sizes.n_groups // COLUMNS, 1))
    for kind, n_cells, n_columns, sizes_of_kind in (
        ("one column", FERN_CELLS, 1, sizes),
        ("many columns", STUMP_CELLS, COLUMNS, few),
    ):
        plain = _codes(n_cells, sizes_of_kind)
        tables = generator.normal(size=(plain.n_cells, n_columns))
        residuals = generator.integers(-1000, 1000, size=(sizes_of_kind.n_rows, n_columns))
        for n_threads, target in ((1, costs.unit), (n_cores(), costs.on_all_cores)):
            threaded = replace(plain, loops=Compiled(n_threads))
            work = n_stored(threaded) * n_columns
            for name, argument in (("gather", tables), ("histogram", residuals)):
                taken = _median(partial(getattr(threaded, name), argument), sizes_of_kind)
                target[f"{name}, {kind}"] = taken / work


def _measure_binning(costs: Constants, sizes: Sizes) -> None:
    X, _ = rows_of(Shape(sizes.n_rows // 2, 100))
    rows, weights, seed = ArrayRows(X, Compiled(1)), np.ones(len(X)), 0
    stumps, _ = Stumps().fit_codes(rows, weights, 6_400, seed)
    work = _median(lambda: rows.bin(stumps.features, stumps.edges), sizes)
    costs.unit["bin"] = work / (stumps.n_groups * len(X))
    ferns, _ = Ferns().fit_codes(rows, weights, sizes.n_ferns, seed)
    work = _median(lambda: rows.bin_ferns(ferns), sizes)
    costs.unit["bin ferns"] = work / (ferns.features.size * len(X))


def _row_state(n_rows: int, sizes: Sizes) -> float:
    """Return the seconds for a number of each row: its loss, rounding and sum."""
    generator = np.random.default_rng(0)
    labels = np.where(generator.random((n_rows, 1)) < 0.5, 1, -1).astype(np.int8)
    margins = Margins(labels, np.ones((n_rows, 1)), LOSSES["squared_hinge"])
    scores = generator.normal(size=(n_rows, 1))
    return _median(lambda: margins.value(scores), sizes) / n_rows


def _measure_rows(costs: Constants, sizes: Sizes) -> None:
    generator, n_rows = np.random.default_rng(0), sizes.n_rows
    costs.unit["row state"] = _row_state(n_rows, sizes)
    costs.large_row_state = _row_state(sizes.many_rows, replace(sizes, repeats=3))
    hashes = generator.integers(2**63, size=(n_rows, 2)).astype(np.uint64)
    y, integers = generator.integers(2, size=n_rows), np.ones(n_rows, dtype=np.int64)

    def order() -> None:
        np.unique(y, return_inverse=True)
        merge_equal_rows(hashes, y, integers)

    costs.unit["order"] = _median(order, sizes) / n_rows
    codes, rows = _codes(STUMP_CELLS, sizes), generator.permutation(n_rows)
    costs.unit["take"] = _median(lambda: codes.take(rows), sizes) / n_stored(codes)
    source = np.ones(sizes.file_bytes // 8)
    target = np.empty_like(source)
    costs.bandwidth = 2 * source.nbytes / _median(lambda: np.copyto(target, source), sizes)


def _measure_few_rows(costs: Constants, sizes: Sizes) -> None:
    few = replace(sizes, n_rows=sizes.few_rows)
    values, loops = _codes(FERN_CELLS, few).values, Compiled(1)
    weights, pairs = np.ones(len(values)), 0.5 * values.size * few.n_rows
    work = _median(lambda: loops.agreement(values, values, weights), few)
    costs.unit["agreement"] = work / pairs
    positions = values.astype(np.float64)
    work = _median(lambda: loops.city_block(positions, positions), few)
    costs.unit["city block"] = work / pairs
    gram, curvature = np.eye(sizes.matrix), np.ones(sizes.matrix)
    rows, mean = np.arange(sizes.matrix), np.zeros(sizes.matrix)

    def centre() -> None:
        _ = gram[np.ix_(rows, rows)] - mean - mean[:, None] + 0.0

    costs.unit["centre"] = _median(centre, sizes) / gram.size
    with one_blas_thread():
        work = _median(lambda: factor_of(gram.copy(), curvature), sizes)
    costs.unit["factor"] = work / (sizes.matrix**3 / 3)


def _measure_files(costs: Constants, sizes: Sizes) -> None:
    n_rows = sizes.file_bytes // 100
    block = np.zeros((100, 40_000), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        array = DiskArray(Path(folder), (100, n_rows), np.dtype(np.uint8), 40_000)

        def write() -> None:
            for rows in array.block_slices():
                array.write(rows, block[:, : rows.stop - rows.start])

        def read() -> None:
            for _ in array.blocks():
                pass

        costs.unit["write"] = seconds(write) / sizes.file_bytes
        costs.unit["read"] = _median(read, sizes) / sizes.file_bytes
        if hasattr(os, "posix_fadvise"):
            file = array._file.fileno()
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            costs.cold_read = seconds(read) / sizes.file_bytes


def _measure_dask(costs: Constants, sizes: Sizes) -> None:
    """Time calls to one worker and to four."""
    calls = {}
    for n_workers in (1, 4):
        with local_cluster(n_workers) as client:
            crew = crew_of(client, n_workers)
            calls[n_workers] = _call(crew, sizes)
            if n_workers == 1:
                costs.unit["byte sent"] = _byte_sent(crew, sizes)
                costs.unit["tasks"] = _task(client, sizes)
            crew.close()
    costs.unit["round trips"] = calls[1]
    costs.message = max(calls[4] - calls[1], 0.0) / 3


def _call(crew, sizes: Sizes) -> float:
    """Return the seconds of a call in which the workers compute something for few rows."""
    few = curvature_on(crew)
    margins = Margins(few, few, LOSSES["squared_hinge"])
    often = replace(sizes, repeats=5 * sizes.repeats)
    # The loss of all rows takes two calls: the maximum, for rounding, and the sum.
    return _median(lambda: margins.value(few), often) / 2


def _byte_sent(crew, sizes: Sizes) -> float:
    from mbkl.dask.store import nothing

    small, large = np.zeros(1), np.zeros(sizes.transfer // 8)
    times = [_median(partial(crew.call, nothing, each), sizes) for each in (small, large)]
    return max(times[1] - times[0], 0.0) / large.nbytes


def _task(client, sizes: Sizes) -> float:
    rounds = itertools.count()

    def work() -> None:
        # New numbers each time: Dask does not repeat a computation that it knows.
        first = next(rounds) * sizes.tasks
        client.gather(client.map(abs, range(first, first + sizes.tasks)))

    return _median(work, sizes) / sizes.tasks

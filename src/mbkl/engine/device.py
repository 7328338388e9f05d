"""Codes on a GPU, and the two hot operations in Torch.

With few columns, table entries are looked up and residuals scattered. With many, one pass is
matrix products: blocks of the indicators of all cells are formed on the fly and multiplied by the
tensor cores with values of eight-bit integers, whose sums are exact. Each value is the sum of two
such integers in units of its column: as fast as one bfloat16 product, and more precise. A single
integer is too coarse for the small entries of Newton directions.
"""

from __future__ import annotations

import gc
import importlib.util
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import limits, torch_loops
from mbkl.engine.arrays import group_sums, to_fixed_point, to_host
from mbkl.engine.codes import Codes, DenseCodes, code_dtype
from mbkl.engine.rows import ArrayRows, Rows, Sample, key_factors, steps, to_float32
from mbkl.engine.torch_keys import FIRST_BIT, bits_of, scramble, starts_of_runs, told_apart
from mbkl.engine.torch_loops import TILE, PlacedFerns
from mbkl.engine.twins import TWINS, Twins
from mbkl.extras import require

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# The tensor cores run seven times slower on other widths (measured on an H200).
_WIDTH = 128
# Rows and cells of indicators formed at once: enough to keep a GPU busy, in a gigabyte of memory.
# Products that sum over the cells take this many times as many cells, and as fewer rows.
_BLOCK_ROWS, _BLOCK_CELLS, _MORE_CELLS = 131_072, 8_192, 4
_SMALLEST_BLOCK = 1_024
# Eight-bit integers that a value is the sum of, and the largest of each.
_PIECES, _MOST_OF_A_PIECE = 2, 127
# Look-ups made at once, and bytes that each needs with its intermediate results.
_BLOCK_CODES, _BYTES_OF_A_VALUE = 64_000_000, 32
# Rows that would take a larger share of the free memory are copied again for each pass.
_SHARE_OF_MEMORY = 0.3
# Most page-locked memory of a copy to or from the device, and threads that fill it; more threads
# are no faster.
_STAGED_BYTES, _STAGING_THREADS = 256_000_000, 8
# Copies on devices of the arrays of fitted models; see `Device.keep`.
_kept: dict[tuple[int, str], Any] = {}
_NO_MEMBERS = np.zeros(1, dtype=bool)
# Codes of rows that are scored at once.
_SCORED_CODES = 1_000_000_000


class Device:
    """A Torch device: copies arrays to and from it, and knows how much fits there."""

    def __init__(self, name) -> None:
        self.torch = require("torch", "gpu")
        self.device = self.torch.device(name)
        self.block_rows = _BLOCK_ROWS

    def place(self, array, dtype=None) -> Tensor:
        """Return an array as a tensor on the device."""
        if isinstance(array, np.ndarray):  # Torch takes no negative strides, nor read-only memory
            array = np.require(array, requirements=["C", "W"])
        return self.torch.as_tensor(array, dtype=dtype, device=self.device)

    def keep(self, array: NDArray, dtype=None) -> Tensor:
        """Return an array as a tensor on the device, cached as long as the array exists."""
        key = (id(array), str(self.device))
        if key not in _kept:
            _kept[key] = self.place(array, dtype)
            weakref.finalize(array, _kept.pop, key, None)
        return _kept[key]

    @property
    def can_record(self) -> bool:
        """Whether calls can be recorded as a CUDA graph and replayed."""
        return self.loops is not torch_loops

    def repeated(self, run: Callable[[], Any], room: Any) -> Callable[[], Any]:
        """Return a function that replays the calls of `run` as a CUDA graph from its second use on.

        `run` must not wait for the device, and must read and write the same tensors every time.
        Copy its result before anything else that was recorded in `room` is replayed: it overwrites
        the result.
        """
        if not self.can_record:
            return run
        recording: list[Any] = []

        def call() -> Any:
            if not recording:  # the first call compiles loops, which a recording cannot contain
                recording.append(None)
                return run()
            if recording[0] is None:
                recording[0] = self.record(run, room)
            replay, result = recording[0]
            replay()
            return result

        return call

    def room_for_recordings(self) -> Any:
        """Return a memory pool for recordings that do not need each other's results.

        It is freed with the last of these recordings, and must not be used after that.
        """
        return self.torch.cuda.graph_pool_handle() if self.can_record else None

    def record(self, run: Callable[[], Any], room: Any) -> tuple[Callable[[], Any], Any]:
        """Record a function as a CUDA graph; return its replay and the tensors of its result.

        Recording computes nothing.
        """
        torch = self.torch
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(self.device)
        # The garbage collector must not free an earlier recording during this one.
        was_collecting = gc.isenabled()
        gc.disable()
        torch.cuda.synchronize(self.device)
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=room, capture_error_mode="thread_local")
            try:
                result = run()
            finally:
                graph.capture_end()
                if was_collecting:
                    gc.enable()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        return graph.replay, result

    @cached_property
    def loops(self) -> Any:
        """Loops over rows: fused ones where Triton is installed."""
        if self.device.type != "cuda" or importlib.util.find_spec("triton") is None:
            return torch_loops
        from mbkl.engine import triton_loops

        return triton_loops

    def row_dtype(self, n_columns: int) -> torch.dtype:
        """Return the data type of scores: single precision where they are matrix products."""
        return (
            self.torch.float32
            if n_columns >= limits.MANY_COLUMNS_ON_A_DEVICE
            else self.torch.float64
        )

    def empty_codes(self, n_groups: int, n_rows: int, dtype: np.dtype) -> Tensor:
        """Allocate codes of uint8, or of int32 as Torch lacks wider unsigned integers."""
        kind = self.torch.uint8 if dtype == np.uint8 else self.torch.int32
        self.check_room(float(n_groups) * n_rows * kind.itemsize, "The codes of the rows")
        return self._lines(n_groups, n_rows, kind)

    def in_words(self, codes: Tensor) -> Tensor:
        """Return codes with aligned lines, so that several codes are read as one word."""
        if codes.stride(1) == 1 and codes.stride(0) % TILE == 0:
            return codes
        return self._lines(len(codes), codes.shape[1], codes.dtype).copy_(codes)

    def _lines(self, n_groups: int, n_rows: int, kind: torch.dtype) -> Tensor:
        shape = (n_groups, n_rows + -n_rows % TILE)
        return self.torch.empty(shape, dtype=kind, device=self.device)[:, :n_rows]

    def free_memory(self) -> float:
        """Return the free bytes of the device."""
        if self.device.type != "cuda":
            return np.inf
        cuda = self.torch.cuda
        # Memory that Torch has reserved and does not use is free too.
        reserved = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return float(cuda.mem_get_info(self.device)[0] + reserved)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Raise MemoryError if the device has fewer bytes left than these."""
        free = self.free_memory()
        if n_bytes > free:
            raise MemoryError(
                f"{what} take {n_bytes / 1e9:.3g} GB on the device, which has {free / 1e9:.3g} GB "
                "left. Use device='cpu', or fewer rows."
            )

    def at_once(self, most: int, bytes_of_one: int) -> int:
        """Return how many items to work on at once: `most`, or fewer if memory is short."""
        return max(int(min(most, _SHARE_OF_MEMORY * self.free_memory() / bytes_of_one)), 1)

    def upload(self, X: NDArray) -> Tensor:
        """Copy rows to the device through page-locked memory, which is faster (measured)."""
        torch = self.torch
        if not self._is_worth_staging(X):
            return self.place(np.ascontiguousarray(X))
        dtype = torch.from_numpy(X[:1].copy()).dtype
        tensor = torch.empty(X.shape, dtype=dtype, device=self.device)
        with torch.cuda.device(self.device), ThreadPoolExecutor(_STAGING_THREADS) as pool:
            for rows, buffer, event in self._staged(tensor):
                event.synchronize()
                _copy(pool, buffer.numpy(), X[rows])
                tensor[rows].copy_(buffer, non_blocking=True)
                event.record()
            torch.cuda.synchronize()
        return tensor

    def download(self, tensor: Tensor, target: NDArray) -> None:
        """Copy rows from the device through page-locked memory, in two buffers that take turns."""
        if not self._is_worth_staging(target):
            self.torch.from_numpy(target).copy_(tensor)
            return
        with self.torch.cuda.device(self.device), ThreadPoolExecutor(_STAGING_THREADS) as pool:
            pending: list[Any] = []
            for rows, buffer, event in self._staged(tensor):
                buffer.copy_(tensor[rows], non_blocking=True)
                event.record()
                pending.append((rows, buffer, event))
                if len(pending) == 2:
                    _finish_copy(pool, target, *pending.pop(0))
            for each in pending:
                _finish_copy(pool, target, *each)

    def fetch(self, array: Any) -> NDArray:
        """Return a NumPy array; matrices are copied by `download`, the faster way."""
        if not (isinstance(array, self.torch.Tensor) and array.dim() == 2):
            return to_host(array)
        target = np.empty(array.shape, dtype=to_host(array[:0]).dtype)
        self.download(array, target)
        return target

    def _is_worth_staging(self, array: NDArray) -> bool:
        return self.device.type == "cuda" and array.nbytes >= limits.BYTES_WORTH_STAGING

    def _staged(self, tensor: Tensor) -> Iterator[tuple[slice, Tensor, Any]]:
        """Yield blocks of rows, each with one of two page-locked buffers and its event."""
        torch = self.torch
        # Allocating page-locked memory is slow: take an eighth of the rows at most.
        n_bytes = min(_STAGED_BYTES, tensor.nbytes // 8)
        step = max(n_bytes // (tensor.itemsize * tensor.shape[1]), 1)
        shape = (step, tensor.shape[1])
        buffers = [torch.empty(shape, dtype=tensor.dtype, pin_memory=True) for _ in "ab"]
        events = [torch.cuda.Event() for _ in buffers]
        for number, rows in enumerate(steps(len(tensor), step)):
            yield rows, buffers[number % 2][: rows.stop - rows.start], events[number % 2]


def _copy(pool: ThreadPoolExecutor, target: NDArray, source: NDArray) -> None:
    """Copy rows, divided among the threads of the pool."""
    parts = steps(len(source), -(-len(source) // _STAGING_THREADS))
    list(pool.map(lambda rows: np.copyto(target[rows], source[rows]), parts))


def _finish_copy(
    pool: ThreadPoolExecutor, target: NDArray, rows: slice, buffer: Tensor, event
) -> None:
    """Wait for a block from the device, and copy it from its buffer to the target."""
    event.synchronize()
    _copy(pool, target[rows], buffer.numpy())


@dataclass(frozen=True)
class DeviceCodes(Codes):
    """Codes on a device; tables, residuals and scores are tensors there."""

    values: Tensor  # (n_groups, n_rows)
    offsets: NDArray[np.int64]  # (n_groups + 1,)
    device: Device
    loops: Twins = field(default=TWINS, repr=False)  # for codes collected in memory

    many_at_once = True

    @property
    def n_rows(self) -> int:
        return self.values.shape[1]

    def place(self, array, dtype=None) -> Tensor:
        return self.device.place(array, dtype)

    def fetch(self, array: Any) -> NDArray:
        return self.device.fetch(array)

    def row_dtype(self, n_columns: int) -> torch.dtype:
        return self.device.row_dtype(n_columns)

    def gather(self, tables: Tensor) -> Tensor:
        torch = self.device.torch
        n_columns = tables.shape[1]
        if n_columns >= limits.MANY_COLUMNS_ON_A_DEVICE:
            scores = tables.new_zeros((self.n_rows, n_columns), dtype=torch.float32)
            # When Step 2 starts, all tables are zero.
            return self._in_blocks(self._multiply, tables, scores) if tables.any() else scores
        scores = tables.new_zeros((self.n_rows, n_columns))
        self.device.loops.look_up(self.values, self.place(self.offsets[:-1]), tables, scores)
        return scores

    def histogram(self, residuals: Tensor) -> Tensor:
        n_columns = residuals.shape[1]
        if n_columns >= limits.MANY_COLUMNS_ON_A_DEVICE:
            # When Step 2 starts, all columns have the same curvatures: one product serves all.
            are_equal = bool((residuals == residuals[:, :1]).all())
            distinct = residuals[:, :1] if are_equal else residuals
            shape = (self.n_cells, distinct.shape[1])
            sums = distinct.new_zeros(shape, dtype=self.device.torch.float64)
            return self._in_blocks(self._multiply_transposed, distinct, sums).expand(-1, n_columns)
        if residuals.is_floating_point():  # running sums over all groups need the precision
            residuals = residuals.double()
        sums = residuals.new_zeros((self.n_cells, n_columns))
        for groups, rows in self._blocks(n_columns, self.n_groups):
            cells = self._cells(groups, rows)
            piece = residuals[rows].expand(cells.shape[0], -1, -1).reshape(-1, n_columns)
            sums.index_add_(0, cells.reshape(-1), piece)
        return sums

    def _cells(self, groups: slice, rows: slice) -> Tensor:
        """Return the cells of some rows in some groups."""
        first = self.place(self.offsets[:-1][groups])[:, None]
        return self.values[groups, rows].long() + first

    def _in_blocks(self, operation, values: Tensor, result: Tensor) -> Tensor:
        """Run an operation, halving the blocks of rows while memory does not suffice."""
        while True:
            try:
                operation(values, result)
                return result
            except self.device.torch.OutOfMemoryError:
                if self.device.block_rows <= _SMALLEST_BLOCK:
                    raise
                self.device.block_rows //= 2
                self.device.torch.cuda.empty_cache()

    def _blocks(self, n_columns: int, n_groups: int):
        """Yield slices of groups and rows that are small enough for one look-up."""
        n_rows = min(self.n_rows, max(_BLOCK_CODES // n_columns, 1))
        for groups in steps(n_groups, max(_BLOCK_CODES // (n_rows * n_columns), 1)):
            for rows in steps(self.n_rows, n_rows):
                yield groups, rows

    def _multiply(self, tables: Tensor, scores: Tensor) -> None:
        """OUT scores: indicators times tables."""
        first = self.place(self.offsets[:-1])
        groups, numbers, cells = self._cells_but_first
        base = tables[first].sum(dim=0)
        pieces = self._pieces(tables[cells] - tables[first][groups])
        for rows in steps(self.n_rows, max(self.device.block_rows // _MORE_CELLS, 1)):
            totals: list[Any] = [0] * len(pieces)
            codes = self.device.in_words(self.values[:, rows])
            for part in steps(cells.numel(), _BLOCK_CELLS * _MORE_CELLS):
                inside = self.device.loops.indicators(codes, groups[part], numbers[part], True)
                for number, (piece, _) in enumerate(pieces):
                    totals[number] = totals[number] + self._product(inside, piece[:, part.start :])
            scores[rows] = base
            for total, (_, unit) in zip(totals, pieces, strict=True):
                scores[rows] += (total * unit)[: len(scores[rows]), : tables.shape[1]]

    def _multiply_transposed(self, residuals: Tensor, sums: Tensor) -> None:
        """OUT sums: transposed indicators times residuals."""
        n_columns = residuals.shape[1]
        groups, numbers, cells = self._cells_but_first
        sums.zero_()
        for rows in steps(self.n_rows, self.device.block_rows):
            pieces = self._pieces(residuals[rows])
            codes = self.device.in_words(self.values[:, rows])
            for part in steps(cells.numel(), _BLOCK_CELLS):
                inside = self.device.loops.indicators(codes, groups[part], numbers[part], False)
                for piece, unit in pieces:
                    product = self._product(inside, piece) * unit
                    sums[cells[part]] += product[: len(cells[part]), :n_columns]
        total = residuals.sum(dim=0, dtype=sums.dtype)
        sums[self.place(self.offsets[:-1])] = total - group_sums(sums, self.offsets)

    @property
    def _cells_but_first(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return group, code and number of all cells but the first of each group.

        A row is in one cell of each group: the sum in the first cell is the total less the others.
        """
        codes = self.cell_codes
        others = np.flatnonzero(codes)
        groups = self.place(np.repeat(np.arange(self.n_groups), np.diff(self.offsets))[others])
        numbers = self.place(codes[others]).to(self.values.dtype)
        return groups, numbers, self.place(others)

    def _product(self, indicators: Tensor, piece: Tensor) -> Tensor:
        """Return the exact product of indicators and the transposed lines of a piece."""
        return self.device.torch._int_mm(indicators, piece[:, : indicators.shape[1]].t())

    def _pieces(self, values: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return eight-bit integers and units whose products add up to the values.

        The integers have a line for each column; lines and their number are padded with zeros.
        """
        if not len(values):
            return []
        torch = self.device.torch
        padding = (0, -values.shape[1] % _WIDTH, 0, -values.shape[0] % TILE)
        rest = torch.nn.functional.pad(values, padding)
        unit = abs(rest).amax(0) / _MOST_OF_A_PIECE
        pieces = []
        for _ in range(_PIECES):
            integers = torch.round(rest / torch.where(unit > 0, unit, 1.0))
            pieces.append((integers.to(torch.int8).t().contiguous(), unit.double()))
            rest = rest - integers * unit
            # The remainder is half a unit at most.
            unit = unit / (2 * _MOST_OF_A_PIECE)
            if not rest.any():
                break
        return pieces

    # Other codes ------------------------------------------------------------------------------

    def take(self, rows) -> DeviceCodes:
        return replace(self, values=self.values[:, self.place(rows)])

    def renumbered(self, groups, numbers: NDArray, offsets) -> DeviceCodes:
        values = self.device.empty_codes(groups.size, self.n_rows, numbers.dtype)
        table = self.place(numbers.astype(np.int64)).to(values.dtype)
        chosen, first = self.place(groups), self.place(self.offsets[:-1])[:, None]
        for part, rows in self._blocks(1, groups.size):
            some = chosen[part]
            values[part, rows] = table[self.values[some, rows] + first[some]]
        return replace(self, values=values, offsets=offsets)

    def with_groups(self, sizes, *values) -> DeviceCodes:
        n_groups = self.n_groups + len(sizes)
        joined = self.device.empty_codes(n_groups, self.n_rows, np.dtype(np.uint8))
        joined[: self.n_groups] = self.values
        for group, codes in enumerate(values, start=self.n_groups):
            joined[group] = self.place(codes)
        return replace(self, values=joined, offsets=self.more_offsets(sizes))

    def counts(self) -> NDArray[np.int64]:
        n_codes = int(np.diff(self.offsets).max(initial=1))
        counts = to_host(self.device.loops.counts(self.values, n_codes))
        return counts[np.repeat(np.arange(self.n_groups), np.diff(self.offsets)), self.cell_codes]

    def dense(self) -> DenseCodes:
        values = to_host(self.values).astype(code_dtype(self.offsets))
        return DenseCodes(values, self.offsets, self.loops)


class DeviceRows(Rows):
    """The rows of an array, whose codes are made on a device.

    They are copied there once, or again for each pass if memory does not suffice; `sent` is a copy
    that is there already. `loops` are for codes collected in memory.
    """

    def __init__(self, X: NDArray, device: Device, loops: Twins = TWINS, sent=None) -> None:
        self.X, self.device, self.loops, self._sent = X, device, loops, sent
        self.shape, self.dtype = X.shape, X.dtype
        if sent is None and X.nbytes <= _SHARE_OF_MEMORY * device.free_memory():
            self._sent = device.upload(X)

    def release(self) -> None:
        self._sent = None

    def with_columns(self, X: NDArray) -> DeviceRows:
        """Return rows with other columns on the same device."""
        return DeviceRows(X, self.device, self.loops)

    def block(self, rows: slice) -> DeviceRows:
        """Return some rows next to each other."""
        sent = None if self._sent is None else self._sent[rows]
        return DeviceRows(self.X[rows], self.device, self.loops, sent)

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        for rows in steps(self.shape[0], step):
            yield rows, self.X[rows]

    def take(self, rows: NDArray[np.intp]) -> NDArray:
        return self.X[rows]

    def _on_device(self, n_values: int) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of rows on the device, small enough to compute `n_values` for each row."""
        n_at_once = self.device.at_once(_BLOCK_CODES, _BYTES_OF_A_VALUE)
        for rows in steps(self.shape[0], n_at_once // max(n_values, 1)):
            sent = self._sent
            yield rows, self.device.place(self.X[rows]) if sent is None else sent[rows]

    def check_finite(self) -> None:
        """Raise ValueError for infinite values; NaN are missing values."""
        if self.dtype == np.uint8:
            return
        if any(bool(block.isinf().any()) for _, block in self._on_device(self.shape[1])):
            ArrayRows(self.X).check_finite()  # raises the error

    def column_ranges(self) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        torch = self.device.torch
        low = high = missing = None
        for _, block in self._on_device(self.shape[1]):
            if block.is_floating_point():
                is_nan = block.isnan()
                smallest = block.masked_fill(is_nan, torch.inf).amin(0)
                largest = block.masked_fill(is_nan, -torch.inf).amax(0)
                has_nan = is_nan.any(0)
            else:
                smallest, largest = block.amin(0), block.amax(0)
                has_nan = torch.zeros_like(smallest, dtype=torch.bool)
            low = smallest if low is None else torch.minimum(low, smallest)
            high = largest if high is None else torch.maximum(high, largest)
            missing = has_nan if missing is None else missing | has_nan
        low, high = to_host(low).astype(np.float64), to_host(high).astype(np.float64)
        is_empty = low > high  # all values are missing
        return np.where(is_empty, np.nan, low), np.where(is_empty, np.nan, high), to_host(missing)

    def keys(self, y, seed: int) -> NDArray[np.uint64]:
        return to_host(self._keys(y, seed)).view(np.uint64)

    def keys_apart(self, y, weights, seed: int) -> Tensor:
        """Return keys that differ even for equal rows, as signed integers on the device."""
        return told_apart(self._keys(y, seed), self.device.place(weights))

    def _keys(self, y, seed: int) -> Tensor:
        torch = self.device.torch
        factors = key_factors(self.shape[1], seed).view(np.int64)
        keys = torch.zeros(self.shape[0], dtype=torch.int64, device=self.device.device)
        if y is not None:
            keys = scramble(self.device.place(y).long() * int(factors[-1]))
        by_column = self.device.place(factors[:-1])
        for rows, block in self._on_device(4 * self.shape[1]):
            keys[rows] += (bits_of(block) * by_column).sum(dim=1)
        return scramble(keys)

    def sample(self, y, weights, n_rows: int, seed: int) -> Sample:
        torch = self.device.torch
        keys, order = (self._keys(y, seed) ^ FIRST_BIT).sort(stable=True)
        starts = starts_of_runs(keys).nonzero()[:, 0]
        integers, unit = to_fixed_point(weights[:, None])
        running = self.device.place(integers[:, 0])[order].cumsum(0)
        ends = torch.cat([starts[1:], starts.new_tensor([keys.numel()])])[:n_rows]
        mass = running[ends - 1].diff(prepend=running.new_zeros(1))
        rows = to_host(order[starts[:n_rows]])
        labels = np.zeros(rows.size, dtype=np.intp) if y is None else y[rows]
        X = to_float32(self.take(rows))
        return Sample(X, labels, to_host(mass) * unit, starts.numel())

    def bin(self, features, edges) -> DeviceCodes:
        torch, place = self.device.torch, self.device.place
        values = self.device.empty_codes(features.size, self.shape[0], edges.code_dtype)
        sizes = np.diff(edges.offsets)
        # A matrix of thresholds, a line for each group, padded with infinity.
        position = np.arange(edges.thresholds.size) - np.repeat(edges.offsets[:-1], sizes)
        grid = np.full((features.size, int(sizes.max(initial=0))), np.inf)
        grid[np.repeat(np.arange(features.size), sizes), position] = edges.thresholds
        columns, thresholds = place(features), place(grid, torch.float32)
        for rows, block in self._on_device(features.size):
            self.device.loops.bin(block, columns, thresholds, values[:, rows])
        return DeviceCodes(values, edges.cell_offsets, self.device, self.loops)

    def bin_ferns(self, ferns) -> DeviceCodes:
        values = self.device.empty_codes(ferns.n_maps, self.shape[0], ferns.numbers.dtype)
        placed = place_ferns(ferns, self.device)
        for rows, block in self._on_device(self.shape[1]):
            self.device.loops.fern_codes(block, placed, values[:, rows])
        return DeviceCodes(values, ferns.cell_offsets, self.device, self.loops)

    def score_ferns(self, ferns, tables: NDArray) -> NDArray[np.float64]:
        placed, entries = place_ferns(ferns, self.device), self.device.keep(tables)
        scores = np.empty((self.shape[0], tables.shape[1]))
        for rows, block in self._on_device(self.shape[1] + tables.shape[1]):
            on_device = entries.new_zeros((len(block), tables.shape[1]))
            self.device.loops.fern_scores(block, placed, entries, on_device)
            self.device.download(on_device, scores[rows])
        return scores

    def score(self, features, edges, tables) -> NDArray[np.float64]:
        """Return the sum of table entries of each row."""
        placed = self.device.place(tables)
        scores = np.empty((self.shape[0], tables.shape[1]))
        n_at_once = self.device.at_once(_SCORED_CODES, 1)
        for rows in steps(self.shape[0], n_at_once // max(features.size, 1)):
            on_device = self.block(rows).bin(features, edges).gather(placed)
            self.device.download(on_device, scores[rows])
        return scores


def place_ferns(ferns, device: Device) -> PlacedFerns:
    """Return ferns on a device, with their largest arrays cached there; see `Device.keep`."""
    place = device.place
    depths, n_bits = np.diff(ferns.offsets), np.log2(ferns.n_raw).astype(np.int64)
    hashed, sets = depths > n_bits, ferns.sets
    starts = np.full(ferns.features.size, -1) if sets is None else sets.starts
    members = _NO_MEMBERS if sets is None else sets.members
    return PlacedFerns(
        place(ferns.features.astype(np.int64)),
        place(ferns.thresholds, device.torch.float32),
        place(ferns.offsets),
        place(np.where(hashed, ferns.factors, np.uint64(1)).view(np.int64)),
        place(np.where(hashed, 64 - n_bits, 0)),
        place(ferns.n_raw - 1),
        place(ferns.raw_offsets),
        device.keep(ferns.numbers, None if ferns.numbers.itemsize == 1 else device.torch.int32),
        place(starts),
        device.keep(members, device.torch.uint8),
        place(ferns.cell_offsets),
        None if sets is None else place(sets.n_levels),
        depths,
    )


def device_for(device: str, n_codes: float, worth_it: float) -> str:
    """Return where to put codes: on a GPU only if there are at least `worth_it` of them.

    "auto" uses a GPU if there is one; "torch" is Torch on the CPU, for tests.

    >>> device_for("auto", 1_000, 1_000_000), device_for("torch", 1_000, 1_000_000)
    ('cpu', 'torch')
    """
    if device in ("cpu", "torch"):
        return device
    if device != "auto":
        return device if n_codes >= worth_it else "cpu"
    return "cuda" if n_codes >= worth_it and has_gpu("cuda") else "cpu"


def device_of(device: str) -> Device:
    """Return a device ("cuda", "cuda:1", ..., or "torch"); raise if it cannot be used."""
    if device == "torch":
        return Device("cpu")
    kind, _, number = device.partition(":")
    if kind != "cuda" or not (number or "0").isdecimal():
        known = "'auto', 'cpu', 'cuda', 'cuda:1', ... or 'torch'"
        raise ValueError(f"device must be {known}, got {device!r}.")
    if not has_gpu(device):
        raise RuntimeError(
            f"device={device!r} needs a GPU that Torch can use, and there is none; "
            "use device='cpu'."
        )
    return Device(device)


def has_gpu(device: str) -> bool:
    """Say whether Torch is installed and can use a GPU, such as "cuda" or "cuda:1"."""
    if importlib.util.find_spec("torch") is None:
        return False
    cuda, number = require("torch", "gpu").cuda, int(device.partition(":")[2] or 0)
    return cuda.is_available() and number < cuda.device_count()

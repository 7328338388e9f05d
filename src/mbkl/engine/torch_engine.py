"""The two hot operations in Torch, for a GPU.

With few columns, table entries are looked up and residuals scattered. With many, one pass is
two matrix products: blocks of the indicators of all cells are formed on the fly and go through
the tensor cores, with values as bfloat16 and sums in float32. A value is then a sum of two
bfloat16 pieces where precision matters, and one where a direction is enough.
"""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.codes import Coarsening, DenseCodes, offsets_of
from mbkl.engine.namespace import group_sums, to_host
from mbkl.extras import require

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# From this many columns on, matrix products are faster than look-ups (measured).
_MANY_COLUMNS = 16
# The tensor cores run seven times slower on other widths (measured on an H200).
_WIDTH = 128
# Indicators formed at once: enough to fill the device, little enough to fit anywhere.
_BLOCK_ROWS, _BLOCK_CELLS = 131_072, 4_096
_SMALLEST_BLOCK = 1_024
# Look-ups at once.
_BLOCK_CODES = 64_000_000
# Rows that take up more of the free memory than this are sent again for each pass over them.
_SHARE_OF_MEMORY = 0.3
_UPLOAD_BYTES = 256_000_000
# Codes of rows that are scored at once.
_SCORED_CODES = 1_000_000_000


@dataclass(frozen=True)
class CellColumns:
    """Columns of the indicator matrix: all cells but the first of each group.

    A row is in one cell of each group, so the first is what the others leave.
    """

    cells: Tensor
    groups: Tensor
    numbers: Tensor


class TorchEngine:
    """Engine on a Torch device.

    Parameters
    ----------
    device : str or torch.device
    """

    n_threads = 1
    in_lockstep = True

    def __init__(self, device) -> None:
        self.torch = require("torch", "gpu")
        self.device = self.torch.device(device)
        self.precise = True
        self._held: tuple = (None, None)
        self._block_rows = _BLOCK_ROWS

    # Between host and device -------------------------------------------------------------

    def to_device(self, array, dtype=None) -> Tensor:
        """Return an array as a tensor on the device."""
        if isinstance(array, np.ndarray):  # Torch takes no negative strides, nor read-only memory
            array = np.require(array, requirements=["C", "W"])
        return self.torch.as_tensor(array, dtype=dtype, device=self.device)

    def row_dtype(self, n_columns: int) -> torch.dtype:
        """Return the data type of the scores of rows: single where products are coarser."""
        return self.torch.float32 if n_columns >= _MANY_COLUMNS else self.torch.float64

    @contextmanager
    def coarse(self):
        """Let products be coarser: for directions, whose errors do not add up."""
        self.precise = False
        try:
            yield
        finally:
            self.precise = True

    # The two hot operations ---------------------------------------------------------------

    def gather(self, codes: Any, tables: Tensor) -> Tensor:
        """Sum over groups the table entry of each row's cell."""
        if tables.shape[1] >= _MANY_COLUMNS:
            return self._in_blocks(self._multiply, codes, tables)
        scores = tables.new_zeros((codes.n_rows, tables.shape[1]))
        for groups, rows in self._blocks(codes, tables.shape[1]):
            cells = codes.values[groups, rows].long()
            cells += self.to_device(codes.offsets[:-1][groups])[:, None]
            scores[rows] += tables[cells].sum(dim=0)
        return scores

    def histogram(self, codes: Any, residuals: Tensor) -> Tensor:
        """Sum the residuals of the rows in each cell."""
        n_columns = residuals.shape[1]
        if n_columns >= _MANY_COLUMNS:
            return self._in_blocks(self._multiply_transposed, codes, residuals)
        if residuals.is_floating_point():  # running sums over all groups follow
            residuals = residuals.double()
        sums = residuals.new_zeros((codes.n_cells, n_columns))
        for groups, rows in self._blocks(codes, n_columns):
            cells = codes.values[groups, rows].long()
            cells += self.to_device(codes.offsets[:-1][groups])[:, None]
            piece = residuals[rows].expand(cells.shape[0], -1, -1).reshape(-1, n_columns)
            sums.index_add_(0, cells.reshape(-1), piece)
        return sums

    def _in_blocks(self, operation, codes: DenseCodes, values: Tensor) -> Tensor:
        """Run an operation, in smaller blocks of rows where memory does not suffice."""
        while True:
            try:
                return operation(codes, values)
            except self.torch.OutOfMemoryError:
                if self._block_rows <= _SMALLEST_BLOCK:
                    raise
                self._block_rows //= 2
                self.torch.cuda.empty_cache()

    def _blocks(self, codes: DenseCodes, n_columns: int):
        """Yield blocks of groups and rows small enough to be looked up at once."""
        n_rows = min(codes.n_rows, max(_BLOCK_CODES // n_columns, 1))
        n_groups = max(_BLOCK_CODES // (n_rows * n_columns), 1)
        for first in range(0, codes.n_groups, n_groups):
            for start in range(0, codes.n_rows, n_rows):
                yield slice(first, first + n_groups), slice(start, start + n_rows)

    def _multiply(self, codes: DenseCodes, tables: Tensor) -> Tensor:
        """Return indicators times tables."""
        first = self.to_device(codes.offsets[:-1])
        base = tables[first].sum(dim=0)
        others = tables - self._of_first_cell(tables, codes)
        pieces = self._pieces(others)
        scores = self.torch.empty((codes.n_rows, tables.shape[1]), device=self.device)
        for rows in _steps(codes.n_rows, self._block_rows):
            total = None
            for columns, indicators in self._indicators(codes, rows):
                for piece in pieces:
                    total = self._add_product(total, indicators.t(), piece[columns])
            found = base if total is None else total[:, : tables.shape[1]] + base
            scores[rows] = found.to(scores.dtype)
        return scores

    def _multiply_transposed(self, codes: DenseCodes, residuals: Tensor) -> Tensor:
        """Return transposed indicators times residuals."""
        n_columns = residuals.shape[1]
        sums = residuals.new_zeros((codes.n_cells, n_columns), dtype=self.torch.float64)
        total = residuals.sum(dim=0, dtype=self.torch.float64)
        for rows in _steps(codes.n_rows, self._block_rows):
            pieces = self._pieces(residuals[rows])
            for columns, indicators in self._indicators(codes, rows):
                for piece in pieces:
                    sums[columns] += self._add_product(None, indicators, piece)[:, :n_columns]
        first = self.to_device(codes.offsets[:-1])
        sums[first] = total - group_sums(sums, codes.offsets)
        return sums

    def _pieces(self, values: Tensor) -> list[Tensor]:
        """Return bfloat16 columns, padded in width, whose sum is the values."""
        torch = self.torch
        padding = -values.shape[1] % _WIDTH
        values = torch.nn.functional.pad(values.float(), (0, padding))
        pieces = [values.bfloat16()]
        if self.precise:
            pieces.append((values - pieces[0]).bfloat16())
        return pieces

    def _add_product(self, total: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
        """Return left @ right in float32, added to a total where there is one."""
        if self.device.type != "cuda":
            product = left.float() @ right.float()
            return product if total is None else total.add_(product)
        if total is None:
            return self.torch.mm(left, right, out_dtype=self.torch.float32)
        return self.torch.addmm(total, left, right, out_dtype=self.torch.float32)

    def _indicators(self, codes: DenseCodes, rows: slice):
        """Yield for blocks of cells their numbers and indicators on some rows."""
        columns = self._columns(codes)
        block = codes.values[:, rows]
        for part in _steps(columns.cells.numel(), _BLOCK_CELLS):
            yield (
                columns.cells[part],
                self._equal(block, columns.groups[part], columns.numbers[part]),
            )

    def _equal(self, codes: Tensor, groups: Tensor, numbers: Tensor) -> Tensor:
        """Return for each column whether the rows are in its cell, as 0 and 1 in bfloat16."""
        if self.device.type == "cuda":
            from mbkl.engine.triton_kernels import indicators

            return indicators(codes, groups, numbers)
        return (codes[groups] == numbers[:, None]).bfloat16()

    def _columns(self, codes: DenseCodes) -> CellColumns:
        sizes = np.diff(codes.offsets)
        number = np.arange(codes.n_cells) - np.repeat(codes.offsets[:-1], sizes)
        cells = np.flatnonzero(number)
        group = np.repeat(np.arange(codes.n_groups), sizes)[cells]
        numbers = self.to_device(number[cells]).to(codes.values.dtype)
        return CellColumns(self.to_device(cells), self.to_device(group), numbers)

    def _of_first_cell(self, tables: Tensor, codes: DenseCodes) -> Tensor:
        first = np.repeat(codes.offsets[:-1], np.diff(codes.offsets))
        return tables[self.to_device(first)]

    # Codes --------------------------------------------------------------------------------

    def bundle(self, codes: Any) -> DenseCodes:
        """Return the codes for passes of few columns: as they are."""
        return codes

    def take(self, codes: Any, rows) -> DenseCodes:
        """Return the codes of some rows, in the given order."""
        return DenseCodes(codes.values[:, self.to_device(rows)], codes.offsets)

    def densify(self, codes: Any) -> DenseCodes:
        """Return the codes with every entry stored: as they are."""
        return codes

    def keep_groups(self, codes: Any, groups: NDArray[np.intp]) -> DenseCodes:
        """Return the codes of some groups."""
        return DenseCodes(codes.values[self.to_device(groups)], offsets_of(codes, groups))

    def coarsen(self, codes: Any, plan: Coarsening) -> DenseCodes:
        """Return the codes after boundaries between cells are removed."""
        new_codes = plan.new_codes.astype(plan.dtype)
        return self.renumbered(codes, plan.groups, new_codes, plan.offsets)

    def renumbered(self, codes: Any, groups, numbers: NDArray, offsets) -> DenseCodes:
        """Return the codes of some groups with new numbers for all cells."""
        values = self.empty_codes(groups.size, codes.n_rows, numbers.dtype)
        self.renumber(codes, groups, numbers, values)
        return DenseCodes(values, offsets)

    def renumber(self, codes: DenseCodes, groups, numbers: NDArray, out: Tensor) -> None:
        """Write the codes of some groups with new numbers for all cells."""
        table = self.to_device(numbers.astype(np.int64)).to(out.dtype)
        first = self.to_device(codes.offsets[:-1])
        for position, group in enumerate(self.to_device(groups)):
            out[position] = table[codes.values[group].long() + first[group]]

    def empty_codes(self, n_groups: int, n_rows: int, dtype: np.dtype) -> Tensor:
        """Return room for codes; Torch has no wider unsigned integers."""
        kind = self.torch.uint8 if dtype == np.uint8 else self.torch.int32
        return self.torch.empty((n_groups, n_rows), dtype=kind, device=self.device)

    def counts(self, codes: DenseCodes) -> NDArray[np.int64]:
        """Return the number of rows in each cell."""
        ones = self.torch.ones((codes.n_rows, 1), dtype=self.torch.int64, device=self.device)
        return to_host(self.histogram(codes, ones)[:, 0])

    # Rows -----------------------------------------------------------------------------------

    def hold(self, X) -> None:
        """Keep rows on the device for the operations to come, where there is room."""
        if X.nbytes <= _SHARE_OF_MEMORY * self._free_memory():
            self._held = (X, self._upload(X))

    def let_go(self) -> None:
        """Free the rows held on the device."""
        self._held = (None, None)

    def _upload(self, X: NDArray) -> Tensor:
        """Copy rows to the device through page-locked memory, which is faster (measured)."""
        torch = self.torch
        if self.device.type != "cuda" or X.nbytes < _BLOCK_CODES:
            return self.to_device(np.ascontiguousarray(X))
        dtype = torch.from_numpy(X[:1].copy()).dtype
        tensor = torch.empty(X.shape, dtype=dtype, device=self.device)
        step = max(_UPLOAD_BYTES // (X.itemsize * X.shape[1]), 1)
        buffers = [torch.empty((step, X.shape[1]), dtype=dtype, pin_memory=True) for _ in "ab"]
        events = [torch.cuda.Event() for _ in buffers]
        with torch.cuda.device(self.device):
            for number, rows in enumerate(_steps(X.shape[0], step)):
                buffer, event = buffers[number % 2], events[number % 2]
                event.synchronize()
                block = buffer[: rows.stop - rows.start]
                np.copyto(block.numpy(), X[rows])
                tensor[rows].copy_(block, non_blocking=True)
                event.record()
            torch.cuda.synchronize()
        return tensor

    def _free_memory(self) -> float:
        if self.device.type != "cuda":
            return np.inf
        return float(self.torch.cuda.mem_get_info(self.device)[0])

    def _row_blocks(self, X, n_values: int):
        """Yield blocks of rows on the device, with so many values a row to be made of them."""
        held, tensor = self._held
        rows_of = tensor if held is X and held is not None else None
        for rows in _steps(X.shape[0], max(_BLOCK_CODES // max(n_values, 1), 1)):
            yield rows, self.to_device(X[rows]) if rows_of is None else rows_of[rows]

    def column_ranges(self, X) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        """Return smallest and largest value of each column, and which ones have NaN."""
        torch = self.torch
        low = high = missing = None
        for _, block in self._row_blocks(X, X.shape[1]):
            if block.is_floating_point():
                absent = block.isnan()
                below = block.masked_fill(absent, torch.inf).amin(0)
                above = block.masked_fill(absent, -torch.inf).amax(0)
                absent = absent.any(0)
            else:
                below, above = block.amin(0), block.amax(0)
                absent = torch.zeros_like(below, dtype=torch.bool)
            low = below if low is None else torch.minimum(low, below)
            high = above if high is None else torch.maximum(high, above)
            missing = absent if missing is None else missing | absent
        low, high = to_host(low).astype(np.float64), to_host(high).astype(np.float64)
        nothing = low > high
        return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high), to_host(missing)

    def bin(self, X, features: NDArray, edges, out: Tensor) -> None:
        """Write the code of each value of some columns of X."""
        torch = self.torch
        sizes = np.diff(edges.offsets)
        # All groups side by side, those with fewer thresholds filled up with infinity.
        place = np.arange(edges.thresholds.size) - np.repeat(edges.offsets[:-1], sizes)
        grid = np.full((features.size, int(sizes.max(initial=0))), np.inf)
        grid[np.repeat(np.arange(features.size), sizes), place] = edges.thresholds
        columns, thresholds = self.to_device(features), self.to_device(grid, torch.float32)
        for rows, block in self._row_blocks(X, features.size):
            values = block[:, columns].t().float().contiguous()
            found = torch.searchsorted(thresholds, values, out_int32=True)
            out[:, rows] = found.masked_fill_(values.isnan(), 0).to(out.dtype)

    def bin_ferns(self, X, ferns, out: Tensor) -> None:
        """Write the cell of each row of X in each fern."""
        torch = self.torch
        features, thresholds = self.to_device(ferns.features), self.to_device(ferns.thresholds)
        numbers = self.to_device(ferns.numbers.astype(np.int64)).to(out.dtype)
        n_bits = np.log2(ferns.n_raw).astype(np.int64)
        depths = np.diff(ferns.offsets)
        for fern in range(ferns.n_maps):
            part = slice(int(ferns.offsets[fern]), int(ferns.offsets[fern + 1]))
            hashed = depths[fern] > n_bits[fern]
            # Products of 64-bit integers wrap around alike, signed or not.
            factor = int(ferns.factors[fern].astype(np.int64)) if hashed else 1
            shift, mask = 64 - int(n_bits[fern]), int(ferns.n_raw[fern]) - 1
            for rows, block in self._row_blocks(X, 4 * int(depths[fern])):
                yes = block[:, features[part]].float() > thresholds[part]
                digits = 2 ** torch.arange(int(depths[fern]) - 1, -1, -1, device=self.device)
                outcome = (yes * digits).sum(1)
                if hashed:
                    outcome = ((outcome * factor) >> shift) & mask
                out[fern, rows] = numbers[outcome + int(ferns.raw_offsets[fern])]

    def score(self, X, features, edges, tables) -> NDArray[np.float64]:
        """Return the scores of the rows of X: `bin` and `gather` in one."""
        tables = self.to_device(tables)
        scores = np.empty((X.shape[0], tables.shape[1]))
        for rows in _steps(X.shape[0], max(_SCORED_CODES // max(features.size, 1), 1)):
            values = self.empty_codes(features.size, rows.stop - rows.start, edges.code_dtype)
            self.bin(X[rows], features, edges, values)
            scores[rows] = to_host(self.gather(DenseCodes(values, edges.cell_offsets), tables))
        return scores


def torch_engine(device: str) -> TorchEngine:
    """Return the engine of a device, or say why it cannot be used.

    Parameters
    ----------
    device : str
        "cuda", "cuda:1", ..., or "torch" for Torch on the CPU.
    """
    if device == "torch":
        return TorchEngine("cpu")
    if device.split(":")[0] != "cuda":
        raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:1', ... or 'torch', got {device!r}.")
    if not has_gpu(device):
        raise RuntimeError(
            f"device={device!r} needs a GPU that Torch can use, and there is none; "
            "use device='cpu'."
        )
    return TorchEngine(device)


def has_gpu(device: str) -> bool:
    """Say whether Torch is installed and can use a GPU, such as "cuda" or "cuda:1"."""
    if importlib.util.find_spec("torch") is None:
        return False
    cuda, number = require("torch", "gpu").cuda, int([*device.split(":"), "0"][1])
    return cuda.is_available() and number < cuda.device_count()


def _steps(size: int, step: int):
    """Yield slices that cover a range."""
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))

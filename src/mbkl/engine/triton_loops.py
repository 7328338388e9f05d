"""Fused Triton loops, each of which reads and writes memory once.

Each has the name of its plain form in `torch_loops`, which documents it.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from mbkl.engine import torch_loops
from mbkl.engine.torch_loops import TILE, columns_of
from mbkl.engine.twins import MOST_PACKED
from mbkl.extras import require

torch = require("torch", "gpu")
triton: Any = require("triton", "gpu")
tl: Any = require("triton.language", "gpu")

_BLOCK = 4096
# Entries that one program works on at once.
_TILE = 2048
# Rows whose packed residuals add up within 32 bits, and sums of such parts that are kept at once.
_ROWS_OF_A_PART = 65_536
_SUMS_AT_ONCE = 64_000_000
# A histogram is copied up to this size, and at most so many times, so that it stays in the cache.
_COPIED_SUMS, _MOST_COPIES = 1_000_000, 8
# Columns that one program works on.
_MOST_COLUMNS = 32
# Rows or cells of indicators that one program forms, and words of four indicators
# (python -m benchmarks.gpu.imagenet).
_ROWS_OF_INDICATORS, _WORDS_BY_ROW = 128, 8
_CELLS_OF_INDICATORS, _WORDS_BY_CELL = 32, 256

# Loops are not specialised for sizes, as the compiler takes a second for each variant.


def _on(tensor):
    """Return a context that starts loops on the device of a tensor."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


# Cells ------------------------------------------------------------------------------------------


@triton.jit(do_not_specialize=["n_rows", "n_groups"])
def _look_up(
    values, first, tables, scores, n_rows, n_groups, stride,
    COLUMNS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n_rows
    column = tl.arange(0, WIDTH)[None, :]
    mask = inside[:, None] & (column < COLUMNS)
    place = scores + row[:, None] * COLUMNS + column
    total = tl.load(place, mask=mask, other=0.0)
    for group in range(n_groups):
        code = tl.load(values + row, mask=inside, other=0).to(tl.int64)
        cell = tl.load(first + group) + code
        total += tl.load(tables + cell[:, None] * COLUMNS + column, mask=mask, other=0.0)
        values += stride
    tl.store(place, total, mask=mask)


def look_up(values, first, tables, scores) -> None:
    """See `torch_loops.look_up`."""
    (n_groups, n_rows), n_columns = values.shape, tables.shape[1]
    width = _power_of_two(n_columns)
    n_at_once = max(256 // width, 32)
    tables = tables.contiguous()
    with _on(values):
        _look_up[(triton.cdiv(n_rows, n_at_once),)](
            values, first, tables, scores, n_rows, n_groups, values.stride(0),
            COLUMNS=n_columns, WIDTH=width, ROWS=n_at_once,
        )  # fmt: skip


@triton.jit(do_not_specialize=["n_words", "n_cells"])
def _indicators_by_cell(
    words, groups, numbers, out, n_words, n_cells, stride, out_stride,
    CELLS: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Compare four rows at once: each zero byte of the difference becomes one, any other zero."""
    word = tl.program_id(0) * WORDS + tl.arange(0, WORDS)[None, :]
    cell = tl.program_id(1) * CELLS + tl.arange(0, CELLS)[:, None]
    group = tl.load(groups + cell, mask=cell < n_cells, other=0)
    number = tl.load(numbers + cell, mask=cell < n_cells, other=0).to(tl.int32)
    inside = (word < n_words) & (cell < n_cells)
    four = tl.load(words + group * stride + word, mask=inside, other=0)
    different = (four ^ (number * 0x01010101)).to(tl.uint32, bitcast=True)
    is_other = ((different & 0x7F7F7F7F) + 0x7F7F7F7F) | different
    is_equal = (is_other >> 7) & 0x01010101 ^ 0x01010101
    place = out + cell.to(tl.int64) * out_stride + word
    tl.store(place, is_equal.to(tl.int32, bitcast=True), mask=word < n_words)


@triton.jit(do_not_specialize=["n_rows", "n_cells"])
def _indicators_by_row(
    codes, groups, numbers, out, n_rows, n_cells, stride, out_stride,
    ROWS: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Write four cells at once, each as one byte of a word."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    word = tl.program_id(1) * WORDS + tl.arange(0, WORDS)[None, :]
    is_equal = tl.zeros([ROWS, WORDS], tl.int32)
    for byte in tl.static_range(4):
        cell = 4 * word + byte
        group = tl.load(groups + cell, mask=cell < n_cells, other=0)
        number = tl.load(numbers + cell, mask=cell < n_cells, other=0).to(tl.int32)
        inside = (row < n_rows) & (cell < n_cells)
        code = tl.load(codes + group * stride + row, mask=inside, other=0).to(tl.int32)
        is_equal |= (code == number).to(tl.int32) << (8 * byte)
    tl.store(out + row.to(tl.int64) * out_stride + word, is_equal)


def indicators(codes, groups, numbers, by_row: bool):
    """See `torch_loops.indicators`; lines of codes must be aligned, see `Device.in_words`."""
    if codes.dtype != torch.uint8:
        return torch_loops.indicators(codes, groups, numbers, by_row)
    n_rows, n_cells = (triton.cdiv(size, TILE) * TILE for size in (codes.shape[1], groups.numel()))
    shape = (n_rows, n_cells) if by_row else (n_cells, n_rows)
    out = torch.empty(shape, dtype=torch.int8, device=codes.device)
    if not out.numel():
        return out
    words = out.view(torch.int32)
    of_cells = groups, numbers, words
    with _on(codes):
        if by_row:
            _indicators_by_row[(n_rows // _ROWS_OF_INDICATORS, n_cells // (4 * _WORDS_BY_ROW))](
                codes, *of_cells, codes.shape[1], groups.numel(), codes.stride(0), words.stride(0),
                ROWS=_ROWS_OF_INDICATORS, WORDS=_WORDS_BY_ROW,
            )  # fmt: skip
        else:
            n_words = words.shape[1]
            four = codes.as_strided((len(codes), n_rows), codes.stride()).view(torch.int32)
            _indicators_by_cell[
                (triton.cdiv(n_words, _WORDS_BY_CELL), n_cells // _CELLS_OF_INDICATORS)
            ](
                four, *of_cells, n_words, groups.numel(), four.stride(0), n_words,
                CELLS=_CELLS_OF_INDICATORS, WORDS=_WORDS_BY_CELL,
            )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["n_rows", "n_groups", "most"])
def _bin(
    X, columns, thresholds, values, n_rows, n_groups, most, stride, stride_of_values,
    ROWS: tl.constexpr, GROUPS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    group = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)[None, :]
    inside = (row < n_rows) & (group < n_groups)
    column = tl.load(columns + group, mask=group < n_groups, other=0)
    value = tl.load(X + row * stride + column, mask=inside, other=0).to(tl.float32)
    code = tl.zeros([ROWS, GROUPS], tl.int32)
    for place in range(most):
        threshold = tl.load(thresholds + group * most + place, mask=group < n_groups, other=0.0)
        code += (value > threshold).to(tl.int32)
    target = values + group.to(tl.int64) * stride_of_values + row
    tl.store(target, code.to(values.dtype.element_ty), mask=inside)


def bin(X, columns, thresholds, values) -> None:
    """See `torch_loops.bin`."""
    (n_groups, most), n_rows = thresholds.shape, len(X)
    if not values.numel():
        return
    X = X if X.stride(1) == 1 else X.contiguous()
    with _on(X):
        _bin[(triton.cdiv(n_rows, 64), triton.cdiv(n_groups, 64))](
            X, columns, thresholds, values, n_rows, n_groups, most, X.stride(0), values.stride(0),
            ROWS=64, GROUPS=64,
        )  # fmt: skip


@triton.jit(do_not_specialize=["n_rows", "n_codes"])
def _counts(values, counts, n_rows, n_codes, stride, BLOCK: tl.constexpr, CODES: tl.constexpr):
    group = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # Places beyond the last row count as a code that is not stored.
    codes = tl.load(values + group * stride + row, mask=row < n_rows, other=0).to(tl.int32)
    codes = tl.where(row < n_rows, codes, CODES - 1)
    code = tl.arange(0, CODES)
    totals = tl.histogram(codes, CODES).to(tl.int64)
    tl.atomic_add(counts + group * n_codes + code, totals, mask=code < n_codes, sem="relaxed")


def counts(values, n_codes: int):
    """See `torch_loops.counts`."""
    if values.dtype != torch.uint8 or not len(values):
        return torch_loops.counts(values, n_codes)
    totals = values.new_zeros((len(values), n_codes), dtype=torch.int64)
    with _on(values):
        _counts[(triton.cdiv(values.shape[1], _BLOCK), len(values))](
            values, totals, values.shape[1], n_codes, values.stride(0), BLOCK=_BLOCK,
            CODES=_power_of_two(n_codes + 1),
        )  # fmt: skip
    return totals


# Growing ferns ----------------------------------------------------------------------------------

# Adding and then subtracting this rounds single-precision numbers to integers.
_ROUNDS = tl.constexpr(1.5 * 2.0**23)
_MOST = tl.constexpr(float(MOST_PACKED))


@triton.jit(do_not_specialize=["size"])
def _pack_residuals(
    gradient, curvature, weights, units, packed, size, COLUMNS: tl.constexpr, BLOCK: tl.constexpr
):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    weight = tl.load(weights + place // COLUMNS, mask=inside, other=0.0)
    g = tl.load(gradient + place, mask=inside, other=0.0) * weight
    h = tl.load(curvature + place, mask=inside, other=0.0) * weight
    g = tl.clamp(g * tl.load(units).to(tl.float32), -_MOST, _MOST)
    h = tl.minimum(h * tl.load(units + 1).to(tl.float32), _MOST)
    g = ((g + _ROUNDS) - _ROUNDS).to(tl.int32)
    h = ((h + _ROUNDS) - _ROUNDS).to(tl.int32)
    tl.store(packed + place, (g << 16) + h, mask=inside)


def pack_residuals(gradient, curvature, weights, units, packed) -> None:
    """See `torch_loops.pack_residuals`."""
    size, columns = packed.numel(), packed.shape[1]
    gradient, curvature = gradient.contiguous(), curvature.contiguous()
    with _on(packed):
        _pack_residuals[(triton.cdiv(size, 1024),)](
            gradient, curvature, weights, units, packed, size, COLUMNS=columns, BLOCK=1024
        )


@triton.jit(do_not_specialize=["first", "n_rows", "depth", "size"])
def _fern_sums(
    values, stumps, members, leading, packed, cells, sums, first, n_rows, stride, depth, size,
    COLUMNS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, PART: tl.constexpr,
    HAS_SETS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = (tl.program_id(0) * BLOCK) // PART
    row = first + row.to(tl.int64)
    inside = row < n_rows
    cell = tl.load(leading + row, mask=inside, other=0).to(tl.int64)
    for level in range(depth):
        group = tl.load(stumps + level).to(tl.int64)
        cut = tl.load(stumps + depth + level)
        code = tl.load(values + group * stride + row, mask=inside, other=0).to(tl.int32)
        yes = code > cut
        if HAS_SETS:
            member = tl.load(members + level * 256 + code, mask=inside, other=0)
            yes = tl.where(cut < 0, member != 0, yes)
        cell = 2 * cell + yes.to(tl.int64)
    tl.store(cells + row, cell.to(tl.int32), mask=inside)
    column = tl.arange(0, WIDTH)[None, :]
    mask = inside[:, None] & (column < COLUMNS)
    both = tl.load(packed + row[:, None] * COLUMNS + column, mask=mask, other=0).to(tl.int64)
    both = ((both >> 16) << 32) + (both & 0xFFFF)
    place = part.to(tl.int64) * size + cell[:, None] * COLUMNS + column
    tl.atomic_add(sums + place, both, mask=mask, sem="relaxed")


@triton.jit(do_not_specialize=["n_parts", "size"])
def _add_parts(parts, total, n_parts, size, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    gradient, curvature = tl.zeros([BLOCK], tl.int64), tl.zeros([BLOCK], tl.int64)
    for _ in range(n_parts):
        part = tl.load(parts + place, mask=inside, other=0)
        parts += size
        gradient += part >> 32
        curvature += part & 0xFFFFFFFF
    target = total + 2 * place
    gradient += tl.load(target, mask=inside, other=0)
    curvature += tl.load(target + 1, mask=inside, other=0)
    tl.store(target, gradient, mask=inside)
    tl.store(target + 1, curvature, mask=inside)


def fern_sums(values, stumps, members, leading, packed, cells):
    """See `torch_loops.fern_sums`; computes cells and sums in one pass."""
    n_rows, n_columns = packed.shape
    depth, width = stumps.shape[1], _power_of_two(n_columns)
    size = (2 << depth) * n_columns
    block = max(_TILE // width, 16)
    rows_at_once = max(_SUMS_AT_ONCE // size, 1) * _ROWS_OF_A_PART
    total = torch.zeros((size, 2), dtype=torch.int64, device=packed.device)
    with _on(packed):
        for first in range(0, n_rows, rows_at_once):
            last = min(first + rows_at_once, n_rows)
            n_parts = triton.cdiv(last - first, _ROWS_OF_A_PART)
            sums = total.new_zeros((n_parts, size))
            _fern_sums[(triton.cdiv(last - first, block),)](
                values, stumps, leading if members is None else members, leading, packed, cells,
                sums, first, last, values.stride(0), depth, size, COLUMNS=n_columns, WIDTH=width,
                BLOCK=block, PART=_ROWS_OF_A_PART, HAS_SETS=members is not None,
            )  # fmt: skip
            _add_parts[(triton.cdiv(size, 256),)](sums, total, n_parts, size, BLOCK=256)
    return total.view(-1, n_columns, 2)


@triton.jit(
    do_not_specialize=["n_rows", "n_features", "n_asked", "n_cells", "width", "n_copies", "size"]
)
def _level_sums(
    codes, cells, residuals, bins, sums, n_rows, n_features, n_asked, n_cells, width, n_copies,
    size, COLUMNS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0).to(tl.int64)
    fern = number // n_asked
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = row < n_rows
    fern_bins = bins + fern * 5 * n_asked + number % n_asked
    asked = tl.load(fern_bins)
    shift = tl.load(fern_bins + 3 * n_asked).to(tl.int32)
    move = tl.load(fern_bins + 4 * n_asked).to(tl.int32)
    feature_codes = codes + (fern * n_features + asked) * n_rows
    code = tl.load(feature_codes + row, mask=inside, other=0).to(tl.int32)
    row = fern * n_rows + row
    cell = tl.load(cells + row, mask=inside, other=0).to(tl.int64)
    place = (number * n_cells + cell) * width + ((code + move) >> shift)
    sums += (tl.program_id(1) % n_copies).to(tl.int64) * size
    column = tl.arange(0, WIDTH)[None, :]
    mask = inside[:, None] & (column < COLUMNS)
    residual = tl.load(residuals + row[:, None] * COLUMNS + column, mask=mask, other=0)
    # Samples are padded with rows of zero residuals, which are skipped.
    mask = mask & (residual != 0)
    tl.atomic_add(sums + place[:, None] * COLUMNS + column, residual, mask=mask, sem="relaxed")


@triton.jit
def _collected(sums, ridge):
    gradient = (sums >> 32).to(tl.float64)
    return gradient * gradient / ((sums & 0xFFFFFFFF).to(tl.float64) + ridge)


@triton.jit(do_not_specialize=["n_asked", "n_cells", "width", "n_copies", "size"])
def _level_gains(
    sums, bins, ridges, gains, n_asked, n_cells, width, n_copies, size,
    COLUMNS: tl.constexpr, WIDTH: tl.constexpr, BINS: tl.constexpr, CELLS: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0).to(tl.int64)
    fern = number // n_asked
    block = tl.program_id(1)
    cell = block * CELLS + tl.arange(0, CELLS)[:, None, None]
    bin = tl.arange(0, BINS)
    column = tl.arange(0, WIDTH)[None, None, :]
    mask = (cell < n_cells) & (bin[None, :, None] < width) & (column < COLUMNS)
    place = ((number * n_cells + cell) * width + bin[None, :, None]) * COLUMNS + column
    total = tl.load(sums + place, mask=mask, other=0)
    for copy in range(1, n_copies):
        total += tl.load(sums + copy * size + place, mask=mask, other=0)
    left = tl.cumsum(total, 1)
    right = tl.sum(total, 1)[:, None, :] - left
    ridge = tl.load(ridges + fern)
    gain = tl.where(mask, _collected(left, ridge) + _collected(right, ridge), 0.0)
    gain = tl.sum(tl.sum(gain, 2), 0)
    absent = tl.where(block == 0, -1.0, 0.0).to(tl.float64)
    length = tl.load(bins + fern * 5 * n_asked + 2 * n_asked + number % n_asked)
    gain = tl.where(bin < length, gain, absent)
    row = block * tl.num_programs(0) + number
    tl.store(gains + row * width + bin, gain, mask=bin < width)


def _copied_sums(codes, cells, n_cells: int, residuals, bins):
    """Return partial sums of `torch_loops.level_sums`, flat, of shape (n_copies, size)."""
    (n_ferns, n_rows, n_columns), n_asked = residuals.shape, bins.numbers.shape[2]
    width = _power_of_two(n_columns)
    # Copies keep programs from waiting for each other where they add to few sums.
    size = n_ferns * n_asked * n_cells * bins.width * n_columns
    n_copies = min(max(_COPIED_SUMS // max(size, 1), 1), _MOST_COPIES)
    sums = residuals.new_zeros((n_copies, size))
    block = max(_TILE // (2 * width), 16)
    with _on(codes):
        _level_sums[(n_ferns * n_asked, triton.cdiv(n_rows, block))](
            codes, cells, residuals, bins.numbers, sums, n_rows, codes.shape[1], n_asked,
            n_cells, bins.width, n_copies, size, COLUMNS=n_columns, WIDTH=width, BLOCK=block,
        )  # fmt: skip
    return sums


def level_sums(codes, cells, n_cells: int, residuals, bins):
    """See `torch_loops.level_sums`."""
    n_ferns, _, n_asked = bins.numbers.shape
    sums = _copied_sums(codes, cells, n_cells, residuals, bins).sum(dim=0)
    return sums.view(n_ferns, n_asked, n_cells, bins.width, -1)


def level_gains(codes, cells, n_cells: int, residuals, bins, ridges):
    """See `torch_loops.level_gains`; one pass over the rows and one over their sums."""
    n_columns, (n_ferns, _, n_asked) = residuals.shape[2], bins.numbers.shape
    width, n_bins = _power_of_two(n_columns), _power_of_two(bins.width)
    n_together = max(_TILE // (n_bins * width), 1)
    n_blocks = triton.cdiv(n_cells, n_together)
    gains = ridges.new_empty((n_blocks, n_ferns, n_asked, bins.width))
    sums = _copied_sums(codes, cells, n_cells, residuals, bins)
    with _on(codes):
        _level_gains[(n_ferns * n_asked, n_blocks)](
            sums, bins.numbers, ridges, gains, n_asked, n_cells, bins.width, *sums.shape,
            COLUMNS=n_columns, WIDTH=width, BINS=n_bins, CELLS=n_together,
        )  # fmt: skip
    return gains.sum(dim=0) if n_blocks > 1 else gains[0]


@triton.jit(do_not_specialize=["n_rows", "n_features", "n_asked", "width"])
def _divide_cells(
    codes, best, bins, cells, chosen, n_rows, n_features, n_asked, width, BLOCK: tl.constexpr
):
    fern = tl.program_id(1).to(tl.int64)
    place = tl.load(best + fern)
    numbers = bins + fern * 5 * n_asked + place // width
    feature = tl.load(numbers)
    shift = tl.load(numbers + 3 * n_asked)
    move = tl.load(numbers + 4 * n_asked)
    cut = ((place % width + 1) << shift) - move - 1
    cut = tl.minimum(cut, tl.load(numbers + n_asked) - 2)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = row < n_rows
    feature_codes = codes + (fern * n_features + feature) * n_rows
    code = tl.load(feature_codes + row, mask=inside, other=0).to(tl.int64)
    fern_cells = cells + fern * n_rows + row
    cell = tl.load(fern_cells, mask=inside, other=0)
    tl.store(fern_cells, 2 * cell + (code > cut).to(cell.dtype), mask=inside)
    if tl.program_id(0) == 0:
        tl.store(chosen + 2 * fern, feature)
        tl.store(chosen + 2 * fern + 1, cut)


def divide_cells(codes, best, bins, cells):
    """See `torch_loops.divide_cells`."""
    n_ferns, n_features, n_rows = codes.shape
    chosen = best.new_empty((n_ferns, 2))
    with _on(codes):
        _divide_cells[(triton.cdiv(n_rows, _TILE), n_ferns)](
            codes, best, bins.numbers, cells, chosen, n_rows, n_features, bins.numbers.shape[2],
            bins.width, BLOCK=_TILE,
        )  # fmt: skip
    return chosen


@triton.jit(do_not_specialize=["n_cells"])
def _running_sums(sums, running, n_cells, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    column, half, kind = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    sums += (half * n_cells * COLUMNS + column) * 2 + kind
    running += (half * (n_cells + 1) * COLUMNS + column) * 2 + kind
    before = tl.zeros([1], tl.int64)
    tl.store(running + tl.arange(0, 1), before)
    for first in range(0, n_cells, BLOCK):
        cell = first + tl.arange(0, BLOCK)
        inside = cell < n_cells
        value = tl.load(sums + cell * COLUMNS * 2, mask=inside, other=0)
        tl.store(running + (cell + 1) * COLUMNS * 2, before + tl.cumsum(value, 0), mask=inside)
        before += tl.sum(value, 0)


def _running(sums):
    """See `torch_loops.running_sums`."""
    n_cells, n_columns = len(sums) // 2, sums.shape[1]
    running = sums.new_empty((2, n_cells + 1, n_columns, 2))
    with _on(sums):
        _running_sums[(n_columns, 2, 2)](sums, running, n_cells, COLUMNS=n_columns, BLOCK=1024)
    return running


@triton.jit(do_not_specialize=["n_cells", "depth"])
def _newton_steps(
    running, units, ridges, steps, gains, n_cells, depth,
    COLUMNS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    cell = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)[None, :]
    inside = (cell < n_cells) & (column < COLUMNS)
    # Units are powers of two: their inverses are exact.
    gradient_step, curvature_step = 1.0 / tl.load(units), 1.0 / tl.load(units + 1)
    ridge = tl.load(ridges)
    step = tl.zeros([BLOCK, WIDTH], dtype=tl.float64)
    # The sums of a cell of any level are exact differences of running sums.
    held_out = (n_cells + 1) * COLUMNS * 2
    for level in range(depth + 1):
        first = (cell >> (depth - level)) << (depth - level)
        place = running + (first * COLUMNS + column) * 2
        last = place + (n_cells >> level) * COLUMNS * 2
        total = tl.load(last, mask=inside, other=0) - tl.load(place, mask=inside, other=0)
        gradient = total.to(tl.float64) * gradient_step
        total = tl.load(last + 1, mask=inside, other=0) - tl.load(place + 1, mask=inside, other=0)
        curvature = total.to(tl.float64) * curvature_step
        change = -(gradient + curvature * step) / (curvature + ridge)
        place, last = place + held_out, last + held_out
        total = tl.load(last, mask=inside, other=0) - tl.load(place, mask=inside, other=0)
        slope = total.to(tl.float64) * gradient_step
        total = tl.load(last + 1, mask=inside, other=0) - tl.load(place + 1, mask=inside, other=0)
        slope += total.to(tl.float64) * curvature_step * step
        gain = tl.where(inside & (cell == first), -(change * slope), 0.0)
        program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
        tl.store(gains + program * (depth + 1) + level, tl.sum(tl.sum(gain, 1), 0))
        step += change
    tl.store(steps + cell * COLUMNS + column, step, mask=inside)


def newton_steps(sums, units, ridge):
    """See `torch_loops.newton_steps`; all levels in one pass."""
    n_cells, n_columns = len(sums) // 2, sums.shape[1]
    depth, width = n_cells.bit_length() - 1, min(_power_of_two(n_columns), _MOST_COLUMNS)
    block = max(512 // width, 16)
    grid = (triton.cdiv(n_cells, block), triton.cdiv(n_columns, width))
    steps = units.new_empty((n_cells, n_columns))
    gains = units.new_empty((grid[0] * grid[1], depth + 1))
    with _on(sums):
        _newton_steps[grid](
            _running(sums), units, ridge, steps, gains, n_cells, depth,
            COLUMNS=n_columns, WIDTH=width, BLOCK=block,
        )  # fmt: skip
    return steps, gains.sum(dim=0)


# Ferns on rows ----------------------------------------------------------------------------------


@triton.jit
def _cell(X, features, thresholds, offsets, factors, shifts, masks, raw_offsets, numbers,
          set_starts, members, fern, row, inside, stride, HAS_SETS: tl.constexpr):  # fmt: skip
    """Return the number of the cell of each row in one fern."""
    outcome = tl.zeros_like(row)
    for stump in range(tl.load(offsets + fern), tl.load(offsets + fern + 1)):
        feature = tl.load(features + stump)
        value = tl.load(X + feature * stride + row, mask=inside, other=0.0)
        yes = value > tl.load(thresholds + stump)
        if HAS_SETS:
            first = tl.load(set_starts + stump)
            level = tl.where(first < 0, 0.0, value).to(tl.int64)
            member = tl.load(members + tl.maximum(first, 0) + level, mask=inside, other=0)
            yes = tl.where(first < 0, yes, member != 0)
        outcome = 2 * outcome + yes.to(tl.int64)
    outcome = (outcome * tl.load(factors + fern)) >> tl.load(shifts + fern)
    outcome = outcome & tl.load(masks + fern)
    place = numbers + tl.load(raw_offsets + fern) + outcome
    return tl.load(place, mask=inside, other=0).to(tl.int64)


@triton.jit(do_not_specialize=["n_rows"])
def _fern_codes(
    X, features, thresholds, offsets, factors, shifts, masks, raw_offsets, numbers, set_starts,
    members, values, n_rows, stride, stride_of_values, BLOCK: tl.constexpr, HAS_SETS: tl.constexpr,
):  # fmt: skip
    fern = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = row < n_rows
    number = _cell(X, features, thresholds, offsets, factors, shifts, masks, raw_offsets,
                   numbers, set_starts, members, fern, row, inside, stride, HAS_SETS)  # fmt: skip
    tl.store(
        values + fern * stride_of_values + row, number.to(values.dtype.element_ty), mask=inside
    )


@triton.jit(do_not_specialize=["n_rows", "n_ferns", "n_columns"])
def _fern_scores(
    X, features, thresholds, offsets, factors, shifts, masks, raw_offsets, numbers, set_starts,
    members, cell_offsets, tables, scores, n_rows, stride, n_ferns, n_columns,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, HAS_SETS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = row < n_rows
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)[None, :]
    mask = inside[:, None] & (column < n_columns)
    target = scores + row[:, None] * n_columns + column
    total = tl.load(target, mask=mask, other=0.0)
    for fern in range(n_ferns):
        number = _cell(X, features, thresholds, offsets, factors, shifts, masks, raw_offsets,
                       numbers, set_starts, members, fern, row, inside, stride,
                       HAS_SETS)  # fmt: skip
        cell = number + tl.load(cell_offsets + fern)
        total += tl.load(tables + cell[:, None] * n_columns + column, mask=mask, other=0.0)
    tl.store(target, total, mask=mask)


def fern_codes(X, ferns, values) -> None:
    """See `torch_loops.fern_codes`."""
    columns = columns_of(X, ferns.n_levels)
    with _on(X):
        _fern_codes[(triton.cdiv(len(X), 256), len(values))](
            columns, *ferns[:10], values, len(X), columns.stride(0), values.stride(0), BLOCK=256,
            HAS_SETS=ferns.n_levels is not None,
        )  # fmt: skip


def fern_scores(X, ferns, tables, scores) -> None:
    """See `torch_loops.fern_scores`; adds in the order of the ferns, as on the CPU."""
    columns = columns_of(X, ferns.n_levels)
    n_columns = tables.shape[1]
    width = min(_power_of_two(n_columns), _MOST_COLUMNS)
    block = max(256 // width, 16)
    with _on(X):
        _fern_scores[(triton.cdiv(len(X), block), triton.cdiv(n_columns, width))](
            columns, *ferns[:11], tables, scores, len(X), columns.stride(0),
            ferns.factors.numel(), n_columns, WIDTH=width, BLOCK=block,
            HAS_SETS=ferns.n_levels is not None,
        )  # fmt: skip

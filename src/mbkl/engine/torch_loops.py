"""Loops over rows in plain Torch: for tests, and for devices without Triton.

Each has a fused form of the same name in `triton_loops`, which reads and writes memory once.
Both forms give the same sums of integers, and the same sums of gains up to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.rows import steps
from mbkl.engine.twins import MOST_PACKED
from mbkl.extras import require

if TYPE_CHECKING:
    from torch import Tensor

# Matrices of indicators and lines of codes are padded to multiples of this.
TILE = 128
# Entries of a temporary array: comparisons of rows with stumps, or sums of a histogram.
_AT_ONCE = 32_000_000


class Bins(NamedTuple):
    """How the codes of the features that ferns ask are binned, as (code + move) >> shift."""

    # (n_ferns, 5, n_asked): features, their numbers of codes and of bins, shifts and moves
    numbers: Tensor
    width: int  # the most bins that a feature has


class PlacedFerns(NamedTuple):
    """Ferns on a device, see `FernMaps`; sets of levels, see `LevelSets`."""

    # (n_stumps,)
    features: Tensor
    thresholds: Tensor
    offsets: Tensor  # (n_ferns + 1,)
    # (n_ferns,): an outcome counts as ((outcome * factor) >> shift) & mask
    factors: Tensor
    shifts: Tensor
    masks: Tensor
    raw_offsets: Tensor  # (n_ferns + 1,)
    numbers: Tensor
    set_starts: Tensor  # (n_stumps,): where in the members a set begins; -1 for a threshold
    members: Tensor
    cell_offsets: Tensor  # (n_ferns + 1,)
    n_levels: Tensor | None  # (n_features,): None where no stump has a set
    depths: NDArray[np.int64]  # (n_ferns,): in memory


def bin(X, columns, thresholds, values) -> None:
    """Write how many thresholds are below each value of some columns, (n_groups, n_rows).

    Thresholds, (n_groups, most), are in order and filled up with infinity; NaN is above none.
    """
    torch = require("torch", "gpu")
    lines = X[:, columns].t().float().contiguous()
    below = torch.searchsorted(thresholds, lines, out_int32=True)
    values.copy_(below.masked_fill_(lines.isnan(), 0))


def counts(values, n_codes: int) -> Tensor:
    """Return how often each code is in each group, (n_groups, n_codes)."""
    counts = values.new_empty((len(values), n_codes), dtype=require("torch", "gpu").int64)
    for group, codes in enumerate(values):
        counts[group] = codes.bincount(minlength=n_codes)
    return counts


def look_up(values, first, tables, scores) -> None:
    """Add to scores the table entries of each row, (n_rows, n_columns).

    Values are the codes of the rows, (n_groups, n_rows), and the table of group g begins at
    `first[g]`.
    """
    n_groups, n_rows = values.shape
    n_columns = tables.shape[1]
    rows_at_once = max(_AT_ONCE // n_columns, 1)
    for rows in steps(n_rows, rows_at_once):
        groups_at_once = max(rows_at_once // (rows.stop - rows.start), 1)
        for groups in steps(n_groups, groups_at_once):
            cells = values[groups, rows].long() + first[groups, None]
            scores[rows] += tables[cells].sum(dim=0)


def indicators(codes, groups, numbers, by_row: bool) -> Tensor:
    """Return 1 where a row is in a cell and 0 elsewhere, as int8: a line a cell, or `by_row`.

    A cell is given by its group and its code; codes are of shape (n_groups, n_rows). Both sides
    are padded, with any values, to multiples of `TILE` for the tensor cores.
    """
    torch = require("torch", "gpu")
    inside = codes[groups] == numbers[:, None]
    padding = (0, -inside.shape[1] % TILE, 0, -inside.shape[0] % TILE)
    inside = torch.nn.functional.pad(inside.to(torch.int8), padding)
    return inside.t().contiguous() if by_row else inside


def pack_residuals(gradient, curvature, weights, units, packed) -> None:
    """Pack weighted gradients and curvatures, rounded to multiples of units and clipped.

    The units, (2,), are powers of two and say how many steps one is; all else is single precision.
    """
    gradient_unit, curvature_unit = units.float()
    g = (gradient * weights[:, None] * gradient_unit).round_().clamp_(-MOST_PACKED, MOST_PACKED)
    h = (curvature * weights[:, None] * curvature_unit).round_().clamp_(max=MOST_PACKED)
    packed.copy_((g.int() << 16) + h.int())


def fern_sums(values, stumps, members, leading, packed, cells) -> Tensor:
    """Write the cell of each row in a fern; return the sums of residuals in the cells.

    The values are codes, (n_groups, n_rows). Stumps, (2, depth), have a group and a cut, the last
    code on the left side, or -1 where the members, (depth, 256) or None, are a set of codes. The
    leading bit of each cell is given. Packed residuals, (n_rows, n_columns), have the gradient in
    the upper half of 32 bits, the curvature in the lower; sums are (2^(depth + 1), n_columns, 2).
    """
    cells.copy_(leading)
    for level, (group, cut) in enumerate(zip(*stumps.tolist(), strict=True)):
        codes = values[group]
        cells.mul_(2).add_(codes > cut if cut >= 0 else members[level][codes.int()])
    return cell_sums(cells, packed, 2 << stumps.shape[1])


def cell_sums(cells, packed, n_cells: int) -> Tensor:
    """Return the sums of residuals in cells, (n_cells, n_columns, 2)."""
    both = require("torch", "gpu").stack([packed >> 16, packed & 0xFFFF], dim=2).long()
    return both.new_zeros((n_cells, *both.shape[1:])).index_add_(0, cells, both)


def level_sums(codes, cells, n_cells: int, residuals, bins: Bins) -> Tensor:
    """Return histograms of the features asked, (n_ferns, n_asked, n_cells, width, n_columns).

    Each fern has other rows: codes are of shape (n_ferns, n_features, n_rows), cells
    (n_ferns, n_rows). Residuals, (n_ferns, n_rows, n_columns), have the gradient in the upper half
    of 64 bits and the curvature in the lower.
    """
    torch = require("torch", "gpu")
    n_ferns, n_rows, n_columns = residuals.shape
    asked, _, _, shifts, moves = bins.numbers.unbind(1)
    n_asked = asked.shape[1]
    asked_codes = codes.gather(1, asked[:, :, None].expand(-1, -1, n_rows)).int()
    number = torch.arange(n_ferns * n_asked, device=codes.device).view(n_ferns, n_asked, 1)
    places = (number * n_cells + cells[:, None]) * bins.width
    places += (asked_codes + moves[..., None]) >> shifts[..., None]
    sums = residuals.new_zeros((number.numel() * n_cells * bins.width, n_columns))
    spread = residuals[:, None].expand(-1, n_asked, -1, -1).reshape(-1, n_columns)
    sums.index_add_(0, places.reshape(-1), spread)
    return sums.view(n_ferns, n_asked, n_cells, bins.width, n_columns)


def level_gains(codes, cells, n_cells: int, residuals, bins: Bins, ridges) -> Tensor:
    """Return the gain of a cut above each bin of each feature, (n_ferns, n_asked, width).

    The gain is the sum over cells and columns of gradient^2 / (curvature + ridge) on both sides;
    -1 where there is no such bin. Each fern has a ridge.
    """
    torch = require("torch", "gpu")
    n_ferns, n_rows, n_columns = residuals.shape
    n_asked = bins.numbers.shape[2]
    gains = residuals.new_empty((n_ferns, n_asked, bins.width), dtype=torch.float64)
    size = max(n_cells * bins.width, n_rows) * n_columns
    for fern in range(n_ferns):
        one = slice(fern, fern + 1)
        for part in steps(n_asked, max(_AT_ONCE // size, 1)):
            some = Bins(bins.numbers[one, :, part], bins.width)
            sums = level_sums(codes[one], cells[one], n_cells, residuals[one], some)[0]
            left = sums.cumsum(dim=2)
            right = left[:, :, -1:] - left
            gain = _collected(left, ridges[fern]) + _collected(right, ridges[fern])
            inside = torch.arange(bins.width, device=codes.device) < some.numbers[0, 2, :, None]
            gains[fern, part] = gain.sum(dim=(1, 3)).masked_fill(~inside, -1.0)
    return gains


def _collected(sums, ridge) -> Tensor:
    gradient, curvature = (sums >> 32).double(), (sums & 0xFFFFFFFF).double()
    return gradient * gradient / (curvature + ridge)


def divide_cells(codes, best, bins: Bins, cells) -> Tensor:
    """Divide all cells of ferns by their best cuts, in place; return feature and cut of each fern.

    `best` is the index of the largest gain, the position of the feature times width plus the bin.
    """
    torch = require("torch", "gpu")
    place, ferns = best % bins.width, torch.arange(len(best), device=best.device)
    feature, n_codes, _, shift, move = bins.numbers[ferns, :, best // bins.width].unbind(1)
    # A cut at the last code would divide nothing.
    cut = torch.minimum(((place + 1) << shift) - move - 1, n_codes - 2)
    cells.mul_(2).add_(codes[ferns, feature] > cut[:, None])
    return torch.stack([feature, cut], dim=1)


def newton_steps(sums, units, ridge) -> tuple[Tensor, Tensor]:
    """Return steps and gains, see `Twins.newton_steps`.

    The sums are in steps, of which units, (2,), says how many are one; the ridge is a tensor.
    """
    torch = require("torch", "gpu")
    running = running_sums(sums)
    step = sums.new_zeros((1, sums.shape[1]), dtype=torch.float64)
    gains = []
    for level in range((len(sums) // 2).bit_length()):
        marks = running[:, :: len(sums) // 2 >> level].double()
        training, held_out = marks[:, 1:] - marks[:, :-1]
        step = step.repeat_interleave(len(training) // len(step), dim=0)
        gradient, curvature = training[..., 0] / units[0], training[..., 1] / units[1]
        change = -(gradient + curvature * step) / (curvature + ridge)
        slope = held_out[..., 0] / units[0] + held_out[..., 1] / units[1] * step
        gains.append(-(change * slope).sum())
        step = step + change
    return step, torch.stack(gains)


def running_sums(sums) -> Tensor:
    """Return the sums of the cells before each one, then of all, (2, n_cells + 1, n_columns, 2)."""
    running = sums.new_zeros((2, len(sums) // 2 + 1, *sums.shape[1:]))
    running[:, 1:] = sums.view(2, -1, *sums.shape[1:]).cumsum(dim=1)
    return running


def fern_codes(X, ferns: PlacedFerns, values) -> None:
    """Write the cell of each row in each fern, (n_ferns, n_rows)."""
    for rows in steps(len(X), _AT_ONCE // max(len(ferns.depths), 1)):
        values[:, rows] = _numbers(X[rows], ferns).t().to(values.dtype)


def fern_scores(X, ferns: PlacedFerns, tables, scores) -> None:
    """Add the table entries of the cells of each row to its scores, which are float64."""
    first = ferns.cell_offsets[:-1]
    for rows in steps(len(X), _AT_ONCE // max(len(ferns.depths), 1)):
        cells = _numbers(X[rows], ferns).long() + first
        for part in steps(cells.shape[1], max(_AT_ONCE // (len(cells) * tables.shape[1]), 1)):
            scores[rows] += tables[cells[:, part]].sum(dim=1)


def _numbers(X, ferns: PlacedFerns) -> Tensor:
    """Return the number of the cell of each row in each fern, (n_rows, n_ferns)."""
    torch = require("torch", "gpu")
    columns = columns_of(X, ferns.n_levels)
    # Sorted by depth, deepest first: the ferns with a stump on some level are always the first.
    order = np.argsort(-ferns.depths, kind="stable")
    by_depth = torch.as_tensor(order, device=X.device)
    stumps = ferns.offsets[:-1][by_depth]
    outcome = torch.zeros((len(X), order.size), dtype=torch.int64, device=X.device)
    for level in range(int(ferns.depths.max(initial=0))):
        on_level = stumps[: int((ferns.depths > level).sum())] + level
        values, starts = columns[ferns.features[on_level]].t(), ferns.set_starts[on_level]
        yes = values > ferns.thresholds[on_level]
        if ferns.n_levels is not None:
            places = torch.where(starts >= 0, starts + values.nan_to_num().long(), 0)
            yes = torch.where(starts >= 0, ferns.members[places].bool(), yes)
        outcome[:, : on_level.numel()].mul_(2).add_(yes)
    # Products of 64-bit integers wrap around alike, signed or not.
    hashed = torch.empty_like(outcome)
    hashed[:, by_depth] = outcome
    hashed.mul_(ferns.factors)
    return ferns.numbers[((hashed >> ferns.shifts) & ferns.masks) + ferns.raw_offsets[:-1]]


def columns_of(X, n_levels) -> Tensor:
    """Return the columns of rows in single precision, (n_features, n_rows).

    Level numbers of categories become the numbers of their cells, see `level_cells`.
    """
    torch = require("torch", "gpu")
    columns = X.t().float().contiguous()
    if n_levels is None:
        return columns
    most = n_levels[:, None]
    cells = columns.clamp(min=0).minimum(most).floor() + 1
    return torch.where(most > 0, cells.masked_fill_(columns.isnan(), 0), columns)

"""Loops over rows in plain Torch: for tests, and for devices without Triton.

Each has a fused form of the same name in `triton_loops`, which reads and writes memory once.
Sums of integers are the same bits everywhere; sums of gains are the same up to rounding.
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

# Sizes of indicators, and of lines of codes, are multiples of this.
TILE = 128
# Numbers that are formed at once: comparisons of rows with stumps, or sums of a histogram.
_AT_ONCE = 32_000_000


class Bins(NamedTuple):
    """How the codes that some ferns ask are put in fewer bins, (code + move) >> shift."""

    # (n_ferns, 5, n_asked): features, their codes in use, bins in use, shifts and moves
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
    depths: NDArray[np.int64]  # (n_ferns,): here


def bin(X, columns, thresholds, values) -> None:
    """Write how many thresholds are below each value of some columns, (n_groups, n_rows).

    Thresholds, (n_groups, most), are in order and filled up with infinity; NaN is above none.
    """
    torch = require("torch", "gpu")
    found = X[:, columns].t().float().contiguous()
    below = torch.searchsorted(thresholds, found, out_int32=True)
    values.copy_(below.masked_fill_(found.isnan(), 0))


def counts(values, n_codes: int) -> Tensor:
    """Return how often each code is in each group, (n_groups, n_codes)."""
    found = values.new_empty((len(values), n_codes), dtype=require("torch", "gpu").int64)
    for group, own in enumerate(values):
        found[group] = own.bincount(minlength=n_codes)
    return found


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
    """Say which rows are in which cells, as 0 and 1 in eight bits: a line a cell, or `by_row`.

    A cell has the number of a group and, within it, its own; codes are of shape (n_groups, n_rows).
    Lines and their number are filled up, with anything, to multiples of `TILE`, as the tensor cores
    want it.
    """
    torch = require("torch", "gpu")
    inside = codes[groups] == numbers[:, None]
    padding = (0, -inside.shape[1] % TILE, 0, -inside.shape[0] % TILE)
    inside = torch.nn.functional.pad(inside.to(torch.int8), padding)
    return inside.t().contiguous() if by_row else inside


def pack_residuals(gradient, curvature, weights, units, packed) -> None:
    """Write weighted gradients and curvatures in units, rounded; those too large are cut off.

    All are single precision but the units, (2,), which are powers of two: steps of one.
    """
    gradient_unit, curvature_unit = units.float()
    g = (gradient * weights[:, None] * gradient_unit).round_().clamp_(-MOST_PACKED, MOST_PACKED)
    h = (curvature * weights[:, None] * curvature_unit).round_().clamp_(max=MOST_PACKED)
    packed.copy_((g.int() << 16) + h.int())


def fern_sums(values, stumps, members, leading, packed, cells) -> Tensor:
    """Write the cell of each row in a fern; return the sums of residuals in the cells.

    The values are codes, (n_groups, n_rows). Stumps, (2, depth), are groups and the last codes on
    their left sides, or -1 where the members, (depth, 256) or None, say which codes are in a set.
    The leading digit of each cell is given. Packed residuals, (n_rows, n_columns), have gradients
    above and curvatures below, in 32 bits; sums are of shape (2^(depth + 1), n_columns, 2).
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
    """Return sums of residuals, (n_ferns, n_asked, n_cells, width, n_columns): by feature and bin.

    Each fern has rows of its own: codes are of shape (n_ferns, n_features, n_rows), cells
    (n_ferns, n_rows). Residuals, (n_ferns, n_rows, n_columns), have gradients above and curvatures
    below, in 64 bits.
    """
    torch = require("torch", "gpu")
    n_ferns, n_rows, n_columns = residuals.shape
    asked, _, _, shifts, moves = bins.numbers.unbind(1)
    n_asked = asked.shape[1]
    own = codes.gather(1, asked[:, :, None].expand(-1, -1, n_rows)).int()
    number = torch.arange(n_ferns * n_asked, device=codes.device).view(n_ferns, n_asked, 1)
    places = (number * n_cells + cells[:, None]) * bins.width
    places += (own + moves[..., None]) >> shifts[..., None]
    sums = residuals.new_zeros((number.numel() * n_cells * bins.width, n_columns))
    spread = residuals[:, None].expand(-1, n_asked, -1, -1).reshape(-1, n_columns)
    sums.index_add_(0, places.reshape(-1), spread)
    return sums.view(n_ferns, n_asked, n_cells, bins.width, n_columns)


def level_gains(codes, cells, n_cells: int, residuals, bins: Bins, ridges) -> Tensor:
    """Return what a cut above each bin of each feature would collect in all cells of its fern.

    That is the sum over cells and columns of gradient^2 / (curvature + ridge) on both sides, of
    shape (n_ferns, n_asked, width); -1 where there is no such bin. Each fern has a ridge.
    """
    torch = require("torch", "gpu")
    n_ferns, n_rows, n_columns = residuals.shape
    n_asked = bins.numbers.shape[2]
    gains = residuals.new_empty((n_ferns, n_asked, bins.width), dtype=torch.float64)
    size = max(n_cells * bins.width, n_rows) * n_columns
    for fern in range(n_ferns):
        own_codes, own_cells, own_residuals = (
            each[fern : fern + 1] for each in (codes, cells, residuals)
        )
        for part in steps(n_asked, max(_AT_ONCE // size, 1)):
            own = Bins(bins.numbers[fern : fern + 1, :, part], bins.width)
            left = level_sums(own_codes, own_cells, n_cells, own_residuals, own)[0].cumsum(dim=2)
            right = left[:, :, -1:] - left
            found = _collected(left, ridges[fern]) + _collected(right, ridges[fern])
            inside = torch.arange(bins.width, device=codes.device) < own.numbers[0, 2, :, None]
            gains[fern, part] = found.sum(dim=(1, 3)).masked_fill(~inside, -1.0)
    return gains


def _collected(sums, ridge) -> Tensor:
    gradient, curvature = (sums >> 32).double(), (sums & 0xFFFFFFFF).double()
    return gradient * gradient / (curvature + ridge)


def divide_cells(codes, best, bins: Bins, cells) -> Tensor:
    """Divide all cells of ferns by their best cuts, in place; return feature and cut of each fern.

    The best is the place of the largest gain: feature times width plus bin.
    """
    torch = require("torch", "gpu")
    place, ferns = best % bins.width, torch.arange(len(best), device=best.device)
    feature, n_codes, _, shift, move = bins.numbers[ferns, :, best // bins.width].unbind(1)
    # A cut above the last code divides nothing.
    cut = torch.minimum(((place + 1) << shift) - move - 1, n_codes - 2)
    cells.mul_(2).add_(codes[ferns, feature] > cut[:, None])
    return torch.stack([feature, cut], dim=1)


def newton_steps(sums, units, ridge) -> tuple[Tensor, Tensor]:
    """Return steps and gains, see `Twins.newton_steps`.

    The units, (2,), are steps of one, of gradients and curvatures; the ridge is a tensor, too.
    """
    torch = require("torch", "gpu")
    running = running_sums(sums)
    step = sums.new_zeros((1, sums.shape[1]), dtype=torch.float64)
    gains = []
    for level in range((len(sums) // 2).bit_length()):
        marks = running[:, :: len(sums) // 2 >> level].double()
        own, other = marks[:, 1:] - marks[:, :-1]
        step = step.repeat_interleave(len(own) // len(step), dim=0)
        gradient, curvature = own[..., 0] / units[0], own[..., 1] / units[1]
        change = -(gradient + curvature * step) / (curvature + ridge)
        slope = other[..., 0] / units[0] + other[..., 1] / units[1] * step
        gains.append(-(change * slope).sum())
        step = step + change
    return step, torch.stack(gains)


def running_sums(sums) -> Tensor:
    """Return sums of all cells before each one, and of all, (2, n_cells + 1, n_columns, 2)."""
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
    # The deepest first: those that have a level more are always the first ones.
    order = np.argsort(-ferns.depths, kind="stable")
    by_depth = torch.as_tensor(order, device=X.device)
    stumps = ferns.offsets[:-1][by_depth]
    outcome = torch.zeros((len(X), order.size), dtype=torch.int64, device=X.device)
    for level in range(int(ferns.depths.max(initial=0))):
        own = stumps[: int((ferns.depths > level).sum())] + level
        values, starts = columns[ferns.features[own]].t(), ferns.set_starts[own]
        yes = values > ferns.thresholds[own]
        if ferns.n_levels is not None:
            places = torch.where(starts >= 0, starts + values.nan_to_num().long(), 0)
            yes = torch.where(starts >= 0, ferns.members[places].bool(), yes)
        outcome[:, : own.numel()].mul_(2).add_(yes)
    # Products of 64-bit integers wrap around alike, signed or not.
    found = torch.empty_like(outcome)
    found[:, by_depth] = outcome
    found.mul_(ferns.factors)
    return ferns.numbers[((found >> ferns.shifts) & ferns.masks) + ferns.raw_offsets[:-1]]


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

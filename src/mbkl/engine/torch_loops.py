"""The loops over ferns in plain Torch: for tests, and for devices without Triton.

Each has a fused form of the same name in `triton_loops`, which reads and writes memory once.
Sums of integers are the same bits everywhere; sums of gains are the same up to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mbkl.engine.rows import steps
from mbkl.extras import require

if TYPE_CHECKING:
    from torch import Tensor

# Numbers that are formed at once: comparisons of rows with stumps, or sums of a histogram.
_AT_ONCE = 32_000_000


class Bins(NamedTuple):
    """How the codes of features are put in fewer bins, (code + move) >> shift.

    Parameters
    ----------
    numbers : tensor of shape (4, n_features)
        Codes in use, bins in use, shifts and moves.
    width : int
        The most bins that a feature has.
    """

    numbers: Tensor
    width: int


class PlacedFerns(NamedTuple):
    """Ferns on a device, see `FernMaps`.

    Parameters
    ----------
    features, thresholds : tensor of shape (n_stumps,)
    offsets, raw_offsets, cell_offsets : tensor of shape (n_ferns + 1,)
    factors, shifts, masks : tensor of shape (n_ferns,)
        An outcome counts as ((outcome * factor) >> shift) & mask.
    numbers : tensor
    depth : int
        Of the deepest.
    """

    features: Tensor
    thresholds: Tensor
    offsets: Tensor
    factors: Tensor
    shifts: Tensor
    masks: Tensor
    raw_offsets: Tensor
    numbers: Tensor
    cell_offsets: Tensor
    depth: int


def fern_sums(values, stumps, leading, packed, cells) -> Tensor:
    """Write the cell of each row in a fern; return the sums of residuals in the cells.

    Parameters
    ----------
    values : tensor of shape (n_groups, n_rows)
    stumps : tensor of shape (2, depth)
        Groups, and the last codes on their left sides.
    leading : tensor of shape (n_rows,)
        First digit of the cell.
    packed : tensor of shape (n_rows, n_columns)
        Gradients above, curvatures below, in 32 bits.
    cells : tensor of shape (n_rows,)

    Returns
    -------
    sums : tensor of shape (2^(depth + 1), n_columns, 2)
    """
    cells.copy_(leading)
    for group, cut in zip(*stumps.tolist(), strict=True):
        cells.mul_(2).add_(values[group] > cut)
    both = require("torch", "gpu").stack([packed >> 16, packed & 0xFFFF], dim=2).long()
    sums = both.new_zeros((2 << stumps.shape[1], *both.shape[1:]))
    return sums.index_add_(0, cells, both)


def level_gains(codes, cells, n_cells: int, residuals, bins: Bins, ridge: float) -> Tensor:
    """Return what a cut above each bin of each feature would collect in all cells.

    Parameters
    ----------
    codes : tensor of shape (n_features, n_rows)
    cells : tensor of shape (n_rows,)
    n_cells : int
    residuals : tensor of shape (n_rows, n_columns)
        Gradients above, curvatures below, in 64 bits.
    bins : Bins
    ridge : float
        Added to the curvature of each side.

    Returns
    -------
    gains : tensor of shape (n_features, width)
        Sum over cells and columns of gradient^2 / curvature on both sides; -1 where there is
        no such bin.
    """
    torch = require("torch", "gpu")
    n_rows, n_columns = residuals.shape
    gains = residuals.new_full((len(codes), bins.width), -1.0, dtype=torch.float64)
    _, lengths, shifts, moves = bins.numbers
    size = max(n_cells * bins.width, n_rows) * n_columns
    for part in steps(len(codes), max(_AT_ONCE // size, 1)):
        places = (codes[part].int() + moves[part, None]) >> shifts[part, None]
        number = torch.arange(len(places), device=codes.device)[:, None]
        places = (number * n_cells + cells) * bins.width + places
        sums = residuals.new_zeros((len(places) * n_cells * bins.width, n_columns))
        spread = residuals.expand(len(places), -1, -1).reshape(-1, n_columns)
        sums.index_add_(0, places.reshape(-1), spread)
        left = sums.view(len(places), n_cells, bins.width, n_columns).cumsum(dim=2)
        found = _collected(left, ridge) + _collected(left[:, :, -1:] - left, ridge)
        inside = torch.arange(bins.width, device=codes.device) < lengths[part, None]
        gains[part] = found.sum(dim=(1, 3)).masked_fill(~inside, -1.0)
    return gains


def _collected(sums, ridge: float) -> Tensor:
    gradient, curvature = (sums >> 32).double(), (sums & 0xFFFFFFFF).double()
    return gradient * gradient / (curvature + ridge)


def divide_cells(codes, best, bins: Bins, cells) -> Tensor:
    """Divide all cells by the best cut, in place; return its feature and the cut.

    Parameters
    ----------
    codes : tensor of shape (n_features, n_rows)
    best : tensor of shape ()
        Place of the largest gain: feature times width plus bin.
    bins : Bins
    cells : tensor of shape (n_rows,)
    """
    torch = require("torch", "gpu")
    feature, place = best // bins.width, best % bins.width
    n_codes, _, shift, move = bins.numbers[:, feature]
    # A cut above the last code divides nothing.
    cut = torch.minimum(((place + 1) << shift) - move - 1, n_codes - 2)
    cells.mul_(2).add_(codes[feature] > cut)
    return torch.stack([feature, cut])


def fern_codes(X, ferns: PlacedFerns, values) -> None:
    """Write the cell of each row in each fern.

    Parameters
    ----------
    X : tensor of shape (n_rows, n_features)
    ferns : PlacedFerns
    values : tensor of shape (n_ferns, n_rows)
    """
    grid = _Grid(ferns)
    for rows in steps(len(X), max(_AT_ONCE // max(grid.features.numel(), 1), 1)):
        values[:, rows] = grid.numbers_of(X[rows]).t().to(values.dtype)


def fern_scores(X, ferns: PlacedFerns, tables, scores) -> None:
    """Add the table entries of the cells of each row to its scores, which are float64.

    Parameters
    ----------
    X : tensor of shape (n_rows, n_features)
    ferns : PlacedFerns
    tables : tensor of shape (n_cells, n_columns)
    scores : tensor of shape (n_rows, n_columns)
    """
    grid = _Grid(ferns)
    first = ferns.cell_offsets[:-1]
    for rows in steps(len(X), max(_AT_ONCE // max(grid.features.numel(), len(first), 1), 1)):
        cells = grid.numbers_of(X[rows]).long() + first
        for part in steps(cells.shape[1], max(_AT_ONCE // (len(cells) * tables.shape[1]), 1)):
            scores[rows] += tables[cells[:, part]].sum(dim=1)


class _Grid:
    """Stumps of ferns side by side, with those of shallow ferns filled up in front."""

    def __init__(self, ferns: PlacedFerns) -> None:
        torch: Any = require("torch", "gpu")
        device = ferns.features.device
        level = torch.arange(ferns.depth, device=device)
        place = ferns.offsets[1:, None] - ferns.depth + level
        absent = place < ferns.offsets[:-1, None]
        place = place.clamp_(min=0)
        self.features = ferns.features[place]
        self.thresholds = ferns.thresholds[place].masked_fill(absent, torch.inf)
        self.digits = torch.ones((), dtype=torch.int64, device=device) << level.flip(0)
        self.ferns = ferns

    def numbers_of(self, X) -> Tensor:
        """Return the number of the cell of each row in each fern, (n_rows, n_ferns)."""
        ferns = self.ferns
        yes = X.float()[:, self.features] > self.thresholds
        # Products and sums of 64-bit integers wrap around alike, signed or not.
        outcome = (yes * self.digits).sum(dim=2)
        outcome = ((outcome * ferns.factors) >> ferns.shifts) & ferns.masks
        return ferns.numbers[outcome + ferns.raw_offsets[:-1]]

"""Ferns grown on rows that stay on a device: ferns go there, sums over their cells come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import torch_loops
from mbkl.engine.arrays import numbers_below, to_host
from mbkl.engine.device import DeviceCodes
from mbkl.engine.rows import steps
from mbkl.engine.torch_keys import draw
from mbkl.engine.torch_loops import Bins
from mbkl.engine.twins import MOST_PACKED, ROWS_PACKED
from mbkl.maps.categories import N_CODES, N_POWERS, TOLD_APART
from mbkl.maps.growing_rows import (
    SAMPLE_UNIT,
    UNIT_OF_LOSS,
    Chosen,
    Draft,
    Objective,
    bins_of_a_cell,
    growing_rows,
)

if TYPE_CHECKING:
    from torch import Tensor

# What the residual of a row and column takes while it is computed.
_BYTES_OF_A_RESIDUAL = 64
# Stands for codes of numbers, which keep their order.
_IN_ORDER = np.uint8(2)
# Sizes of samples for which kernels are kept at once: sizes change as ferns get deeper.
_MOST_CHOOSERS = 12
# Samples are drawn by chance: there is room for so many times as many rows, so that nearly all
# samples of a depth share their kernels.
_HEADROOM = 1.06


@dataclass(frozen=True)
class DeviceSample:
    """Rows on which the stumps of a fern are chosen, see `GrowthSample`."""

    codes: Tensor  # (n_features, n_rows)
    residuals: Tensor  # (n_rows, n_columns)
    device: Any

    @property
    def n_rows(self) -> int:
        return len(self.residuals)

    def choose(self, draft: Draft) -> Chosen:
        """Return the stump of each level; all are chosen before any comes back."""
        asked, shifts, moves = draft.levels
        (n_levels, n_asked), is_category = asked.shape, draft.is_category
        own = draft.n_codes[asked]
        lengths = ((own - 1 + moves) >> shifts) + 1
        numbers = np.stack([asked, own, lengths, shifts, moves], axis=1)
        categories = np.flatnonzero(is_category)
        told_apart = None
        if categories.size:
            told_apart = np.full((n_levels, is_category.size, N_CODES), _IN_ORDER)
            chances = draft.generator.random((n_levels, categories.size, N_CODES))
            told_apart[:, categories] = chances < TOLD_APART
            told_apart = np.take_along_axis(told_apart, asked[:, :, None], axis=1)
        most_codes = int(draft.n_codes.max())
        chooser = self._chooser(n_levels, n_asked, most_codes, told_apart is not None)
        found = to_host(chooser.choose(self, numbers, draft.ridge, told_apart))
        features, cuts = found[:, :2].T.astype(np.int64)
        gains, ranks = np.split(found[:, 2:], [n_asked], axis=1)
        usual = 2 * ranks[:, :1].sum(axis=1) > self.n_rows
        members = ranks[:, 1:] > cuts[:, None]
        return Chosen(features, np.where(is_category[features], -1, cuts), members, usual, gains)

    def _chooser(
        self, n_levels: int, n_asked: int, most_codes: int, has_categories: bool
    ) -> _Chooser:
        """Return what chooses the stumps of samples of about this size."""
        n_rows = int(_HEADROOM * self.n_rows)
        unit = 1 << max(n_rows.bit_length() - 4, 0)
        capacity = -(-n_rows // unit) * unit
        # Few different widths: a power of two, and one bin more for what codes are moved by.
        most = [bins_of_a_cell(capacity >> level) for level in range(n_levels)]
        widths = [(1 << (min(each, most_codes) - 1).bit_length()) + 1 for each in most]
        sizes = (capacity, self.codes.shape[0], self.residuals.shape[1])
        key = (*sizes, n_asked, tuple(widths), has_categories)
        choosers = self.device.choosers
        # The one that was not used for longest goes, for its memory.
        chooser = choosers.pop(key, None)
        if chooser is None:
            if len(choosers) == _MOST_CHOOSERS:
                del choosers[next(iter(choosers))]
            chooser = _Chooser(self, capacity, n_asked, tuple(widths), has_categories)
        choosers[key] = chooser
        return chooser


class _Chooser:
    """Room for samples of a size, and the kernels that choose their stumps level by level.

    These are small and many, so that they are recorded. The capacity is the largest number of
    rows, and widths are the largest numbers of bins of each level.
    """

    def __init__(
        self,
        sample: DeviceSample,
        capacity: int,
        n_asked: int,
        widths: tuple[int, ...],
        has_categories: bool,
    ) -> None:
        self._device, self._widths = sample.device, widths
        (n_features, _), (_, n_columns) = sample.codes.shape, sample.residuals.shape
        self._codes = sample.codes.new_zeros((n_features, capacity))
        self._residuals = sample.residuals.new_empty((capacity, n_columns))
        self._numbers = self._residuals.new_empty((len(widths), 5, n_asked))
        self._ridge = self._residuals.new_empty((), dtype=self._device.torch.float64)
        self._cells = self._residuals.new_empty(capacity, dtype=self._device.torch.int32)
        self._told_apart: Tensor | None = None
        if has_categories:
            self._told_apart = self._codes.new_empty((len(widths), n_asked, N_CODES))
            self._zeros = self._cells.new_zeros(capacity)
            self._inside = self._cells.new_empty(capacity)
        self._recorded = self._device.repeated(self._run, self._device.can_record)

    def choose(
        self,
        sample: DeviceSample,
        numbers: NDArray[np.int64],
        ridge: float,
        told_apart: NDArray[np.uint8] | None,
    ) -> Tensor:
        """Return for each level feature, cut and what the features that are asked would collect.

        With categories follow how many rows are above the cut, and the place of each code of the
        feature. Numbers are of shape (n_levels, 5, n_asked), see `Bins`; which codes of categories
        are put in order of shape (n_levels, n_asked, 256), with _IN_ORDER for those of numbers.
        """
        self._codes[:, : sample.n_rows] = sample.codes
        self._residuals[: sample.n_rows] = sample.residuals
        # Rows that add nothing, with codes that all features have.
        self._codes[:, sample.n_rows :], self._residuals[sample.n_rows :] = 0, 0
        self._numbers.copy_(self._device.place(numbers))
        self._ridge.fill_(ridge)
        if self._told_apart is not None:
            self._told_apart.copy_(self._device.place(told_apart))
            self._inside[: sample.n_rows], self._inside[sample.n_rows :] = 1, 0
        return self._recorded()

    def _run(self) -> Tensor:
        torch, loops, found = self._device.torch, self._device.loops, []
        self._cells.zero_()
        for level, width in enumerate(self._widths):
            bins, codes = Bins(self._numbers[level], width), self._codes
            if self._told_apart is not None:
                ranks = self._ranks(level, bins.numbers)
                codes = ranks.gather(1, codes[bins.numbers[0]].long()).to(codes.dtype)
                places = torch.arange(len(codes), device=codes.device)
                bins = Bins(torch.cat([places[None], bins.numbers[1:]]), width)
            sizes = (self._cells, 1 << level, self._residuals)
            gains = loops.level_gains(codes, *sizes, bins, self._ridge)
            stump = loops.divide_cells(codes, gains.argmax(), bins, self._cells)
            parts = [stump, gains.amax(dim=1)]
            if self._told_apart is not None:
                place, cut = stump[:1], stump[1:]
                feature = self._numbers[level, 0].index_select(0, place)
                # The last digit of a cell is the answer to this stump.
                n_above = (self._cells & self._inside).sum()
                own_ranks = ranks.index_select(0, place)[0]
                parts = [feature, cut, parts[1], n_above[None], own_ranks]
            found.append(torch.cat([part.double() for part in parts]))
        return torch.stack(found)

    def _ranks(self, level: int, numbers: Tensor) -> Tensor:
        """Return the place of each code of the features that a level asks, (n_asked, 256)."""
        torch, told_apart = self._device.torch, self._told_apart[level]  # type: ignore[index]
        gradient, curvature = beyond_cells(self._residuals, self._cells, 1 << level, self._ridge)
        zeros = torch.zeros_like(numbers[:1])
        bins = Bins(torch.cat([numbers[:3], zeros, zeros]), N_CODES)
        both = (gradient << 32) + curvature
        sums = self._device.loops.level_sums(self._codes, self._zeros, 1, both, bins)[:, 0]
        gradient, curvature = sums >> 32, sums & 0xFFFFFFFF
        steps = gradient / (curvature + self._ridge) * (told_apart == 1)[..., None]
        codes = torch.arange(N_CODES, device=sums.device).expand(len(sums), -1)
        places = along(steps, curvature) + 0.0  # which has no negative zero
        places = places.masked_fill(codes >= numbers[1][:, None], torch.inf)
        order = torch.where(told_apart == _IN_ORDER, codes, places).argsort(dim=1, stable=True)
        return torch.empty_like(order).scatter_(1, order, codes)


def beyond_cells(residuals, cells, n_cells: int, ridge) -> tuple[Tensor, Tensor]:
    """Return gradients less what the step of their cell explains, and curvatures."""
    gradient, curvature = residuals >> 32, residuals & 0xFFFFFFFF
    totals = residuals.new_zeros((n_cells, residuals.shape[1])).index_add_(0, cells, residuals)
    steps = (totals >> 32) / ((totals & 0xFFFFFFFF) + ridge)
    return gradient - (curvature * steps[cells]).round().long(), curvature


def along(steps, mass) -> Tensor:
    """Return the steps of the levels of each category along their leading direction.

    Steps and mass are of shape (n_categories, n_levels, n_columns).
    """
    if steps.shape[2] == 1:
        return steps[:, :, 0]
    spread = ((steps * mass)[..., None] * steps[:, :, None]).sum(dim=1)
    best = spread.diagonal(dim1=1, dim2=2).argmax(dim=1)
    direction = (numbers_below(steps.shape[2], steps) == best[:, None]).to(steps.dtype)
    for _ in range(N_POWERS):
        direction = (spread * direction[:, None]).sum(dim=2)
        direction = direction / direction.norm(dim=1, keepdim=True).clamp(min=1e-300)
    return (steps * direction[:, None]).sum(dim=2)


class DeviceGrowingRows:
    """What `GrowingRows` are, on a device; rows to hold out are drawn, and tables stay there."""

    def __init__(
        self, codes: DeviceCodes, objective: Objective, y, weights, keys, seed: int, levels=None
    ) -> None:
        self._device, self._torch = codes.device, codes.device.torch
        self._values, self._objective, self._seed = codes.values, objective, seed
        self._levels, self._wide, self._keys = y, levels, codes.place(keys)
        self._y = codes.place(objective.of_rows(y))
        self._weights = codes.place(weights, self._torch.float32)
        self.offsets, self.n_rows = codes.offsets, codes.n_rows
        self._cells = self._keys.new_empty(self.n_rows, dtype=self._torch.int32)
        self._heaviest = self._by_block(self._weights)
        self._even = bool((self._weights == self._weights[:1]).all())
        self._choose_held_out(self._weights.new_zeros(self.n_rows, dtype=self._torch.bool))

    def hold_out(self, share: float) -> int:
        self._choose_held_out(draw(self._keys, 2 * self._seed + 1) < int(share * 2**32))
        return self._held_out_rows.numel()

    def start(self) -> NDArray[np.float32]:
        weights = self._weights.double().masked_fill(self._leading.bool(), 0.0)
        if self._objective.is_numeric:
            return self._objective.start(self._levels, to_host(weights))
        return self._objective.start(self._y, weights)

    def begin(self, intercept: NDArray[np.float32]) -> None:
        bytes_of_a_row = _BYTES_OF_A_RESIDUAL * intercept.size
        n_rows = self._device.at_once(self.n_rows, bytes_of_a_row)
        self._at_once = -(-n_rows // ROWS_PACKED) * ROWS_PACKED
        needed = 8 * intercept.size * self.n_rows + min(ROWS_PACKED, self.n_rows) * bytes_of_a_row
        self._device.check_room(needed, "The scores and residuals of the rows")
        self._scores = self._device.place(intercept).repeat(self.n_rows, 1)
        self._packed = self._scores.new_empty(self._scores.shape, dtype=self._torch.int32)
        self._units = self._scores.new_empty(2)
        self._recorded = self._device.repeated(self._residuals_anew, self._device.can_record)

    def refresh(self, units: tuple, table: Tensor | NDArray | None) -> NDArray[np.float64]:
        if table is not None:
            table = self._device.place(table)
            both = self._torch.cat([table, table])
            for rows in self._blocks():
                self._scores[rows] += both.index_select(0, self._cells[rows])
        self._units.copy_(self._device.place(np.array(units)))
        # One copy to the host brings the loss too, which is asked for next.
        *found, loss = to_host(self._recorded()).tolist()
        self._loss = loss * UNIT_OF_LOSS
        return np.array(found)

    def fill(self, features: NDArray[np.intp], cuts: NDArray[np.int64], members) -> Tensor:
        place, torch = self._device.place, self._torch
        stumps = place(np.stack([features, cuts]).astype(np.int32))
        sets = place(members, torch.uint8) if (cuts < 0).any() else None
        rows = (self._leading, self._packed, self._cells)
        return self._device.loops.fern_sums(self._values, stumps, sets, *rows)

    def fill_levels(self, group: int) -> NDArray[np.int64]:
        n_cells = int(np.diff(self._wide.offsets)[group])
        self._cells.copy_(self._wide.values[group]).add_(self._leading, alpha=n_cells)
        sums = sum(
            torch_loops.cell_sums(self._cells[rows], self._packed[rows], 2 * n_cells)
            for rows in self._blocks()
        )
        return to_host(sums)

    def table(
        self, features, cuts, members, units: NDArray[np.float64], ridge: float, rate: float
    ) -> tuple[Tensor, NDArray[np.float64]]:
        sums = self.fill(features, cuts, members)
        step, gains = self._device.loops.newton_steps(sums, units, ridge)
        return (rate * step).float(), to_host(gains)

    def held_out_loss(self) -> float:
        return self._loss

    def held_out_scores(self) -> tuple[NDArray[np.float32], NDArray]:
        rows = self._held_out_rows if self._objective.is_numeric else self._held_out_rows[:0]
        return to_host(self._scores[rows]), self._levels[to_host(rows)]

    def size_of_share(self, number: int, n_shares: int, columns: NDArray[np.intp]):
        rows = self._share(number, n_shares)
        gradient, curvature = self._found = self._residuals(rows, columns)
        squares = (gradient * gradient + curvature * curvature).sum(dim=1)
        self._magnitudes = squares.double().sqrt().long() + 1
        return np.array([rows.numel(), int(self._magnitudes.sum())])

    def sample(
        self, number: int, n_shares: int, features, columns, chance: float | None
    ) -> DeviceSample:
        rows = self._share(number, n_shares)
        gradient, curvature = self._found
        if chance is not None:
            own = self._magnitudes * chance
            draws = draw(self._keys[rows], 7_368_787 * (self._seed + 1) + number)
            drawn = (draws < own * 2**32).nonzero()[:, 0]
            rows, own = rows[drawn], own[drawn, None].clamp(max=1.0)
            gradient, curvature = gradient[drawn] / own, curvature[drawn] / own
        gradient = (gradient / SAMPLE_UNIT).round().long()
        residuals = (gradient << 32) + (curvature / SAMPLE_UNIT).round().long()
        codes = self._values
        if len(features) < len(codes):
            codes = codes[self._device.place(features)]
        return DeviceSample(codes.index_select(1, rows), residuals, self._device)

    def choose(self, drafts: Sequence[Draft]) -> list[Chosen]:
        return [draft.choose() for draft in drafts]

    def _choose_held_out(self, mask: Tensor) -> None:
        self._leading = mask.to(self._torch.uint8)
        self._held_out_rows = mask.nonzero()[:, 0]
        self._training_rows = (~mask).nonzero()[:, 0]
        self._shares: tuple[Any, Any] = (None, [])

    def _blocks(self) -> Iterator[slice]:
        """Yield blocks of rows that memory suffices for; nearly always one."""
        return steps(self.n_rows, self._at_once)

    def _largest(self, values: Tensor, heaviest: Tensor) -> Tensor:
        """Return the bound of values times weights that the CPU finds, block by block of rows."""
        if self._even:
            return values.max().double() * heaviest[0]
        return (self._by_block(values.amax(dim=1)) * heaviest).max()

    def _by_block(self, values: Tensor) -> Tensor:
        """Return the largest of each block of rows."""
        whole = self._torch.nn.functional.pad(values, (0, -len(values) % ROWS_PACKED))
        return whole.view(-1, ROWS_PACKED).amax(dim=1).double()

    def _residuals_anew(self) -> Tensor:
        """Compute the residuals; return bounds of both kinds, and the loss of held-out rows."""
        bounds = [self._residuals_of(rows) for rows in self._blocks()]
        largest = bounds[0] if len(bounds) == 1 else self._torch.stack(bounds).amax(dim=0)
        return self._torch.cat([largest, self._sum_of_losses()[None]])

    def _residuals_of(self, rows: slice) -> Tensor:
        """Compute the residuals of some rows; return bounds of both kinds."""
        gradient, curvature = self._objective.derivatives(self._scores[rows], self._y[rows])
        weights, (gradient_unit, curvature_unit) = self._weights[rows, None], self._units
        heaviest = self._heaviest[rows.start // ROWS_PACKED : -(-rows.stop // ROWS_PACKED)]
        largest = [self._largest(gradient.abs(), heaviest), self._largest(curvature, heaviest)]
        g = (gradient * weights * gradient_unit).round_().clamp_(-MOST_PACKED, MOST_PACKED)
        h = (curvature * weights * curvature_unit).round_().clamp_(max=MOST_PACKED)
        self._packed[rows] = (g.int() << 16) + h.int()
        return self._torch.stack(largest)

    def _sum_of_losses(self) -> Tensor:
        """Return the sum of the losses of the rows that take no part, in small units."""
        rows = self._held_out_rows
        losses = self._objective.value(self._scores[rows], self._y[rows]) * self._weights[rows]
        return (losses.double() / UNIT_OF_LOSS).round().sum()

    def _residuals(self, rows: Tensor, columns) -> tuple[Tensor, Tensor]:
        packed = self._packed[rows]
        if len(columns) < packed.shape[1]:
            packed = packed[:, self._device.place(columns)]
        return (packed >> 16).long(), (packed & 0xFFFF).long()

    def _share(self, number: int, n_shares: int) -> Tensor:
        rows = self._training_rows
        if n_shares == 1:
            return rows
        epoch, share = divmod(number, n_shares)
        if self._shares[0] != (epoch, n_shares):
            draws = draw(self._keys[rows], 1_000_003 * (self._seed + 1) + epoch)
            shares, order = ((draws * n_shares) >> 32).sort(stable=True)
            sizes = self._torch.bincount(shares, minlength=n_shares).tolist()
            self._shares = ((epoch, n_shares), rows[order].split(sizes))
        return self._shares[1][share]


growing_rows.register(DeviceCodes, DeviceGrowingRows)

"""Ferns grown on rows that stay on a device; only stumps, gains and losses are copied.

A fern takes hundreds of short calls, and starting them one by one takes longer than running them.
So the calls of several ferns are recorded as a CUDA graph, without waiting for results in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import numbers_below, to_host
from mbkl.engine.device import DeviceCodes
from mbkl.engine.rows import steps
from mbkl.engine.torch_keys import draw
from mbkl.engine.torch_loops import Bins
from mbkl.engine.twins import N_POWERS, ROWS_PACKED
from mbkl.maps.categories import N_CODES, draw_ranked
from mbkl.maps.growing_rows import (
    RESIDUAL_BITS,
    SALTS_OF_SAMPLES,
    SALTS_OF_SHARES,
    SAMPLE_UNIT,
    SMALLEST_RESIDUAL,
    UNIT_OF_LOSS,
    Added,
    Chosen,
    Draft,
    bins_of_a_cell,
    growing_rows,
    rows_of_a_fern,
)
from mbkl.maps.growth_losses import Objective

if TYPE_CHECKING:
    from torch import Tensor

# Memory for the residual of a row and column while it is computed.
_BYTES_OF_A_RESIDUAL = 64
# The biased exponents of a unit and of the largest value add up to this (doubles of IEEE 754).
_EXPONENTS = 2 * 1023 - 1 + RESIDUAL_BITS
# Most ferns that one recording adds.
_TOGETHER = 4
# About how many sums the cells of a level have, copies included: rows that add to the same sum wait
# for each other.
_SUMS_APART = 4_096
# Marks the codes of numbers, whose ranks are the codes themselves.
_IN_ORDER = np.uint8(2)


def with_room(expected: int) -> int:
    """Return an upper bound, of six standard deviations, of a random number of rows.

    >>> with_room(10_000)
    10600
    """
    return expected + int(6 * np.sqrt(expected))


class _Chooser:
    """A recording that draws the rows of some ferns and chooses their stumps level by level.

    All ferns have as many levels, features and rows as the drafts it is made for.
    """

    def __init__(
        self, growing: DeviceGrowingRows, drafts: Sequence[Draft], has_categories: bool
    ) -> None:
        self._growing, self._device, draft = growing, growing.device, drafts[0]
        torch, place = self._device.torch, self._device.place
        n_ferns, (n_levels, n_asked) = len(drafts), draft.levels.asked.shape
        n_all = growing.n_training
        self._is_drawn = n_all > draft.n_wanted
        expected = rows_of_a_fern(n_all, draft.n_shares, draft.n_wanted)
        self._n_rows = with_room(expected) if self._is_drawn else n_all
        self._n_of_share = n_all if draft.n_shares == 1 else with_room(n_all // draft.n_shares)
        # Widths are powers of two, so that few are compiled, plus a bin for codes that are moved.
        most = [bins_of_a_cell(expected >> level) for level in range(n_levels)]
        largest = int(np.diff(growing.offsets).max())
        self._widths = [(1 << (min(each, largest) - 1).bit_length()) + 1 for each in most]
        # All integer inputs are parts of one tensor, so that one copy brings them to the device.
        sizes = [n_ferns, n_ferns, n_ferns * draft.features.size, n_ferns * draft.columns.size]
        sizes.append(n_levels * n_ferns * 5 * n_asked)
        self._input = place(np.zeros(sum(sizes), np.int64))
        parts = self._input.split(sizes)
        self._salts, self._n_in_share = parts[0][:, None], parts[1][:, None]
        self._features, self._columns = parts[2].view(n_ferns, -1), parts[3].view(n_ferns, -1)
        self._numbers = parts[4].view(n_levels, n_ferns, 5, n_asked)
        self._wanted, self._ridges = place(np.zeros((2, n_ferns)))
        self._share = growing.training_rows.expand(n_ferns, -1)
        if draft.n_shares > 1:
            self._share = self._input.new_zeros((n_ferns, self._n_of_share))
        self._is_ranked: Tensor | None = None
        if has_categories:
            shape = (n_levels, n_ferns, n_asked, N_CODES)
            self._is_ranked = torch.empty(shape, dtype=torch.uint8, device=self._device.device)
        self._choose = self._device.repeated(self._run, growing.room)

    def choose(self, drafts: Sequence[Draft], ridge: float) -> list[Chosen]:
        """Return the stumps of each fern."""
        growing = self._growing
        shares = [growing.share(draft.number, draft.n_shares) for draft in drafts]
        if drafts[0].n_shares > 1:
            for target, share in zip(self._share, shares, strict=True):
                target[: share.numel()] = share[: target.numel()]
        n_in_share = [min(share.numel(), self._n_of_share) for share in shares]
        numbers = np.stack([_numbers_of(draft) for draft in drafts], axis=1)
        salts = np.array([draft.number for draft in drafts]) + growing.salt_of_samples
        features = [each for draft in drafts for each in draft.features]
        columns = [each for draft in drafts for each in draft.columns]
        parts: Any = [salts, n_in_share, features, columns, numbers.ravel()]
        self._input.copy_(self._device.place(np.concatenate(parts).astype(np.int64)))
        self._wanted.fill_(drafts[0].n_wanted)
        share_seen = np.array(n_in_share) / max(growing.n_training, 1)
        self._ridges.copy_(self._device.place(ridge * share_seen / SAMPLE_UNIT))
        if self._is_ranked is not None:
            is_ranked = np.stack([_is_ranked(draft) for draft in drafts], axis=1)
            self._is_ranked.copy_(self._device.place(is_ranked))
        results = to_host(self._choose())
        return [self._chosen(draft, result) for draft, result in zip(drafts, results, strict=True)]

    def _chosen(self, draft: Draft, result: NDArray[np.float64]) -> Chosen:
        """Return the stumps of one fern from its part of the result of `_run`."""
        n_asked = draft.levels.asked.shape[1]
        gains, stumps, ranks = np.split(result, [n_asked, n_asked + 3], axis=1)
        n_drawn, features, cuts = stumps.T.astype(np.int64)
        usual = 2 * ranks[:, :1].sum(axis=1) > n_drawn
        members = np.zeros((len(cuts), N_CODES), dtype=bool)
        if ranks.size:
            members = ranks[:, 1:] > cuts[:, None]
        is_category = draft.is_category[features]
        return Chosen(features, np.where(is_category, -1, cuts), members, usual, gains)

    def _run(self) -> Tensor:
        """Return the results of each fern and level, (n_ferns, n_levels, ...).

        They are the gains of the features asked, the number of rows drawn, feature and cut; with
        categories also the number of rows above the cut and the ranks of the feature's codes.
        """
        torch, loops = self._device.torch, self._device.loops
        codes, residuals, inside = self._sample()
        ridges = self._ridges * self._growing.units[1]
        cells = torch.zeros(inside.shape, dtype=torch.int32, device=inside.device)
        stumps, best_gains = [], []
        for level, width in enumerate(self._widths):
            bins, ranked = Bins(self._numbers[level], width), codes
            if self._is_ranked is not None:
                ranks = self._ranks(level, codes, residuals, cells, ridges)
                asked_codes = _take_features(codes, bins.numbers[:, 0]).long()
                ranked = ranks.gather(2, asked_codes).to(codes.dtype)
                places = torch.arange(ranks.shape[1], device=codes.device)
                places = places.expand(len(ranks), 1, -1)
                bins = Bins(torch.cat([places, bins.numbers[:, 1:]], dim=1), width)
            gains = loops.level_gains(ranked, cells, 1 << level, residuals, bins, ridges)
            best = gains.flatten(1).argmax(dim=1)
            stump = loops.divide_cells(ranked, best, bins, cells)
            best_gains.append(gains.amax(dim=2))
            if self._is_ranked is not None:
                place, cut = stump[:, :1], stump[:, 1:]
                feature = self._numbers[level, :, 0].gather(1, place)
                # The last bit of a cell is the answer to this stump.
                n_above = (cells & inside).sum(dim=1, keepdim=True)
                feature_ranks = _take_features(ranks, place)[:, 0]
                stump = torch.cat([feature, cut, n_above, feature_ranks], dim=1)
            stumps.append(stump)
        n_drawn = inside.sum(dim=1)[:, None, None].expand(-1, len(stumps), -1)
        integers = torch.cat([n_drawn, torch.stack(stumps, dim=1)], dim=2)
        return torch.cat([torch.stack(best_gains, dim=1), integers.double()], dim=2)

    def _sample(self) -> tuple[Tensor, Tensor, Tensor]:
        """Draw rows of the shares in proportion to their residuals, see `GrowingRows.samples`.

        Returned are codes, (n_ferns, n_features, n_rows), residuals, (n_ferns, n_rows, n_columns),
        and which rows were drawn; the others are padding, with zero residuals and any valid codes.
        """
        torch, growing = self._device.torch, self._growing
        rows, shares = self._share, None
        inside = torch.arange(rows.shape[1], device=rows.device) < self._n_in_share
        if self._is_drawn:
            gradient, curvature = growing.residuals(rows, self._columns)
            squares = (gradient * gradient + curvature * curvature).sum(dim=2)
            sizes = (squares.double().sqrt().long() + 1).masked_fill_(~inside, 0)
            chances = sizes * (self._wanted / sizes.sum(dim=1).double())[:, None]
            draws = draw(growing.keys[rows], self._salts)
            drawn = (draws < chances * 2**32) & inside
            place = drawn.cumsum(dim=1) - 1
            # Rows that are not drawn, or do not fit, go to the last place, which is cut off.
            place = place.masked_fill_(~drawn, self._n_rows).clamp_(max=self._n_rows)
            shape = (len(rows), self._n_rows + 1)
            rows = rows.new_zeros(shape).scatter_(1, place, rows)[:, :-1]
            shares = chances.new_ones(shape).scatter_(1, place, chances.clamp_(max=1.0))[:, :-1]
            inside = torch.arange(self._n_rows, device=rows.device) < drawn.sum(1, keepdim=True)
        gradient, curvature = growing.residuals(rows, self._columns)
        if shares is not None:
            gradient, curvature = gradient / shares[..., None], curvature / shares[..., None]
        gradient = (gradient / SAMPLE_UNIT).round().long()
        residuals = (gradient << 32) + (curvature / SAMPLE_UNIT).round().long()
        codes = growing.values[self._features[:, :, None], rows[:, None]]
        return codes, residuals.masked_fill_(~inside[..., None], 0), inside

    def _ranks(self, level: int, codes, residuals, cells, ridges) -> Tensor:
        """Return the ranks of the codes of the features asked, (n_ferns, n_asked, 256)."""
        torch, is_ranked = self._device.torch, self._is_ranked[level]  # type: ignore[index]
        numbers, loops = self._numbers[level], self._device.loops
        gradient, curvature = beyond_cells(residuals, cells, 1 << level, ridges)
        zeros = torch.zeros_like(numbers[:, :2])
        bins = Bins(torch.cat([numbers[:, :3], zeros], dim=1), N_CODES)
        both = (gradient << 32) + curvature
        sums = loops.level_sums(codes, torch.zeros_like(cells), 1, both, bins)[:, :, 0]
        gradient, curvature = sums >> 32, sums & 0xFFFFFFFF
        steps = gradient / (curvature + ridges[:, None, None, None]) * (is_ranked == 1)[..., None]
        in_order = torch.arange(N_CODES, device=sums.device).expand(*sums.shape[:3])
        # Adding 0.0 turns -0.0 into 0.0.
        places = along(steps.flatten(0, 1), curvature.flatten(0, 1)).view(in_order.shape) + 0.0
        places = places.masked_fill(in_order >= numbers[:, 1, :, None], torch.inf)
        order = torch.where(is_ranked == _IN_ORDER, in_order, places).argsort(dim=2, stable=True)
        return torch.empty_like(order).scatter_(2, order, in_order)


def _numbers_of(draft: Draft) -> NDArray[np.int64]:
    """Return the numbers of `Bins` for each level, (n_levels, 5, n_asked)."""
    asked, shifts, moves = draft.levels
    n_codes = draft.n_codes[asked]
    lengths = ((n_codes - 1 + moves) >> shifts) + 1
    return np.stack([asked, n_codes, lengths, shifts, moves], axis=1)


def _is_ranked(draft: Draft) -> NDArray[np.uint8]:
    """Return which codes of the features asked are ranked, (n_levels, n_asked, 256)."""
    asked, categories = draft.levels.asked, np.flatnonzero(draft.is_category)
    is_ranked = np.full((len(asked), draft.is_category.size, N_CODES), _IN_ORDER)
    if categories.size:
        n_codes = draft.n_codes[categories]
        is_ranked[:, categories] = draw_ranked(n_codes, len(asked), draft.generator)
    return np.take_along_axis(is_ranked, asked[:, :, None], axis=1)


def _take_features(values: Tensor, features: Tensor) -> Tensor:
    """Return the values of some features of each fern, along the second axis."""
    return values.gather(1, features[:, :, None].expand(-1, -1, values.shape[2]))


def beyond_cells(residuals, cells, n_cells: int, ridges) -> tuple[Tensor, Tensor]:
    """Return gradients after the Newton step of their cell, and curvatures, for each fern."""
    gradient, curvature = residuals >> 32, residuals & 0xFFFFFFFF
    n_ferns, n_rows, n_columns = residuals.shape
    fern_cells = (cells + n_cells * numbers_below(n_ferns, cells)[:, None]).flatten()
    # Several copies of the sums, as rows that add to the same sum wait for each other.
    n_parts = max(_SUMS_APART // n_cells, 1)
    part = numbers_below(n_ferns * n_rows, cells) % n_parts
    totals = residuals.new_zeros((n_parts * n_ferns * n_cells, n_columns))
    totals.index_add_(0, part * (n_ferns * n_cells) + fern_cells, residuals.flatten(0, 1))
    totals = totals.view(n_parts, -1, n_columns).sum(dim=0)
    steps = (totals >> 32) / ((totals & 0xFFFFFFFF) + ridges.repeat_interleave(n_cells)[:, None])
    return gradient - (curvature * steps[fern_cells].view_as(gradient)).round().long(), curvature


def along(steps, mass) -> Tensor:
    """Project the steps of the levels of each category on their leading direction.

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


class _Adder:
    """A recording that fills the tables of some ferns of one depth and adds them to the scores."""

    def __init__(
        self, growing: DeviceGrowingRows, n_ferns: int, depth: int, has_sets: bool, n_ridges: int
    ) -> None:
        self._growing, self._depth, place = growing, depth, growing.device.place
        self._stumps = place(np.zeros((n_ferns, 2, depth), np.int32))
        self._members: Any = [None] * n_ferns
        if has_sets:
            self._members = place(np.zeros((n_ferns, depth, N_CODES), np.uint8))
        self._rates, self._ridges = place(np.zeros(n_ferns)), place(np.zeros(n_ridges))
        self._used = place(np.zeros(1, dtype=np.int64))
        self._add = growing.device.repeated(self._run, growing.room)

    def add(self, ferns: Sequence[Chosen], rates: Sequence[float], ridges, used: int):
        """Return tables, and merits, gains and losses, as tensors without waiting for them."""
        place = self._growing.device.place
        stumps = [np.stack([fern.features, fern.cuts]) for fern in ferns]
        self._stumps.copy_(place(np.stack(stumps).astype(np.int32)))
        if self._members[0] is not None:
            members = np.stack([fern.members for fern in ferns])
            self._members.copy_(place(members.astype(np.uint8)))
        self._rates.copy_(place(np.array(rates)))
        self._ridges.copy_(place(np.array(ridges)))
        self._used.fill_(used)
        tables, reports = self._add()
        return tables.clone(), reports.clone()

    def _run(self) -> tuple[Tensor, Tensor]:
        """Return tables, (n_ferns, n_cells, n_columns), and merits, gains and loss of each fern."""
        growing, torch, loops = self._growing, self._growing.torch, self._growing.device.loops
        tables, reports = [], []
        for stumps, members, rate in zip(self._stumps, self._members, self._rates, strict=True):
            sums = growing.sums(stumps, members)
            by_ridge = [loops.newton_steps(sums, growing.units, ridge) for ridge in self._ridges]
            held_out = sums[len(sums) // 2 :] / growing.units
            merits = [merit for steps, _ in by_ridge for merit in _merit_of(steps, held_out)]
            steps, gains = (torch.stack(each)[self._used][0] for each in zip(*by_ridge))
            tables.append((rate * steps).float())
            loss = growing.update(tables[-1])
            reports.append(torch.cat([torch.stack(merits), gains, loss[None]]))
        return torch.stack(tables), torch.stack(reports)


def _merit_of(steps: Tensor, held_out: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gain of steps on held-out rows and their squared length there; see `Added`.

    `held_out` has the gradients and curvatures of these rows, (n_cells, n_columns, 2).
    """
    return -(steps * held_out[..., 0]).sum(), (steps**2 * held_out[..., 1]).sum()


class DeviceGrowingRows:
    """Growing rows on a device, where tables stay; see `GrowingRows` for the methods."""

    def __init__(
        self, codes: DeviceCodes, objective: Objective, y, weights, keys, seed: int
    ) -> None:
        self.device, self.torch = codes.device, codes.device.torch
        self.values, self._objective, self._seed = codes.values, objective, seed
        self._levels, self.keys = y, codes.place(keys)
        self._y = codes.place(objective.of_rows(y))
        self._weights = codes.place(weights, self.torch.float32)
        self.offsets, self.n_rows = codes.offsets, codes.n_rows
        self._cells = self.keys.new_empty(self.n_rows, dtype=self.torch.int32)
        self.salt_of_samples = SALTS_OF_SAMPLES * (seed + 1)
        self._shares: tuple[Any, Any] = (None, [])
        # Whether to keep the scores of held-out rows: in a regression, or if the caller chose them.
        self._keeps_scores = objective.is_numeric
        self._set_held_out(self._weights.new_zeros(self.n_rows, dtype=self.torch.bool))

    # Growth ------------------------------------------------------------------------------------

    @property
    def n_held_out(self) -> int:
        return self._held_out_rows.numel()

    @property
    def n_training(self) -> int:
        return self.n_rows - self.n_held_out

    def hold_out(self, rows: float | NDArray[np.bool_]) -> int:
        if isinstance(rows, np.ndarray):
            self._keeps_scores = True
            self._set_held_out(self.device.place(rows))
        else:
            self._set_held_out(draw(self.keys, 2 * self._seed + 1) < int(rows * 2**32))
        return self.n_held_out

    def start(self) -> NDArray[np.float32]:
        weights = self._weights.double().masked_fill(self._is_held_out.bool(), 0.0)
        if self._objective.is_numeric:
            return self._objective.start(self._levels, to_host(weights))
        return self._objective.start(self._y, weights)

    def begin(self, intercept: NDArray[np.float32]) -> None:
        bytes_of_a_row = _BYTES_OF_A_RESIDUAL * intercept.size
        n_rows = self.device.at_once(self.n_rows, bytes_of_a_row)
        self._at_once = -(-n_rows // ROWS_PACKED) * ROWS_PACKED
        needed = 8 * intercept.size * self.n_rows + min(ROWS_PACKED, self.n_rows) * bytes_of_a_row
        self.device.check_room(needed, "The scores and residuals of the rows")
        self._scores = self.device.place(intercept).repeat(self.n_rows, 1)
        self._packed = self._scores.new_empty(self._scores.shape, dtype=self.torch.int32)
        self.units = self._scores.new_ones(2, dtype=self.torch.float64)
        self._largest = self.torch.ones_like(self.units)
        self._best_scores = self._scores[self._scored_rows]
        self._best_loss = self.units.new_full((), self.torch.inf)
        self.room = self.device.room_for_recordings()
        self._choosers: dict[Any, _Chooser] = {}
        self._adders: dict[Any, _Adder] = {}
        self.update(None)
        self.first_loss = float(self.update(None))  # with units that fit these residuals

    def choose(self, drafts: Sequence[Draft], ridge: float) -> list[Chosen]:
        draft = drafts[0]
        has_categories = any(each.is_category.any() for each in drafts)
        key = (len(drafts), draft.levels.asked.shape, draft.n_wanted, has_categories)
        if key not in self._choosers:
            self._choosers[key] = _Chooser(self, drafts, has_categories)
        return self._choosers[key].choose(drafts, ridge)

    def add(
        self,
        ferns: Sequence[Chosen],
        rates: Sequence[float],
        ridges: Sequence[float],
        used: int = 0,
    ) -> list[Added]:
        batches = []
        for some in _of_equal_depth(ferns):
            depth = len(ferns[some.start].cuts)
            has_sets = any((fern.cuts < 0).any() for fern in ferns[some])
            key = (some.stop - some.start, depth, has_sets, len(ridges))
            if key not in self._adders:
                self._adders[key] = _Adder(self, *key)
            batches.append(self._adders[key].add(ferns[some], rates[some], ridges, used))
        tables = [table for tables, _ in batches for table in tables]
        reports = [report for _, reports in batches for report in to_host(reports)]
        added = []
        for table, report in zip(tables, reports, strict=True):
            merits, gains, (loss,) = np.split(report, [2 * len(ridges), -1])
            loss = float(loss) if self.n_held_out else np.nan
            added.append(Added(table, gains, merits.reshape(-1, 2), loss))
        return added

    @property
    def best_held_out(self) -> tuple[NDArray[np.float32], NDArray]:
        return to_host(self._best_scores), self._levels[to_host(self._scored_rows)]

    # What is recorded --------------------------------------------------------------------------

    def sums(self, stumps: Tensor, members: Tensor | None) -> Tensor:
        """Return the sums in the cells of a fern, see `GrowingRows.fill`."""
        rows = (self._is_held_out, self._packed, self._cells)
        return self.device.loops.fern_sums(self.values, stumps, members, *rows)

    def update(self, table: Tensor | None) -> Tensor:
        """Add the table of the last fern to the scores; return the new loss of held-out rows."""
        torch = self.torch
        if table is not None:
            both = torch.cat([table, table])
            for rows in self._blocks():
                self._scores[rows] += both.index_select(0, self._cells[rows])
        # Units are powers of two that fit the largest residuals of the fern before, made from the
        # bits of their exponents.
        exponents = self._largest.clamp(min=SMALLEST_RESIDUAL).view(torch.int64) >> 52
        self.units.view(torch.int64).copy_((_EXPONENTS - exponents) << 52)
        bounds = [self._residuals_of(rows) for rows in self._blocks()]
        self._largest.copy_(bounds[0] if len(bounds) == 1 else torch.stack(bounds).amax(dim=0))
        loss = self._sum_of_losses()
        if self._scored_rows.numel():
            scores = self._scores[self._scored_rows]
            is_better = loss < self._best_loss
            self._best_scores.copy_(torch.where(is_better, scores, self._best_scores))
        self._best_loss.copy_(torch.minimum(loss, self._best_loss))
        return loss

    def residuals(self, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Return gradients and curvatures of the rows of ferns, (n_ferns, n_rows, n_columns)."""
        n_columns = self._packed.shape[1]
        if columns.shape[1] == n_columns:
            packed = self._packed[rows]
        else:
            packed = self._packed.view(-1)[rows[:, :, None] * n_columns + columns[:, None]]
        return (packed >> 16).long(), (packed & 0xFFFF).long()

    def share(self, number: int, n_shares: int) -> Tensor:
        """Return the rows of a share, see `GrowingRows.sizes_of_shares`."""
        rows = self.training_rows
        if n_shares == 1:
            return rows
        epoch, share = divmod(number, n_shares)
        if self._shares[0] != (epoch, n_shares):
            draws = draw(self.keys[rows], SALTS_OF_SHARES * (self._seed + 1) + epoch)
            shares, order = ((draws * n_shares) >> 32).sort(stable=True)
            sizes = self.torch.bincount(shares, minlength=n_shares).tolist()
            self._shares = ((epoch, n_shares), rows[order].split(sizes))
        return self._shares[1][share]

    def _set_held_out(self, mask: Tensor) -> None:
        self._is_held_out = mask.to(self.torch.uint8)
        self._held_out_rows = mask.nonzero()[:, 0]
        self.training_rows = (~mask).nonzero()[:, 0]
        self._held_out_y = self._y[self._held_out_rows]
        self._held_out_weights = self._weights[self._held_out_rows]
        self._scored_rows = self._held_out_rows[: None if self._keeps_scores else 0]
        self._shares = (None, [])

    def _blocks(self) -> Iterator[slice]:
        """Yield blocks of rows that fit in memory; nearly always one."""
        return steps(self.n_rows, self._at_once)

    def _residuals_of(self, rows: slice) -> Tensor:
        """Compute the residuals of some rows; return the largest gradient and curvature."""
        gradient, curvature = self._objective.derivatives(self._scores[rows], self._y[rows])
        weights, packed = self._weights[rows], self._packed[rows]
        self.device.loops.pack_residuals(gradient, curvature, weights, self.units, packed)
        largest = [(each * weights[:, None]).max() for each in (gradient.abs(), curvature)]
        return self.torch.stack(largest).double()

    def _sum_of_losses(self) -> Tensor:
        """Return the sum of the losses of held-out rows."""
        scores = self._scores.index_select(0, self._held_out_rows)
        losses = self._objective.value(scores, self._held_out_y) * self._held_out_weights
        return (losses.double() / UNIT_OF_LOSS).round().sum() * UNIT_OF_LOSS


def _of_equal_depth(ferns: Sequence[Chosen]) -> Iterator[slice]:
    """Yield slices of a few consecutive ferns of the same depth."""
    first = 0
    while first < len(ferns):
        last = first + 1
        depth = len(ferns[first].cuts)
        while last < min(first + _TOGETHER, len(ferns)) and len(ferns[last].cuts) == depth:
            last += 1
        yield slice(first, last)
        first = last


growing_rows.register(DeviceCodes, DeviceGrowingRows)

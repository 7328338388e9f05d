"""Ferns grown by column generation: each asks what the gradient of the loss points at.

Ferns are added one at a time. The stumps of the next one are chosen, level by level for all its
cells at once, where the cells collect most gradient, on a fresh sample of the rows. All rows fill
its table: a damped Newton step in each cell, shrunk towards that of the cell it was divided from.
Growth ends when rows that took no part gain no more.

Sums are sums of integers, and what is random about a row depends on its values and class alone:
the same bits for any number of threads and any order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import exact_sum, exact_total, offsets_of, smallest_code_dtype
from mbkl.engine.codes import DenseCodes
from mbkl.engine.rows import scramble
from mbkl.maps.ferns import FernMaps
from mbkl.maps.objectives import Objective
from mbkl.maps.stumps import StumpMaps

if TYPE_CHECKING:
    from mbkl.maps.grown_ferns import GrownFerns

# Gradients and curvatures are rounded to so many bits of the largest, which leaves one to grow.
_RESIDUAL_BITS = 14
# Rows drawn for a fern count for several: a coarser unit keeps their sums within 32 bits.
_SAMPLE_UNIT = 4
# Columns of the scores that the stumps of one fern are chosen by: sums of a cache line.
_COLUMNS_OF_A_FERN = 8
# Features that a fern may ask, where there are many: half of them, within these bounds.
_FEATURES_OF_A_FERN = (32, 64)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class GrownMaps(FernMaps):
    """Ferns, and what they add up to.

    Parameters
    ----------
    path : ndarray of shape (n_cells, n_columns)
        The tables with which they grew.
    intercept : ndarray of shape (n_columns,)
    n_rounds : int
        Ferns that were tried.
    """

    path: NDArray[np.float64]
    intercept: NDArray[np.float64]
    n_rounds: int

    def plain(self) -> FernMaps:
        """Return the ferns alone."""
        return FernMaps(**{each.name: getattr(self, each.name) for each in fields(FernMaps)})

    def prior(self, rates: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the weights that growth gives to the ferns: squared norms of their tables."""
        squares = (self.path**2).sum(axis=1)
        return np.add.reduceat(squares, self.cell_offsets[:-1]) if self.n_maps else np.empty(0)


@dataclass
class Fern:
    """Stumps on codes, and what each of their cells adds to the scores."""

    features: NDArray[np.intp]
    cuts: NDArray[np.int64]
    table: NDArray[np.float32]


class HeldOutGains:
    """What each level of the ferns gained on rows that took no part, a fading sum.

    Ferns begin shallow. They get a level more when the last ones bring their share of all that
    is gained: ferns that are deep from the start would use up the signal of the training rows,
    and would be right only where depth is needed.

    Parameters
    ----------
    least, most : int
        Bounds of the depth.
    """

    _FADING, _WORTH_IT = 0.97, 0.1

    def __init__(self, least: int, most: int) -> None:
        self._gains = np.zeros(most + 1)
        self._least = min(least, most)

    def add(self, level: int, gain: float) -> None:
        """Note what a level of one fern gained."""
        self._gains[level] = self._FADING * self._gains[level] + gain

    @property
    def depth(self) -> int:
        """Depth of the next fern: one level more than those that are worth it."""
        gains = np.maximum(self._gains[1:], 0.0)
        useful = np.flatnonzero(gains > self._WORTH_IT * gains.sum())
        return int(np.clip(useful.max(initial=-1) + 2, self._least, gains.size))


class Growth:
    """Ferns grown so far, and where they leave the scores of the rows.

    Parameters
    ----------
    family : GrownFerns
    codes : DenseCodes
        Of one byte.
    objective : Objective
    y : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,)
    keys : ndarray of shape (n_rows,)
        What is random about a row depends on its key alone.
    seed : int
    """

    _LEAST_DEPTH, _MOST_DEPTH, _ROWS_A_CELL = 6, 14, 8
    _SAMPLE_BOUNDS = (16_000, 130_000)
    _MOST_VALIDATION_ROWS = 50_000
    # Rows of a sample are drawn from so many times as many.
    _POOL = 4
    # Progress below this share of all progress is none.
    _SMALLEST_PROGRESS = 1e-3
    # Validation rows below this share of all rows are not worth filling all tables again.
    _WORTH_REFILLING = 0.03

    def __init__(
        self,
        family: GrownFerns,
        codes: DenseCodes,
        objective: Objective,
        y: NDArray,
        weights: NDArray[np.float64],
        keys: NDArray[np.uint64],
        seed: int,
    ) -> None:
        self.family, self.objective = family, objective
        self._codes, self._loops, self._y, self._keys, self._seed = (
            codes,
            codes.loops,
            y,
            keys,
            seed,
        )
        n_rows = codes.n_rows
        self._weights = (weights / (exact_total(weights) / max(n_rows, 1))).astype(np.float32)
        share = min(family.validation_share, self._MOST_VALIDATION_ROWS / max(n_rows, 1))
        self._held_out = _draw(keys, 2 * seed + 1) < np.uint64(share * 2**32)
        self._held_out &= not self._held_out.all()  # a few rows may all be drawn
        n_training = n_rows - int(self._held_out.sum())
        deepest = int(np.log2(max(n_training, 1) / self._ROWS_A_CELL))
        depth = int(np.clip(deepest, self._LEAST_DEPTH, self._MOST_DEPTH))
        if family.depth != "auto":
            depth = int(family.depth)
        self.gains = HeldOutGains(self._LEAST_DEPTH, depth)
        self.ferns: list[Fern] = []
        self.losses: list[float] = []
        self._epoch: tuple = (None, [])
        self._begin(self._held_out)
        self._ridge = family.ridge * self._usual_curvature()

    @property
    def _sample_rows(self) -> int:
        """Rows on which the stumps of the next fern are chosen."""
        if self.family.sample_rows != "auto":
            return int(self.family.sample_rows)
        return int(np.clip(self._ROWS_A_CELL * 2**self.gains.depth, *self._SAMPLE_BOUNDS))

    @property
    def n_iter(self) -> int:
        """Ferns grown so far."""
        return len(self.ferns)

    @property
    def standing(self) -> str:
        """Where growth stands, in words."""
        return f"loss of held-out rows {self.losses[-1]:.4f}"

    def run(self, n_ferns: int, progress: Callable[[Growth], bool]) -> None:
        """Grow ferns until the rows that took no part gain no more."""
        self.losses = [self._validation_loss()]
        best = last_progress = 0
        while len(self.ferns) < n_ferns and self._codes.n_groups:
            self._add(self._filled(self._grown(len(self.ferns)), self.gains))
            self.losses.append(self._validation_loss())
            last = len(self.ferns)
            best = min(best, last, key=self.losses.__getitem__) if self._held_out.any() else last
            if progress(self):
                break
            if not self._held_out.any():
                continue
            needed = self._SMALLEST_PROGRESS * (self.losses[0] - self.losses[-1])
            if self.losses[-1] < self.losses[last_progress] - needed:
                last_progress = len(self.ferns)
            if len(self.ferns) - last_progress >= self.family.patience:
                break
        self.n_rounds = len(self.ferns)
        self.ferns = self.ferns[:best]
        if self._held_out.sum() > self._WORTH_REFILLING * self._y.size:
            self._refill()

    def _refill(self) -> None:
        """Fill all tables again, now from all rows."""
        ferns, self.ferns = self.ferns, []
        self._begin(np.zeros_like(self._held_out))
        for fern in ferns:
            self._add(self._filled(fern))

    def maps(self, stumps: StumpMaps) -> GrownMaps:
        """Return the ferns with thresholds in place of codes; equal cells share a number."""
        first = stumps.edges.offsets
        features = [stumps.features[fern.features] for fern in self.ferns]
        thresholds = [
            stumps.edges.thresholds[first[fern.features] + fern.cuts] for fern in self.ferns
        ]
        tables, numbers = [], []
        for fern in self.ferns:
            distinct, number = np.unique(fern.table, axis=0, return_inverse=True)
            tables.append(distinct.astype(np.float64))
            numbers.append(number.ravel())
        n_columns = self.objective.n_columns
        sizes = np.array([len(table) for table in tables], dtype=np.int64)
        dtype = smallest_code_dtype(int(sizes.max(initial=1)))
        nothing = np.empty(0)
        return GrownMaps(
            np.concatenate([nothing.astype(np.intp), *features]),
            np.concatenate([nothing, *thresholds]),
            offsets_of(np.array([own.size for own in features], dtype=np.int64)),
            np.ones(len(self.ferns), dtype=np.uint64),
            np.array([number.size for number in numbers], dtype=np.int64),
            np.concatenate([nothing.astype(dtype), *numbers]).astype(dtype),
            offsets_of(sizes),
            np.concatenate([np.empty((0, n_columns)), *tables]),
            self._intercept.astype(np.float64),
            self.n_rounds,
        )

    # The stumps of a fern ----------------------------------------------------------------------

    def _grown(self, number: int) -> Fern:
        """Choose the stumps of a fern, level by level."""
        generator = np.random.Generator(np.random.Philox([self._seed, 4, number]))
        features, columns = self._some_features(generator), self._some_columns(generator)
        candidates = self._candidates(number)
        rows, residuals = self._sampled(candidates, columns, number)
        codes = self._loops.take_some(self._codes.values, features, rows)
        # The sums of a sample are smaller than those of all rows: so is the ridge.
        share = candidates.size / max(self._training_rows.size, 1)
        ridge = float(self._ridge * share / _SAMPLE_UNIT * self._units[1])
        n_codes = np.diff(self._codes.offsets)[features]
        order, starts = np.arange(len(rows)), np.array([0, len(rows)])
        chosen, cuts = [], []
        for _ in range(self.gains.depth):
            shifts, moves = _coarseness(n_codes, len(rows) // (len(starts) - 1), generator)
            gains = self._loops.level_gains(
                codes, order, residuals, starts, n_codes, shifts, moves, ridge
            )
            best, cut = divmod(int(np.argmax(gains)), gains.shape[1])
            # A cut above the last code divides nothing.
            cut = min(((cut + 1) << shifts[best]) - moves[best] - 1, n_codes[best] - 2)
            chosen.append(features[best])
            cuts.append(cut)
            order, residuals, starts = self._loops.divide_cells(
                codes[best], int(cut), order, residuals, starts
            )
        return Fern(np.array(chosen), np.array(cuts), np.empty((0, 0), np.float32))

    def _some_features(self, generator) -> NDArray[np.intp]:
        n_features = self._codes.n_groups
        count = int(np.clip(n_features // 2, *_FEATURES_OF_A_FERN))
        if count >= n_features:
            return np.arange(n_features)
        return np.sort(generator.choice(n_features, count, replace=False))

    def _some_columns(self, generator) -> NDArray[np.intp]:
        n_columns = self.objective.n_columns
        if n_columns <= _COLUMNS_OF_A_FERN:
            return np.arange(n_columns)
        return np.sort(generator.choice(n_columns, _COLUMNS_OF_A_FERN, replace=False))

    def _candidates(self, number: int) -> NDArray[np.intp]:
        """Return the rows that the sample of a fern is drawn from: each once in an epoch."""
        rows = self._training_rows
        n_shares = round(rows.size / (self._POOL * self._sample_rows))
        if n_shares <= 1:
            return rows
        epoch, share = divmod(number, n_shares)
        if self._epoch[0] != (epoch, n_shares):
            draws = _draw(self._keys[rows], 1_000_003 * (self._seed + 1) + epoch)
            shares = ((draws * np.uint64(n_shares)) >> np.uint64(32)).astype(np.uint16)
            ends = np.cumsum(np.bincount(shares, minlength=n_shares))[:-1]
            self._epoch = (
                (epoch, n_shares),
                np.split(rows[np.argsort(shares, kind="stable")], ends),
            )
        return self._epoch[1][share]

    def _sampled(self, rows, columns, number: int) -> tuple[NDArray, NDArray[np.int64]]:
        """Draw rows in proportion to their residuals, and weigh these accordingly."""
        packed = self._packed[rows][:, columns].astype(np.int64)
        gradient, curvature = packed >> 16, packed & 0xFFFF
        if rows.size > self._sample_rows:
            # Integers: their sum does not depend on the order of the rows.
            size = np.sqrt((gradient**2 + curvature**2).sum(axis=1)).astype(np.int64) + 1
            chance = size * (self._sample_rows / int(size.sum()))
            draws = _draw(self._keys[rows], 7_368_787 * (self._seed + 1) + number)
            drawn = np.flatnonzero(draws < chance * 2**32)
            rows, chance = rows[drawn], np.minimum(chance[drawn, None], 1.0)
            gradient, curvature = gradient[drawn] / chance, curvature[drawn] / chance
        gradient = np.rint(gradient / _SAMPLE_UNIT).astype(np.int64)
        return rows, (gradient << 32) + np.rint(curvature / _SAMPLE_UNIT).astype(np.int64)

    # The table of a fern ------------------------------------------------------------------------

    def _filled(self, fern: Fern, gains: HeldOutGains | None = None) -> Fern:
        """Give a fern its table: a damped Newton step from all rows that take part."""
        n_cells = 2 ** len(fern.features)
        stumps = (fern.features, fern.cuts)
        # Rows that take no part have cells of their own, in the second half.
        self._loops.fern_cells(self._codes.values, *stumps, self._leading, self._cells)
        sums = self._loops.histogram_packed(self._cells, self._packed, 2 * n_cells) / self._units
        step = _newton_steps(sums[:n_cells], sums[n_cells:], self._ridge, gains)
        return replace(fern, table=(self.family.rate * step).astype(np.float32))

    def _begin(self, held_out: NDArray[np.bool_]) -> None:
        """Set the scores to the best constant."""
        self._leading = held_out.astype(np.uint8)
        own = self._training_rows = np.flatnonzero(~held_out)
        self._intercept = self.objective.start(self._y[own], self._weights[own].astype(np.float64))
        self._scores = np.tile(self._intercept, (self._y.size, 1))
        self._packed = np.empty(self._scores.shape, dtype=np.int32)
        self._cells = np.empty(self._y.size, dtype=np.uint16)
        # The second time with units that fit.
        self._largest = np.ones(2)
        self._refresh(None)
        self._refresh(None)

    def _add(self, fern: Fern) -> None:
        self.ferns.append(fern)
        self._refresh(np.concatenate([fern.table, fern.table]))

    def _refresh(self, table: NDArray[np.float32] | None) -> None:
        """Add a table to the scores, where there is one; compute the residuals anew."""
        # Powers of two by what was largest a fern ago; what is more than twice that is cut off.
        _, exponents = np.frexp(np.maximum(self._largest, 1e-30))
        self._units = np.ldexp(1.0, _RESIDUAL_BITS - exponents)
        units = tuple(self._units.astype(np.float32))

        def refresh(start: int, stop: int) -> tuple[float, float]:
            rows = slice(start, stop)
            scores, weights = self._scores[rows], self._weights[rows]
            if table is not None:
                self._loops.add_table(self._cells[rows], table, scores)
            gradient, curvature = self.objective.derivatives(scores, self._y[rows])
            self._loops.pack_residuals(gradient, curvature, weights, units, self._packed[rows])
            heaviest = float(weights.max(initial=0.0))
            return (
                float(np.abs(gradient).max(initial=0.0)) * heaviest,
                float(curvature.max(initial=0.0)) * heaviest,
            )

        self._largest = np.max(self._loops.over_blocks(refresh, self._y.size), axis=0)

    def _usual_curvature(self) -> float:
        """Return the curvature of a row and column where all classes are as likely."""
        nowhere = np.zeros((1, self.objective.n_columns), dtype=np.float32)
        return float(self.objective.derivatives(nowhere, self._y[:1])[1].mean())

    def _validation_loss(self) -> float:
        rows = np.flatnonzero(self._held_out)
        if not rows.size:
            return np.nan
        losses = self.objective.value(self._scores[rows], self._y[rows]) * self._weights[rows]
        return float(exact_sum(losses.astype(np.float64)[:, None])[0]) / rows.size


def told_apart(keys: NDArray[np.uint64], weights) -> NDArray[np.uint64]:
    """Return keys of which equal rows have different ones, whatever their order."""
    order = np.lexsort((weights, keys))
    ordered = keys[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    place = np.arange(keys.size)
    place -= np.maximum.accumulate(np.where(first, place, 0))
    with np.errstate(over="ignore"):
        told = keys.copy()
        told[order] += place.astype(np.uint64) * _GOLDEN
        return np.where(told == keys, keys, scramble(told))


def _draw(keys: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Return a number below 2^32 for each row, of its key and the salt alone."""
    with np.errstate(over="ignore"):
        return scramble(keys + np.uint64(salt) * _GOLDEN) >> np.uint64(32)


def _coarseness(n_codes, rows_of_a_cell: int, generator) -> tuple[NDArray, NDArray]:
    """Return how far codes are shifted and moved: no more of them than a cell has rows.

    Where cells have few rows most cuts divide them alike; a random move brings every cut up
    in some fern.
    """
    most = 2 ** int(np.clip(np.log2(max(rows_of_a_cell, 1)), 4, 8))
    shifts = np.maximum(np.ceil(np.log2(n_codes / most)), 0).astype(np.int64)
    return shifts, generator.integers(0, 2**shifts)


def _newton_steps(sums, held_out, ridge: float, gains: HeldOutGains | None) -> NDArray[np.float64]:
    """Return a Newton step for each cell, shrunk towards that of the cell it was divided from.

    A cell of few rows falls back on the one above it, and so on to the mean of all rows: this
    is what makes deep ferns safe.

    Parameters
    ----------
    sums, held_out : ndarray of shape (n_cells, n_columns, 2)
        Gradients and curvatures of rows that take part, and of those that do not.
    ridge : float
    gains : HeldOutGains or None
        Is told what each level gains on the latter.
    """
    step = np.zeros((1, sums.shape[1]))
    for level, (own, other) in enumerate(zip(_by_level(sums), _by_level(held_out), strict=True)):
        step = np.repeat(step, len(own) // len(step), axis=0)
        change = -(own[..., 0] + own[..., 1] * step) / (own[..., 1] + ridge)
        if gains is not None:
            gains.add(level, float(-(change * (other[..., 0] + other[..., 1] * step)).sum()))
        step = step + change
    return step


def _by_level(sums: NDArray) -> list[NDArray]:
    """Return the sums of the cells of every level, from all rows together to single cells."""
    levels = [sums]
    while len(levels[0]) > 1:
        levels.insert(0, levels[0][0::2] + levels[0][1::2])
    return levels

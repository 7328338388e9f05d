"""Ferns grown by column generation: each asks what the gradient of the loss points at.

Ferns are added one at a time. The stumps of the next one are chosen, level by level for all its
cells at once, where the cells collect most gradient, on a fresh sample of the rows. All rows fill
its table: a damped Newton step in each cell, shrunk towards that of the cell it was divided from.
Growth ends when rows that took no part gain no more.

Sums are sums of integers, and what is random about a row depends on its values and class alone:
the same bits for any number of threads and any order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import offsets_of, smallest_code_dtype, to_host
from mbkl.engine.codes import Codes
from mbkl.engine.twins import TWINS, Twins
from mbkl.maps.categories import CategoryMaps, LevelSets, WideCategory
from mbkl.maps.ferns import FernMaps
from mbkl.maps.growing_rows import (
    SAMPLE_UNIT,
    Chosen,
    Draft,
    GrowingRows,
    GrowthSample,
    Level,
    bins_of_a_cell,
)
from mbkl.maps.objectives import Objective
from mbkl.maps.stumps import StumpMaps

if TYPE_CHECKING:
    from mbkl.maps.grown_ferns import GrownFerns

# Gradients and curvatures are rounded to so many bits of the largest, which leaves one to grow.
_RESIDUAL_BITS = 14
# Columns of the scores that the stumps of one fern are chosen by: sums of a cache line.
_COLUMNS_OF_A_FERN = 8
# Features that a fern may ask, where there are many: half of them, within these bounds.
_FEATURES_OF_A_FERN = (32, 64)


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
    held_out_scores : ndarray of shape (n_held_out, n_columns)
    held_out_y : ndarray of shape (n_held_out,)
        Of rows that took no part, before they did; for numbers, or where these rows were given.
    """

    path: NDArray[np.float64]
    intercept: NDArray[np.float64]
    n_rounds: int
    held_out_scores: NDArray[np.float32]
    held_out_y: NDArray

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

    # See `Twins.fern_cells`.
    features: NDArray[np.intp]
    cuts: NDArray[np.int64]
    members: NDArray[np.bool_]
    # (depth,): on which side most rows are: levels that were not seen go with them
    usual: NDArray[np.bool_]
    table: Any  # (n_cells, n_columns): where the rows are


@dataclass
class LevelStep:
    """A step of the table of a category with very many levels."""

    number: int
    table: NDArray[np.float32]


@dataclass
class Path:
    """What one growth came to."""

    ferns: list[Fern]
    levels: list[WideCategory]
    intercept: NDArray[np.float64]
    n_rounds: int
    held_out: tuple[NDArray[np.float32], NDArray]  # scores and y
    is_finished: bool  # or told to stop


class HeldOutGains:
    """What each level of the ferns gained on rows that took no part, a fading sum.

    Ferns begin shallow, at the least depth. They get a level more, up to the most, when the last
    ones bring their share of all that is gained: ferns that are deep from the start would use up
    the signal of the training rows, and would be right only where depth is needed.
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


class Promises:
    """What a stump on each feature has gained lately, as a share of the best one: a fading mean.

    Half of the features are asked for a stump, and those that promise more more often: nearly
    what all would give, in half the time.
    """

    _FADING, _SMALLEST, _BOUNDS = 0.9, 0.02, (8, 32)

    def __init__(self, n_features: int) -> None:
        self._shares = np.ones(n_features)

    def draw(self, features: NDArray[np.intp], depth: int, generator) -> NDArray[np.intp]:
        """Return the places of some of these features, for each level."""
        count = int(np.clip(len(features) // 2, *self._BOUNDS))
        if count >= len(features):
            return np.tile(np.arange(len(features)), (depth, 1))
        # Who comes first in a race where all have a chance: that draws without replacement.
        times = generator.standard_exponential((depth, len(features)))
        times /= self._shares[features] + self._SMALLEST
        return np.sort(np.argpartition(times, count, axis=1)[:, :count], axis=1)

    def note(self, features: NDArray[np.intp], gains: NDArray[np.float64]) -> None:
        """Note what the best stump of each feature adds to what was gained without it."""
        best = gains.max()
        if best > 0:
            share = np.maximum(gains, 0.0) / best
            self._shares[features] += (1 - self._FADING) * (share - self._shares[features])


class Growth:
    """Ferns grown so far.

    Parameters
    ----------
    family : GrownFerns
    rows : GrowingRows
    objective : Objective
    seed : int
    is_category : ndarray of shape (n_groups,)
        Which groups of codes are levels.
    held_out : ndarray of shape (n_rows,) or None
        Rows that decide when growth ends; None leaves it to chance.
    number : int
        Which of several growths that are averaged: each draws rows and features of its own.
    """

    _FERNS_OF_A_GROWTH = 1_000_000
    _LEAST_DEPTH, _MOST_DEPTH, _ROWS_A_CELL = 6, 14, 8
    _SAMPLE_BOUNDS = (16_000, 130_000)
    _MOST_VALIDATION_ROWS = 50_000
    # Of more rows than this a fern sees half at most, and so many ferns are chosen side by side:
    # those that see the same rows would ask the same.
    _FEW_ROWS, _SIDE_BY_SIDE = 4_000, 4
    # Rows of a sample are drawn from so many times as many.
    _POOL = 4
    # Progress below this share of all progress is none.
    _SMALLEST_PROGRESS = 1e-3
    # Growth that is still going on after this share of all ferns takes larger steps from then on,
    # up to so many times as large: it would not come to its end.
    _LATE, _LARGER = (0.5, 0.7), 3.0
    # Validation rows below this share of all rows are not worth filling all tables again.
    _WORTH_REFILLING = 0.03

    def __init__(
        self,
        family: GrownFerns,
        rows: GrowingRows,
        objective: Objective,
        seed: int,
        is_category: NDArray[np.bool_],
        held_out: NDArray[np.bool_] | None = None,
        number: int = 0,
    ) -> None:
        self.family, self.objective = family, objective
        self._rows, self._seed, self._is_category = rows, seed, is_category
        share = min(family.validation_share, self._MOST_VALIDATION_ROWS / max(rows.n_rows, 1))
        self._n_held_out = rows.hold_out(share if held_out is None else held_out)
        if self._n_held_out == rows.n_rows:  # a few rows may all be drawn
            self._n_held_out = rows.hold_out(0.0)
        deepest = int(np.log2(max(self._n_training, 1) / self._ROWS_A_CELL))
        depth = int(np.clip(deepest, self._LEAST_DEPTH, self._MOST_DEPTH))
        if family.depth != "auto":
            depth = int(family.depth)
        self.gains = HeldOutGains(self._LEAST_DEPTH, depth)
        self._promises = Promises(rows.offsets.size - 1)
        self.ferns: list[Fern | LevelStep] = []
        self._wide: list[WideCategory] = []
        self.losses: list[float] = []
        self._waiting: list[Fern] = []
        self._n_chosen = number * self._FERNS_OF_A_GROWTH
        self._begin()
        self._ridge = family.ridge * objective.usual_curvature

    def watch(self, categories: CategoryMaps, codes: Codes) -> None:
        """Give categories with very many levels, which have these codes, tables of their own."""
        n_wide = self._rows.watch(codes)
        n_cells, n_columns = categories.n_levels + 2, self.objective.n_columns
        pairs = zip(categories.features[:n_wide].tolist(), n_cells.tolist(), strict=False)
        self._wide = [WideCategory(feature, n, n_columns) for feature, n in pairs]

    @property
    def _n_training(self) -> int:
        return self._rows.n_rows - self._n_held_out

    @property
    def _sample_rows(self) -> int:
        """Rows on which the stumps of the next fern are chosen."""
        if self.family.sample_rows != "auto":
            return int(self.family.sample_rows)
        wanted = np.clip(self._ROWS_A_CELL * 2**self.gains.depth, *self._SAMPLE_BOUNDS)
        return int(wanted) if self._has_few_rows else int(min(wanted, self._n_training // 2))

    @property
    def _has_few_rows(self) -> bool:
        return self._n_training <= self._FEW_ROWS

    @property
    def n_iter(self) -> int:
        """Ferns grown so far."""
        return len(self.ferns)

    @property
    def standing(self) -> str:
        """Where growth stands, in words."""
        return f"loss of held-out rows {self.losses[-1]:.4f}"

    def run(self, n_ferns: int, progress: Callable[[Growth], bool]) -> Path:
        """Grow ferns until the rows that took no part gain no more."""
        self._n_ferns = n_ferns
        is_told_to_stop = False
        self.losses = [self._validation_loss()]
        best = last_progress = 0
        self._held_out = self._rows.held_out_scores()
        while len(self.ferns) < n_ferns and self._rows.offsets.size > 1:
            self._add(self._next(len(self.ferns)))
            self.losses.append(self._validation_loss())
            last = len(self.ferns)
            if not self._n_held_out or self.losses[last] < self.losses[best]:
                best, self._held_out = last, self._rows.held_out_scores()
            is_told_to_stop = progress(self)
            if is_told_to_stop:
                break
            if not self._n_held_out:
                continue
            made = self.losses[0] - self.losses[-1]
            # What is left may be little beside what was made, and still worth having.
            made = min(made, self.losses[-1]) if self.objective.ends_at_zero else made
            needed = self._SMALLEST_PROGRESS * made
            if self.losses[-1] < self.losses[last_progress] - needed:
                last_progress = len(self.ferns)
            if len(self.ferns) - last_progress >= self.family.patience:
                break
        n_rounds = len(self.ferns)
        self.ferns = self.ferns[:best]
        if self._n_held_out > self._WORTH_REFILLING * self._rows.n_rows:
            self._refill()
        ferns = [fern for fern in self.ferns if isinstance(fern, Fern)]
        intercept = self._intercept.astype(np.float64)
        levels = self._tables_of_levels()
        return Path(ferns, levels, intercept, n_rounds, self._held_out, not is_told_to_stop)

    def _refill(self) -> None:
        """Fill all tables again, now from all rows."""
        ferns, self.ferns = self.ferns, []
        self._n_held_out = self._rows.hold_out(0.0)
        self._begin()
        for wide in self._wide:
            wide.table[:] = 0.0
        for fern in ferns:
            if isinstance(fern, LevelStep):
                self._add(self._level_step(fern.number))
            else:
                self._add(self._filled(fern))

    def _next(self, number: int) -> Fern | LevelStep:
        """Return the next fern, or in turn a step of a category with very many levels."""
        turn = number % (len(self._wide) + 1)
        if turn and self._wide[turn - 1].gain > 0:
            return self._level_step(turn - 1)
        return self._filled(self._chosen(), self.gains)

    def _level_step(self, number: int) -> LevelStep:
        sums = self._rows.fill_levels(number) / self._units
        n_cells = len(sums) // 2
        step = self._wide[number].step(sums[:n_cells], sums[n_cells:], self._ridge)
        self._wide[number].table += step
        return LevelStep(number, step.astype(np.float32))

    def _tables_of_levels(self) -> list[WideCategory]:
        """Return the categories with tables of their own, as they were when growth was best."""
        for wide in self._wide:
            wide.table[:] = 0.0
        for step in self.ferns:
            if isinstance(step, LevelStep):
                self._wide[step.number].table += step.table
        return self._wide

    def _chosen(self) -> Fern:
        """Return the next fern, without its table.

        The stumps of several are chosen at once, side by side: what one fern adds to the scores
        changes little for the next. Their tables are filled one after the other.
        """
        if not self._waiting:
            count = 1 if self._has_few_rows else self._SIDE_BY_SIDE
            numbers = range(self._n_chosen, self._n_chosen + count)
            self._n_chosen = numbers.stop
            drafts = [self._draft(number) for number in numbers]
            for draft, chosen in zip(drafts, self._rows.choose(drafts), strict=True):
                self._note(draft, chosen)
                stumps = (draft.features[chosen.features], *chosen[1:4])
                self._waiting.append(Fern(*stumps, np.empty((0, 0), np.float32)))
        return self._waiting.pop(0)

    def _draft(self, number: int) -> Draft:
        """Draw the rows and features of a fern."""
        generator = np.random.Generator(np.random.Philox([self._seed, 4, number]))
        features, columns = self._some_features(generator), self._some_columns(generator)
        sample, share = self._sampled(number, features, columns)
        # The sums of a sample are smaller than those of all rows: so is the ridge.
        ridge = float(self._ridge * share / SAMPLE_UNIT * self._units[1])
        n_codes = np.diff(self._rows.offsets)[features]
        asked = self._promises.draw(features, self.gains.depth, generator)
        levels = _levels(asked, n_codes, sample.n_rows, generator)
        is_category = self._is_category[features]
        return Draft(sample, features, n_codes, levels, ridge, is_category, generator)

    def _note(self, draft: Draft, chosen: Chosen) -> None:
        gained = 0.0
        for level, gains in zip(draft.levels, chosen.gains, strict=True):
            self._promises.note(draft.features[level.asked], gains - gained)
            gained = gains.max()

    def _some_features(self, generator) -> NDArray[np.intp]:
        n_features = self._rows.offsets.size - 1
        least, most = _FEATURES_OF_A_FERN
        # Levels count as features: with many of them a fern sees half of the columns,
        # so that not all ferns ask about the same few categories.
        n_alike = np.where(self._is_category, np.diff(self._rows.offsets), 1).sum()
        count = min(max(n_features // 2, 2), most) if n_alike >= 2 * least else least
        if count >= n_features:
            return np.arange(n_features)
        return np.sort(generator.choice(n_features, count, replace=False))

    def _some_columns(self, generator) -> NDArray[np.intp]:
        n_columns = self.objective.n_columns
        if n_columns <= _COLUMNS_OF_A_FERN:
            return np.arange(n_columns)
        return np.sort(generator.choice(n_columns, _COLUMNS_OF_A_FERN, replace=False))

    def _sampled(self, number: int, features, columns) -> tuple[GrowthSample, float]:
        """Return the rows of one fern, and the share of all rows that they stand for."""
        wanted = self._sample_rows
        n_shares = max(round(self._n_training / (self._POOL * wanted)), 1)
        n_rows, magnitude = self._rows.size_of_share(number, n_shares, columns)
        chance = wanted / float(magnitude) if n_rows > wanted else None
        sample = self._rows.sample(number, n_shares, features, columns, chance)
        return sample, n_rows / max(self._n_training, 1)

    def _filled(self, fern: Fern, gains: HeldOutGains | None = None) -> Fern:
        """Give a fern its table: a damped Newton step from all rows that take part."""
        stumps = (fern.features, fern.cuts, fern.members)
        table, gained = self._rows.table(*stumps, self._units, self._ridge, self._rate)
        if gains is not None:
            for level, gain in enumerate(gained):
                gains.add(level, gain)
        return replace(fern, table=table)

    @property
    def _rate(self) -> float:
        """Share of a Newton step that the next fern takes."""
        larger = np.interp(len(self.ferns) / self._n_ferns, self._LATE, (1.0, self._LARGER))
        rate = self.objective.usual_rate if self.family.rate == "auto" else self.family.rate
        return rate * float(larger)

    def _begin(self) -> None:
        """Set the scores to the best constant."""
        self._intercept = self._rows.start()
        self._rows.begin(self._intercept)
        # The second time with units that fit.
        self._largest = np.ones(2)
        self._refresh(None)
        self._refresh(None)

    def _add(self, fern: Fern | LevelStep) -> None:
        self.ferns.append(fern)
        self._refresh(fern.table)

    def _refresh(self, table: Any) -> None:
        """Add a table to the scores, where there is one; compute the residuals anew."""
        # Powers of two by what was largest a fern ago; what is more than twice that is cut off.
        _, exponents = np.frexp(np.maximum(self._largest, 1e-30))
        self._units = np.ldexp(1.0, _RESIDUAL_BITS - exponents)
        self._largest = self._rows.refresh(tuple(self._units.astype(np.float32)), table)

    def _validation_loss(self) -> float:
        if not self._n_held_out:
            return np.nan
        return self._rows.held_out_loss() / self._n_held_out


def averaged_maps(
    paths: list[Path], stumps: StumpMaps, n_levels: NDArray[np.int64], loops: Twins = TWINS
) -> GrownMaps:
    """Return the ferns of all growths with thresholds in place of codes, and their mean.

    Equal cells of a fern share a number.
    """
    first = stumps.edges.offsets
    ferns = [fern for path in paths for fern in path.ferns]
    features = [stumps.features[fern.features] for fern in ferns]
    thresholds = [
        np.where(fern.cuts < 0, np.nan, stumps.edges.thresholds[first[fern.features] + fern.cuts])
        for fern in ferns
    ]
    sets = [members for fern in ferns for members in _level_sets(fern, stumps, n_levels)]
    cells = [to_host(fern.table) for fern in ferns]
    for same in zip(*(path.levels for path in paths), strict=True):
        wide = same[0]
        wide.table = np.sum([each.table for each in same], axis=0)
        if wide.table.any():
            members, table = wide.fern()
            features.append(np.full(len(members), wide.feature, dtype=np.intp))
            thresholds.append(np.full(len(members), np.nan))
            sets.extend(members)
            cells.append(table.astype(np.float32))
    merged = loops.each(lambda number: _distinct_rows(cells[number]), range(len(cells)))
    tables = [distinct.astype(np.float64) for distinct, _ in merged]
    numbers = [number for _, number in merged]
    n_columns = paths[0].intercept.size
    sizes = np.array([len(table) for table in tables], dtype=np.int64)
    dtype = smallest_code_dtype(int(sizes.max(initial=1)))
    nothing = np.empty(0)
    scores, y = zip(*(path.held_out for path in paths), strict=True)
    return GrownMaps(
        np.concatenate([nothing.astype(np.intp), *features]),
        np.concatenate([nothing, *thresholds]),
        offsets_of(np.array([own.size for own in features], dtype=np.int64)),
        np.ones(len(cells), dtype=np.uint64),
        np.array([number.size for number in numbers], dtype=np.int64),
        np.concatenate([nothing.astype(dtype), *numbers]).astype(dtype),
        offsets_of(sizes),
        np.concatenate([np.empty((0, n_columns)), *tables]) / len(paths),
        np.mean([path.intercept for path in paths], axis=0),
        sum(path.n_rounds for path in paths),
        np.mean(scores, axis=0),
        y[0],
        sets=_joined(sets, np.concatenate([nothing, *thresholds]), n_levels),
    )


def _level_sets(fern: Fern, stumps: StumpMaps, n_levels) -> Iterator[NDArray[np.bool_]]:
    """Yield what stumps on codes of categories ask about the cells of the column."""
    asking = np.flatnonzero(fern.cuts < 0)
    for group, members, usual in zip(
        fern.features[asking], fern.members[asking], fern.usual[asking], strict=True
    ):
        edges = stumps.edges.thresholds[slice(*stumps.edges.offsets[group : group + 2])]
        n_own = int(n_levels[stumps.features[group]])
        cells = members[np.searchsorted(edges, np.append(-np.inf, np.arange(n_own)))]
        # Missing values and new levels, where there were none.
        cells[0] = members[0] if np.isneginf(edges[0]) else usual
        yield np.append(cells, usual)


def _joined(sets: list[NDArray[np.bool_]], thresholds, n_levels) -> LevelSets | None:
    """Return the sets of the stumps that have no threshold."""
    if not sets:
        return None
    has_set = np.isnan(thresholds)
    numbers = np.where(has_set, np.cumsum(has_set) - 1, -1)
    offsets = offsets_of(np.array([own.size for own in sets]))
    return LevelSets(numbers, np.concatenate(sets), offsets, n_levels)


def _levels(asked: NDArray[np.intp], n_codes, n_rows: int, generator) -> list[Level]:
    """Return how far codes are shifted and moved: no more of them than a quarter of a cell's rows.

    Where cells have few rows most cuts divide them alike, and trying one takes as long as adding
    up some rows; a random move brings every cut up in some fern.
    """
    most = np.array([[bins_of_a_cell(n_rows >> depth)] for depth in range(len(asked))])
    shifts = np.maximum(np.ceil(np.log2(n_codes[asked] / most)), 0).astype(np.int64)
    moves = generator.integers(0, 2**shifts)
    return [Level(*each) for each in zip(asked, shifts, moves, strict=True)]


def _distinct_rows(table: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return the different rows of a table, and which of them each row is.

    Sorting one number a row is many times faster than sorting rows.
    """
    factors = np.sqrt(2.0 + np.arange(table.shape[1]))
    sums = (table * factors).sum(axis=1)
    _, first, number = np.unique(sums, return_index=True, return_inverse=True)
    if (table[first][number] == table).all():
        return table[first], number
    distinct, number = np.unique(table, axis=0, return_inverse=True)
    return distinct, number.ravel()

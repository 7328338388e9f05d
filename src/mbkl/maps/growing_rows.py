"""The rows that ferns grow on, with their scores and residuals.

The inputs and results of each step are small: a fern goes in, and sums over its cells or a sample
of the rows come out. So the rows may be in memory, in files, on a device, or on the workers of a
cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import smallest_code_dtype
from mbkl.engine.codes import Codes
from mbkl.engine.keys import draw
from mbkl.engine.twins import Twins
from mbkl.maps.categories import draw_ranked
from mbkl.maps.growth_losses import Objective

# A row drawn for a fern stands for several: a coarser unit keeps their sums within 32 bits.
SAMPLE_UNIT = 4
# Gradients and curvatures are rounded to so many bits of the largest, which leaves one bit for
# those that grow; the second number is a lower bound of the largest.
RESIDUAL_BITS, SMALLEST_RESIDUAL = 14, 1e-30
# Salts of the hashes that draw shares and samples, to be multiplied by the seed plus one.
SALTS_OF_SHARES, SALTS_OF_SAMPLES = 1_000_003, 7_368_787
# Losses of held-out rows are rounded to multiples of this, so that their sum is exact.
UNIT_OF_LOSS = 2.0**-20


class Levels(NamedTuple):
    """The features that compete for the stump of each level, and how coarse their codes are."""

    asked: NDArray[np.intp]  # (depth, n_asked)
    # (depth, n_asked): see `Twins.best_cuts`
    shifts: NDArray[np.int64]
    moves: NDArray[np.int64]


class Chosen(NamedTuple):
    """The stumps of a fern."""

    # See `Twins.fern_cells`.
    features: NDArray[np.intp]
    cuts: NDArray[np.int64]
    members: NDArray[np.bool_]
    # (depth,): the side with most rows, which levels that were not seen are on
    usual: NDArray[np.bool_]
    gains: NDArray[np.float64]  # (depth, n_asked): of the best stump of each feature asked


@dataclass(frozen=True)
class GrowthSample:
    """Rows on which the stumps of a fern are chosen."""

    codes: Any  # (n_features, n_rows)
    residuals: Any  # (n_rows, n_columns): 64 bits, gradients in the upper half, curvatures below
    loops: Twins  # the loops for this sample

    @property
    def n_rows(self) -> int:
        return len(self.residuals)

    def choose(self, draft: Draft, ridge: float) -> Chosen:
        """Return the stump of each level: the one with the largest gain."""
        n_codes, is_category = draft.n_codes, draft.is_category
        is_ranked = draw_ranked(n_codes[is_category], len(draft.levels.asked), draft.generator)
        levels = (n_codes, draft.levels, is_ranked)
        stumps = self.loops.choose_stumps(self.codes, is_category, *levels, self.residuals, ridge)
        features, cuts, n_above, ranks, gains = stumps
        cuts_or_sets = np.where(is_category[features], -1, cuts)
        usual = 2 * n_above > self.n_rows
        return Chosen(features, cuts_or_sets, ranks > cuts[:, None], usual, gains)


@dataclass(frozen=True)
class Draft:
    """A fern whose stumps are to be chosen: its features and numbers of rows."""

    number: int  # of the fern: a salt of the hashes that draw its rows
    n_shares: int  # number of shares of the rows; a fern sees one of them
    n_wanted: int  # most rows of its share that it is to see
    features: NDArray[np.intp]  # (n_features,): the groups that it may ask
    columns: NDArray[np.intp]  # of the residuals that its stumps are chosen by
    n_codes: NDArray[np.int64]  # (n_features,)
    is_category: NDArray[np.bool_]  # (n_features,)
    levels: Levels
    generator: Any


class Added(NamedTuple):
    """The table of a fern, and its effect on held-out rows."""

    table: Any  # (n_cells, n_columns): on the device of the rows
    gains: NDArray[np.float64]  # (depth + 1,): decrease of the held-out loss by each level
    # (n_ridges, 2): decrease of the held-out loss by steps of each ridge, and their squared length
    merits: NDArray[np.float64]
    loss: float  # sum of the losses of held-out rows after the fern; NaN if there are none


class GrowingRows:
    """The rows of this process, all of them or those of one worker.

    Codes are of one byte, the mean of the weights is one, and all random choices about a row are
    hashes of its key.
    """

    def __init__(
        self,
        codes: Codes,
        objective: Objective,
        y: NDArray,
        weights: NDArray[np.float64],
        keys: NDArray[np.uint64],
        seed: int,
    ) -> None:
        self._codes, self._loops, self._objective = codes, codes.loops, objective
        self._y, self._weights, self._keys = y, weights.astype(np.float32), keys
        self._seed = seed
        self.offsets, self.n_rows = codes.offsets, codes.n_rows
        self._shares: tuple[Any, list[NDArray[np.intp]]]
        self._cells = np.empty(self.n_rows, dtype=np.uint16)
        # Whether to keep the scores of held-out rows: in a regression, or if the caller chose them.
        self._keeps_scores = objective.is_numeric
        self.hold_out(0.0)

    @property
    def n_training(self) -> int:
        """Number of rows that are not held out."""
        return self.n_rows - self.n_held_out

    # Growth ------------------------------------------------------------------------------------

    def begin(self, intercept: NDArray[np.float32]) -> None:
        """Set all scores to a constant."""
        self.set_scores(intercept)
        self._largest = np.ones(2)
        self._update(None)
        self._update(None)  # with units that fit these residuals
        self.first_loss = self._least_loss = self.held_out_loss()
        self.best_held_out = self.held_out_scores()

    def choose(self, drafts: Sequence[Draft], ridge: float) -> list[Chosen]:
        """Return the stumps of several ferns, each chosen on a different sample of the rows.

        The ridge is meant for the curvature of cells of all rows, and is scaled to the sample.
        """
        n_rows, magnitudes = self.sizes_of_shares(drafts).T
        wanted = np.array([draft.n_wanted for draft in drafts])
        samples = self.samples(
            drafts, np.where(n_rows > wanted, wanted / np.maximum(magnitudes, 1), np.inf)
        )
        # The ridge is as small a share of that of all rows as the sums are.
        shares = n_rows / max(self.n_training, 1)
        ridges = ridge * shares / SAMPLE_UNIT * self._units[1]

        def choose(place: int) -> Chosen:
            return samples[place].choose(drafts[place], float(ridges[place]))

        return self._loops.each(choose, range(len(drafts)))

    def add(
        self,
        ferns: Sequence[Chosen],
        rates: Sequence[float],
        ridges: Sequence[float],
        used: int = 0,
    ) -> list[Added]:
        """Fill the tables of ferns, and add them to the scores, one after the other.

        A rate is a share of a Newton step. The tables have the ridge `used`; merits are returned
        for all ridges.
        """
        added = []
        if not self.n_held_out:  # there are no merits without held-out rows
            ridges, used = ridges[used : used + 1], 0
        for fern, rate in zip(ferns, rates, strict=True):
            sums = self.fill(fern.features, fern.cuts, fern.members) / self._units
            steps, gains, merits = self._loops.newton_steps(sums, tuple(ridges), used)
            table = (rate * steps).astype(np.float32)
            self._update(table)
            loss = self.held_out_loss() if self.n_held_out else np.nan
            if loss < self._least_loss:
                self._least_loss, self.best_held_out = loss, self.held_out_scores()
            added.append(Added(table, gains, merits, loss))
        return added

    def _update(self, table: NDArray[np.float32] | None) -> None:
        # Units are powers of two that fit the largest residuals of the fern before; residuals more
        # than twice as large are clipped.
        _, exponents = np.frexp(np.maximum(self._largest, SMALLEST_RESIDUAL))
        self._units = np.ldexp(1.0, RESIDUAL_BITS - exponents)
        self._largest = self.refresh(tuple(self._units.astype(np.float32)), table)

    # What each worker computes for its rows -----------------------------------------------------

    def hold_out(self, rows: float | NDArray[np.bool_]) -> int:
        """Hold out these rows, or about this share of all, for validation; return their number."""
        if isinstance(rows, np.ndarray):
            self._held_out, self._keeps_scores = rows, True
        else:
            self._held_out = draw(self._keys, 2 * self._seed + 1) < np.uint64(rows * 2**32)
        self._shares = (None, [])
        self._rows_held_out = np.flatnonzero(self._held_out)
        self.n_held_out = self._rows_held_out.size
        return self.n_held_out

    def start(self) -> NDArray[np.float32]:
        """Return the best constant for the training rows."""
        return self._objective.start(self._y, self.training_weights())

    def training_weights(self) -> NDArray[np.float64]:
        """Return the weights, zero for held-out rows."""
        return np.where(self._held_out, 0.0, self._weights)

    def set_scores(self, intercept: NDArray[np.float32]) -> None:
        """Set all scores to a constant, and do not compute residuals yet."""
        self._leading = self._held_out.astype(np.uint8)  # the leading bit of cells
        self._scores = np.tile(intercept, (self.n_rows, 1))
        self._packed = np.empty(self._scores.shape, dtype=np.int32)

    def refresh(self, units: tuple, table: NDArray[np.float32] | None) -> NDArray[np.float64]:
        """Add the table of the fern filled last to the scores, and compute the residuals.

        Units say how many steps one is, for gradients and for curvatures. Returned are the largest
        weighted gradient and curvature.
        """
        both = None if table is None else np.concatenate([table, table])

        def refresh(start: int, stop: int) -> tuple[float, float]:
            rows = slice(start, stop)
            scores = self._scores[rows]
            if both is not None:
                self._loops.add_table(self._cells[rows], both, scores)
            y, weights, packed = self._y[rows], self._weights[rows], self._packed[rows]
            return self._objective.pack(self._loops, scores, y, weights, units, packed)

        largest = self._loops.over_blocks(refresh, *self._scores.shape)
        return np.max(np.reshape(largest, (-1, 2)), axis=0, initial=0.0)

    def fill(self, features: NDArray[np.intp], cuts: NDArray[np.int64], members) -> NDArray:
        """Return the sums of gradients and curvatures in the cells of a fern.

        They are sums over training rows, then over held-out rows, (2 * n_cells, n_columns, 2); see
        `Twins.fern_cells` for the stumps.
        """
        self._codes.fern_cells(features, cuts, members, self._leading, self._cells)
        n_cells = 2 ** (len(features) + 1)
        return self._loops.histogram_packed(self._cells, self._packed, n_cells)

    def held_out_loss(self) -> float:
        """Return the sum of the losses of held-out rows."""

        def total(start: int, stop: int) -> int:
            rows = self._rows_held_out[start:stop]
            losses = self._objective.value(self._scores[rows], self._y[rows]) * self._weights[rows]
            # Sums of integers do not depend on the order of the rows.
            return int(np.rint(losses.astype(np.float64) / UNIT_OF_LOSS).astype(np.int64).sum())

        n_columns = self._scores.shape[1]
        totals = self._loops.over_blocks(total, self._rows_held_out.size, n_columns)
        return float(sum(totals)) * UNIT_OF_LOSS

    def held_out_scores(self) -> tuple[NDArray[np.float32], NDArray]:
        """Return scores and y of held-out rows, or of none if nobody needs them."""
        rows = self._rows_held_out if self._keeps_scores else np.empty(0, dtype=np.intp)
        return self._scores[rows], self._y[rows]

    def sizes_of_shares(self, drafts: Sequence[Draft]) -> NDArray[np.int64]:
        """Return the size of the share of each fern, and the sum of its residuals' norms.

        Each epoch divides the training rows at random into shares.
        """
        shares = [self._share(draft.number, draft.n_shares) for draft in drafts]
        keys = [(id(rows), draft.columns.tobytes()) for rows, draft in zip(shares, drafts)]
        different = {key: place for place, key in enumerate(keys)}

        def sizes(place: int) -> NDArray[np.int64]:
            columns = drafts[place].columns
            return self._loops.sizes_of_residuals(self._packed, shares[place], columns)

        by_key = dict(zip(different, self._loops.each(sizes, list(different.values()))))
        self._candidates = [(rows, by_key[key]) for rows, key in zip(shares, keys)]
        return np.array([(rows.size, norms.sum()) for rows, norms in self._candidates])

    def samples(self, drafts: Sequence[Draft], chances: NDArray[np.float64]) -> list[GrowthSample]:
        """Draw rows of the share of each fern in proportion to their residuals, weighed inversely.

        The shares are those of the last call of `sizes_of_shares`. A chance is that of a residual
        of norm one; if it is infinite, all rows are taken.
        """

        def drawn(place: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
            (rows, norms), draft, chance = self._candidates[place], drafts[place], chances[place]
            shares = np.ones(rows.size)
            if np.isfinite(chance):
                salt = SALTS_OF_SAMPLES * (self._seed + 1) + draft.number
                rows, shares = self._loops.draw_rows(self._keys, rows, norms * chance, salt)
            arguments = (self._packed, rows, draft.columns, shares, SAMPLE_UNIT)
            return rows, self._loops.weigh_residuals(*arguments)

        samples, loops = self._loops.each(drawn, range(len(drafts))), self._loops.alone
        return [
            GrowthSample(self._codes.take_some(draft.features, rows), residuals, loops)
            for draft, (rows, residuals) in zip(drafts, samples, strict=True)
        ]

    def _share(self, number: int, n_shares: int) -> NDArray[np.intp]:
        """Return the rows of a share; each row is in one share of an epoch."""
        epoch, share = divmod(number, n_shares)
        if n_shares == 1:  # all epochs have the same share
            epoch = 0
        if self._shares[0] != (epoch, n_shares):
            rows = np.flatnonzero(~self._held_out)
            draws = draw(self._keys[rows], SALTS_OF_SHARES * (self._seed + 1) + epoch)
            shares = (draws * np.uint64(n_shares)) >> np.uint64(32)
            shares = shares.astype(smallest_code_dtype(n_shares))
            ends = np.cumsum(np.bincount(shares, minlength=n_shares))[:-1]
            by_share = np.split(rows[np.argsort(shares, kind="stable")], ends)
            self._shares = ((epoch, n_shares), by_share)
        return self._shares[1][share]


@singledispatch
def growing_rows(codes: Codes, objective: Objective, y, weights, keys, seed: int):
    """Return the rows to grow ferns on, of the class that suits their codes; see `GrowingRows`."""
    return GrowingRows(codes, objective, y, weights, keys, seed)


def rows_of_a_fern(n_training: int, n_shares: int, n_wanted: int) -> int:
    """Return about how many rows the stumps of a fern are chosen on."""
    return min(n_training // n_shares, n_wanted)


def bins_of_a_cell(n_rows: int) -> int:
    """Return the number of bins for the codes of a feature in cells of this many rows.

    >>> bins_of_a_cell(1), bins_of_a_cell(400), bins_of_a_cell(10_000)
    (16, 64, 256)
    """
    return 2 ** min(max((n_rows // 4).bit_length() - 1, 4), 8)


def coarse_levels(asked: NDArray[np.intp], n_codes, n_rows: int, generator) -> Levels:
    """Bin codes so that there are at most a quarter as many bins as rows of a cell.

    In cells of few rows most cuts divide the rows alike, and each cut that is tried takes as long
    as adding up some rows. Random moves give every cut a chance in some fern.
    """
    most = np.array([[bins_of_a_cell(n_rows >> depth)] for depth in range(len(asked))])
    shifts = np.maximum(np.ceil(np.log2(n_codes[asked] / most)), 0).astype(np.int64)
    return Levels(asked, shifts, generator.integers(0, 2**shifts))

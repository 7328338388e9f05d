"""What ferns grow on: rows, where their scores stand, and what is left of the loss.

What goes in and comes out of each step is small: a fern goes in, and sums over its cells or a
sample of the rows come out. So the rows may be here with codes in memory or in files, on a
device, or in parts on the workers of a cluster.

The loss is told by its gradient and curvature. An objective has, for scores of shape
(n_rows, n_columns) in single precision,

    n_columns                 of the scores
    is_numeric                whether y are levels of numbers, not classes
    usual_curvature           of a row and column where all classes are as likely
    usual_rate                share of a Newton step that suits it
    ends_at_zero              whether progress is told by what is left of the loss, too
    start(y, weights)         the best constant, one number a column
    derivatives(scores, y)    gradient and curvature of each row and column
    value(scores, y)          loss of each row
    of_rows(y)                y as a device has it: classes, or the numbers of the levels

Derivatives and losses are computed where the scores are, and nothing is sent there meanwhile, so
that a device can record them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce, singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import Values, cast, exact_sum, is_numpy, namespace, numbers_below, to_host
from mbkl.engine.codes import Codes
from mbkl.engine.rows import GOLDEN, scramble
from mbkl.engine.twins import Twins
from mbkl.maps.categories import N_CODES, OrderedLevels
from mbkl.maps.numbers import Numbers
from mbkl.solvers.problem import expit

Single = NDArray[np.float32]

SMALL_RATE = 0.1
# Columns up to which one after the other is faster (python -m benchmarks.suite --all-rows).
_FEW_COLUMNS = 16
# Several columns are chosen by together as multiples of this: a register of the processor.
_LANES = 4
# Rows drawn for a fern count for several: a coarser unit keeps their sums within 32 bits.
SAMPLE_UNIT = 4
# Gradients and curvatures are rounded to so many bits of the largest, which leaves one to grow;
# where all are smaller than this, of this.
RESIDUAL_BITS, SMALLEST_RESIDUAL = 14, 1e-30
# What shares and samples are drawn by, times one more than the seed.
SALTS_OF_SHARES, SALTS_OF_SAMPLES = 1_000_003, 7_368_787
# Losses of held-out rows are added up in steps of this.
UNIT_OF_LOSS = 2.0**-20


# ------------------------------------------------------------- objectives


@dataclass(frozen=True)
class Targets:
    """What rows are to be told apart by."""

    y: Any  # (n_rows,): class of each row, or level of `numbers`
    n_classes: int
    weights: Any  # (n_rows,)
    numbers: Numbers | None = None  # what y stands for, where it is no class
    # (n_rows,): which rows decide when growth ends; None leaves it to chance
    held_out: Any = None


@dataclass(frozen=True)
class _OfClasses:
    """What the losses of classes share."""

    n_classes: int

    is_numeric, ends_at_zero = False, False

    @property
    def n_columns(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    def of_rows(self, y) -> NDArray[np.int64]:
        """Return the classes of rows, which Torch takes as an index."""
        return y.astype(np.int64)


@dataclass(frozen=True)
class LogLoss(_OfClasses):
    """Log loss of two classes in one column, of more in one column each (softmax).

    >>> gradient, _ = LogLoss(2).derivatives(np.zeros((2, 1), np.float32), np.array([0, 1]))
    >>> gradient.ravel().tolist()
    [0.5, -0.5]
    """

    @property
    def usual_curvature(self) -> float:
        return (1 - 1 / self.n_classes) / self.n_classes

    @property
    def usual_rate(self) -> float:
        # Of two classes half of the ferns are as good (`python -m benchmarks.suite --all-rows`).
        return 0.2 if self.n_classes == 2 else SMALL_RATE

    def start(self, y, weights):
        own = y[:, None] == numbers_below(self.n_classes, y)
        share = to_host(exact_sum(namespace(y).where(own, weights[:, None], 0.0)))
        logs = np.log(np.maximum(share / share.sum(), 1e-6))
        return (logs[1:] - logs[:1] if self.n_classes == 2 else logs).astype(np.float32)

    def derivatives(self, scores, y):
        if self.n_classes == 2:
            chance = expit(scores)
            return chance - cast((y == 1)[:, None], scores), chance * (1 - chance)
        chance = self._chances(scores)
        curvature = chance * (1 - chance)
        chance[numbers_below(len(y), y), y] -= 1
        return chance, curvature

    def value(self, scores, y):
        xp = namespace(scores)
        if self.n_classes == 2:
            margin = xp.where(y == 1, scores[:, 0], -scores[:, 0])
            return xp.logaddexp(xp.zeros_like(margin), -margin)
        shifted = scores - _largest(scores)
        return xp.log(_totals(xp.exp(shifted))) - shifted[numbers_below(len(y), y), y]

    def _chances(self, scores: Single) -> Single:
        chance = namespace(scores).exp(scores - _largest(scores))
        chance /= _totals(chance)[:, None]
        return chance


def _largest(scores: Values) -> Values:
    if is_numpy(scores):
        return _over_columns(np.maximum, scores)[:, None]
    return scores.amax(dim=1, keepdim=True)


def _totals(scores: Values) -> Values:
    return _over_columns(np.add, scores) if is_numpy(scores) else scores.sum(axis=1)


def _over_columns(combine: np.ufunc, scores: Single) -> Single:
    """Combine the scores of each row, column by column where these are few: NumPy is slow there."""
    if scores.shape[1] > _FEW_COLUMNS:
        return combine.reduce(scores, axis=1)
    return reduce(combine, scores.T)


@dataclass(frozen=True)
class HingeLoss(_OfClasses):
    """Squared hinge of one class against the rest, a column each; two classes are one column."""

    usual_curvature, usual_rate = 2.0, SMALL_RATE

    def start(self, y, weights):
        labels = self._labels(y)
        means = exact_sum(labels * weights[:, None]) / exact_sum(weights[:, None])
        return to_host(means).astype(np.float32)

    def derivatives(self, scores, y):
        labels = self._labels(y)
        slack = (1 - labels * scores).clip(min=0)
        return -2 * labels * slack, 2 * cast(slack > 0, scores)

    def value(self, scores, y):
        return ((1 - self._labels(y) * scores).clip(min=0) ** 2).sum(axis=1)

    def _labels(self, y: NDArray) -> Single:
        is_pair = self.n_classes == 2
        own = y[:, None] == (1 if is_pair else numbers_below(self.n_classes, y))
        return np.where(own, np.float32(1), np.float32(-1)) if is_numpy(own) else 2.0 * own - 1.0


@dataclass(frozen=True)
class _OfNumbers:
    """What the losses of numbers share."""

    numbers: Numbers  # the targets of each level of y

    is_numeric, ends_at_zero = True, False
    # Of a row at the best constant, about.
    usual_curvature, usual_rate = 1.0, SMALL_RATE

    @property
    def n_columns(self) -> int:
        return self.numbers.n_columns

    @cached_property
    def _values(self) -> Single:
        return self.numbers.values.astype(np.float32)

    def of_rows(self, y) -> Single:
        """Return the numbers of rows with these levels."""
        return self._values[y]

    def _targets(self, y) -> Values:
        return self.of_rows(y) if is_numpy(y) else y

    def start(self, y, weights):
        means = exact_sum(self.numbers.of_rows(y) * weights[:, None]) / exact_sum(weights[:, None])
        return means.astype(np.float32)


@dataclass(frozen=True)
class SquaredErrorLoss(_OfNumbers):
    """Half the squared error, a column for each target.

    >>> numbers, y = Numbers.of(np.array([1.0, -1.0]), np.ones(2), "squared_error")
    >>> SquaredErrorLoss(numbers).derivatives(np.zeros((2, 1), np.float32), y)[0].ravel().tolist()
    [-1.0, 1.0]
    """

    ends_at_zero = True
    # Residuals are rounded to a share of the largest: a few far ones must not blur all others.
    _LARGEST = 30.0

    def derivatives(self, scores, y):
        residuals = (scores - self._targets(y)).clip(-self._LARGEST, self._LARGEST)
        return residuals, namespace(scores).ones_like(scores)

    def value(self, scores, y):
        return ((scores - self._targets(y)) ** 2).sum(axis=1) / 2


@dataclass(frozen=True)
class QuantileLoss(_OfNumbers):
    """Pinball loss with its corner rounded off; that of 0.5 is half the absolute error."""

    # Half the width of what is rounded off, the mean distance from the median being one.
    _WIDTH = 0.1
    usual_curvature = 0.5

    def start(self, y, weights):
        return self.numbers.quantiles(y, weights).astype(np.float32)

    def derivatives(self, scores, y):
        over = scores - self._targets(y)
        slope = (over / self._WIDTH).clip(-1, 1) / 2 + (0.5 - float(self.numbers.level))
        # The curvature of the smallest parabola above the loss that touches it here.
        return slope, 0.5 / abs(over).clip(min=self._WIDTH)

    def value(self, scores, y):
        over, level = scores - self._targets(y), float(self.numbers.level)
        return namespace(over).where(over > 0, (1 - level) * over, -level * over).sum(axis=1)


@dataclass(frozen=True)
class PoissonLoss(_OfNumbers):
    """Poisson deviance of counts, of which the scores are the logarithms of the means."""

    _LARGEST_SCORE = 30.0

    def start(self, y, weights):
        return np.log(np.maximum(super().start(y, weights), np.float32(1e-9)))

    def derivatives(self, scores, y):
        means = self._means(scores)
        return means - self._targets(y), means

    def value(self, scores, y):
        return (self._means(scores) - self._targets(y) * scores).sum(axis=1)

    def _means(self, scores: Values) -> Values:
        return namespace(scores).exp(scores.clip(max=self._LARGEST_SCORE))


Objective = LogLoss | HingeLoss | SquaredErrorLoss | QuantileLoss | PoissonLoss
OBJECTIVES: dict[str, type[LogLoss | HingeLoss]] = {
    "log_loss": LogLoss,
    "squared_hinge": HingeLoss,
}
_OBJECTIVES_OF_NUMBERS: dict[str, type[SquaredErrorLoss | QuantileLoss | PoissonLoss]] = {
    "squared_error": SquaredErrorLoss,
    "absolute_error": QuantileLoss,
    "quantile": QuantileLoss,
    "poisson": PoissonLoss,
}


def objective_of(name: str, targets: Targets) -> Objective:
    """Return what ferns are grown to lower: that of a name for classes, the loss of numbers."""
    if targets.numbers is not None:
        return _OBJECTIVES_OF_NUMBERS[targets.numbers.loss](targets.numbers)
    return OBJECTIVES[name](targets.n_classes)


# ------------------------------------------------------------- rows


class Levels(NamedTuple):
    """Which features are asked for the stump of each level, and how coarse their codes are."""

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
    # (depth,): on which side most rows are: levels that were not seen go with them
    usual: NDArray[np.bool_]
    # (depth, n_asked): what the best stump of each feature that was asked would collect
    gains: NDArray[np.float64]


def _in_lanes(residuals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return residuals of several columns with columns of zeros, as the loops are compiled for."""
    n_columns = residuals.shape[1]
    missing = -n_columns % _LANES if n_columns > 1 else 0
    return np.pad(residuals, ((0, 0), (0, missing))) if missing else residuals


@dataclass(frozen=True)
class GrowthSample:
    """Rows on which the stumps of a fern are chosen."""

    codes: Any  # (n_features, n_rows)
    residuals: Any  # (n_rows, n_columns): gradients above, curvatures below, in 64 bits
    loops: Twins  # what computes with these

    @property
    def n_rows(self) -> int:
        return len(self.residuals)

    def choose(self, draft: Draft, ridge: float) -> Chosen:
        """Return the stump of each level: those that collect most gradient."""
        codes, residuals, loops = self.codes, _in_lanes(self.residuals), self.loops
        own_columns = slice(self.residuals.shape[1])
        order, starts = np.arange(self.n_rows), np.array([0, self.n_rows])
        n_codes, is_category = draft.n_codes, draft.is_category
        categories = np.flatnonzero(is_category)
        in_order = OrderedLevels(codes, categories, n_codes, ridge, loops)
        ranks = np.tile(np.arange(N_CODES, dtype=np.uint8), (len(codes), 1))
        stumps = []
        for asked, shifts, moves in zip(*draft.levels, strict=True):
            if categories.size:
                own = residuals[:, own_columns]
                ranks[categories] = in_order.ranks(order, own, starts, draft.generator)
                codes = in_order.put_in_order(ranks[categories])
            cells = (order, residuals, starts)
            gains, cuts = loops.best_cuts(codes, asked, *cells, n_codes, shifts, moves, ridge)
            place = int(np.argmax(gains))
            best = int(asked[place])
            cut = ((cuts[place] + 1) << shifts[place]) - moves[place] - 1
            cut = int(min(cut, n_codes[best] - 2))  # above the last code it divides nothing
            order, residuals, starts = loops.divide_cells(codes[best], cut, *cells)
            is_usual = 2 * (starts[2::2] - starts[1::2]).sum() > self.n_rows
            own_cut = -1 if is_category[best] else cut
            stumps.append((best, own_cut, ranks[best] > cut, is_usual, gains))
        return Chosen(*(np.array(each) for each in zip(*stumps, strict=True)))


@dataclass(frozen=True)
class Draft:
    """A fern whose stumps are to be chosen: what is drawn for it before any row is."""

    number: int  # tells its rows from those of other ferns
    n_shares: int  # the rows are divided in so many; a fern sees one of them
    n_wanted: int  # and so many of its rows, where there are more
    features: NDArray[np.intp]  # (n_features,): the groups that it sees
    columns: NDArray[np.intp]  # of the residuals
    n_codes: NDArray[np.int64]  # (n_features,)
    is_category: NDArray[np.bool_]  # (n_features,)
    levels: Levels
    generator: Any


class Added(NamedTuple):
    """What a fern came to."""

    table: Any  # (n_cells, n_columns): where the rows are
    gains: NDArray[np.float64]  # what its levels gained on rows that take no part
    # (n_ridges, 2): what steps of each ridge would gain on these rows, and how large they are
    merits: NDArray[np.float64]
    loss: float  # the sum of the losses of these rows, from now on; NaN where there are none


def merit_of(steps: Values, held_out: Values) -> tuple[Values, Values]:
    """Return what steps gain on rows that take no part, and their size there.

    Of these rows there are the sums of gradients and curvatures, (n_cells, n_columns, 2).
    """
    return -(steps * held_out[..., 0]).sum(), (steps**2 * held_out[..., 1]).sum()


class GrowingRows:
    """Rows here, or those of one worker.

    Codes are of one byte, the mean of the weights is one, and what is random about a row depends
    on its key alone.
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
        self.offsets, self.n_rows, self.n_held_out = codes.offsets, codes.n_rows, 0
        self._held_out = np.zeros(self.n_rows, dtype=bool)
        self._shares: tuple[Any, list[NDArray[np.intp]]] = (None, [])
        self._cells = np.empty(self.n_rows, dtype=np.uint16)
        self._tells_scores = objective.is_numeric

    @property
    def n_training(self) -> int:
        """Rows that take part."""
        return self.n_rows - self.n_held_out

    # Growth ------------------------------------------------------------------------------------

    def begin(self, intercept: NDArray[np.float32]) -> None:
        """Set all scores to a constant."""
        self.set_scores(intercept)
        self._largest = np.ones(2)
        self._update(None)
        self._update(None)  # with units that fit
        self.first_loss = self._least_loss = self.held_out_loss()
        self.best_held_out = self.held_out_scores()

    def choose(self, drafts: Sequence[Draft], ridge: float) -> list[Chosen]:
        """Return the stumps of several ferns, chosen side by side, each on rows of its own.

        The ridge is added to the curvature of each cell of all rows.
        """
        samples = [self._sampled(draft, ridge) for draft in drafts]

        def choose(number: int) -> Chosen:
            sample, own_ridge = samples[number]
            return sample.choose(drafts[number], own_ridge)

        return self._loops.each(choose, range(len(drafts)))

    def _sampled(self, draft: Draft, ridge: float) -> tuple[GrowthSample, float]:
        """Return the rows of a fern, and a ridge as small as their sums beside those of all."""
        share = (draft.number, draft.n_shares)
        n_rows, magnitude = self.size_of_share(*share, draft.columns)
        chance = draft.n_wanted / float(magnitude) if n_rows > draft.n_wanted else None
        sample = self.sample(*share, draft.features, draft.columns, chance)
        part = n_rows / max(self.n_training, 1)
        return sample, float(ridge * part / SAMPLE_UNIT * self._units[1])

    def add(
        self,
        ferns: Sequence[Chosen],
        rates: Sequence[float],
        ridges: Sequence[float],
        used: int = 0,
    ) -> list[Added]:
        """Fill the tables of ferns, and add them to the scores, one after the other.

        A rate is a share of a Newton step. It is used with one of the ridges; of all is told how
        they would do.
        """
        found = []
        for fern, rate in zip(ferns, rates, strict=True):
            sums = self.fill(fern.features, fern.cuts, fern.members) / self._units
            tried = [self._loops.newton_steps(sums, ridge) for ridge in ridges]
            steps, gains = tried[used]
            merits = np.array([merit_of(own, sums[len(own) :]) for own, _ in tried])
            table = (rate * steps).astype(np.float32)
            self._update(table)
            loss = self.held_out_loss() if self.n_held_out else np.nan
            if loss < self._least_loss:
                self._least_loss, self.best_held_out = loss, self.held_out_scores()
            found.append(Added(table, gains, merits, loss))
        return found

    def _update(self, table: NDArray[np.float32] | None) -> None:
        # Powers of two by what was largest a fern ago; what is more than twice that is cut off.
        _, exponents = np.frexp(np.maximum(self._largest, SMALLEST_RESIDUAL))
        self._units = np.ldexp(1.0, RESIDUAL_BITS - exponents)
        self._largest = self.refresh(tuple(self._units.astype(np.float32)), table)

    # What the rows of each worker do ------------------------------------------------------------

    def hold_out(self, rows: float | NDArray[np.bool_]) -> int:
        """Let these rows, or about such a share of all, take no part; return how many these are."""
        if isinstance(rows, np.ndarray):
            self._held_out, self._tells_scores = rows, True
        else:
            self._held_out = draw(self._keys, 2 * self._seed + 1) < np.uint64(rows * 2**32)
        self._shares = (None, [])
        self.n_held_out = int(self._held_out.sum())
        return self.n_held_out

    def start(self) -> NDArray[np.float32]:
        """Return the best constant for the rows that take part."""
        return self._objective.start(self._y, self.training_weights())

    def training_weights(self) -> NDArray[np.float64]:
        """Return the weights, zero for rows that take no part."""
        return np.where(self._held_out, 0.0, self._weights)

    def set_scores(self, intercept: NDArray[np.float32]) -> None:
        """Set all scores to a constant, without residuals."""
        self._leading = self._held_out.astype(np.uint8)
        self._scores = np.tile(intercept, (self.n_rows, 1))
        self._packed = np.empty(self._scores.shape, dtype=np.int32)

    def refresh(self, units: tuple, table: NDArray[np.float32] | None) -> NDArray[np.float64]:
        """Add the table of the fern filled last to the scores; compute the residuals anew.

        Units are the steps of one, of gradients and curvatures; returned are bounds of these times
        weights.
        """
        both = None if table is None else np.concatenate([table, table])

        def refresh(start: int, stop: int) -> tuple[float, float]:
            rows = slice(start, stop)
            scores, weights = self._scores[rows], self._weights[rows]
            if both is not None:
                self._loops.add_table(self._cells[rows], both, scores)
            gradient, curvature = self._objective.derivatives(scores, self._y[rows])
            self._loops.pack_residuals(gradient, curvature, weights, units, self._packed[rows])
            largest = [float(each.max(initial=0.0)) for each in (abs(gradient), curvature, weights)]
            return largest[0] * largest[2], largest[1] * largest[2]

        found = self._loops.over_blocks(refresh, self.n_rows)
        return np.max(np.reshape(found, (-1, 2)), axis=0, initial=0.0)

    def fill(self, features: NDArray[np.intp], cuts: NDArray[np.int64], members) -> NDArray:
        """Return the sums of gradients and curvatures in the cells of a fern.

        They are those of the rows that take part, then of those that do not, of shape
        (2 * n_cells, n_columns, 2); see `Twins.fern_cells` for the stumps.
        """
        self._codes.fern_cells(features, cuts, members, self._leading, self._cells)
        n_cells = 2 ** (len(features) + 1)
        return self._loops.histogram_packed(self._cells, self._packed, n_cells)

    def held_out_loss(self) -> float:
        """Return the sum of the losses of the rows that take no part."""
        rows = np.flatnonzero(self._held_out)
        losses = self._objective.value(self._scores[rows], self._y[rows]) * self._weights[rows]
        # Integers: their sum does not depend on the order of the rows.
        integers = np.rint(losses.astype(np.float64) / UNIT_OF_LOSS).astype(np.int64)
        return float(integers.sum()) * UNIT_OF_LOSS

    def held_out_scores(self) -> tuple[NDArray[np.float32], NDArray]:
        """Return scores and y of rows that take no part: of numbers, or where they are given."""
        rows = np.flatnonzero(self._held_out if self._tells_scores else [])
        return self._scores[rows], self._y[rows]

    def size_of_share(self, number: int, n_shares: int, columns: NDArray[np.intp]) -> NDArray:
        """Return how many rows a share has, and the sum of the magnitudes of their residuals."""
        rows = self._share(number, n_shares)
        self._sizes = self._loops.sizes_of_residuals(self._packed, rows, columns)
        return np.array([rows.size, self._sizes.sum()])

    def sample(
        self,
        number: int,
        n_shares: int,
        features: NDArray[np.intp],
        columns: NDArray[np.intp],
        chance: float | None,
    ) -> GrowthSample:
        """Draw rows of a share in proportion to their residuals, and weigh these accordingly.

        The rows that take part are divided in shares, by chance and anew in each epoch. `chance`
        is that of a residual of magnitude one; None takes all rows. Features and columns say which
        codes and residuals to return.
        """
        rows = self._share(number, n_shares)
        shares = np.ones(rows.size)
        if chance is not None:
            own = self._sizes * chance
            draws = draw(self._keys[rows], SALTS_OF_SAMPLES * (self._seed + 1) + number)
            drawn = np.flatnonzero(draws < own * 2**32)
            rows, shares = rows[drawn], np.minimum(own[drawn], 1.0)
        codes, loops = self._codes.take_some(features, rows), self._loops
        residuals = loops.weigh_residuals(self._packed, rows, columns, shares, SAMPLE_UNIT)
        return GrowthSample(codes, residuals, loops.alone)

    def _share(self, number: int, n_shares: int) -> NDArray[np.intp]:
        """Return the rows of a share; each row is in one share of an epoch."""
        epoch, share = divmod(number, n_shares)
        if n_shares == 1:
            epoch = 0
        if self._shares[0] != (epoch, n_shares):
            rows = np.flatnonzero(~self._held_out)
            draws = draw(self._keys[rows], SALTS_OF_SHARES * (self._seed + 1) + epoch)
            shares = ((draws * np.uint64(n_shares)) >> np.uint64(32)).astype(np.uint16)
            ends = np.cumsum(np.bincount(shares, minlength=n_shares))[:-1]
            by_share = np.split(rows[np.argsort(shares, kind="stable")], ends)
            self._shares = ((epoch, n_shares), by_share)
        return self._shares[1][share]


@singledispatch
def growing_rows(codes: Codes, objective: Objective, y, weights, keys, seed: int):
    """Return rows to grow ferns on, where their codes are; see `GrowingRows`."""
    return GrowingRows(codes, objective, y, weights, keys, seed)


def rows_of_a_fern(n_training: int, n_shares: int, n_wanted: int) -> int:
    """Return on about how many rows the stumps of a fern are chosen."""
    return min(n_training // n_shares, n_wanted)


def bins_of_a_cell(n_rows: int) -> int:
    """Return how many bins the codes of a feature are put in where cells have so many rows.

    >>> bins_of_a_cell(1), bins_of_a_cell(400), bins_of_a_cell(10_000)
    (16, 64, 256)
    """
    return 2 ** min(max((n_rows // 4).bit_length() - 1, 4), 8)


def coarse_levels(asked: NDArray[np.intp], n_codes, n_rows: int, generator) -> Levels:
    """Return how far codes are shifted and moved: no more of them than a quarter of a cell's rows.

    Where cells have few rows most cuts divide them alike, and trying one takes as long as adding
    up some rows; a random move brings every cut up in some fern.
    """
    most = np.array([[bins_of_a_cell(n_rows >> depth)] for depth in range(len(asked))])
    shifts = np.maximum(np.ceil(np.log2(n_codes[asked] / most)), 0).astype(np.int64)
    return Levels(asked, shifts, generator.integers(0, 2**shifts))


def draw(keys: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Return a number below 2^32 for each row, of its key and the salt alone."""
    with np.errstate(over="ignore"):
        return scramble(keys + np.uint64(salt) * GOLDEN) >> np.uint64(32)

"""Grown ferns: the labels choose their stumps, by column generation (gradient boosting).

Ferns are added one at a time. The stumps of the next one are chosen level by level, one for all
cells of a level, to have the largest gain on a fresh sample of the rows. All rows fill its table: a
damped Newton step in each cell, shrunk towards that of its parent cell. Growth stops early, when
the loss of held-out rows no longer falls.

Sums are sums of integers, and random choices about a row are hashes of its values and class: the
same bits for any number of threads and any order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import groupby
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from mbkl.declare import AT_LEAST_ONE, AUTO, POSITIVE, estimator, parameter
from mbkl.engine import limits
from mbkl.engine.arrays import exact_total, offsets_of, smallest_code_dtype, to_host
from mbkl.engine.rows import Rows
from mbkl.engine.twins import Twins
from mbkl.maps import device_growth  # noqa: F401  registers the growing rows of devices
from mbkl.maps.categories import LevelSets
from mbkl.maps.ferns import FernFamily, FernMaps
from mbkl.maps.growing_rows import (
    Added,
    Chosen,
    Draft,
    GrowingRows,
    coarse_levels,
    growing_rows,
    rows_of_a_fern,
)
from mbkl.maps.growth_losses import OBJECTIVES, Objective, Targets, objective_of
from mbkl.maps.ordered_levels import LevelOrder, ordered_levels
from mbkl.maps.stumps import StumpMaps, fine_stumps
from mbkl.solvers.problem import SharedProgress

# Most ferns of a growth; nearly all growths stop earlier. With half as many, steps get larger too
# soon on data that need more (python -m benchmarks.suite --all-rows).
_FERNS_OF_A_GROWTH = 1_000
# Columns of the scores that the stumps of one fern are chosen by. With twice as many, growth takes
# a fifth longer and is no better (python -m benchmarks.suite --all-rows).
_COLUMNS_OF_A_FERN = 4
# Features that a fern may ask if there are many: half of them, within these bounds.
_FEATURES_OF_A_FERN = (32, 256)
# If a fern sees less than half of the features, all are compared every time this many ferns have
# grown.
_FERNS_OF_A_LOOK = 32


@estimator
class GrownFerns(FernFamily):
    """Family of ferns that are grown one after the other by gradient boosting.

    A fern of depth d asks d questions of every row, of the form "is feature i above t" or "is the
    level of category i in set S". The labels choose the questions, which random ferns draw. The
    sum of the ferns is a model already when they have grown, and the squared norms of their tables
    are the weights theta of a learned kernel.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Largest number of stumps of a fern. Ferns begin with six or fewer and get deeper while the
        last levels lower the loss of validation rows. "auto" leaves eight rows in a cell on
        average, with at least 6 and at most 14 levels.
    n_ferns : int or "auto", default="auto"
        Largest number of ferns, of all growths together; "auto" is 1,000 for each growth.
    rate : float or "auto", default="auto"
        Learning rate: the share of a Newton step that each fern takes. It rises up to threefold if
        growth has not ended after half of all ferns. "auto" is 0.2 for two classes, otherwise 0.1.
    sample_rows : int or "auto", default="auto"
        Rows on which the stumps of a fern are chosen, drawn in proportion to their residuals.
        "auto" is eight for each cell, at least 16,000 and at most 130,000, and at most half of
        more than 4,000 rows.
    ridge : float or "auto", default="auto"
        Regularisation of the steps: the curvature that is added to every cell, in average rows.
        "auto" is 5. With 5,000 or more validation rows it is 1, 4, 16 or 64 times 5, whichever
        lately lowered their loss most.
    objective : {"log_loss", "squared_hinge"}, default="log_loss"
        Loss of a classifier; regressors have a parameter of their own.
    validation_share : float, default=0.1
        Share of the rows that are held out for early stopping (at most 50,000). After it, the
        tables are filled again with all rows, unless fewer than three percent were held out.
    patience : int, default=40
        Growth ends when the loss of validation rows has not fallen during this many ferns.
    n_growths : int or "auto", default="auto"
        Number of growths, each from other samples of rows and features, whose mean is the model.
        "auto" is 4 up to 6,600 rows, fewer for more, and 1 from 20,000 rows on or with fewer than
        2,000 ferns.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.maps import GrownFerns
    >>> X = np.random.default_rng(0).normal(size=(2000, 6))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = MBKLClassifier(maps=GrownFerns(n_ferns=50), random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    depth: Any = parameter(Interval(Integral, 1, 14, closed="both"), AUTO, default="auto")
    n_ferns: Any = parameter(AT_LEAST_ONE, AUTO, default="auto")
    rate: Any = parameter(Interval(Real, 0, 1, closed="right"), AUTO, default="auto")
    # The curvatures of more rows would not fit in 32 bits.
    sample_rows: Any = parameter(
        Interval(Integral, 2, 150_000, closed="both"), AUTO, default="auto"
    )
    ridge: Any = parameter(POSITIVE, AUTO, default="auto")
    objective: str = parameter(StrOptions(set(OBJECTIVES)), default="log_loss")
    validation_share: float = parameter(Interval(Real, 0, 0.5, closed="both"), default=0.1)
    patience: int = parameter(AT_LEAST_ONE, default=40)
    n_growths: Any = parameter(AT_LEAST_ONE, AUTO, default="auto")

    def default_n_maps(self, shape: tuple[int, int]) -> int:
        """Return the largest number of ferns that `n_maps="auto"` grows."""
        if self.n_ferns != "auto":
            return int(self.n_ferns)
        return _FERNS_OF_A_GROWTH * self._growths_of(shape[0])

    def _growths_of(self, n_rows: int, n_ferns: float = np.inf) -> int:
        """Return how many growths are averaged."""
        if self.n_growths != "auto":
            return int(self.n_growths)
        wanted = -(-limits.ROWS_OF_ALL_GROWTHS // max(n_rows, 1))
        affordable = min(wanted, n_ferns // _FERNS_OF_A_GROWTH)
        return int(np.clip(affordable, 1, limits.MOST_GROWTHS))

    def grow(
        self,
        rows: Rows,
        targets: Targets,
        n_maps: int,
        seed: int,
        progress: Callable[[Any], bool] = lambda state: False,
        n_levels: NDArray[np.int64] | None = None,
    ) -> GrownMaps:
        """Grow up to `n_maps` ferns on labelled rows; see `Stumps.fit_codes` for the levels.

        `progress` is called after each fern with the `Growth` so far; True ends the growth, after
        the ferns that were chosen together with this one.
        """
        self._validate_params()
        y, weights = targets.y, targets.weights
        stumps, codes = fine_stumps(rows, weights, seed)
        objective = objective_of(self.objective, targets)
        mean = exact_total(weights) / len(weights)
        targets = replace(targets, weights=weights / mean)
        keys = rows.keys_apart(y, weights, seed)
        counts = np.zeros(rows.shape[1], np.int64) if n_levels is None else n_levels
        codes, orders = ordered_levels(rows, codes, counts, objective, targets, keys, seed)
        labelled = (objective, y, targets.weights, keys, seed)
        is_category = np.append(counts[stumps.features] > 0, np.zeros(len(orders), dtype=bool))
        shared = SharedProgress(progress)
        n_growths = min(self._growths_of(rows.shape[0], n_maps), n_maps)
        # Small growths run in parallel, a thread each. Large ones use all threads in their loops,
        # and side by side would need several times the memory.
        is_small = n_growths > 1 and rows.shape[0] <= limits.ROWS_OF_ALL_GROWTHS
        codes_of_a_thread = codes.in_one_thread() if is_small else None

        def grow_one(number: int) -> GrowthResult | None:
            if number and (shared.is_told_to_stop or shared.has_failed):
                return None
            growing = growing_rows(codes_of_a_thread or codes, *labelled)
            growth = Growth(self, growing, objective, seed, is_category, targets.held_out, number)
            return growth.run(n_maps // n_growths, shared)

        n_threads = 1 if codes_of_a_thread is None else min(rows.loops.n_threads, n_growths)
        # A new pool, as the pool of the loops is for short tasks.
        with ThreadPoolExecutor(n_threads) as pool, shared:
            run_all = pool.map if n_threads > 1 else map
            results = [grown for grown in run_all(grow_one, range(n_growths)) if grown is not None]
        finished = [grown for grown in results if grown.is_finished]
        return averaged_maps(finished or results, stumps, orders, counts, rows.loops)


@dataclass(frozen=True)
class GrownMaps(FernMaps):
    """Ferns with the tables of their growth, which are a model already."""

    path: NDArray[np.float64]  # (n_cells, n_columns): the tables of the growth
    intercept: NDArray[np.float64]  # (n_columns,)
    n_rounds: int  # ferns that were grown, with those after the best one
    # (n_held_out, n_columns) and (n_held_out,): of held-out rows, by tables without them; kept in
    # a regression, or if the caller chose these rows
    held_out_scores: NDArray[np.float32]
    held_out_y: NDArray

    def plain(self) -> FernMaps:
        """Return the ferns alone."""
        return FernMaps(**{each.name: getattr(self, each.name) for each in fields(FernMaps)})

    def prior(self, rates: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the kernel weights of the growth: the squared norms of the tables."""
        squares = (self.path**2).sum(axis=1)
        return np.add.reduceat(squares, self.cell_offsets[:-1]) if self.n_maps else np.empty(0)


@dataclass
class Term:
    """A fern with its table, which is added to the scores."""

    fern: Chosen
    ridge: int  # place among the ridges of `HeldOutRidges`
    table: Any  # (n_cells, n_columns): on the device of the rows


@dataclass
class GrowthResult:
    """The result of one growth."""

    terms: list[Term]
    intercept: NDArray[np.float64]
    n_rounds: int
    held_out: tuple[NDArray[np.float32], NDArray]  # scores and y
    is_finished: bool  # False if progress stopped it


class HeldOutGains:
    """Exponentially fading sums of the gain of each level of the ferns on held-out rows.

    Ferns begin at the least depth, and get deeper while the last levels bring a share of the whole
    gain. Ferns that are deep from the start fit the noise of the training rows unless the data
    need depth.
    """

    _FADING, _WORTH_IT = 0.97, 0.1

    def __init__(self, least: int, most: int) -> None:
        self._gains = np.zeros(most + 1)
        self._least = min(least, most)

    def add(self, gains: NDArray[np.float64]) -> None:
        """Add the gain of each level of one fern."""
        levels = self._gains[: len(gains)]
        levels[:] = self._FADING * levels + gains

    @property
    def depth(self) -> int:
        """Depth of the next fern: one level more than the last useful one."""
        gains = np.maximum(self._gains[1:], 0.0)
        useful = np.flatnonzero(gains > self._WORTH_IT * gains.sum())
        deepest = int(useful[-1]) + 2 if useful.size else 1
        return min(max(deepest, self._least), gains.size)


class HeldOutRidges:
    """Exponentially fading sums of the merits of several ridges on held-out rows.

    The best ridge has the largest gain divided by the length of its steps on these rows, so that
    the scale of the steps does not matter. Noisy cells need a larger ridge.
    """

    FACTORS = (1.0, 4.0, 16.0, 64.0)
    _FADING, _USUAL = 0.97, 5.0

    def __init__(self, wanted: Any, curvature: float, n_held_out: int) -> None:
        is_chosen = wanted == "auto" and n_held_out >= limits.FEWEST_ROWS_TO_SHRINK
        rows = self._USUAL if wanted == "auto" else float(wanted)
        factors = self.FACTORS if is_chosen else self.FACTORS[:1]
        self.values = [factor * rows * curvature for factor in factors]
        self._merits = np.zeros((len(factors), 2))

    def add(self, merits: NDArray[np.float64]) -> None:
        """Add the merits of each ridge for one fern; see `Added`."""
        self._merits = self._FADING * self._merits + merits

    @property
    def best(self) -> int:
        """The place of the ridge for the next ferns."""
        gained, squared_length = self._merits.T
        return int(np.argmax(gained / np.sqrt(np.maximum(squared_length, np.finfo(float).tiny))))


class FeatureGains:
    """Fading means of the gain of a stump on each feature, relative to the best feature.

    Half of the features compete for each stump, drawn with probabilities that increase with these
    means: nearly as good as all features, in half the time.
    """

    _FADING, _SMALLEST, _BOUNDS = 0.9, 0.02, (8, 32)

    def __init__(self, n_features: int) -> None:
        self._shares = np.ones(n_features)

    def restart(self, gains: NDArray[np.float64]) -> None:
        """Begin anew with the gains of a first stump on each feature.

        Gains up to the median are taken for noise.
        """
        beyond = np.maximum(gains - np.median(gains), 0.0)
        if beyond.any():
            self._shares = beyond / beyond.max()

    def draw_features(self, count: int, generator) -> NDArray[np.intp]:
        """Draw `count` of all features, better ones more often, and return them in order."""
        times = generator.standard_exponential(self._shares.size)
        times /= self._shares + self._SMALLEST
        return np.sort(np.argpartition(times, count)[:count])

    def draw_asked(self, features: NDArray[np.intp], depth: int, generator) -> NDArray[np.intp]:
        """Draw some of these features for each level, and return their places among them."""
        least, most = self._BOUNDS
        count = min(max(len(features) // 2, least), most)
        if count >= len(features):
            return np.tile(np.arange(len(features)), (depth, 1))
        # The smallest of exponential times draw without replacement, in proportion to the shares.
        times = generator.standard_exponential((depth, len(features)))
        times /= self._shares[features] + self._SMALLEST
        return np.sort(np.argpartition(times, count, axis=1)[:, :count], axis=1)

    def update(self, features: NDArray[np.intp], gains: NDArray[np.float64]) -> None:
        """Update the shares by the gains of the features asked on each level of a fern.

        The gain of the level before is subtracted, so that only the new stump counts.
        """
        best = gains.max(axis=1)
        before = np.append(0.0, best[:-1])
        added = np.maximum(gains - before[:, None], 0.0)
        for level in np.flatnonzero(best > before):
            asked, share = features[level], added[level] / (best[level] - before[level])
            self._shares[asked] += (1 - self._FADING) * (share - self._shares[asked])


class Growth:
    """A growth of ferns, one after the other.

    `is_category` says which groups of codes are levels, `held_out` which rows are for early
    stopping (None draws them), and `number` counts the growths that are averaged, each of which
    draws other rows and features.
    """

    _NUMBERS_OF_A_GROWTH = 1_000_000  # more than a growth has ferns
    _LEAST_DEPTH, _MOST_DEPTH, _ROWS_A_CELL = 6, 14, 8
    # Ferns that are chosen together if there are many rows.
    _SIDE_BY_SIDE = 4
    # A share of the rows has this many times as many rows as the sample drawn from it.
    _SHARE_BY_SAMPLE = 4
    # A smaller decrease of the loss, relative to the whole decrease, is no progress.
    _SMALLEST_PROGRESS = 1e-3
    # Steps grow between these shares of all ferns up to this factor, as growth would otherwise not
    # have finished by the last fern.
    _LATE, _LARGER = (0.5, 0.7), 3.0
    # Smallest share of held-out rows for which all tables are filled again with them.
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
        most = limits.MOST_ROWS_TO_END_GROWTH / max(rows.n_rows, 1)
        share = min(family.validation_share, most)
        rows.hold_out(share if held_out is None else held_out)
        if rows.n_held_out == rows.n_rows:  # which can happen with very few rows
            rows.hold_out(0.0)
        deepest = int(np.log2(max(rows.n_training, 1) / self._ROWS_A_CELL))
        depth = int(np.clip(deepest, self._LEAST_DEPTH, self._MOST_DEPTH))
        if family.depth != "auto":
            depth = int(family.depth)
        self.gains = HeldOutGains(self._LEAST_DEPTH, depth)
        self._feature_gains, self._n_comparisons = FeatureGains(self._n_features), 0
        self.terms: list[Term] = []
        self.losses: list[float] = []
        self._n_chosen = number * self._NUMBERS_OF_A_GROWTH
        curvature = objective.usual_curvature
        self.ridges = HeldOutRidges(family.ridge, curvature, rows.n_held_out)
        self._begin()

    @property
    def _has_few_rows(self) -> bool:
        return self._rows.n_training <= limits.FEW_ROWS_OF_GROWTH

    @property
    def n_iter(self) -> int:
        """Ferns grown so far."""
        return len(self.terms)

    @property
    def standing(self) -> str:
        """The state of the growth, in words."""
        return f"loss of held-out rows {self.losses[-1]:.4f}"

    def run(self, n_ferns: int, progress: Callable[[Growth], bool]) -> GrowthResult:
        """Grow ferns until the loss of held-out rows no longer falls (early stopping).

        Ferns that are chosen together are all added before growth ends.
        """
        self._n_ferns = n_ferns
        self.losses = [self._mean(self._rows.first_loss)]
        best = last_progress = 0
        is_told_to_stop, has_ended = False, self._rows.offsets.size == 1
        while len(self.terms) < n_ferns and not (is_told_to_stop or has_ended):
            for term, loss in self._grow_next():
                self.terms.append(term)
                self.losses.append(self._mean(loss))
                last = len(self.terms)
                if not self._rows.n_held_out or self.losses[last] < self.losses[best]:
                    best = last
                is_told_to_stop = is_told_to_stop or bool(progress(self))
                decrease = self.losses[0] - self.losses[last]
                # Where the loss can fall to zero, small decreases of a small rest matter, too.
                if self.objective.ends_at_zero:
                    decrease = min(decrease, self.losses[last])
                least = self._SMALLEST_PROGRESS * decrease
                if self.losses[last] < self.losses[last_progress] - least:
                    last_progress = last
                waited = last - last_progress if self._rows.n_held_out else 0
                has_ended |= waited >= self.family.patience
        n_rounds, held_out = len(self.terms), self._rows.best_held_out
        self.terms = self.terms[:best]
        if self._rows.n_held_out > self._WORTH_REFILLING * self._rows.n_rows:
            self._refill()
        intercept = self._intercept.astype(np.float64)
        return GrowthResult(self.terms, intercept, n_rounds, held_out, not is_told_to_stop)

    def _refill(self) -> None:
        """Fill all tables again with all rows."""
        terms, self.terms = self.terms, []
        self._rows.hold_out(0.0)
        self._begin()
        for used, same in groupby(terms, lambda term: term.ridge):
            filled = self._add([term.fern for term in same], used)
            self.terms.extend(term for term, _ in filled)

    def _grow_next(self) -> list[tuple[Term, float]]:
        """Grow the next ferns; return each with the loss of held-out rows after it.

        The stumps of several ferns are chosen at once, since adding one fern to the scores changes
        little for the next.
        """
        used = self.ridges.best
        results = self._add(self._choose(used)[: self._n_ferns - len(self.terms)], used)
        for _, added in results:
            self.gains.add(added.gains)
            self.ridges.add(added.merits)
        return [(term, added.loss) for term, added in results]

    def _add(self, ferns: list[Chosen], used: int) -> list[tuple[Term, Added]]:
        """Fill the tables of ferns with damped Newton steps and add them to the scores."""
        rates = [self._rate(len(self.terms) + place) for place in range(len(ferns))]
        results = self._rows.add(ferns, rates, self.ridges.values, used)
        pairs = zip(ferns, results, strict=True)
        return [(Term(fern, used, added.table), added) for fern, added in pairs]

    def _choose(self, used: int) -> list[Chosen]:
        """Return the stumps of the next ferns, chosen with one of the ridges."""
        if self._sees_few_features and len(self.terms) >= self._n_comparisons * _FERNS_OF_A_LOOK:
            self._compare_features(used)
        count = 1 if self._has_few_rows else self._SIDE_BY_SIDE
        numbers = range(self._n_chosen, self._n_chosen + count)
        self._n_chosen = numbers.stop
        drafts = [self._draft(number) for number in numbers]
        chosen = self._rows.choose(drafts, self.ridges.values[used])
        ferns = []
        for draft, fern in zip(drafts, chosen, strict=True):
            self._feature_gains.update(draft.features[draft.levels.asked], fern.gains)
            ferns.append(fern._replace(features=draft.features[fern.features]))
        return ferns

    def _compare_features(self, used: int) -> None:
        """Find the gain of a first stump on each feature, on a few rows."""
        number = self._n_chosen + self._NUMBERS_OF_A_GROWTH // 2  # no fern has this number
        generator = np.random.Generator(np.random.Philox([self._seed, 5, number]))
        features = np.arange(self._n_features)
        draft = self._draft_of(number, features, features[None], limits.ROWS_OF_A_LOOK, generator)
        (chosen,) = self._rows.choose([draft], self.ridges.values[used])
        self._feature_gains.restart(chosen.gains[0])
        self._n_comparisons += 1

    def _draft(self, number: int) -> Draft:
        """Draw the features and the number of rows of a fern."""
        generator = np.random.Generator(np.random.Philox([self._seed, 4, number]))
        count, depth = self._n_features_of_a_fern, self.gains.depth
        if self._sees_few_features:
            features = self._feature_gains.draw_features(count, generator)
        else:
            features = _draw_some(self._n_features, count, generator)
        asked = self._feature_gains.draw_asked(features, depth, generator)
        return self._draft_of(number, features, asked, self._n_wanted(depth), generator)

    def _draft_of(
        self, number: int, features: NDArray[np.intp], asked, n_wanted: int, generator
    ) -> Draft:
        """Return the draft of a fern with these features, some of which each level asks."""
        columns = _draw_some(self.objective.n_columns, _COLUMNS_OF_A_FERN, generator)
        n_shares = max(round(self._rows.n_training / (self._SHARE_BY_SAMPLE * n_wanted)), 1)
        n_rows = rows_of_a_fern(self._rows.n_training, n_shares, n_wanted)
        n_codes, is_category = self._n_codes[features], self._is_category[features]
        levels = coarse_levels(asked, n_codes, n_rows, generator)
        inputs = (features, columns, n_codes, is_category, levels, generator)
        return Draft(number, n_shares, n_wanted, *inputs)

    @cached_property
    def _n_codes(self) -> NDArray[np.int64]:
        return np.diff(self._rows.offsets)

    @property
    def _n_features(self) -> int:
        return self._n_codes.size

    @property
    def _sees_few_features(self) -> bool:
        """Whether a fern sees less than half of the features."""
        return self._n_features_of_a_fern < self._n_features // 2

    @cached_property
    def _n_features_of_a_fern(self) -> int:
        least, most = _FEATURES_OF_A_FERN
        # Each level of a category counts as a feature: with many levels a fern sees half of the
        # columns, so that not all ferns ask about the same few categories.
        n_columns = np.where(self._is_category, self._n_codes, 1).sum()
        return min(max(self._n_features // 2, 2), most) if n_columns >= 2 * least else least

    def _n_wanted(self, depth: int) -> int:
        """Return the number of rows on which the stumps of a fern of this depth are chosen."""
        if self.family.sample_rows != "auto":
            return int(self.family.sample_rows)
        least, most = limits.ROWS_OF_A_FERN
        wanted = min(max(self._ROWS_A_CELL * 2**depth, least), most)
        return wanted if self._has_few_rows else min(wanted, self._rows.n_training // 2)

    def _rate(self, number: int) -> float:
        """Return the share of a Newton step that a fern takes, by its place in the growth."""
        first, last = self._LATE
        late = min(max((number / self._n_ferns - first) / (last - first), 0.0), 1.0)
        rate = self.objective.usual_rate if self.family.rate == "auto" else self.family.rate
        return rate * (1.0 + late * (self._LARGER - 1.0))

    def _begin(self) -> None:
        """Set the scores to the best constant."""
        self._intercept = self._rows.start()
        self._rows.begin(self._intercept)

    def _mean(self, loss: float) -> float:
        """Return the mean loss of held-out rows from their sum."""
        n_held_out = self._rows.n_held_out
        return loss / n_held_out if n_held_out else np.nan


def _draw_some(n_all: int, count: int, generator) -> NDArray[np.intp]:
    """Draw `count` of the numbers below `n_all`, in order."""
    if count >= n_all:
        return np.arange(n_all)
    return np.sort(generator.choice(n_all, count, replace=False))


def averaged_maps(
    results: list[GrowthResult],
    fine: StumpMaps,
    orders: list[LevelOrder],
    n_levels: NDArray[np.int64],
    loops: Twins,
) -> GrownMaps:
    """Return the mean of growths, with thresholds in place of codes, and equal cells merged."""
    ferns = [term.fern for result in results for term in result.terms]
    cells = [to_host(term.table) for result in results for term in result.terms]
    by_group = np.append(fine.features, [order.feature for order in orders]).astype(np.intp)
    features = [by_group[fern.features] for fern in ferns]
    thresholds = [_thresholds(fern, fine) for fern in ferns]
    sets = [members for fern in ferns for members in _level_sets(fern, fine, orders, n_levels)]
    # With little work per thread, threads wait for the interpreter.
    is_much = sum(map(np.size, cells)) > limits.ENTRIES_WORTH_THREADS * len(cells)
    each = (loops if is_much else loops.alone).each
    merged = each(lambda number: _distinct_rows(cells[number]), range(len(cells)))
    sizes = np.array([len(distinct) for distinct, _ in merged], dtype=np.int64)
    dtype = smallest_code_dtype(int(sizes.max(initial=1)))
    nothing, no_cells = np.empty(0), np.empty((0, results[0].intercept.size))
    all_thresholds = np.concatenate([nothing, *thresholds])
    scores, y = zip(*(result.held_out for result in results), strict=True)
    return GrownMaps(
        np.concatenate([by_group[:0], *features]),
        all_thresholds,
        offsets_of(np.array([stumps.size for stumps in features], dtype=np.int64)),
        np.ones(len(cells), dtype=np.uint64),
        np.array([numbers.size for _, numbers in merged], dtype=np.int64),
        np.concatenate([nothing, *(numbers for _, numbers in merged)]).astype(dtype),
        offsets_of(sizes),
        np.concatenate([no_cells, *(distinct for distinct, _ in merged)]) / len(results),
        np.mean([result.intercept for result in results], axis=0),
        sum(result.n_rounds for result in results),
        np.mean(scores, axis=0),
        y[0],
        sets=_joined_sets(sets, all_thresholds, n_levels),
    )


def _thresholds(fern: Chosen, fine: StumpMaps) -> NDArray[np.float64]:
    """Return the thresholds of the stumps of a fern; NaN for stumps on levels."""
    has_threshold = (fern.cuts >= 0) & (fern.features < fine.n_groups)
    places = fine.edges.offsets[np.where(has_threshold, fern.features, 0)] + fern.cuts
    edges = np.append(fine.edges.thresholds, np.nan)
    return edges[np.where(has_threshold, places, -1)]


def _level_sets(
    fern: Chosen, fine: StumpMaps, orders: list[LevelOrder], n_levels
) -> Iterator[NDArray[np.bool_]]:
    """Yield for each stump on levels which cells of its column are in its set."""
    stumps = zip(fern.features, fern.cuts, fern.members, fern.usual, strict=True)
    for group, cut, members, usual in stumps:
        if group >= fine.n_groups:
            yield orders[group - fine.n_groups].codes > cut
        elif cut < 0:
            edges = fine.edges.thresholds[slice(*fine.edges.offsets[group : group + 2])]
            levels = np.arange(int(n_levels[fine.features[group]]))
            cells = members[np.searchsorted(edges, np.append(-np.inf, levels))]
            # New levels, and missing values if training rows had none, go to the usual side.
            cells[0] = members[0] if np.isneginf(edges[0]) else usual
            yield np.append(cells, usual)


def _joined_sets(sets: list[NDArray[np.bool_]], thresholds, n_levels) -> LevelSets | None:
    """Return the sets of the stumps without a threshold; None if there are none."""
    if not sets:
        return None
    has_set = np.isnan(thresholds)
    numbers = np.where(has_set, np.cumsum(has_set) - 1, -1)
    offsets = offsets_of(np.array([members.size for members in sets]))
    return LevelSets(numbers, np.concatenate(sets), offsets, n_levels)


def _distinct_rows(table: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return the distinct rows of a table, and the index among them of each row."""
    # Sorting one number per row is many times faster than sorting rows.
    factors = np.sqrt(2.0 + np.arange(table.shape[1]))
    sums = (table * factors).sum(axis=1)
    _, first, number = np.unique(sums, return_index=True, return_inverse=True)
    if (table[first][number] == table).all():
        return table[first], number
    distinct, number = np.unique(table, axis=0, return_inverse=True)
    return distinct, number.ravel()

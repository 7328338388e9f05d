"""The kernel that the maps approach as their number grows, learned on a sample of the rows.

With infinitely many maps the kernel of stumps is 1 - D and that of Poisson ferns
exp(-depth * D), where D(x, z) is the chance that a random stump separates x and z. On a
few hundred rows such a kernel is a small matrix, and a ridge regression on the labels (or
numbers) has leave-one-out errors in closed form. That is cheap enough to learn from the
data, before any map is drawn,

- how often each feature should be drawn (its rate), in proportion to how much the
  learned function changes along it,
- the depth of the ferns, and the share of stumps beside them,
- the cost of errors,
- for regression, a linear model in all features that leaves less for the maps to learn.

Matrices of pairs of rows are in single precision, which is enough to compare errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import strmm
from scipy.linalg.lapack import spotrf, spotrs, strtri

from mbkl.engine import limits
from mbkl.engine.arrays import one_blas_thread
from mbkl.engine.rows import Sample, copies_of
from mbkl.engine.twins import TWINS, Twins
from mbkl.maps.categories import LevelCuts
from mbkl.maps.interactions import evidence_of_features
from mbkl.maps.level_cuts import ordered_columns, steps_of_levels
from mbkl.maps.numbers import Numbers

Array = NDArray[np.float64]
Pairs = NDArray[np.float32]  # (n_rows, n_rows): a value for each pair of rows

# Grid of candidates, chosen on the development sets of the benchmark suite: mean exponents of the
# fern kernel over pairs of rows, shares of stumps in the kernel, and ridges.
_EXPONENTS = (1.8, 3.6, 7.2)
_STUMP_SHARES = (0.1, 0.5)
_RIDGES = tuple(10.0 ** np.arange(-2.5, 1.0, 0.5))
# Axes of the grid. A local search along shares and ridges, for each exponent, tries about 12 of the
# 42 candidates; it found the best of all 42 on 140 of 142 tables.
_OF_EXPONENTS, _OF_SHARES, _OF_RIDGES = 0, 1, 2
_START = 0, 0, 3
# Residuals are clipped to this, so that one outlier among a few hundred rows does not decide.
_LARGEST_RESIDUAL = 3.0
# Rates are learned again while the error falls below this share of the last one, at most so many
# times. A line has to lower the error by as much.
_WORTH_IT = 0.98
_MOST_ROUNDS = 6
# Weights of a linear kernel that are tried; the kernel of the maps has weight one.
_LINE_SHARES = (1.0, 10.0)
# A line is refused if its error variance from rounding values to those of other rows exceeds both
# the first share of the loss without a line and the second share of the variance of the targets.
_MOST_ROUNDING, _LITTLE_ROUNDING = 0.1, 0.005
# Folds of the cross-validation of the choice on few rows.
_FOLDS = 5
# Every feature is drawn at least this often, relative to equal rates.
_SMALLEST_RATE = 0.05
_MOST_DIFFERENCES = 5e6
_DEEPEST = 40.0
# Largest cost for the squared hinge. Unlike the ridge regression, it ignores rows that are right by
# a margin, and gains nothing from higher costs.
_LARGEST_COST = 5.0
# Depth grows with this power of the number of rows beyond the sample, as more rows fill smaller
# cells (on the development sets of the benchmark suite, 3,000 to 10,000 rows).
_DEPTH_GROWTH = 0.15
# Relative difference of errors that counts as none where the sample stands for many more rows.
_EQUAL = 0.01
# Size of a triangular matrix below which inverting it by halves saves no time.
_SMALLEST_HALF = 64
_LARGEST = float(np.finfo(np.float32).max)
# Chance that a random stump separates two levels: it asks for a random half of all levels.
PARTED_LEVELS = 0.5


@dataclass(frozen=True)
class Slopes:
    """The slopes of a linear model, in the units of features and targets."""

    values: Array  # (n_features, n_columns): change of each target per unit of each feature
    centre: Array  # (n_features,): the value that stands for a missing one

    def optimism(self, n_rows: int) -> float:
        """Return by what factor residuals of new rows are larger than those of training rows.

        Each slope takes a degree of freedom from the residuals of its training rows.
        """
        n_slopes = int(self.values.any(axis=1).sum())
        return float(np.sqrt(n_rows / max(n_rows - n_slopes, n_rows / 4)))


@dataclass(frozen=True)
class Choice:
    """Which maps to draw, and the cost to train with."""

    rates: Array  # (n_features,): how often to draw each feature; sums to one
    depth: float  # mean depth of the ferns
    stump_share: float  # share of the kernel that stumps have; ferns have the rest
    cost: float  # cost of one row, for kernel weights that sum to one
    error: float  # leave-one-out mean of the squared hinge loss (or squared error) of the sample
    n_rows: int = 0  # number of distinct rows that the sample stands for
    slopes: Slopes | None = None  # the line that the maps need not learn
    # By what factor residuals of new rows are larger than those of the rows of the choice.
    optimism: float = 1.0
    cuts: LevelCuts | None = None  # orders of levels that stumps cut, beside random halves


@dataclass(frozen=True)
class _Candidate:
    """A kernel and a ridge of the grid, with their leave-one-out error."""

    place: tuple[int, ...] = _START  # position on each axis of the grid
    error: float = np.inf
    weights: Array | None = None  # (n_rows, n_columns): dual weights, once they are solved for

    @property
    def exponent(self) -> float:
        return _EXPONENTS[self.place[_OF_EXPONENTS]]

    @property
    def stump_share(self) -> float:
        return _STUMP_SHARES[self.place[_OF_SHARES]]

    @property
    def ridge(self) -> float:
        return _RIDGES[self.place[_OF_RIDGES]]

    def kernel(self, distance: Pairs) -> Pairs:
        """Return the kernel of pairs of rows by their distance, whose mean is one."""
        ferns = (1.0 - self.stump_share) * np.exp(-self.exponent * distance)
        return ferns + self.stump_share * (1.0 - distance / 2.0)

    def slope(self, distance: Pairs) -> Pairs:
        """Return minus the derivative of the kernel by the distance."""
        ferns = (1.0 - self.stump_share) * self.exponent * np.exp(-self.exponent * distance)
        return ferns + self.stump_share / 2.0


class _Grid:
    """The grid of candidates for some distances of rows; each is solved for once at most."""

    def __init__(self, learner: _SampleLearner, distance: Pairs, line: Pairs | None = None):
        self.learner, self.distance = learner, distance
        self.line = line  # a linear kernel that is added to that of each candidate
        self.solved: dict[tuple[int, ...], _Candidate] = {}
        self.kernels: dict[tuple[int, ...], Pairs] = {}

    def at(self, place: tuple[int, ...]) -> _Candidate:
        """Return the candidate at a place; its error is infinite outside the grid."""
        if place not in self.solved:
            first = (0, 0, self.learner.least_ridge)
            end = len(_EXPONENTS), len(_STUMP_SHARES), len(_RIDGES)
            is_inside = all(low <= index < high for low, index, high in zip(first, place, end))
            candidate = _Candidate(place)
            if is_inside:
                candidate = self.learner.solved(candidate, self._kernel(candidate))
            self.solved[place] = candidate
        return self.solved[place]

    def _kernel(self, candidate: _Candidate) -> Pairs:
        without_ridge = candidate.place[:_OF_RIDGES]
        if without_ridge not in self.kernels:
            kernel = candidate.kernel(self.distance)
            self.kernels[without_ridge] = kernel if self.line is None else kernel + self.line
        return self.kernels[without_ridge]

    def descend(self, place: tuple[int, ...], axes: Sequence[int]) -> _Candidate:
        """Move along one axis after the other while the error falls."""
        before = None
        while before != place:
            before = place
            for axis, step in product(axes, (-1, 1)):
                while self.at(_neighbour(place, axis, step)).error < self.at(place).error:
                    place = _neighbour(place, axis, step)
        return self.at(place)


def _neighbour(place: tuple[int, ...], axis: int, step: int) -> tuple[int, ...]:
    """Return the place one step along an axis."""
    return (*place[:axis], place[axis] + step, *place[axis + 1 :])


def choose_kernel(
    sample: Sample,
    n_classes: int,
    n_rows: int,
    numbers: Numbers | None = None,
    n_levels: NDArray[np.int64] | None = None,
    with_line: bool = False,
    loops: Twins = TWINS,
) -> Choice:
    """Learn rates, depth, share and cost on a sample that stands for `n_rows` rows.

    `numbers` are the targets that y stands for in a regression; numeric columns have 0 levels.
    `with_line` says whether the model may have a straight line beside the maps; `loops` compare
    the rows.

    >>> X = np.random.default_rng(0).normal(size=(300, 5))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> choice = choose_kernel(Sample(X, y, np.ones(300)), 2, n_rows=300)
    >>> bool(choice.rates[:2].sum() > 0.7)
    True
    """
    with one_blas_thread():
        if numbers is None:
            learner = _SampleLearner(sample, n_classes, n_levels)
        else:
            learner = (_WithLine if with_line else _SampleOfNumbers)(sample, numbers, n_levels)
        learner.loops = loops
        learner.tolerance = _EQUAL if n_rows > 2 * sample.y.size else 0.0
        choice = learner.choose()
    growth = max(n_rows / sample.y.size, 1.0) ** _DEPTH_GROWTH
    depth = min(choice.depth * growth, _DEEPEST)
    optimism = max(choice.optimism, choice.slopes.optimism(n_rows) if choice.slopes else 1.0)
    return replace(choice, depth=depth, n_rows=n_rows, optimism=optimism)


def rows_to_compare(n_features: int, wanted: int) -> int:
    """Return how many rows, up to those wanted, are few enough to compare all pairs of them."""
    most = (limits.DIFFERENCES_OF_A_SAMPLE / max(n_features, 1)) ** 0.5
    return int(min(wanted, max(100.0, most)))


class _SampleLearner:
    """Ridge regressions on the labels of a sample."""

    largest_cost = _LARGEST_COST
    least_ridge = 0  # the first ridge of the grid that is tried
    row_arrays: tuple[str, ...] = ("ranks", "scales", "labels", "weights", "copies")

    def __init__(self, sample: Sample, n_classes: int, n_levels=None) -> None:
        targets = np.array([1]) if n_classes == 2 else np.arange(n_classes)
        self.labels = np.where(sample.y[:, None] == targets, 1.0, -1.0)
        # The order of a category's levels is a further numeric column.
        self.n_levels, self.ordered = n_levels, ordered_columns(n_levels)
        orders = [steps_of_levels(sample, f, n_levels[f], self.labels) for f in self.ordered]
        self.places = {f: places for f, (_, places) in zip(self.ordered, orders)}
        X = np.column_stack([sample.X, *(steps for steps, _ in orders)])
        numeric = np.zeros(len(orders), np.int64)
        all_levels = None if n_levels is None else np.append(n_levels, numeric)
        self._set_features(replace(sample, X=X), all_levels)

    def _set_features(self, sample: Sample, n_levels) -> None:
        self.tolerance, self.loops = 0.0, TWINS
        self.ranks, ranges = positions(sample)
        self.is_category = np.zeros(sample.X.shape[1], bool) if n_levels is None else n_levels > 0
        # Missing values of a category are equal to each other, and to no level.
        self.levels = np.nan_to_num(sample.X[:, self.is_category], nan=-1.0).T
        # Weights differ by a factor of a thousand at most, or the kernel matrix would be too badly
        # conditioned for single precision.
        weights = np.maximum(sample.weights / sample.weights.max(), 1e-3)
        # Leave-one-out keeps the other copies of a row that stands for several samples.
        features = np.hstack([self.ranks, ranges])
        self.copies = copies_of([row.tobytes() for row in features], sample.weights)
        self.weights = weights / weights.mean() * self.copies.mean()
        self.n_features = sample.X.shape[1]
        # A feature counts by its ranks and by its values, with half of its rate each; for features
        # of two values the two are the same.
        differ = (self.ranks != ranges).any(axis=0)
        halved_ranks = np.where(differ, self.ranks / 2.0, self.ranks)
        self.scales = np.hstack([halved_ranks, ranges[:, differ] / 2.0])
        self.feature_of_scale = np.concatenate([np.arange(differ.size), np.flatnonzero(differ)])

    def choose(self) -> Choice:
        """Return the best kernel as the parameters that maps are drawn with."""
        best, rates, mean, slopes = self.learn()
        return self._with_cuts(replace(self._choice(best, rates, mean), slopes=slopes))

    def learn(self) -> tuple[_Candidate, Array, float, Slopes | None]:
        """Choose the kernel on some of the rows, then learn rates and ridge on all of them.

        Returns the best candidate, the rates, the mean distance, and the line.
        """
        best, rates, slopes = self.start()
        distance, mean = self.distance(rates)
        # The ridge is already the best if the start was chosen on all rows and the same labels.
        if slopes or best.weights is None or len(best.weights) < len(self.labels):
            best = self.best_ridge(best, distance)
        for _ in range(_MOST_ROUNDS):
            new_rates = self.learned_rates(best, distance, rates)
            new_distance, new_mean = self.distance(new_rates)
            grid = _Grid(self, new_distance)
            new = grid.at(best.place)
            if new.error < best.error:  # otherwise another ridge would not help enough
                new = grid.descend(best.place, [_OF_RIDGES])
            if new.error > _WORTH_IT * best.error:
                break
            best, rates, distance, mean = new, new_rates, new_distance, new_mean
        return best, rates, mean, slopes

    def start(self) -> tuple[_Candidate, Array, Slopes | None]:
        """Return the best candidate for some of the rows, the rates and, in a regression, a line.

        The line is None unless it lowers the error; otherwise it is subtracted from the labels.
        """
        evidence = evidence_of_features(self.ranks, self.labels, self.weights)
        return *self.some(slice(limits.ROWS_OF_CANDIDATES)).best_start(evidence), None

    def some(self, rows: slice | NDArray[np.bool_]) -> Self:
        """Return the learner of some rows alone; the first rows are a random sample of all."""
        few = copy(self)
        for name in self.row_arrays:
            setattr(few, name, getattr(self, name)[rows])
        few.levels = self.levels[:, rows]
        return few

    def best_start(self, evidence: Array) -> tuple[_Candidate, Array]:
        """Return the best candidate at rates that are learned once, and these rates."""
        rates = np.full(self.n_features, 1.0 / self.n_features)
        distance, _ = self.distance(rates)
        start = self.best_ridge(_Candidate(), distance)
        if evidence.any():
            by_evidence = self.floored(evidence)
            new_distance, _ = self.distance(by_evidence)
            other = _Grid(self, new_distance).at(start.place)
            if other.error < start.error:
                start, rates, distance = other, by_evidence, new_distance
        rates = self.learned_rates(start, distance, rates)
        distance, _ = self.distance(rates)
        return self.best_candidate(distance, start), rates

    def _choice(self, best: _Candidate, rates: Array, mean: float) -> Choice:
        depth = min(best.exponent / mean, _DEEPEST) if mean > 0 else 1.0
        # The kernel in terms of maps: no fern has depth zero, and distances keep their mean.
        ferns = (1.0 - best.stump_share) * (1.0 - np.exp(-depth))
        stumps = best.stump_share / (2.0 * mean) if mean > 0 else 1.0
        total = ferns + stumps
        cost = min(total / (2.0 * best.ridge), self.largest_cost) * float(self.copies.mean())
        return Choice(rates, depth, stumps / total, cost, best.error)

    def _with_cuts(self, choice: Choice) -> Choice:
        """Return the choice with one rate for each category, for random halves and for cuts."""
        if not self.ordered.size:
            return choice
        rates, cut_rates = np.split(choice.rates, [self.n_levels.size])
        shares = np.zeros(rates.size)
        shares[self.ordered] = cut_rates
        rates, shares = rates + shares, shares / (rates + shares)
        sizes = [(f, self.n_levels[f] + 2) for f in np.flatnonzero(self.n_levels)]
        places = [self.places.get(f, np.zeros(size)) for f, size in sizes]
        return replace(choice, rates=rates, cuts=LevelCuts(shares, np.concatenate(places)))

    def distance(self, rates: Array) -> tuple[Pairs, float]:
        """Return distances of all pairs relative to their mean, and the mean."""
        numeric_rates = np.where(self.is_category, 0.0, rates)[self.feature_of_scale]
        scaled = np.ascontiguousarray((self.scales * numeric_rates).T)
        distance = self.loops.city_block(scaled, scaled)
        for level, rate in zip(self.levels, rates[self.is_category], strict=True):
            distance += rate * PARTED_LEVELS * (level[:, None] != level)
        mean = float(distance.mean())
        return (distance / mean if mean > 0 else distance).astype(np.float32), mean

    def best_candidate(self, distance: Pairs, start: _Candidate) -> _Candidate:
        """Return the best candidate of a search at each exponent, each started from the last."""
        grid, found = _Grid(self, distance), [start]
        for exponent in range(len(_EXPONENTS)):
            place = (exponent, *found[-1].place[_OF_SHARES:])
            found.append(grid.descend(place, (_OF_SHARES, _OF_RIDGES)))
            if exponent and found[-1].error > (1.0 + self.tolerance) * found[-2].error:
                break
        lowest = min(candidate.error for candidate in found[1:])
        # Of nearly equal candidates take the deepest, which gains most from further rows.
        near = [c for c in found[1:] if c.error <= (1.0 + self.tolerance) * lowest]
        return max(near, key=lambda c: (c.exponent, -c.error))

    def best_ridge(self, candidate: _Candidate, distance: Pairs) -> _Candidate:
        """Move along the ridges, from that of the candidate, while the error falls."""
        *kernel, ridge = candidate.place
        return _Grid(self, distance).descend((*kernel, max(ridge, self.least_ridge)), [_OF_RIDGES])

    def solved(self, candidate: _Candidate, kernel: Pairs) -> _Candidate:
        """Return the candidate with its dual weights and its leave-one-out error."""
        factor = self.factor(kernel, candidate.ridge)
        if factor is None:
            return candidate
        others = (1.0 - 1.0 / self.copies) * self.weights / candidate.ridge
        weights = self.solve(factor)
        # Squared columns of the inverse factor add up to the diagonal of the inverse matrix.
        inverse = _inverse(factor)
        diagonal = np.einsum("ij,ij->j", inverse, inverse)
        residuals = weights / (others + diagonal / self.copies)[:, None]
        return replace(candidate, weights=weights, error=self.mean_loss(residuals))

    def mean_loss(self, residuals: Array) -> float:
        """Return the weighted mean loss of the rows with these residuals."""
        losses = self.losses(residuals)
        return float(self.weights @ losses.mean(axis=1) / self.weights.sum())

    def losses(self, residuals: Array) -> Array:
        """Return squared hinge losses: label * (label - prediction) = 1 - label * prediction."""
        return np.clip(self.labels * residuals, 0.0, _LARGEST_RESIDUAL) ** 2

    def factor(self, kernel: Pairs, ridge: float) -> Pairs | None:
        """Return the Cholesky factor of the kernel plus the ridge and one, for the intercept."""
        matrix = kernel + 1.0
        matrix[np.diag_indices_from(matrix)] += (ridge / self.weights).astype(np.float32)
        # The transpose of the symmetric matrix is the same, in the column order of LAPACK.
        factor, failed = spotrf(matrix.T, lower=1, overwrite_a=1)
        return None if failed else factor

    def solve(self, factor: Pairs) -> Array:
        """Return the dual weights of the ridge regression."""
        return spotrs(factor, self.labels.astype(np.float32), lower=1)[0].astype(np.float64)

    def learned_rates(self, candidate: _Candidate, distance: Pairs, rates: Array) -> Array:
        """Return rates in proportion to the slopes of the learned function by feature."""
        if candidate.weights is None:
            return rates
        weights = candidate.weights.astype(np.float32)
        n_rows = len(distance)
        n_compared = max(50, int(_MOST_DIFFERENCES / (self.n_features * n_rows)))
        rows = slice(0, min(n_rows, n_compared))
        slopes = candidate.slope(distance[rows])
        changes = np.empty(self.n_features)
        categories = iter(self.levels)
        for feature in range(self.n_features):
            if self.is_category[feature]:
                level = next(categories)
                # The change from the level of one row to that of the next row.
                other = np.roll(level, 1)[rows, None] == level
                signs = PARTED_LEVELS * (other.astype(float) - (level[rows, None] == level))
            else:
                column = self.ranks[:, feature].astype(np.float32)
                signs = np.sign(column[rows, None] - column)
            changes[feature] = (((signs * slopes) @ weights) ** 2).mean() ** 0.5
        return self.floored(changes * rates)

    def floored(self, rates: Array) -> Array:
        """Return rates that sum to one, none of them zero."""
        total, equal = rates.sum(), 1.0 / self.n_features
        if not total > 0:
            return np.full(self.n_features, equal)
        return (1.0 - _SMALLEST_RATE) * rates / total + _SMALLEST_RATE * equal


class _SampleOfNumbers(_SampleLearner):
    """Ridge regressions on the targets of a sample."""

    largest_cost = np.inf

    def __init__(self, sample: Sample, numbers: Numbers, n_levels=None) -> None:
        self._set_features(sample, n_levels)
        self.ordered = ordered_columns(None)
        values = numbers.values[sample.y]
        share = self.weights / self.weights.sum()
        centred = values - share @ values
        deviation = np.sqrt(share @ centred**2)
        self.unit = np.where(deviation > 0, deviation, 1.0)
        self.labels = centred / self.unit

    def losses(self, residuals: Array) -> Array:
        return np.clip(residuals, -_LARGEST_RESIDUAL, _LARGEST_RESIDUAL) ** 2

    def choose(self) -> Choice:
        held_out_error, n_rows = 0.0, len(self.labels)
        if limits.FEWEST_ROWS_TO_CHOOSE_AGAIN <= n_rows <= limits.MOST_ROWS_TO_CHOOSE_AGAIN:
            held_out_error = self.mean_loss(self._held_out_residuals())
        choice = super().choose()
        if not 0.0 < choice.error < held_out_error:
            return choice
        return replace(choice, optimism=float(np.sqrt(held_out_error / choice.error)))

    def _held_out_residuals(self) -> Array:
        """Return the residuals of each fold when kernel, rates and line are chosen without it."""
        residuals = self.labels.copy()
        for fold in range(_FOLDS):
            inside = np.arange(len(self.labels)) % _FOLDS != fold
            some = self.some(inside)
            best, rates, *_ = some.learn()
            kernel = best.kernel(self.distance(rates)[0])
            factor = some.factor(kernel[inside][:, inside], best.ridge)
            if factor is not None:
                residuals[~inside] -= (kernel[~inside][:, inside] + 1.0) @ some.solve(factor)
            residuals[~inside] -= some.line_at(self)[~inside]
        return residuals

    def line_at(self, others: Self) -> Array:
        """Return the values, for other rows, of the line that was subtracted from the labels."""
        return np.zeros_like(others.labels)


class _WithLine(_SampleOfNumbers):
    """Ridge regressions on the targets, with a straight line in the features beside the maps."""

    row_arrays = (*_SampleOfNumbers.row_arrays, "inputs")

    def __init__(self, sample: Sample, numbers: Numbers, n_levels=None) -> None:
        super().__init__(sample, numbers, n_levels)
        share = self.weights / self.weights.sum()
        self.inputs, self.centre, self.scale = standardised(sample.X, share, n_levels)
        self.slopes = np.zeros((self.n_features, self.labels.shape[1]))

    def start(self) -> tuple[_Candidate, Array, Slopes | None]:
        best, rates, _ = super().start()
        few = self.some(slice(limits.ROWS_OF_CANDIDATES))
        distance, _ = few.distance(rates)
        line = few._linear_kernel(rates)
        grids = [(_Grid(few, distance, np.float32(share) * line), share) for share in _LINE_SHARES]
        solved = [(grid.descend(best.place, [_OF_RIDGES]), share) for grid, share in grids]
        with_line, share = min(solved, key=lambda pair: pair[0].error)
        without = few.best_ridge(best, distance)
        slopes = self._slopes(with_line, rates, share)
        most = max(_MOST_ROUNDING * without.error, _LITTLE_ROUNDING)
        if self._rounding_error(slopes) > most or with_line.error >= _WORTH_IT * without.error:
            return best, rates, None
        self.labels, self.slopes = self.labels - self.inputs @ slopes, slopes
        # The line was learned on these rows, so that small ridges look too good on them: ridges
        # below that with the line are tried only if the sample stands for many more rows.
        self.least_ridge = 0 if self.tolerance else with_line.place[_OF_RIDGES]
        return best, rates, Slopes(slopes / self.scale[:, None] * self.unit, self.centre)

    def line_at(self, others: Self) -> Array:
        return others.inputs @ self.slopes

    def _rounding_error(self, slopes: Array) -> float:
        """Return the error variance of the line when values are rounded to those of other rows.

        A model of stumps rounds new rows like this. Steep slopes of features that are nearly equal
        cancel each other for exact values only.
        """
        old, new = self.inputs[::2], self.inputs[1::2]
        if not len(new):
            return 0.0
        errors = np.empty_like(new)
        for feature in range(self.n_features):
            values = np.unique(old[:, feature])
            between = (values[1:] + values[:-1]) / 2.0
            errors[:, feature] = values[np.searchsorted(between, new[:, feature])] - new[:, feature]
        return float((errors @ slopes).var(axis=0).mean())

    def _slopes(self, candidate: _Candidate, rates: Array, share: float) -> Array:
        """Return the slopes of standardised features, learned together with the maps."""
        kernel = candidate.kernel(self.distance(rates)[0])
        kernel += np.float32(share) * self._linear_kernel(rates)
        factor = self.factor(kernel, candidate.ridge)
        weights = np.zeros_like(self.labels) if factor is None else self.solve(factor)
        return share * (self._weighted(rates).T @ weights)

    def _linear_kernel(self, rates: Array) -> Pairs:
        return (self._weighted(rates) @ self.inputs.T).astype(np.float32)

    def _weighted(self, rates: Array) -> Array:
        """Return the features times their rates, so that the kernel's diagonal is about one."""
        return self.inputs * (rates / max(rates[np.isfinite(self.scale)].sum(), 1e-300))


def _inverse(factor: Pairs) -> Pairs:
    """Return the inverse of a lower triangular matrix, by halves: a third faster than LAPACK."""
    half = len(factor) // 2
    if half < _SMALLEST_HALF:
        return strtri(factor, lower=1)[0]
    inverse = np.zeros_like(factor, order="F")
    inverse[:half, :half] = first = _inverse(factor[:half, :half])
    inverse[half:, half:] = last = _inverse(factor[half:, half:])
    left = strmm(-1.0, first, factor[half:, :half], side=1, lower=1)
    inverse[half:, :half] = strmm(1.0, last, left, lower=1, overwrite_b=1)
    return inverse


def standardised(X: NDArray, share: Array, n_levels=None) -> tuple[Array, Array, Array]:
    """Return the features with mean zero and deviation one, their means and their deviations.

    Missing values become the mean. Categories and constants become zero, with an infinite
    deviation.

    >>> inputs, *_ = standardised(np.array([[1.0, 7.0], [3.0, 7.0]]), np.array([0.5, 0.5]))
    >>> inputs
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    present = ~np.isnan(X)
    values = np.where(present, X, 0.0).astype(np.float64).clip(-_LARGEST, _LARGEST)
    mass = np.maximum(share @ present, 1e-300)
    centre = share @ values / mass
    inputs = np.where(present, values - centre, 0.0)
    deviation = np.sqrt(share @ inputs**2 / mass)
    varies = deviation > 0 if n_levels is None else (deviation > 0) & (n_levels == 0)
    scale = np.where(varies, deviation, np.inf)
    return inputs / scale, centre, scale


def positions(sample: Sample) -> tuple[Array, Array]:
    """Return the share of a feature's thresholds below each value, by rank and by range.

    The first are for thresholds drawn from the quantiles, the second for uniform ones. A missing
    value is below all thresholds; the share of thresholds that separate it from all other values is
    the share of missing values.
    """
    ranks, ranges = np.zeros(sample.X.shape), np.zeros(sample.X.shape)
    total = sample.weights.sum()
    for feature in range(sample.X.shape[1]):
        # Values beyond the range of float32 are clipped to it.
        column = sample.X[:, feature].astype(np.float64).clip(-_LARGEST, _LARGEST)
        present = ~np.isnan(column)
        missing = 1.0 - sample.weights[present].sum() / total
        values, place = np.unique(column[present], return_inverse=True)
        if values.size > 1:
            mass = np.bincount(place, sample.weights[present])
            below = np.concatenate([[0.0], np.cumsum(mass)[:-1]])
            rank, position = below / below[-1], (values - values[0]) / (values[-1] - values[0])
        else:
            rank = position = np.zeros(values.size)
        ranks[present, feature] = missing + (1.0 - missing) * rank[place]
        ranges[present, feature] = missing + (1.0 - missing) * position[place]
    return ranks, ranges

"""Plain NumPy twins of the compiled loops: for small data, and for the tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from mbkl.engine.keys import draw
from mbkl.engine.limits import FEW_ROWS_TO_BIN, SMALL

# Comparisons with thresholds of ferns that are made at once.
_VALUES_COMPARED = 500_000
# Largest gradient or curvature of a packed residual, and rows whose packed sum fits in 32 bits.
MOST_PACKED, ROWS_PACKED = 2**15 - 1, 2**16
# The exponential function of the library Cephes: log(2) as a sum of two numbers, the first with few
# digits, and the coefficients of a polynomial that is accurate up to log(2) / 2.
LARGEST_EXPONENT, TWO_BY_E = np.float32(87.0), np.float32(1.44269504)
LOG_OF_TWO, REST_OF_LOG = np.float32(0.693359375), np.float32(-2.12194440e-4)
FACTORS = tuple(
    np.float32(factor)
    for factor in (
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        5.0000001201e-1,
    )
)
# Steps of the power method for the leading direction, which need not be exact.
N_POWERS = 10
# Values of a block of rows: as many as fit in a cache, or, for few rows, as many as are worth a
# thread (python -m benchmarks.suite --all-rows).
VALUES_OF_A_BLOCK, VALUES_OF_A_THREAD = 2**16, 2**14


class Twins:
    """The loops over codes in memory, and over rows of X, in NumPy.

    Every method gives the same bits as that of `Compiled`, so that the choice
    between the two by size can never change a result.
    """

    n_threads = 1

    # Codes ------------------------------------------------------------------------------------

    def gather(self, values: NDArray, offsets, tables: NDArray) -> NDArray[np.float64]:
        """Return the sum over groups of the table entries, see `Codes.gather`."""
        n_groups, n_rows = values.shape
        if n_rows < n_groups:
            # For few rows all look-ups are made at once; cumsum adds them in group order.
            return np.cumsum(tables[values + offsets[:-1, None]], axis=0)[-1]
        scores = np.zeros((n_rows, tables.shape[1]))
        for group in range(n_groups):
            table = tables[offsets[group] : offsets[group + 1]]
            scores += np.take(table, values[group], axis=0)
        return scores

    def histogram(self, values: NDArray, offsets, residuals: NDArray) -> NDArray[np.int64]:
        """Return the sums of the residuals in each cell, see `Codes.histogram`."""
        sums = np.zeros((int(offsets[-1]), residuals.shape[1]), dtype=np.int64)
        for column in range(residuals.shape[1]):
            for group, codes in enumerate(values):
                block = sums[offsets[group] : offsets[group + 1], column]
                np.add.at(block, codes, residuals[:, column])
        return sums

    def take(self, values: NDArray, rows: NDArray[np.intp]) -> NDArray:
        """Return the codes of some rows."""
        return np.take(values, rows, axis=1)

    def renumber(self, values: NDArray, offsets, groups, numbers: NDArray) -> NDArray:
        """Return the codes of some groups with new numbers, see `Codes.renumbered`."""
        renumbered = np.empty((groups.size, values.shape[1]), dtype=numbers.dtype)
        for position, group in enumerate(groups):
            table = numbers[offsets[group] : offsets[group + 1]]
            np.take(table, values[group], out=renumbered[position])
        return renumbered

    def agreement(self, values, others, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the total weight of the groups in which two rows are in the same cell."""
        is_count = has_one_weight(weights)
        agreement = np.zeros((values.shape[1], others.shape[1]))
        for codes, other_codes, weight in zip(values, others, weights, strict=True):
            equal = codes[:, None] == other_codes
            agreement += equal if is_count else weight * equal
        # Equal weights are counted first, as the compiled loop does for speed.
        return weights[0] * agreement if is_count and weights.size else agreement

    def city_block(
        self, positions: NDArray[np.float64], others: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the city-block distance of two rows: the sum of |x - z| over the groups."""
        distance = np.zeros((positions.shape[1], others.shape[1]))
        for line, other in zip(positions, others, strict=True):
            distance += np.abs(line[:, None] - other)
        return distance

    # Rows of X --------------------------------------------------------------------------------

    def bin(self, X, features, edges) -> NDArray:
        """Return the code of each value of some columns of a dense X, (n_groups, n_rows)."""
        values = np.empty((features.size, X.shape[0]), dtype=edges.code_dtype)
        if X.shape[0] < FEW_ROWS_TO_BIN and features.size:
            # For few rows all comparisons are made at once; NaN is above no threshold.
            sizes = np.diff(edges.offsets)
            right = as_float32(X[:, np.repeat(features, sizes)]) > edges.thresholds
            values[:] = np.add.reduceat(right, edges.offsets[:-1], axis=1, dtype=values.dtype).T
            return values
        for group, feature in enumerate(features):
            thresholds = edges.thresholds[edges.offsets[group] : edges.offsets[group + 1]]
            column = as_float32(X[:, feature])
            codes = np.searchsorted(thresholds, column, side="left")
            values[group] = np.where(np.isnan(column), 0, codes)
        return values

    def bin_ferns(self, X, ferns: Any) -> NDArray:
        """Return the cell of each row of a dense X in each fern, (n_ferns, n_rows)."""
        values = np.empty((ferns.n_maps, X.shape[0]), dtype=ferns.numbers.dtype)
        if not ferns.n_maps:
            return values
        depths = np.diff(ferns.offsets)
        place = np.repeat(ferns.offsets[1:], depths) - 1 - np.arange(ferns.features.size)
        digits = np.uint64(1) << place.astype(np.uint64)
        n_bits = np.log2(ferns.n_raw).astype(np.int64)
        shift = np.where(depths > n_bits, 64 - n_bits, 0).astype(np.uint64)
        factors = np.where(depths > n_bits, ferns.factors, np.uint64(1))
        first = ferns.raw_offsets[:-1].astype(np.uint64)
        step = max(1, _VALUES_COMPARED // ferns.features.size)
        for start in range(0, X.shape[0], step):
            block = slice(start, start + step)
            yes = as_float32(X[block][:, ferns.features]) > ferns.thresholds
            if ferns.sets is not None:
                ferns.sets.answer(X[block], ferns.features, yes)
            outcome = np.add.reduceat(yes * digits, ferns.offsets[:-1], axis=1)
            values[:, block] = ferns.numbers[first + ((outcome * factors) >> shift)].T
        return values

    # Growing ferns ----------------------------------------------------------------------------

    def over_blocks(self, task: Callable[[int, int], Any], n_rows: int, n_columns: int = 1) -> list:
        """Return the results of a task on blocks of rows, which do not depend on the threads."""
        n_values = n_rows * n_columns
        n_blocks = max(n_values // VALUES_OF_A_BLOCK, min(n_values // VALUES_OF_A_THREAD, 8), 1)
        bounds = [n_rows * block // n_blocks for block in range(n_blocks + 1)]
        return self.each(lambda block: task(bounds[block], bounds[block + 1]), range(n_blocks))

    def each(self, task: Callable[[int], Any], numbers: Sequence[int]) -> list:
        """Return the results of a task for each of some numbers."""
        return [task(number) for number in numbers]

    @property
    def alone(self) -> Twins:
        """The same loops in one thread, for a task of `each`."""
        return self

    def take_some(self, values: NDArray, groups, rows: NDArray[np.intp]) -> NDArray:
        """Return the codes of some rows in some groups."""
        return values[np.ix_(groups, rows)]

    def fern_cells(self, values, features, cuts, members, leading, cells) -> None:
        """Write the cell of each row: a leading bit, then its answers to the stumps.

        A stump has a feature and a cut, the last code on its left side. With a cut of -1 it asks
        whether the code is one of its `members`, of shape (depth, 256).
        """
        answers = leading.astype(np.int64)
        for feature, cut, is_member in zip(features, cuts, members, strict=True):
            codes = values[feature]
            answers = 2 * answers + (codes > cut if cut >= 0 else is_member[codes])
        cells[:] = answers

    def pack_residuals(self, gradient, curvature, weights, units, packed) -> tuple[float, float]:
        """Write gradients and curvatures times weights, rounded to units and packed in 32 bits.

        Return the largest gradient in magnitude and the largest curvature.
        """
        gradient, curvature = gradient * weights[:, None], curvature * weights[:, None]
        g = np.rint(gradient * units[0]).clip(-MOST_PACKED, MOST_PACKED)
        h = np.minimum(np.rint(curvature * units[1]), MOST_PACKED)
        packed[:] = (g.astype(np.int32) << 16) + h.astype(np.int32)
        return float(abs(gradient).max(initial=0.0)), float(curvature.max(initial=0.0))

    def log_loss_residuals(self, scores, y, weights, units, packed) -> tuple[float, float]:
        """Write the residuals of the log loss as `pack_residuals` does those of any loss.

        Scores have one column for two classes, or one column for each of several classes.
        """
        if scores.shape[1] == 1:
            chance: NDArray = 1 / (1 + exponential(-scores))
            is_class = y[:, None] == 1
        else:
            chance = exponential(scores - scores.max(axis=1, keepdims=True))
            chance /= np.cumsum(chance, axis=1)[:, -1:]  # cumsum adds in order
            is_class = y[:, None] == np.arange(scores.shape[1])
        gradient, curvature = chance - is_class, chance * (1 - chance)
        return self.pack_residuals(gradient, curvature, weights, units, packed)

    def histogram_packed(self, cells, packed, n_cells: int) -> NDArray[np.int64]:
        """Return the sums of gradients and curvatures in each cell, (n_cells, n_columns, 2)."""
        residuals = packed.astype(np.int64)
        sums = np.zeros((n_cells, packed.shape[1], 2), dtype=np.int64)
        np.add.at(sums[..., 0], cells, residuals >> 16)
        np.add.at(sums[..., 1], cells, residuals & 0xFFFF)
        return sums

    def add_table(self, cells, table, scores) -> None:
        """Add the table entry of each row's cell to its scores."""
        scores += table[cells]

    def sizes_of_residuals(self, packed, rows, columns) -> NDArray[np.int64]:
        """Return the norms of the residuals of some rows in some columns, truncated, plus one."""
        gradient, curvature = _unpacked(packed, rows, columns)
        return np.sqrt((gradient**2 + curvature**2).sum(axis=1)).astype(np.int64) + 1

    def draw_rows(self, keys, rows, chances, salt: int) -> tuple[NDArray, NDArray]:
        """Draw each row with its chance; return the rows drawn and their chances, at most one."""
        drawn = np.flatnonzero(draw(keys[rows], salt) < chances * 2**32)
        return rows[drawn], np.minimum(chances[drawn], 1.0)

    def weigh_residuals(self, packed, rows, columns, shares, unit: float) -> NDArray[np.int64]:
        """Return the residuals of some rows divided by their chances and a unit, in 64 bits."""
        gradient, curvature = (
            np.rint(each / shares[:, None] / unit).astype(np.int64)
            for each in _unpacked(packed, rows, columns)
        )
        return (gradient << 32) + curvature

    def newton_steps(
        self, sums: NDArray, ridges: tuple[float, ...], used: int = 0
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Return a Newton step for each cell, shrunk towards that of its parent cell.

        A cell of few rows falls back on its parent, and so on up to the mean of all rows: this
        makes deep ferns safe. The sums, (2 * n_cells, n_columns, 2), are gradients and curvatures
        in the cells of the deepest level, first of training rows, then of validation rows. Returned
        are the steps with the ridge `used`, the gain on validation rows of each level with that
        ridge, and the merits, (n_ridges, 2): for each ridge the gain of its steps on validation
        rows, and their squared length there.
        """
        steps, gains = zip(*(self._steps(sums, ridge) for ridge in ridges), strict=True)
        gradient, curvature = np.moveaxis(sums[len(sums) // 2 :], 2, 0)
        merits = [
            [-np.cumsum(step * gradient)[-1], np.cumsum(step**2 * curvature)[-1]] for step in steps
        ]
        return steps[used], gains[used], np.array(merits)

    def _steps(self, sums: NDArray, ridge: float) -> tuple[NDArray, NDArray]:
        step = np.zeros((1, sums.shape[1]))
        gains = []
        levels = (_sums_by_level(half) for half in np.split(sums, 2))
        for training, validation in zip(*levels, strict=True):
            step = np.repeat(step, len(training) // len(step), axis=0)
            gradient, curvature = np.moveaxis(training, 2, 0)
            change = -(gradient + curvature * step) / (curvature + ridge)
            slope = validation[..., 0] + validation[..., 1] * step
            gains.append(-np.cumsum(change * slope)[-1])
            step = step + change
        return step, np.array(gains)

    def choose_stumps(
        self, codes, is_category, n_codes, levels, is_ranked, residuals, ridge: float
    ) -> tuple[NDArray, ...]:
        """Return the stumps of a fern: on each level the one with the largest gain.

        Returned are, for each level, the feature and cut, the number of rows above the cut, the
        ranks of the codes of the feature, (depth, 256), and the gain of the best stump on each
        feature asked. `levels` says which features each level asks, and how coarse their codes are;
        see `best_cuts`, also for codes and residuals. Codes of categories get new ranks on each
        level; `is_ranked`, (depth, n_categories, 256), marks those that may leave the middle.
        """
        ranked, ranks = codes.copy(), np.tile(np.arange(256, dtype=np.uint8), (len(codes), 1))
        categories, stumps = np.flatnonzero(is_category), []
        cell_of = np.zeros(len(residuals), dtype=np.int64)
        for level, (asked, shifts, moves) in enumerate(zip(*levels, strict=True)):
            order = np.argsort(cell_of, kind="stable")
            starts = np.searchsorted(cell_of[order], np.arange((1 << level) + 1))
            cells = (order, residuals[order], starts)
            for feature, codes_ranked in zip(categories, is_ranked[level], strict=True):
                if feature in asked:
                    arguments = (codes[feature], *cells, codes_ranked, int(n_codes[feature]), ridge)
                    ranks[feature] = self.put_in_order(*arguments)
                    ranked[feature] = ranks[feature, codes[feature]]
            gains, cuts = self.best_cuts(ranked, asked, *cells, n_codes, shifts, moves, ridge)
            place = int(np.argmax(gains))
            best = int(asked[place])
            cut = ((cuts[place] + 1) << shifts[place]) - moves[place] - 1
            cut = int(min(cut, n_codes[best] - 2))  # a cut at the last code would divide nothing
            is_above = ranked[best] > cut
            cell_of = 2 * cell_of + is_above
            stumps.append((best, cut, is_above.sum(), ranks[best].copy(), gains))
        return tuple(np.array(each) for each in zip(*stumps, strict=True))

    def put_in_order(
        self, codes, order, residuals, starts, is_ranked, n_codes: int, ridge: float
    ) -> NDArray[np.uint8]:
        """Return the ranks of the codes of a category, sorted by gradient / curvature.

        Gradients are those after the Newton step of the row's cell. The ridge is added to the
        curvature of each code, so that rare codes are in the middle, as are those that are not
        ranked. For one score and a convex loss the best split of the levels in two sets is a cut in
        this order (Fisher, 1958); several scores are projected on their leading direction. Codes
        not in use keep their places.
        """
        gradient, curvature = residuals >> 32, residuals & 0xFFFFFFFF
        running = np.concatenate([np.zeros_like(residuals[:1]), np.cumsum(residuals, axis=0)])
        totals = np.diff(running[starts], axis=0)
        steps = (totals >> 32) / ((totals & 0xFFFFFFFF) + ridge)
        explained = curvature * np.repeat(steps, np.diff(starts), axis=0)
        sums = np.zeros((2, n_codes, residuals.shape[1]), dtype=np.int64)
        np.add.at(sums[0], codes[order], gradient - np.rint(explained).astype(np.int64))
        np.add.at(sums[1], codes[order], curvature)
        steps = sums[0] / (sums[1] + ridge) * is_ranked[:n_codes, None]
        ranks = np.arange(256, dtype=np.uint8)
        ranks[np.argsort(along(steps, sums[1]), kind="stable")] = np.arange(n_codes)
        return ranks

    def best_cuts(
        self, codes, asked, order, residuals, starts, n_codes, shifts, moves, ridge: float
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the gain of the best cut of each feature asked, and that cut.

        The gain is the sum over cells and columns of gradient^2 / (curvature + ridge) on both
        sides; a cut is the last bin on its left side. `order` has the rows cell by cell, `starts`
        where each cell begins in it; residuals, in that order, have the gradient in the upper half
        of 64 bits and the curvature in the lower. `n_codes` has the codes of each feature; those of
        a feature asked are binned as (code + move) >> shift.
        """
        gains, cuts = np.empty(len(asked)), np.empty(len(asked), dtype=np.int64)
        for place, (feature, shift, move) in enumerate(zip(asked, shifts, moves, strict=True)):
            length = ((int(n_codes[feature]) - 1 + move) >> shift) + 1
            collected = np.zeros((length, residuals.shape[1]))
            for first, last in pairwise(starts):
                if last - first < 2:
                    continue
                sums = np.zeros((length, residuals.shape[1]), dtype=np.int64)
                bins = (codes[feature, order[first:last]].astype(np.int64) + move) >> shift
                np.add.at(sums, bins, residuals[first:last])
                left = np.cumsum(sums, axis=0)
                for side in (left, left[-1] - left):
                    gradient, curvature = side >> 32, side & 0xFFFFFFFF
                    collected += gradient.astype(float) ** 2 / (curvature + ridge)
            gain = np.cumsum(collected, axis=1)[:, -1]
            cuts[place] = gain.argmax()
            gains[place] = gain[cuts[place]]
        return gains, cuts


TWINS = Twins()


def exponential(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the exponential function in single precision, for arguments from -87 to 87.

    It uses additions and products alone, which give the same bits whatever compiles them: a power
    of two times a polynomial of the remainder.

    >>> exponential(np.array([0.0, 1.0, -100.0], dtype=np.float32)).tolist()
    [1.0, 2.7182817459106445, 1.6458114537543937e-38]
    """
    values = np.clip(values, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    power = np.rint(values * TWO_BY_E)
    rest = (values - power * LOG_OF_TWO) - power * REST_OF_LOG
    total = np.full_like(rest, FACTORS[0])
    for factor in FACTORS[1:]:
        total = total * rest + factor
    total = total * (rest * rest) + rest + np.float32(1.0)
    return np.ldexp(total, power.astype(np.int32))


def along(steps: NDArray[np.float64], mass: NDArray[np.int64]) -> NDArray[np.float64]:
    """Project the steps of the levels of a category on their leading direction.

    >>> along(np.array([[3.0, -3.0], [-1.0, 1.0]]), np.ones((2, 2))).round(2).tolist()
    [4.24, -1.41]
    """
    if steps.shape[1] == 1:
        return steps[:, 0]
    return np.cumsum(steps * leading_direction(steps, mass), axis=1)[:, -1]


def leading_direction(steps: NDArray[np.float64], mass: NDArray) -> NDArray[np.float64]:
    """Return the unit vector along which the steps are largest; zeros if all steps are zero."""
    # cumsum adds in a fixed order.
    spread = np.cumsum((steps * mass)[:, :, None] * steps[:, None], axis=0)[-1]
    direction = np.zeros(steps.shape[1])
    direction[np.argmax(np.diag(spread))] = 1.0
    for _ in range(N_POWERS):
        direction = np.cumsum(spread * direction, axis=1)[:, -1]
        length = np.sqrt(np.cumsum(direction**2)[-1])
        if not length > 0:
            return np.zeros(steps.shape[1])
        direction = direction / length
    return direction


def _unpacked(packed, rows, columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return gradients and curvatures of some rows in some columns."""
    residuals = packed[rows][:, columns].astype(np.int64)
    return residuals >> 16, residuals & 0xFFFF


def _sums_by_level(sums: NDArray) -> list[NDArray]:
    """Return the sums of the cells of every level, from all rows together to single cells."""
    levels = [sums]
    while len(levels[0]) > 1:
        levels.insert(0, levels[0][0::2] + levels[0][1::2])
    return levels


def has_one_weight(weights: NDArray[np.float64]) -> bool:
    """Say whether all groups have the same weight, so that agreements can be counted."""
    return bool((weights == weights[:1]).all())


def as_float32(values: NDArray) -> NDArray[np.float64]:
    """Round values to float32, as they are compared with thresholds, and return float64.

    >>> as_float32(np.array([1.0, 1.0 + 1e-12])).tolist()
    [1.0, 1.0]
    """
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def level_cells(values: NDArray, n_levels) -> NDArray[np.intp]:
    """Return the cells of level numbers: 0 if missing, the last for a new level, else 1 + level.

    >>> level_cells(np.array([np.nan, 0.0, 1.0, 2.0, 9.0]), 2)
    array([0, 1, 2, 3, 3])
    """
    missing = np.isnan(values)
    cells = np.clip(np.where(missing, 0.0, values), 0, n_levels).astype(np.intp) + 1
    return np.where(missing, 0, cells)


def just_above(thresholds: NDArray) -> NDArray[np.float64]:
    """Return the smallest float32 values above thresholds."""
    return np.nextafter(thresholds.astype(np.float32), np.float32(np.inf)).astype(np.float64)


def choose_loops(n_codes: int, n_jobs: int | None = None) -> Twins:
    """Return the loops for passes that read `n_codes` codes times columns.

    For `n_jobs`, None and -1 mean all threads that joblib allows.
    """
    if "mbkl.engine.compiled" not in sys.modules:
        if n_codes < SMALL or importlib.util.find_spec("numba") is None:
            return TWINS
        from mbkl.engine.compiled import announce_if_cold

        announce_if_cold()
    from mbkl.engine.compiled import Compiled

    # Counting the cores takes longer than a pass over few codes.
    n_threads = effective_n_jobs(-1 if n_jobs is None else n_jobs) if n_codes >= SMALL else 1
    return Compiled(n_threads)

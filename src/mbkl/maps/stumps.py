"""Decision stumps, one feature and one threshold each: random ones, and as fine as a byte allows.

The base classes of all families and their maps are here, too, and the drawing of thresholds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import qmc
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from mbkl.cells import Ladder
from mbkl.declare import estimator, parameter
from mbkl.engine import limits
from mbkl.engine.arrays import is_fresh, offsets_of, smallest_code_dtype
from mbkl.engine.codes import Codes, SparseCodes, coarsening
from mbkl.engine.rows import Rows, without_duplicates
from mbkl.engine.twins import as_float32

# How thresholds of a feature may be drawn.
THRESHOLDS = StrOptions({"uniform", "quantile", "mixed"})
_FLOAT32_MAX = float(np.finfo(np.float32).max)
# Most thresholds of a feature with codes of one byte, beside the one for missing values.
_MOST_THRESHOLDS = 254


class Maps:
    """Base class of the maps of one family."""

    n_maps: Any
    n_groups: Any
    cells: Any  # a `Ladder` or `FreeCells`
    codes: Any  # (rows) -> the cell of each group that each row falls in
    score: Any  # (rows, tables) -> the sum of the table entries of each row
    prior: Any  # (rates) -> weights of the maps before any are learned
    select: Any  # (kept) -> some of the maps
    column_names: Any  # (inputs, levels) -> a name for each column of the feature map
    is_ordered = True  # whether the cells of a group are intervals between thresholds

    @property
    def group_features(self) -> NDArray[np.intp]:
        """Input feature of each group, -1 where it has several."""
        return np.full(self.n_groups, -1, dtype=np.intp)

    @property
    def stump_features(self) -> NDArray[np.intp]:
        return np.empty(0, np.intp)

    @property
    def stump_thresholds(self) -> NDArray[np.float64]:
        return np.empty(0)

    @property
    def ferns(self) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """Features and thresholds of the stumps of each fern."""
        return []


class Family(BaseEstimator):
    """Base class of families of maps: how many maps to draw, and the memory of a fit."""

    # Most copies of the codes at once (original, sorted, renumbered, and those of rows inside the
    # margin), and cells of a map (python -m benchmarks.scale out_of_core).
    copies_of_codes, cells_of_a_map = 2.8, 1
    # Rows up to which codes are read only a few times, and whether rows can be read by blocks.
    few_rows, reads_blocks = 0, True

    def n_groups(self, n_maps: int, n_features: int) -> int:
        """Return the number of codes of a row, each of a byte or two."""
        return n_features

    def default_n_maps(self, shape: tuple[int, int]) -> int:
        """Return the number of maps that `n_maps="auto"` draws: time hardly grows with it.

        >>> Stumps().default_n_maps((100, 4)), Stumps().default_n_maps((100, 558))
        (2000, 35712)
        """
        return min(max(64 * shape[1], 2_000), 200_000)


class BinnedMaps(Maps):
    """Maps of single features, whose cells are intervals between thresholds."""

    features: NDArray[np.intp]  # (n_groups,): input feature of each group
    edges: Any  # thresholds of each group

    @property
    def n_groups(self) -> int:
        return self.features.size

    @property
    def group_features(self) -> NDArray[np.intp]:
        return self.features

    def codes(self, rows: Rows) -> Codes:
        return rows.bin(self.features, self.edges)

    def score(self, rows: Any, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        return rows.score(self.features, self.edges, tables)


@dataclass(frozen=True)
class BinEdges:
    """Sorted thresholds of every group."""

    # (n_maps,): increasing within a group; -inf separates missing values from all others
    thresholds: NDArray[np.float64]
    # (n_groups + 1,): thresholds of group g are offsets[g] to offsets[g + 1] - 1
    offsets: NDArray[np.int64]

    @cached_property
    def cell_offsets(self) -> NDArray[np.int64]:
        """First cell of each group, which has one cell more than thresholds."""
        return self.offsets + np.arange(self.offsets.size)

    @cached_property
    def code_dtype(self) -> np.dtype:
        return smallest_code_dtype(int(np.diff(self.offsets).max(initial=0)) + 1)


@dataclass(frozen=True)
class StumpMaps(BinnedMaps):
    """Stumps sorted by feature and threshold, identical ones merged."""

    features: NDArray[np.intp]
    edges: BinEdges
    multiplicity: NDArray[np.int64]  # (n_maps,): how many of the drawn stumps each one stands for

    @property
    def n_maps(self) -> int:
        return self.multiplicity.size

    @property
    def cells(self) -> Ladder:
        return Ladder(self.edges.cell_offsets)

    @property
    def stump_features(self) -> NDArray[np.intp]:
        return np.repeat(self.features, np.diff(self.edges.offsets))

    @property
    def stump_thresholds(self) -> NDArray[np.float64]:
        return self.edges.thresholds

    def prior(self, rates: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return weights of the stumps before any are learned.

        Rates are weights of the features, which are divided among their stumps. With None, all
        stumps drawn have equal weights.
        """
        prior = self.multiplicity.astype(np.float64)
        if rates is None:
            return prior
        features = self.stump_features
        drawn = np.bincount(features, prior, minlength=rates.size)
        return prior * (rates[features] / drawn[features])

    def column_names(self, inputs, levels=None) -> list[str]:
        """Return a name for either side of each stump."""
        names = []
        for feature, threshold in zip(self.stump_features, self.edges.thresholds, strict=True):
            if np.isneginf(threshold):
                names += [f"{inputs[feature]} present", f"{inputs[feature]} missing"]
            else:
                # Nine digits distinguish any two float32.
                value = f"{threshold:.9g}"
                names += [f"{inputs[feature]} > {value}", f"{inputs[feature]} <= {value}"]
        return names

    def select(self, kept: NDArray[np.bool_]) -> StumpMaps:
        """Return some of the stumps; groups without any are dropped."""
        return _assemble(
            self.stump_features[kept], self.edges.thresholds[kept], self.multiplicity[kept]
        )


def no_stumps() -> StumpMaps:
    """Return an empty set of stumps."""
    none = np.empty(0)
    return _assemble(none.astype(np.intp), none, none.astype(np.int64))


@estimator
class Stumps(Family):
    """Family of random decision stumps, z(x) = +1 if x[feature] > threshold else -1.

    Parameters
    ----------
    thresholds : {"uniform", "quantile", "mixed"}, default="uniform"
        "uniform" draws thresholds uniformly over the range of the feature, as in
        the paper. "quantile" draws them uniformly over its distribution, between
        neighbouring values: the maps then do not change when a feature is
        transformed monotonically, and outliers do not matter. "mixed" alternates
        between the two.
    draw : {"random", "stratified"}, default="random"
        "random" draws feature and threshold of each stump independently, as in
        the paper. "stratified" takes the features in turn and spreads the
        thresholds of each one evenly: with as many stumps the kernel deviates a
        third as much from its limit.

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.maps import Stumps
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifier(maps=Stumps(thresholds="quantile"), random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    thresholds: str = parameter(THRESHOLDS, default="uniform")
    draw: str = parameter(StrOptions({"random", "stratified"}), default="random")

    def fit_codes(
        self, rows: Rows, weights, n_maps: int, seed: int, n_levels=None
    ) -> tuple[StumpMaps, Codes]:
        """Draw stumps, code the rows, and merge stumps that split the rows identically.

        Weights, of shape (n_rows,), are positive, and used for quantile thresholds only. A larger
        `n_maps` draws the same stumps first. `n_levels`, of shape (n_features,), has the number of
        levels of each category and 0 for numbers; None means no categories, which have no stumps.
        """
        self._validate_params()
        n_features = rows.shape[1]
        low, high, has_missing = column_ranges(rows)
        features, shares = self._draw(n_maps, n_features, seed)
        thresholds = uniform = low[features] * (1.0 - shares) + high[features] * shares
        if self.thresholds != "uniform":
            values = rows_of_quantiles(rows, weights, n_maps, seed)
            thresholds = quantiles(*values, features, shares)
        if self.thresholds == "mixed":
            # Stratified draws take all features in turn, and every other round is uniform.
            turn = np.arange(n_maps) // (n_features if self.draw == "stratified" else 1)
            thresholds = np.where(turn % 2 == 0, uniform, thresholds)
        # Thresholds are float32, so that float32 and float64 input fall in the same cells.
        thresholds = thresholds.astype(np.float32).astype(np.float64)
        is_number = np.ones(n_features, dtype=bool) if n_levels is None else n_levels == 0
        missing = np.flatnonzero(has_missing & is_number)
        resolved = (low.astype(np.float32) < high.astype(np.float32)) & is_number
        drawn = np.isfinite(thresholds) & resolved[features]
        features = np.concatenate([features[drawn], missing])
        thresholds = np.concatenate([thresholds[drawn], np.full(missing.size, -np.inf)])
        return _merge_identical(rows, *_sort(features, thresholds))

    def _draw(
        self, n_maps: int, n_features: int, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the feature of each stump and where in its range the threshold lies."""
        generator = np.random.Generator(np.random.Philox(seed))
        if self.draw == "random":
            uniform = generator.random((n_maps, 2))
            return (uniform[:, 0] * n_features).astype(np.intp), uniform[:, 1]
        shift = generator.random(n_features)
        n_rounds = -(-n_maps // n_features)
        rounds = [generator.permutation(n_features) for _ in range(n_rounds)]
        features = np.concatenate(rounds)[:n_maps]
        turn = np.arange(n_maps) // n_features
        # The van der Corput sequence: turns 1, 2, 3, ... visit 1/2, 1/4, 3/4, ...
        visits = qmc.Halton(1, scramble=False).random(n_rounds)[:, 0]
        visit = visits[turn // 2 if self.thresholds == "mixed" else turn]
        return features, (visit + shift[features]) % 1.0


def column_ranges(rows: Rows) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
    """Return the smallest and largest value of each column, rounded, and which have NaN."""
    low, high, missing = rows.column_ranges()
    low, high = low.astype(np.float64), high.astype(np.float64)
    with np.errstate(invalid="ignore"):
        huge = np.flatnonzero((low < -_FLOAT32_MAX) | (high > _FLOAT32_MAX))
    if huge.size:
        raise ValueError(
            f"X has values beyond the range of float32 in column {huge[0]}; rescale that column."
        )
    blurred = (high > low) & (high.astype(np.float32) == low.astype(np.float32))
    if blurred.any():
        warnings.warn(
            f"Column {np.flatnonzero(blurred)[0]} of X varies by less than float32 can resolve "
            "and is ignored; subtract its mean to use it.",
            UserWarning,
            stacklevel=2,
        )
    return as_float32(low), as_float32(high), missing


def rows_of_quantiles(rows: Rows, weights, n_maps: int, seed: int) -> tuple[Any, NDArray]:
    """Return distinct rows, a sample if there are many, and their weights, to take quantiles of."""
    n_features = max(rows.shape[1], 1)
    # Several rows for each threshold of a feature.
    enough = max(limits.ROWS_OF_QUANTILES, 4 * n_maps // n_features)
    fitting = max(limits.VALUES_OF_QUANTILES // n_features, limits.FEWEST_ROWS_OF_QUANTILES)
    return rows.values(weights, min(fitting, enough), seed)


def quantiles(X, weights, features: NDArray, shares: NDArray) -> NDArray[np.float64]:
    """Return thresholds halfway between the quantile at each share and the next larger value."""
    thresholds = np.full(features.size, np.nan)
    order = np.argsort(features, kind="stable")
    bounds = np.searchsorted(features[order], np.arange(X.shape[1] + 1))
    columns = without_duplicates(sparse.csc_array(X)) if sparse.issparse(X) else X
    for feature in np.unique(features):
        values, mass = values_of(columns, feature, weights)
        wanted = order[bounds[feature] : bounds[feature + 1]]
        order_free = np.lexsort((mass, values))
        values = values[order_free]
        last = np.flatnonzero(np.append(values[1:] != values[:-1], values.size > 0))
        distinct = values[last]
        if distinct.size < 2:
            continue
        # The largest value is left out, as no threshold lies above it.
        running = np.cumsum(mass[order_free])[last[:-1]]
        place = np.searchsorted(running, shares[wanted] * running[-1], side="right")
        place = np.minimum(place, distinct.size - 2)
        thresholds[wanted] = distinct[place] / 2 + distinct[place + 1] / 2
    return thresholds


def values_of(columns, feature: int, weights) -> tuple[NDArray, NDArray]:
    """Return the values of a column that are not NaN, and their weights."""
    if sparse.issparse(columns):
        entries = slice(columns.indptr[feature], columns.indptr[feature + 1])
        stored = weights[columns.indices[entries]]
        values = np.append(columns.data[entries], 0.0)
        mass = np.append(stored, max(weights.sum() - stored.sum(), 0.0))
    else:
        values, mass = columns[:, feature], weights
    present = ~np.isnan(values) & (mass > 0)
    return as_float32(values[present]), mass[present]


def _sort(features: NDArray, thresholds: NDArray) -> tuple[NDArray, NDArray, NDArray[np.int64]]:
    """Sort by feature and threshold, and merge equal stumps."""
    order = np.lexsort((thresholds, features))
    features, thresholds = features[order], thresholds[order]
    starts = np.flatnonzero(is_fresh(features, thresholds))
    multiplicity = np.diff(np.append(starts, features.size))
    return features[starts], thresholds[starts], multiplicity


def _assemble(features: NDArray, thresholds: NDArray, multiplicity: NDArray) -> StumpMaps:
    """Group sorted stumps by feature."""
    groups, counts = np.unique(features, return_counts=True)
    return StumpMaps(groups, BinEdges(thresholds, offsets_of(counts)), multiplicity)


def _merge_identical(rows, features, thresholds, multiplicity) -> tuple[StumpMaps, Codes]:
    """Merge stumps with no row between them; drop those with all rows on one side."""
    maps = _assemble(features, thresholds, multiplicity)
    codes = maps.codes(rows)
    count, offsets = codes.counts(), codes.offsets
    is_first = np.zeros(codes.n_cells, dtype=bool)
    is_first[offsets[:-1]] = True
    # A stump is the left edge of its cell. It is the last of a run of identical stumps if its cell
    # has rows; the run is useful if rows lie left of it, too.
    before = np.cumsum(count) - count
    left = before - np.repeat(before[offsets[:-1]], np.diff(offsets))
    ends_run = (count > 0)[~is_first]
    useful = ends_run & (left > 0)[~is_first]
    run: NDArray[np.int64] = np.cumsum(ends_run) - ends_run
    keep = np.flatnonzero(useful)
    first_of_run: NDArray = np.searchsorted(run, run[keep], side="left")
    same_feature = np.searchsorted(maps.stump_features, maps.stump_features[keep], side="left")
    first_of_run = np.maximum(first_of_run, same_feature)
    # The middle stump of a run stands for it, as it is well inside the gap between rows.
    middle = (first_of_run + keep) // 2
    total = np.concatenate([[0], np.cumsum(multiplicity)])
    merged = total[keep + 1] - total[first_of_run]
    if useful.all():
        return maps, codes
    kept = _assemble(maps.stump_features[keep], thresholds[middle], merged)
    return kept, codes.coarsen(coarsening(offsets, useful))


# Thresholds as fine as a byte allows ----------------------------------------------------------


def fine_stumps(rows: Rows, weights, seed: int) -> tuple[StumpMaps, Codes]:
    """Return thresholds as fine as a byte allows, and the codes of the rows."""
    low, high, has_missing = column_ranges(rows)
    X, mass = rows.values(weights, rows_of_thresholds(rows.shape[1]), seed)
    columns = X.tocsc() if hasattr(X, "tocsc") else X

    def cuts_of(feature: int) -> NDArray[np.float64]:
        # Missing values are separated unless all values of the column are missing.
        has_some = has_missing[feature] and high[feature] >= low[feature]
        cuts = [np.full(int(has_some), -np.inf)]
        if high[feature] > low[feature]:
            cuts.append(even_thresholds(*values_of(columns, feature, mass), _MOST_THRESHOLDS))
        return np.concatenate(cuts)

    by_feature = rows.loops.each(cuts_of, range(rows.shape[1]))
    thresholds = np.concatenate([np.empty(0), *by_feature])
    features = np.repeat(np.arange(len(by_feature)), [cuts.size for cuts in by_feature])
    maps = _assemble(features, thresholds, np.ones(thresholds.size, dtype=np.int64))
    codes = maps.codes(rows)
    return maps, codes.dense() if isinstance(codes, SparseCodes) else codes


def rows_of_thresholds(n_features: int) -> int:
    """Return how many rows fine thresholds are taken from.

    >>> rows_of_thresholds(10), rows_of_thresholds(100), rows_of_thresholds(10_000)
    (200000, 40000, 4000)
    """
    n_rows = limits.VALUES_OF_THRESHOLDS // max(n_features, 1)
    return int(np.clip(n_rows, *limits.ROWS_OF_THRESHOLDS))


def even_thresholds(values, mass, n_thresholds: int) -> NDArray[np.float64]:
    """Return thresholds between neighbouring values, in intervals of nearly equal mass.

    A value with more mass than an interval gets an interval alone, and the others divide the
    remaining thresholds: a column that is mostly zero has fine thresholds above zero.

    >>> values = np.array([0.0] * 90 + list(range(1, 11)))
    >>> even_thresholds(values, np.ones(100), 5).tolist()
    [0.5, 2.5, 5.5, 7.5]
    """
    # float32 values, as they are compared, are sorted in half the time.
    distinct, place = np.unique(values.astype(np.float32), return_inverse=True)
    share = np.bincount(place, mass)
    if distinct.size < 2:
        return np.empty(0)
    last = np.arange(distinct.size - 1)
    if last.size > n_thresholds:
        heavy = np.zeros(distinct.size, dtype=bool)
        for _ in range(8):
            usual = share[~heavy].sum() / max(n_thresholds - heavy.sum(), 1)
            more = heavy | (share > usual)
            if (more == heavy).all():
                break
            heavy = more
        interval = np.floor(np.cumsum(np.where(heavy, 0.0, share)) / usual - 1e-9)
        ends = (np.diff(interval) > 0) | heavy[1:] | heavy[:-1]
        last = np.flatnonzero(ends)[:n_thresholds]
    low, high = distinct[last].astype(np.float64), distinct[last + 1].astype(np.float64)
    middle = (low + (high - low) / 2).astype(np.float32)
    return np.where(middle < high, middle, low).astype(np.float64)

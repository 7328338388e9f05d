"""Random ferns: several random stumps together, with a cell for each joint outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr
from sklearn.utils._param_validation import Interval, Options, StrOptions

from mbkl.cells import FreeCells
from mbkl.declare import estimator, parameter
from mbkl.engine import limits
from mbkl.engine.arrays import offsets_of, smallest_code_dtype
from mbkl.engine.codes import Codes
from mbkl.engine.rows import Rows, Sample
from mbkl.maps.categories import LevelCuts, LevelSets, joined_sets, random_sets
from mbkl.maps.stumps import THRESHOLDS, Family, Maps, column_ranges, quantiles

# Most stumps of a fern: an outcome has 64 bits before it is hashed.
DEEPEST = 64


@dataclass(frozen=True)
class FernMaps(Maps):
    """Ferns, where only the cells that training rows are in have numbers of their own."""

    # (n_stumps,): stumps of all ferns, one fern after the other. A stump on a category has a set of
    # levels, and NaN as its threshold
    features: NDArray[np.intp]
    thresholds: NDArray[np.float64]
    # (n_ferns + 1,): stumps of fern g are offsets[g] to offsets[g + 1] - 1
    offsets: NDArray[np.int64]
    # (n_ferns,): odd numbers by which the outcomes of deep ferns are hashed
    factors: NDArray[np.uint64]
    # (n_ferns,): number of cells of each fern before renumbering, a power of two
    n_raw: NDArray[np.int64]
    # (sum of n_raw,): new number of each cell within its fern. Cells without rows share the last
    numbers: NDArray
    cell_offsets: NDArray[np.int64]  # (n_ferns + 1,): first new cell of each fern
    # The sets of the stumps on categories, if there are any.
    sets: LevelSets | None = field(default=None, kw_only=True)

    @property
    def n_maps(self) -> int:
        return self.n_raw.size

    @property
    def n_groups(self) -> int:
        return self.n_raw.size

    is_ordered = False

    @property
    def cells(self) -> FreeCells:
        return FreeCells(self.cell_offsets)

    @property
    def raw_offsets(self) -> NDArray[np.int64]:
        return offsets_of(self.n_raw)

    def codes(self, rows: Rows) -> Codes:
        return rows.bin_ferns(self)

    def score(self, rows: Any, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        return rows.score_ferns(self, tables)

    def prior(self, rates: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return equal weights of the ferns; rates were used when the ferns were drawn."""
        return np.ones(self.n_maps)

    @property
    def ferns(self) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        bounds = pairwise(self.offsets)
        return [(self.features[a:b], self.thresholds[a:b]) for a, b in bounds]

    def column_names(self, inputs, levels=None) -> list[str]:
        """Return a name for each cell of each fern."""
        sizes = enumerate(np.diff(self.cell_offsets))
        return [f"fern {fern} cell {cell}" for fern, size in sizes for cell in range(size)]

    def select(self, kept: NDArray[np.bool_]) -> FernMaps:
        """Return some of the ferns."""
        stumps = np.repeat(kept, np.diff(self.offsets))
        return FernMaps(
            self.features[stumps],
            self.thresholds[stumps],
            offsets_of(np.diff(self.offsets)[kept]),
            self.factors[kept],
            self.n_raw[kept],
            self.numbers[np.repeat(kept, self.n_raw)],
            offsets_of(np.diff(self.cell_offsets)[kept]),
            sets=None if self.sets is None else self.sets.select(stumps),
        )


def joined_ferns(several: Sequence[FernMaps]) -> FernMaps:
    """Concatenate the ferns of several maps, in their order."""

    def all_of(name: str) -> Any:
        return np.concatenate([getattr(maps, name) for maps in several])

    def all_offsets(name: str) -> Any:
        return offsets_of(np.concatenate([np.diff(getattr(maps, name)) for maps in several]))

    names = ("features", "thresholds", "factors", "n_raw", "numbers")
    arrays = {name: all_of(name) for name in names}
    arrays |= {name: all_offsets(name) for name in ("offsets", "cell_offsets")}
    sizes = [maps.features.size for maps in several]
    return FernMaps(**arrays, sets=joined_sets([maps.sets for maps in several], sizes))


class FernFamily(Family):
    """Base class of the families of ferns."""

    copies_of_codes, cells_of_a_map = 2.0, 200
    # The codes of few rows are only read to form the kernel matrix.
    few_rows = limits.FEW_ROWS_OF_FERNS

    def n_groups(self, n_maps: int, n_features: int) -> int:
        """Return the codes of a row, each of a byte."""
        return n_maps


@estimator
class Ferns(FernFamily):
    """Family of random ferns: the joint answers of several random stumps.

    A fern of depth d divides the space into up to 2^d cells, and its kernel is one
    where two samples share a cell. With Poisson depths of mean l the mean of many ferns
    approaches exp(-l * distance), where the distance is the chance that a random stump
    separates two samples: ferns model interactions of features of any order.

    Parameters
    ----------
    depth : float, default=6.0
        Number of stumps of a fern, or its mean.
    distribution : {"poisson", "fixed"}, default="poisson"
        Whether depths are drawn from a Poisson distribution (without zero) or are all
        the same.
    thresholds : {"mixed", "uniform", "quantile"}, default="mixed"
        How the thresholds of a feature are drawn, see `Stumps`.
    max_cells : int, default=256
        A power of two. Outcomes of deeper ferns are hashed to this many cells, which
        adds 1 / max_cells to the kernel of two samples in different cells.
    rates : array-like of shape (n_features,) or None, default=None
        How often each feature is drawn; None means equally often.
    cuts : LevelCuts or None, default=None
        Orders of the levels of categories, which some stumps cut in two, as maps="auto" chooses
        them. With None, all stumps on categories ask for random halves of the levels.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.maps import Ferns
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = MBKLClassifier(maps=Ferns(), n_maps=300, random_state=0).fit(X[:200], y[:200])
    >>> model.score(X[200:], y[200:]) > 0.9
    True
    """

    depth: float = parameter(Interval(Real, 0, DEEPEST, closed="right"), default=6.0)
    distribution: str = parameter(StrOptions({"poisson", "fixed"}), default="poisson")
    thresholds: str = parameter(THRESHOLDS, default="mixed")
    max_cells: int = parameter(Options(Real, {2**bits for bits in range(1, 17)}), default=256)
    rates: Any = parameter("array-like", None, default=None)
    cuts: Any = parameter(LevelCuts, None, default=None)

    def default_n_maps(self, shape: tuple[int, int]) -> int:
        """Return the number of maps that `n_maps="auto"` draws.

        The error of their kernel falls with the root of their number, but time grows with it:
        they are fewer beyond 400 million codes.

        >>> Ferns().default_n_maps((100, 4)), Ferns().default_n_maps((10**6, 4))
        (2000, 400)
        """
        return fewer_for_many_rows(2_000, shape[0])

    def fit_codes(
        self, rows: Rows, weights, n_maps: int, seed: int, n_levels=None
    ) -> tuple[FernMaps, Codes]:
        """Draw ferns that separate any rows, and number the cells that have rows.

        See `Stumps.fit_codes`; a stump on a category asks whether the level is in a set.
        """
        self._check(rows.shape[1])
        maps = self._draw(rows, weights, n_maps, seed, n_levels)
        codes = maps.codes(rows)
        return _renumber(maps, codes, codes.counts() > 0)

    def _check(self, n_features: int) -> None:
        self._validate_params()
        if self.distribution == "fixed" and self.depth != int(self.depth):
            raise ValueError(f"A fixed depth must be a whole number, got {self.depth!r}.")
        if self.rates is not None:
            rates = np.asarray(self.rates, dtype=np.float64)
            is_whole = rates.shape == (n_features,) and (rates >= 0).all()
            if not is_whole or not 0 < rates.sum() < np.inf:
                raise ValueError(
                    f"rates must be {n_features} numbers, one per feature, that are not "
                    "negative and not all zero."
                )

    def _draw(self, rows: Rows, weights, n_maps: int, seed: int, n_levels=None) -> FernMaps:
        """Draw all ferns, without renumbering their cells."""
        of_ferns, of_stumps = (
            np.random.Generator(np.random.Philox([seed, kind])) for kind in (2, 6)
        )
        uniform = of_ferns.random((n_maps, 2))
        depths = self._depths(uniform[:, 0])
        factors = (uniform[:, 1] * 2.0**63).astype(np.uint64) | np.uint64(1)
        stumps = of_stumps.random((int(depths.sum()), 3))
        low, high, has_missing = column_ranges(rows)
        varies = (high > low) | (has_missing & ~np.isnan(low))
        features = _draw_features(stumps[:, 0], varies, self.rates)
        sample = rows.sample(None, weights, limits.ROWS_OF_QUANTILES_OF_FERNS, seed)
        thresholds = draw_thresholds(
            self.thresholds, features, stumps[:, 1], stumps[:, 2], low, high, sample
        )
        sets = None
        if n_levels is not None:
            sets = random_sets(features, stumps[:, 1], n_levels, seed, self.cuts)
            thresholds[n_levels[features] > 0] = np.nan
        n_raw = np.minimum(2 ** np.minimum(depths, 62), int(self.max_cells))
        raw_offsets = offsets_of(n_raw)
        numbers = np.arange(raw_offsets[-1]) - np.repeat(raw_offsets[:-1], n_raw)
        return FernMaps(
            features,
            thresholds,
            offsets_of(depths),
            factors,
            n_raw,
            numbers.astype(smallest_code_dtype(int(n_raw.max(initial=1)))),
            raw_offsets,
            sets=sets,
        )

    def _depths(self, uniform: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.distribution == "fixed":
            return np.full(uniform.size, int(self.depth), dtype=np.int64)
        # Depth zero is left out of the distribution.
        zero = np.exp(-self.depth)
        running = pdtr(np.arange(DEEPEST), self.depth)
        depths = np.searchsorted(running, zero + (1.0 - zero) * uniform)
        return np.maximum(depths, 1).astype(np.int64)


def _draw_features(shares, varies: NDArray[np.bool_], rates) -> NDArray[np.intp]:
    """Draw features in proportion to their rates, without constant ones."""
    mass = np.ones(varies.size) if rates is None else np.asarray(rates, dtype=np.float64)
    mass = np.where(varies, mass, 0.0) if (varies * mass).any() else np.ones(varies.size)
    running = np.cumsum(mass)
    place = np.searchsorted(running, shares * running[-1], side="right")
    return np.minimum(place, int(np.flatnonzero(mass)[-1])).astype(np.intp)


def draw_thresholds(
    kind: str, features, shares, choices, low, high, sample: Sample
) -> NDArray[np.float64]:
    """Return a threshold of each feature, of float32 precision.

    A threshold of -inf separates missing values from all others. Shares from 0 to 1 say where in
    the range of the feature, or in its distribution in the sample, the threshold lies. For "mixed",
    choices below 0.5 are uniform, and the others are quantiles.
    """
    total = sample.weights.sum()
    missing = sample.weights @ np.isnan(sample.X) / total if total else np.zeros(low.size)
    missing = missing[features]
    asks_missing = shares < missing
    shares = np.clip((shares - missing) / np.where(missing < 1, 1.0 - missing, 1.0), 0.0, 1.0)
    uniform = low[features] * (1.0 - shares) + high[features] * shares
    if kind == "uniform":
        thresholds = uniform
    else:
        drawn = quantiles(sample.X, sample.weights, features, shares)
        by_rank = np.where(np.isnan(drawn), uniform, drawn)
        thresholds = by_rank if kind == "quantile" else np.where(choices < 0.5, uniform, by_rank)
    thresholds = np.where(asks_missing | np.isnan(thresholds), -np.inf, thresholds)
    # Thresholds are float32, so that float32 and float64 input fall in the same cells.
    return thresholds.astype(np.float32).astype(np.float64)


def _renumber(maps: FernMaps, codes: Codes, seen: NDArray[np.bool_]) -> tuple[FernMaps, Codes]:
    """Return ferns and codes with cells without rows merged, and without constant ferns."""
    starts, n_raw = maps.cell_offsets[:-1], maps.n_raw
    # There are many cells, and short integers take half of the time.
    dtype = np.int32 if seen.size < 2**31 else np.int64
    before = np.cumsum(seen, dtype=dtype) - seen
    n_seen = np.add.reduceat(seen, starts, dtype=dtype)
    numbers = np.where(seen, before - np.repeat(before[starts], n_raw), np.repeat(n_seen, n_raw))
    kept = n_seen > 1
    n_cells = n_seen.astype(np.int64) + (n_seen < n_raw)
    code_dtype = smallest_code_dtype(int(n_cells[kept].max(initial=1)))
    whole = replace(maps, numbers=numbers.astype(code_dtype), cell_offsets=offsets_of(n_cells))
    selected = whole.select(kept)
    groups = np.flatnonzero(kept)
    return selected, codes.renumbered(groups, whole.numbers, selected.cell_offsets)


def fewer_for_many_rows(n_ferns: int, n_rows: int) -> int:
    """Return `n_ferns`, or fewer if their codes of many rows would take too long."""
    return max(min(n_ferns, limits.CODES_OF_FERNS // max(n_rows, 1)), limits.FEWEST_FERNS)

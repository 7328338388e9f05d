"""Categories: a group for each categorical column, with a cell for each of its levels.

Columns hold level numbers. Cell 0 is for missing values, cell 1 + k for level k, and the last cell
for new levels. These are the intervals between the thresholds -inf, 0.5, 1.5, ..., so that rows of
all kinds can code them as they code stumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mbkl.cells import FreeCells
from mbkl.engine.arrays import offsets_of
from mbkl.engine.codes import Codes
from mbkl.engine.rows import Rows
from mbkl.engine.twins import level_cells
from mbkl.maps.stumps import BinEdges, BinnedMaps, Family

# Codes are of one byte.
N_CODES = 256
# Share of the levels that a stump ranks by their gradients, drawn at random, and about the most of
# them. Other levels stay in the middle: a cut in the order of all levels would overfit.
_RANKED_SHARE, _MOST_RANKED = 0.3, 25
# Number of random sets of levels of a column that its stumps draw from.
_SETS_OF_A_COLUMN = 256


@dataclass(frozen=True)
class CategoryMaps(BinnedMaps):
    """The levels of each categorical column as the cells of one map."""

    features: NDArray[np.intp]  # (n_groups,): input column of each group
    n_levels: NDArray[np.int64]  # (n_groups,)

    @property
    def n_maps(self) -> int:
        return self.features.size

    @cached_property
    def edges(self) -> BinEdges:
        """Thresholds between level numbers."""
        thresholds = [level_edges(n) for n in self.n_levels.tolist()]
        return BinEdges(np.concatenate([np.empty(0), *thresholds]), offsets_of(self.n_levels + 1))

    @property
    def cells(self) -> FreeCells:
        return FreeCells(self.edges.cell_offsets)

    def prior(self, rates: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return weights of the columns before any are learned; see `StumpMaps.prior`."""
        return np.ones(self.n_maps) if rates is None else rates[self.features]

    def column_names(self, inputs, levels) -> list[str]:
        """Return a name for each cell of each column."""
        names = []
        for feature in self.features.tolist():
            known = [f"= {level}" for level in levels[feature]]
            names += [f"{inputs[feature]} {cell}" for cell in ("missing", *known, "new")]
        return names

    def select(self, kept: NDArray[np.bool_]) -> CategoryMaps:
        """Return some of the columns."""
        return CategoryMaps(self.features[kept], self.n_levels[kept])


def level_edges(n_levels: int) -> NDArray[np.float64]:
    """Return thresholds that separate missing values, each level, and new levels.

    >>> level_edges(2).tolist()
    [-inf, 0.5, 1.5]
    """
    return np.append(-np.inf, np.arange(n_levels) + 0.5)


@dataclass(frozen=True)
class LevelSets:
    """Sets of levels: a stump on a category asks whether the level is in its set."""

    numbers: NDArray[np.int64]  # (n_stumps,): set of each stump; -1 for one with a threshold
    # (sum of the set sizes,): for each set, whether each cell of its column is a member
    members: NDArray[np.bool_]
    # (n_sets + 1,): members of set k are offsets[k] to offsets[k + 1] - 1
    offsets: NDArray[np.int64]
    n_levels: NDArray[np.int64]  # (n_features,): levels of each column, 0 for numbers

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the set of each stump begins in `members`; -1 for a stump with a threshold."""
        return np.where(self.numbers >= 0, self.offsets[self.numbers], -1)

    def answer(self, X: NDArray, features: NDArray[np.intp], yes: NDArray[np.bool_]) -> None:
        """Write the answers of rows to the stumps that have sets."""
        stumps = np.flatnonzero(self.numbers >= 0)
        columns = features[stumps]
        cells = level_cells(X[:, columns], self.n_levels[columns])
        yes[:, stumps] = self.members[self.offsets[self.numbers[stumps]] + cells]

    def select(self, kept: NDArray[np.bool_]) -> LevelSets | None:
        """Return the sets of some stumps; None if they have none."""
        numbers = self.numbers[kept]
        has_set = numbers >= 0
        used, numbers[has_set] = np.unique(numbers[has_set], return_inverse=True)
        sizes = np.diff(self.offsets)[used]
        chosen = [slice(*self.offsets[number : number + 2].tolist()) for number in used]
        members = np.concatenate([np.empty(0, bool), *(self.members[part] for part in chosen)])
        return LevelSets(numbers, members, offsets_of(sizes), self.n_levels) if used.size else None

    def of_columns(self, columns: NDArray[np.intp]) -> LevelSets:
        """Return the sets for rows that have only some of the columns."""
        return replace(self, n_levels=self.n_levels[columns])


def joined_sets(several: Sequence[LevelSets | None], n_stumps: Sequence[int]) -> LevelSets | None:
    """Concatenate the sets of several maps with these numbers of stumps; None if none has any."""
    known = [sets for sets in several if sets is not None]
    if not known:
        return None
    numbers, n_sets_before = [], 0
    for sets, size in zip(several, n_stumps, strict=True):
        set_numbers = np.full(size, -1) if sets is None else sets.numbers
        numbers.append(np.where(set_numbers >= 0, set_numbers + n_sets_before, -1))
        n_sets_before += 0 if sets is None else sets.offsets.size - 1
    members = np.concatenate([sets.members for sets in known])
    sizes = np.concatenate([np.diff(sets.offsets) for sets in known])
    return LevelSets(np.concatenate(numbers), members, offsets_of(sizes), known[0].n_levels)


@dataclass(frozen=True)
class LevelCuts:
    """An order of the levels of each category, which some stumps of ferns cut in two."""

    shares: NDArray[np.float64]  # (n_features,): of a category's stumps that cut its order
    # (sum over the categories of n_levels + 2,): the share of the cuts that lies below missing
    # values, each level, and new levels
    places: NDArray[np.float64]


def random_sets(
    features: NDArray[np.intp], shares, n_levels, seed: int, cuts: LevelCuts | None = None
) -> LevelSets | None:
    """Return random halves of the levels for stumps on categories; None if there are none.

    The stumps of a column draw from a fixed number of sets, which is nearly as good as a set for
    each stump and takes little memory where there are thousands of levels. Shares from 0 to 1 say
    which set a stump draws. With `cuts`, some sets are the levels above a cut in their order.
    """
    generator = np.random.Generator(np.random.Philox([seed, 3]))
    categories = np.flatnonzero(n_levels)
    sizes = np.repeat(n_levels[categories] + 2, _SETS_OF_A_COLUMN)
    offsets = offsets_of(sizes)
    members = generator.integers(2, size=int(offsets[-1]), dtype=np.uint8).astype(bool)
    if cuts is not None:
        _set_cuts(members, categories, n_levels[categories] + 2, cuts)
    drawn = np.searchsorted(categories, features) * _SETS_OF_A_COLUMN
    drawn += (shares * _SETS_OF_A_COLUMN).astype(np.int64)
    numbers = np.where(n_levels[features] > 0, drawn, -1)
    whole = LevelSets(numbers, members, offsets, n_levels)
    return whole.select(np.ones(numbers.size, dtype=bool))


def _set_cuts(members: NDArray[np.bool_], categories, n_cells, cuts: LevelCuts) -> None:
    """Overwrite the first sets of each column, as many as its share of cuts, with cuts."""
    starts = offsets_of(n_cells)
    for number, size in enumerate(n_cells):
        n_cuts = round(cuts.shares[categories[number]] * _SETS_OF_A_COLUMN)
        places = cuts.places[starts[number] : starts[number + 1]]
        thresholds = (np.arange(n_cuts) + 0.5) / max(n_cuts, 1)
        first = _SETS_OF_A_COLUMN * starts[number]
        members[first : first + n_cuts * size] = (places > thresholds[:, None]).ravel()


class Categories(Family):
    """Family of the levels of categorical columns: the kernel counts the levels two rows share.

    Random stumps on categories, each of which asks whether the level is in a random half,
    approach this kernel as their number grows. If there are categorical columns, this
    family is added to `Stumps` automatically.

    Examples
    --------
    >>> import pandas as pd
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.maps import Categories
    >>> frame = pd.DataFrame({"town": ["Rome", "Bonn", "Oslo", "Rome"] * 5})
    >>> model = MBKLClassifier(maps=Categories()).fit(frame, ["hot", "cold", "cold", "hot"] * 5)
    >>> model.predict(pd.DataFrame({"town": ["Oslo", "Rome"]}))
    array(['cold', 'hot'], dtype='<U4')
    """

    cells_of_a_map = 200

    def default_n_maps(self, shape: tuple[int, int]) -> int:
        """Return the largest number of maps: one for each column."""
        return shape[1]

    def fit_codes(
        self, rows: Rows, weights, n_maps: int, seed: int, n_levels=None
    ) -> tuple[CategoryMaps, Codes]:
        """Code the categories with two or more levels in the rows; see `Stumps.fit_codes`."""
        counts = np.zeros(rows.shape[1], np.int64) if n_levels is None else n_levels
        features = np.flatnonzero(counts)
        maps = CategoryMaps(features, counts[features])
        codes = maps.codes(rows)
        seen = (codes.counts() > 0).astype(np.int64)
        varies = np.add.reduceat(seen, codes.offsets[:-1]) > 1 if features.size else features > 0
        if varies.all():
            return maps, codes
        return maps.select(varies), codes.keep_groups(np.flatnonzero(varies))


def draw_ranked(n_codes: NDArray[np.int64], n_stumps: int, generator) -> NDArray[np.bool_]:
    """Draw which codes of categories each stump ranks, (n_stumps, n_categories, 256)."""
    shares = np.minimum(_RANKED_SHARE, _MOST_RANKED / n_codes)
    return generator.random((n_stumps, n_codes.size, N_CODES)) < shares[:, None]

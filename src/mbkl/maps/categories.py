"""Categories: a group for each categorical column, with a cell for each of its levels.

Columns hold level numbers. Their cells are numbered 0 where a value is missing, 1 + level, and
one beyond the last where a level is new: the intervals between the thresholds -inf, 0.5, 1.5, ...,
so that codes are made as those of stumps are, wherever the rows may be.
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
# A stump may tell apart this share of the levels, drawn by chance, and about so many at most. The
# others are in the middle of the order: a cut in the order of all levels would fit their noise.
_TOLD_APART, _MOST_TOLD_APART = 0.3, 25
# Random sets of levels that the stumps of a column draw from.
_SETS_OF_A_COLUMN = 256


@dataclass(frozen=True)
class CategoryMaps(BinnedMaps):
    """Groups of levels, each a map of many values."""

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
            own = [f"= {level}" for level in levels[feature]]
            names += [f"{inputs[feature]} {cell}" for cell in ("missing", *own, "new")]
        return names

    def select(self, kept: NDArray[np.bool_]) -> CategoryMaps:
        """Return some of the columns."""
        return CategoryMaps(self.features[kept], self.n_levels[kept])


def level_edges(n_levels: int) -> NDArray[np.float64]:
    """Return thresholds that part missing values, levels and new ones.

    >>> level_edges(2).tolist()
    [-inf, 0.5, 1.5]
    """
    return np.append(-np.inf, np.arange(n_levels) + 0.5)


@dataclass(frozen=True)
class LevelSets:
    """What stumps of ferns ask about categories: whether the level is in a set."""

    numbers: NDArray[np.int64]  # (n_stumps,): set of each stump; -1 for one with a threshold
    # (n_members,): for each cell of a column whether it is in the set, one set after the other
    members: NDArray[np.bool_]
    # (n_sets + 1,): members of set k are offsets[k] to offsets[k + 1] - 1
    offsets: NDArray[np.int64]
    n_levels: NDArray[np.int64]  # (n_features,): levels of each column, 0 for numbers

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where in the members the set of each stump begins; -1 for one with a threshold."""
        return np.where(self.numbers >= 0, self.offsets[self.numbers], -1)

    def answer(self, X: NDArray, features: NDArray[np.intp], yes: NDArray[np.bool_]) -> None:
        """Write the answers of rows to the stumps that have sets."""
        asking = np.flatnonzero(self.numbers >= 0)
        own = features[asking]
        cells = level_cells(X[:, own], self.n_levels[own])
        yes[:, asking] = self.members[self.offsets[self.numbers[asking]] + cells]

    def select(self, kept: NDArray[np.bool_]) -> LevelSets | None:
        """Return the sets of some stumps; None if they have none."""
        numbers = self.numbers[kept]
        has_set = numbers >= 0
        used, numbers[has_set] = np.unique(numbers[has_set], return_inverse=True)
        sizes = np.diff(self.offsets)[used]
        chosen = [slice(*self.offsets[number : number + 2].tolist()) for number in used]
        members = np.concatenate([np.empty(0, bool), *(self.members[own] for own in chosen)])
        return LevelSets(numbers, members, offsets_of(sizes), self.n_levels) if used.size else None

    def of_columns(self, columns: NDArray[np.intp]) -> LevelSets:
        """Return the sets for rows with some of the columns."""
        return replace(self, n_levels=self.n_levels[columns])


def joined_sets(several: Sequence[LevelSets | None], n_stumps: Sequence[int]) -> LevelSets | None:
    """Return the sets of so many stumps each, one after the other; None if none has any."""
    known = [sets for sets in several if sets is not None]
    if not known:
        return None
    numbers, before = [], 0
    for sets, size in zip(several, n_stumps, strict=True):
        own = np.full(size, -1) if sets is None else sets.numbers
        numbers.append(np.where(own >= 0, own + before, -1))
        before += 0 if sets is None else sets.offsets.size - 1
    members = np.concatenate([sets.members for sets in known])
    sizes = np.concatenate([np.diff(sets.offsets) for sets in known])
    return LevelSets(np.concatenate(numbers), members, offsets_of(sizes), known[0].n_levels)


@dataclass(frozen=True)
class LevelCuts:
    """Cuts in an order of the levels, which stumps of ferns ask about beside random halves."""

    shares: NDArray[np.float64]  # (n_features,): of the stumps on each category
    # (sum over the categories of n_levels + 2,): for missing values, each level, and new ones,
    # which share of the cuts lies below
    places: NDArray[np.float64]


def random_sets(
    features: NDArray[np.intp], shares, n_levels, seed: int, cuts: LevelCuts | None = None
) -> LevelSets | None:
    """Return random halves of the levels for stumps on categories; None if there are no such.

    A column has a number of sets that its stumps draw from: as good as one for each, and small
    where there are thousands of levels. Shares from 0 to 1 say which of the sets a stump draws.
    Some of the sets may be what lies above a cut.
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
    """Write what lies above a cut over the first sets of each column, by the share of cuts."""
    starts = offsets_of(n_cells)
    for number, size in enumerate(n_cells):
        n_cuts = round(cuts.shares[categories[number]] * _SETS_OF_A_COLUMN)
        places = cuts.places[starts[number] : starts[number + 1]]
        thresholds = (np.arange(n_cuts) + 0.5) / max(n_cuts, 1)
        first = _SETS_OF_A_COLUMN * starts[number]
        members[first : first + n_cuts * size] = (places > thresholds[:, None]).ravel()


class Categories(Family):
    """Family of the levels of categorical columns: two rows agree where they share the level.

    It is what infinitely many random stumps on categories add up to, each of which asks
    whether the level is in a random half. Where columns are categories it comes beside
    `Stumps` by itself.

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
        """Code the categories that part any rows; see `Stumps.fit_codes`. Nothing is drawn."""
        counts = np.zeros(rows.shape[1], np.int64) if n_levels is None else n_levels
        features = np.flatnonzero(counts)
        maps = CategoryMaps(features, counts[features])
        codes = maps.codes(rows)
        seen = (codes.counts() > 0).astype(np.int64)
        varies = np.add.reduceat(seen, codes.offsets[:-1]) > 1 if features.size else features > 0
        if varies.all():
            return maps, codes
        return maps.select(varies), codes.keep_groups(np.flatnonzero(varies))


def told_apart(n_codes: NDArray[np.int64], n_stumps: int, generator) -> NDArray[np.bool_]:
    """Draw which codes of categories stumps may tell apart, (n_stumps, n_categories, 256)."""
    shares = np.minimum(_TOLD_APART, _MOST_TOLD_APART / n_codes)
    return generator.random((n_stumps, n_codes.size, N_CODES)) < shares[:, None]

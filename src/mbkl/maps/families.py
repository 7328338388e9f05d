"""Models with several families of maps: plans of what to draw, and the maps that were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.cells import Block, Operator
from mbkl.engine import limits
from mbkl.engine.rows import Rows, steps
from mbkl.engine.twins import TWINS, Twins
from mbkl.maps.categories import Categories
from mbkl.maps.choose import PARTED_LEVELS, Choice
from mbkl.maps.ferns import Ferns, fewer_for_many_rows, joined_ferns
from mbkl.maps.grown_ferns import GrownFerns, GrownMaps
from mbkl.maps.growth_losses import Targets
from mbkl.maps.projections import Projections
from mbkl.maps.stumps import Family, Maps, Stumps

FAMILIES: dict[str, type[Family]] = {
    "stumps": Stumps,
    "categories": Categories,
    "ferns": Ferns,
    "grown": GrownFerns,
    "projections": Projections,
}


@dataclass(frozen=True)
class MapSet:
    """Maps of one or several families, in order."""

    families: tuple[Maps, ...]

    @property
    def n_maps(self) -> int:
        return sum(maps.n_maps for maps in self.families)

    @property
    def n_groups(self) -> int:
        return sum(maps.n_groups for maps in self.families)

    @property
    def is_ordered(self) -> bool:
        """Whether the cells of all groups are ordered, as there are no ferns."""
        return all(maps.is_ordered for maps in self.families)

    def n_codes(self, n_rows: int) -> int:
        """Return how many codes of `n_rows` rows are read more than a few times."""
        is_many = n_rows > limits.FEW_ROWS_OF_FERNS
        return n_rows * sum(each.n_groups for each in self.families if is_many or each.is_ordered)

    @property
    def group_features(self) -> NDArray[np.intp]:
        """Input feature of each group, -1 where it has none or several."""
        return np.concatenate([maps.group_features for maps in self.families])

    @property
    def stump_features(self) -> NDArray[np.intp]:
        """Input feature of each stump."""
        return np.concatenate([maps.stump_features for maps in self.families])

    @property
    def stump_thresholds(self) -> NDArray[np.float64]:
        """Threshold of each stump."""
        return np.concatenate([maps.stump_thresholds for maps in self.families])

    @property
    def ferns(self) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """Features and thresholds of the stumps of each fern."""
        return [fern for maps in self.families for fern in maps.ferns]

    def split(self, values: NDArray) -> list[NDArray]:
        """Split an array with an entry for each map by family."""
        return np.split(values, np.cumsum([maps.n_maps for maps in self.families])[:-1])

    def codes(self, rows: Rows) -> list:
        """Return the codes of the rows, family by family."""
        return [maps.codes(rows) for maps in self.families]

    def select(self, kept: NDArray[np.bool_]) -> MapSet:
        """Return some of the maps."""
        pairs = zip(self.families, self.split(kept), strict=True)
        return MapSet(tuple(maps.select(family_kept) for maps, family_kept in pairs))

    @property
    def n_weights(self) -> int:
        return int(self._weights_of_maps().sum())

    def first(self, n_weights: int) -> MapSet:
        """Return the first maps that have at most `n_weights` weights together."""
        return self.select(np.cumsum(self._weights_of_maps()) <= n_weights)

    def _weights_of_maps(self) -> NDArray[np.float64]:
        families = [maps.cells for maps in self.families]
        return np.concatenate([c.collect(np.ones(c.n_cells))[c.is_map] for c in families])

    def tables(
        self, weights: NDArray[np.float64], loops: Twins = TWINS
    ) -> list[NDArray[np.float64]]:
        """Return the tables of each family from weights, a row per stump or cell of a fern."""
        tables, start = [], 0
        for cells in (maps.cells for maps in self.families):
            is_weight = cells.spread(cells.is_map)
            stop = start + int(is_weight.sum())
            tables.append(_tables(cells, is_weight, weights[start:stop], loops))
            start = stop
        return tables

    def score(self, rows: Any, tables: Sequence) -> NDArray[np.float64]:
        """Return the sum of the table entries of each row."""
        scores = self.families[0].score(rows, tables[0])
        for maps, table in zip(self.families[1:], tables[1:], strict=True):
            scores += maps.score(rows, table)
        return scores


def mean_growth(growths: Sequence[GrownMaps]) -> GrownMaps:
    """Return the mean model of several growths, without scores of held-out rows."""
    ferns, first = joined_ferns(growths), growths[0]
    return GrownMaps(
        **vars(ferns),
        path=np.concatenate([grown.path for grown in growths]) / len(growths),
        intercept=np.mean([grown.intercept for grown in growths], axis=0),
        n_rounds=sum(grown.n_rounds for grown in growths),
        held_out_scores=first.held_out_scores[:0],
        held_out_y=first.held_out_y[:0],
    )


def _tables(cells: Any, is_weight, weights: NDArray, loops: Twins) -> NDArray[np.float64]:
    """Return the tables of cells, of which `is_weight` marks those that have weights."""

    def tables_of(columns: slice) -> NDArray[np.float64]:
        by_cell = np.zeros((cells.n_cells, weights[:1, columns].shape[1]))
        by_cell[is_weight] = weights[:, columns]
        return cells.tables(by_cell) if cells.n_cells else by_cell

    columns_of_a_thread = -(-weights.shape[1] // loops.n_threads)
    parts = list(steps(weights.shape[1], columns_of_a_thread))
    tables = loops.each(lambda number: tables_of(parts[number]), range(len(parts)))
    return tables[0] if len(tables) == 1 else np.concatenate(tables, axis=1)


def families_of(maps: Any) -> list[Family]:
    """Return the families that the parameter `maps` names.

    >>> families_of(["stumps", Ferns(depth=3)])
    [Stumps(), Ferns(depth=3)]
    """
    if isinstance(maps, (list, tuple)):
        if not maps:
            raise ValueError("maps is an empty list; name at least one family.")
        return [family for item in maps for family in families_of(item)]
    if isinstance(maps, Family):
        return [maps]
    if isinstance(maps, str) and maps in FAMILIES:
        return [FAMILIES[maps]()]
    raise ValueError(
        f"maps must be 'auto' by itself, or one of {sorted(FAMILIES)}, an instance of a family "
        f"or a list of these, got {maps!r}."
    )


@dataclass(frozen=True)
class Plan:
    """A family to draw, how many maps of it, and its share of the kernel."""

    family: Family
    n_maps: int
    share: float = 1.0  # prior weight of the family, which is divided among its maps
    rates: NDArray[np.float64] | None = None  # (n_features,): see `StumpMaps.prior`
    # (n_features,): levels of each column, 0 for numbers; None if there are no categories
    n_levels: NDArray[np.int64] | None = None

    def n_groups(self, n_features: int) -> int:
        """Return about how many codes a row has."""
        return self.family.n_groups(self.n_maps, n_features)

    @property
    def is_grown(self) -> bool:
        return isinstance(self.family, GrownFerns)

    def grow(self, rows: Rows, targets: Targets, seed: int, progress) -> GrownMaps:
        return self.family.grow(rows, targets, self.n_maps, seed, progress, self.n_levels)

    def n_codes(self, shape: tuple[int, int]) -> int:
        """Return about how many codes one pass reads."""
        n_rows, n_features = shape
        return 0 if n_rows <= self.family.few_rows else n_rows * self.n_groups(n_features)

    def draw(self, rows: Rows, targets: Targets, seed: int, progress=lambda state: False):
        """Return maps, their block of the operator, and prior weights of the maps."""
        maps: Maps
        if self.is_grown:
            maps = self.grow(rows, targets, seed, progress)
            codes = maps.codes(rows)
        else:
            draw = self.family.fit_codes
            maps, codes = draw(rows, targets.weights, self.n_maps, seed, self.n_levels)
        prior = maps.prior(self.rates)
        total = prior.sum()
        return maps, Block(codes, maps.cells), (self.share / total if total else 1.0) * prior


def draw_all(
    plans: Sequence[Plan], rows: Rows, targets: Targets, seed: int, progress=lambda state: False
) -> tuple[MapSet, Operator, NDArray[np.float64]]:
    """Draw the maps of all plans; see `GrownFerns.grow` for `progress`.

    Returned are the maps, the operator on the rows, and the prior weight of each slot, which is
    zero where there is no map.
    """
    kinds = [type(plan.family) for plan in plans]
    # Different seeds keep two families of the same class from drawing the same maps.
    seeds = [seed + kinds[:position].count(kind) for position, kind in enumerate(kinds)]
    pairs = zip(plans, seeds, strict=True)
    drawn = [plan.draw(rows, targets, plan_seed, progress) for plan, plan_seed in pairs]
    families, blocks, priors = zip(*drawn, strict=True)
    operator = Operator(blocks)
    prior = np.zeros(operator.n_slots)
    prior[operator.is_map] = np.concatenate(priors)
    return MapSet(families), operator, prior


def plans_of(maps, n_maps: int | None, shape, n_levels=None) -> list[Plan]:
    """Return plans for the families that `maps` names, with equal shares."""
    families = families_of(maps)
    plans = [
        Plan(family, n_maps or family.default_n_maps(shape), 1.0 / len(families), None, n_levels)
        for family in families
    ]
    if any(isinstance(family, Categories) for family in families):
        return plans
    return [each for plan in plans for each in _with_categories(plan)]


def _with_categories(plan: Plan) -> list[Plan]:
    """Add a plan of the categories to a plan of stumps; leave other plans unchanged."""
    if plan.n_levels is None or not isinstance(plan.family, Stumps):
        return [plan]
    rates = np.ones(plan.n_levels.size) if plan.rates is None else plan.rates
    # A stump can separate all values of a number, but only half of the pairs of two levels.
    mass = np.where(plan.n_levels > 0, PARTED_LEVELS, 1.0) * rates
    share = plan.share * float(mass[plan.n_levels > 0].sum() / mass.sum())
    return [
        replace(plan, share=plan.share - share),
        replace(plan, family=Categories(), n_maps=plan.n_levels.size, share=share),
    ]


def plans_of_choice(
    choice: Choice, n_maps: int | None, shape, factor: int = 1, n_levels=None
) -> list[Plan]:
    """Return the plans for a chosen kernel, on distinct rows of that shape.

    `n_maps` is the number of stumps and of ferns; None means enough of them, with more ferns the
    fewer rows there are, and `factor` times as many ferns as usual.
    """
    n_cheap = limits.CHEAP_CODES // max(shape[0], 1)
    n_ferns = factor * min(max(n_cheap, limits.ENOUGH_FERNS), limits.MOST_FERNS)
    stumps = Stumps(thresholds="mixed", draw="stratified")
    ferns = Ferns(depth=choice.depth, rates=choice.rates, cuts=choice.cuts)
    shares = (choice.stump_share, 1.0 - choice.stump_share)
    n_stumps = n_maps or stumps.default_n_maps(shape)
    n_ferns = n_maps or fewer_for_many_rows(n_ferns, shape[0])
    return [
        *_with_categories(Plan(stumps, n_stumps, shares[0], choice.rates, n_levels)),
        Plan(ferns, n_ferns, shares[1], None, n_levels),
    ]

"""Several families of maps in one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbkl.learn.limit_kernel import Choice
from mbkl.learn.operator import AnyOperator, MapOperator, join
from mbkl.maps.ferns import FernMaps, Ferns
from mbkl.maps.projections import ProjectionMaps, Projections
from mbkl.maps.stumps import StumpMaps, Stumps

if TYPE_CHECKING:
    from mbkl.engine import Engine

Family = Stumps | Ferns | Projections
Maps = StumpMaps | FernMaps | ProjectionMaps

FAMILIES: dict[str, type[Family]] = {
    "stumps": Stumps,
    "ferns": Ferns,
    "projections": Projections,
}


@dataclass(frozen=True)
class MapSet:
    """Maps of one or several families, in order.

    Parameters
    ----------
    parts : tuple of StumpMaps, FernMaps or ProjectionMaps
    """

    parts: tuple[Maps, ...]

    @property
    def n_maps(self) -> int:
        return sum(part.n_maps for part in self.parts)

    @property
    def n_groups(self) -> int:
        return sum(part.n_groups for part in self.parts)

    @property
    def has_ferns(self) -> bool:
        return any(isinstance(part, FernMaps) for part in self.parts)

    def n_codes(self, n_rows: int) -> int:
        """Return how many codes of so many rows are read more than a few times."""
        return sum(
            0 if isinstance(part, FernMaps) and n_rows <= _FEW_ROWS else n_rows * part.n_groups
            for part in self.parts
        )

    @property
    def group_features(self) -> NDArray[np.intp]:
        """Input feature of each group, -1 where it has none or several."""
        return np.concatenate([part.group_features for part in self.parts])

    def operator(self, codes: Sequence, engine: Engine) -> AnyOperator:
        """Return the matrix of all maps on the rows that the codes stand for."""
        pairs = zip(self.parts, codes, strict=True)
        return join([MapOperator(piece, part.cells, engine) for part, piece in pairs])

    def codes(self, X, engine: Engine) -> list:
        """Return the codes of the rows of X, family by family."""
        return [part.codes(X, engine) for part in self.parts]

    def select(self, kept: NDArray[np.bool_]) -> MapSet:
        """Return some of the maps."""
        bounds = np.cumsum([part.n_maps for part in self.parts])[:-1]
        pieces = np.split(kept, bounds)
        return MapSet(
            tuple(part.select(piece) for part, piece in zip(self.parts, pieces, strict=True))
        )

    def tables(self, weights: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the tables of each family.

        Parameters
        ----------
        weights : ndarray of shape (n_weights, n_columns)
            A row per stump and per cell of a fern.
        """
        tables, start = [], 0
        for part in self.parts:
            cells = part.cells
            is_weight = cells.spread(cells.is_map)
            stop = start + int(is_weight.sum())
            everywhere = np.zeros((cells.n_cells, weights.shape[1]))
            everywhere[is_weight] = weights[start:stop]
            tables.append(cells.tables(everywhere) if cells.n_cells else everywhere)
            start = stop
        return tables

    def score(self, X, tables: Sequence, engine: Engine) -> NDArray[np.float64]:
        """Return the sum of the table entries of each row of X."""
        scores = self.parts[0].score(X, tables[0], engine)
        for part, piece in zip(self.parts[1:], tables[1:], strict=True):
            scores += part.score(X, piece, engine)
        return scores


def families_of(maps) -> list[Family]:
    """Return the families that the parameter `maps` names.

    Examples
    --------
    >>> families_of(["stumps", Ferns(depth=3)])
    [Stumps(), Ferns(depth=3)]
    """
    if isinstance(maps, (list, tuple)):
        if not maps:
            raise ValueError("maps is an empty list; name at least one family.")
        return [family for item in maps for family in families_of(item)]
    if isinstance(maps, (Stumps, Ferns, Projections)):
        return [maps]
    if isinstance(maps, str) and maps in FAMILIES:
        return [FAMILIES[maps]()]
    raise ValueError(
        f"maps must be 'auto' by itself, or one of {sorted(FAMILIES)}, an instance of a family "
        f"or a list of these, got {maps!r}."
    )


def default_n_maps(family: Family, shape: tuple[int, int]) -> int:
    """Return the number of maps that `n_maps="auto"` draws.

    64 stumps a feature are fine steps; time hardly grows with their number. The kernel
    of ferns deviates from its limit by one over the root of their number, but time
    grows with it: they are 2,000, fewer beyond 400 million codes.

    Examples
    --------
    >>> default_n_maps(Stumps(), (100, 4)), default_n_maps(Stumps(), (100, 558))
    (2000, 35712)
    >>> default_n_maps(Ferns(), (100, 4)), default_n_maps(Ferns(), (10**6, 4))
    (2000, 400)
    """
    n_rows, n_features = shape
    if isinstance(family, Ferns):
        return max(min(_USUAL_FERNS, _FERN_CODES // max(n_rows, 1)), _FEWEST_FERNS)
    return min(max(64 * n_features, 2_000), 200_000)


_USUAL_FERNS, _FEWEST_FERNS, _FERN_CODES = 2_000, 200, 400_000_000
# Up to this many codes the kernel matrix is what takes time, not the ferns.
_CHEAP_CODES = 8_000_000
_ENOUGH_FERNS, _MOST_FERNS = 1_000, 4_000
_FEW_ROWS = 200


@dataclass(frozen=True)
class Plan:
    """A family to draw, how many maps of it, and its share of the kernel.

    Parameters
    ----------
    family : Stumps, Ferns or Projections
    n_maps : int
    share : float
        Prior weight of the family, to be divided among its maps.
    rates : ndarray of shape (n_features,) or None
        Prior weight of each feature, to be divided among its stumps; None divides
        equally among all stumps drawn.
    """

    family: Family
    n_maps: int
    share: float = 1.0
    rates: NDArray[np.float64] | None = None

    def n_codes(self, shape: tuple[int, int]) -> int:
        """Return how many codes one pass reads, about."""
        n_rows, n_features = shape
        if not isinstance(self.family, Ferns):
            return n_rows * n_features
        # Ferns of few rows are read a few times only, to form the kernel matrix.
        return 0 if n_rows <= _FEW_ROWS else n_rows * self.n_maps

    def draw(self, X, weights, seed: int, engine: Engine):
        """Return maps, the codes of X and prior weights of the maps."""
        maps, codes = self.family.fit_codes(X, weights, self.n_maps, seed, engine)
        prior = maps.multiplicity.astype(np.float64)
        if self.rates is not None and isinstance(maps, StumpMaps):
            features = maps.stump_features
            drawn = np.bincount(features, prior, minlength=self.rates.size)
            prior *= self.rates[features] / drawn[features]
        total = prior.sum()
        return maps, codes, (self.share / total if total else 1.0) * prior


def plans_of(families: Sequence[Family], n_maps: int | None, shape) -> list[Plan]:
    """Return plans that give all families the same share."""
    sizes = [n_maps or default_n_maps(family, shape) for family in families]
    pairs = zip(families, sizes, strict=True)
    return [Plan(family, size, 1.0 / len(families)) for family, size in pairs]


def plans_of_choice(choice: Choice, n_maps: int | None, shape, factor: int = 1) -> list[Plan]:
    """Return the plans that a choice of the kernel stands for.

    Parameters
    ----------
    choice : Choice
    n_maps : int or None
        Number of stumps and of ferns; None means enough of them, which are more ferns
        the fewer rows there are.
    shape : (n_rows, n_features)
        Of different rows.
    factor : int
        How many times the usual number of ferns to draw.
    """
    n_cheap = _CHEAP_CODES // max(shape[0], 1)
    n_ferns = factor * min(max(n_cheap, _ENOUGH_FERNS), _MOST_FERNS)
    n_ferns = max(min(n_ferns, _FERN_CODES // max(shape[0], 1)), _FEWEST_FERNS)
    stumps = Stumps(thresholds="mixed", draw="stratified")
    ferns = Ferns(depth=choice.depth, rates=choice.rates)
    shares = (choice.stump_share, 1.0 - choice.stump_share)
    return [
        Plan(stumps, n_maps or default_n_maps(stumps, shape), shares[0], choice.rates),
        Plan(ferns, n_maps or n_ferns, shares[1]),
    ]

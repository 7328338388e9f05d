"""The rows that explanations average over."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.rows import first_by_hash
from mbkl.engine.twins import just_above
from mbkl.maps.categories import CategoryMaps
from mbkl.maps.families import MapSet
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps

_SEED = 0


def check_number(name: str, value: int) -> None:
    """Complain of a number of rows below one."""
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}.")


def some_rows(X, n_rows: int) -> NDArray:
    """Return at most so many rows of X, dense, drawn by a hash of their values."""
    rows = X[first_by_hash(X, np.zeros(X.shape[0], dtype=np.intp), n_rows, _SEED)]
    return rows.toarray() if sparse.issparse(rows) else rows


def rows_between_thresholds(maps: MapSet, n_features: int, n_rows: int) -> NDArray[np.float64]:
    """Return rows made up from the model alone, for when there are no data.

    All intervals between the thresholds of a feature are equally likely, features are
    independent, and those that only projections use have a normal distribution.
    """
    generator = np.random.Generator(np.random.Philox(_SEED))
    rows = np.zeros((n_rows, n_features))
    for family in maps.families:
        if isinstance(family, ProjectionMaps):
            rows[:] = family.centre + family.scale * generator.normal(size=rows.shape)
    pairs = [(maps.stump_features, maps.stump_thresholds), *maps.ferns]
    columns = [np.concatenate(parts) for parts in zip(*pairs, strict=True)]
    stumps = np.unique(np.column_stack(columns), axis=0)
    stumps = stumps[~np.isnan(stumps[:, 1])]
    used, first = np.unique(stumps[:, 0], return_index=True)
    for feature, cuts in zip(used.astype(np.intp), np.split(stumps[:, 1], first[1:])):
        # An interval ends on its threshold; the last begins just above one.
        values = np.append(cuts, just_above(cuts[-1:]))
        values[np.isneginf(values)] = np.nan
        rows[:, feature] = _evenly(values, n_rows, generator)
    for feature, n_levels in sorted(_categories(maps).items()):
        rows[:, feature] = _evenly(np.arange(float(n_levels)), n_rows, generator)
    return rows


def _evenly(values: NDArray, n_rows: int, generator: np.random.Generator) -> NDArray:
    """Return so many of the values, all about equally often, in random order."""
    return generator.permutation(values[np.arange(n_rows) * values.size // n_rows])


def _categories(maps: MapSet) -> dict[int, int]:
    """Return how many levels the categories that a model uses have."""
    found: dict[int, int] = {}
    for family in maps.families:
        if isinstance(family, CategoryMaps):
            found |= zip(family.features.tolist(), family.n_levels.tolist(), strict=True)
        elif isinstance(family, FernMaps) and family.sets is not None:
            asked = np.unique(family.features[family.sets.numbers >= 0])
            found |= zip(asked.tolist(), family.sets.n_levels[asked].tolist(), strict=True)
    return found

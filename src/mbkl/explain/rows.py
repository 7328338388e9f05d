"""The rows of explanations: samples, rows generated from a model, and their kernel matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.rows import as_rows, first_by_hash
from mbkl.engine.twins import just_above
from mbkl.kernel import codes_of, distance_of
from mbkl.maps.categories import CategoryMaps, level_edges
from mbkl.maps.families import MapSet
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps

Array = NDArray[np.float64]

_SEED = 0


def check_number(name: str, value: int) -> None:
    """Raise an error if a number of rows is below one."""
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}.")


def some_rows(X, n_rows: int) -> NDArray:
    """Return at most `n_rows` rows of X, dense, drawn by a hash of their values."""
    return as_rows(X).take(first_by_hash(X, None, n_rows, _SEED))


def rows_between_thresholds(maps: MapSet, n_features: int, n_rows: int) -> NDArray[np.float64]:
    """Return rows generated from the model alone, for explanations without data.

    All intervals between the thresholds of a feature are equally likely, features are
    independent, and those that only projections use have a normal distribution.
    """
    generator = np.random.Generator(np.random.Philox(_SEED))
    rows = np.zeros((n_rows, n_features))
    for family in maps.families:
        if isinstance(family, ProjectionMaps):
            rows[:] = family.centre + family.scale * generator.normal(size=rows.shape)
    categories = _categories(maps)
    cells = cells_of_features(maps)
    for feature in sorted(cells, key=lambda feature: (feature in categories, feature)):
        values = cells[feature][1]
        if feature in categories:
            values = values[1:-1]
        # Each value occurs about equally often, in random order.
        rows[:, feature] = generator.permutation(values[np.arange(n_rows) * values.size // n_rows])
    return rows


def cells_of_features(maps: MapSet) -> dict[int, tuple[NDArray, NDArray]]:
    """Return, for each feature of stumps, ferns or categories, thresholds and a value per cell.

    The cells of a category are missing values, each level, and new levels.
    """
    pairs = [(maps.stump_features, maps.stump_thresholds), *maps.ferns]
    stumps = np.column_stack([np.concatenate(parts) for parts in zip(*pairs, strict=True)])
    stumps = np.unique(stumps[~np.isnan(stumps[:, 1])], axis=0)
    used, first = np.unique(stumps[:, 0], return_index=True)
    cells = {}
    for feature, cuts in zip(used.astype(np.intp).tolist(), np.split(stumps[:, 1], first[1:])):
        # A cell includes its upper threshold; the last cell begins just above its lower one.
        values = np.append(cuts, just_above(cuts[-1:]))
        values[np.isneginf(values)] = np.nan
        cells[feature] = cuts, values
    for feature, n_levels in _categories(maps).items():
        cells[feature] = level_edges(n_levels), np.append(np.nan, np.arange(n_levels + 1.0))
    return cells


def _categories(maps: MapSet) -> dict[int, int]:
    """Return the number of levels of each category that a model uses."""
    n_levels: dict[int, int] = {}
    for family in maps.families:
        if isinstance(family, CategoryMaps):
            n_levels |= zip(family.features.tolist(), family.n_levels.tolist(), strict=True)
        elif isinstance(family, FernMaps) and family.sets is not None:
            used = np.unique(family.features[family.sets.numbers >= 0])
            n_levels |= zip(used.tolist(), family.sets.n_levels[used].tolist(), strict=True)
    return n_levels


def kernel_matrix(model, X, *, equal_weights: bool = False) -> Array:
    """Return the total weight, from 0 to 1, of the maps on which each two rows agree.

    With equal weights all maps that the model kept count the same, whatever their theta.
    """
    codes, theta = codes_of(model, X), model.theta_
    if equal_weights:
        prior = np.concatenate([family.prior() for family in model.maps_.families])
        theta = prior / max(prior.sum(), 1)
    return theta.sum() - distance_of(model.maps_, codes, codes, theta)


def shades_of(kernel: Array) -> tuple[float, float]:
    """Return the range of values of a kernel matrix that the colours of a picture show.

    The diagonal is left out: it is one for every kernel and would stretch the range.
    """
    apart = kernel[~np.eye(len(kernel), dtype=bool)] if len(kernel) > 1 else np.array([0.0, 1.0])
    low, high = np.quantile(apart, [0.01, 0.99])
    return float(low), float(max(high, low + 1e-9))


def rows_by_class(X, y: NDArray, max_rows: int) -> NDArray[np.intp]:
    """Return the numbers of at most `max_rows` rows, sorted by class."""
    codes = np.unique(y, return_inverse=True)[1]
    rows = first_by_hash(X, codes, max_rows, seed=0)
    return rows[np.argsort(codes[rows], kind="stable")]

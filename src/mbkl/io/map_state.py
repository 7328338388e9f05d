"""Conversion of binary maps to plain arrays and back, with a check of every number."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.arrays import offsets_of, smallest_code_dtype
from mbkl.io.container import ModelFileError, Stored, compact
from mbkl.maps.categories import CategoryMaps, LevelSets
from mbkl.maps.families import Maps, MapSet
from mbkl.maps.ferns import DEEPEST, FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.maps.stumps import BinEdges, StumpMaps

Packed = tuple[dict[str, Any], dict[str, NDArray]]
Integers = NDArray[np.int64]

_MOST_BITS = 16
_MOST_CHI2_STEPS = 3
# Any float32 divided by a larger scale is finite.
_SMALLEST_SCALE = 1e-250
_NOT_INCREASING = "has values that do not increase"


def pack_maps(maps: MapSet) -> tuple[list[dict[str, Any]], dict[str, NDArray]]:
    """Return the header entry of each family, and the arrays of all families."""
    headers, arrays = [], {}
    for number, family in enumerate(maps.families):
        header, of_family = _pack(family)
        headers.append(header)
        arrays.update({f"maps/{number}/{name}": array for name, array in of_family.items()})
    return headers, arrays


@singledispatch
def _pack(maps: Maps) -> Packed:
    """Return the header entry of a family, and its arrays."""
    raise TypeError(f"Model files have no {type(maps).__name__}.")


def unpack_maps(headers: list, arrays: Stored, n_levels: Integers) -> MapSet:
    """Return the maps that `pack_maps` packed; `n_levels` is 0 for features without levels."""
    if not headers:
        raise ModelFileError("The model has no family of maps.")
    families = []
    for number, each in enumerate(headers):
        header, of_family = Stored(each), arrays.within(f"maps/{number}")
        family = header.take("family", str)
        if family not in _UNPACK:
            raise ModelFileError(f"The family of maps {family[:30]!r} is unknown.")
        families.append(_UNPACK[family](header, of_family, n_levels))
        header.done()
    return MapSet(tuple(families))


# ---------------------------------------------------------------- stumps and categories


@_pack.register
def _(maps: StumpMaps) -> Packed:
    return {"family": "stumps"}, {"features": compact(maps.features), **_pack_edges(maps)}


def _pack_edges(maps: StumpMaps) -> dict[str, NDArray]:
    return {
        "counts": compact(np.diff(maps.edges.offsets)),
        "multiplicity": compact(maps.multiplicity),
        # Thresholds are exact in float32, even in arrays of float64.
        "thresholds": maps.edges.thresholds.astype("<f4"),
    }


@_pack.register
def _(maps: CategoryMaps) -> Packed:
    """Pack the columns; the header of the model holds their levels."""
    return {"family": "categories"}, {"features": compact(maps.features)}


def _unpack_stumps(header: Stored, arrays: Stored, n_levels: Integers) -> StumpMaps:
    return _unpack_edges(arrays, _unpack_features(arrays, n_levels))


def _unpack_categories(header: Stored, arrays: Stored, n_levels: Integers) -> CategoryMaps:
    features = _unpack_features(arrays, n_levels)
    arrays.check("features", n_levels[features].all(), "has columns that are no categories")
    return CategoryMaps(features, n_levels[features])


def _unpack_features(arrays: Stored, n_levels: Integers) -> NDArray[np.intp]:
    features = arrays.integers("features", None, high=n_levels.size - 1)
    arrays.check("features", (np.diff(features) > 0).all(), _NOT_INCREASING)
    return features.astype(np.intp)


def _unpack_edges(arrays: Stored, features: NDArray[np.intp]) -> StumpMaps:
    offsets = offsets_of(arrays.integers("counts", features.size, low=1))
    thresholds = _unpack_thresholds(arrays, None)
    has_all = offsets[-1] == thresholds.size
    arrays.check("counts", has_all, "has another sum than there are thresholds")
    increases = thresholds[1:] > thresholds[:-1]
    increases[offsets[1:-1] - 1] = True  # each group starts anew
    arrays.check("thresholds", increases.all(), _NOT_INCREASING)
    multiplicity = arrays.integers("multiplicity", thresholds.size, low=1)
    return StumpMaps(features, BinEdges(thresholds, offsets), multiplicity)


def _unpack_thresholds(arrays: Stored, length: int | None) -> NDArray[np.float64]:
    """Return thresholds, which are finite or -inf."""
    thresholds = arrays.array("thresholds", "f", length).astype(np.float64)
    arrays.check("thresholds", (thresholds < np.inf).all(), "has values that are no thresholds")
    return thresholds


# ---------------------------------------------------------------- ferns


@_pack.register
def _(maps: FernMaps) -> Packed:
    """Pack ferns; the cells of a random fern take one bit each.

    In a random fern, cells with their own table entry are numbered in order, and all other cells
    share the last number: one bit per cell, whether it has its own entry, is enough. In a grown
    fern any cells may share a number, so the numbers are stored.
    """
    shared = np.repeat(np.diff(maps.cell_offsets) - 1, maps.n_raw)
    has_own_entry = maps.numbers != shared
    cells = {"numbers": compact(maps.numbers)}
    has_cells = (np.diff(maps.cell_offsets) > 1).all()
    if has_cells and np.array_equal(_number_cells(has_own_entry, maps.n_raw)[0], maps.numbers):
        cells = {"cells": np.packbits(has_own_entry)}
    arrays = pack_ferns(maps) | cells
    if maps.sets is not None:
        # "sets" has the set of each stump, counted from 1; "members" the bits of all sets.
        arrays["sets"] = compact(maps.sets.numbers + 1)
        arrays["members"] = np.packbits(maps.sets.members)
    return {"family": "ferns"}, arrays


def pack_ferns(maps: FernMaps) -> dict[str, NDArray]:
    """Return the arrays of ferns but the sets of levels and the numbers of cells."""
    return {
        "bits": np.log2(maps.n_raw).astype(np.uint8),
        "depths": compact(np.diff(maps.offsets)),
        "factors": maps.factors,
        "features": compact(maps.features),
        # Stumps with a set of levels have no threshold, which is stored as 0.
        "thresholds": np.where(np.isnan(maps.thresholds), 0.0, maps.thresholds).astype(np.float32),
    }


def _unpack_ferns(header: Stored, arrays: Stored, n_levels: Integers) -> FernMaps:
    depths = arrays.integers("depths", None, low=1, high=DEEPEST)
    n_stumps = int(depths.sum())
    bits = arrays.integers("bits", depths.size, low=1, high=_MOST_BITS)
    arrays.check("bits", (bits <= depths).all(), "has values above the depths")
    factors = arrays.array("factors", "u", depths.size).astype(np.uint64)
    arrays.check("factors", (factors % 2 == 1).all(), "has even values")
    numbers, n_cells = _unpack_cells(arrays, 2**bits)
    features = arrays.integers("features", n_stumps, high=n_levels.size - 1).astype(np.intp)
    thresholds = _unpack_thresholds(arrays, n_stumps)
    return FernMaps(
        features,
        np.where(n_levels[features] > 0, np.nan, thresholds),
        offsets_of(depths),
        factors,
        2**bits,
        numbers,
        offsets_of(n_cells),
        sets=_unpack_sets(arrays, features, n_levels),
    )


def _unpack_sets(arrays: Stored, features, n_levels: Integers) -> LevelSets | None:
    is_category = n_levels[features] > 0
    if not is_category.any():
        return None
    numbers = arrays.integers("sets", features.size, high=features.size) - 1
    has_set = np.array_equal(numbers >= 0, is_category)
    arrays.check("sets", has_set, "has sets of numbers, or none of levels")
    used, first, place = np.unique(numbers[is_category], return_index=True, return_inverse=True)
    sizes = n_levels[features[is_category]] + 2
    is_sound = used[-1] == used.size - 1 and np.array_equal(sizes, sizes[first][place])
    arrays.check("sets", is_sound, "has gaps, or one set for two columns")
    offsets = offsets_of(sizes[first])
    return LevelSets(numbers, _unpack_bits(arrays, "members", int(offsets[-1])), offsets, n_levels)


def _unpack_cells(arrays: Stored, n_raw: Integers) -> tuple[NDArray, Integers]:
    if "numbers" not in arrays:
        numbers, n_cells = _number_cells(_unpack_bits(arrays, "cells", int(n_raw.sum())), n_raw)
        is_sound = ((n_cells >= 2) & (n_cells <= n_raw)).all()
        arrays.check("cells", is_sound, "has a fern with no or all cells")
        return numbers, n_cells
    numbers = arrays.integers("numbers", int(n_raw.sum()), high=int(n_raw.max(initial=1)) - 1)
    n_cells = np.maximum.reduceat(numbers, offsets_of(n_raw)[:-1]).astype(np.int64) + 1
    arrays.check("numbers", (n_cells <= n_raw).all(), "has more cells than a fern has")
    return numbers.astype(smallest_code_dtype(int(n_cells.max(initial=1)))), n_cells


def _unpack_bits(arrays: Stored, name: str, length: int) -> NDArray[np.bool_]:
    packed = arrays.array(name, "u", -(-length // 8))
    arrays.check(name, packed.dtype == np.uint8, "has a wrong type")
    bits = np.unpackbits(packed).view(bool)
    arrays.check(name, not bits[length:].any(), "has bits beyond its end")
    return bits[:length]


def _number_cells(has_own_entry: NDArray[np.bool_], n_raw: Integers) -> tuple[NDArray, Integers]:
    """Return the number of each raw cell within its fern, and the count of numbers per fern."""
    starts = offsets_of(n_raw)
    n_own = np.add.reduceat(has_own_entry, starts[:-1], dtype=np.int64)
    numbers = np.empty(has_own_entry.size, smallest_code_dtype(int(n_own.max(initial=0)) + 1))
    # One fern at a time bounds the memory of cumsum, which takes 8 bytes for each bit of the file.
    for fern, (start, stop) in enumerate(pairwise(starts)):
        own = has_own_entry[start:stop]
        numbers[start:stop] = np.where(own, own.cumsum() - 1, n_own[fern])
    return numbers, n_own + 1


# ---------------------------------------------------------------- projections


@_pack.register
def _(maps: ProjectionMaps) -> Packed:
    arrays = {"centre": maps.centre, "scale": maps.scale, **_pack_edges(maps.stumps)}
    directions = maps.directions
    if isinstance(directions, np.ndarray):
        # Directions are contiguous, as in memory: the last bits of a projection depend on that.
        arrays["directions"] = directions.T
    else:
        arrays["inputs"] = compact(directions.indices)
        arrays["lengths"] = compact(np.diff(directions.indptr))
        arrays["weights"] = np.asarray(directions.data)
    return {"family": "projections", "chi2_steps": int(maps.chi2_steps)}, arrays


def _unpack_projections(header: Stored, arrays: Stored, n_levels: Integers) -> ProjectionMaps:
    steps, n_features = header.integer("chi2_steps", 0, _MOST_CHI2_STEPS), n_levels.size
    centre, scale = (arrays.reals(name, n_features) for name in ("centre", "scale"))
    is_divisor = (scale > _SMALLEST_SCALE).all()
    arrays.check("scale", is_divisor, f"has values not above {_SMALLEST_SCALE}")
    n_inputs = n_features * (2 * steps - 1 if steps else 1)
    directions = _unpack_directions(arrays, n_inputs)
    stumps = _unpack_edges(arrays, np.arange(directions.shape[1]))
    return ProjectionMaps(directions, centre, scale, steps, stumps)


def _unpack_directions(arrays: Stored, n_inputs: int) -> NDArray | sparse.csc_array:
    if "directions" in arrays:
        return arrays.reals("directions", None, n_inputs).T
    lengths = arrays.integers("lengths", None, high=n_inputs)
    inputs = arrays.integers("inputs", int(lengths.sum()), high=n_inputs - 1)
    weights = arrays.reals("weights", inputs.size)
    shape = (n_inputs, lengths.size)
    return sparse.csc_array((weights, inputs, offsets_of(lengths)), shape=shape)


_UNPACK: dict[str, Callable[..., Maps]] = {
    "stumps": _unpack_stumps,
    "categories": _unpack_categories,
    "ferns": _unpack_ferns,
    "projections": _unpack_projections,
}

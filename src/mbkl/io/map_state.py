"""Binary maps as plain arrays, and back, with every number checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.arrays import offsets_of, smallest_code_dtype
from mbkl.io.container import Arrays, Entries, ModelFileError, compact
from mbkl.maps.categories import CategoryMaps, LevelSets
from mbkl.maps.families import Maps, MapSet
from mbkl.maps.ferns import DEEPEST, FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.maps.stumps import BinEdges, StumpMaps

Packed = tuple[dict[str, Any], dict[str, NDArray]]

_MOST_BITS = 16
_MOST_CHI2_STEPS = 3
# Any float32 divided by it is finite.
_SMALLEST_SCALE = 1e-250


def pack_maps(maps: MapSet) -> tuple[list[dict[str, Any]], dict[str, NDArray]]:
    """Return what the header says of each family, and the arrays of all of them."""
    headers, arrays = [], {}
    for number, family in enumerate(maps.families):
        header, own = _pack(family)
        headers.append(header)
        arrays.update({f"maps/{number}/{name}": array for name, array in own.items()})
    return headers, arrays


@singledispatch
def _pack(maps: Maps) -> Packed:
    """Return what the header says of a family, and its arrays."""
    raise TypeError(f"Model files have no {type(maps).__name__}.")


def unpack_maps(headers: list, arrays: Arrays, n_levels: NDArray[np.int64]) -> MapSet:
    """Return the maps of which `pack_maps` made these; numbers have 0 levels."""
    if not headers:
        raise ModelFileError("The model has no family of maps.")
    families = [
        _unpack_family(Entries(header, "A family of maps"), arrays.within(f"maps/{n}"), n_levels)
        for n, header in enumerate(headers)
    ]
    return MapSet(tuple(families))


def _unpack_family(header: Entries, arrays: Arrays, n_levels: NDArray[np.int64]) -> Maps:
    family = header.take("family", str)
    if family not in _UNPACK:
        raise ModelFileError(f"The family of maps {family[:30]!r} is unknown.")
    maps = _UNPACK[family](header, arrays, n_levels)
    header.done()
    return maps


# ---------------------------------------------------------------- stumps


@_pack.register
def _(maps: StumpMaps) -> Packed:
    return {"family": "stumps"}, {"features": compact(maps.features), **_pack_edges(maps)}


def _pack_edges(maps: StumpMaps) -> dict[str, NDArray]:
    return {
        "counts": compact(np.diff(maps.edges.offsets)),
        "multiplicity": compact(maps.multiplicity),
        # Thresholds are float32 numbers, whatever the type of their array.
        "thresholds": maps.edges.thresholds.astype("<f4"),
    }


def _unpack_stumps(header: Entries, arrays: Arrays, n_levels: NDArray[np.int64]) -> StumpMaps:
    return _unpack_edges(arrays, _unpack_features(arrays, n_levels))


def _unpack_features(arrays: Arrays, n_levels: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the features of groups, which increase."""
    features = arrays.integers("features", None, high=n_levels.size - 1)
    if not (features[1:] > features[:-1]).all():
        arrays.complain("features", "values that do not increase")
    return features.astype(np.intp)


@_pack.register
def _(maps: CategoryMaps) -> Packed:
    """Pack the columns; how many levels they have follows from the header."""
    return {"family": "categories"}, {"features": compact(maps.features)}


def _unpack_categories(header: Entries, arrays: Arrays, n_levels) -> CategoryMaps:
    features = _unpack_features(arrays, n_levels)
    if not n_levels[features].all():
        arrays.complain("features", "columns that are no categories")
    return CategoryMaps(features, n_levels[features])


def _unpack_edges(arrays: Arrays, features: NDArray[np.intp]) -> StumpMaps:
    counts = arrays.integers("counts", features.size, low=1)
    thresholds = arrays.thresholds("thresholds", None)
    offsets = offsets_of(counts)
    if offsets[-1] != thresholds.size:
        arrays.complain("counts", "another sum than there are thresholds")
    group = np.repeat(np.arange(features.size), counts)
    if not ((group[1:] > group[:-1]) | (thresholds[1:] > thresholds[:-1])).all():
        arrays.complain("thresholds", "values that do not increase")
    multiplicity = arrays.integers("multiplicity", thresholds.size, low=1)
    return StumpMaps(features, BinEdges(thresholds, offsets), multiplicity)


# ---------------------------------------------------------------- ferns


@_pack.register
def _(maps: FernMaps) -> Packed:
    """Pack cells of random ferns as one bit each.

    Their cells with a number of their own are numbered in order, and all others share the
    number after these. Which ones have their own says it all. Cells of grown ferns have a number
    each, that of all cells with the same table entry.
    """
    shared = np.repeat(np.diff(maps.cell_offsets) - 1, maps.n_raw)
    own = maps.numbers != shared
    cells = {"numbers": compact(maps.numbers)}
    has_cells = (np.diff(maps.cell_offsets) > 1).all()
    if has_cells and np.array_equal(_number_cells(own, maps.n_raw)[0], maps.numbers):
        cells = {"cells": np.packbits(own)}
    arrays = pack_ferns(maps) | cells
    if maps.sets is not None:
        # The set of each stump, counted from 1, and the members of all sets as bits.
        arrays["sets"] = compact(maps.sets.numbers + 1)
        arrays["members"] = np.packbits(maps.sets.members)
    return {"family": "ferns"}, arrays


def pack_ferns(maps: FernMaps) -> dict[str, NDArray]:
    """Return what ferns are, without the sets of levels and the numbers of their cells."""
    return {
        "bits": np.log2(maps.n_raw).astype(np.uint8),
        "depths": compact(np.diff(maps.offsets)),
        "factors": maps.factors,
        "features": compact(maps.features),
        # Stumps with a set of levels have none.
        "thresholds": np.where(np.isnan(maps.thresholds), 0.0, maps.thresholds).astype(np.float32),
    }


def _unpack_sets(arrays: Arrays, features, n_levels: NDArray[np.int64]) -> LevelSets | None:
    is_category = n_levels[features] > 0
    if not is_category.any():
        return None
    numbers = arrays.integers("sets", features.size, high=features.size) - 1
    if not np.array_equal(numbers >= 0, is_category):
        arrays.complain("sets", "sets of numbers, or none of levels")
    used, first, place = np.unique(numbers[is_category], return_index=True, return_inverse=True)
    sizes = n_levels[features[is_category]] + 2
    if used[-1] != used.size - 1 or not np.array_equal(sizes, sizes[first][place]):
        arrays.complain("sets", "gaps, or one set for two columns")
    offsets = offsets_of(sizes[first])
    return LevelSets(numbers, _unpack_bits(arrays, "members", int(offsets[-1])), offsets, n_levels)


def _unpack_ferns(header: Entries, arrays: Arrays, n_levels: NDArray[np.int64]) -> FernMaps:
    depths = arrays.integers("depths", None, low=1, high=DEEPEST)
    n_stumps = int(depths.sum())
    bits = arrays.integers("bits", depths.size, low=1, high=_MOST_BITS)
    if (bits > depths).any():
        arrays.complain("bits", "values above the depths")
    factors = arrays.take("factors", "u", (depths.size,)).astype(np.uint64)
    if not (factors % 2 == 1).all():
        arrays.complain("factors", "even values")
    n_raw = 2**bits
    numbers, n_cells = _unpack_cells(arrays, n_raw)
    features = arrays.integers("features", n_stumps, high=n_levels.size - 1).astype(np.intp)
    thresholds = arrays.thresholds("thresholds", n_stumps)
    return FernMaps(
        features,
        np.where(n_levels[features] > 0, np.nan, thresholds),
        offsets_of(depths),
        factors,
        n_raw,
        numbers,
        offsets_of(n_cells),
        sets=_unpack_sets(arrays, features, n_levels),
    )


def _unpack_cells(arrays: Arrays, n_raw: NDArray) -> tuple[NDArray, NDArray[np.int64]]:
    """Return the number of each cell within its fern, and how many there are."""
    if "numbers" in arrays:
        numbers = arrays.integers("numbers", int(n_raw.sum()), high=int(n_raw.max(initial=1)) - 1)
        starts = offsets_of(n_raw)[:-1]
        n_cells = np.maximum.reduceat(numbers, starts).astype(np.int64) + 1
        if (n_cells > n_raw).any():
            arrays.complain("numbers", "more cells than a fern has")
        return numbers.astype(smallest_code_dtype(int(n_cells.max(initial=1)))), n_cells
    numbers, n_cells = _number_cells(_unpack_bits(arrays, "cells", int(n_raw.sum())), n_raw)
    if ((n_cells < 2) | (n_cells > n_raw)).any():
        arrays.complain("cells", "a fern with no or all cells")
    return numbers, n_cells


def _unpack_bits(arrays: Arrays, name: str, length: int) -> NDArray[np.bool_]:
    packed = arrays.take(name, "u", (-(-length // 8),))
    if packed.dtype != np.uint8:
        arrays.complain(name, "a wrong type")
    bits = np.unpackbits(packed).view(bool)
    if bits[length:].any():
        arrays.complain(name, "bits beyond its end")
    return bits[:length]


def _number_cells(
    own: NDArray[np.bool_], n_raw: NDArray[np.int64]
) -> tuple[NDArray, NDArray[np.int64]]:
    """Return the number of each cell within its fern, and how many there are."""
    starts = offsets_of(n_raw)
    n_own = np.add.reduceat(own, starts[:-1], dtype=np.int64)
    numbers = np.empty(own.size, smallest_code_dtype(int(n_own.max(initial=0)) + 1))
    # Fern by fern: a cell is one bit in the file and must not become many bytes here.
    for fern, (start, stop) in enumerate(pairwise(starts)):
        numbers[start:stop] = np.where(own[start:stop], own[start:stop].cumsum() - 1, n_own[fern])
    return numbers, n_own + 1


# ---------------------------------------------------------------- projections


@_pack.register
def _(maps: ProjectionMaps) -> Packed:
    arrays = {"centre": maps.centre, "scale": maps.scale, **_pack_edges(maps.stumps)}
    directions = maps.directions
    if isinstance(directions, np.ndarray):
        # One direction after the other: that is how they lie in memory too, on which
        # the last bits of a projection depend.
        arrays["directions"] = directions.T
    else:
        arrays["inputs"] = compact(directions.indices)
        arrays["lengths"] = compact(np.diff(directions.indptr))
        arrays["weights"] = np.asarray(directions.data)
    return {"family": "projections", "chi2_steps": int(maps.chi2_steps)}, arrays


def _unpack_projections(header: Entries, arrays: Arrays, n_levels) -> ProjectionMaps:
    steps, n_features = header.integer("chi2_steps", 0, _MOST_CHI2_STEPS), n_levels.size
    centre = arrays.reals("centre", (n_features,))
    scale = arrays.reals("scale", (n_features,))
    if not (scale > _SMALLEST_SCALE).all():
        arrays.complain("scale", f"values not above {_SMALLEST_SCALE}")
    n_inputs = n_features * (2 * steps - 1 if steps else 1)
    directions = _unpack_directions(arrays, n_inputs)
    stumps = _unpack_edges(arrays, np.arange(directions.shape[1]))
    return ProjectionMaps(directions, centre, scale, steps, stumps)


def _unpack_directions(arrays: Arrays, n_inputs: int) -> NDArray | sparse.csc_array:
    if "directions" in arrays:
        return arrays.reals("directions", (None, n_inputs)).T
    lengths = arrays.integers("lengths", None, high=n_inputs)
    inputs = arrays.integers("inputs", int(lengths.sum()), high=n_inputs - 1)
    weights = arrays.reals("weights", (inputs.size,))
    shape = (n_inputs, lengths.size)
    return sparse.csc_array((weights, inputs, offsets_of(lengths)), shape=shape)


_UNPACK: dict[str, Callable[..., Maps]] = {
    "stumps": _unpack_stumps,
    "categories": _unpack_categories,
    "ferns": _unpack_ferns,
    "projections": _unpack_projections,
}

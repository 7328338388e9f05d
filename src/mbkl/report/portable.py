"""A model as JSON, small enough for a page that computes scores by itself."""

from __future__ import annotations

import base64
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from mbkl.explain.inside import (
    CategoryMaps,
    FernMaps,
    Maps,
    ProjectionMaps,
    StumpMaps,
    TablePredictor,
)

# Names of JavaScript's arrays. Thresholds are float32 values in any model.
_ARRAYS = {
    "f8": "Float64Array",
    "f4": "Float32Array",
    "i4": "Int32Array",
    "u8": "BigUint64Array",
    "u2": "Uint16Array",
    "u1": "Uint8Array",
}
# Up to here tables keep all their digits.
_EXACT_BYTES = 3_000_000


def pack(values, kind: str) -> dict[str, str]:
    """Return an array as text: the name of JavaScript's array and its bytes.

    Examples
    --------
    >>> pack([1.0], "f4")
    {'array': 'Float32Array', 'bytes': 'AACAPw=='}
    """
    data = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"array": _ARRAYS[kind], "bytes": base64.b64encode(data).decode("ascii")}


def columns_that_fit(predictor: TablePredictor, max_bytes: float) -> int:
    """Return for how many scores the tables fit into so many bytes, in short form."""
    n_cells = sum(len(tables) for tables in predictor.tables)
    n_other = sum(_bytes_besides_tables(maps) for maps in predictor.maps.families)
    return int(max(max_bytes - n_other, 0) // (4 * max(n_cells, 1)))


def portable_model(predictor: TablePredictor, columns: NDArray[np.intp]) -> dict:
    """Return the tables of some scores and all that is needed to look rows up in them.

    Parameters
    ----------
    predictor : TablePredictor
    columns : ndarray of int
        Scores to keep.
    """
    n_values = sum(len(tables) for tables in predictor.tables) * columns.size
    kind = "f8" if 8 * n_values <= _EXACT_BYTES else "f4"
    parts = [
        {**_portable_maps(maps), "tables": pack(tables[:, columns], kind)}
        for maps, tables in zip(predictor.maps.families, predictor.tables, strict=True)
    ]
    return {"intercept": predictor.intercept[columns].tolist(), "parts": parts}


@singledispatch
def _portable_maps(maps: Maps) -> dict:
    """Return the maps of a family, for the page."""
    raise TypeError(f"The page has no {type(maps).__name__}.")


@_portable_maps.register
def _(maps: StumpMaps | CategoryMaps) -> dict:
    return {
        "kind": "stumps",
        "features": pack(maps.features, "i4"),
        "offsets": pack(maps.edges.offsets, "i4"),
        "thresholds": pack(maps.edges.thresholds, "f4"),
    }


@_portable_maps.register
def _(maps: FernMaps) -> dict:
    return {
        "kind": "ferns",
        "features": pack(maps.features, "i4"),
        "thresholds": pack(maps.thresholds, "f4"),
        "offsets": pack(maps.offsets, "i4"),
        "factors": pack(maps.factors, "u8"),
        "bits": pack(np.log2(maps.n_raw), "i4"),
        "numbers": pack(maps.numbers, "u2"),
        "cellOffsets": pack(maps.cell_offsets, "i4"),
        **_portable_sets(maps),
    }


def _portable_sets(maps: FernMaps) -> dict:
    """Return where the set of levels of each stump begins, from 1, and the members of all."""
    if maps.sets is None:
        return {}
    return {
        "sets": pack(maps.sets.starts + 1, "i4"),
        "members": pack(maps.sets.members, "u1"),
        "levelCounts": pack(maps.sets.n_levels, "i4"),
    }


@_portable_maps.register
def _(maps: ProjectionMaps) -> dict:
    directions = maps.directions
    dense = directions if isinstance(directions, np.ndarray) else directions.toarray()
    return {
        "kind": "projections",
        "directions": pack(dense.T, "f8"),
        "centre": pack(maps.centre, "f8"),
        "scale": pack(maps.scale, "f8"),
        "stumps": _portable_maps(maps.stumps),
    }


@singledispatch
def _bytes_besides_tables(maps: Maps) -> float:
    """Return the size of a family on the page, infinite if it cannot be there."""
    raise TypeError(f"The page has no {type(maps).__name__}.")


@_bytes_besides_tables.register
def _(maps: StumpMaps | CategoryMaps) -> float:
    return 4 * maps.edges.thresholds.size


@_bytes_besides_tables.register
def _(maps: FernMaps) -> float:
    sets = 0 if maps.sets is None else 4 * maps.features.size + maps.sets.members.size
    return 8 * maps.features.size + 2 * maps.numbers.size + sets


@_bytes_besides_tables.register
def _(maps: ProjectionMaps) -> float:
    # The page has no chi2 map.
    return np.inf if maps.chi2_steps else 8 * int(np.prod(maps.directions.shape)) + 4 * maps.n_maps

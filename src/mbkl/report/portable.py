"""A model as JSON, small enough for a page that computes scores by itself."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import NDArray

from mbkl.io.exports import plain_arrays
from mbkl.maps.families import Maps
from mbkl.maps.projections import ProjectionMaps
from mbkl.predictor import TablePredictor

# Names of JavaScript's arrays.
_ARRAYS = {
    "f8": "Float64Array",
    "f4": "Float32Array",
    "u8": "BigUint64Array",
    "u4": "Uint32Array",
    "u2": "Uint16Array",
    "u1": "Uint8Array",
}
# Up to here tables keep all their digits.
_EXACT_BYTES = 3_000_000


def pack(values, kind: str | None = None) -> dict[str, str]:
    """Return an array as text: the name of JavaScript's array and its bytes.

    Examples
    --------
    >>> pack([1.0], "f4")
    {'array': 'Float32Array', 'bytes': 'AACAPw=='}
    """
    kind = kind or values.dtype.str[1:]
    data = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"array": _ARRAYS[kind], "bytes": base64.b64encode(data).decode("ascii")}


def columns_that_fit(predictor: TablePredictor, max_bytes: float) -> int:
    """Return for how many scores the tables fit into so many bytes, in short form."""
    if any(getattr(maps, "chi2_steps", 0) for maps in predictor.maps.families):
        return 0  # the page has no chi2 map
    n_cells = sum(len(tables) for tables in predictor.tables)
    arrays = [array for maps in predictor.maps.families for array in _arrays(maps).values()]
    n_other = sum(array.nbytes for array in arrays)
    return int(max(max_bytes - n_other, 0) // (4 * max(n_cells, 1)))


def portable_model(predictor: TablePredictor, columns: NDArray[np.intp]) -> dict:
    """Return the tables of some scores and all that is needed to look rows up in them."""
    n_values = sum(len(tables) for tables in predictor.tables) * columns.size
    kind = "f8" if 8 * n_values <= _EXACT_BYTES else "f4"
    parts = [
        {
            "kind": type(maps).__name__,
            **{name: pack(array) for name, array in _arrays(maps).items()},
            "tables": pack(tables[:, columns], kind),
        }
        for maps, tables in predictor.families
    ]
    return {"intercept": predictor.intercept[columns].tolist(), "parts": parts}


def _arrays(maps: Maps) -> dict[str, NDArray]:
    """Return the arrays of a family; directions are dense, one after the other."""
    if not isinstance(maps, ProjectionMaps):
        return plain_arrays(maps)
    directions = maps.directions
    dense = directions if isinstance(directions, np.ndarray) else directions.toarray()
    return {**plain_arrays(maps), "directions": dense.T}

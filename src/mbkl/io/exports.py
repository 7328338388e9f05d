"""What all exports share: checks, arrays of maps, columns of frames; and models as JSON."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.explain.explanations import check_model, feature_names_of
from mbkl.io.container import compact
from mbkl.io.map_state import pack_ferns
from mbkl.kernel_predictor import KernelPredictor
from mbkl.maps.categories import CategoryMaps
from mbkl.maps.families import Maps
from mbkl.maps.ferns import FernMaps
from mbkl.maps.projections import ProjectionMaps
from mbkl.maps.stumps import StumpMaps
from mbkl.predictor import TablePredictor


def check_exportable(model: Any) -> None:
    """Raise an error unless the model is a fitted predictor whose maps can be exported."""
    check_model(model)
    if has_chi2_map(model.predictor_):
        raise ValueError("Projections of the chi2 map cannot be exported; use input_map=None.")


def has_chi2_map(predictor: TablePredictor) -> bool:
    return any(getattr(maps, "chi2_steps", 0) for maps in predictor.maps.families)


@singledispatch
def plain_arrays(maps: Any) -> dict[str, NDArray]:
    """Return the arrays by which another program finds the cells of rows."""
    return {"features": compact(maps.features), **_edges(maps)}


@plain_arrays.register
def _(maps: FernMaps) -> dict[str, NDArray]:
    arrays = pack_ferns(maps)
    arrays |= {"n_cells": compact(np.diff(maps.cell_offsets)), "numbers": maps.numbers}
    if maps.sets is None:
        return arrays
    # "sets" has the first bit of each stump's set in "members", plus 1; 0 means no set.
    return arrays | {
        "members": np.packbits(maps.sets.members, bitorder="little"),
        "n_levels": compact(maps.sets.n_levels),
        "sets": compact(maps.sets.starts + 1),
    }


@plain_arrays.register
def _(maps: ProjectionMaps) -> dict[str, NDArray]:
    """Return all arrays but the directions, which each export stores in its way."""
    return {"centre": maps.centre, "scale": maps.scale, **_edges(maps.stumps)}


def _edges(maps: StumpMaps | CategoryMaps) -> dict[str, NDArray]:
    thresholds = maps.edges.thresholds.astype(np.float32)
    return {"offsets": compact(maps.edges.offsets), "thresholds": thresholds}


@dataclass(frozen=True)
class Column:
    """A column of a frame, which is one feature; `levels` is None unless it is a category."""

    name: str
    levels: tuple | None

    @property
    def is_text(self) -> bool:
        """Whether the values are text; levels of a category may also be numbers or booleans."""
        return self.levels is not None and all(isinstance(level, str) for level in self.levels)


def columns_of_model(
    model: KernelPredictor, names: Sequence[str] | None = None
) -> list[Column] | None:
    """Return the columns that a model takes, with the given names or those it was fitted with.

    None means a matrix of numbers: no names are given, and the model has no categories.
    """
    if names is None:
        if model.n_levels is None:
            return None
        names = feature_names_of(model)
    if len(names) != model.n_features_in_:
        raise ValueError(
            f"There are {len(names)} columns, but the model has {model.n_features_in_} features."
        )
    if len(set(names)) < len(names) or not all(isinstance(each, str) and each for each in names):
        raise ValueError(f"columns must be different texts, none of them empty; got {names}.")
    pairs = zip(names, model.levels_, strict=True)
    return [Column(name, None if levels is None else tuple(levels)) for name, levels in pairs]


# ---------------------------------------------------------------- JSON for a page

# Typed arrays of JavaScript.
_ARRAYS = {
    "f8": "Float64Array",
    "f4": "Float32Array",
    "u8": "BigUint64Array",
    "u4": "Uint32Array",
    "u2": "Uint16Array",
    "u1": "Uint8Array",
}
# Larger tables are rounded to float32.
_EXACT_BYTES = 3_000_000


def pack(values, kind: str | None = None) -> dict[str, str]:
    """Return an array for JSON: the name of its JavaScript array, and its bytes in base64.

    >>> pack([1.0], "f4")
    {'array': 'Float32Array', 'bytes': 'AACAPw=='}
    """
    kind = kind or values.dtype.str[1:]
    data = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"array": _ARRAYS[kind], "bytes": base64.b64encode(data).decode("ascii")}


def portable_model(predictor: TablePredictor, max_bytes: float) -> dict | None:
    """Return a model as JSON for a page; None if it is too large or has a chi2 map."""
    if has_chi2_map(predictor):
        return None
    arrays = [_arrays(maps) for maps in predictor.maps.families]
    n_values = sum(tables.size for tables in predictor.tables)
    n_other = sum(array.nbytes for by_name in arrays for array in by_name.values())
    if n_other + 4 * n_values > max_bytes:
        return None
    kind = "f8" if 8 * n_values <= _EXACT_BYTES else "f4"
    parts = [
        {
            "kind": type(maps).__name__,
            **{name: pack(array) for name, array in by_name.items()},
            "tables": pack(tables, kind),
        }
        for (maps, tables), by_name in zip(predictor.families, arrays, strict=True)
    ]
    return {"intercept": predictor.intercept.tolist(), "parts": parts}


def _arrays(maps: Maps) -> dict[str, NDArray]:
    """Return the arrays of a family; directions are the rows of a dense array."""
    if not isinstance(maps, ProjectionMaps):
        return plain_arrays(maps)
    return {**plain_arrays(maps), "directions": sparse.csc_array(maps.directions).toarray().T}

"""What explanations use of the rooms below: nothing else here imports from them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import choose_loops
from mbkl.engine.codes import DenseCodes
from mbkl.engine.limits import SMALL
from mbkl.engine.rows import ArrayRows, first_by_hash
from mbkl.engine.twins import TWINS, as_float32, just_above, level_cells
from mbkl.maps.categories import CategoryMaps, level_edges
from mbkl.maps.families import Maps, MapSet
from mbkl.maps.ferns import FernMaps, Ferns
from mbkl.maps.projections import ProjectionMaps
from mbkl.maps.stumps import StumpMaps
from mbkl.predictor import TablePredictor, rows_to_predict
from mbkl.solvers.blas import one_blas_thread

__all__ = [
    "SMALL",
    "TWINS",
    "ArrayRows",
    "CategoryMaps",
    "FernMaps",
    "Ferns",
    "MapSet",
    "Maps",
    "ProjectionMaps",
    "StumpMaps",
    "TablePredictor",
    "as_float32",
    "choose_loops",
    "codes_of",
    "compiled",
    "families",
    "first_by_hash",
    "just_above",
    "level_cells",
    "level_edges",
    "one_blas_thread",
    "weights_by_family",
]


def families(predictor: TablePredictor) -> Iterator[tuple[Maps, NDArray[np.float64]]]:
    """Yield the maps of each family of a model, and their tables."""
    yield from zip(predictor.maps.families, predictor.tables, strict=True)


def weights_by_family(
    maps: MapSet, theta: NDArray[np.float64]
) -> Iterator[tuple[Maps, NDArray[np.float64]]]:
    """Yield the maps of each family, and what is theirs of one number a map."""
    yield from zip(maps.families, maps.split(theta), strict=True)


def codes_of(maps: Maps, X, n_jobs: int | None = None) -> DenseCodes:
    """Return the cell of each row in each group."""
    return maps.codes(rows_to_predict(X, MapSet((maps,)), n_jobs)).dense()


def compiled(function):
    """Compile a loop on its first use, as those of the engine."""
    from mbkl.engine.loops import jit

    return jit(function)

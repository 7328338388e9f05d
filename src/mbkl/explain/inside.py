"""What explanations use of the rooms below: nothing else here imports from them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import SMALL, choose_engine
from mbkl.engine.codes import DenseCodes, densify
from mbkl.engine.numpy_engine import NumpyEngine, as_float32, just_above
from mbkl.maps.families import Maps, MapSet
from mbkl.maps.ferns import FernMaps, Ferns
from mbkl.maps.projections import ProjectionMaps
from mbkl.maps.sample import first_by_hash
from mbkl.maps.stumps import StumpMaps
from mbkl.predictor import TablePredictor
from mbkl.solvers.blas import one_blas_thread

__all__ = [
    "SMALL",
    "DenseCodes",
    "FernMaps",
    "Ferns",
    "MapSet",
    "Maps",
    "NumpyEngine",
    "ProjectionMaps",
    "StumpMaps",
    "TablePredictor",
    "as_float32",
    "choose_engine",
    "codes_of",
    "compiled",
    "families",
    "first_by_hash",
    "just_above",
    "numba_engine",
    "one_blas_thread",
    "weights_by_family",
]


def families(predictor: TablePredictor) -> Iterator[tuple[Maps, NDArray[np.float64]]]:
    """Yield the maps of each family of a model, and their tables."""
    yield from zip(predictor.maps.parts, predictor.tables, strict=True)


def weights_by_family(
    maps: MapSet, theta: NDArray[np.float64]
) -> Iterator[tuple[Maps, NDArray[np.float64]]]:
    """Yield the maps of each family, and what is theirs of one number a map."""
    bounds = np.cumsum([own.n_maps for own in maps.parts])[:-1]
    yield from zip(maps.parts, np.split(theta, bounds), strict=True)


def codes_of(maps: Maps, X, n_jobs: int | None = None) -> DenseCodes:
    """Return the cell of each row in each group."""
    return densify(maps.codes(X, choose_engine(maps.n_groups * X.shape[0], n_jobs)))


def numba_engine(n_threads: int):
    """Return the engine whose threads run compiled loops."""
    from mbkl.engine.numba_engine import NumbaEngine

    return NumbaEngine(n_threads)


def compiled(function):
    """Compile a loop on its first use, as those of the engine."""
    from mbkl.engine.kernels import _jit

    return _jit(function)

"""How much memory a fit takes, and what to do when that is too much."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.engine.stream_engine import StreamEngine
from mbkl.learn.classifier_weights import FEW_ROWS_GRAM, ROWS_OF_A_PART
from mbkl.learn.limit_kernel import Choice
from mbkl.maps.families import Plan, families_of, plans_of, plans_of_choice
from mbkl.maps.ferns import Ferns
from mbkl.maps.projections import Projections

if TYPE_CHECKING:
    from mbkl.base import BinaryMapsEstimator

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

# All of these are measured, and checked in tests/test_memory.py.
# Bytes a row: hashes, sorting and weights; scores, supports and curvatures of each problem.
_ROW_BYTES, _ROW_BYTES_A_PROBLEM = 60, 70
# Copies of the codes at the worst moment: as they are, sorted, bundled (stumps alone), and
# those of the rows inside the margin.
_COPIES_OF_STUMPS, _COPIES_OF_FERNS = 2.8, 2.0
# Vectors of the solver, with a number for each cell and problem.
_CELL_BYTES, _CELLS_OF_A_FERN = 80, 200
# Kernel matrices of a part of the rows, beside one for each problem that is being solved.
_MATRICES = 1.5
# A pass over a file holds two blocks of it, what they are made of, and what is made of them.
_BLOCK_BYTES, _BLOCKS = 4_000_000, 10
_SAFETY = 1.1


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a fit takes beyond X, about.

    Parameters
    ----------
    in_memory : int
        With all codes in memory.
    streamed : int
        With the codes in files.
    on_disk : int
        Size of these files.
    """

    in_memory: int
    streamed: int
    on_disk: int


def estimate_memory(
    model: BinaryMapsEstimator, n_rows: int, n_features: int, n_classes: int = 2
) -> MemoryEstimate:
    """Return how much memory a fit of the model would take, beyond X itself.

    Parameters
    ----------
    model : MBKLClassifier or MBKLClassifierCV
        Its maps and their number matter, and whether it is fitted does not.
    n_rows, n_features : int
        Shape of X.
    n_classes : int, default=2

    Returns
    -------
    estimate : MemoryEstimate

    Examples
    --------
    >>> from mbkl import MBKLClassifier, estimate_memory
    >>> estimate = estimate_memory(MBKLClassifier(maps="stumps"), 1_000_000, 500)
    >>> estimate.in_memory > 1_000_000_000 > estimate.streamed
    True
    """
    plans = _plans(model, (n_rows, n_features))
    n_problems = 1 if n_classes == 2 else n_classes
    codes = n_rows * sum(_copies(plan) * _groups(plan, n_features) for plan in plans)
    cells = sum(_cells(plan, n_features) for plan in plans)
    rest = n_rows * (_ROW_BYTES + _ROW_BYTES_A_PROBLEM * n_problems)
    rest += cells * _CELL_BYTES * n_problems
    if model.loss == "squared_hinge" and cells > FEW_ROWS_GRAM:
        at_once = min(effective_n_jobs(-1 if model.n_jobs is None else model.n_jobs), n_problems)
        rest += (_MATRICES + at_once) * 8 * min(n_rows, ROWS_OF_A_PART) ** 2
    return MemoryEstimate(
        in_memory=int(_SAFETY * (codes + rest)),
        streamed=int(_SAFETY * (min(_BLOCKS * _BLOCK_BYTES, codes) + rest)),
        on_disk=int(codes),
    )


def _plans(model, shape: tuple[int, int]) -> list[Plan]:
    n_maps = None if model.n_maps == "auto" else int(model.n_maps)
    if model.maps != "auto":
        return plans_of(families_of(model.maps), n_maps, shape)
    # Only the number of maps matters here, and that is not chosen.
    any_choice = Choice(np.ones(shape[1]), 1.0, 0.5, 1.0, 0.0)
    return plans_of_choice(any_choice, n_maps, shape, model._FERN_FACTOR)


def _copies(plan: Plan) -> float:
    return _COPIES_OF_FERNS if isinstance(plan.family, Ferns) else _COPIES_OF_STUMPS


def _groups(plan: Plan, n_features: int) -> int:
    """Return the codes of a row, each of a byte."""
    return plan.n_maps if isinstance(plan.family, Ferns) else n_features


def _cells(plan: Plan, n_features: int) -> int:
    is_fern = isinstance(plan.family, Ferns)
    return plan.n_maps * (_CELLS_OF_A_FERN if is_fern else 1) + n_features


def parse_bytes(size: int | float | str) -> int:
    """Return a number of bytes.

    Examples
    --------
    >>> parse_bytes("2GB"), parse_bytes("500 MB"), parse_bytes(1e6)
    (2000000000, 500000000, 1000000)
    """
    if not isinstance(size, str):
        return int(size)
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*([kmgt]?)b?\s*", size.lower())
    if found is not None and float(found[1]) > 0:
        return int(float(found[1]) * _UNITS[found[2]])
    raise ValueError(f"max_memory must be a number of bytes or such as '2GB', got {size!r}.")


def engine_within(
    engine: NumpyEngine, estimate: MemoryEstimate, limit: int | None, X, plans: list[Plan], folder
) -> NumpyEngine:
    """Return the engine, or one that reads codes from files where memory is too small.

    Parameters
    ----------
    engine : NumpyEngine or NumbaEngine
    estimate : MemoryEstimate
    limit : int or None
        Largest number of bytes; None if X itself is in a file, and codes have to be.
    X : ndarray or BlockRows
    plans : list of Plan
    folder : path or None
        For the files; None means that of the system.
    """
    fits = limit is None or estimate.in_memory <= limit
    if X.shape[0] <= FEW_ROWS_GRAM or (fits and not hasattr(X, "blocks")):
        if not fits:
            raise ValueError(
                f"max_memory={limit:,} bytes is too little: about {estimate.in_memory:,} are "
                "needed. Allow more, or lower n_maps."
            )
        return engine
    if sparse.issparse(X) or any(isinstance(plan.family, Projections) for plan in plans):
        raise ValueError(
            f"max_memory={limit} is too little for codes in memory, for which about "
            f"{estimate.in_memory:,} bytes are needed, and sparse rows and projections cannot have "
            "theirs in files."
        )
    if limit is not None and estimate.streamed > limit:
        raise ValueError(
            f"max_memory={limit:,} bytes is too little: about {estimate.streamed:,} are needed "
            f"with codes in files, {estimate.in_memory:,} without. Allow more, or lower n_maps."
        )
    place = Path(gettempdir() if folder is None else folder)
    if not place.is_dir():
        raise ValueError(f"cache_folder={str(place)!r} is not a folder; create it first.")
    free = shutil.disk_usage(place).free
    if free < estimate.on_disk:
        raise ValueError(
            f"cache_folder={str(place)!r} has room for {free:,} bytes, but codes take about "
            f"{estimate.on_disk:,}; name another folder."
        )
    # A block is one of X, or of the codes of the largest family.
    sizes = [_groups(plan, X.shape[1]) for plan in plans]
    bytes_a_row = max(X.dtype.itemsize * X.shape[1], *sizes)
    return StreamEngine(engine, place, max(_BLOCK_BYTES // bytes_a_row, 64))

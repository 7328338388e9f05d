"""How much memory a fit takes, and where codes go if that is too much."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

from joblib import effective_n_jobs

from mbkl.engine import limits
from mbkl.engine.files import FileRows
from mbkl.engine.rows import Rows
from mbkl.engine.twins import Twins
from mbkl.maps.families import Plan
from mbkl.maps.stumps import rows_of_thresholds
from mbkl.solvers.choose import may_use_gram
from mbkl.solvers.problem import LOSSES

if TYPE_CHECKING:
    from mbkl.estimator import BinaryMapsEstimator

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

# All of these are checked in tests/test_memory.py.
# Bytes a row: hashes, sorting and weights; and, for each problem, scores, supports and curvatures.
_ROW_BYTES, _ROW_BYTES_A_PROBLEM = 60, 70
# Bytes of the solver's vectors for each cell and problem.
_CELL_BYTES = 80
# Kernel matrices of the rows, in addition to one for each problem that is being solved.
_MATRICES = 1.5
# Bytes of a block of a file; a pass holds two blocks with their input and output.
_BLOCK_BYTES, _BLOCKS = 4_000_000, 10
_SAFETY = 1.1
# Growth: bytes a row for keys, order and draws; and, for each problem, scores and residuals.
_GROWTH_BYTES, _GROWTH_BYTES_A_PROBLEM = 120, 30
# Bytes of a value from which thresholds are taken, with its copies.
_THRESHOLD_BYTES = 12
# Additional bytes of a value while its column is sorted, one column in each thread.
_SORTING_BYTES = 40


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a fit takes beyond X, about."""

    in_memory: int  # with all codes in memory
    streamed: int  # with the codes in files
    on_disk: int  # size of these files


def estimate_memory(
    model: BinaryMapsEstimator, n_rows: int, n_features: int, n_classes: int = 2
) -> MemoryEstimate:
    """Return how much memory a fit of the model would take, beyond X itself.

    Parameters
    ----------
    model : classifier or regressor
        Its maps and their number matter, and whether it is fitted does not.
    n_rows, n_features : int
        Shape of X.
    n_classes : int, default=2
        For a regressor, the number of targets plus one.

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
    has_classes = model.loss in LOSSES
    n_problems = n_classes if n_classes > 2 and has_classes else n_classes - 1
    return _estimate_problems(model, (n_rows, n_features), n_problems)


def _estimate_problems(
    model: BinaryMapsEstimator, shape: tuple[int, int], n_problems: int
) -> MemoryEstimate:
    n_rows, n_features = shape
    n_threads = effective_n_jobs(-1 if model.n_jobs is None else model.n_jobs)
    if model.grows(shape):
        codes: float = n_rows * n_features
        rest: float = n_rows * (_GROWTH_BYTES + _GROWTH_BYTES_A_PROBLEM * n_problems)
        bytes_a_row = _THRESHOLD_BYTES * n_features + _SORTING_BYTES * min(n_threads, n_features)
        rest += bytes_a_row * min(n_rows, rows_of_thresholds(n_features))
    else:
        plans = model.plans(shape)
        groups = sum(plan.family.copies_of_codes * plan.n_groups(n_features) for plan in plans)
        codes = n_rows * groups
        cells = sum(plan.n_maps * plan.family.cells_of_a_map + n_features for plan in plans)
        rest = n_rows * (_ROW_BYTES + _ROW_BYTES_A_PROBLEM * n_problems)
        rest += cells * _CELL_BYTES * n_problems
        if model.loss not in ("hinge", "logistic") and may_use_gram(n_rows, cells):
            n_matrices = _MATRICES + min(n_threads, n_problems)
            rest += n_matrices * 8 * n_rows**2
    return MemoryEstimate(
        in_memory=int(_SAFETY * (codes + rest)),
        streamed=int(_SAFETY * (min(_BLOCKS * _BLOCK_BYTES, codes) + rest)),
        on_disk=int(codes),
    )


def parse_bytes(size: int | float | str) -> int:
    """Return a number of bytes.

    >>> parse_bytes("2GB"), parse_bytes("500 MB"), parse_bytes(1e6)
    (2000000000, 500000000, 1000000)
    """
    if not isinstance(size, str):
        return int(size)
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*([kmgt]?)b?\s*", size.lower())
    if found is not None and float(found[1]) > 0:
        return int(float(found[1]) * _UNITS[found[2]])
    raise ValueError(f"max_memory must be a number of bytes or such as '2GB', got {size!r}.")


def rows_within(
    model: BinaryMapsEstimator, rows: Rows, plans: list[Plan], n_problems: int, loops: Twins
) -> Rows:
    """Return rows with codes in memory, or in files if the model's `max_memory` is too small."""
    limit = None if model.max_memory is None else parse_bytes(model.max_memory)
    estimate = _estimate_problems(model, rows.shape, n_problems)
    needed = estimate.in_memory + (0 if rows.in_files else rows.bytes_to_copy)
    fits = limit is None or needed <= limit
    is_small = rows.shape[0] <= limits.FEW_ROWS_GRAM
    if fits and (is_small or not rows.in_files):
        return replace(rows.in_memory(), loops=loops)
    if is_small:
        raise ValueError(
            f"max_memory={limit:,} bytes is too little: about {needed:,} are needed. "
            "Allow more, or lower n_maps."
        )
    if not rows.reads_blocks or not all(plan.family.reads_blocks for plan in plans):
        raise ValueError(
            f"max_memory={limit} is too little for codes in memory, for which about "
            f"{needed:,} bytes are needed: sparse rows and projections cannot have theirs "
            "in files. Allow more, or use maps='auto'."
        )
    if limit is not None and estimate.streamed > limit:
        raise ValueError(
            f"max_memory={limit:,} bytes is too little: about {estimate.streamed:,} are needed "
            f"with codes in files, {needed:,} without. Allow more, or lower n_maps."
        )
    folder = _folder_with_room(model.cache_folder, estimate.on_disk)
    # A block is one of X, or of the codes of the largest family.
    sizes = [plan.n_groups(rows.shape[1]) for plan in plans]
    bytes_a_row = max(rows.dtype.itemsize * rows.shape[1], *sizes)
    return FileRows(rows, loops, folder, max(_BLOCK_BYTES // bytes_a_row, 64))


def _folder_with_room(cache_folder, n_bytes: int) -> Path:
    """Return the folder for files of codes, the temporary one of the system for None."""
    folder = Path(gettempdir() if cache_folder is None else cache_folder)
    if not folder.is_dir():
        raise ValueError(f"cache_folder={str(folder)!r} is not a folder; create it first.")
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise ValueError(
            f"cache_folder={str(folder)!r} has room for {free:,} bytes, but codes take about "
            f"{n_bytes:,}; name another folder."
        )
    return folder

"""Synthetic rows, in memory or in a file, and a digest by which to compare models."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_ROWS_AT_ONCE = 10_000
# The default maps; a given cost prevents that ferns are grown on many rows.
DRAWN = {"maps": "auto", "C": 1.0}


@dataclass(frozen=True)
class Shape:
    """Size of a problem.

    Parameters
    ----------
    n_rows, n_features, n_classes : int
    """

    n_rows: int
    n_features: int
    n_classes: int = 2

    def __str__(self) -> str:
        classes = "" if self.n_classes == 2 else f", {self.n_classes} classes"
        return f"{self.n_rows:,} x {self.n_features:,}{classes}"


def rows_of(shape: Shape) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Draw rows whose class depends on one feature, and on two that interact."""
    X = np.empty((shape.n_rows, shape.n_features), dtype=np.float32)
    return X, _fill(X, shape)


def write_rows(folder: Path, shape: Shape) -> None:
    """Write the same rows to the files X.npy and y.npy, block by block."""
    size = (shape.n_rows, shape.n_features)
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=size)
    np.save(folder / "y.npy", _fill(X, shape))
    X.flush()


def _fill(X: NDArray[np.float32], shape: Shape) -> NDArray[np.int64]:
    generator = np.random.default_rng(0)
    y = np.empty(shape.n_rows, dtype=np.int64)
    for start in range(0, shape.n_rows, _ROWS_AT_ONCE):
        rows = slice(start, min(start + _ROWS_AT_ONCE, shape.n_rows))
        block = generator.random((rows.stop - start, shape.n_features), dtype=np.float32)
        noise = generator.normal(scale=0.2, size=len(block))
        score = block[:, 0] + (block[:, 1] > 0.5) * block[:, 2] + noise
        X[rows] = block
        y[rows] = np.clip(score * shape.n_classes / 2, 0, shape.n_classes - 1)
    return y


def digest(model) -> str:
    """Return a hash of all learned arrays of a fitted model."""
    bits = hashlib.sha256()
    for array in (model.coef_, model.intercept_, model.theta_, model.objective_, model.gap_):
        bits.update(np.ascontiguousarray(array).tobytes())
    return bits.hexdigest()

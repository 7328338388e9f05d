"""A straight line in the features as a table model, which maps need not learn.

The slope of a feature becomes many stumps, whose jumps are as large as the distances between their
cells. So all code that reads, writes and explains models treats a line as it does other maps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.codes import Codes
from mbkl.engine.rows import Rows, without_duplicates
from mbkl.maps.choose import Slopes
from mbkl.maps.families import MapSet, Plan
from mbkl.maps.stumps import StumpMaps, Stumps, rows_of_quantiles, values_of

# Most thresholds of a feature, whose codes are bytes, and most stumps of a line.
_THRESHOLDS, _MOST_STUMPS = 254, 200_000
_FAMILY = Stumps(thresholds="mixed", draw="stratified")


@dataclass(frozen=True)
class Line:
    """A straight line without intercept, approximated by stumps."""

    maps: StumpMaps
    jumps: NDArray[np.float64]  # (n_maps, n_columns): weights of the stumps
    left: NDArray[np.float64]  # (n_columns,): share of the variance that it does not explain

    @property
    def tables(self) -> NDArray[np.float64]:
        """The tables of the stumps, of shape (n_cells, n_columns)."""
        (tables,) = MapSet((self.maps,)).tables(self.jumps)
        return tables

    @property
    def theta(self) -> NDArray[np.float64]:
        """Kernel weights of the stumps, squared jumps as for grown ferns, that sum to one."""
        squares = (self.jumps**2).sum(axis=1)
        return squares / squares.sum() if squares.any() else squares


def plan_of_line(shape: tuple[int, int]) -> Plan:
    """Return the plan of the stumps of a line on rows of that shape."""
    return Plan(_FAMILY, min(_THRESHOLDS * shape[1], _MOST_STUMPS))


def line_of(
    rows: Rows, weights: Any, slopes: Slopes, seed: int, n_levels=None
) -> tuple[Line, Codes]:
    """Return the line as stumps, and the codes of the rows; see `Stumps.fit_codes`."""
    n_maps = plan_of_line(rows.shape).n_maps
    maps, codes = _FAMILY.fit_codes(rows, weights, n_maps, seed, n_levels)
    X, mass = rows_of_quantiles(rows, weights, n_maps, seed)
    columns = without_duplicates(sparse.csc_array(X)) if sparse.issparse(X) else X
    steps = [np.empty(0)]
    thresholds = np.split(maps.edges.thresholds, maps.edges.offsets[1:-1])
    for feature, feature_thresholds in zip(maps.features, thresholds, strict=False):
        values, _ = values_of(columns, feature, mass)
        steps.append(_steps(feature_thresholds, values, slopes.centre[feature]))
    # A stump adds its jump on the right side and subtracts it on the left.
    halves = np.concatenate(steps) / 2.0
    jumps = halves[:, None] * slopes.values[maps.stump_features]
    return Line(maps, jumps, np.ones(jumps.shape[1])), codes


def _steps(thresholds, values, centre: float) -> NDArray[np.float64]:
    """Return the distances between the middles of neighbouring cells.

    The middle of a cell is halfway between its smallest and largest value. Missing values have the
    first cell, whose middle is the centre.

    >>> _steps(np.array([-np.inf, 0.5, 3.0]), np.array([0.0, 1.0, 2.0, 5.0]), 2.0).tolist()
    [-2.0, 1.5, 3.5]
    """
    finite = thresholds[np.isfinite(thresholds)]
    distinct = np.unique(values.astype(np.float64))
    if not distinct.size:
        return np.zeros(thresholds.size)
    inside = np.clip(finite, distinct[0], distinct[-1])
    edges = np.concatenate([distinct[:1], inside, distinct[-1:]])
    ends = np.searchsorted(distinct, np.append(finite, np.inf), side="right")
    starts = np.append(0, ends[:-1])
    # Cells without values reach from threshold to threshold.
    is_empty = starts == ends
    first = np.where(is_empty, edges[:-1], distinct[np.minimum(starts, distinct.size - 1)])
    last = np.where(is_empty, edges[1:], distinct[ends - 1])
    middles = (first + last) / 2.0
    return np.diff(middles if finite.size == thresholds.size else [centre, *middles])

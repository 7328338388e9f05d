"""What all families have in common, and thresholds: what values are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import offsets_of, smallest_code_dtype
from mbkl.engine.codes import Codes
from mbkl.engine.rows import Rows


class Maps:
    """What maps of all families have; of most, nothing but cells of groups."""

    n_groups: Any
    is_ordered = True  # whether the cells of a group are places between thresholds

    @property
    def group_features(self) -> NDArray[np.intp]:
        """Input feature of each group, -1 where it has several."""
        return np.full(self.n_groups, -1, dtype=np.intp)

    @property
    def stump_features(self) -> NDArray[np.intp]:
        """Input feature of each stump."""
        return np.empty(0, np.intp)

    @property
    def stump_thresholds(self) -> NDArray[np.float64]:
        """Threshold of each stump."""
        return np.empty(0)

    @property
    def ferns(self) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """Features and thresholds of the stumps of each fern."""
        return []

    def n_codes(self, n_rows: int) -> int:
        """Return how many codes of so many rows are read more than a few times."""
        return n_rows * self.n_groups


class BinnedMaps(Maps):
    """Maps of single features, whose cells are places between thresholds."""

    features: NDArray[np.intp]  # (n_groups,): input feature of each group
    edges: Any

    @property
    def n_groups(self) -> int:
        return self.features.size

    @property
    def group_features(self) -> NDArray[np.intp]:
        return self.features

    def codes(self, rows: Rows) -> Codes:
        """Return the cell of each group that each row falls in."""
        return rows.bin(self.features, self.edges)

    def score(self, rows: Any, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the table entries of each row."""
        return rows.score(self.features, self.edges, tables)


@dataclass(frozen=True)
class Guide:
    """How many thresholds lie before each of the equal parts of a group's range."""

    low: NDArray[np.float64]
    scale: NDArray[np.float64]
    counts: NDArray[np.int32]
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class BinEdges:
    """Sorted thresholds of every group."""

    # (n_maps,): increasing within a group; -inf parts missing values from all others
    thresholds: NDArray[np.float64]
    # (n_groups + 1,): thresholds of group g are offsets[g] to offsets[g + 1] - 1
    offsets: NDArray[np.int64]

    @cached_property
    def cell_offsets(self) -> NDArray[np.int64]:
        """First cell of each group: one cell more than thresholds."""
        return self.offsets + np.arange(self.offsets.size)

    @cached_property
    def code_dtype(self) -> np.dtype:
        return smallest_code_dtype(int(np.diff(self.offsets).max(initial=0)) + 1)

    @cached_property
    def guide(self) -> Guide:
        """Short cut for the compiled search, see the loop `bin_dense`."""
        n_groups = self.offsets.size - 1
        sizes = np.diff(self.offsets)
        group = np.repeat(np.arange(n_groups), sizes)
        finite = np.isfinite(self.thresholds)
        low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
        np.minimum.at(low, group[finite], self.thresholds[finite])
        np.maximum.at(high, group[finite], self.thresholds[finite])
        low = np.where(np.isfinite(low), low, 0.0)
        # Four parts per threshold leave one comparison or none for most values;
        # more only cost cache.
        n_parts = np.maximum(4 * sizes, 1)
        with np.errstate(divide="ignore", over="ignore"):
            scale = np.where(high > low, n_parts / (high - low), 0.0)
        scale = np.where(np.isfinite(scale), scale, 0.0)
        position = (self.thresholds[finite] - low[group[finite]]) * scale[group[finite]]
        part = np.minimum(position, n_parts[group[finite]] - 1).astype(np.int64)
        offsets = offsets_of(n_parts + 1)
        counts = np.zeros(int(offsets[-1]), dtype=np.int32)
        np.add.at(counts, offsets[group[finite]] + part + 1, 1)
        np.add.at(counts, offsets[group[~finite]], 1)
        for g in range(n_groups):
            block = counts[offsets[g] : offsets[g + 1]]
            np.cumsum(block, out=block)
        return Guide(low, scale, counts, offsets)

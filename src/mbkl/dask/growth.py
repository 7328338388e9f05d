"""Ferns grown on rows that stay on the workers: ferns go to them, sums and samples come back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mbkl.dask.codes import RemoteCodes
from mbkl.dask.crew import Node
from mbkl.dask.rows import RemoteRows
from mbkl.dask.store import ask, sample_of
from mbkl.maps.growing_rows import (
    Chosen,
    Draft,
    GrowingRows,
    GrowthSample,
    growing_rows,
    table_of,
)
from mbkl.maps.objectives import Objective


class RemoteGrowingRows:
    """What `GrowingRows` are, put together from those of all stores."""

    def __init__(self, codes, objective: Objective, y, weights, keys, seed: int) -> None:
        self._crew, self._loops, self._objective, self._y = codes.crew, codes.loops, objective, y
        self.offsets, self.n_rows = codes.offsets, codes.n_rows
        rows = (codes, objective, y, weights, keys, seed)
        self._node = Node(self._crew, GrowingRows, rows)

    def hold_out(self, share: float) -> int:
        return sum(self._all("hold_out", share))

    def start(self) -> NDArray[np.float32]:
        weights = Node(self._crew, ask, (self._node, "training_weights"))
        own = RemoteRows(self._crew, weights, np.empty(0), self.n_rows)
        return self._objective.start(self._y, own)

    def begin(self, intercept: NDArray[np.float32]) -> None:
        self._all("begin", intercept)

    def refresh(self, units: tuple, table: NDArray[np.float32] | None) -> NDArray[np.float64]:
        return np.max(self._all("refresh", units, table), axis=0)

    def fill(self, *stumps: NDArray) -> NDArray[np.int64]:
        return np.sum(self._all("fill", *stumps), axis=0)

    def watch(self, levels: RemoteCodes) -> int:
        return min(self._all("watch", levels))

    def fill_levels(self, group: int) -> NDArray[np.int64]:
        return np.sum(self._all("fill_levels", group), axis=0)

    def table(self, features, cuts, members, units, ridge: float, rate: float) -> tuple:
        sums = self.fill(features, cuts, members)
        return table_of(sums, units, ridge, rate, self._loops)

    def held_out_loss(self) -> float:
        return float(sum(self._all("held_out_loss")))

    def held_out_scores(self) -> tuple[NDArray[np.float32], NDArray]:
        scores, y = zip(*self._all("held_out_scores"), strict=True)
        return np.concatenate(scores), np.concatenate(y)

    def size_of_share(self, number: int, n_shares: int, columns) -> NDArray[np.int64]:
        return np.sum(self._all("size_of_share", number, n_shares, columns), axis=0)

    def sample(self, *arguments) -> GrowthSample:
        found = self._crew.call(sample_of, self._node, *arguments)
        codes, residuals = zip(*found, strict=True)
        loops = self._loops.alone
        return GrowthSample(np.concatenate(codes, axis=1), np.concatenate(residuals), loops)

    def choose(self, drafts: Sequence[Draft]) -> list[Chosen]:
        return self._loops.each(lambda number: drafts[number].choose(), range(len(drafts)))

    def _all(self, method: str, *arguments) -> list:
        return self._crew.call(ask, self._node, method, *arguments)


growing_rows.register(RemoteCodes, RemoteGrowingRows)

"""Codes on the workers of a cluster: tables go to them, histograms come back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.dask.crew import Crew, Node
from mbkl.dask.rows import RemoteRows, RowSet
from mbkl.dask.store import ask, bundle, pick_codes
from mbkl.engine.codes import Codes, DenseCodes, bundling
from mbkl.engine.twins import Twins


@dataclass(frozen=True)
class RemoteCodes(Codes):
    """Codes of which every store has those of its own rows."""

    crew: Crew
    node: Node  # names what each store has, codes or bundles of them
    n_rows: int
    offsets: NDArray[np.int64]  # (n_groups + 1,)
    loops: Twins  # for codes that are collected here: those of few rows
    is_bundled: bool = False

    def gather(self, tables: NDArray[np.float64]) -> RemoteRows:
        scores = Node(self.crew, ask, (self, "gather", tables))
        return RemoteRows(self.crew, scores, np.empty((0, tables.shape[1])), self.n_rows)

    def histogram(self, residuals: RemoteRows) -> NDArray[np.int64]:
        return np.sum(self.crew.call(ask, self, "histogram", residuals), axis=0)

    def counts(self) -> NDArray[np.int64]:
        return np.sum(self.crew.call(ask, self, "counts"), axis=0)

    def take(self, rows: RowSet) -> Codes:
        if rows.order is not None:
            values = np.concatenate(self.crew.call(pick_codes, self, rows), axis=1)
            return DenseCodes(values[:, rows.order], self.offsets, self.loops)
        return replace(self, node=Node(self.crew, ask, (self, "take", rows)), n_rows=rows.size)

    def renumbered(self, groups, numbers: NDArray, offsets) -> RemoteCodes:
        arguments = (self, "renumbered", groups, numbers, offsets)
        node = self.crew.keep("number-cells", ask, *arguments)
        return replace(self, node=node, offsets=offsets)

    def keep_groups(self, groups: NDArray[np.intp]) -> RemoteCodes:
        node = Node(self.crew, ask, (self, "keep_groups", groups))
        return replace(self, node=node, offsets=self.kept_offsets(groups))

    def bundled(self) -> RemoteCodes:
        plan = None if self.is_bundled else bundling(self.offsets, self.n_rows)
        if plan is None:
            return self
        # The tables of bundles are long: they are made where the codes are.
        return replace(self, node=Node(self.crew, bundle, (self, plan)), is_bundled=True)

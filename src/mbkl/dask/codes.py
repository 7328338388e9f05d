"""Codes on the workers of a cluster: tables go to them, histograms come back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.dask.crew import Crew
from mbkl.dask.rows import Node, RemoteRows, RowSet
from mbkl.engine.bundles import bundling
from mbkl.engine.codes import Codes, DenseCodes
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
        scores = Node(self.crew, "gather", (self.node, tables))
        return RemoteRows(self.crew, scores, np.empty((0, tables.shape[1])), self.n_rows)

    def histogram(self, residuals: RemoteRows) -> NDArray[np.int64]:
        return residuals.histogram(self.node)

    def counts(self) -> NDArray[np.int64]:
        return np.sum(self.crew.call("counts", self.node.key), axis=0)

    def take(self, rows: RowSet) -> Codes:
        if rows.order is not None:
            found = self.crew.call("pick_codes", self.node.key, rows.node.key)
            values = np.concatenate(found, axis=1)[:, rows.order]
            return DenseCodes(values, self.offsets, self.loops)
        taken = replace(self, node=Node(self.crew), n_rows=rows.size)
        self.crew.call("take", self.node.key, rows.node.key, taken.node.key)
        return taken

    def renumbered(self, groups, numbers: NDArray, offsets) -> RemoteCodes:
        new = replace(self, node=Node(self.crew), offsets=offsets)
        arguments = (self.node.key, groups, numbers, offsets, new.node.key)
        self.crew.work("number-cells", "renumber", *arguments)
        return new

    def keep_groups(self, groups: NDArray[np.intp]) -> RemoteCodes:
        kept = replace(self, node=Node(self.crew), offsets=self.kept_offsets(groups))
        self.crew.call("keep_groups", self.node.key, groups, kept.node.key)
        return kept

    def bundled(self) -> RemoteCodes:
        plan = None if self.is_bundled else bundling(self.offsets, self.n_rows)
        if plan is None:
            return self
        # The tables of bundles are long: they are made where the codes are.
        joined = replace(self, node=Node(self.crew), is_bundled=True)
        self.crew.call("bundle", self.node.key, plan, joined.node.key)
        return joined

"""The engine whose codes are on the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mbkl.dask.crew import Crew
from mbkl.dask.rows import Node, RemoteRows, RowSet
from mbkl.engine.bundles import BundledCodes, bundling
from mbkl.engine.codes import DenseCodes, offsets_of
from mbkl.engine.numpy_engine import AnyCodes, NumpyEngine


@dataclass(frozen=True)
class RemoteCodes:
    """Stands for the values of `DenseCodes` that are on the workers.

    Parameters
    ----------
    node : Node
        Names what each store has, codes or bundles.
    shape : (n_groups, n_rows)
    dtype : dtype
    """

    node: Node
    shape: tuple[int, int]
    dtype: np.dtype

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]


class DaskEngine(NumpyEngine):
    """The two hot operations: tables go to the workers, histograms come back.

    Parameters
    ----------
    crew : Crew
    inner : NumpyEngine or NumbaEngine
        For codes that are here: those of few rows.
    """

    def __init__(self, crew: Crew, inner: NumpyEngine) -> None:
        self.crew, self._inner = crew, inner
        self.n_threads = inner.n_threads

    def gather(self, codes: AnyCodes, tables: NDArray[np.float64]):
        node = _node(codes)
        if node is None:
            return self._inner.gather(codes, tables)
        scores = Node(self.crew, "gather", (node, tables))
        return RemoteRows(self.crew, scores, np.empty((0, tables.shape[1])), codes.n_rows)

    def histogram(self, codes: AnyCodes, residuals) -> NDArray[np.int64]:
        node = _node(codes)
        return (
            self._inner.histogram(codes, residuals) if node is None else residuals.histogram(node)
        )

    def counts(self, codes) -> NDArray[np.int64]:
        node = _node(codes)
        if node is None:
            return self._inner.counts(codes)
        return np.sum(self.crew.call("counts", node.key), axis=0)

    def bundle(self, codes: AnyCodes) -> AnyCodes:
        node = _node(codes)
        if node is None or isinstance(codes, BundledCodes):
            return self._inner.bundle(codes)
        plan = bundling(codes.offsets, codes.n_rows)
        if plan is None:
            return codes
        shape = (plan.members.size - 1, codes.n_rows)
        values = RemoteCodes(Node(self.crew), shape, plan.dtype)
        self.crew.call("bundle", node.key, plan, values.node.key)
        return plan.codes(values)

    def take(self, codes, rows):
        node = _node(codes)
        if node is None:
            return self._inner.take(codes, rows)
        inner = codes.bundles if isinstance(codes, BundledCodes) else codes
        values = self._taken(node, cast(RemoteCodes, inner.values), rows)
        taken = DenseCodes(values, inner.offsets)
        if isinstance(codes, BundledCodes):
            return BundledCodes(taken, codes.members, codes.offsets)
        return taken

    def _taken(self, node: Node, values: RemoteCodes, rows: RowSet) -> Any:
        if rows.order is not None:
            parts = self.crew.call("pick_codes", node.key, rows.node.key)
            return np.concatenate(parts, axis=1)[:, rows.order]
        taken = RemoteCodes(Node(self.crew), (values.shape[0], rows.size), values.dtype)
        self.crew.call("take", node.key, rows.node.key, taken.node.key)
        return taken

    def renumbered(self, codes, groups, numbers: NDArray, offsets) -> DenseCodes:
        node = _node(codes)
        if node is None:
            return self._inner.renumbered(codes, groups, numbers, offsets)
        values = self.empty_codes(groups.size, codes.n_rows, numbers.dtype)
        arguments = (node.key, groups, numbers, offsets, values.node.key)
        self.crew.work("number-cells", "renumber", *arguments)
        return DenseCodes(values, offsets)

    def keep_groups(self, codes, groups: NDArray[np.intp]) -> DenseCodes:
        node = _node(codes)
        if node is None:
            return self._inner.keep_groups(codes, groups)
        values = RemoteCodes(Node(self.crew), (groups.size, codes.n_rows), codes.values.dtype)
        self.crew.call("keep_groups", node.key, groups, values.node.key)
        return DenseCodes(values, offsets_of(codes, groups))  # type: ignore[arg-type]

    def densify(self, codes) -> DenseCodes:
        return self._inner.densify(codes)

    def agreement(self, codes: DenseCodes, others: DenseCodes, weights) -> NDArray[np.float64]:
        return self._inner.agreement(codes, others, weights)

    def city_block(self, positions, others) -> NDArray[np.float64]:
        return self._inner.city_block(positions, others)

    def let_go(self) -> None:
        self.crew.call("release_rows")

    def empty_codes(self, n_groups: int, n_rows: int, dtype: np.dtype):
        """Return room for codes, on the workers."""
        return RemoteCodes(Node(self.crew), (n_groups, n_rows), np.dtype(dtype))

    def bin(self, X, features, edges, out) -> None:
        self.crew.work("bin", "bin", out.node.key, features, edges, edges.cell_offsets, out.dtype)

    def bin_ferns(self, X, ferns, out) -> None:
        self.crew.work("bin-ferns", "bin_ferns", out.node.key, ferns, ferns.cell_offsets, out.dtype)


def _node(codes: AnyCodes) -> Node | None:
    """Return what the workers know codes by; None for codes that are here."""
    values = (codes.bundles if isinstance(codes, BundledCodes) else codes).values
    return values.node if isinstance(values, RemoteCodes) else None

"""The rows of X in partitions on the workers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbkl.dask.codes import RemoteCodes
from mbkl.dask.crew import Crew, Node
from mbkl.dask.rows import RemoteRows
from mbkl.dask.store import (
    count_different,
    distinct,
    keys_told_apart,
    smallest_keys,
    split_equal,
    split_keys,
    tell_apart,
)
from mbkl.engine.arrays import to_fixed_point
from mbkl.engine.rows import Rows, Sample
from mbkl.engine.twins import TWINS, Twins


class RemoteMatrix(Rows):
    """The rows of X in all stores, put together from what they say of theirs.

    >>> from mbkl.dask.crew import local_crew
    >>> X, y = np.array([[1.0], [4.0], [2.0]]), np.array([0, 1, 0])
    >>> crew = local_crew([(X[:2], y[:2], None), (X[2:], y[2:], None)])
    >>> RemoteMatrix(crew).column_ranges()[:2]
    (array([1.]), array([4.]))
    """

    def __init__(self, crew: Crew, loops: Twins = TWINS) -> None:
        self.crew, self.loops = crew, loops
        shapes = crew.call("shape")
        widths = {width for _, width in shapes if width is not None}
        if len(widths) > 1:
            raise ValueError(f"Partitions of X have different numbers of columns: {widths}.")
        self.shape = (sum(n_rows for n_rows, _ in shapes), max(widths, default=0))

    def classes(self) -> NDArray:
        """Return all labels that occur, sorted."""
        found = [labels for store in self.crew.call("classes") for labels in store]
        return distinct(np.concatenate(found)) if found else np.empty(0)

    def labelled(self, classes: NDArray) -> tuple[RemoteRows, RemoteRows]:
        """Return the places of all rows' labels among all, and weights."""
        y = self.crew.keep("labels", "encode", classes)
        weights = self.crew.keep("weights", "weigh")
        n_rows = self.shape[0]
        return (
            RemoteRows(self.crew, y, np.empty(0, np.intp), n_rows),
            RemoteRows(self.crew, weights, np.empty(0), n_rows),
        )

    def collected(self) -> tuple[NDArray, NDArray, NDArray]:
        """Return X, targets and weights of all rows, which must be few; the stores keep none."""
        parts = [part for store in self.crew.call("pieces") for part in store]
        X, y, weights = zip(*parts, strict=True)
        return np.concatenate(X), np.concatenate(y), np.concatenate(weights)

    def column_ranges(self) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        """Return smallest and largest value of each column, and which ones have NaN."""
        found = [part for part in self.crew.work("ranges", "ranges") if part[0] is not None]
        low, high, missing = zip(*found, strict=True)
        return np.fmin.reduce(low), np.fmax.reduce(high), np.logical_or.reduce(missing)

    def keys_apart(self, y: RemoteRows, weights: RemoteRows, seed: int) -> RemoteRows:
        keys = self.crew.keep("hash-rows", "hash_rows", y, seed)
        answers, _ = self.crew.exchange("tell-apart", split_equal, (keys, weights), tell_apart)
        told = self.crew.keep_answers("keep-keys", keys_told_apart, answers)
        return RemoteRows(self.crew, told, np.empty(0, np.uint64), self.shape[0])

    def sample(self, y: RemoteRows | None, weights: RemoteRows, n_rows: int, seed: int):
        keys = self.crew.keep("hash-rows", "hash_rows", y, seed)
        candidates = np.concatenate(self.crew.call(smallest_keys, keys, n_rows))
        chosen = np.unique(candidates)[:n_rows]
        integers, unit = to_fixed_point(weights[:, None])
        parts = self.crew.call("rows_of_keys", keys, chosen, y, integers)
        X = np.empty((chosen.size, self.shape[1]), dtype=np.float32)
        y_of_sample = np.empty(chosen.size, np.intp)
        mass = np.zeros(chosen.size, dtype=np.int64)
        for place, rows, own_labels, own_mass in parts:
            if place.size:
                X[place], y_of_sample[place] = rows, own_labels
            mass += own_mass
        n_different = 0
        if y is not None:  # only the choice of maps asks for it, and of labelled rows
            _, counts = self.crew.exchange("count", split_keys, (keys,), count_different)
            n_different = sum(counts)
        return Sample(X, y_of_sample, mass * unit, n_different)

    def bin(self, features, edges) -> RemoteCodes:
        return self._codes(self.crew.keep("bin", "bin", features, edges), edges.cell_offsets)

    def bin_ferns(self, ferns) -> RemoteCodes:
        return self._codes(self.crew.keep("bin-ferns", "bin_ferns", ferns), ferns.cell_offsets)

    def _codes(self, node: Node, offsets: NDArray[np.int64]) -> RemoteCodes:
        return RemoteCodes(self.crew, node, self.shape[0], offsets, self.loops)

    def release(self) -> None:
        self.crew.call("release_rows")

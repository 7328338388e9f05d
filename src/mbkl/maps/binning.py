"""From feature values to cell codes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.codes import Codes, DenseCodes, SparseCodes, densify, smallest_code_dtype
from mbkl.engine.numpy_engine import as_float32

if TYPE_CHECKING:
    from mbkl.engine import Engine


@dataclass(frozen=True)
class Guide:
    """How many thresholds lie before each of the equal parts of a group's range."""

    low: NDArray[np.float64]
    scale: NDArray[np.float64]
    counts: NDArray[np.int32]
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class BinEdges:
    """Sorted thresholds of every group.

    Parameters
    ----------
    thresholds : ndarray of shape (n_maps,)
        Increasing within a group; -inf parts missing values from all others.
    offsets : ndarray of shape (n_groups + 1,)
        Thresholds of group g are offsets[g] to offsets[g + 1] - 1.
    """

    thresholds: NDArray[np.float64]
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
        """Short cut for the compiled search, see the kernel `bin_dense`."""
        n_groups = self.offsets.size - 1
        sizes = np.diff(self.offsets)
        group = np.repeat(np.arange(n_groups), sizes)
        finite = np.isfinite(self.thresholds)
        low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
        np.minimum.at(low, group[finite], self.thresholds[finite])
        np.maximum.at(high, group[finite], self.thresholds[finite])
        low = np.where(np.isfinite(low), low, 0.0)
        # Four parts per threshold leave one comparison or none for most values;
        # more only cost cache (measured).
        n_parts = np.maximum(4 * sizes, 1)
        with np.errstate(divide="ignore", over="ignore"):
            scale = np.where(high > low, n_parts / (high - low), 0.0)
        scale = np.where(np.isfinite(scale), scale, 0.0)
        position = (self.thresholds[finite] - low[group[finite]]) * scale[group[finite]]
        part = np.minimum(position, n_parts[group[finite]] - 1).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(n_parts + 1)]).astype(np.int64)
        counts = np.zeros(int(offsets[-1]), dtype=np.int32)
        np.add.at(counts, offsets[group[finite]] + part + 1, 1)
        np.add.at(counts, offsets[group[~finite]], 1)
        for g in range(n_groups):
            block = counts[offsets[g] : offsets[g + 1]]
            np.cumsum(block, out=block)
        return Guide(low, scale, counts, offsets)


def bin_columns(X, features: NDArray[np.intp], edges: BinEdges, engine: Engine) -> Codes:
    """Return the codes of some columns of X.

    Parameters
    ----------
    X : ndarray, or scipy sparse matrix in CSR or CSC format
        NaN falls in the first cell.
    features : ndarray of shape (n_groups,)
        Column of each group.
    edges : BinEdges
    engine : NumpyEngine or NumbaEngine

    Returns
    -------
    codes : DenseCodes or SparseCodes
        Sparse where that takes less memory.
    """
    if sparse.issparse(X):
        return _bin_sparse(X, features, edges)
    values = engine.empty_codes(features.size, X.shape[0], edges.code_dtype)
    engine.bin(X, features, edges, values)
    return DenseCodes(values, edges.cell_offsets)


def _bin_sparse(X, features: NDArray[np.intp], edges: BinEdges) -> Codes:
    """Bin the stored entries of X; the zeros between them are never formed."""
    columns = sparse.csc_array(X)
    if not columns.has_canonical_format:
        columns = columns.copy()
        columns.sum_duplicates()
    zeros = np.empty(features.size, dtype=np.int64)
    rows, values, counts = [], [], np.empty(features.size, dtype=np.int64)
    for group, feature in enumerate(features):
        thresholds = edges.thresholds[edges.offsets[group] : edges.offsets[group + 1]]
        entries = slice(columns.indptr[feature], columns.indptr[feature + 1])
        data = as_float32(columns.data[entries])
        entry_codes = np.searchsorted(thresholds, data, side="left")
        entry_codes[np.isnan(data)] = 0
        zeros[group] = np.searchsorted(thresholds, 0.0, side="left")
        stored = entry_codes != zeros[group]
        rows.append(columns.indices[entries][stored].astype(np.int32))
        values.append(entry_codes[stored].astype(edges.code_dtype))
        counts[group] = stored.sum()
    codes = SparseCodes(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.concatenate(rows or [np.empty(0, np.int32)]),
        np.concatenate(values or [np.empty(0, edges.code_dtype)]),
        zeros,
        edges.cell_offsets,
        X.shape[0],
    )
    bytes_dense = codes.n_groups * codes.n_rows * edges.code_dtype.itemsize
    bytes_sparse = codes.rows.nbytes + codes.values.nbytes
    return codes if bytes_sparse < bytes_dense else densify(codes)

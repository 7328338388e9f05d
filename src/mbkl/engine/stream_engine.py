"""The engine for codes larger than memory: another engine, block by block from a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.bundles import BundledCodes, Bundling, bundling
from mbkl.engine.codes import Codes, DenseCodes, offsets_of
from mbkl.engine.disk_array import DiskArray
from mbkl.engine.numpy_engine import AnyCodes, NumpyEngine
from mbkl.engine.row_blocks import row_blocks

# Codes of so many rows are kept in memory.
FEW_ROWS = 4_096


class StreamEngine(NumpyEngine):
    """The two hot operations on codes in files. The bits are those of the inner engine.

    Parameters
    ----------
    inner : NumpyEngine or NumbaEngine
        For the codes of one block, and those of few rows.
    folder : Path
        For the files.
    block_rows : int
        Rows of a block.
    """

    def __init__(self, inner: NumpyEngine, folder: Path, block_rows: int) -> None:
        self._inner, self._folder, self._block_rows = inner, folder, block_rows
        self.n_threads = inner.n_threads

    def gather(self, codes: AnyCodes, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        if not is_on_disk(codes):
            return self._inner.gather(codes, tables)
        scores = np.empty((codes.n_rows, tables.shape[1]))
        for rows, block in _blocks(codes):
            scores[rows] = self._inner.gather(block, tables)
        return scores

    def histogram(self, codes: AnyCodes, residuals: NDArray[np.int64]) -> NDArray[np.int64]:
        if not is_on_disk(codes):
            return self._inner.histogram(codes, residuals)
        sums = np.zeros((codes.n_cells, residuals.shape[1]), dtype=np.int64)
        for rows, block in _blocks(codes):
            sums += self._inner.histogram(block, residuals[rows])
        return sums

    def bundle(self, codes: AnyCodes) -> AnyCodes:
        if isinstance(codes, BundledCodes) or not is_on_disk(codes):
            return self._inner.bundle(codes)
        plan = bundling(codes.offsets, codes.n_rows)
        return codes if plan is None else self._join(codes, plan)

    def _join(self, codes: AnyCodes, plan: Bundling) -> BundledCodes:
        joined = self.empty_codes(plan.members.size - 1, codes.n_rows, plan.dtype)
        for rows, block in _values(codes).blocks():
            joined.write(rows, plan.join(block))
        return plan.codes(joined)

    def take(self, codes, rows: NDArray[np.intp]):
        if not is_on_disk(codes):
            return self._inner.take(codes, rows)
        if isinstance(codes, BundledCodes):
            return replace(codes, bundles=self.take(codes.bundles, rows))
        values = _values(codes)
        if rows.size <= max(self._block_rows, FEW_ROWS):
            return DenseCodes(_pick(values, rows), codes.offsets)
        taken = self.empty_codes(codes.n_groups, rows.size, values.dtype)
        for own in taken.block_slices():
            taken.write(own, _pick(values, rows[own]))
        return DenseCodes(taken, codes.offsets)

    def renumbered(self, codes: DenseCodes, groups, numbers: NDArray, offsets) -> DenseCodes:
        if not is_on_disk(codes):
            return self._inner.renumbered(codes, groups, numbers, offsets)
        return super().renumbered(codes, groups, numbers, offsets)

    def densify(self, codes: Codes) -> DenseCodes:
        if not is_on_disk(codes):
            return self._inner.densify(codes)
        blocks = [block for _, block in _values(codes).blocks()]
        return DenseCodes(np.concatenate(blocks, axis=1), codes.offsets)

    def keep_groups(self, codes: Codes, groups: NDArray[np.intp]) -> DenseCodes:
        if not is_on_disk(codes):
            return self._inner.keep_groups(codes, groups)
        values = self.empty_codes(groups.size, codes.n_rows, _values(codes).dtype)
        for rows, block in _values(codes).blocks():
            values.write(rows, block[groups])
        return DenseCodes(values, offsets_of(codes, groups))

    def agreement(self, codes: DenseCodes, others: DenseCodes, weights) -> NDArray[np.float64]:
        return self._inner.agreement(codes, others, weights)

    def city_block(self, positions, others) -> NDArray[np.float64]:
        return self._inner.city_block(positions, others)

    def empty_codes(self, n_groups: int, n_rows: int, dtype: np.dtype):
        """Return room for codes, in a file."""
        return DiskArray(self._folder, (n_groups, n_rows), dtype, self._block_rows)

    def renumber(self, codes: DenseCodes, groups, numbers: NDArray, out) -> None:
        for rows, block in _blocks(codes):
            part = np.empty((groups.size, block.n_rows), dtype=out.dtype)
            self._inner.renumber(block, groups, numbers, part)
            out.write(rows, part)

    def bin(self, X, features, edges, out) -> None:
        for rows, block in row_blocks(X, self._block_rows):
            part = np.empty((features.size, len(block)), dtype=out.dtype)
            self._inner.bin(np.ascontiguousarray(block), features, edges, part)
            out.write(rows, part)

    def bin_ferns(self, X, ferns, out) -> None:
        for rows, block in row_blocks(X, self._block_rows):
            part = np.empty((ferns.n_maps, len(block)), dtype=out.dtype)
            self._inner.bin_ferns(np.ascontiguousarray(block), ferns, part)
            out.write(rows, part)

    def score(self, X, features, edges, tables) -> NDArray[np.float64]:
        return self._inner.score(X, features, edges, tables)


def is_on_disk(codes: AnyCodes) -> bool:
    """Say whether codes are in a file."""
    if isinstance(codes, BundledCodes):
        codes = codes.bundles
    return isinstance(codes.values, DiskArray)


def _values(codes) -> DiskArray:
    return cast(DiskArray, (codes.bundles if isinstance(codes, BundledCodes) else codes).values)


def _blocks(codes):
    """Yield rows and their codes, block by block."""
    for rows, block in _values(codes).blocks():
        if isinstance(codes, BundledCodes):
            yield rows, replace(codes, bundles=DenseCodes(block, codes.bundles.offsets))
        else:
            yield rows, DenseCodes(block, codes.offsets)


def _pick(values: DiskArray, rows: NDArray[np.intp]) -> NDArray:
    """Return the codes of some rows, in the given order, from the blocks that have any."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    picked = np.empty((values.shape[0], rows.size), dtype=values.dtype)
    for block in values.block_slices():
        first, last = np.searchsorted(ordered, [block.start, block.stop])
        if first < last:
            inside = ordered[first:last] - block.start
            picked[:, order[first:last]] = values.read(block)[:, inside]
    return picked

"""The reference engine: plain NumPy, for small data and as a twin in the tests."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.bundles import BundledCodes, bundle, expand_tables, fold_sums
from mbkl.engine.codes import (
    Coarsening,
    Codes,
    DenseCodes,
    SparseCodes,
    densify,
    offsets_of,
)

AnyCodes = Codes | BundledCodes

_FEW_ROWS = 16
# Comparisons that the outcomes of ferns are taken from at once.
_VALUES_COMPARED = 500_000


class NumpyEngine:
    """The two hot operations and the moves between codes, in NumPy.

    Every method gives the same bits as `NumbaEngine`, so that the choice
    between the two by size can never change a result.
    """

    n_threads = 1
    in_lockstep = False

    def row_dtype(self, n_columns: int):
        """Return the data type of the scores of rows."""
        return np.float64

    def hold(self, X) -> None:
        """Keep rows for the operations to come: they are here."""

    def let_go(self) -> None:
        """Free the rows held."""

    def to_device(self, array, dtype=None):
        """Return an array where the engine computes: here."""
        return array

    def empty_codes(self, n_groups: int, n_rows: int, dtype: np.dtype) -> NDArray:
        """Return room for codes."""
        return np.empty((n_groups, n_rows), dtype=dtype)

    def counts(self, codes: Codes) -> NDArray[np.int64]:
        """Return the number of rows in each cell."""
        return self.histogram(codes, np.ones((codes.n_rows, 1), dtype=np.int64))[:, 0]

    def coarse(self):
        """Return a context for coarser products; here they are all exact."""
        return nullcontext()

    def gather(self, codes: AnyCodes, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over groups the table entry of each row's cell.

        Parameters
        ----------
        codes : DenseCodes or SparseCodes
        tables : ndarray of shape (n_cells, n_columns)

        Returns
        -------
        scores : ndarray of shape (n_rows, n_columns)
        """
        if isinstance(codes, BundledCodes):
            return self.gather(codes.bundles, expand_tables(codes, tables))
        if isinstance(codes, SparseCodes):
            return self._gather_sparse(codes, tables)
        if codes.n_rows < codes.n_groups:
            # Few rows: all look-ups at once. cumsum adds in group order.
            entries = tables[codes.values + codes.offsets[:-1, None]]
            if not codes.n_groups:
                return np.zeros((codes.n_rows, tables.shape[1]))
            return np.cumsum(entries, axis=0)[-1]
        scores = np.zeros((codes.n_rows, tables.shape[1]))
        for group in range(codes.n_groups):
            table = tables[codes.offsets[group] : codes.offsets[group + 1]]
            scores += np.take(table, codes.values[group], axis=0)
        return scores

    def _gather_sparse(self, codes: SparseCodes, tables: NDArray) -> NDArray[np.float64]:
        scores = np.tile(score_of_zero(codes, tables), (codes.n_rows, 1))
        for group, zero_cell in enumerate(codes.zero_cells):
            entries = slice(codes.indptr[group], codes.indptr[group + 1])
            cells = codes.offsets[group] + codes.values[entries]
            scores[codes.rows[entries]] += tables[cells] - tables[zero_cell]
        return scores

    def histogram(self, codes: AnyCodes, residuals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum the residuals of the rows in each cell.

        Parameters
        ----------
        codes : DenseCodes or SparseCodes
        residuals : ndarray of shape (n_rows, n_columns)

        Returns
        -------
        sums : ndarray of shape (n_cells, n_columns)
        """
        if isinstance(codes, BundledCodes):
            return fold_sums(codes, self.histogram(codes.bundles, residuals))
        sums = np.zeros((codes.n_cells, residuals.shape[1]), dtype=np.int64)
        if isinstance(codes, SparseCodes):
            groups = codes.groups
            stored = residuals[codes.rows]
            sums[codes.zero_cells] = residuals.sum(axis=0)
            np.subtract.at(sums, codes.zero_cells[groups], stored)
            np.add.at(sums, codes.offsets[groups] + codes.values, stored)
            return sums
        for column in range(residuals.shape[1]):
            for group in range(codes.n_groups):
                block = sums[codes.offsets[group] : codes.offsets[group + 1], column]
                np.add.at(block, codes.values[group], residuals[:, column])
        return sums

    def bundle(self, codes: AnyCodes) -> AnyCodes:
        """Return the codes for passes of few columns: small groups are joined."""
        return bundle(codes) if isinstance(codes, DenseCodes) else codes

    def take(self, codes, rows: NDArray[np.intp]):
        """Return the codes of some rows, in the given order."""
        if isinstance(codes, BundledCodes):
            return replace(codes, bundles=self.take(codes.bundles, rows))
        if isinstance(codes, SparseCodes):
            return take_sparse(codes, rows)
        return DenseCodes(np.take(codes.values, rows, axis=1), codes.offsets)

    def densify(self, codes: Codes) -> DenseCodes:
        """Return the codes with every entry stored, in memory."""
        return densify(codes)

    def keep_groups(self, codes: Codes, groups: NDArray[np.intp]) -> DenseCodes:
        """Return the codes of some groups."""
        return DenseCodes(densify(codes).values[groups], offsets_of(codes, groups))

    def coarsen(self, codes: Codes, plan: Coarsening) -> Codes:
        """Return the codes after boundaries between cells are removed."""
        if isinstance(codes, SparseCodes):
            return coarsen_sparse(codes, plan)
        new_codes = plan.new_codes.astype(plan.dtype)
        return self.renumbered(codes, plan.groups, new_codes, plan.offsets)

    def renumbered(self, codes: DenseCodes, groups, numbers: NDArray, offsets) -> DenseCodes:
        """Return the codes of some groups with new numbers for all cells.

        Parameters
        ----------
        codes : DenseCodes
        groups : ndarray of shape (n_kept,)
        numbers : ndarray of shape (n_cells,)
            New number, within its group, of each cell.
        offsets : ndarray of shape (n_kept + 1,)
            First new cell of each kept group.
        """
        values = self.empty_codes(groups.size, codes.n_rows, numbers.dtype)
        self.renumber(codes, groups, numbers, values)
        return DenseCodes(values, offsets)

    def agreement(
        self, codes: DenseCodes, others: DenseCodes, weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the total weight of the groups in which two rows share the cell.

        Parameters
        ----------
        codes, others : DenseCodes
            Of the same groups.
        weights : ndarray of shape (n_groups,)

        Returns
        -------
        agreement : ndarray of shape (codes.n_rows, others.n_rows)
        """
        same = weights.size < 2**16 and bool((weights == weights[:1]).all())
        agreement = np.zeros((codes.n_rows, others.n_rows))
        for group in range(codes.n_groups):
            equal = codes.values[group][:, None] == others.values[group]
            agreement += equal if same else weights[group] * equal
        # Counted first where all weights are the same: faster, and the same bits.
        return weights[0] * agreement if same and weights.size else agreement

    def city_block(
        self, positions: NDArray[np.float64], others: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the sum over the groups of how far apart two rows are.

        Parameters
        ----------
        positions, others : ndarray of shape (n_groups, n_rows) and (n_groups, n_others)

        Returns
        -------
        distance : ndarray of shape (n_rows, n_others)
        """
        distance = np.zeros((positions.shape[1], others.shape[1]))
        for line, other in zip(positions, others, strict=True):
            distance += np.abs(line[:, None] - other)
        return distance

    def renumber(self, codes: DenseCodes, groups, numbers: NDArray, out: NDArray) -> None:
        """Write the codes of some groups with new numbers for all cells.

        Parameters
        ----------
        codes : DenseCodes
        groups : ndarray of shape (n_kept,)
        numbers : ndarray of shape (n_cells,)
            New number, within its group, of each cell.
        out : ndarray of shape (n_kept, n_rows)
        """
        for position, group in enumerate(groups):
            table = numbers[codes.offsets[group] : codes.offsets[group + 1]]
            np.take(table, codes.values[group], out=out[position])

    def bin_ferns(self, X, ferns, out: NDArray) -> None:
        """Write the cell of each row of a dense X in each fern.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        ferns : FernMaps
        out : ndarray of shape (n_ferns, n_rows)
        """
        if not ferns.n_maps:
            return
        depths = np.diff(ferns.offsets)
        place = np.repeat(ferns.offsets[1:], depths) - 1 - np.arange(ferns.features.size)
        digits = np.uint64(1) << place.astype(np.uint64)
        n_bits = np.log2(ferns.n_raw).astype(np.int64)
        shift = np.where(depths > n_bits, 64 - n_bits, 0).astype(np.uint64)
        factors = np.where(depths > n_bits, ferns.factors, np.uint64(1))
        first = ferns.raw_offsets[:-1].astype(np.uint64)
        step = max(1, _VALUES_COMPARED // ferns.features.size)
        for start in range(0, X.shape[0], step):
            block = slice(start, start + step)
            yes = as_float32(X[block][:, ferns.features]) > ferns.thresholds
            outcome = np.add.reduceat(yes * digits, ferns.offsets[:-1], axis=1)
            out[:, block] = ferns.numbers[first + ((outcome * factors) >> shift)].T

    def bin(self, X, features, edges, out: NDArray) -> None:
        """Write the code of each value of some columns of a dense X.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        features : ndarray of shape (n_groups,)
            Column of each group.
        edges : BinEdges
        out : ndarray of shape (n_groups, n_rows)
        """
        if X.shape[0] < _FEW_ROWS and features.size:
            # Few rows: all comparisons at once. NaN is greater than nothing.
            sizes = np.diff(edges.offsets)
            right = as_float32(X[:, np.repeat(features, sizes)]) > edges.thresholds
            out[:] = np.add.reduceat(right, edges.offsets[:-1], axis=1, dtype=out.dtype).T
            return
        for group, feature in enumerate(features):
            thresholds = edges.thresholds[edges.offsets[group] : edges.offsets[group + 1]]
            column = as_float32(X[:, feature])
            codes = np.searchsorted(thresholds, column, side="left")
            out[group] = np.where(np.isnan(column), 0, codes)

    def score(self, X, features, edges, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of the rows of a dense X: `bin` and `gather` in one."""
        values = np.empty((features.size, X.shape[0]), dtype=edges.code_dtype)
        self.bin(X, features, edges, values)
        return self.gather(DenseCodes(values, edges.cell_offsets), tables)


def as_float32(values: NDArray) -> NDArray[np.float64]:
    """Round values as they are compared with thresholds: as float32, whatever they are.

    Examples
    --------
    >>> import numpy as np
    >>> as_float32(np.array([1.0, 1.0 + 1e-12])).tolist()
    [1.0, 1.0]
    """
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def just_above(thresholds: NDArray) -> NDArray[np.float64]:
    """Return the smallest values on the right side of thresholds."""
    return np.nextafter(thresholds.astype(np.float32), np.float32(np.inf)).astype(np.float64)


def score_of_zero(codes: SparseCodes, tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the score of an all-zero row, summed in group order."""
    if not codes.n_groups:
        return np.zeros(tables.shape[1])
    return np.cumsum(tables[codes.zero_cells], axis=0)[-1]


def take_sparse(codes: SparseCodes, rows: NDArray[np.intp]) -> SparseCodes:
    # Codes are shifted by one, so that a stored code 0 is not taken for absence.
    shifted = sparse.csc_array(
        (codes.values.astype(np.int64) + 1, codes.rows, codes.indptr),
        shape=(codes.n_rows, codes.n_groups),
    )
    taken = sparse.csc_array(shifted.tocsr()[rows])
    taken.sort_indices()
    return SparseCodes(
        taken.indptr.astype(np.int64),
        taken.indices.astype(np.int32),
        (taken.data - 1).astype(codes.values.dtype),
        codes.zero_codes,
        codes.offsets,
        len(rows),
    )


def coarsen_sparse(codes: SparseCodes, plan: Coarsening) -> SparseCodes:
    groups = codes.groups
    new_values = plan.new_codes[codes.offsets[groups] + codes.values]
    new_zeros = plan.new_codes[codes.zero_cells]
    stays = np.zeros(codes.n_groups, dtype=bool)
    stays[plan.groups] = True
    stored = stays[groups] & (new_values != new_zeros[groups])
    counts = np.bincount(groups[stored], minlength=codes.n_groups)[plan.groups]
    return SparseCodes(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        codes.rows[stored],
        new_values[stored].astype(plan.dtype),
        new_zeros[plan.groups],
        plan.offsets,
        codes.n_rows,
    )

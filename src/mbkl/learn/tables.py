"""Between maps and tables: the additive structure that makes MBKL fast.

Maps of one group are nested: map k is z = +1 to the right of its boundary and
-1 to the left. A weight per map ("jump") is therefore a table per group, and
the gradient of all maps is one running sum over the group's histogram:

    table[cell] = sum of jumps at or left of cell - sum of jumps right of it
    (transpose) gradient[jump] = sum of residuals right of it - left of it

Jumps are stored one per cell, each standing for the boundary at the left edge
of its cell. The first cell of a group has no left boundary: its jump is always
zero. This wastes one number per group and saves all index arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.bundles import BundledCodes, bundle
from mbkl.engine.codes import Codes, DenseCodes, coarsening, densify
from mbkl.engine.fixed_point import to_fixed_point
from mbkl.engine.numpy_engine import AnyCodes

if TYPE_CHECKING:
    from mbkl.engine import Engine

Array = NDArray[np.float64]

_FEW_COLUMNS = 2


@dataclass(frozen=True)
class Ladder:
    """Groups of ordered cells.

    Parameters
    ----------
    offsets : ndarray of shape (n_groups + 1,)
        Cells of group g are offsets[g] to offsets[g + 1] - 1.
    """

    offsets: NDArray[np.int64]

    @property
    def n_cells(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def is_jump(self) -> NDArray[np.bool_]:
        """Which cells have a boundary at their left edge."""
        is_jump = np.ones(self.n_cells, dtype=bool)
        is_jump[self.offsets[:-1]] = False
        return is_jump

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """Group of each cell."""
        return np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))

    def tables(self, jumps: Array) -> Array:
        """Turn jumps into tables, column by column.

        Parameters
        ----------
        jumps : ndarray of shape (n_cells, n_columns)

        Examples
        --------
        >>> import numpy as np
        >>> Ladder(np.array([0, 3])).tables(np.array([[0.0], [1.0], [5.0]])).ravel()
        array([-6., -4.,  6.])
        """
        first = self.offsets[:-1]
        steps = 2.0 * jumps
        totals = np.add.reduceat(jumps, first, axis=0)
        # One running sum serves all groups: each starts at minus its total,
        # coming from the plus total on which the group before it ended.
        steps[first] = -totals
        steps[first[1:]] -= totals[:-1]
        return np.cumsum(steps, axis=0)

    def gradient(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Turn a histogram into the transpose of `tables`, exactly.

        Parameters
        ----------
        sums : ndarray of shape (n_cells, n_columns)
            Integers; each group sums to the same total over all rows.
        """
        if not self.n_cells:
            return np.zeros_like(sums)
        running = np.cumsum(sums, axis=0)
        total = running[self.offsets[1] - 1]
        # Integers wrap around beyond 64 bits; the final value fits, so it is right.
        gradient = np.zeros_like(sums)
        gradient[1:] = total + 2 * (self.group[1:, None] * total - running[:-1])
        gradient[self.offsets[:-1]] = 0
        return gradient


@dataclass(frozen=True)
class StumpOperator:
    """The matrix Z of all maps on all rows, without ever forming it.

    Parameters
    ----------
    codes : DenseCodes or SparseCodes
    ladder : Ladder
    engine : NumpyEngine or NumbaEngine
    """

    codes: AnyCodes
    ladder: Ladder
    engine: Engine

    @property
    def n_rows(self) -> int:
        return self.codes.n_rows

    @property
    def is_map(self) -> NDArray[np.bool_]:
        """Which columns are maps."""
        return self.ladder.is_jump

    @property
    def plain_codes(self) -> Codes:
        """The codes, of which an operator made by `take_narrow` has none."""
        assert not isinstance(self.codes, BundledCodes)
        return self.codes

    @cached_property
    def narrow_codes(self) -> AnyCodes:
        """The codes, bundled for passes of few columns."""
        return bundle(self.codes) if isinstance(self.codes, DenseCodes) else self.codes

    def _codes_for(self, n_columns: int) -> AnyCodes:
        # The tables of bundles are many times longer: too long for many columns.
        return self.narrow_codes if n_columns <= _FEW_COLUMNS else self.codes

    def forward(self, jumps: Array) -> Array:
        """Return Z @ jumps, of shape (n_rows, n_columns)."""
        codes = self._codes_for(jumps.shape[1])
        return self.engine.gather(codes, self.ladder.tables(jumps))

    def adjoint(self, residuals: Array) -> Array:
        """Return Z.T @ residuals, of shape (n_cells, n_columns); order-free."""
        return self.adjoint_and_total(residuals)[0]

    def adjoint_and_total(self, residuals: Array) -> tuple[Array, Array]:
        """Return Z.T @ residuals and the sum of the residuals; order-free."""
        integers, unit = to_fixed_point(residuals)
        codes = self._codes_for(residuals.shape[1])
        gradient = self.ladder.gradient(self.engine.histogram(codes, integers))
        return gradient * unit, integers.sum(axis=0) * unit

    def take(self, rows: NDArray[np.intp]) -> StumpOperator:
        """Return the operator on some of the rows."""
        return StumpOperator(self.engine.take(self.codes, rows), self.ladder, self.engine)

    def forget_narrow(self) -> None:
        """Free the bundled codes; they are made again when needed."""
        self.__dict__.pop("narrow_codes", None)

    def narrowed(self) -> StumpOperator:
        """Return the operator for passes of few columns only, in less memory."""
        return StumpOperator(self.narrow_codes, self.ladder, self.engine)

    def take_narrow(self, rows: NDArray[np.intp]) -> StumpOperator:
        """Return the operator on some of the rows, for passes of few columns only."""
        return StumpOperator(self.engine.take(self.narrow_codes, rows), self.ladder, self.engine)

    def keep_maps(self, kept: NDArray[np.bool_]) -> StumpOperator:
        """Return the operator of some of the maps: cells between them are joined.

        Parameters
        ----------
        kept : ndarray of shape (n_cells,)
            Which maps to keep; entries that are no map are ignored.
        """
        kept = kept[self.ladder.is_jump]
        if kept.all():
            return self
        plan = coarsening(self.ladder.offsets, kept)
        codes = self.engine.coarsen(self.plain_codes, plan)
        return StumpOperator(codes, Ladder(plan.offsets), self.engine)

    def dense(self) -> Array:
        """Return Z itself, of shape (n_rows, n_cells); zero columns where there is no map."""
        codes, ladder = densify(self.plain_codes), self.ladder
        local = np.arange(ladder.n_cells) - np.repeat(ladder.offsets[:-1], np.diff(ladder.offsets))
        right = codes.values[ladder.group] >= local[:, None]
        return np.where(ladder.is_jump, np.where(right.T, 1.0, -1.0), 0.0)

    def chain(self, weights: Array) -> tuple[float, Array, Array, Array]:
        """Return products of columns of Z that the chain preconditioner needs.

        Parameters
        ----------
        weights : ndarray of shape (n_rows, 1)
            Weight of each row in the products.

        Returns
        -------
        total : float
            Sum of the weights.
        mean : ndarray of shape (n_cells,)
            Products with the constant column.
        diagonal : ndarray of shape (n_cells,)
            Squared norms.
        neighbour : ndarray of shape (n_cells,)
            Products of each column with the one to its left.
        """
        integers, unit = to_fixed_point(weights)
        sums = self.engine.histogram(self.narrow_codes, integers)
        total = float(integers.sum() * unit[0])
        mean = self.ladder.gradient(sums)[:, 0] * unit[0]
        neighbour = np.zeros(self.ladder.n_cells)
        # Two neighbours disagree exactly on the rows of the cell between them.
        neighbour[1:] = total - 2.0 * unit[0] * sums[:-1, 0]
        neighbour[~self.ladder.is_jump] = 0.0
        neighbour[1:][~self.ladder.is_jump[:-1]] = 0.0
        diagonal = np.where(self.ladder.is_jump, total, 0.0)
        return total, mean, diagonal, neighbour

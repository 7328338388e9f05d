"""Between weights and tables: what the cells of a group have to do with each other.

Stumps of one feature are nested (`Ladder`): map k is z = +1 to the right of its
boundary and -1 to the left. A weight per map ("jump") is therefore a table per
group, and the gradient of all maps is one running sum over the group's histogram:

    table[cell] = sum of jumps at or left of cell - sum of jumps right of it
    (transpose) gradient[jump] = sum of residuals right of it - left of it

Jumps are stored one per cell, each standing for the boundary at the left edge
of its cell. The first cell of a group has no left boundary: its jump is always
zero. This wastes one number per group and saves all index arithmetic.

Cells of a fern have no order (`Cells`): the weights are the table.

Both say how kernel weights, one per map, belong to the weights of an SVM, one per
jump or cell: `spread` gives each of them that of its map, `collect` is its transpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.codes import DenseCodes

if TYPE_CHECKING:
    from mbkl.engine import Engine

Array = NDArray[np.float64]


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

    @property
    def n_slots(self) -> int:
        """Length of an array of kernel weights; some entries may be no map."""
        return self.n_cells

    @property
    def is_map(self) -> NDArray[np.bool_]:
        """Which of the slots are maps."""
        return self.is_jump

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

    @cached_property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which maps have a neighbour to their left."""
        is_chained = self.is_jump.copy()
        is_chained[1:] &= self.is_jump[:-1]
        return is_chained

    def spread(self, kernel_weights: NDArray) -> NDArray:
        """Return the kernel weight of the map of each jump: they are the same."""
        return kernel_weights

    def collect(self, values: NDArray) -> NDArray:
        """Return the sum over the jumps of each map: they are the same."""
        return values

    def mass(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over the rows to the right of each map, from the histogram."""
        total = sums[self.offsets[0] : self.offsets[1]].sum(axis=0) if self.n_cells else 0
        # gradient = right - left and right + left = total.
        return (self.gradient(sums) + total) // 2

    def penalty(self, kernel_weights: Array) -> Array:
        """Return the quadratic penalty of the jumps.

        A map has a weight on either side, a and -a: twice the penalty of one.
        """
        return 2.0 / np.where(self.is_jump, kernel_weights, 1.0)

    def products(
        self, sums: NDArray[np.int64], unit: float, total: float
    ) -> tuple[Array, Array, Array]:
        """Return products of columns from the histogram of the rows' weights.

        Returns
        -------
        mean, diagonal, neighbour : ndarray of shape (n_cells,)
            Products of each column with the constant one, itself, and the one to its left.
        """
        mean = (self.gradient(sums)[:, 0] * unit).astype(np.float64)
        neighbour = np.zeros(self.n_cells)
        # Two neighbours disagree exactly on the rows of the cell between them.
        neighbour[1:] = total - 2.0 * unit * sums[:-1, 0]
        neighbour[~self.is_chained] = 0.0
        return mean, np.where(self.is_jump, total, 0.0), neighbour

    def gram(self, codes: DenseCodes, kernel_weights: Array, engine: Engine) -> Array:
        """Return Z diag(1 / penalty) Z', of shape (n_rows, n_rows)."""
        steps = np.where(self.is_jump, kernel_weights, 0.0)
        total = float(steps.sum())
        # Nested maps disagree between the places of two rows on a scale of weights.
        warped = self.warp(codes, steps)
        return total / 2.0 - engine.city_block(warped, warped)

    def distance(
        self, codes: DenseCodes, others: DenseCodes, kernel_weights: Array, engine: Engine
    ) -> Array:
        """Return the total weight of the maps on which two rows disagree."""
        left = self.warp(codes, kernel_weights)
        right = left if others is codes else self.warp(others, kernel_weights)
        return engine.city_block(left, right)

    def active_columns(self, codes: DenseCodes) -> tuple[NDArray[np.intp], int]:
        """Return the side of each map that each row is on, of two columns a map."""
        maps = np.flatnonzero(self.is_jump)
        local = maps - self.offsets[self.group[maps]]
        right = local <= codes.values[self.group[maps]].T
        return 2 * np.arange(maps.size) + ~right, 2 * maps.size

    def warp(self, codes: DenseCodes, kernel_weights: Array) -> Array:
        """Return where each row lies on each group's scale of weights, (n_groups, n_rows)."""
        steps = np.where(self.is_jump, kernel_weights, 0.0)
        warped = np.empty((codes.n_groups, codes.n_rows))
        for group in range(codes.n_groups):
            climbed = np.cumsum(steps[self.offsets[group] : self.offsets[group + 1]])
            np.take(climbed, codes.values[group], out=warped[group])
        return warped

    def signed(self, codes: DenseCodes, signs: Array) -> Array:
        """Return the maps times signs on all rows, of shape (n_rows, n_slots)."""
        return self.columns(codes) * signs

    def columns(self, codes: DenseCodes) -> Array:
        """Return all maps on all rows, of shape (n_rows, n_cells)."""
        local = np.arange(self.n_cells) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        right = codes.values[self.group] >= local[:, None]
        return np.where(self.is_jump, np.where(right.T, 1.0, -1.0), 0.0)


@dataclass(frozen=True)
class Cells:
    """Groups of cells without order, a map of many values each.

    Parameters
    ----------
    offsets : ndarray of shape (n_groups + 1,)
        Cells of group g are offsets[g] to offsets[g + 1] - 1.
    """

    offsets: NDArray[np.int64]

    @property
    def n_cells(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_slots(self) -> int:
        return self.offsets.size - 1

    @property
    def is_map(self) -> NDArray[np.bool_]:
        return np.ones(self.n_slots, dtype=bool)

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        return np.zeros(self.n_cells, dtype=bool)

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """Group of each cell."""
        return np.repeat(np.arange(self.n_slots), np.diff(self.offsets))

    def tables(self, weights: Array) -> Array:
        """Return the tables: the weights themselves."""
        return weights

    def gradient(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the transpose of `tables`."""
        return sums

    def spread(self, kernel_weights: NDArray) -> NDArray:
        """Return the kernel weight of the group of each cell.

        Examples
        --------
        >>> import numpy as np
        >>> Cells(np.array([0, 2, 5])).spread(np.array([1.0, 2.0]))
        array([1., 1., 2., 2., 2.])
        """
        return np.repeat(kernel_weights, np.diff(self.offsets), axis=0)

    def collect(self, values: NDArray) -> NDArray:
        """Return the sum over the cells of each group."""
        return np.add.reduceat(values, self.offsets[:-1], axis=0)

    def mass(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over the rows in each cell."""
        return sums

    def penalty(self, kernel_weights: Array) -> Array:
        """Return the quadratic penalty of the weights of the cells."""
        return 1.0 / self.spread(kernel_weights)

    def products(
        self, sums: NDArray[np.int64], unit: float, total: float
    ) -> tuple[Array, Array, Array]:
        """Return products of columns, see `Ladder.products`; neighbours count as apart."""
        mass = (sums[:, 0] * unit).astype(np.float64)
        return mass, mass.copy(), np.zeros(self.n_cells)

    def gram(self, codes: DenseCodes, kernel_weights: Array, engine: Engine) -> Array:
        """Return Z diag(1 / penalty) Z', of shape (n_rows, n_rows)."""
        return engine.agreement(codes, codes, kernel_weights)

    def distance(
        self, codes: DenseCodes, others: DenseCodes, kernel_weights: Array, engine: Engine
    ) -> Array:
        """Return the total weight of the groups in which two rows differ."""
        agreement = engine.agreement(codes, others, kernel_weights)
        # Rounding must not make a distance negative.
        return np.maximum(kernel_weights.sum() - agreement, 0.0)

    def active_columns(self, codes: DenseCodes) -> tuple[NDArray[np.intp], int]:
        """Return the cell of each group that each row is in, of all cells."""
        return (self.offsets[:-1] + codes.values.T).astype(np.intp), self.n_cells

    def signed(self, codes: DenseCodes, signs: Array) -> Array:
        """Return the sign of each row's cell in each group, of shape (n_rows, n_slots)."""
        return signs[self.offsets[:-1, None] + codes.values].T

    def columns(self, codes: DenseCodes) -> Array:
        """Return the indicators of all cells on all rows, of shape (n_rows, n_cells)."""
        local = np.arange(self.n_cells) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return (codes.values[self.group] == local[:, None]).T.astype(np.float64)

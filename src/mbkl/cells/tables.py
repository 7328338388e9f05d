"""Between weights and tables: what the cells of a group have to do with each other.

Stumps of one feature are nested (`Ladder`): map k is z = +1 to the right of its
boundary and -1 to the left. A weight per map ("jump") is therefore a table per
group, and the gradient of all maps is one running sum over the group's histogram:

    table[cell] = sum of jumps at or left of cell - sum of jumps right of it
    (transpose) gradient[jump] = sum of residuals right of it - left of it

Jumps are stored one per cell, each standing for the boundary at the left edge
of its cell. The first cell of a group has no left boundary: its jump is always
zero. This wastes one number per group and saves all index arithmetic.

Cells of a fern have no order (`FreeCells`): the weights are the table.

Both say how kernel weights, one per map, belong to the weights of an SVM, one per
jump or cell: `spread` gives each of them that of its map, `collect` is its transpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import (
    Values,
    group_sums,
    index_for,
    is_numpy,
    namespace,
    offsets_of,
    running_sum,
)
from mbkl.engine.codes import Codes, DenseCodes, coarsening

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """Groups of cells."""

    # (n_groups + 1,): cells of group g are offsets[g] to offsets[g + 1] - 1
    offsets: NDArray[np.int64]

    @property
    def n_cells(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """Group of each cell."""
        return np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))

    @property
    def number(self) -> NDArray[np.int64]:
        """Number of each cell within its group."""
        return np.arange(self.n_cells) - self.offsets[self.group]


@dataclass(frozen=True)
class Ladder(Cells):
    """Groups of ordered cells."""

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

    def tables(self, jumps: Array) -> Array:
        """Turn jumps into tables, column by column.

        >>> Ladder(np.array([0, 3])).tables(np.array([[0.0], [1.0], [5.0]])).ravel()
        array([-6., -4.,  6.])
        """
        first = index_for(self.offsets[:-1], jumps)
        steps = 2.0 * jumps
        totals = group_sums(jumps, self.offsets)
        # One running sum serves all groups: each starts at minus its total,
        # coming from the plus total on which the group before it ended.
        steps[first] = -totals
        steps[first[1:]] -= totals[:-1]
        return running_sum(steps)

    def gradient(self, sums: Values) -> Values:
        """Turn a histogram into the transpose of `tables`, exactly for integers.

        Each group of the histogram sums to the same total over all rows.
        """
        gradient = 0 * sums
        if not self.n_cells:
            return gradient
        running = running_sum(sums)
        total = running[self.offsets[1] - 1]
        group = index_for(self.group[1:, None], sums)
        # Integers wrap around beyond 64 bits; the final value fits, so it is right.
        gradient[1:] = total + 2 * (group * total - running[:-1])
        gradient[index_for(self.offsets[:-1], sums)] = 0
        return gradient

    @property
    def is_cell(self) -> NDArray[np.bool_]:
        """Which columns are cells of a map of many values: none."""
        return np.zeros(self.n_cells, dtype=bool)

    def keep(self, codes: Codes, kept: NDArray[np.bool_]) -> tuple[Codes, Ladder]:
        """Return codes and cells of some of the maps: the cells between them are joined."""
        plan = coarsening(self.offsets, kept[self.is_map])
        return codes.coarsen(plan), Ladder(plan.offsets)

    @property
    def is_chained_map(self) -> NDArray[np.bool_]:
        """Which slots are maps with a neighbour to their left."""
        return self.is_chained

    @cached_property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which columns have a neighbour to their left."""
        is_chained = self.is_jump.copy()
        is_chained[1:] &= self.is_jump[:-1]
        return is_chained

    def spread(self, kernel_weights: NDArray) -> NDArray:
        """Return the kernel weight of the map of each jump: they are the same."""
        return kernel_weights

    def collect(self, values: NDArray) -> NDArray:
        """Return the sum over the jumps of each map: they are the same."""
        return values

    def mass(self, sums: Values) -> Values:
        """Return the sum over the rows to the right of each map, from the histogram."""
        total = sums[self.offsets[0] : self.offsets[1]].sum(axis=0) if self.n_cells else 0
        # gradient = right - left and right + left = total.
        twice = self.gradient(sums) + total
        return twice // 2 if is_numpy(sums) else twice / 2

    def penalty(self, kernel_weights: Array) -> Array:
        """Return the quadratic penalty of the jumps.

        A map has a weight on either side, a and -a: twice the penalty of one.
        """
        return 2.0 / np.where(self.is_jump, kernel_weights, 1.0)

    def products(self, sums: Values, unit: Values, total: Values) -> tuple[Values, Values, Values]:
        """Return products of columns from histograms of the rows' weights, in units of `unit`.

        They are those of each column with the constant one, itself, and the one to its left.
        """
        xp = namespace(sums)
        mean = self.gradient(sums) * unit
        neighbour = xp.zeros_like(mean)
        # Two neighbours disagree exactly on the rows of the cell between them.
        neighbour[1:] = total - 2.0 * unit * sums[:-1]
        neighbour[index_for(~self.is_chained, sums)] = 0.0
        return mean, xp.where(index_for(self.is_jump[:, None], sums), total, 0.0), neighbour

    def gram(self, codes: DenseCodes, kernel_weights: Array) -> Array:
        """Return Z diag(1 / penalty) Z', of shape (n_rows, n_rows)."""
        steps = np.where(self.is_jump, kernel_weights, 0.0)
        total = float(steps.sum())
        # Nested maps disagree between the places of two rows on a scale of weights.
        warped = self.warp(codes, steps)
        return total / 2.0 - codes.loops.city_block(warped, warped)

    def distance(self, codes: DenseCodes, others: DenseCodes, kernel_weights: Array) -> Array:
        """Return the total weight of the maps on which two rows disagree."""
        left = self.warp(codes, kernel_weights)
        right = left if others is codes else self.warp(others, kernel_weights)
        return codes.loops.city_block(left, right)

    def thinned(self, n_maps: int) -> NDArray[np.bool_]:
        """Say which maps are about so many of each group, evenly spread.

        >>> np.flatnonzero(Ladder(np.array([0, 9])).thinned(2))
        array([3, 7])
        """
        sizes = np.diff(self.offsets)
        number = self.number - 1
        step = np.repeat(np.maximum(-((1 - sizes) // n_maps), 1), sizes)
        return self.is_jump & (number % step == step // 2)

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

    def signed_lines(self, values: Values, classes: Values, signs: Values, slots) -> Values:
        """Return some maps on pairs of rows and classes, (n_some, n_pairs), exact in half the bits.

        The values are codes of the rows of the pairs, (n_groups, n_pairs).
        """
        signs = signs.bfloat16()
        group = self.group[slots]
        number = index_for(slots - self.offsets[group], values)[:, None]
        right = values[index_for(group, values)] >= number
        own_signs = signs[index_for(slots, values)][:, classes]
        return (right.to(signs.dtype) * 2 - 1) * own_signs

    def keep_lines(self, lines: Values, kept: NDArray[np.bool_]) -> tuple[Values, Ladder]:
        """Return the lines of some maps on pairs, and their cells."""
        ladder = Ladder(coarsening(self.offsets, kept[self.is_map]).offsets)
        some = lines.new_zeros((ladder.n_slots, lines.shape[1]))
        chosen = index_for(np.flatnonzero(kept & self.is_map), lines)
        some[index_for(np.flatnonzero(ladder.is_map), lines)] = lines[chosen]
        return some, ladder

    def columns(self, codes: DenseCodes) -> Array:
        """Return all maps on all rows, of shape (n_rows, n_cells)."""
        right = codes.values[self.group] >= self.number[:, None]
        return np.where(self.is_jump, np.where(right.T, 1.0, -1.0), 0.0)


@dataclass(frozen=True)
class FreeCells(Cells):
    """Groups of cells without order, a map of many values each."""

    @property
    def n_slots(self) -> int:
        return self.offsets.size - 1

    @property
    def is_map(self) -> NDArray[np.bool_]:
        return np.ones(self.n_slots, dtype=bool)

    @property
    def is_cell(self) -> NDArray[np.bool_]:
        return np.ones(self.n_cells, dtype=bool)

    @property
    def is_chained_map(self) -> NDArray[np.bool_]:
        return np.zeros(self.n_slots, dtype=bool)

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        return np.zeros(self.n_cells, dtype=bool)

    def keep(self, codes: Codes, kept: NDArray[np.bool_]) -> tuple[Codes, FreeCells]:
        """Return codes and cells of some of the maps."""
        groups = np.flatnonzero(kept)
        return codes.keep_groups(groups), FreeCells(codes.kept_offsets(groups))

    def thinned(self, n_maps: int) -> NDArray[np.bool_]:
        """Return all maps: ferns are no chain."""
        return self.is_map

    def tables(self, weights: Array) -> Array:
        """Return the tables: the weights themselves."""
        return weights

    def gradient(self, sums: Values) -> Values:
        """Return the transpose of `tables`."""
        return sums

    def spread(self, kernel_weights: Values) -> Values:
        """Return the kernel weight of the group of each cell.

        >>> FreeCells(np.array([0, 2, 5])).spread(np.array([1.0, 2.0]))
        array([1., 1., 2., 2., 2.])
        """
        return kernel_weights[index_for(self.group, kernel_weights)]

    def collect(self, values: NDArray) -> NDArray:
        """Return the sum over the cells of each group."""
        return group_sums(values, self.offsets)

    def mass(self, sums: Values) -> Values:
        """Return the sum over the rows in each cell."""
        return sums

    def penalty(self, kernel_weights: Array) -> Array:
        """Return the quadratic penalty of the weights of the cells."""
        return 1.0 / self.spread(kernel_weights)

    def products(self, sums: Values, unit: Values, total: Values) -> tuple[Values, Values, Values]:
        """Return products of columns, see `Ladder.products`; neighbours count as apart."""
        mass = sums * unit
        return mass, 1.0 * mass, 0.0 * mass

    def gram(self, codes: DenseCodes, kernel_weights: Array) -> Array:
        """Return Z diag(1 / penalty) Z', of shape (n_rows, n_rows)."""
        return codes.loops.agreement(codes.values, codes.values, kernel_weights)

    def distance(self, codes: DenseCodes, others: DenseCodes, kernel_weights: Array) -> Array:
        """Return the total weight of the groups in which two rows differ."""
        agreement = codes.loops.agreement(codes.values, others.values, kernel_weights)
        # Rounding must not make a distance negative.
        return np.maximum(kernel_weights.sum() - agreement, 0.0)

    def active_columns(self, codes: DenseCodes) -> tuple[NDArray[np.intp], int]:
        """Return the cell of each group that each row is in, of all cells."""
        return (self.offsets[:-1] + codes.values.T).astype(np.intp), self.n_cells

    def signed(self, codes: DenseCodes, signs: Array) -> Array:
        """Return the sign of each row's cell in each group, of shape (n_rows, n_slots)."""
        return signs[self.offsets[:-1, None] + codes.values].T

    def signed_lines(self, values: Values, classes: Values, signs: Values, slots) -> Values:
        """Return some ferns on pairs of rows and classes, see `Ladder.signed_lines`."""
        cells = values[index_for(slots, values)].long()
        return signs.float()[cells + index_for(self.offsets[slots], values)[:, None], classes]

    def keep_lines(self, lines: Values, kept: NDArray[np.bool_]) -> tuple[Values, FreeCells]:
        """Return the lines of some ferns on pairs, and their cells."""
        groups = np.flatnonzero(kept)
        offsets = offsets_of(np.diff(self.offsets)[groups])
        return lines[index_for(groups, lines)], FreeCells(offsets)

    def columns(self, codes: DenseCodes) -> Array:
        """Return the indicators of all cells on all rows, of shape (n_rows, n_cells)."""
        return (codes.values[self.group] == self.number[:, None]).T.astype(np.float64)

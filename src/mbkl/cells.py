"""Maps, weights and tables, and the operator of all maps on all rows, which is never a matrix.

Stumps of one feature are nested (`Ladder`): map k is z = +1 to the right of its
boundary and -1 to the left. A weight per map ("jump") is therefore a table per
group, and the gradient of all maps is one running sum over the group's histogram:

    table[cell] = sum of jumps at or left of cell - sum of jumps right of it
    (transpose) gradient[jump] = sum of residuals right of it - left of it

Jumps are stored one per cell, each standing for the boundary at the left edge
of its cell. The first cell of a group has no left boundary: its jump is always
zero. This wastes one number per group and saves all index arithmetic.

Cells of a fern have no order (`FreeCells`): the weights are the table.

A column is a jump, or a cell of a fern; a slot is an entry of an array of kernel
weights, one per map. `spread` gives each column the value of its map, and `collect`
is the transpose of `spread`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

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
    to_fixed_point,
    total_of,
)
from mbkl.engine.codes import Codes, DenseCodes, coarsening

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """The maps of one family."""

    codes: Codes
    cells: Ladder | FreeCells  # whether the cells of a group are ordered

    def keep_maps(self, kept: NDArray[np.bool_]) -> Block:
        """Return a block with some of the maps."""
        if kept[self.cells.is_map].all():
            return self
        return Block(*self.cells.keep(self.codes, kept))


@dataclass(frozen=True)
class Operator:
    """The matrix Z, with a column per jump or cell of all families."""

    blocks: tuple[Block, ...]  # a block per family, all on the same rows

    @property
    def codes(self) -> Codes:
        """The codes of the first family, whose device is that of all."""
        return self.blocks[0].codes

    @property
    def n_rows(self) -> int:
        return self.codes.n_rows

    @property
    def n_groups(self) -> int:
        return sum(block.codes.n_groups for block in self.blocks)

    @property
    def n_columns(self) -> int:
        return sum(block.cells.n_cells for block in self.blocks)

    @property
    def n_slots(self) -> int:
        """Length of an array of kernel weights."""
        return sum(block.cells.n_slots for block in self.blocks)

    @property
    def n_threads(self) -> int:
        """Number of threads that may be used."""
        return self.codes.loops.n_threads

    @property
    def many_at_once(self) -> bool:
        """Whether passes over many columns are hardly slower than over one."""
        return self.codes.many_at_once

    @property
    def longest_chain(self) -> int:
        """Length of the longest chain of nested columns."""
        return max(int(np.diff(block.cells.offsets).max(initial=1)) for block in self.blocks)

    def to_device(self, array, dtype=None) -> Values:
        """Return an array on the device of the operator."""
        return self.codes.place(array, dtype)

    def to_host(self, array: Values) -> NDArray:
        """Return an array from the device of the operator as a NumPy array."""
        return self.codes.fetch(array)

    def row_dtype(self, n_columns: int):
        """Return the data type of the scores of rows."""
        return self.codes.row_dtype(n_columns)

    # Columns and maps -------------------------------------------------------------------------

    @cached_property
    def is_map(self) -> NDArray[np.bool_]:
        """Which slots are maps."""
        return np.concatenate([block.cells.is_map for block in self.blocks])

    @cached_property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which columns are nested in the one to their left."""
        return np.concatenate([block.cells.is_chained for block in self.blocks])

    @cached_property
    def is_cell(self) -> NDArray[np.bool_]:
        """Which columns are cells of a fern rather than jumps."""
        return np.concatenate([block.cells.is_cell for block in self.blocks])

    def spread(self, kernel_weights: NDArray) -> NDArray:
        """Return for each column the kernel weight of its map."""
        pieces = self._map_slots(lambda block, piece: block.cells.spread(piece), kernel_weights)
        return stacked(pieces)

    def penalty(self, kernel_weights: Array) -> Array:
        """Return the quadratic penalty of the weight of each column."""
        pieces = self._map_slots(lambda block, piece: block.cells.penalty(piece), kernel_weights)
        return stacked(pieces)

    def collect(self, values: NDArray) -> NDArray:
        """Return for each map the sum over its columns."""
        return stacked(self.of_columns(lambda block, piece: block.cells.collect(piece), values))

    def keep_maps(self, kept: NDArray[np.bool_]) -> Operator:
        """Return the operator of some of the maps; cells are joined where a stump is dropped.

        Entries of `kept` for slots without a map are ignored.
        """
        return Operator(tuple(self._map_slots(Block.keep_maps, kept)))

    # Products ---------------------------------------------------------------------------------

    def gather(self, tables: Values) -> Values:
        """Return for each row the sum over the groups of its table entries."""
        return sum_in_order(self.of_columns(lambda block, piece: block.codes.gather(piece), tables))

    def forward(self, weights: Values) -> Values:
        """Return Z @ weights, of shape (n_rows, n_columns)."""

        def scores(block: Block, block_weights: Values) -> Values:
            return block.codes.gather(block.cells.tables(block_weights))

        return sum_in_order(self.of_columns(scores, weights))

    def adjoint(self, residuals: Values) -> Values:
        """Return Z.T @ residuals, (n_cells, n_columns), in any order of the rows the same bits."""
        return self.adjoint_and_total(residuals)[0]

    def adjoint_and_total(self, residuals: Values) -> tuple[Values, Values]:
        """Return Z.T @ residuals and the sum of the residuals, see `adjoint`."""
        integers, unit = to_fixed_point(residuals)
        gradients = [block.cells.gradient(sums) for block, sums in self._histograms(integers)]
        return stacked(gradients) * unit, total_of(integers, unit)

    def mass(self, integers: Values) -> Values:
        """Return the exact sum over the rows right of each stump, or in each cell of a fern."""
        return stacked([block.cells.mass(sums) for block, sums in self._histograms(integers)])

    def products(self, weights: Values) -> tuple[Values, Values, Values, Values]:
        """Return the weighted products of columns of Z that the preconditioner needs.

        They are the sum of the weights of the rows, and the products of each column with the
        constant column, with itself, and with its left neighbour, in which it is nested.
        """
        integers, unit = to_fixed_point(weights)
        total = total_of(integers, unit)
        by_block = [
            block.cells.products(sums, unit, total) for block, sums in self._histograms(integers)
        ]
        mean, diagonal, neighbour = (stacked(kind) for kind in zip(*by_block, strict=True))
        return total, mean, diagonal, neighbour

    def _histograms(self, integers: Values) -> list[tuple[Block, Values]]:
        return [(block, block.codes.histogram(integers)) for block in self.blocks]

    # Rows -------------------------------------------------------------------------------------

    def take(self, rows: Values) -> Operator:
        """Return the operator on some rows."""
        return self._with_codes(lambda block: block.codes.take(rows))

    def collected(self) -> Operator:
        """Return the operator with codes in memory."""
        return self._with_codes(lambda block: block.codes.dense())

    # Matrices, for few rows -------------------------------------------------------------------

    def dense(self) -> Array:
        """Return Z itself, of shape (n_rows, n_cells); zero columns where there is no map."""
        matrices = [block.cells.columns(block.codes.dense()) for block in self.blocks]
        return np.concatenate(matrices, axis=1)

    def signed(self, signs: Array) -> Array:
        """Return the maps times the signs of their columns, of shape (n_rows, n_slots)."""

        def signed(block: Block, block_signs: Array) -> Array:
            return block.cells.signed(block.codes.dense(), block_signs)

        return np.concatenate(self.of_columns(signed, signs), axis=1)

    def gram(self, kernel_weights: Array) -> Array:
        """Return Z diag(1 / penalty) Z', of shape (n_rows, n_rows)."""

        def gram(block: Block, block_weights: Array) -> Array:
            return block.cells.gram(block.codes.dense(), block_weights)

        return sum_in_order(self._map_slots(gram, kernel_weights))

    # Blocks -----------------------------------------------------------------------------------

    def _with_codes(self, codes_of: Callable[[Block], Codes]) -> Operator:
        return Operator(tuple(Block(codes_of(block), block.cells) for block in self.blocks))

    def _map_slots(self, function: Callable, values: Values) -> list:
        """Apply a function to each block and its piece of the values, which have one per slot."""
        return self._map_blocks(function, values, [block.cells.n_slots for block in self.blocks])

    def of_columns(self, function: Callable, values: Values) -> list:
        """Apply a function to each block and its piece of the values, which have one per column."""
        return self._map_blocks(function, values, [block.cells.n_cells for block in self.blocks])

    def _map_blocks(self, function: Callable, values: Values, sizes: Sequence[int]) -> list:
        pieces = (values[start:stop] for start, stop in pairwise(np.cumsum([0, *sizes])))
        return [function(*pair) for pair in zip(self.blocks, pieces, strict=True)]


def operator_of(codes: Codes, cells: Ladder | FreeCells) -> Operator:
    """Return the operator of one family of maps."""
    return Operator((Block(codes, cells),))


def stacked(pieces: Sequence[Values]) -> Values:
    """Concatenate arrays along their first axis."""
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if is_numpy(pieces[0]) else namespace(pieces[0]).concat(pieces)


def sum_in_order(pieces: Sequence[Values]) -> Values:
    """Add up arrays in their order; the first one is overwritten."""
    total = pieces[0]
    for piece in pieces[1:]:
        total += piece
    return total


@dataclass(frozen=True)
class Cells:
    """The cells of all groups."""

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
        """Length of an array of kernel weights; the first slot of a group is no map."""
        return self.n_cells

    @property
    def is_map(self) -> NDArray[np.bool_]:
        """Which slots are maps."""
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
        # One running sum serves all groups: a group starts at minus its total, and
        # the group before it ended at plus its own total.
        steps[first] = -totals
        steps[first[1:]] -= totals[:-1]
        return np.cumsum(steps, axis=0, out=steps) if is_numpy(steps) else running_sum(steps)

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
        # Intermediate integers may wrap around, but the result fits in 64 bits and is exact.
        gradient[1:] = total + 2 * (group * total - running[:-1])
        gradient[index_for(self.offsets[:-1], sums)] = 0
        return gradient

    @property
    def is_cell(self) -> NDArray[np.bool_]:
        """Which columns are cells of a fern: none."""
        return np.zeros(self.n_cells, dtype=bool)

    def keep(self, codes: Codes, kept: NDArray[np.bool_]) -> tuple[Codes, Ladder]:
        """Return codes and cells of some maps; cells are joined where a boundary is dropped."""
        plan = coarsening(self.offsets, kept[self.is_map])
        return codes.coarsen(plan), Ladder(plan.offsets)

    @cached_property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which columns have a jump of the same group to their left."""
        is_chained = self.is_jump.copy()
        is_chained[1:] &= self.is_jump[:-1]
        return is_chained

    def spread(self, kernel_weights: NDArray) -> NDArray:
        """Return the kernel weight of the map of each jump; slots and jumps are the same."""
        return kernel_weights

    def collect(self, values: NDArray) -> NDArray:
        """Return the sum over the jumps of each map, which has one."""
        return values

    def mass(self, sums: Values) -> Values:
        """Return the sum over the rows on the right side of each map, from the histogram."""
        total = sums[self.offsets[0] : self.offsets[1]].sum(axis=0) if self.n_cells else 0
        # gradient = right - left and right + left = total.
        twice = self.gradient(sums) + total
        return twice // 2 if is_numpy(sums) else twice / 2

    def penalty(self, kernel_weights: Array) -> Array:
        """Return the quadratic penalty of the jumps.

        A map has the weights a and -a on its two sides, and so twice the penalty of one weight.
        """
        return 2.0 / np.where(self.is_jump, kernel_weights, 1.0)

    def products(self, sums: Values, unit: Values, total: Values) -> tuple[Values, Values, Values]:
        """Return products of columns from the histogram of the weights of the rows.

        They are those of each column with the constant column, itself, and its left neighbour.
        """
        xp = namespace(sums)
        mean = self.gradient(sums) * unit
        neighbour = xp.zeros_like(mean)
        # Two neighbours differ only on the rows of the cell between them.
        neighbour[1:] = total - 2.0 * unit * sums[:-1]
        neighbour[index_for(~self.is_chained, sums)] = 0.0
        return mean, xp.where(index_for(self.is_jump[:, None], sums), total, 0.0), neighbour

    def gram(self, codes: DenseCodes, kernel_weights: Array) -> Array:
        """Return Z diag(1 / penalty) Z', of shape (n_rows, n_rows)."""
        steps = np.where(self.is_jump, kernel_weights, 0.0)
        total = float(steps.sum())
        # The weight of the maps that separate two rows is their distance on the warped scale.
        warped = self.warp(codes, steps)
        distance = codes.loops.city_block(warped, warped)
        return np.subtract(total / 2.0, distance, out=distance)

    def distance(self, codes: DenseCodes, others: DenseCodes, kernel_weights: Array) -> Array:
        """Return the total weight of the maps that separate two rows."""
        left = self.warp(codes, kernel_weights)
        right = left if others is codes else self.warp(others, kernel_weights)
        return codes.loops.city_block(left, right)

    def active_columns(self, codes: DenseCodes) -> tuple[NDArray[np.intp], int]:
        """Return the column of each row for each map, which has two, and the number of columns."""
        maps = np.flatnonzero(self.is_jump)
        local = maps - self.offsets[self.group[maps]]
        right = local <= codes.values[self.group[maps]].T
        return 2 * np.arange(maps.size) + ~right, 2 * maps.size

    def warp(self, codes: DenseCodes, kernel_weights: Array) -> Array:
        """Return the weight of the boundaries left of each row, by group, (n_groups, n_rows)."""
        steps = np.where(self.is_jump, kernel_weights, 0.0)
        warped = np.empty((codes.n_groups, codes.n_rows))
        for group in range(codes.n_groups):
            positions = np.cumsum(steps[self.offsets[group] : self.offsets[group + 1]])
            np.take(positions, codes.values[group], out=warped[group])
        return warped

    def signed(self, codes: DenseCodes, signs: Array) -> Array:
        """Return the maps times the signs, on all rows, of shape (n_rows, n_slots)."""
        return self.columns(codes) * signs

    def signed_lines(self, values: Values, classes: Values, signs: Values, slots) -> Values:
        """Return some maps times signs on pairs of a row and a class, (n_some, n_pairs).

        The values are codes of the rows of the pairs, (n_groups, n_pairs). Signs are exact in
        bfloat16.
        """
        signs = signs.bfloat16()
        group = self.group[slots]
        number = index_for(slots - self.offsets[group], values)[:, None]
        right = values[index_for(group, values)] >= number
        pair_signs = signs[index_for(slots, values)][:, classes]
        return (right.to(signs.dtype) * 2 - 1) * pair_signs

    def keep_lines(self, lines: Values, kept: NDArray[np.bool_]) -> tuple[Values, Ladder]:
        """Return the lines of the maps that are kept (see `signed_lines`), and their cells."""
        ladder = Ladder(coarsening(self.offsets, kept[self.is_map]).offsets)
        kept_lines = lines.new_zeros((ladder.n_slots, lines.shape[1]))
        old_slots = index_for(np.flatnonzero(kept & self.is_map), lines)
        kept_lines[index_for(np.flatnonzero(ladder.is_map), lines)] = lines[old_slots]
        return kept_lines, ladder

    def columns(self, codes: DenseCodes) -> Array:
        """Return all maps on all rows, of shape (n_rows, n_cells)."""
        right = codes.values[self.group] >= self.number[:, None]
        return np.where(self.is_jump, np.where(right.T, 1.0, -1.0), 0.0)


@dataclass(frozen=True)
class FreeCells(Cells):
    """Groups of cells without order; each group is one map. See `Ladder` for the methods."""

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
    def is_chained(self) -> NDArray[np.bool_]:
        return np.zeros(self.n_cells, dtype=bool)

    def keep(self, codes: Codes, kept: NDArray[np.bool_]) -> tuple[Codes, FreeCells]:
        groups = np.flatnonzero(kept)
        return codes.keep_groups(groups), FreeCells(codes.kept_offsets(groups))

    def tables(self, weights: Array) -> Array:
        """Return the tables: the weights themselves."""
        return weights

    def gradient(self, sums: Values) -> Values:
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
        return sums

    def penalty(self, kernel_weights: Array) -> Array:
        return 1.0 / self.spread(kernel_weights)

    def products(self, sums: Values, unit: Values, total: Values) -> tuple[Values, Values, Values]:
        """Return products of columns, see `Ladder.products`; those of neighbours are zero."""
        mass = sums * unit
        return mass, 1.0 * mass, 0.0 * mass

    def gram(self, codes: DenseCodes, kernel_weights: Array) -> Array:
        return codes.loops.agreement(codes.values, codes.values, kernel_weights)

    def distance(self, codes: DenseCodes, others: DenseCodes, kernel_weights: Array) -> Array:
        """Return the total weight of the groups in which two rows are in different cells."""
        agreement = codes.loops.agreement(codes.values, others.values, kernel_weights)
        # Rounding must not make a distance negative.
        return np.maximum(kernel_weights.sum() - agreement, 0.0)

    def active_columns(self, codes: DenseCodes) -> tuple[NDArray[np.intp], int]:
        """Return the cell of each row in each group, as a column, and the number of columns."""
        return (self.offsets[:-1] + codes.values.T).astype(np.intp), self.n_cells

    def signed(self, codes: DenseCodes, signs: Array) -> Array:
        """Return the sign of each row's cell in each group, of shape (n_rows, n_slots)."""
        return signs[self.offsets[:-1, None] + codes.values].T

    def signed_lines(self, values: Values, classes: Values, signs: Values, slots) -> Values:
        cells = values[index_for(slots, values)].long()
        return signs.float()[cells + index_for(self.offsets[slots], values)[:, None], classes]

    def keep_lines(self, lines: Values, kept: NDArray[np.bool_]) -> tuple[Values, FreeCells]:
        groups = np.flatnonzero(kept)
        offsets = offsets_of(np.diff(self.offsets)[groups])
        return lines[index_for(groups, lines)], FreeCells(offsets)

    def columns(self, codes: DenseCodes) -> Array:
        """Return the indicators of all cells on all rows, of shape (n_rows, n_cells)."""
        return (codes.values[self.group] == self.number[:, None]).T.astype(np.float64)

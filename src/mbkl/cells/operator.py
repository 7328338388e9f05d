"""The matrix of all maps on all rows, without ever forming it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mbkl.cells.tables import FreeCells, Ladder
from mbkl.engine.arrays import Values, is_numpy, namespace, to_fixed_point, total_of
from mbkl.engine.codes import Codes
from mbkl.engine.limits import FEW_COLUMNS_BUNDLED

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """The maps of one family."""

    codes: Codes
    cells: Ladder | FreeCells  # how the cells of a group hang together

    @cached_property
    def narrow_codes(self) -> Codes:
        """The codes, bundled for passes of few columns."""
        return self.codes.bundled()

    def codes_for(self, n_columns: int) -> Codes:
        """Return the codes for a pass of so many columns."""
        return self.narrow_codes if n_columns <= FEW_COLUMNS_BUNDLED else self.codes

    def keep_maps(self, kept: NDArray[np.bool_]) -> Block:
        """Return the block of some of the maps."""
        if kept[self.cells.is_map].all():
            return self
        return Block(*self.cells.keep(self.codes, kept))


@dataclass(frozen=True)
class Operator:
    """The matrix Z: a column per jump or cell, of one or several families side by side."""

    blocks: tuple[Block, ...]  # on the same rows

    @property
    def codes(self) -> Codes:
        """The codes of the first family, which know where numbers of rows are."""
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
        """How many threads may work side by side."""
        return self.codes.loops.n_threads

    @property
    def many_at_once(self) -> bool:
        """Whether many columns at once are hardly slower than one."""
        return self.codes.many_at_once

    @property
    def longest_chain(self) -> int:
        """Length of the longest chain of nested columns."""
        return max(int(np.diff(block.cells.offsets).max(initial=1)) for block in self.blocks)

    def to_device(self, array, dtype=None) -> Values:
        """Return an array where the operator computes."""
        return self.codes.place(array, dtype)

    def row_dtype(self, n_columns: int):
        """Return the data type of the scores of rows."""
        return self.codes.row_dtype(n_columns)

    def coarse(self):
        """Return a context in which products may be coarser, where that is faster."""
        return self.codes.coarse()

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
        """Which columns are cells of a fern, and no jumps."""
        return np.concatenate([block.cells.is_cell for block in self.blocks])

    def thinned(self, n_maps: int) -> NDArray[np.bool_]:
        """Say which maps are about so many of each chain, evenly spread."""
        return np.concatenate([block.cells.thinned(n_maps) for block in self.blocks])

    def spread(self, kernel_weights: NDArray) -> NDArray:
        """Return for each column the kernel weight of its map."""
        return stacked(self._of_slots(lambda block, own: block.cells.spread(own), kernel_weights))

    def penalty(self, kernel_weights: Array) -> Array:
        """Return the quadratic penalty of the weight of each column."""
        return stacked(self._of_slots(lambda block, own: block.cells.penalty(own), kernel_weights))

    def collect(self, values: NDArray) -> NDArray:
        """Return for each map the sum over its columns."""
        return stacked(self.of_columns(lambda block, own: block.cells.collect(own), values))

    def keep_maps(self, kept: NDArray[np.bool_]) -> Operator:
        """Return the operator of some of the maps: cells between stumps are joined.

        Entries of `kept` that are no map are ignored.
        """
        return Operator(tuple(self._of_slots(Block.keep_maps, kept)))

    # Products ---------------------------------------------------------------------------------

    def gather(self, tables: Values) -> Values:
        """Return the sum over the groups of each row's table entries."""

        def own_scores(block: Block, own: Values) -> Values:
            return block.codes_for(own.shape[1]).gather(own)

        return sum_in_order(self.of_columns(own_scores, tables))

    def forward(self, weights: Values) -> Values:
        """Return Z @ weights, of shape (n_rows, n_columns)."""

        def own_scores(block: Block, own: Values) -> Values:
            return block.codes_for(own.shape[1]).gather(block.cells.tables(own))

        return sum_in_order(self.of_columns(own_scores, weights))

    def adjoint(self, residuals: Values) -> Values:
        """Return Z.T @ residuals, of shape (n_cells, n_columns); order-free."""
        return self.adjoint_and_total(residuals)[0]

    def adjoint_and_total(self, residuals: Values) -> tuple[Values, Values]:
        """Return Z.T @ residuals and the sum of the residuals; order-free."""
        integers, unit = to_fixed_point(residuals)
        pulls = [block.cells.gradient(sums) for block, sums in self._histograms(integers)]
        return stacked(pulls) * unit, total_of(integers, unit)

    def mass(self, integers: Values) -> Values:
        """Return the sum over the rows right of each stump, or in each cell, exactly."""
        return stacked([block.cells.mass(sums) for block, sums in self._histograms(integers)])

    def products(self, weights: Values) -> tuple[Values, Values, Values, Values]:
        """Return products of columns of Z that the preconditioner needs, for these weights of rows.

        They are the sum of the weights, and the products of each column with the constant one,
        with itself, and with the one to its left, in which it is nested.
        """
        integers, unit = to_fixed_point(weights)
        total = total_of(integers, unit)
        found = [
            block.cells.products(sums, unit, total) for block, sums in self._histograms(integers)
        ]
        mean, diagonal, neighbour = (stacked(kind) for kind in zip(*found, strict=True))
        return total, mean, diagonal, neighbour

    def _histograms(self, integers: Values) -> list[tuple[Block, Values]]:
        n_columns = integers.shape[1]
        return [(block, block.codes_for(n_columns).histogram(integers)) for block in self.blocks]

    # Rows -------------------------------------------------------------------------------------

    def take(self, rows: Values) -> Operator:
        """Return the operator on some of the rows."""
        return self._with_codes(lambda block: block.codes.take(rows))

    def narrowed(self) -> Operator:
        """Return the operator for passes of few columns only, in less memory."""
        return self._with_codes(lambda block: block.narrow_codes)

    def take_narrow(self, rows: NDArray[np.intp]) -> Operator:
        """Return the operator on some of the rows, for passes of few columns only."""
        return self._with_codes(lambda block: block.narrow_codes.take(rows))

    def collected(self) -> Operator:
        """Return the operator with codes in memory."""
        return self._with_codes(lambda block: block.codes.dense())

    def forget_narrow(self) -> None:
        """Free the bundled codes; they are made again when needed."""
        for block in self.blocks:
            block.__dict__.pop("narrow_codes", None)

    # Matrices, for few rows -------------------------------------------------------------------

    def dense(self) -> Array:
        """Return Z itself, of shape (n_rows, n_cells); zero columns where there is no map."""
        matrices = [block.cells.columns(block.codes.dense()) for block in self.blocks]
        return np.concatenate(matrices, axis=1)

    def signed(self, signs: Array) -> Array:
        """Return the maps times the signs of their columns, of shape (n_rows, n_slots)."""

        def own_maps(block: Block, own: Array) -> Array:
            return block.cells.signed(block.codes.dense(), own)

        return np.concatenate(self.of_columns(own_maps, signs), axis=1)

    def gram(self, kernel_weights: Array) -> Array:
        """Return Z diag(1 / penalty) Z', of shape (n_rows, n_rows)."""

        def own_gram(block: Block, own: Array) -> Array:
            return block.cells.gram(block.codes.dense(), own)

        return sum_in_order(self._of_slots(own_gram, kernel_weights))

    # Blocks -----------------------------------------------------------------------------------

    def _with_codes(self, codes_of: Callable[[Block], Codes]) -> Operator:
        return Operator(tuple(Block(codes_of(block), block.cells) for block in self.blocks))

    def _of_slots(self, function: Callable, values: Values) -> list:
        """Apply a function to each block and its own entries, one for each slot."""
        return self._of_pieces(function, values, [block.cells.n_slots for block in self.blocks])

    def of_columns(self, function: Callable, values: Values) -> list:
        """Apply a function to each block and its own entries, one for each column."""
        return self._of_pieces(function, values, [block.cells.n_cells for block in self.blocks])

    def _of_pieces(self, function: Callable, values: Values, sizes: Sequence[int]) -> list:
        pieces = (values[start:stop] for start, stop in pairwise(np.cumsum([0, *sizes])))
        return [function(*pair) for pair in zip(self.blocks, pieces, strict=True)]


def operator_of(codes: Codes, cells: Ladder | FreeCells) -> Operator:
    """Return the operator of one family of maps."""
    return Operator((Block(codes, cells),))


def stacked(pieces: Sequence[Values]) -> Values:
    """Put arrays one below the other."""
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if is_numpy(pieces[0]) else namespace(pieces[0]).concat(pieces)


def sum_in_order(pieces: Sequence[Values]) -> Values:
    """Add up arrays in their order, in place of the first."""
    total = pieces[0]
    for piece in pieces[1:]:
        total += piece
    return total

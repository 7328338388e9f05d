"""The signed maps on the pairs of Step 1 as a matrix on a device.

There are tens of thousands of pairs at most, so that the matrix fits, and reading it once
is the fastest way to multiply with it. Its entries are 0, +1 and -1 for stumps, exact in
bfloat16, and between for ferns, which are fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbkl.cells import Block, FreeCells, Ladder, Operator, stacked
from mbkl.engine.arrays import Values, index_for, to_host
from mbkl.extras import require

if TYPE_CHECKING:
    from mbkl.learn.kernel_weights import Pairs

# bfloat16 pieces that hold a vector to float32 precision.
_PIECES = 3
_BLOCK_MAPS = 4_096


@dataclass(frozen=True)
class DevicePairs:
    """The signed maps S on pairs, transposed: a line per map."""

    matrices: tuple[Values, ...]  # (n_slots, n_pairs): those of each family
    families: tuple[Ladder | FreeCells, ...]  # how the maps hang together

    @classmethod
    def of(cls, operator: Operator, pairs: Pairs, signs: Values) -> DevicePairs:
        """Form the matrix of some pairs."""
        rows, classes = operator.to_device(pairs.rows), operator.to_device(pairs.classes)
        matrices = operator.of_columns(lambda block, own: _signed(block, rows, classes, own), signs)
        return cls(tuple(matrices), tuple(block.cells for block in operator.blocks))

    @property
    def n_columns(self) -> int:
        return sum(len(matrix) for matrix in self.matrices)

    @property
    def longest_chain(self) -> int:
        return max(int(np.diff(cells.offsets).max(initial=1)) for cells in self.families)

    @property
    def is_map(self) -> NDArray[np.bool_]:
        return np.concatenate([cells.is_map for cells in self.families])

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which maps are nested in the one to their left: no fern is."""
        return np.concatenate([cells.collect(cells.is_chained) > 0 for cells in self.families])

    @property
    def is_signed(self) -> NDArray[np.bool_]:
        return np.concatenate([to_host(matrix.any(1)) for matrix in self.matrices])

    def to_device(self, array, dtype=None) -> Values:
        return require("torch", "gpu").as_tensor(array, device=self.matrices[0].device)

    def forward(self, theta: Values) -> Values:
        total, start = 0.0, 0
        for matrix in self.matrices:
            total = total + _product(matrix.t(), theta[start : start + len(matrix)])
            start += len(matrix)
        return total

    def adjoint(self, residuals: Values) -> Values:
        return stacked([_product(matrix, residuals) for matrix in self.matrices])

    def adjoint_and_total(self, residuals: Values) -> tuple[Values, Values]:
        return self.adjoint(residuals), residuals.sum(axis=0)

    def products(self, weights: Values) -> tuple[Values, Values, Values, Values]:
        pieces = [_own_products(matrix, weights) for matrix in self.matrices]
        diagonal, neighbour = (stacked(list(column)) for column in zip(*pieces, strict=True))
        neighbour[index_for(~self.is_chained, neighbour)] = 0.0
        return weights.sum(axis=0), self.adjoint(weights), diagonal, neighbour

    def keep_maps(self, kept: NDArray[np.bool_]) -> DevicePairs:
        """Return the matrix of some of the maps."""
        bounds = np.cumsum([len(matrix) for matrix in self.matrices])[:-1]
        kept_maps = [
            cells.keep_lines(matrix, own)
            for matrix, cells, own in zip(
                self.matrices, self.families, np.split(kept, bounds), strict=True
            )
        ]
        matrices, families = zip(*kept_maps, strict=True)
        return DevicePairs(matrices, families)


def _own_products(matrix: Values, weights: Values) -> tuple[Values, Values]:
    """Return the products of each map with itself and with the one to its left."""
    diagonal, neighbour = weights.new_zeros((2, len(matrix), 1))
    for start in range(0, len(matrix), _BLOCK_MAPS):
        # One line before the block, for its first neighbour.
        block = matrix[max(start - 1, 0) : start + _BLOCK_MAPS]
        first = min(start, 1)
        diagonal[start : start + _BLOCK_MAPS] = _product(block[first:] ** 2, weights)
        neighbour[max(start, 1) : start + _BLOCK_MAPS] = _product(block[1:] * block[:-1], weights)
    return diagonal, neighbour


def _product(left: Values, right: Values) -> Values:
    """Return left @ right to float32 precision."""
    torch = require("torch", "gpu")
    if left.dtype != torch.bfloat16:
        return (left @ right.to(left.dtype)).double()
    # A product of eight columns: pieces of the vector, whose sum it is.
    columns = left.new_zeros((right.shape[0], 8))
    rest = right[:, 0].double()
    for number in range(_PIECES):
        columns[:, number] = rest
        rest = rest - columns[:, number]
    if left.is_cuda:
        product = torch.mm(left, columns, out_dtype=torch.float32)
    else:
        product = left.float() @ columns.float()
    return product.double().sum(1, keepdim=True)


def _signed(block: Block, rows: Values, classes: Values, signs: Values) -> Values:
    """Return the value of each slot on each pair."""
    codes: Values = block.codes
    values = codes.values[:, rows]
    lines = [
        block.cells.signed_lines(values, classes, signs, slots)
        for slots in np.split(
            np.arange(block.cells.n_slots), range(_BLOCK_MAPS, block.cells.n_slots, _BLOCK_MAPS)
        )
    ]
    return stacked(lines)

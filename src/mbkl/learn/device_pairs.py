"""The signed maps on the pairs of Step 1 as a matrix on a device.

There are tens of thousands of pairs at most, so that the matrix fits, and reading it once
is the fastest way to multiply with it. Its entries are 0, +1 and -1 for stumps, exact in
bfloat16, and between for ferns, which are fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.codes import coarsening
from mbkl.engine.namespace import Values, index_for, to_host
from mbkl.extras import require
from mbkl.learn.operator import AnyOperator, JointOperator, MapOperator, stacked
from mbkl.learn.pairs import Pairs
from mbkl.learn.tables import Cells, Ladder

# bfloat16 pieces that hold a vector to float32 precision.
_PIECES = 3
_BLOCK_MAPS = 4_096


@dataclass(frozen=True)
class DevicePairs:
    """The signed maps S on pairs, transposed: a line per map.

    Parameters
    ----------
    matrices : tuple of tensors of shape (n_slots, n_pairs)
        Those of each family.
    families : tuple of Ladder or Cells
        How the maps hang together.
    """

    matrices: tuple[Values, ...]
    families: tuple[Ladder | Cells, ...]

    in_lockstep = False

    @classmethod
    def of(cls, operator: AnyOperator, pairs: Pairs, signs: Values) -> DevicePairs:
        """Form the matrix of some pairs."""
        parts = operator.parts if isinstance(operator, JointOperator) else (operator,)
        bounds = np.cumsum([0] + [part.n_columns for part in parts])
        rows, classes = operator.to_device(pairs.rows), operator.to_device(pairs.classes)
        matrices = tuple(
            _signed(part, rows, classes, signs[bounds[k] : bounds[k + 1]])
            for k, part in enumerate(parts)
        )
        return cls(matrices, tuple(part.cells for part in parts))

    @property
    def n_columns(self) -> int:
        return sum(len(matrix) for matrix in self.matrices)

    @property
    def longest_chain(self) -> int:
        return max(int(np.diff(cells.offsets).max(initial=1)) for cells in self.families)

    @property
    def is_map(self) -> NDArray[np.bool_]:
        return np.concatenate([cells.is_map for cells in self.families])

    def thinned(self, n_maps: int) -> NDArray[np.bool_]:
        """Return all maps: a device is fast at many."""
        return self.is_map

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which maps are nested in the one to their left: no fern is."""
        return np.concatenate(
            [
                cells.is_chained if isinstance(cells, Ladder) else np.zeros(cells.n_slots, bool)
                for cells in self.families
            ]
        )

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
        parts = [
            _keep(matrix, cells, own)
            for matrix, cells, own in zip(
                self.matrices, self.families, np.split(kept, bounds), strict=True
            )
        ]
        return DevicePairs(tuple(part[0] for part in parts), tuple(part[1] for part in parts))


def _keep(matrix: Values, cells: Ladder | Cells, kept) -> tuple[Values, Ladder | Cells]:
    """Return some maps of one family."""
    chosen = np.flatnonzero(kept & cells.is_map)
    taken = matrix[index_for(chosen, matrix)]
    if isinstance(cells, Cells):
        sizes = np.diff(cells.offsets)[chosen]
        return taken, Cells(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
    ladder = Ladder(coarsening(cells.offsets, kept[cells.is_map]).offsets)
    lines = taken.new_zeros((ladder.n_slots, taken.shape[1]))
    lines[index_for(np.flatnonzero(ladder.is_map), lines)] = taken
    return lines, ladder


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


def _signed(part: MapOperator, rows: Values, classes: Values, signs: Values) -> Values:
    """Return the value of each slot on each pair."""
    torch = require("torch", "gpu")
    cells, codes = part.cells, part.plain_codes
    of_ferns = isinstance(cells, Cells)
    signs = signs.to(torch.float32 if of_ferns else torch.bfloat16)
    lines = signs.new_zeros((cells.n_slots, rows.shape[0]))
    own: Values = codes.values[:, rows]
    for start in range(0, cells.n_slots, _BLOCK_MAPS):
        block = np.arange(start, min(start + _BLOCK_MAPS, cells.n_slots))
        place = slice(start, start + block.size)
        if of_ferns:
            found = own[place].long() + index_for(cells.offsets[block], own)[:, None]
            lines[place] = signs[found, classes]
            continue
        group = cells.group[block]
        number = index_for(block - cells.offsets[group], own)[:, None]
        right = own[index_for(group, own)] >= number
        lines[place] = (right.to(signs.dtype) * 2 - 1) * signs[place][:, classes]
    return lines

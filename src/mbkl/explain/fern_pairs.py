"""How much two features of a fern tell together.

A feature gives one of few pieces, its steps, whatever the row. So the partial dependences of a
feature, and of two of them, are small tables, and rows look up in these what the pair adds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.explain.fern_games import Array, FernTables, partial_dependences, same_fern


def add_pair_effects(
    total: Array,
    tables: FernTables,
    block: range,
    position: NDArray[np.intp],
    rows: NDArray[np.float32],
    background: NDArray[np.float32],
) -> None:
    """Add the joint partial dependences of each two features less those of both.

    Total is of shape (n, n, n_rows, n_columns); of a pair, the place whose first index is the
    smaller feature's is added to. Position is the place of each feature in total, or -1.
    """
    first_piece, last_piece = tables.bounds[[block.start, block.stop]]
    starts = tables.starts[first_piece:last_piece]
    place = position[tables.features[starts]]
    wanted = np.flatnonzero(place >= 0)
    place, fern = place[wanted], tables.fern[starts[wanted]] - block.start
    left, right = same_fern(fern, fern, len(block))
    left, right = left[left < right], right[left < right]
    if not left.size:
        return
    steps = _Steps(tables, block, first_piece + wanted, fern, background)
    cell = steps.cell(left, right, tables.row_steps(rows, block)[wanted])
    n, n_rows = total.shape[1:3]
    target = (n * place[left] + place[right])[:, None] * n_rows + np.arange(n_rows)
    collect = sparse.coo_array(
        (np.ones(cell.size), (target.ravel(), cell.ravel())),
        shape=(n * n * n_rows, len(steps.effects)),
    )
    total += (collect @ steps.effects).reshape(total.shape)


class _Steps:
    """The steps of some pieces, and what each two of different pieces add together."""

    def __init__(self, tables: FernTables, block: range, pieces, fern, background) -> None:
        first_step = tables.steps.first
        size = np.diff(first_step)[pieces]
        self.first = np.append(0, np.cumsum(size))
        self.piece = np.repeat(np.arange(pieces.size), size)
        step = np.arange(self.piece.size) - self.first[self.piece]
        value = tables.steps.values[first_step[pieces][self.piece] + step]
        own, mask = fern[self.piece], tables.masks[pieces][self.piece]

        left, right = same_fern(own, own, len(block))
        later = self.piece[left] < self.piece[right]
        left, right = left[later], right[later]
        self.start = np.searchsorted(left, np.arange(self.piece.size))
        n_ferns, n_steps = len(block), self.piece.size
        nothing = np.zeros(n_ferns, dtype=np.uint64)
        means = partial_dependences(
            tables,
            block,
            tables.answers(background, block),
            np.concatenate([np.arange(n_ferns), own, own[left]]),
            np.concatenate([nothing, mask, mask[left] | mask[right]]),
            np.concatenate([nothing, value, value[left] | value[right]]),
        )
        nobody, alone, together = np.split(means, [n_ferns, n_ferns + n_steps])
        self.effects = together - alone[left] - alone[right] + nobody[own[left]]

    def cell(self, left, right, steps: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return where in the effects two pieces are, by the steps of the rows in each."""
        step = self.first[left, None] + steps[left]
        after = self.first[left + 1][:, None]
        return self.start[step] + self.first[right, None] + steps[right] - after

"""The compiled loops of the games of ferns.

Their twin is `share_numpy` in `fern_shares`. Arguments marked OUT are written, all others
are only read.
"""

from __future__ import annotations

import numpy as np

from mbkl.engine.loops import jit
from mbkl.explain.fern_shares import MOST_EXACT, shapley

_MOST_COALITIONS = 2**MOST_EXACT
# By number of players, player and coalition: how much the coalition's value counts.
_WEIGHTS = np.zeros((MOST_EXACT + 1, MOST_EXACT, _MOST_COALITIONS))
for _size in range(1, MOST_EXACT + 1):
    _WEIGHTS[_size, :_size, : 2**_size] = shapley(_size).weights


@jit
def share(
    sizes, masks, factors, shifts, raw, numbers, first, tables, row_starts, rows,
    starts, others, masses, shares, start, stop,
):  # fmt: skip
    """OUT shares of the answers to ferns start to stop: mean Shapley values.

    Every pair of a row and one of the background is a game of the players that differ. A
    share is a weighted sum of table entries: the weights are added up over all games first.
    """
    n_columns, width = tables.shape[1], masks.shape[1]
    moves, players = np.empty(width, dtype=np.uint64), np.empty(width, dtype=np.int64)
    cells = np.empty(_MOST_COALITIONS, dtype=np.uint64)
    for fern in range(start, stop):
        factor, shift, own = factors[fern], shifts[fern], numbers[raw[fern] : raw[fern + 1]]
        table = tables[first[fern] : first[fern + 1]]
        weights = np.empty((width, len(table)))
        for answer in range(row_starts[fern], row_starts[fern + 1]):
            weights[:] = 0.0
            for other in range(starts[fern], starts[fern + 1]):
                nobody, size = others[other] * factor, 0
                for player in range(sizes[fern]):
                    mask = masks[fern, player]
                    here, there = rows[answer] & mask, others[other] & mask
                    if here != there:
                        moves[size] = (here - there) * factor
                        players[size] = player
                        size += 1
                arguments = (nobody, moves[:size], players[:size], shift, own, masses[other])
                if 0 < size <= MOST_EXACT:
                    _add_all(*arguments, cells, weights)
                elif size:
                    _go_round(*arguments, weights)
            shares[answer] = 0.0
            for player in range(width):
                for cell in range(len(table)):
                    weight = weights[player, cell]
                    for column in range(n_columns if weight != 0.0 else 0):
                        shares[answer, player, column] += weight * table[cell, column]


@jit
def _add_all(nobody, moves, players, shift, numbers, mass, cells, weights):
    """OUT weights: those of the cells of all coalitions, added; cells is room to work in.

    The players in a coalition are the bits of its number.
    """
    size, n_coalitions = moves.size, 1
    cells[0] = nobody
    for move in moves:
        for coalition in range(n_coalitions):
            cells[n_coalitions + coalition] = cells[coalition] + move
        n_coalitions *= 2
    for coalition in range(n_coalitions):
        cells[coalition] = numbers[cells[coalition] >> shift]
    for player in range(size):
        own = weights[players[player]]
        for coalition in range(n_coalitions):
            own[cells[coalition]] += mass * _WEIGHTS[size, player, coalition]


@jit
def _go_round(nobody, moves, players, shift, numbers, mass, weights):
    """OUT weights: those of the orders that go round a circle of the players, added."""
    size = moves.size
    mass /= 2.0 * size
    everybody, empty = numbers[(nobody + moves.sum()) >> shift], numbers[nobody >> shift]
    for first in range(size):
        weights[players[first], everybody] += 2.0 * mass
        weights[players[first], empty] -= 2.0 * mass
        number, last = nobody, first
        for _ in range(size - 1):
            number += moves[last]
            cell = numbers[number >> shift]
            after = last + 1 if last + 1 < size else 0
            weights[players[first], cell] += mass
            weights[players[last], cell] += mass
            weights[players[first - 1], cell] -= mass
            weights[players[after], cell] -= mass
            last = after

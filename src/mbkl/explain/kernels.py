"""Numba kernel of the games of ferns, made like those in `engine.kernels`.

Its twin is `share_numpy` in `fern_shares`. Arguments marked OUT are written, all others
are only read.
"""

from __future__ import annotations

import numpy as np

from mbkl.engine.kernels import _jit
from mbkl.explain.coalitions import MOST_EXACT, shapley

_MOST_COALITIONS = 2**MOST_EXACT
# By number of players and coalition: how much more its value counts for players in it
# than for others.
_SPREAD = np.zeros((MOST_EXACT + 1, _MOST_COALITIONS))
for _size in range(1, MOST_EXACT + 1):
    _SPREAD[_size, : 2**_size] = np.ptp(shapley(_size).weights, axis=0)


@_jit
def share(ferns, pieces, starts, others, masses, shifts, offsets, tables, shares, start, stop):
    """OUT shares[start:stop]: mean Shapley values of answers against all others of the fern.

    Pieces are multiplied by the factors of their ferns, so that a sum of them needs but a
    shift to be a raw cell. Tables are those of raw cells, by column.
    """
    n_columns, width = tables.shape[0], pieces.shape[1]
    moves, players = np.empty(width, dtype=np.uint64), np.empty(width, dtype=np.int64)
    cells, values = np.empty(_MOST_COALITIONS, dtype=np.uint64), np.empty(_MOST_COALITIONS)
    gains = np.empty(width)
    for answer in range(start, stop):
        fern, result = ferns[answer], shares[answer]
        shift, first, last = shifts[fern], offsets[fern], offsets[fern + 1]
        result[:] = 0.0
        for other in range(starts[fern], starts[fern + 1]):
            size, nobody = _differ(pieces[answer], others[other], moves, players)
            if 0 < size <= MOST_EXACT:
                _look_up(nobody, moves[:size], shift, cells)
            for column in range(n_columns if size else 0):
                table = tables[column, first:last]
                if size <= MOST_EXACT:
                    _fold(cells, table, values, gains[:size])
                else:
                    _go_round(nobody, moves[:size], shift, table, gains[:size])
                for player in range(size):
                    result[players[player], column] += masses[other] * gains[player]


@_jit
def _differ(own, other, moves, players):
    """OUT moves and players: where pieces differ. Return how many, and the other's sum."""
    size, nobody = 0, np.uint64(0)
    for player in range(own.size):
        nobody += other[player]
        if own[player] != other[player]:
            moves[size] = own[player] - other[player]
            players[size] = player
            size += 1
    return size, nobody


@_jit
def _look_up(nobody, moves, shift, cells):
    """OUT cells of all coalitions: the players in one are the bits of its number."""
    cells[0] = nobody
    n_coalitions = 1
    for move in moves:
        for coalition in range(n_coalitions):
            cells[n_coalitions + coalition] = cells[coalition] + move
        n_coalitions *= 2
    for coalition in range(n_coalitions):
        cells[coalition] >>= shift


@_jit
def _fold(cells, table, values, gains):
    """OUT gains: Shapley values, from the cells of all coalitions."""
    size = gains.size
    half = 1 << size
    for coalition in range(half):
        values[coalition] = _SPREAD[size, coalition] * table[cells[coalition]]
    # What is taken from all players alike follows from the sum that they must get.
    surplus = table[cells[0]] - table[cells[half - 1]]
    for player in range(size - 1, -1, -1):
        half //= 2
        with_player = 0.0
        for coalition in range(half):
            value = values[half + coalition]
            with_player += value
            values[coalition] += value
        gains[player] = with_player
        surplus += with_player
    gains -= surplus / size


@_jit
def _go_round(nobody, moves, shift, table, gains):
    """OUT gains: means over the orders that go round a circle of the players."""
    size = moves.size
    gains[:] = 2.0 * (table[(nobody + moves.sum()) >> shift] - table[nobody >> shift])
    for first in range(size):
        number, last = nobody, first
        for _ in range(size - 1):
            number += moves[last]
            value = table[number >> shift]
            after = last + 1 if last + 1 < size else 0
            gains[first] += value
            gains[last] += value
            gains[first - 1] -= value
            gains[after] -= value
            last = after
    gains /= 2.0 * size

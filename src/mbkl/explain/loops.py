"""The compiled loops of the games of ferns.

Their twins are `share_numpy` and `means_numpy` in `fern_games`. Arguments marked OUT are added to
or written, all others are only read.
"""

from __future__ import annotations

import numpy as np

from mbkl.engine.loops import jit
from mbkl.explain.fern_games import MOST_EXACT, shapley

_MOST_COALITIONS = 2**MOST_EXACT
# With so few columns entries are shared out game by game, else the weights of cells are.
_FEW_COLUMNS = 8
# Answers whose weights meet the table together.
_ANSWERS_AT_ONCE = 16
# By number of players, player and coalition: how much the coalition's value counts.
_WEIGHTS = np.zeros((MOST_EXACT + 1, MOST_EXACT, _MOST_COALITIONS))
for _size in range(1, MOST_EXACT + 1):
    _WEIGHTS[_size, :_size, : 2**_size] = shapley(_size).weights
# By number of players and coalition: how much more it counts for one in it than for others.
_IN = _WEIGHTS.max(axis=1) - np.minimum(_WEIGHTS, 0.0).min(axis=1)
# By coalition: its first player.
_FIRST = np.array([max((c & -c).bit_length() - 1, 0) for c in range(_MOST_COALITIONS)])


@jit
def means(
    fern, masks, values, factors, shifts, raw, numbers, first, tables, starts, others, masses,
    found, start, stop,
):  # fmt: skip
    """OUT found: mean table entries of the background, some digits replaced, by question."""
    for question in range(start, stop):
        own, keep = fern[question], ~masks[question]
        for other in range(starts[own], starts[own + 1]):
            number = ((others[other] & keep) | values[question]) * factors[own]
            cell = first[own] + numbers[raw[own] + np.int64(number >> shifts[own])]
            for column in range(tables.shape[1]):
                found[question, column] += masses[other] * tables[cell, column]


@jit
def share(
    sizes, masks, factors, shifts, raw, numbers, first, tables, row_starts, rows,
    starts, others, masses, shares, start, stop,
):  # fmt: skip
    """OUT shares of the answers to ferns start to stop: mean Shapley values.

    Every pair of a row and one of the background is a game of the players that differ. A
    share is a weighted sum of table entries: with many columns, or many players, the weights are
    added up over all games first.
    """
    n_columns, width = tables.shape[1], masks.shape[1]
    moves, players = np.empty(width, dtype=np.uint64), np.empty(width, dtype=np.int64)
    cells = np.empty(_MOST_COALITIONS, dtype=np.uint64)
    values = np.empty(_MOST_COALITIONS)
    n_together = _ANSWERS_AT_ONCE if n_columns > _FEW_COLUMNS else 1
    for fern in range(start, stop):
        factor, shift, own = factors[fern], shifts[fern], numbers[raw[fern] : raw[fern + 1]]
        table = tables[first[fern] : first[fern + 1]]
        by_number = table[own, :_FEW_COLUMNS]
        weights = np.zeros((n_together, width, len(table)))
        for begin in range(row_starts[fern], row_starts[fern + 1], n_together):
            end = min(begin + n_together, row_starts[fern + 1])
            has_weights = False
            for answer in range(begin, end):
                for other in range(starts[fern], starts[fern + 1]):
                    nobody, size = others[other] * factor, 0
                    for player in range(sizes[fern]):
                        mask = masks[fern, player]
                        here, there = rows[answer] & mask, others[other] & mask
                        # Written in any case, kept if they differ: who does cannot be predicted.
                        moves[size] = (here - there) * factor
                        players[size] = player
                        size += here != there
                    if size == 0:
                        continue
                    game = (nobody, size, moves, players, shift, own, masses[other])
                    if size <= MOST_EXACT and n_columns <= _FEW_COLUMNS:
                        _share_out(*game, cells, by_number, values, shares[answer])
                        continue
                    has_weights = True
                    if size <= MOST_EXACT:
                        _add_all(*game, cells, weights[answer - begin])
                    else:
                        _go_round(*game, weights[answer - begin])
            if has_weights:
                added = np.dot(weights.reshape(n_together * width, len(table)), table)
                shares[begin:end] += added.reshape(n_together, width, n_columns)[: end - begin]
                weights[:] = 0.0


@jit
def _raw_cells(nobody, size, moves, shift, cells):
    """OUT raw cells of all coalitions, whose players are the bits of their numbers."""
    n_coalitions = 1 << size
    cells[0] = nobody
    for coalition in range(1, n_coalitions):
        cells[coalition] = cells[coalition & (coalition - 1)] + moves[_FIRST[coalition]]
    for coalition in range(n_coalitions):
        cells[coalition] >>= shift
    return n_coalitions


@jit
def _share_out(nobody, size, moves, players, shift, numbers, mass, cells, table, values, shares):
    """OUT shares: those of one game, added; cells and values are room to work in.

    A player gets the sum of the values of all coalitions with it times _IN, less what is the same
    for all and follows from the sum of the shares. The sums are found for all players by adding
    half of the coalitions to the other: those that differ in the last player alone.
    """
    n_coalitions = _raw_cells(nobody, size, moves, shift, cells)
    for column in range(table.shape[1]):
        half = n_coalitions
        for coalition in range(n_coalitions):
            values[coalition] = _IN[size, coalition] * table[cells[coalition], column]
        too_much = table[cells[0], column] - table[cells[n_coalitions - 1], column]
        for player in range(size - 1, -1, -1):
            half //= 2
            inside = 0.0
            for coalition in range(half):
                inside += values[half + coalition]
                values[coalition] += values[half + coalition]
            shares[players[player], column] += mass * inside
            too_much += inside
        for player in range(size):
            shares[players[player], column] -= mass * too_much / size


@jit
def _add_all(nobody, size, moves, players, shift, numbers, mass, cells, weights):
    """OUT weights: those of the cells of all coalitions, added; cells is room to work in."""
    n_coalitions = _raw_cells(nobody, size, moves, shift, cells)
    for player in range(size):
        own = weights[players[player]]
        for coalition in range(n_coalitions):
            own[numbers[cells[coalition]]] += mass * _WEIGHTS[size, player, coalition]


@jit
def _go_round(nobody, size, moves, players, shift, numbers, mass, weights):
    """OUT weights: those of the orders that go round a circle of the players, added."""
    mass /= 2.0 * size
    everybody, empty = numbers[(nobody + moves[:size].sum()) >> shift], numbers[nobody >> shift]
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
            weights[players[first - 1 if first else size - 1], cell] -= mass
            weights[players[after], cell] -= mass
            last = after

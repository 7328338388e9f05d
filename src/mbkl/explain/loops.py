"""The compiled loops of the games of ferns.

Their twin is `share_numpy` in `fern_shares`. Arguments marked OUT are written, all others
are only read.
"""

from __future__ import annotations

import numpy as np

from mbkl.engine.loops import jit
from mbkl.explain.coalitions import MOST_EXACT, shapley

_MOST_COALITIONS = 2**MOST_EXACT
# A feature can have all stumps of a fern, and one level more than stumps.
_MOST_LEVELS = 65
# By number of players, player and coalition: how much the coalition's value counts.
_WEIGHTS = np.zeros((MOST_EXACT + 1, MOST_EXACT, _MOST_COALITIONS))
# By number of players and coalition: how much more it counts for players in it.
_SPREAD = np.zeros((MOST_EXACT + 1, _MOST_COALITIONS))
for _size in range(1, MOST_EXACT + 1):
    _WEIGHTS[_size, :_size, : 2**_size] = shapley(_size).weights
    _SPREAD[_size, : 2**_size] = np.ptp(shapley(_size).weights, axis=0)


# ---------------------------------------------------------------- few players


@jit
def share_few(
    chosen, sizes, masks, factors, shifts, raw, numbers, first, tables, row_starts, rows,
    starts, others, masses, shares, start, stop,
):  # fmt: skip
    """OUT shares of the answers to ferns chosen[start:stop]: mean Shapley values.

    The mean value of a coalition depends on its own pieces of a row alone. So each is
    computed once for all rows that agree in these, and over those of the background that
    agree in all other pieces.
    """
    n_columns = tables.shape[1]
    folded = np.empty((_MOST_COALITIONS, n_columns))
    for index in range(start, stop):
        fern = chosen[index]
        size, own_masks = sizes[fern], masks[fern]
        n_coalitions = 1 << size
        own = rows[row_starts[fern] : row_starts[fern + 1]]
        other = others[starts[fern] : starts[fern + 1]]
        mass = masses[starts[fern] : starts[fern + 1]]
        cells = numbers[raw[fern] : raw[fern + 1]]
        table = tables[first[fern] : first[fern + 1]]
        kinds, examples, counts = _kinds(own, own_masks, size)
        other_kinds, other_examples, other_counts = _kinds(other, own_masks, size)
        begin = np.zeros(n_coalitions + 1, dtype=np.int64)
        begin[1:] = np.cumsum(counts)
        values = np.zeros((begin[-1], n_columns))
        joint = np.empty(other.size)
        for coalition in range(n_coalitions):
            mask = np.uint64(0)
            for player in range(size):
                if coalition >> player & 1:
                    mask |= own_masks[player]
            rest = n_coalitions - 1 - coalition
            joint[: other_counts[rest]] = 0.0
            for place in range(other.size):
                joint[other_kinds[rest, place]] += mass[place]
            for kind in range(counts[coalition]):
                here = own[examples[coalition, kind]] & mask
                value = values[begin[coalition] + kind]
                for background in range(other_counts[rest]):
                    there = other[other_examples[rest, background]] & ~mask
                    cell = cells[((here | there) * factors[fern]) >> shifts[fern]]
                    for column in range(n_columns):
                        value[column] += joint[background] * table[cell, column]
        for place in range(own.size):
            for coalition in range(n_coalitions):
                value = values[begin[coalition] + kinds[coalition, place]]
                for column in range(n_columns):
                    folded[coalition, column] = value[column]
            shares[row_starts[fern] + place, size:] = 0.0
            _fold(folded, size, shares[row_starts[fern] + place])


@jit
def _kinds(numbers, masks, size):
    """Return for each coalition which numbers agree in its players.

    The kind of each number, an example of each kind, and how many kinds there are.
    """
    n_numbers, n_coalitions = numbers.size, 1 << size
    levels = np.zeros((size, n_numbers), dtype=np.int64)
    for player in range(size):
        for place in range(n_numbers):
            piece = numbers[place] & masks[player]
            while piece:
                piece &= piece - np.uint64(1)
                levels[player, place] += 1
    kinds = np.zeros((n_coalitions, n_numbers), dtype=np.int64)
    examples = np.zeros((n_coalitions, n_numbers), dtype=np.int64)
    counts = np.ones(n_coalitions, dtype=np.int64)
    known = np.full(n_numbers * _MOST_LEVELS, -1)
    for player in range(size):
        for smaller in range(1 << player):
            # The kinds of the coalition without its last player, divided by this one.
            coalition, count = smaller + (1 << player), 0
            for place in range(n_numbers):
                key = kinds[smaller, place] * _MOST_LEVELS + levels[player, place]
                if known[key] < 0:
                    known[key] = count
                    examples[coalition, count] = place
                    count += 1
                kinds[coalition, place] = known[key]
            for kind in range(count):
                place = examples[coalition, kind]
                known[kinds[smaller, place] * _MOST_LEVELS + levels[player, place]] = -1
            counts[coalition] = count
    return kinds, examples, counts


@jit
def _fold(values, size, shares):
    """OUT shares: Shapley values, from the values of all coalitions, which are used up."""
    n_columns, half = values.shape[1], 1 << size
    shares[:size] = 0.0
    # What is taken from all players alike follows from the sum that they must get.
    surplus = values[0] - values[half - 1]
    for coalition in range(half):
        for column in range(n_columns):
            values[coalition, column] *= _SPREAD[size, coalition]
    for player in range(size - 1, -1, -1):
        half //= 2
        for coalition in range(half):
            for column in range(n_columns):
                value = values[half + coalition, column]
                shares[player, column] += value
                values[coalition, column] += value
        surplus += shares[player]
    for player in range(size):
        for column in range(n_columns):
            shares[player, column] -= surplus[column] / size


# ---------------------------------------------------------------- many players


@jit
def share_many(
    chosen, sizes, masks, factors, shifts, raw, numbers, first, tables, row_starts, rows,
    starts, others, masses, shares, start, stop,
):  # fmt: skip
    """OUT shares of the answers to ferns chosen[start:stop]: mean Shapley values.

    Every pair of a row and one of the background is a game of the players that differ. A
    share is a weighted sum of table entries: the weights are added up over all games first.
    """
    n_columns, width = tables.shape[1], masks.shape[1]
    moves, players = np.empty(width, dtype=np.uint64), np.empty(width, dtype=np.int64)
    cells = np.empty(_MOST_COALITIONS, dtype=np.uint64)
    for index in range(start, stop):
        fern = chosen[index]
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

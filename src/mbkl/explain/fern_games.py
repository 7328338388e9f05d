"""Ferns as cooperative games: Shapley values of table entries, and mean entries.

The players of a fern are its features. The value of a coalition, for a row x and a row z
of the background, is the table entry of a row that has the features of the coalition from
x and all others from z. Features on whose stumps x and z agree have a Shapley value of
zero and are skipped. Many rows give the same answers to all stumps of a fern, so only
different answers are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine.arrays import is_fresh
from mbkl.engine.twins import as_float32
from mbkl.maps.ferns import FernMaps

Array = NDArray[np.float64]
Numbers = NDArray[np.uint64]

_FERNS_AT_ONCE = 64
_ENTRIES_AT_ONCE = 250_000
# Up to this many players all coalitions are evaluated: 128 for seven players.
MOST_EXACT = 7


def games_of(ferns: FernMaps, tables: Array, background: NDArray) -> Iterator[FernGames]:
    """Yield the games of a family, a block of ferns at a time."""
    block = np.arange(ferns.n_maps) // _FERNS_AT_ONCE
    for number in np.unique(block):
        kept = block == number
        kept_tables = tables[np.repeat(kept, np.diff(ferns.cell_offsets))]
        yield FernGames(ferns.select(kept), kept_tables, background)


@dataclass(frozen=True)
class Answers:
    """Distinct answers of rows to ferns."""

    # Arrays of shape (n_answers,): the fern of each answer, sorted, the answer, its share of rows.
    fern: NDArray[np.intp]
    numbers: Numbers
    frequencies: Array
    of_rows: NDArray[np.intp]  # (n_ferns, n_rows): index of the answer of each row to each fern


class FernGames:
    """Some ferns, their tables, and the answers of a background.

    The outcomes of a fern's stumps are the bits of an integer, its *number*. The bits of one
    feature are a *piece*, and the number is the sum of its pieces.
    """

    def __init__(self, ferns: FernMaps, tables: Array, background: NDArray) -> None:
        self.ferns = ferns
        # (n_raw_cells, n_columns): the table entry of each raw cell.
        self.tables = tables[np.repeat(ferns.cell_offsets[:-1], ferns.n_raw) + ferns.numbers]
        depths, n_bits = np.diff(ferns.offsets), np.log2(ferns.n_raw).astype(np.int64)
        fern = np.repeat(np.arange(ferns.n_maps), depths)
        place = ferns.offsets[1:][fern] - 1 - np.arange(fern.size)
        self.bits = np.uint64(1) << place.astype(np.uint64)
        # The raw cell of a number is its product with the fern's factor, shifted right.
        self.factors = np.where(depths > n_bits, ferns.factors, np.uint64(1))
        self.shifts = np.where(depths > n_bits, 64 - n_bits, 0).astype(np.uint64)
        self.raw_offsets = ferns.raw_offsets
        # Fern, feature and bits of each piece; bounds[i] is the first piece of fern i.
        order = np.lexsort((ferns.features, fern))
        first = np.flatnonzero(is_fresh(fern[order], ferns.features[order]))
        self.fern, self.players = fern[order[first]], ferns.features[order[first]]
        self.masks = np.bitwise_or.reduceat(self.bits[order], first)
        self.bounds = np.searchsorted(self.fern, np.arange(ferns.n_maps + 1))
        self.background = self.answers(background)

    def numbers(self, X: NDArray) -> Numbers:
        """Return the number of each fern and row, of shape (n_ferns, n_rows)."""
        ferns = self.ferns
        yes = as_float32(X[:, ferns.features]) > ferns.thresholds
        if ferns.sets is not None:
            ferns.sets.answer(X, ferns.features, yes)
        return np.add.reduceat(yes * self.bits, ferns.offsets[:-1], axis=1).T

    def answers(self, X: NDArray) -> Answers:
        """Return the distinct answers of rows."""
        numbers = self.numbers(X)
        fern = np.repeat(np.arange(len(numbers)), numbers.shape[1])
        first, which = distinct(fern, numbers.ravel())
        frequencies = np.bincount(which) / numbers.shape[1]
        of_rows = which.reshape(numbers.shape)
        return Answers(fern[first], numbers.ravel()[first], frequencies, of_rows)

    def cells(self, fern: NDArray[np.intp], numbers: Numbers) -> NDArray[np.intp]:
        """Return indices into `tables`, of the shape of numbers; ferns are broadcast."""
        raw = ((numbers * self.factors[fern]) >> self.shifts[fern]).view(np.int64)
        return self.raw_offsets[fern] + raw

    def means(self, fern: NDArray[np.intp], masks: Numbers, line, values: Numbers) -> Array:
        """Return mean table entries of the background with some bits replaced.

        Each query names a line, an index into `fern` and `masks` (the bits to replace), and the
        values of these bits. The means are of shape (n_queries, n_columns).
        """
        first, which = distinct(line, values)
        line, values = line[first], values[first]
        others = self.background
        query, other = same_fern(fern[line], others.fern, self.ferns.n_maps)
        numbers = (others.numbers[other] & ~masks[line][query]) | values[query]
        cells = self.cells(fern[line][query], numbers)
        bounds = np.searchsorted(query, np.arange(line.size + 1))
        shape = (line.size, len(self.tables))
        mean = sparse.csr_array((others.frequencies[other], cells, bounds), shape=shape)
        return (mean @ self.tables)[which]

    def shapley_values(self, rows: Answers) -> Array:
        """Return the Shapley values of the players for each answer, averaged over the background.

        They are of shape (n_answers, most_players, n_columns).
        """
        others, n_columns = self.background, self.tables.shape[1]
        n_players = np.diff(self.bounds)
        width = int(n_players.max())
        masks = np.zeros((n_players.size, width), dtype=np.uint64)
        masks[np.arange(width) < n_players[:, None]] = self.masks
        here, there = (side.numbers[:, None] & masks[side.fern] for side in (rows, others))
        total = np.zeros((rows.fern.size * width, n_columns))
        left, right = same_fern(rows.fern, others.fern, n_players.size)
        differ = here[left] != there[right]
        n_differ = differ.sum(axis=1)
        for size in range(1, int(n_differ.max(initial=0)) + 1):
            members, weights = shapley(size)
            step = max(1, _ENTRIES_AT_ONCE // (len(members) * n_columns))
            same_size = np.flatnonzero(n_differ == size)
            for start in range(0, same_size.size, step):
                chosen = same_size[start : start + step]
                row, other = left[chosen], right[chosen]
                players = np.nonzero(differ[chosen])[1].reshape(-1, size)
                moves = np.take_along_axis(here[row] - there[other], players, axis=1)
                numbers = np.tile(others.numbers[other], (len(members), 1))
                for move, joined in zip(moves.T, members.T, strict=True):
                    numbers[joined] += move
                # The complement of a coalition has all pieces that the coalition does not have.
                opposite = rows.numbers[row] + others.numbers[other] - numbers
                values = self.tables[self.cells(rows.fern[row], numbers)]
                values -= self.tables[self.cells(rows.fern[row], opposite)]
                gains = weights @ values.reshape(len(values), -1)
                # Pairs are sorted by row, so this block of them changes a short range of answers.
                span = slice(row[0] * width, (row[-1] + 1) * width)
                place = (players + (row - row[0])[:, None] * width).T
                mass = np.broadcast_to(others.frequencies[other], place.shape)
                collect = sparse.csc_array(
                    (mass.ravel(), place.ravel(), np.arange(place.size + 1)),
                    shape=(span.stop - span.start, place.size),
                )
                total[span] += collect @ gains.reshape(-1, n_columns)
        return total.reshape(rows.fern.size, width, n_columns)


def distinct(lines: NDArray, numbers: NDArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the index of one entry of each distinct (line, number), and the pair of each entry.

    >>> distinct(np.array([0, 1, 0, 0]), np.array([7, 7, 7, 5]))
    (array([3, 0, 1]), array([1, 2, 1, 0]))
    """
    order = np.lexsort((numbers, lines))
    fresh = is_fresh(lines[order], numbers[order])
    which = np.empty(order.size, dtype=np.intp)
    which[order] = np.cumsum(fresh) - 1
    return order[fresh], which


def same_fern(left, right, n_ferns: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of all pairs of a left and a right entry with the same fern.

    Right entries are sorted by fern.

    >>> same_fern(np.array([0, 1]), np.array([0, 1, 1]), 2)
    (array([0, 1, 1]), array([0, 1, 2]))
    """
    n_right = np.bincount(right, minlength=n_ferns)
    first = np.cumsum(n_right) - n_right
    repeats = n_right[left]
    position = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return np.repeat(np.arange(left.size), repeats), np.repeat(first[left], repeats) + position


@lru_cache(maxsize=128)
def shapley(n_players: int) -> tuple[NDArray[np.bool_], Array]:
    """Return the coalitions of a game and the weights of their values in Shapley values.

    Members are of shape (n_coalitions, n_players), weights of shape (n_players, n_coalitions).
    `weights @ values` are the Shapley values, where `values` are those of the coalitions less those
    of their complements. A complement has the negative weights of its coalition, because every
    order also occurs reversed; so only the coalitions without the first player are returned.

    The Shapley value is the mean, over all orders in which the players can join, of what
    each adds to those before it. With more than seven players the mean is over the orders
    that go round a circle of them, from every start and in both directions: each player
    then has each position equally often. In either case the values sum to the value of all
    players less that of none, and a player who never adds anything gets zero.
    """
    players = range(n_players)
    if n_players <= MOST_EXACT:
        orders = list(permutations(players))
    else:
        circle = [(*players[start:], *players[:start]) for start in players]
        orders = [*circle, *(order[::-1] for order in circle)]
    weights: dict[int, Array] = defaultdict(lambda: np.zeros(n_players))
    for order in orders:
        coalition = 0
        for player in order:
            weights[coalition][player] -= 1.0
            coalition |= 1 << player
            weights[coalition][player] += 1.0
    half = [coalition for coalition in weights if not coalition & 1]
    members = [[coalition >> player & 1 for player in players] for coalition in half]
    return np.array(members, dtype=bool), np.array([weights[each] for each in half]).T / len(orders)

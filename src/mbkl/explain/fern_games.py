"""Ferns as games: how table entries are divided among features, and mean entries.

The players of a fern are the features it joins. The value of a coalition, for a row x
and a row z of the background, is the table entry of a row that has the features of the
coalition from x and all others from z. Players in whose thresholds x and z agree add
nothing, so only the few others have to be looked at; and many rows give the same
answers to all stumps of a fern, so only different ones have to be compared.
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
# Up to here all coalitions are looked at; there are 128 of seven players.
MOST_EXACT = 7


def games_of(ferns: FernMaps, tables: Array, background: NDArray) -> Iterator[FernGames]:
    """Yield the games of a family, those of some of its ferns at a time."""
    block = np.arange(ferns.n_maps) // _FERNS_AT_ONCE
    for number in np.unique(block):
        kept = block == number
        own = tables[np.repeat(kept, np.diff(ferns.cell_offsets))]
        yield FernGames(ferns.select(kept), own, background)


@dataclass(frozen=True)
class Answers:
    """Different answers of rows to ferns."""

    # (n_answers,): the fern, in order, and the number of each answer, and its share of the rows
    fern: NDArray[np.intp]
    numbers: Numbers
    shares: Array
    place: NDArray[np.intp]  # (n_ferns, n_rows): the answer of each row to each fern


class FernGames:
    """Some ferns, their tables, and the answers of a background.

    The outcomes of a fern's stumps are the digits of a number. Those of one feature are a *piece*
    of it, and the sum of the pieces is the number.
    """

    def __init__(self, ferns: FernMaps, tables: Array, background: NDArray) -> None:
        self.ferns = ferns
        # (n_raw_cells, n_columns): a table entry for each number before cells are renumbered.
        self.tables = tables[np.repeat(ferns.cell_offsets[:-1], ferns.n_raw) + ferns.numbers]
        depths, n_bits = np.diff(ferns.offsets), np.log2(ferns.n_raw).astype(np.int64)
        fern = np.repeat(np.arange(ferns.n_maps), depths)
        place = ferns.offsets[1:][fern] - 1 - np.arange(fern.size)
        self.digits = np.uint64(1) << place.astype(np.uint64)
        # By which the number of each fern becomes that of a raw cell.
        self.factors = np.where(depths > n_bits, ferns.factors, np.uint64(1))
        self.shifts = np.where(depths > n_bits, 64 - n_bits, 0).astype(np.uint64)
        self.raw_offsets = ferns.raw_offsets
        # Of each piece: its fern, its feature and all its digits; bounds are the first of a fern.
        order = np.lexsort((ferns.features, fern))
        first = np.flatnonzero(is_fresh(fern[order], ferns.features[order]))
        self.fern, self.players = fern[order[first]], ferns.features[order[first]]
        self.masks = np.bitwise_or.reduceat(self.digits[order], first)
        self.bounds = np.searchsorted(self.fern, np.arange(ferns.n_maps + 1))
        self.background = self.answers(background)

    def numbers(self, X: NDArray) -> Numbers:
        """Return what rows answer to each fern, (n_ferns, n_rows)."""
        ferns = self.ferns
        yes = as_float32(X[:, ferns.features]) > ferns.thresholds
        if ferns.sets is not None:
            ferns.sets.answer(X, ferns.features, yes)
        return np.add.reduceat(yes * self.digits, ferns.offsets[:-1], axis=1).T

    def answers(self, X: NDArray) -> Answers:
        """Return the different answers of rows."""
        numbers = self.numbers(X)
        fern = np.repeat(np.arange(len(numbers)), numbers.shape[1])
        first, which = distinct(fern, numbers.ravel())
        shares = np.bincount(which) / numbers.shape[1]
        return Answers(fern[first], numbers.ravel()[first], shares, which.reshape(numbers.shape))

    def cells(self, fern: NDArray[np.intp], numbers: Numbers) -> NDArray[np.intp]:
        """Return places in the tables, of the shape of numbers; ferns are broadcast."""
        raw = ((numbers * self.factors[fern]) >> self.shifts[fern]).view(np.int64)
        return self.raw_offsets[fern] + raw

    def means(self, fern: NDArray[np.intp], masks: Numbers, line, values: Numbers) -> Array:
        """Return mean table entries of the background with some digits replaced.

        A line is a fern and a mask that says which of its digits are replaced; each question is
        a line and by what. The means are of shape (n_questions, n_columns).
        """
        first, which = distinct(line, values)
        line, values = line[first], values[first]
        others = self.background
        question, other = same_fern(fern[line], others.fern, self.ferns.n_maps)
        numbers = (others.numbers[other] & ~masks[line][question]) | values[question]
        cells = self.cells(fern[line][question], numbers)
        bounds = np.searchsorted(question, np.arange(line.size + 1))
        shape = (line.size, len(self.tables))
        mean = sparse.csr_array((others.shares[other], cells, bounds), shape=shape)
        return (mean @ self.tables)[which]

    def shares(self, rows: Answers) -> Array:
        """Return the mean over the background of what each player gets, for each answer of rows.

        The shares are of shape (n_answers, most_players, n_columns).
        """
        others, n_columns = self.background, self.tables.shape[1]
        n_players = np.diff(self.bounds)
        width = int(n_players.max())
        masks = np.zeros((n_players.size, width), dtype=np.uint64)
        masks[np.arange(width) < n_players[:, None]] = self.masks
        here, there = (side.numbers[:, None] & masks[side.fern] for side in (rows, others))
        shares = np.zeros((rows.fern.size * width, n_columns))
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
                # Where a coalition has a piece of the row, its complement has the other's.
                opposite = rows.numbers[row] + others.numbers[other] - numbers
                values = self.tables[self.cells(rows.fern[row], numbers)]
                values -= self.tables[self.cells(rows.fern[row], opposite)]
                gains = weights @ values.reshape(len(values), -1)
                # Pairs come in the order of the rows' answers: only a few are concerned.
                own = slice(row[0] * width, (row[-1] + 1) * width)
                place = (players + (row - row[0])[:, None] * width).T
                mass = np.broadcast_to(others.shares[other], place.shape)
                collect = sparse.csc_array(
                    (mass.ravel(), place.ravel(), np.arange(place.size + 1)),
                    shape=(own.stop - own.start, place.size),
                )
                shares[own] += collect @ gains.reshape(-1, n_columns)
        return shares.reshape(rows.fern.size, width, n_columns)


def distinct(lines: NDArray, numbers: NDArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return an entry of each different pair of a line and a number, and the pair of each entry.

    >>> distinct(np.array([0, 1, 0, 0]), np.array([7, 7, 7, 5]))
    (array([3, 0, 1]), array([1, 2, 1, 0]))
    """
    order = np.lexsort((numbers, lines))
    fresh = is_fresh(lines[order], numbers[order])
    which = np.empty(order.size, dtype=np.intp)
    which[order] = np.cumsum(fresh) - 1
    return order[fresh], which


def same_fern(left, right, n_ferns: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all pairs of an entry on the left and one on the right with the same fern.

    Those on the right are sorted by fern.

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
    """Return how a game is shared among its players: by which coalitions, and their weights.

    Members are of shape (n_coalitions, n_players), weights of shape (n_players, n_coalitions), and
    `weights @ values` is what each player gets, where values are those of the coalitions less those
    of their complements. The weights of a complement are the same with the opposite sign, because
    each order comes backwards too, so half of all coalitions do: those without the first player.

    Shapley's value is the mean, over all orders in which the players can come, of what
    each adds to those before it. With more than seven players the mean is over the orders
    that go round a circle of them, from every start and in both directions: each player
    then comes at each place equally often. In either case the shares sum to the value of
    all players less that of none, and a player who never adds anything gets nothing.
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
    return np.array(members, dtype=bool), np.array([weights[own] for own in half]).T / len(orders)

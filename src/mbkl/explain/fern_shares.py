"""How the table entries of ferns are divided among their features.

The Shapley values of the games in `fern_games`, by NumPy for few games and compiled for
many; the two differ by rounding errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine import choose_loops
from mbkl.engine.limits import SMALL
from mbkl.engine.rows import ArrayRows
from mbkl.engine.twins import TWINS
from mbkl.explain.fern_games import Answers, Array, FernTables, columns_of, same_fern
from mbkl.maps.ferns import Ferns

_ENTRIES_AT_ONCE = 1_000_000


def fern_shares(tables: FernTables, block: range, rows: Answers, background: Answers) -> Array:
    """Return the mean over the background of what each player gets, for each answer of rows.

    The shares are of shape (n_answers, most_players, n_columns).
    """
    n_others = np.bincount(background.fern, minlength=len(block))
    n_games = int(n_others[rows.fern].sum()) * tables.tables.shape[1]
    # Ferns are drawn alike, so that all blocks take about as long as this one.
    n_games = n_games * tables.ferns.n_maps // len(block)
    if n_games >= SMALL:
        threads = choose_loops(n_games)
        if threads is not TWINS:  # there is a compiler
            return share_compiled(tables, block, rows, background, threads)
    return share_numpy(tables, block, rows, background)


def share_compiled(
    tables: FernTables, block: range, rows: Answers, background: Answers, threads
) -> Array:
    """Return what `fern_shares` does, by the compiled loop."""
    from mbkl.explain.loops import share

    ferns = slice(block.start, block.stop)
    factor, shift = (numbers[ferns] for numbers in tables.hash)
    raw = tables.raw_offsets[block.start : block.stop + 1]
    first = tables.ferns.cell_offsets[block.start : block.stop + 1]
    shares = np.empty((*rows.pieces.shape, tables.tables.shape[1]))
    edges = np.arange(len(block) + 1)
    threads.share(
        len(block),
        shares.size * background.place.shape[1],
        share,
        np.diff(tables.bounds)[ferns],
        tables.padded_masks(block),
        factor,
        shift,
        raw - raw[0],
        tables.ferns.numbers[raw[0] : raw[-1]].astype(np.int64),
        first - first[0],
        np.ascontiguousarray(tables.tables[first[0] : first[-1]]),
        np.searchsorted(rows.fern, edges),
        rows.numbers,
        np.searchsorted(background.fern, edges),
        background.numbers,
        background.shares,
        shares,
    )
    return shares


def share_numpy(tables: FernTables, block: range, rows: Answers, background: Answers) -> Array:
    """Return what `fern_shares` does, all games of as many players together."""
    n_players, n_columns = rows.pieces.shape[1], tables.tables.shape[1]
    shares = np.zeros((rows.fern.size * n_players, n_columns))
    left, right = same_fern(rows.fern, background.fern, len(block))
    differ = rows.pieces[left] != background.pieces[right]
    n_differ = differ.sum(axis=1)
    share = background.shares
    for size in range(1, int(n_differ.max(initial=0)) + 1):
        game = shapley(size)
        step = max(1, _ENTRIES_AT_ONCE // (len(game.members) * n_columns))
        same_size = np.flatnonzero(n_differ == size)
        for start in range(0, same_size.size, step):
            chosen = same_size[start : start + step]
            players = np.nonzero(differ[chosen])[1].reshape(-1, size)
            here, there = rows.pieces[left[chosen]], background.pieces[right[chosen]]
            moves = np.take_along_axis(here - there, players, axis=1)
            numbers = np.tile(there.sum(axis=1), (len(game.members), 1))
            for move, joined in zip(moves.T, game.members.T, strict=True):
                numbers[joined] += move
            entries = tables.entries(block.start + rows.fern[left[chosen]], numbers)
            gains = game.weights @ entries.reshape(len(entries), -1)
            # Pairs come in the order of the rows' answers: only a few are concerned.
            first, last = left[chosen[0]], left[chosen[-1]] + 1
            place = players.T + (left[chosen] - first) * n_players
            mass = np.broadcast_to(share[right[chosen]], place.shape)
            collect = sparse.csc_array(
                (mass.ravel(), place.ravel(), np.arange(place.size + 1)),
                shape=((last - first) * n_players, place.size),
            )
            shares[first * n_players : last * n_players] += collect @ gains.reshape(-1, n_columns)
    return shares.reshape(rows.fern.size, n_players, n_columns)


def warm_explanations(loops) -> None:
    """Compile the loop ahead of time, by a tiny game."""
    X = np.arange(8.0).reshape(4, 2)
    ferns, codes = Ferns().fit_codes(ArrayRows(X, loops), np.ones(len(X)), 3, 0)
    games, block = FernTables(ferns, np.zeros((codes.n_cells, 1))), range(ferns.n_maps)
    answers = games.answers(columns_of(X), block)
    share_compiled(games, block, answers, answers, loops)


# Up to here all coalitions are looked at; there are 256 of eight players.
MOST_EXACT = 8


@dataclass(frozen=True)
class Coalitions:
    """Coalitions of a game: `weights @ values` is what each player gets of their values.

    Members is of shape (n_coalitions, n_players), weights of shape (n_players, n_coalitions).
    """

    members: NDArray[np.bool_]
    weights: NDArray[np.float64]


@lru_cache(maxsize=128)
def shapley(n_players: int) -> Coalitions:
    """Return how a game is shared among its players.

    Shapley's value is the mean, over all orders in which the players can come, of what
    each adds to those before it. With more than eight players the mean is over the orders
    that go round a circle of them, from every start and in both directions: each player
    then comes at each place equally often. In either case the shares sum to the value of
    all players less that of none, and a player who never adds anything gets nothing.
    """
    return _all(n_players) if n_players <= MOST_EXACT else _circular(n_players)


def _all(n_players: int) -> Coalitions:
    members = (np.arange(2**n_players)[:, None] >> np.arange(n_players) & 1).astype(bool)
    size = members.sum(axis=1)
    # Orders in which a player comes right after the others of its coalition, of all orders.
    share = np.array([1.0 / (n_players * comb(n_players - 1, s)) for s in range(n_players)])
    joined = share[np.maximum(size - 1, 0)]
    missing = share[np.minimum(size, n_players - 1)]
    weights = np.where(members, joined[:, None], -missing[:, None]).T
    return Coalitions(members, weights)


def _circular(n_players: int) -> Coalitions:
    start, length = np.divmod(np.arange(n_players * (n_players - 1)), n_players - 1)
    length = length + 1
    arcs = (np.arange(n_players) - start[:, None]) % n_players < length[:, None]
    members = np.vstack([arcs, np.zeros_like(arcs[:1]), np.ones_like(arcs[:1])])
    weights = np.zeros((n_players, len(members)))
    weights[:, -2:] = -2.0, 2.0
    number = np.arange(len(arcs))
    for last_to_join in (start, start + length - 1):
        np.add.at(weights, (last_to_join % n_players, number), 1.0)
    for next_to_join in (start - 1, start + length):
        np.add.at(weights, (next_to_join % n_players, number), -1.0)
    return Coalitions(members, weights / (2 * n_players))

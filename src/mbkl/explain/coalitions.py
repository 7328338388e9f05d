"""Games with few players: Shapley values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

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

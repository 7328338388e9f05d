from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.explain.fern_games import shapley


def shares_of_orders(members, values, orders):
    """The plain way: what each player adds to those before it, over all orders."""
    worth = {tuple(np.flatnonzero(line)): value for line, value in zip(members, values)}
    shares = np.zeros(members.shape[1])
    for order in orders:
        for place, player in enumerate(order):
            after, before = sorted(order[: place + 1]), sorted(order[:place])
            shares[player] += worth[tuple(after)] - worth[tuple(before)]
    return shares / len(orders)


def circles(n_players):
    """All orders that go round a circle, from every start and in both directions."""
    ring = np.arange(n_players)
    return [tuple((start + way * ring) % n_players) for start in ring for way in (1, -1)]


@pytest.mark.parametrize("n_players", range(1, 7))
def test_shapley_values_are_means_over_all_orders(n_players):
    game = shapley(n_players)
    values = np.random.default_rng(0).normal(size=len(game.members))
    expected = shares_of_orders(game.members, values, list(permutations(range(n_players))))
    np.testing.assert_allclose(game.weights @ values, expected, atol=1e-12)


@pytest.mark.parametrize("n_players", [9, 12])
def test_many_players_come_in_circles(n_players):
    game = shapley(n_players)
    assert len(game.members) == n_players * (n_players - 1) + 2
    values = np.random.default_rng(0).normal(size=len(game.members))
    expected = shares_of_orders(game.members, values, circles(n_players))
    np.testing.assert_allclose(game.weights @ values, expected, atol=1e-12)


@given(st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_laws_of_shares(n_players, seed):
    game = shapley(n_players)
    generator = np.random.default_rng(seed)
    idle = generator.integers(n_players)
    # The value depends on who is there, but never on the idle one.
    others = game.members & (np.arange(n_players) != idle)
    values = np.sin(others @ generator.normal(size=n_players) * 5.0)
    shares = game.weights @ values
    everyone, nobody = game.members.all(axis=1), ~game.members.any(axis=1)
    np.testing.assert_allclose(shares.sum(), values[everyone][0] - values[nobody][0], atol=1e-9)
    assert abs(shares[idle]) < 1e-9


def test_an_additive_game_gives_everybody_its_own():
    own = np.arange(11.0)
    game = shapley(11)
    np.testing.assert_allclose(game.weights @ (game.members @ own), own, atol=1e-12)

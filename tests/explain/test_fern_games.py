from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.engine.rows import ArrayRows
from mbkl.explain.fern_games import distinct, games_of, same_fern, shapley
from mbkl.maps.ferns import FernMaps


@pytest.fixture(params=["ferns", "deep ferns"])
def family(request, fitted):
    model, X = fitted(request.param)
    (ferns,) = [part for part in model.predictor_.maps.families if isinstance(part, FernMaps)]
    return ferns, model.predictor_.tables[0], X


def test_numbers_lead_to_the_cells_of_the_engine(family):
    ferns, tables, X = family
    expected = tables[ferns.codes(ArrayRows(X)).values + ferns.cell_offsets[:-1, None]]
    found = [
        games.tables[games.cells(np.arange(games.ferns.n_maps)[:, None], games.numbers(X))]
        for games in games_of(ferns, tables, X)
    ]
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_pieces_are_the_outcomes_of_a_feature(family):
    ferns, tables, X = family
    (games,) = games_of(ferns, tables, X)
    pieces = games.numbers(X)[games.fern] & games.masks[:, None]
    for fern, feature, piece in zip(games.fern, games.players, pieces, strict=True):
        features, thresholds = ferns.ferns[fern]
        n_yes = (X[:, [feature]] > thresholds[features == feature]).sum(axis=1)
        assert [int(number).bit_count() for number in piece] == n_yes.tolist()
    totals = np.add.reduceat(pieces, games.bounds[:-1], axis=0)
    np.testing.assert_array_equal(totals, games.numbers(X))


def test_answers_stand_for_all_rows(family):
    ferns, tables, X = family
    for games in games_of(ferns, tables, X):
        answers = games.answers(X)
        assert (np.diff(answers.fern) >= 0).all()
        np.testing.assert_array_equal(answers.numbers[answers.of_rows], games.numbers(X))
        counts = np.bincount(answers.of_rows.ravel())
        np.testing.assert_allclose(answers.frequencies, counts / len(X))
        for place in answers.of_rows:
            assert np.unique(place).size == np.unique(answers.numbers[place]).size


def test_means_are_those_of_rows_with_some_features_replaced(family):
    ferns, tables, X = family
    background, x = X[:15], X[20]
    for games in games_of(ferns, tables, background):
        piece = np.arange(games.fern.size)
        values = games.numbers(x[None])[games.fern, 0] & games.masks
        found = games.means(games.fern, games.masks, piece, values)
        for fern, feature, mean in zip(games.fern, games.players, found, strict=True):
            mixed = background.copy()
            mixed[:, feature] = x[feature]
            own = games.tables[games.cells(fern, games.numbers(mixed)[fern])]
            np.testing.assert_allclose(mean, own.mean(axis=0), atol=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_distinct_pairs_are_in_order(pairs):
    lines, numbers = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    first, which = distinct(lines, numbers)
    assert [pairs[place] for place in first] == sorted(set(pairs))
    assert [pairs[place] for place in first[which]] == pairs


def test_all_pairs_of_the_same_fern():
    left, right = np.array([2, 0, 2, 1]), np.array([0, 0, 2])
    expected = [(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a == b]
    assert list(zip(*same_fern(left, right, 3))) == expected


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


def all_coalitions(n_players):
    members, weights = shapley(n_players)
    return np.vstack([members, ~members]), np.hstack([weights, -weights])


@pytest.mark.parametrize("n_players", range(1, 7))
def test_shapley_values_are_means_over_all_orders(n_players):
    members, weights = all_coalitions(n_players)
    values = np.random.default_rng(0).normal(size=len(members))
    expected = shares_of_orders(members, values, list(permutations(range(n_players))))
    np.testing.assert_allclose(weights @ values, expected, atol=1e-12)


@pytest.mark.parametrize("n_players", [8, 12])
def test_many_players_come_in_circles(n_players):
    members, weights = all_coalitions(n_players)
    assert len(members) == n_players * (n_players - 1) + 2
    values = np.random.default_rng(0).normal(size=len(members))
    expected = shares_of_orders(members, values, circles(n_players))
    np.testing.assert_allclose(weights @ values, expected, atol=1e-12)


@given(st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_laws_of_shares(n_players, seed):
    members, weights = all_coalitions(n_players)
    generator = np.random.default_rng(seed)
    idle = generator.integers(n_players)
    # The value depends on who is there, but never on the idle one.
    others = members & (np.arange(n_players) != idle)
    values = np.sin(others @ generator.normal(size=n_players) * 5.0)
    shares = weights @ values
    everyone, nobody = members.all(axis=1), ~members.any(axis=1)
    np.testing.assert_allclose(shares.sum(), values[everyone][0] - values[nobody][0], atol=1e-9)
    assert abs(shares[idle]) < 1e-9


def test_an_additive_game_gives_everybody_its_own():
    own = np.arange(11.0)
    members, weights = all_coalitions(11)
    np.testing.assert_allclose(weights @ (members @ own), own, atol=1e-12)

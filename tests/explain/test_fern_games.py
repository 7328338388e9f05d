from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl import MBKLClassifier
from mbkl.engine import compiled as engine_compiled
from mbkl.engine.compiled import Compiled
from mbkl.engine.rows import ArrayRows
from mbkl.explain import fern_games, loops
from mbkl.explain.fern_games import (
    MOST_EXACT,
    FernTables,
    columns_of,
    main_effects,
    means_compiled,
    means_numpy,
    same_fern,
    shapley,
    warm_explanations,
)
from mbkl.maps import Ferns
from mbkl.maps.ferns import FernMaps


@pytest.fixture(params=["ferns", "deep ferns"])
def games(request, fitted):
    model, X = fitted(request.param)
    (ferns,) = [part for part in model.predictor_.maps.families if isinstance(part, FernMaps)]
    return FernTables(ferns, model.predictor_.tables[0]), X, model


def test_pieces_add_up_to_the_cells_of_the_engine(games):
    tables, X, _ = games
    cells = tables.ferns.codes(ArrayRows(X)).values + tables.ferns.cell_offsets[:-1, None]
    for block in tables.blocks():
        answers = tables.answers(columns_of(X), block)
        numbers = answers.pieces.sum(axis=1)
        np.testing.assert_array_equal(numbers, answers.numbers)
        entries = tables.entries(block.start + answers.fern, numbers)
        own = cells[block.start : block.stop]
        np.testing.assert_array_equal(entries[answers.place], tables.tables[own])


def test_answers_stand_for_all_rows(games):
    tables, X, _ = games
    for block in tables.blocks():
        answers = tables.answers(columns_of(X), block)
        assert (np.diff(answers.fern) >= 0).all()
        np.testing.assert_allclose(answers.shares, np.bincount(answers.place.ravel()) / len(X))
        for fern, place in zip(block, answers.place, strict=True):
            assert (answers.fern[place] == fern - block.start).all()
            stumps = tables.stumps(range(fern, fern + 1))
            yes = X[:, tables.features[stumps]] > tables.thresholds[stumps]
            steps = np.add.reduceat(
                yes, tables.starts[tables.bounds[fern] : tables.bounds[fern + 1]] - stumps.start,
                axis=1, dtype=int,
            )  # fmt: skip
            own = answers.pieces[place, : steps.shape[1]]
            n_digits = [[int(piece).bit_count() for piece in row] for row in own]
            np.testing.assert_array_equal(n_digits, steps)
            assert np.unique(place).size == np.unique(own, axis=0).shape[0]


def test_main_effects_are_jumps_of_the_partial_dependence(games, mixed_scores):
    tables, X, model = games
    background = X[:15]
    features, thresholds, jumps = main_effects(tables, columns_of(background))
    for feature, threshold in zip(features[::11], thresholds[::11]):
        same = (features == feature) & (thresholds == threshold)
        below = np.nan if np.isneginf(threshold) else threshold
        above = np.nextafter(np.float32(threshold), np.float32(np.inf))
        change = [
            mixed_scores(model, np.full(X.shape[1], value), background, [feature])
            for value in (above, below)
        ]
        np.testing.assert_allclose(jumps[same].sum(axis=0), change[0] - change[1], atol=1e-9)


def test_all_pairs_of_the_same_fern():
    left, right = np.array([2, 0, 2, 1]), np.array([0, 0, 2])
    expected = [(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a == b]
    assert list(zip(*same_fern(left, right, 3))) == expected


@pytest.fixture(scope="module")
def make_game(make_data):
    """Return a function: ferns with their tables, a block of them, answers of two sides."""

    def make(depth, n_features=30, n_classes=3):
        X, y = make_data(n_rows=60, n_features=n_features, n_classes=n_classes)
        X[::7, 1] = np.nan
        maps = Ferns(depth=depth, max_cells=64)
        model = MBKLClassifier(maps=maps, n_maps=40, random_state=0).fit(X, y)
        games = FernTables(model.predictor_.maps.families[0], model.predictor_.tables[0])
        block = range(7, 33)
        sides = [games.answers(columns_of(rows), block) for rows in (X, X[:15])]
        return games, block, *sides

    return make


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("depth", "n_features"), [(3, 30), (8, 2), (14, 6), (40, 30)])
def test_the_loop_is_like_its_twin(make_game, depth, n_features, n_classes):
    game = make_game(depth, n_features, n_classes)
    compiled = fern_games.share_compiled(*game, Compiled(1))
    plain = fern_games.share_numpy(*game)
    assert np.abs(plain).max() > 1e-3
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mean_entries_of_the_loop_are_those_of_its_twin(make_game, n_classes):
    games, block, _, background = make_game(14, n_classes=n_classes)
    pieces = slice(*games.bounds[[block.start, block.stop]].tolist())
    fern = games.fern[games.starts[pieces]] - block.start
    for values in (games.masks[pieces], np.zeros_like(games.masks[pieces])):
        questions = games, block, background, fern, games.masks[pieces], values
        compiled, plain = means_compiled(*questions, Compiled(1)), means_numpy(*questions)
        assert np.abs(plain).max() > 1e-3
        np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-12)


def test_games_with_many_columns_are_shared_out_by_weights(make_game):
    """The loop has another way for them."""
    game = make_game(14, 6, loops._FEW_COLUMNS + 2)
    compiled = fern_games.share_compiled(*game, Compiled(1))
    np.testing.assert_allclose(compiled, fern_games.share_numpy(*game), rtol=0, atol=1e-12)


def test_levels_of_a_category_have_no_order():
    """Two levels may give as many yeses to a fern, and still be different."""
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"town": generator.choice(list("abcdefgh"), 200), "age": generator.normal(size=200)}
    )
    y = frame["town"].isin(["a", "d"]) ^ (frame["age"] > 0)
    model = MBKLClassifier(maps=Ferns(depth=6), n_maps=20, random_state=0).fit(frame, y)
    games = FernTables(model.predictor_.maps.families[0], model.predictor_.tables[0])
    assert (games.sizes[games.n_cells > 0] > 1).any()
    columns = columns_of(model._validate_new(frame))
    block = range(games.ferns.n_maps)
    game = games, block, *(games.answers(side, block) for side in (columns, columns[:, :20]))
    compiled = fern_games.share_compiled(*game, Compiled(1))
    np.testing.assert_allclose(compiled, fern_games.share_numpy(*game), rtol=0, atol=1e-12)


def test_games_of_few_and_of_many_players_are_compared(make_game):
    """The loop has a way for each: the test above must take both."""
    for depth, expected in ((14, {True}), (40, {True, False})):
        _, _, rows, background = make_game(depth, 6 if depth == 14 else 30)
        differ = (rows.pieces[:, None] != background.pieces).sum(axis=2)
        same = rows.fern[:, None] == background.fern
        assert set((differ[same] <= MOST_EXACT).tolist()) == expected


def test_threads_do_not_change_a_bit(make_game, monkeypatch):
    game = make_game(14)
    monkeypatch.setattr(engine_compiled, "SMALLEST_SHARE", 1)
    alone, three = (fern_games.share_compiled(*game, Compiled(n)) for n in (1, 3))
    np.testing.assert_array_equal(alone, three)


def test_many_games_are_compiled_and_few_are_not(make_game, monkeypatch):
    game = make_game(14)
    called = []
    for name in ("share_numpy", "share_compiled"):
        monkeypatch.setattr(fern_games, name, lambda *_, name=name, **__: called.append(name))
    for small in (10**9, 1):
        monkeypatch.setattr(fern_games, "SMALL", small)
        monkeypatch.setattr("mbkl.engine.twins.SMALL", small)
        fern_games.fern_shares(*game)
    assert called == ["share_numpy", "share_compiled"]


def test_after_warmup_no_explanation_waits_for_the_compiler(make_game):
    warm_explanations(Compiled(1))
    ready = list(loops.share.signatures)
    for depth, n_classes in ((1, 2), (14, 3), (40, 3)):
        fern_games.share_compiled(*make_game(depth, n_classes=n_classes), Compiled(1))
    assert loops.share.signatures == ready
    assert len(ready) == 1


def test_a_small_explanation_needs_no_compiler(run_python):
    code = """
import sys
from sklearn.datasets import load_iris
from mbkl import MBKLClassifier
X, y = load_iris(return_X_y=True)
model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
model.explain_local(X[:2], background=X)
assert "numba" not in sys.modules
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr


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

import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLClassifier
from mbkl.engine import compiled as engine_compiled
from mbkl.engine.compiled import Compiled
from mbkl.explain import fern_games, loops
from mbkl.explain.fern_games import MOST_EXACT, FernTables, columns_of, warm_explanations
from mbkl.maps import Ferns


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
        monkeypatch.setattr("mbkl.engine.SMALL", small)
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

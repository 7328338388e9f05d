import numpy as np
import pytest

from mbkl.engine.rows import ArrayRows
from mbkl.explain.fern_games import FernTables, columns_of, main_effects, same_fern
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

import numpy as np
import pytest

from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.explain.fern_games import FernTables, main_effects, same_fern
from mbkl.maps.ferns import FernMaps


@pytest.fixture(params=["ferns", "deep ferns"])
def games(request, fitted):
    model, X = fitted(request.param)
    (ferns,) = [part for part in model.predictor_.maps.parts if isinstance(part, FernMaps)]
    return FernTables(ferns, model.predictor_.tables[0]), X, model


def test_pieces_add_up_to_the_cells_of_the_engine(games):
    tables, X, _ = games
    cells = tables.ferns.codes(X, NumpyEngine()).values + tables.ferns.cell_offsets[:-1, None]
    pieces = tables.pieces(X)
    for fern in range(tables.ferns.n_maps):
        own = pieces[:, tables.bounds[fern] : tables.bounds[fern + 1]]
        entries = tables.entries(np.array(fern), own.sum(axis=1))
        np.testing.assert_array_equal(entries, tables.tables[cells[fern]])


def test_answers_stand_for_all_rows(games):
    tables, X, _ = games
    pieces = tables.pieces(X)
    for block in tables.blocks():
        answers = tables.answers(pieces, block)
        assert (np.diff(answers.fern) >= 0).all()
        np.testing.assert_array_equal(answers.count, np.bincount(answers.place.ravel()))
        for fern in block:
            own = pieces[:, tables.bounds[fern] : tables.bounds[fern + 1]]
            place = answers.place[:, fern - block.start]
            assert (answers.fern[place] == fern - block.start).all()
            np.testing.assert_array_equal(answers.pieces[place, : own.shape[1]], own)
            assert np.unique(place).size == np.unique(own, axis=0).shape[0]


def test_main_effects_are_jumps_of_the_partial_dependence(games, mixed_scores):
    tables, X, model = games
    background = X[:15]
    jumps = main_effects(tables, tables.pieces(background))
    for stump in range(0, tables.order.size, 11):
        feature, threshold = tables.features[stump], tables.thresholds[stump]
        same = (tables.features == feature) & (tables.thresholds == threshold)
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

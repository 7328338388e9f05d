"""Groups of levels, and sets of levels that stumps of ferns ask for."""

import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLClassifier
from mbkl.engine.rows import ArrayRows
from mbkl.maps import Categories, Ferns, Stumps
from mbkl.maps.categories import CategoryMaps, LevelSets, random_sets
from mbkl.maps.families import plans_of

N_LEVELS = np.array([0, 3, 2])
X = np.array([[0.5, 0, 1], [0.1, 2, 1], [0.2, np.nan, 1], [0.3, 1, 1]])


def test_a_cell_for_every_level_for_missing_and_for_new_ones():
    maps = CategoryMaps(np.array([1]), np.array([3]))
    values = np.array([[9.0], [np.nan], [0], [1], [2], [3], [77]])
    codes = maps.codes(ArrayRows(np.hstack([values, values])))
    assert codes.values.tolist() == [[4, 0, 1, 2, 3, 4, 4]]
    assert maps.cells.offsets.tolist() == [0, 5]


def test_columns_of_one_level_are_left_out():
    maps, codes = Categories().fit_codes(ArrayRows(X), np.ones(4), 3, 0, N_LEVELS)
    assert maps.features.tolist() == [1]
    assert codes.values.tolist() == [[1, 3, 0, 2]]
    names = maps.column_names(["a", "b", "c"], [None, ["u", "v", "w"], ["x", "y"]])
    assert names == ["b missing", "b = u", "b = v", "b = w", "b new"]


def test_no_categories():
    maps, codes = Categories().fit_codes(ArrayRows(X), np.ones(4), 3, 0)
    assert maps.n_maps == 0
    assert codes.n_groups == 0


def test_no_stump_asks_about_a_category():
    maps, _ = Stumps().fit_codes(ArrayRows(X), np.ones(4), 50, 0, N_LEVELS)
    assert set(maps.stump_features) == {0}


def test_a_random_stump_parts_two_levels_as_often_as_not():
    features = np.ones(20_000, dtype=np.intp)
    shares = np.random.default_rng(0).random(20_000)
    sets = random_sets(features, shares, N_LEVELS, seed=0)
    yes = np.zeros((5, 20_000), bool)
    sets.answer(np.array([[0, cell, 0] for cell in (np.nan, 0, 1, 2, 3)]), features, yes)
    parted = (yes[:, None] != yes).mean(axis=2)[np.triu_indices(5, 1)]
    np.testing.assert_allclose(parted, 0.5, atol=0.12)  # of 256 sets


def test_selected_stumps_keep_their_sets():
    members = np.arange(10) % 3 == 0
    sets = LevelSets(np.array([1, -1, 0, 1]), members, np.array([0, 5, 10]), N_LEVELS)
    some = sets.select(np.array([True, True, False, True]))
    assert some.numbers.tolist() == [0, -1, 0]
    assert some.members.tolist() == members[5:].tolist()
    assert sets.select(np.array([False, True, False, False])) is None


def test_categories_come_beside_stumps():
    plans = plans_of("stumps", None, (100, 3), N_LEVELS)
    assert [type(plan.family) for plan in plans] == [Stumps, Categories]
    # A column of numbers counts twice as much as a category: levels are parted half of the time.
    np.testing.assert_allclose([plan.share for plan in plans], [0.5, 0.5])
    assert len(plans_of(["stumps", "categories"], None, (100, 3), N_LEVELS)) == 2
    assert len(plans_of(Ferns(), None, (100, 3), N_LEVELS)) == 1


def test_projections_need_numbers():
    frame = pd.DataFrame({"a": ["x", "y"] * 5})
    with pytest.raises(ValueError, match="Projections need numbers"):
        MBKLClassifier(maps="projections").fit(frame, [0, 1] * 5)

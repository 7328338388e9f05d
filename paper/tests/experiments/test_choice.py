"""The choice of costs: on training rows alone, the same folds for all."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from mbkl_paper.experiments import quick
from mbkl_paper.experiments.sets import SEED
from mbkl_paper.experiments.systems import (
    COSTS,
    DEFAULT,
    MBKL,
    PUBLISHED,
    STUMPS,
    SYSTEMS,
    VARIANTS,
    choose,
    draw,
)

SETTINGS = replace(quick.SETS["quick_cells"], n_maps=60, n_folds=3)


@pytest.fixture(scope="module")
def rows(make_data):
    X, y = make_data(90, 4, 3)
    return X - X.min(axis=0), y


@pytest.mark.parametrize("name", ["linear", "chi2", "approx_chi2"])
def test_choice_is_that_of_a_plain_search(rows, name):
    X, y = rows
    choice = choose(SYSTEMS[name], SETTINGS, X, y, n_jobs=1)
    folds = StratifiedKFold(3, shuffle=True, random_state=SEED)
    search = GridSearchCV(SYSTEMS[name].build(SETTINGS), {"C": list(COSTS)}, cv=folds).fit(X, y)
    assert choice.parameters == {"C": search.best_params_["C"]}
    assert choice.accuracy == pytest.approx(search.best_score_)


@pytest.mark.parametrize("name", ["random_forest", "adaboost", DEFAULT.name])
def test_nothing_to_choose(rows, name):
    choice = choose(SYSTEMS[name], SETTINGS, *rows, n_jobs=1)
    assert choice.parameters == {}
    assert choice.accuracy is None


@pytest.mark.parametrize("choice_rows", [2_000, 45])
def test_ours_keeps_the_cost_of_the_mean_loss(rows, choice_rows):
    choice = choose(MBKL, replace(SETTINGS, choice_rows=choice_rows), *rows, n_jobs=1)
    assert choice.parameters["C"] in COSTS
    assert choice.parameters["C_kernel"] in (0.01, 0.1, 1.0)
    assert 0.0 <= choice.parameters["theta_shrinkage"] <= 1.0


def test_folds_choose_the_thresholds(rows):
    either = choose(MBKL, SETTINGS, *rows, n_jobs=1)
    assert either.parameters["maps"] in STUMPS.values()
    alone = [
        choose(replace(MBKL, costs={"maps": (maps,)}), SETTINGS, *rows, n_jobs=1)
        for maps in STUMPS.values()
    ]
    assert either.accuracy == max(choice.accuracy for choice in alone)


def test_the_published_form_has_one_cost_or_two(rows):
    one = choose(PUBLISHED, SETTINGS, *rows, n_jobs=1)
    assert set(one.parameters) == {"C"}
    two = choose(VARIANTS["as published, two costs"], SETTINGS, *rows, n_jobs=1)
    assert set(two.parameters) == {"C", "C_kernel"}
    assert two.accuracy >= one.accuracy


def test_choice_on_a_part_sees_no_other_rows(rows):
    X, y = rows
    half = replace(SETTINGS, choice_rows=45)
    seen = choose(SYSTEMS["chi2"], half, X, y, n_jobs=1)
    left_out = np.setdiff1d(np.arange(len(y)), draw(y, 45))
    changed = X.copy()
    changed[left_out] = 0.0
    assert choose(SYSTEMS["chi2"], half, changed, y, n_jobs=1) == seen


def test_draws_keep_all_classes():
    y = np.array([0] * 900 + [1] * 96 + [2] * 4)
    rows = draw(y, 100)
    np.testing.assert_array_equal(np.bincount(y[rows]), [86, 10, 4])
    assert np.unique(rows).size == 100
    np.testing.assert_array_equal(draw(y, 1000), np.arange(1000))


def test_settings_of_the_paper_reach_the_systems():
    forest = SYSTEMS["random_forest"]
    assert forest.build(SETTINGS).get_params()["max_depth"] == 50
    few = replace(SETTINGS, trees={"n_estimators": 50, "max_depth": 10})
    assert forest.build(few).get_params()["n_estimators"] == 50
    negatives = replace(SETTINGS, negatives_per_positive=7)
    model = MBKL.build(negatives)
    assert (model.maps, model.theta, model.n_maps) == ("stumps", "learned", 60)
    assert model.negatives_per_positive == 7
    assert SYSTEMS["l1_maps"].build(SETTINGS).feature_map.n_maps == 60
    assert VARIANTS["Step 2 as printed"].build(SETTINGS).theta_power == 1
    assert DEFAULT.build(SETTINGS).maps == "auto"


def test_sweep_changes_maps_and_costs_only():
    swept = MBKL.at(7, {"C": 2.0, "C_kernel": 0.5})
    model = swept.build(SETTINGS)
    assert (swept.name, model.n_maps, model.C, model.C_kernel) == ("mbkl@7", 7, 2.0, 0.5)
    assert not swept.is_tuned
    l1 = SYSTEMS["l1_maps"].at(7, {"C": 2.0}).build(SETTINGS)
    assert (l1.feature_map.n_maps, l1.C, l1.tol) == (7, 2.0, 0.01)

"""MBKLClassifierCV: costs chosen by cross-validation."""

import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from mbkl import MBKLClassifier, MBKLClassifierCV
from mbkl.engine import limits
from mbkl.learn import labelled_rows
from mbkl.search import Candidate, Entry, FoldPath, Search

CHOICES = {"n_maps": 50, "Cs": (0.01, 1.0, 100.0), "C_kernels": (0.1, 1.0), "cv": 3}


@pytest.fixture
def search(form):
    """The search in both forms, as a function of its parameters."""
    return partial(form, MBKLClassifierCV, **CHOICES, random_state=0)


@pytest.fixture
def paper_search(paper):
    """The search in the form of the paper, as a function of its parameters."""
    return partial(paper, MBKLClassifierCV, **CHOICES, random_state=0)


@pytest.fixture
def same_model(bits_of):
    """Return a function that tells whether two models have the same bits."""
    return lambda first, second: bits_of(first) == bits_of(second)


def test_the_costs_with_the_best_mean_score_are_chosen(search, make_data):
    X, y = make_data(n_classes=3)
    model = search().fit(X, y)
    results = model.cv_results_
    best = int(np.argmax(results["mean_test_score"]))
    assert model.best_score_ == results["mean_test_score"][best]
    chosen = {"C": model.C_, "C_kernel": model.C_kernel_}
    assert results["params"][best] == {**chosen, "theta_shrinkage": model.theta_shrinkage_}
    assert results["rank_test_score"][best] == 1


def test_results_have_the_form_of_a_grid_search(paper_search, make_data):
    X, y = make_data()
    results = paper_search().fit(X, y).cv_results_
    splits = np.array([results[f"split{fold}_test_score"] for fold in range(3)])
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=0))
    assert results["param_C"].tolist() == [0.01, 1.0, 100.0] * 2
    assert results["param_C_kernel"].tolist() == [0.1] * 3 + [1.0] * 3
    assert len(results["params"]) == 6
    assert ((results["mean_n_maps"] > 0) & (results["mean_n_maps"] <= 50)).all()
    ranks = results["rank_test_score"]
    for first in range(6):
        for second in range(6):
            better = results["mean_test_score"][first] > results["mean_test_score"][second]
            assert better == (ranks[first] < ranks[second])


@pytest.mark.parametrize(
    ("loss", "n_classes"), [("squared_hinge", 3), ("hinge", 2), ("logistic", 2)]
)
def test_the_final_model_is_that_of_the_plain_classifier(
    form, search, same_model, make_data, n_classes, loss
):
    X, y = make_data(n_classes=n_classes)
    model = search(loss=loss).fit(X, y)
    plain = form(
        MBKLClassifier, n_maps=50, C=model.C_, C_kernel=model.C_kernel_, loss=loss, random_state=0
    ).fit(X, y)
    assert same_model(model, plain)


def test_the_best_estimator_is_a_fitted_classifier(search, make_data):
    X, y = make_data(n_classes=3)
    model = search(calibration="temperature").fit(X, y)
    best = model.best_estimator_
    assert type(best) is MBKLClassifier
    assert (best.C, best.C_kernel, best.n_maps) == (model.C_, model.C_kernel_, 50)
    assert best.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert not hasattr(best, "cv_results_")
    assert not hasattr(clone(best), "coef_")


def test_the_order_of_the_costs_does_not_matter(paper_search, same_model, make_data):
    X, y = make_data()
    model = paper_search(Cs=(100.0, 0.01, 1.0, 1.0), C_kernels=(1.0, 0.1)).fit(X, y)
    expected = paper_search().fit(X, y)
    assert model.cv_results_["params"] == expected.cv_results_["params"]
    assert same_model(model, expected)


def test_ties_go_to_the_smaller_cost(paper_search):
    X = np.vstack([np.zeros((20, 1)), np.ones((20, 1))])
    y = np.repeat([0, 1], 20)
    model = paper_search(Cs=(10.0, 1.0, 100.0), C_kernels=(1.0, 0.5)).fit(X, y)
    assert model.best_score_ == 1.0
    assert (model.C_kernel_, model.C_) == (0.5, 1.0)


def test_usually_costs_are_those_of_equal_weights(paper_search, make_data):
    X, y = make_data()
    model = paper_search(theta_shrinkage="auto", C_kernels=None).fit(X, y)
    ones = paper_search(theta="ones").fit(X, y)
    scores = model.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(scores[:-1], ones.cv_results_["mean_test_score"])
    assert model.C_ == ones.C_
    np.testing.assert_array_equal(model.cv_results_["param_theta_shrinkage"], [1, 1, 1, 0.9])
    assert model.theta_shrinkage_ == (0.9 if scores[-1] > ones.best_score_ else 1.0)
    again = clone(model.best_estimator_).fit(X, y)
    np.testing.assert_array_equal(model.theta_, again.theta_)


def test_equal_weights_are_those_of_ones(paper_search, make_data):
    X, y = make_data()
    shrunk = paper_search(theta_shrinkage=1.0).fit(X, y)
    ones = paper_search(theta="ones").fit(X, y)
    assert shrunk.best_score_ == ones.best_score_
    np.testing.assert_array_equal(shrunk.predict(X), ones.predict(X))


def test_tied_costs_are_those_of_the_paper(paper_search, make_data):
    X, y = make_data()
    model = paper_search(C_kernels="tied").fit(X, y)
    assert model.C_kernel_ == model.C_
    np.testing.assert_array_equal(model.cv_results_["param_C"], model.cv_results_["param_C_kernel"])


def test_the_usual_grid_is_that_of_the_paper(make_data):
    model = MBKLClassifierCV(maps="stumps", n_maps=20, cv=2, random_state=0).fit(*make_data())
    assert model.cv_results_["param_C"].tolist() == [0.01, 0.1, 1, 10, 100, 1000]


def test_chosen_maps_come_with_costs_around_their_own(make_data, choices):
    X, y = make_data()
    model = MBKLClassifierCV(n_maps=20, cv=2, random_state=0).fit(X, y)
    costs, depths = model.cv_results_["param_C"], model.cv_results_["param_depth"]
    np.testing.assert_allclose(costs[2:] / costs[0], [0.3, 3.0])
    assert np.unique(depths[:2]).size == 2
    assert depths[0] == choices[0].depth
    assert np.unique(depths[2:]).size == 1
    assert depths[2] in depths[:2]
    assert model.C_ in costs


@pytest.mark.parametrize("theta", ["ones", "alignment"])
def test_fixed_kernels_are_not_tried_with_several_costs(search, make_data, theta):
    X, y = make_data()
    model = search(theta=theta, theta_shrinkage=0).fit(X, y)
    assert model.cv_results_["param_C"].tolist() == [0.01, 1.0, 100.0]


def test_reweighted_kernels_are_searched(search, make_data):
    X, y = make_data()
    assert search(theta="reweighted").fit(X, y).score(X, y) > 0.7


def test_an_int_means_stratified_folds(search, same_model, make_data):
    X, y = make_data(n_classes=3)
    assert same_model(search(cv=3).fit(X, y), search(cv=StratifiedKFold(3)).fit(X, y))


@pytest.mark.parametrize(
    "convert", [lambda part: part, np.ndarray.tolist, lambda part: np.array(part, dtype=np.int32)]
)
def test_folds_can_be_given_as_indices(search, same_model, make_data, convert):
    X, y = make_data()
    folds = [(convert(a), convert(b)) for a, b in StratifiedKFold(3).split(X, y)]
    assert same_model(search(cv=folds).fit(X, y), search(cv=3).fit(X, y))


def test_a_splitter_decides_the_folds(search, make_data):
    X, y = make_data()
    splitter = KFold(4, shuffle=True, random_state=1)
    results = search(cv=splitter).fit(X, y).cv_results_
    assert "split3_test_score" in results
    assert "split4_test_score" not in results


def test_groups_stay_together(search, make_data):
    X, y = make_data(90)
    groups = np.repeat(np.arange(9), 10)
    folds = list(GroupKFold(3).split(X, y, groups))
    grouped = search(cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert grouped.best_score_ == search(cv=folds).fit(X, y).best_score_
    with pytest.raises(ValueError, match="groups"):
        search(cv=GroupKFold(3)).fit(X, y)


def test_balanced_accuracy_counts_classes_equally(search):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(150, 2))
    y = (np.arange(150) < 15).astype(int)
    X[y == 1] += 0.7
    plain = search(theta="ones").fit(X, y).cv_results_["mean_test_score"]
    balanced = search(theta="ones", scoring="balanced_accuracy").fit(X, y).cv_results_
    assert plain.min() >= 0.7
    assert balanced["mean_test_score"].max() < plain.max()


def test_sample_weights_weigh_the_scores(search, make_data):
    X, y = make_data()
    wrong = np.arange(80) % 5 == 0
    noisy = np.where(wrong, 1 - y, y)
    plain = search().fit(X, noisy).best_score_
    light = search().fit(X, noisy, np.where(wrong, 1e-6, 1.0)).best_score_
    assert light > plain


@pytest.mark.parametrize("theta", ["learned", "ones", "reweighted", "alignment"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_folds_without_a_class_are_no_trouble(search, make_data, theta, n_classes):
    X, y = make_data(n_classes=n_classes)
    y = np.where(np.arange(80) == 0, n_classes, np.where(y == 0, 0, y))
    if n_classes == 2:
        y = (np.arange(80) == 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = search(theta=theta, Cs=(0.1, 1.0)).fit(X, y)
    assert np.isfinite(model.best_score_)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_fold_of_zero_weight_is_no_trouble(search, make_data):
    X, y = make_data()
    folds = [(np.arange(40, 80), np.arange(40)), (np.arange(40), np.arange(40, 80))]
    weights = np.where(np.arange(80) < 60, 1.0, 0.0)
    folds.append((np.arange(60), np.arange(60, 80)))
    model = search(cv=folds).fit(X, y, weights)
    assert np.isfinite(model.best_score_)


@pytest.mark.parametrize("name", ["Cs", "C_kernels"])
@pytest.mark.parametrize("costs", [(), (0.0,), (-1.0, 1.0), (np.inf,), (np.nan,), ("much",)])
def test_bad_costs_are_named(search, make_data, name, costs):
    X, y = make_data()
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        search(**{name: costs}).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"), [("Cs", 1.0), ("C_kernels", "loose"), ("scoring", "luck"), ("cv", "five")]
)
def test_bad_choices_are_named(search, make_data, name, value):
    X, y = make_data()
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        search(**{name: value}).fit(X, y)


def entry(C, scores, depth=np.nan):
    return Entry(Candidate(1.0, 1.0, C), depth, np.array(scores), np.zeros(len(scores)))


def test_a_suggestion_is_left_only_for_what_clearly_beats_it():
    suggested = entry(1.0, [0.80, 0.80, 0.80])
    lucky = entry(2.0, [0.70, 0.80, 1.00])  # the best mean, by one fold
    better = entry(3.0, [0.82, 0.82, 0.82])
    search = Search([], np.ones(0), None, True, [suggested, lucky])
    assert search.best() is suggested
    search.entries.append(better)
    assert search.best() is better
    search.cautious = False
    assert search.best() is lucky


def test_candidates_that_are_behind_are_given_up(monkeypatch):
    given = {1.0: [0.8, 0.8, 0.8, 0.8], 2.0: [0.9, 0.6, 0.9, 0.9], 3.0: [0.8, 0.9, 0.75, 0.75]}
    tried = []

    def path(self, learner, inside, outside, candidates):
        tried.append([candidate.C for candidate in candidates])
        return FoldPath(np.array([given[C][inside] for C in tried[-1]]), np.ones(len(candidates)))

    monkeypatch.setattr(Search, "_path", path)
    learner = SimpleNamespace(
        progress=SimpleNamespace(used=lambda: 0.0, recall=lambda name, kind, run: run())
    )
    search = Search([(fold, None) for fold in range(4)], np.ones(0), None, True)
    for costs in ([1.0], [2.0, 3.0]):
        search.run(learner, [Candidate(1.0, 1.0, C) for C in costs])
    assert tried == 4 * [[1.0]] + 2 * [[2.0, 3.0]] + 2 * [[3.0]]
    results = search.results()
    np.testing.assert_array_equal(results["split2_test_score"], [0.8, np.nan, 0.75])
    np.testing.assert_allclose(results["mean_test_score"], [0.8, 0.75, 0.8])
    assert results["rank_test_score"].tolist() == [1, 3, 1]
    assert search.best() is search.entries[0]


def test_costs_are_compared_at_one_depth():
    shallow, deep = entry(1.0, [0.7, 0.7], depth=2.0), entry(1.0, [0.8, 0.8], depth=4.0)
    search = Search([], np.ones(0), None, True, [shallow, deep, entry(3.0, [0.6, 0.6], depth=2.0)])
    assert search.best() is deep
    assert search.best(depth=2.0) is shallow


def test_many_repeated_rows_are_searched_fairly(monkeypatch):
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 200)
    generator = np.random.default_rng(0)
    X = generator.integers(2, size=(600, 3)).astype(float)
    y = (X[:, 0] == X[:, 1]) ^ (generator.random(600) < 0.1)
    model = MBKLClassifierCV(n_maps=30, cv=3, random_state=0).fit(X, y)
    assert 0.8 < model.best_score_ < 0.97
    assert model.score(X, y) > 0.85


def test_all_rows_are_searched_where_a_part_lacks_a_fold(monkeypatch, make_data):
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 20)
    X, y = make_data(80)
    held_out = np.arange(2)
    splits = [(np.arange(2, 80), held_out), (np.arange(78), np.arange(78, 80))]
    model = MBKLClassifierCV(n_maps=20, cv=splits, random_state=0).fit(X, y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    assert "split1_test_score" in model.cv_results_


@pytest.fixture
def merges(monkeypatch):
    """Count the rows of which equal ones are merged, each time."""
    sizes, original = [], labelled_rows.merge_equal_rows

    def counted(hashes, y, weights):
        sizes.append(y.size)
        return original(hashes, y, weights)

    monkeypatch.setattr(labelled_rows, "merge_equal_rows", counted)
    return sizes


@pytest.mark.parametrize(
    ("settings", "n_learners"),
    [
        ({"maps": "stumps"}, 1),
        ({"maps": "stumps", "calibration": "temperature"}, 1),
        ({"Cs": (0.1, 1.0)}, 1),
        ({}, 2),  # a learner for every depth that is tried
    ],
    ids=repr,
)
def test_equal_rows_are_merged_once(make_data, merges, settings, n_learners):
    X, y = make_data(90)
    MBKLClassifierCV(n_maps=20, cv=3, random_state=0, **settings).fit(X, y)
    assert merges.count(90) == n_learners
    # And those of each part once for every path of costs over it.
    assert merges.count(60) >= 3 * n_learners


@pytest.mark.parametrize("settings", [{}, {"maps": "stumps"}], ids=repr)
def test_rows_given_twice_are_rows_of_weight_two(make_data, settings):
    """Costs are counted by different rows, before and after equal ones are merged."""
    X, y = make_data(90)
    parts = np.arange(90) % 3
    folds = [(np.flatnonzero(parts != part), np.flatnonzero(parts == part)) for part in range(3)]
    twice = [tuple(np.concatenate([own, own + 90]) for own in fold) for fold in folds]
    weighted = MBKLClassifierCV(n_maps=20, cv=folds, random_state=0, **settings)
    repeated = MBKLClassifierCV(n_maps=20, cv=twice, random_state=0, **settings)
    weighted.fit(X, y, sample_weight=np.full(90, 2.0))
    repeated.fit(np.concatenate([X, X]), np.concatenate([y, y]))
    assert repeated.C_ == weighted.C_
    np.testing.assert_allclose(repeated.decision_function(X), weighted.decision_function(X))


@pytest.mark.parametrize("maps", ["auto", "stumps"])
@pytest.mark.parametrize("theta", ["learned", "ones", "reweighted", "alignment"])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_gaps_of_folds_without_a_class_can_be_shown(make_data, capsys, maps, theta, loss):
    """The objective of a class without rows is zero."""
    X, y = make_data(30, n_features=2, n_classes=3)
    folds = [(np.flatnonzero(y != label), np.flatnonzero(y == label)) for label in range(3)]
    costs = {"Cs": [1.0], "C_kernels": [1.0]}
    model = MBKLClassifierCV(
        maps=maps,
        theta=theta,
        theta_shrinkage=0,
        loss=loss,
        n_maps=10,
        **costs,
        cv=folds,
        random_state=0,
    )
    with warnings.catch_warnings(), np.errstate(divide="raise", invalid="raise"):
        warnings.simplefilter("error")
        model.set_params(verbose=2).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert any("relative gap" in line for line in lines)
    assert not any("nan" in line for line in lines)

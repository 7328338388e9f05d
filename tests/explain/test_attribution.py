import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mbkl import MBKLClassifier
from mbkl.explain import attribution, column_importances, fern_games
from mbkl.explain.attribution import (
    _add_changes,
    _over_families,
    contributions,
    joined_features,
    pair_strengths,
    set_contributions,
)
from mbkl.explain.rows import rows_between_thresholds
from mbkl.maps import Ferns

ADDITIVE = ["stumps", "learned stumps"]
FERNS = ["ferns", "deep ferns", "auto", "list"]
PROJECTIONS = ["projections", "sparse projections", "chi2 projections", "everything"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [*ADDITIVE, *FERNS])
def test_shares_are_shapley_values_of_the_whole_model(fitted, plain_shapley, name, n_classes):
    model, X = fitted(name, n_classes)
    background = X[10:30]
    shares = contributions(model.predictor_, X[:3], background)
    for row in range(3):
        expected = plain_shapley(model, X[row], background)
        np.testing.assert_allclose(shares[row], expected, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [*ADDITIVE, *FERNS, *PROJECTIONS])
def test_shares_sum_to_the_scores(fitted, name, n_classes):
    model, X = fitted(name, n_classes)
    scores = model.predictor_.scores(X)
    baseline = model.predictor_.scores(X[:20]).mean(axis=0)
    shares = contributions(model.predictor_, X, X[:20])
    assert shares.shape == (*X.shape, scores.shape[1])
    np.testing.assert_allclose(baseline + shares.sum(axis=1), scores, rtol=1e-9, atol=1e-9)


def test_ferns_of_many_features(make_data):
    X, y = make_data(n_features=30, n_classes=3)
    model = MBKLClassifier(maps=Ferns(depth=40), n_maps=40, random_state=0).fit(X, y)
    assert max(np.unique(features).size for features in model.fern_features_) > 20
    scores = model.predictor_.scores(X)
    shares = contributions(model.predictor_, X, X[:10])
    baseline = scores[:10].mean(axis=0)
    np.testing.assert_allclose(baseline + shares.sum(axis=1), scores, rtol=1e-9, atol=1e-9)


def test_blocks_do_not_matter(fitted, monkeypatch):
    model, X = fitted("auto")
    whole = contributions(model.predictor_, X, X[:20])
    monkeypatch.setattr(fern_games, "_FERNS_AT_ONCE", 17)
    monkeypatch.setattr(fern_games, "_ENTRIES_AT_ONCE", 2_000)
    monkeypatch.setattr(attribution, "_ROWS_AT_ONCE", 31)
    pieces = contributions(model.predictor_, X, X[:20])
    np.testing.assert_allclose(pieces, whole, atol=1e-12)


def test_a_feature_that_no_map_asks_about_gets_nothing(make_data):
    X, y = make_data(n_features=5)
    X[:, 2] = 1.0
    for maps in ("auto", "stumps"):
        model = MBKLClassifier(maps=maps, n_maps=50, random_state=0).fit(X, y)
        assert not contributions(model.predictor_, X, X[:9])[:, 2].any()


def test_projections_share_by_the_way_along_them(fitted):
    """The plain way: one row, one background row, one projection after the other."""
    model, X = fitted("projections")
    part, tables = model.predictor_.maps.families[0], model.predictor_.tables[0]
    edges, expected = part.stumps.edges, np.zeros((4, 3))
    for z in X[10:13]:
        x = np.where(np.isnan(X[0]), part.centre, X[0])
        z = np.where(np.isnan(z), part.centre, z)
        for projection in range(part.n_groups):
            way = part.directions[:, projection] * (x - z) / part.scale
            table = tables[edges.cell_offsets[projection] : edges.cell_offsets[projection + 1]]
            thresholds = edges.thresholds[edges.offsets[projection] : edges.offsets[projection + 1]]
            cell = [(part.project(row[None])[0, projection] > thresholds).sum() for row in (x, z)]
            share = way / way.sum()
            expected += np.outer(share, table[cell[0]] - table[cell[1]]) / 3
    shares = contributions(model.predictor_, X[:1], X[10:13])
    np.testing.assert_allclose(shares[0], expected, atol=1e-9)


def test_a_row_among_copies_of_itself_has_nothing_to_explain(fitted):
    for name in ("auto", "everything"):
        model, X = fitted(name)
        shares = contributions(model.predictor_, X[:1], np.repeat(X[:1], 5, axis=0))
        np.testing.assert_allclose(shares, 0.0, atol=1e-12)


NAMES = ["auto", "stumps", "learned stumps", "ferns", "deep ferns", "list", "everything"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [*NAMES, "projections", "chi2 projections"])
def test_they_sum_to_one(fitted, name, n_classes):
    model, X = fitted(name, n_classes)
    importances = column_importances(model)
    assert importances.shape == (X.shape[1],)
    assert (importances >= 0).all()
    assert importances.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["auto", "stumps", "deep ferns", "list"])
def test_changes_are_those_of_the_scores(fitted, name):
    model, X = fitted(name)
    predictor = model.predictor_
    rows = rows_between_thresholds(predictor.maps, X.shape[1], 20)
    for feature, change in enumerate(_over_families(_add_changes, predictor, rows)):
        mixed = rows.copy()
        mixed[:, feature] = np.roll(rows[:, feature], 1)
        expected = predictor.scores(rows) - predictor.scores(mixed)
        np.testing.assert_allclose(change, expected, atol=1e-12)


@pytest.mark.parametrize("maps", ["auto", "stumps"])
def test_noise_gets_little_and_duplicates_share(maps):
    generator = np.random.default_rng(0)
    signal, noise = generator.normal(size=(400, 1)), generator.normal(size=(400, 4))
    X = np.hstack([signal, noise[:, :2], signal, noise[:, 2:]])
    model = MBKLClassifier(maps=maps, n_maps=200, random_state=0).fit(X, signal[:, 0] > 0)
    importances = column_importances(model)
    assert importances[[0, 3]].sum() > 0.7
    assert importances[[0, 3]].min() > 0.1
    assert np.delete(importances, [0, 3]).max() < 0.1


def test_an_interaction_counts():
    X = np.random.default_rng(0).normal(size=(400, 4))
    model = MBKLClassifier(n_maps=200, random_state=0).fit(X, X[:, 1] * X[:, 3] > 0)
    importances = column_importances(model)
    assert importances[[1, 3]].min() > 3 * importances[[0, 2]].max()


def test_columns_that_no_map_asks_about(make_data):
    X, y = make_data()
    X[:, 2] = 1.0
    assert column_importances(MBKLClassifier(n_maps=50, random_state=0).fit(X, y))[2] == 0.0
    with pytest.warns(UserWarning, match="No feature of X varies"):
        nothing = MBKLClassifier().fit(np.ones((4, 2)), [0, 1, 1, 1])
    assert column_importances(nothing).tolist() == [0.0, 0.0]
    with pytest.raises(NotFittedError):
        column_importances(MBKLClassifier())


def test_estimators_have_them_as_an_attribute(make_data):
    X, y = make_data(120, 3)
    model = MBKLClassifier(n_maps=40, random_state=0)
    assert not hasattr(model, "feature_importances_")
    model.fit(X, y)
    np.testing.assert_array_equal(model.feature_importances_, column_importances(model))
    assert model.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["stumps", "auto", "list", "everything", "chi2 projections"])
def test_sets_sum_to_the_scores(fitted, name):
    model, X = fitted(name)
    added = set_contributions(model.predictor_, X, X[:20])
    assert list(added) == sorted(added)
    scores = model.predictor_.scores(X)
    baseline = scores[:20].mean(axis=0)
    np.testing.assert_allclose(baseline + sum(added.values()), scores, rtol=1e-9, atol=1e-9)


def test_features_of_each_family(fitted):
    model, _ = fitted("everything", n_features=9)
    stumps, ferns, projections = model.predictor_.maps.families
    assert joined_features(stumps) == [(feature,) for feature in stumps.features]
    assert joined_features(ferns) == [tuple(np.unique(own)) for own in model.fern_features_]
    assert set(joined_features(projections)) == {tuple(range(9))}
    model, _ = fitted("sparse projections", n_features=9)
    (projections,) = model.predictor_.maps.families
    assert {len(own) for own in joined_features(projections)} == {3}
    model, _ = fitted("chi2 projections", n_features=9)
    (projections,) = model.predictor_.maps.families
    assert set(joined_features(projections)) == {tuple(range(9))}


@pytest.mark.parametrize("name", ["auto", "deep ferns", "list"])
def test_pairs_are_differences_of_partial_dependences(fitted, mixed_scores, name):
    model, X = fitted(name)
    rows, background = X[:4], X[10:20]
    features = np.array([2, 0, 3])
    found = pair_strengths(model.predictor_, rows, background, features).mean(axis=2)
    expected = np.zeros((3, 3))
    for a, first in enumerate(features):
        for b, second in enumerate(features):
            if first == second:
                continue
            effects = [
                mixed_scores(model, x, background, [first, second])
                - mixed_scores(model, x, background, [first])
                - mixed_scores(model, x, background, [second])
                + mixed_scores(model, x, background, [])
                for x in rows
            ]
            expected[a, b] = np.abs(effects).mean()
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_stumps_do_not_interact(fitted):
    model, X = fitted("stumps")
    assert not pair_strengths(model.predictor_, X, X, np.arange(4)).any()


def test_an_interaction_is_found():
    from mbkl import MBKLClassifier

    X = np.random.default_rng(0).normal(size=(400, 4))
    model = MBKLClassifier(n_maps=200, random_state=0).fit(X, X[:, 1] * X[:, 3] > 0)
    strengths = pair_strengths(model.predictor_, X[:100], X[:50], np.arange(4))[..., 0]
    assert np.unravel_index(strengths.argmax(), (4, 4)) == (1, 3)
    assert strengths[1, 3] > 5 * np.delete(strengths.ravel(), [7, 13]).max()

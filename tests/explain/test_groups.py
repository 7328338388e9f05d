import numpy as np
import pytest

from mbkl.explain.attribution import joined_features, pair_strengths, set_contributions


@pytest.mark.parametrize("name", ["stumps", "auto", "list", "everything", "chi2 projections"])
def test_sets_sum_to_the_scores(fitted, name):
    model, X = fitted(name)
    sets, added = set_contributions(model.predictor_, X, X[:20])
    assert len(set(sets)) == len(sets) == len(added)
    scores = model.predictor_.scores(X)
    baseline = scores[:20].mean(axis=0)
    np.testing.assert_allclose(baseline + added.sum(axis=0), scores, rtol=1e-9, atol=1e-9)


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
    found = pair_strengths(model.predictor_, rows, background, features)
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
    strengths = pair_strengths(model.predictor_, X[:100], X[:50], np.arange(4))
    assert np.unravel_index(strengths.argmax(), (4, 4)) == (1, 3)
    assert strengths[1, 3] > 5 * np.delete(strengths.ravel(), [7, 13]).max()

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mbkl import MBKLClassifier
from mbkl.explain import column_importances
from mbkl.explain.attribution import _changes
from mbkl.explain.rows import rows_between_thresholds

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
    for feature, change in enumerate(_changes(predictor, rows)):
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

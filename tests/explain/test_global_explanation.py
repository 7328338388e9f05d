import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV
from mbkl.explain import explain_global, explanations
from mbkl.explain.attribution import contributions
from mbkl.explain.rows import some_rows

NAMES = ["auto", "stumps", "deep ferns", "list", "projections", "everything"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_with_and_without_data(fitted, name, n_classes):
    model, X = fitted(name, n_classes)
    for data in (X, None):
        explanation = explain_global(model, data, max_rows=30, background_rows=20)
        assert explanation.classes == ((1,) if n_classes == 2 else (0, 1, 2))
        assert explanation.importances.shape == (4, len(explanation.classes))
        assert (explanation.importances >= 0).all()
        assert (explanation.importances > 0).any()
        assert explanation.from_data == (data is not None)
        assert (np.diff([group.importance for group in explanation.groups]) <= 0).all()
        assert explanation.pair_strengths.shape == (4, 4)
        counted = [shape.counts is not None for shape in explanation.shapes]
        assert all(counted) if data is not None else not any(counted)
        text = json.dumps(explanation.to_dict(), allow_nan=False)
        assert json.loads(text)["n_rows"] == 30


def test_a_short_summary(fitted):
    model, X = fitted("auto")
    explanation = explain_global(model, X)
    assert repr(explanation).startswith("<GlobalExplanation: 4 features, 3 scores, 80 rows; most ")
    assert f"x{explanation.ranking[0]} " in repr(explanation)
    shape = explanation.shape("x1")
    assert repr(shape) == f"<FeatureShape: 'x1', {len(shape.values)} intervals, 3 scores>"
    assert max(map(len, map(repr, (explanation, shape, *explanation.groups)))) < 200


def test_importances_are_mean_absolute_contributions(fitted):
    model, X = fitted("auto")
    explanation = explain_global(model, X, background_rows=20)
    rows = some_rows(X, 200)
    shares = contributions(model.predictor_, rows, some_rows(rows, 20))
    np.testing.assert_allclose(explanation.importances, np.abs(shares).mean(axis=0))
    np.testing.assert_allclose(
        explanation.baseline, model.decision_function(some_rows(rows, 20)).mean(axis=0)
    )


def test_the_order_of_the_rows_does_not_matter(fitted):
    model, X = fitted("auto")
    first, second = (
        explain_global(model, X, max_rows=30),
        explain_global(model, X[::-1], max_rows=30),
    )
    np.testing.assert_allclose(first.importances, second.importances, rtol=1e-9)


def test_rows_are_drawn_from_all_where_they_take_long(monkeypatch):
    """Files are often sorted, so that their first rows are not like the others."""
    X = np.sort(np.random.default_rng(0).normal(size=(400, 2)), axis=0)
    model = MBKLClassifier(n_maps=50, random_state=0).fit(X, X[:, 0] > 0)
    monkeypatch.setattr(explanations, "_MOST_WORK", 1.0)
    rows = []
    monkeypatch.setattr(
        explanations, "pair_strengths", lambda _, X, *rest: rows.append(X) or np.zeros((2, 2, 1))
    )
    assert explain_global(model, X).n_rows == 25
    assert 5 < (rows[0][:, 0] > 0).sum() < 20


def test_noise_is_less_important():
    X = np.random.default_rng(0).normal(size=(400, 6))
    model = MBKLClassifier(n_maps=300, random_state=0).fit(X, X[:, 1] * X[:, 4] > 0)
    explanation = explain_global(model, X)
    assert set(explanation.ranking[:2]) == {1, 4}
    assert explanation.importance[[1, 4]].min() > 5 * explanation.importance[[0, 2, 3, 5]].max()
    assert {1, 4} <= set(explanation.groups[0].features)


def test_names_come_from_the_data(fitted):
    model, X = fitted("stumps")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    y = np.where(np.arange(len(X)) % 2, "yes", "no")
    model = MBKLClassifier(n_maps=50, random_state=0).fit(frame, y)
    explanation = explain_global(model, frame)
    assert explanation.feature_names == ("a", "b", "c", "d")
    assert explanation.classes == ("yes",)
    assert explanation.shape("c").feature == explanation.shape(2).feature == 2
    assert any("a & b" in group.name for group in explanation.groups)
    table = explanation.to_frame()
    assert list(table.columns) == ["feature", "importance", "yes"]
    assert table["importance"].is_monotonic_decreasing
    shape = explanation.shape("b").to_frame()
    assert list(shape.columns) == ["above", "up to", "count", "yes"]
    assert shape["count"].sum() == len(X)
    assert shape["above"][1:].tolist() == shape["up to"][:-1].tolist()


def test_a_feature_without_a_shape(fitted):
    model, X = fitted("projections")
    explanation = explain_global(model, X)
    assert explanation.shapes == ()
    with pytest.raises(KeyError, match="no stump and no fern"):
        explanation.shape("x1")


def test_a_model_chosen_by_cross_validation(make_data):
    X, y = make_data()
    model = MBKLClassifierCV(n_maps=40, cv=2, random_state=0).fit(X, y)
    assert explain_global(model, X).importances.any()


@pytest.mark.filterwarnings("ignore:C_kernel=1e-09 is too small")
def test_a_model_without_maps(make_data):
    X, y = make_data()
    model = MBKLClassifier(maps="stumps", theta="learned", theta_shrinkage=0, C_kernel=1e-9).fit(
        X, y
    )
    for data in (X, None):
        explanation = explain_global(model, data)
        assert not explanation.importances.any()
        assert explanation.shapes == explanation.groups == ()
        json.dumps(explanation.to_dict(), allow_nan=False)


def test_a_constant_model(make_data):
    X, y = make_data()
    with pytest.warns(UserWarning, match="constant"):
        model = MBKLClassifier(random_state=0).fit(np.ones_like(X), y)
    assert not explain_global(model, X).importances.any()


def test_many_features_and_classes(make_data):
    X, y = make_data(n_rows=300, n_features=300, n_classes=20)
    model = MBKLClassifier(n_maps=300, random_state=0).fit(X, y)
    explanation = explain_global(model, X, max_rows=20, background_rows=10)
    assert explanation.importances.shape == (300, 20)
    assert explanation.pair_strengths.shape == (20, 20)


def test_bad_input(make_data, fitted):
    X, y = make_data()
    with pytest.raises(NotFittedError):
        explain_global(MBKLClassifier(), X)
    with pytest.raises(TypeError, match="MBKLRegressor, got MBKernel"):
        explain_global(MBKernel(n_maps=20).fit(X, y), X)
    model, X = fitted("stumps")
    with pytest.raises(ValueError, match="3 features"):
        explain_global(model, X[:, :3])
    with pytest.raises(ValueError, match="0 sample"):
        explain_global(model, X[:0])
    with pytest.raises(ValueError, match="infinity"):
        explain_global(model, np.full((2, 4), np.inf))
    for name in ("max_rows", "background_rows"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            explain_global(model, X, **{name: 0})

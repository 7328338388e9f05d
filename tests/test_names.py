"""Whole numbers that are names, in the estimators."""

import numpy as np
import pandas as pd
import pytest

import mbkl
from mbkl import MBKLClassifier, MBKLRegressor


def towns(n_rows=8_000, n_towns=800):
    """Return numbers of towns and amounts, and which towns are rich."""
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.integers(n_towns, size=n_rows), np.arange(n_rows)])
    return generator.permuted(X, axis=0), generator.random(n_towns) < 0.5


@pytest.fixture(scope="module")
def fitted():
    X, is_rich = towns()
    y = np.where(is_rich[X[:, 0]], "rich", "poor")
    return X, y, MBKLClassifier(random_state=0).fit(X[:6_000], y[:6_000])


def test_names_are_categories(fitted):
    X, y, model = fitted
    assert model.n_levels.tolist() == [800, 0]
    assert model.score(X[6_000:], y[6_000:]) > 0.95
    numbers = MBKLClassifier(categorical_features=None, random_state=0).fit(X[:6_000], y[:6_000])
    assert numbers.n_levels is None
    assert numbers.score(X[6_000:], y[6_000:]) < 0.8


def test_new_names_and_missing_ones_are_taken(fitted):
    _, _, model = fitted
    chances = model.predict_proba(np.array([[1_000, 5.0], [np.nan, 5.0], [7.5, 5.0]]))
    assert np.isfinite(chances).all()


def test_a_model_with_names_can_be_saved(fitted, tmp_path):
    X, _, model = fitted
    model.save(tmp_path / "towns.mbkl")
    again = mbkl.load(tmp_path / "towns.mbkl")
    assert again.levels_ == model.levels_
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_names_of_frames_and_of_other_types_are_the_same(fitted):
    X, y, model = fitted
    frame = pd.DataFrame({"town": X[:6_000, 0], "amount": X[:6_000, 1]})
    for rows in (frame, X[:6_000].astype(np.float32)):
        same = MBKLClassifier(random_state=0).fit(rows, y[:6_000])
        np.testing.assert_array_equal(same.coef_, model.coef_)
    beside = frame.assign(kind=np.where(frame.amount % 2, "odd", "even"))
    both = MBKLClassifier(random_state=0).fit(beside, y[:6_000])
    assert both.n_levels.tolist() == [800, 0, 2]
    assert both.score(beside, y[:6_000]) > 0.95


def test_names_tell_numbers():
    X, is_rich = towns()
    y = is_rich[X[:, 0]] + np.random.default_rng(1).normal(scale=0.3, size=len(X))
    model = MBKLRegressor(random_state=0).fit(X[:6_000], y[:6_000])
    assert model.n_levels.tolist() == [800, 0]
    assert model.score(X[6_000:], y[6_000:]) > 0.6


@pytest.mark.parametrize("options", [{"maps": "stumps"}, {"categorical_features": [1]}])
def test_names_are_not_looked_for_where_something_else_is_said(options):
    X, is_rich = towns()
    X[:, 1] %= 3
    model = MBKLClassifier(random_state=0, **options).fit(X, is_rich[X[:, 0]])
    assert model.levels_[0] is None

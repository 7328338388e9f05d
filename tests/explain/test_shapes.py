import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mbkl import MBKLClassifier
from mbkl.explain import explain_global, fern_games
from mbkl.explain.attribution import contributions
from mbkl.maps import Ferns


@pytest.mark.parametrize("name", ["stumps", "learned stumps"])
def test_without_ferns_shapes_are_what_features_add(fitted, name):
    model, X = fitted(name)
    explanation = explain_global(model, X)
    shares = contributions(model.predictor_, X, X)
    for shape in explanation.shapes:
        np.testing.assert_allclose(
            shape.at(X[:, shape.feature]), shares[:, shape.feature], atol=1e-12
        )


@pytest.mark.parametrize("name", ["auto", "list", "deep ferns"])
def test_shapes_are_partial_dependences(fitted, mixed_scores, name):
    model, X = fitted(name)
    background = X[:25]
    for shape in explain_global(model, background).shapes:
        values = X[25:32, shape.feature]
        rows = np.tile(values[:, None], X.shape[1])
        found = shape.at(values)
        expected = np.array([mixed_scores(model, x, background, [shape.feature]) for x in rows])
        np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-10)
        np.testing.assert_allclose(
            shape.at(background[:, shape.feature]).mean(axis=0), 0.0, atol=1e-12
        )


def test_counts_are_those_of_the_data(fitted):
    model, X = fitted("auto")
    for X_given in (X, sparse.csr_array(np.nan_to_num(X))):
        for shape in explain_global(model, X_given).shapes:
            column = X_given[:, [shape.feature]]
            column = column.toarray().ravel() if sparse.issparse(column) else column.ravel()
            cells = (column[:, None] > shape.thresholds).sum(axis=1)
            np.testing.assert_array_equal(
                shape.counts, np.bincount(cells, minlength=shape.thresholds.size + 1)
            )


def test_missing_values_have_a_step_of_their_own(fitted):
    model, X = fitted("stumps")
    shape = explain_global(model, X).shape(1)
    assert np.isneginf(shape.thresholds[0])
    assert shape.counts[0] == np.isnan(X[:, 1]).sum()
    np.testing.assert_array_equal(shape.at([np.nan])[0], shape.values[0])


def test_jumps_of_categories_and_numbers_do_not_depend_on_blocks(monkeypatch):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"town": generator.choice(list("abcdefgh"), 200), "age": generator.normal(size=200)}
    )
    y = frame["town"].isin(["a", "d"]) ^ (frame["age"] > 0)
    model = MBKLClassifier(maps=Ferns(depth=6), n_maps=20, random_state=0).fit(frame, y)
    whole = explain_global(model, frame)
    monkeypatch.setattr(fern_games, "_FERNS_AT_ONCE", 7)
    for shape in explain_global(model, frame).shapes:
        expected = whole.shape(shape.feature)
        np.testing.assert_array_equal(shape.thresholds, expected.thresholds)
        np.testing.assert_allclose(shape.values, expected.values, atol=1e-12)


def test_the_warp_is_that_of_the_kernel(fitted):
    model, X = fitted("learned stumps")
    shapes = explain_global(model, X).shapes
    theta = np.concatenate([shape.theta for shape in shapes])
    np.testing.assert_array_equal(theta, model.theta_)
    for shape in shapes:
        for value, place in zip(X[:9, shape.feature], shape.at(X[:9, shape.feature])):
            below = shape.theta[shape.stump_thresholds < value].sum()
            interval = (value > shape.thresholds).sum()
            assert np.isclose(shape.warp[interval], below)
            np.testing.assert_array_equal(place, shape.values[interval])


def test_stumps_among_other_maps_keep_their_weights(fitted):
    model, X = fitted("everything")
    shapes = explain_global(model, X).shapes
    theta = np.concatenate([shape.theta for shape in shapes])
    np.testing.assert_array_equal(theta, model.theta_[: model.stump_features_.size])

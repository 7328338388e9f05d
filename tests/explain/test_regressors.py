"""Explanations of regressors: in the unit of the target, and the sum is the prediction."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLRegressor, MBKLRegressorCV
from mbkl.explain import explain_global, explain_local
from mbkl.io import load, save
from mbkl.maps import Ferns

MODELS = {
    "auto": MBKLRegressor(n_maps=60, random_state=0),
    "stumps": MBKLRegressor(maps="stumps", n_maps=60, random_state=0),
    "grown": MBKLRegressor(maps="grown", n_maps=10, random_state=0),
    "counts": MBKLRegressor(maps=["stumps", Ferns(depth=4)], n_maps=60, loss="poisson"),
    "median": MBKLRegressor(maps="ferns", n_maps=60, loss="absolute_error", random_state=0),
    "search": MBKLRegressorCV(maps="stumps", n_maps=60, Cs=(0.1, 1.0), cv=2, random_state=0),
}


def make_rows(n_rows=90):
    X = np.round(np.random.default_rng(0).normal(size=(n_rows, 4)) * 64) / 64
    y = 1000.0 + 200.0 * X[:, 0] * (X[:, 1] > 0) + 50.0 * X[:, 2]
    X[::7, 1] = np.nan
    return X, y.clip(0.0)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    X, y = make_rows()
    return MODELS[request.param].fit(X, pd.Series(y, name="price")), X


@pytest.fixture(scope="module")
def of_two():
    """A model of two targets with very different units, and its rows."""
    X, y = make_rows()
    targets = pd.DataFrame({"price": y, "weight": 1e-6 * X[:, 3]})
    return MBKLRegressor(n_maps=60, random_state=0).fit(X, targets), X


@pytest.mark.parametrize("with_background", [True, False])
def test_everything_sums_to_the_prediction(fitted, with_background):
    model, X = fitted
    background = X if with_background else None
    explanation = explain_local(model, X[:9], background=background, groups=True)
    expected = model.predict(X[:9])
    expected = np.log(expected) if model.loss == "poisson" else expected
    for shares in (explanation.contributions, explanation.group_contributions):
        total = (explanation.baseline + shares.sum(axis=1))[:, 0]
        np.testing.assert_allclose(total, expected, rtol=1e-9)
    assert explanation.classes == ("price",)
    assert explanation.unit == ("log" if model.loss == "poisson" else "target")
    frame = explanation.to_frame()
    assert frame.index.names == ["row", "target"]
    np.testing.assert_allclose(frame["score"], expected)


@pytest.mark.parametrize("has_data", [True, False])
def test_what_a_model_has_learned(fitted, has_data):
    model, X = fitted
    explanation = explain_global(model, X if has_data else None, max_rows=30)
    assert set(explanation.ranking[:2].tolist()) <= {0, 1, 2}
    assert explanation.importances.shape == (4, 1)
    assert explanation.shape("x0").classes == ("price",)
    np.testing.assert_array_equal(explanation.importance, explanation.importances[:, 0])
    assert json.loads(json.dumps(explanation.to_dict(), allow_nan=False))["unit"] != "score"
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argmax() in (0, 1, 2)


def test_shapes_are_in_the_unit_of_the_target():
    X, _ = make_rows(200)
    model = MBKLRegressor(maps="stumps", random_state=0).fit(X, X[:, 0])
    larger = MBKLRegressor(maps="stumps", random_state=0).fit(X, 1000.0 * X[:, 0])
    shapes = [explain_global(each, X).shape(0).values for each in (model, larger)]
    np.testing.assert_allclose(1000.0 * shapes[0], shapes[1], rtol=1e-6, atol=1e-6)
    assert np.ptp(shapes[0]) == pytest.approx(np.ptp(X[:, 0]), rel=0.3)


def test_several_targets(of_two):
    model, X = of_two
    explanation = explain_local(model, X[:9], background=X)
    assert explanation.classes == ("price", "weight")
    total = explanation.baseline + explanation.contributions.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(X[:9]), rtol=1e-9, atol=1e-12)
    whole = explain_global(model, X)
    assert list(whole.to_frame().columns) == ["feature", "importance", "price", "weight"]
    assert whole.importances.argmax(axis=0).tolist() == [0, 3]


def test_units_do_not_matter_for_the_order_of_features(of_two):
    model, X = of_two
    whole = explain_global(model, X)
    assert whole.importance.sum() == pytest.approx(1.0)
    assert set(whole.ranking[:2].tolist()) == {0, 3}
    assert model.feature_importances_[3] > 0.2
    assert (np.diff([group.importance for group in whole.groups]) <= 0).all()


def test_names_of_targets(of_two):
    model, X = of_two
    _, y = make_rows()
    assert model.target_names_ == ["price", "weight"]
    file = io.BytesIO()
    save(model, file)
    assert load(io.BytesIO(file.getvalue())).target_names_ == ["price", "weight"]
    small = MBKLRegressor(maps="stumps", n_maps=10, random_state=0)
    assert small.fit(X, y).target_names_ == ["y"]
    assert small.fit(X, np.column_stack([y, y])).target_names_ == ["y0", "y1"]
    assert small.fit(X, pd.Series(y)).target_names_ == ["y"]

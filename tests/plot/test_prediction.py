import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from mbkl import MBKLRegressor
from mbkl.plot import PredictionDisplay, quality


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(0)
    X = draw.uniform(size=(80, 2))
    return X, X[:, 0] + 0.1 * draw.normal(size=80)


def test_two_pictures(rows):
    X, y = rows
    model = MBKLRegressor(n_maps=40, random_state=0).fit(X[:50], y[:50])
    display = PredictionDisplay.from_estimator(model, X[50:], y[50:], coverage=0.8, name="rent")
    truth, residuals = display.axes_
    assert truth.get_xlabel() == residuals.get_xlabel() == "predicted rent"
    assert residuals.get_title().startswith("residuals; intervals hold")
    dots = truth.collections[0].get_offsets()
    np.testing.assert_allclose(dots, np.column_stack([model.predict(X[50:]), y[50:]]))
    display.figure_.canvas.draw()


@pytest.mark.parametrize("bounds", [None, np.tile([-np.inf, np.inf], (80, 1))])
def test_without_finite_intervals(rows, bounds):
    _, y = rows
    display = PredictionDisplay.from_predictions(y, y, bounds)
    assert display.axes_[1].get_title() == "residuals"


def test_other_regressors_and_axes(rows):
    X, y = rows
    figure, axes = plt.subplots(1, 2)
    display = PredictionDisplay.from_estimator(Ridge().fit(X, y), X, y, ax=axes)
    assert display.figure_ is figure


def test_many_rows_are_thinned(rows, monkeypatch):
    _, y = rows
    monkeypatch.setattr(quality, "_MOST_DOTS", 20)
    display = PredictionDisplay.from_predictions(y, y)
    assert len(display.axes_[0].collections[0].get_offsets()) == 20


def test_targets_are_drawn_one_by_one():
    with pytest.raises(ValueError, match="one by one"):
        PredictionDisplay(np.ones((3, 2)), np.ones((3, 2)))

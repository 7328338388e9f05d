import matplotlib.pyplot as plt
import numpy as np
import pytest

from mbkl import MBKLClassifier
from mbkl.plot import InteractionDisplay


def test_values_are_the_partial_dependence(model):
    fitted, X, _ = model
    display = InteractionDisplay.from_estimator(
        fitted, X, features=("x2", 0), label=1, background_rows=len(X), resolution=5
    )
    rows = X.copy()
    rows[:, 2], rows[:, 0] = display.grids[0][3], display.grids[1][1]
    means = [fitted.decision_function(data)[:, 1].mean() for data in (rows, X)]
    assert display.values[1, 3] == pytest.approx(means[0] - means[1])
    assert display.ax_.get_xlabel() == "x2"
    assert display.ax_.get_ylabel() == "x0"
    np.testing.assert_array_equal(display.mesh_.get_array(), display.values)
    display.figure_.canvas.draw()


def test_the_four_fields_of_a_product():
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 3))
    fitted = MBKLClassifier(n_maps=200, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    display = InteractionDisplay.from_estimator(fitted, X, features=(0, 1), resolution=4)
    signs = np.sign(display.values[[0, 0, -1, -1], [0, -1, 0, -1]])
    np.testing.assert_array_equal(signs, [1, -1, -1, 1])


def test_given_axes_missing_values_and_bad_input(model):
    fitted, X, _ = model
    _, ax = plt.subplots()
    display = InteractionDisplay.from_estimator(
        fitted, X, features=(0, 1), background_rows=5, resolution=3, ax=ax
    )
    assert display.ax_ is ax
    assert np.isfinite(display.values).all()
    for features in ((1, 1), (1,), (0, 9), ("x0", "none")):
        with pytest.raises(ValueError, match="features"):
            InteractionDisplay.from_estimator(fitted, X, features=features)
    with pytest.raises(ValueError, match="classes names 7"):
        InteractionDisplay.from_estimator(fitted, X, features=(0, 1), label=7, resolution=2)

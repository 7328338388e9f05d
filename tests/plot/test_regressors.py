"""Pictures of regressors: axes are in the unit of the target."""

import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLRegressor
from mbkl.explain import explain_local
from mbkl.plot import (
    ImportanceDisplay,
    InteractionDisplay,
    ShapeFunctionDisplay,
    WaterfallDisplay,
)

# Losses, targets, and how the target is written in labels.
CASES = {
    "price": ("squared_error", ["price"], "price"),
    "visits": ("poisson", ["visits"], "log(visits)"),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, make_data):
    loss, names, words = CASES[request.param]
    X, _ = make_data(n_features=4)
    y = pd.Series(np.abs(100 * X[:, 0] + 30 * X[:, 1]), name=names[0])
    X[::7, 1] = np.nan
    return MBKLRegressor(n_maps=60, loss=loss, random_state=0).fit(X, y), X, words


@pytest.fixture(scope="module")
def of_two(make_data):
    X, _ = make_data(n_features=4)
    y = pd.DataFrame({"price": 100 * X[:, 0], "weight": 0.01 * X[:, 1]})
    return MBKLRegressor(n_maps=60, random_state=0).fit(X, y), X


def test_labels_name_the_target(case):
    model, X, words = case
    display = ImportanceDisplay.from_estimator(model, X)
    assert display.ax_.get_xlabel() == f"mean change of {words}"
    display = ShapeFunctionDisplay.from_estimator(model, X, [0, 1])
    assert display.ax_.get_ylabel() == f"added to {words}"
    assert [len(lines) for lines in display.lines_] == [1, 1]
    display.figure_.canvas.draw()
    display = InteractionDisplay.from_estimator(model, X, features=(0, 1), resolution=4)
    assert display.figure_.axes[1].get_ylabel() == f"added to {words}"
    display.figure_.canvas.draw()


def test_steps_lead_to_the_prediction(case):
    model, X, words = case
    display = WaterfallDisplay.from_estimator(model, X[:3], row=2, background=X)
    assert display.ax_.get_xlabel() == words
    end = display.baseline + display.steps.sum()
    end = np.exp(end) if model.loss == "poisson" else end
    assert end == pytest.approx(model.predict(X[2:3])[0])
    assert any(text.get_text().startswith("prediction ") for text in display.ax_.texts)
    display.figure_.canvas.draw()


def test_several_targets(of_two):
    model, X = of_two
    display = ImportanceDisplay.from_estimator(model, X)
    assert display.ax_.get_xlabel() == "mean change of a target, as a share"
    assert sum(bar.get_width() for bar in display.bars_) == pytest.approx(1.0)
    display = ShapeFunctionDisplay.from_estimator(model, X, [0])
    assert [line.get_label() for line in display.lines_[0]] == ["price", "weight"]
    assert display.ax_.get_ylabel() == "added to the target"
    display = ShapeFunctionDisplay.from_estimator(model, X, [0], classes=["weight"])
    assert display.ax_.get_ylabel() == "added to weight"
    for label, expected in ((None, "price"), ("weight", "weight")):
        explanation = explain_local(model, X[:1], background=X)
        assert (
            WaterfallDisplay.from_explanation(explanation, label=label).ax_.get_xlabel() == expected
        )
        display = InteractionDisplay.from_estimator(
            model, X, features=(0, 1), label=label, resolution=3
        )
        assert display.label == expected

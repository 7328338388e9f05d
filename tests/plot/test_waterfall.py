import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mbkl.explain import explain_local
from mbkl.plot import WaterfallDisplay


def test_steps_lead_from_the_mean_to_the_score(model):
    fitted, X, _ = model
    display = WaterfallDisplay.from_estimator(fitted, X[:3], row=2, background=X, max_features=3)
    explanation = explain_local(fitted, X[:3], background=X)
    column = int(fitted.decision_function(X[2:3]).argmax())
    added = explanation.contributions[2, :, column]
    order = np.argsort(-np.abs(added), kind="stable")
    np.testing.assert_allclose(display.steps[:3], added[order[:3]])
    np.testing.assert_allclose(display.steps[3], added[order[3:]].sum())
    ends = [bar.get_x() + bar.get_width() for bar in display.bars_]
    assert display.bars_[0].get_x() == pytest.approx(explanation.baseline[column])
    assert ends[-1] == pytest.approx(explanation.scores[2, column])
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [*(f"x{feature}" for feature in order[:3]), "2 other features"]
    display.figure_.canvas.draw()


def test_a_given_class_axes_and_values_of_a_frame(model):
    fitted, X, _ = model
    _, ax = plt.subplots()
    display = WaterfallDisplay.from_explanation(explain_local(fitted, X[:1]), label=1, ax=ax)
    assert display.ax_ is ax
    assert len(display.bars_) == 5
    assert display.ax_.get_xlabel() == "score of 1"
    frame = pd.DataFrame(X[:1], columns=[f"x{feature}" for feature in range(5)])
    with pytest.warns(UserWarning, match="X has feature names"):
        display = WaterfallDisplay.from_estimator(fitted, frame)
    assert f"x0 = {X[0, 0]:.4g}" in display.names
    with pytest.raises(ValueError, match="classes names 9"):
        WaterfallDisplay.from_estimator(fitted, X[:1], label=9)

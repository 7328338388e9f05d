import matplotlib.pyplot as plt
import numpy as np

from mbkl.explain import explain_global
from mbkl.plot import ImportanceDisplay


def test_bars_are_the_importances(model):
    fitted, X, _ = model
    display = ImportanceDisplay.from_estimator(fitted, X, max_features=3)
    explanation = explain_global(fitted, X)
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_allclose(widths, np.sort(explanation.importance)[:-4:-1])
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [f"x{feature}" for feature in explanation.ranking[:3]]
    assert display.ax_.get_title(loc="left") == "the 3 most important of 5 features"
    display.figure_.canvas.draw()


def test_given_axes_and_no_data(model):
    fitted, _, _ = model
    _, ax = plt.subplots()
    display = ImportanceDisplay.from_estimator(fitted, ax=ax)
    assert display.ax_ is ax
    assert len(display.bars_) == 5
    assert display.ax_.get_title(loc="left") == ""

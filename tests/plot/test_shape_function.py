import matplotlib.pyplot as plt
import numpy as np
import pytest

from mbkl import MBKLClassifier
from mbkl.explain import explain_global
from mbkl.plot import ShapeFunctionDisplay


def test_lines_are_the_shape_functions(model):
    fitted, X, _ = model
    display = ShapeFunctionDisplay.from_estimator(fitted, X, [0, "x1"])
    explanation = explain_global(fitted, X)
    assert [ax.get_xlabel() for ax in display.axes_] == ["x0", "x1"]
    for feature, lines in enumerate(display.lines_):
        shape = explanation.shape(feature)
        assert [line.get_label() for line in lines] == ["0", "1", "2"]
        for column, line in enumerate(lines):
            edges, steps = line.get_data()
            assert line.get_drawstyle() == "steps-post"
            middle = (edges[1:] + edges[:-1]) / 2
            np.testing.assert_allclose(steps[:-1], shape.at(middle)[:, column])
    assert display.ax_ is display.axes_[0]
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()


def test_the_most_important_features_and_the_classes_that_change_most(make_data):
    X, y = make_data(n_rows=160, n_classes=8, n_features=6)
    fitted = MBKLClassifier(n_maps=60, random_state=0).fit(X, y)
    display = ShapeFunctionDisplay.from_estimator(fitted, X)
    assert [shape.feature for shape in display.shapes] == list(
        explain_global(fitted, X).ranking[:4]
    )
    assert len(display.lines_[0]) == 6


def test_chosen_classes_and_given_axes(model):
    fitted, X, _ = model
    _, axes = plt.subplots(1, 3)
    display = ShapeFunctionDisplay.from_estimator(fitted, X, [2, 3], classes=[2], ax=axes)
    assert [len(lines) for lines in display.lines_] == [1, 1]
    assert [line.get_label() for line in display.lines_[0]] == ["2"]
    assert display.axes_[1] is axes[1]
    assert not axes[2].get_visible()
    single = plt.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    assert ShapeFunctionDisplay.from_estimator(fitted, X, [2], ax=single).ax_ is single


def test_without_data_and_with_a_constant_feature(model):
    fitted, X, _ = model
    assert ShapeFunctionDisplay.from_estimator(fitted).figure_ is not None
    same = X.copy()
    same[:, 0] = 1.0
    ShapeFunctionDisplay.from_estimator(fitted, same, [0]).figure_.canvas.draw()


def test_missing_values_are_marked(model):
    fitted, X, _ = model
    display = ShapeFunctionDisplay.from_estimator(fitted, X, [0, 1])
    notes = [[text.get_text() for text in ax.texts] for ax in display.axes_]
    assert notes == [[], ["◆ missing"]]


def test_two_classes_name_the_one_with_the_score(make_data):
    X, y = make_data()
    fitted = MBKLClassifier(n_maps=30, random_state=0).fit(X, np.array(["no", "yes"])[y])
    display = ShapeFunctionDisplay.from_estimator(fitted, X, [0])
    assert display.ax_.get_ylabel() == "added to the score of yes"


def test_bad_input(model, make_data):
    fitted, X, y = model
    with pytest.raises(KeyError, match="'nothing'"):
        ShapeFunctionDisplay.from_estimator(fitted, X, ["nothing"])
    with pytest.raises(ValueError, match=r"classes names 7, but the scores are of \[0, 1, 2\]"):
        ShapeFunctionDisplay.from_estimator(fitted, X, [0], classes=[7])
    with pytest.raises(ValueError, match="1 axes for 2 features"):
        ShapeFunctionDisplay.from_estimator(fitted, X, [0, 1], ax=plt.subplots()[1])
    projections = MBKLClassifier(maps="projections", n_maps=60).fit(X, y)
    with pytest.raises(ValueError, match="no stumps and no ferns"):
        ShapeFunctionDisplay.from_estimator(projections, X)

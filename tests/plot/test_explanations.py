import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLClassifier
from mbkl.explain import explain_global, explain_local
from mbkl.plot import ImportanceDisplay, InteractionDisplay, ShapeFunctionDisplay, WaterfallDisplay


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

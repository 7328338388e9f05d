import matplotlib.pyplot as plt
import numpy as np
import pytest

from mbkl import MBKLClassifierCV
from mbkl.plot import PathDisplay


@pytest.fixture(scope="module")
def search(make_data):
    X, y = make_data()
    model = MBKLClassifierCV(
        maps="stumps",
        theta="learned",
        theta_shrinkage=0,
        Cs=(0.1, 1, 10),
        C_kernels=(0.1, 1),
        cv=2,
        n_maps=30,
    )
    return model.fit(X, y)


def test_lines_are_the_results(search):
    display = PathDisplay.from_estimator(search)
    upper, lower = display.axes_
    results = search.cv_results_
    for line, maps, C_kernel in zip(upper.get_lines(), lower.get_lines(), (0.1, 1.0)):
        same = results["param_C_kernel"] == C_kernel
        assert line.get_label() == f"C_kernel = {C_kernel:g}"
        np.testing.assert_array_equal(line.get_xdata(), [0.1, 1, 10])
        np.testing.assert_array_equal(line.get_ydata(), results["mean_test_score"][same])
        np.testing.assert_array_equal(maps.get_ydata(), results["mean_n_maps"][same])
    assert upper.texts[0].get_text() == f"chosen: C = {search.C_:g}"
    assert [label.get_text() for label in lower.get_xticklabels()] == ["0.1", "1", "10"]
    display.figure_.canvas.draw()


def test_shrinkages_that_were_tried(make_data):
    X, y = make_data()
    model = MBKLClassifierCV(
        maps="stumps", theta="learned", Cs=(0.1, 1), C_kernels=(1,), cv=2, n_maps=30
    )
    display = PathDisplay.from_estimator(model.fit(X, y))
    labels = [line.get_label() for line in display.ax_.get_lines()]
    shown = [label for label in labels if label.startswith("shrinkage ")]
    assert shown == [f"shrinkage {share:g}" for share in (0, 0.7, 0.9, 1)]


def test_depths_that_were_tried(make_data):
    X, y = make_data()
    model = MBKLClassifierCV(n_maps=20, cv=2, random_state=0).fit(X, y)
    display = PathDisplay.from_estimator(model)
    labels = [line.get_label() for line in display.ax_.get_lines()]
    assert sum(label.startswith("depth ") for label in labels) == 3


def test_given_axes(search):
    _, axes = plt.subplots(2)
    assert PathDisplay.from_estimator(search, ax=axes).ax_ is axes[0]


def test_a_model_without_a_path(model):
    with pytest.raises(TypeError, match="MBKLClassifierCV"):
        PathDisplay.from_estimator(model[0])
    with pytest.raises(TypeError, match="MBKLClassifierCV"):
        PathDisplay.from_estimator(MBKLClassifierCV())

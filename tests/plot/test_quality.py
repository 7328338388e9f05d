import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV, MBKLRegressor, MBKLRegressorCV
from mbkl.explain.rows import kernel_matrix
from mbkl.plot import KernelMatrixDisplay, PathDisplay, PredictionDisplay, QualityDisplay, quality


@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_three_pictures(make_data, n_classes):
    X, y = make_data(n_rows=160, n_classes=n_classes)
    model = MBKLClassifier(n_maps=40, random_state=0).fit(X[:80], y[:80])
    display = QualityDisplay.from_estimator(model, X[80:], y[80:])
    assert len(display.axes_) == 3
    assert len(display.curves) == {2: 1, 3: 3, 8: 6}[n_classes]
    display.figure_.canvas.draw()
    plt.close(display.figure_)


def test_classes_and_axes(make_data):
    X, y = make_data(n_classes=3)
    model = MBKLClassifier(n_maps=40, random_state=0).fit(X, y)
    figure, axes = plt.subplots(1, 3)
    display = QualityDisplay.from_estimator(model, X, y, classes=[2], ax=axes)
    assert [curves.label for curves in display.curves] == [2]
    assert display.figure_ is figure
    with pytest.raises(ValueError, match="classes names 5"):
        QualityDisplay.from_predictions(y, model.predict_proba(X), np.arange(3), classes=[5])
    plt.close(figure)


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
    model = MBKLClassifierCV(maps="stumps", theta="learned", Cs=(0.1, 1), cv=2, n_maps=30)
    display = PathDisplay.from_estimator(model.fit(X, y))
    labels = [line.get_label() for line in display.ax_.get_lines()]
    shown = [label for label in labels if label.startswith("shrinkage ")]
    assert shown == ["shrinkage 0.9", "shrinkage 1"]


def test_depths_that_were_tried(make_data):
    X, y = make_data()
    model = MBKLClassifierCV(n_maps=20, cv=2, random_state=0).fit(X, y)
    display = PathDisplay.from_estimator(model)
    labels = [line.get_label() for line in display.ax_.get_lines()]
    assert sum(label.startswith("depth ") for label in labels) == 2


def test_a_search_for_numbers(make_data):
    X, _ = make_data()
    model = MBKLRegressorCV(maps="stumps", Cs=(0.1, 1), cv=2, n_maps=30).fit(X, X[:, 0])
    assert PathDisplay.from_estimator(model).ax_.get_ylabel() == "R2 of the folds"


def test_given_axes(search):
    _, axes = plt.subplots(2)
    assert PathDisplay.from_estimator(search, ax=axes).ax_ is axes[0]


def test_a_model_without_a_path(model):
    with pytest.raises(TypeError, match="MBKLClassifierCV"):
        PathDisplay.from_estimator(model[0])
    with pytest.raises(TypeError, match="MBKLClassifierCV"):
        PathDisplay.from_estimator(MBKLClassifierCV())


def test_rows_are_sorted_by_class(model):
    fitted, X, y = model
    display = KernelMatrixDisplay.from_estimator(fitted, X, y)
    order = np.argsort(y, kind="stable")
    np.testing.assert_allclose(display.kernel, kernel_matrix(fitted, X[order]), atol=1e-12)
    np.testing.assert_array_equal(display.labels, y[order])
    np.testing.assert_array_equal(display.image_.get_array(), display.kernel)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["0", "1", "2"]
    display.figure_.canvas.draw()


def test_equal_weights_beside_the_models(model):
    fitted, X, y = model
    _, axes = plt.subplots(1, 2)
    ones = KernelMatrixDisplay.from_estimator(fitted, X, y, theta="ones", ax=axes[0])
    own = KernelMatrixDisplay.from_estimator(fitted, X, y, ax=axes[1])
    assert ones.ax_ is axes[0]
    assert ones.title.startswith("equal weights")
    assert not np.allclose(ones.kernel, own.kernel)


def test_some_of_many_rows_and_data_frames(make_data):
    X, y = make_data(n_rows=200, n_classes=3)
    frame, labels = pd.DataFrame(X, columns=list("abcd")), pd.Series(np.array(["u", "v", "w"])[y])
    fitted = MBKernel(n_maps=30, random_state=0).fit(frame, labels)
    display = KernelMatrixDisplay.from_estimator(fitted, frame, labels, max_rows=50)
    assert display.kernel.shape == (50, 50)
    assert list(display.labels) == sorted(display.labels)


@pytest.mark.filterwarnings("error")
def test_single_rows(model):
    fitted, X, y = model
    KernelMatrixDisplay.from_estimator(fitted, X[:1], y[:1]).figure_.canvas.draw()


def test_bad_input(model):
    fitted, X, y = model
    with pytest.raises(ValueError, match="theta must be 'model' or 'ones', got 'twos'"):
        KernelMatrixDisplay.from_estimator(fitted, X, y, theta="twos")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelMatrixDisplay.from_estimator(fitted, X, y[:-1])

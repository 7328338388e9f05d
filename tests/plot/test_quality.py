import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from mbkl import MBKernel, MBKLClassifier, MBKLRegressor
from mbkl.explain.rows import kernel_matrix
from mbkl.plot import KernelMatrixDisplay, PredictionDisplay, QualityDisplay, quality


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

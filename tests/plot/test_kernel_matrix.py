import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mbkl import MBKernel
from mbkl.explain.rows import kernel_matrix
from mbkl.plot import KernelMatrixDisplay


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

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mbkl import MBKLClassifier
from mbkl.plot import QualityDisplay


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

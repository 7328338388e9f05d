"""Pictures without a screen, closed after each test."""

from __future__ import annotations

import pytest

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="session")
def model(make_data):
    """A small model of three classes, with its data; one feature has missing values."""
    from mbkl import MBKLClassifier

    X, y = make_data(n_classes=3, n_features=5)
    X[::7, 1] = float("nan")
    return MBKLClassifier(n_maps=60, random_state=0).fit(X, y), X, y

"""Small data that the tests of the rivals share."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def histograms(make_data):
    """Return a function that draws rows of overlapping classes with values in [0, 1]."""

    def make(n_rows=60, n_features=5, n_classes=2, seed=0):
        X, y = make_data(n_rows, n_features, n_classes, seed)
        X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
        X[X < 0.2] = 0.0
        return X, y

    return make

"""Labelled rows for the tests of the steps."""

from __future__ import annotations

import numpy as np
import pytest

from mbkl.learn.labelled_rows import LabelledRows


@pytest.fixture(scope="session")
def labelled():
    """Return a function that gives the rows of an operator their classes and weights."""

    def label(operator, y, n_classes, weights=None, seed=0):
        weights = np.ones(y.size) if weights is None else np.asarray(weights, float)
        return LabelledRows(operator, y, n_classes, weights, seed)

    return label

"""Outcomes of folds, joined."""

import numpy as np
import pytest

from mbkl.cli.outcomes import Labels, Numbers, joined


def test_folds_of_numbers():
    y, bounds = np.arange(4.0), np.tile([-9.0, 9.0], (4, 1))
    whole = joined([Numbers(y, y + 1, 2.0, bounds), Numbers(y, y - 1, 4.0, bounds)])
    assert whole.seconds == 3.0
    assert whole.figures()["rows"] == 8
    assert whole.figures()["coverage"] == 1
    assert whole.score == pytest.approx(1 - 1 / y.var())


def test_rivals_without_intervals():
    y = np.arange(4.0)
    whole = joined([Numbers(y, y, 1.0, None)] * 2)
    assert whole.bounds is None
    assert "coverage" not in whole.figures()


def test_folds_of_classes():
    classes, y = np.array(["no", "yes"]), np.array(["no", "yes"])
    whole = joined([Labels(y, y, 1.0, classes, None), Labels(y, y[::-1], 1.0, classes, None)])
    assert whole.classes is classes
    assert whole.score == 0.5

"""Outcomes of folds, joined."""

import numpy as np
import pytest

from mbkl.cli.outcomes import Labels, Numbers
from mbkl.explain.held_out import joined


def test_folds_of_numbers():
    y, bounds = np.arange(4.0), np.tile([-9.0, 9.0], (4, 1))
    whole = joined([Numbers(y, y + 1, bounds, 2.0), Numbers(y, y - 1, bounds, 4.0)])
    assert whole.seconds == 3.0
    assert whole.figures()["rows"] == 8
    assert whole.figures()["coverage"] == 1
    assert whole.score == pytest.approx(1 - 1 / y.var())


def test_rivals_without_intervals():
    y = np.arange(4.0)
    whole = joined([Numbers(y, y, None, 1.0)] * 2)
    assert whole.more is None
    assert "coverage" not in whole.figures()


def test_folds_of_classes():
    classes, y = np.array(["no", "yes"]), np.array(["no", "yes"])
    whole = joined([Labels(y, y, None, 1.0, classes), Labels(y, y[::-1], None, 1.0, classes)])
    assert whole.classes is classes
    assert whole.score == 0.5

"""The benchmark of kernel weights, on few rows."""

import numpy as np
import pytest
from benchmarks import theta
from benchmarks.suite.datasets import Table


@pytest.fixture
def table():
    generator = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [60, 60, 5])
    return Table("made up", generator.normal(size=(125, 3)).astype(np.float32) + y[:, None], y)


def test_draws_divide_the_rows_of_classes_that_have_enough(table):
    first, other = theta.divided(table, 0), theta.divided(table, 1)
    assert (len(first.y_train), len(first.y_test)) == (84, 36)
    assert set(first.y_train) == {0, 1}
    rows = np.vstack([first.X_train, first.X_test])
    assert len(np.unique(rows, axis=0)) == 120
    assert not np.array_equal(first.X_train, other.X_train)


def test_gain_is_that_of_learned_weights(table):
    equal, gain = theta.gains(table, searches=False, n_draws=2)
    assert equal.shape == gain.shape == (2,)
    assert (equal > 50).all()
    assert (equal + gain <= 100).all()
    assert theta.line_of("made up", equal, gain)["draws"] == 2

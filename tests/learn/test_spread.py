"""Intervals that are wide where residuals are large."""

import numpy as np
import pytest

import mbkl
from mbkl import MBKLRegressor


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, size=(2000, 3))
    return X, X[:, 0] + (0.1 + 2 * (X[:, 2] > 0)) * generator.normal(size=2000)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_intervals_follow_the_noise_and_cover(rows, loss):
    X, y = rows
    model = MBKLRegressor(maps="stumps", loss=loss, random_state=0).fit(X[:400], y[:400])
    lower, upper = model.predict_interval(X[400:]).T
    noisy = X[400:, 2] > 0
    assert (upper - lower)[noisy].mean() > 2.5 * (upper - lower)[~noisy].mean()
    assert ((lower <= y[400:]) & (y[400:] <= upper)).mean() == pytest.approx(0.9, abs=0.04)


def test_each_target_has_a_spread_of_its_own(rows):
    X, y = rows
    noise = np.random.default_rng(1).normal(size=400)
    model = MBKLRegressor(maps="stumps").fit(X[:400], np.column_stack([y[:400], noise]))
    widths = np.diff(model.predict_interval(X[400:]), axis=-1)[..., 0]
    changes = widths.std(axis=0) / widths.mean(axis=0)
    assert changes[0] > 0.5 > 0.2 > changes[1]


@pytest.mark.parametrize("y", [np.zeros(150), np.repeat([0.0, 1.0], 75)], ids=["constant", "step"])
def test_without_residuals_the_spread_is_constant_or_finite(y):
    X = np.linspace(0, 1, 150)[:, None]
    model = MBKLRegressor(maps="stumps", random_state=0).fit(X, y)
    assert np.isfinite(model.predict_interval(X)).all()


def test_the_spread_is_kept_in_a_file(rows, tmp_path):
    X, y = rows
    model = MBKLRegressor(random_state=0).fit(X[:300], y[:300])
    assert model.spread_coef_.size
    model.save(tmp_path / "model.mbkl")
    again = mbkl.load(tmp_path / "model.mbkl")
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))

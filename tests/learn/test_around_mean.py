"""Quantiles that begin with a ridge regression."""

import numpy as np
import pytest

from mbkl import MBKLRegressor
from mbkl.learn.residuals import AroundMean


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, size=(700, 3))
    return X, 3 * X[:, 0] * X[:, 1] + (0.1 + (X[:, 2] > 0)) * generator.normal(size=700)


@pytest.mark.parametrize("quantile", [0.1, 0.9])
def test_as_many_rows_are_below_as_the_quantile_says(rows, quantile):
    X, y = rows
    model = MBKLRegressor(loss="quantile", quantile=quantile, random_state=0).fit(X[:400], y[:400])
    assert (y[400:] <= model.predict(X[400:])).mean() == pytest.approx(quantile, abs=0.05)


def test_the_quantile_follows_the_noise(rows):
    X, y = rows
    model = MBKLRegressor(loss="quantile", quantile=0.9, random_state=0).fit(X[:400], y[:400])
    above = model.predict(X[400:]) - 3 * X[400:, 0] * X[400:, 1]
    noisy = X[400:, 2] > 0
    assert above[noisy].mean() > above[~noisy].mean() + 0.3


@pytest.mark.parametrize(
    "parameters", [{"quantile": 0.5}, {"C": 1.0}, {"maps": "stumps"}, {"loss": "absolute_error"}]
)
def test_only_tails_of_models_that_choose_by_themselves_begin_with_the_mean(
    rows, parameters, monkeypatch
):
    monkeypatch.setattr(AroundMean, "learn_classifier", None)
    X, y = rows
    MBKLRegressor(**{"loss": "quantile", "quantile": 0.9, **parameters}).fit(X[:100], y[:100])

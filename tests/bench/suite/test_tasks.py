"""Measures of each kind of target, and how methods are set up for them."""

import numpy as np
import pytest
from benchmarks.data import Dataset
from benchmarks.suite import regressors
from benchmarks.suite.tasks import QUANTILES, REGRESSION, TASKS, is_ours
from benchmarks.suite.tuning import Tuned
from sklearn.linear_model import Ridge

from mbkl import MBKLRegressor


@pytest.fixture
def rows():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 2)).astype(np.float32)
    y = X[:, 0] + 0.3 * generator.normal(size=400)
    return Dataset("made up", X[:200], y[:200], X[200:], y[200:])


def test_coverage_is_that_of_the_intervals(rows):
    model = MBKLRegressor(maps="stumps", n_maps=50, random_state=0).fit(rows.X_train, rows.y_train)
    found = REGRESSION.measured(model, rows, model.predict(rows.X_test))
    assert found["R2"] == pytest.approx(model.score(rows.X_test, rows.y_test))
    assert 0.8 < found["coverage at 0.9"] < 1.0


def test_models_without_intervals_have_no_coverage(rows):
    model = Ridge().fit(rows.X_train, rows.y_train)
    found = REGRESSION.measured(model, rows, model.predict(rows.X_test))["coverage at 0.9"]
    assert np.isnan(found)
    assert REGRESSION.written(found) == "-"


def test_constants_explain_nothing_of_the_pinball_loss(rows):
    constant = np.quantile(rows.y_test, regressors.LEVELS)
    guess = np.tile(constant, (200, 1))
    found = QUANTILES.measured(None, rows, guess)
    assert found["share of pinball loss explained"] == pytest.approx(0.0, abs=1e-3)
    assert found["inside"] == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("name", TASKS)
def test_registries_agree(name):
    task = TASKS[name]
    assert {*task.tuned, *task.quick_methods} <= set(task.methods)
    assert any(map(is_ours, task.methods))
    assert task.measure == next(iter(task.measures))


@pytest.mark.parametrize("name", ["SVR tuned", "kernel ridge tuned"])
def test_kernel_methods_do_not_depend_on_the_unit(name, rows, monkeypatch):
    monkeypatch.setattr(regressors, "SVR_COSTS", (1,))
    scores = []
    for unit in (1.0, 1e4):
        model = regressors.METHODS[name](rows.X_train, 0, 1)
        model.fit(rows.X_train, unit * rows.y_train)
        scores.append(model.predict(rows.X_test) / unit)
    np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-3)


def test_the_last_fit_may_have_a_limit_too(rows):
    model = Tuned(Ridge(), {"alpha": [1.0]}, max_rows=50, max_fit_rows=100)

    class Counting(Ridge):
        def fit(self, X, y):
            self.n_rows_ = len(y)
            return super().fit(X, y)

    model.estimator = Counting()
    assert model.fit(rows.X_train, rows.y_train).best_estimator_.n_rows_ == 100

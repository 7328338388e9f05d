"""Rows that took no part in learning."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from mbkl import MBKernel, MBKLRegressor
from mbkl.learn.calibration import HeldOut
from mbkl.learn.residuals import Residuals, best_share, sure_shift
from mbkl.maps.numbers import Numbers


@pytest.fixture(scope="module")
def rows():
    return make_friedman1(40, n_features=5, random_state=0)


def test_every_row_is_predicted_by_all_others(rows):
    X, y = rows
    model = MBKLRegressor(maps="stumps", n_maps=300, C=0.5, tol=1e-6, random_state=0).fit(X, y)
    kernel = MBKernel()
    kernel.maps_, kernel.theta_, kernel.n_features_in_ = model.maps_, model.theta_, X.shape[1]
    gram, ridge, residuals = kernel.kernel(X), len(y) / (2000 * 0.5), []
    for row in range(len(y)):
        others = np.delete(np.arange(len(y)), row)
        # The conditions of a ridge regression with a free intercept.
        matrix = np.ones((40, 40))
        matrix[:39, :39] = gram[np.ix_(others, others)] + ridge * np.eye(39)
        matrix[39, 39] = 0.0
        solution = np.linalg.solve(matrix, np.append(y[others], 0.0))
        residuals.append(y[row] - gram[row, others] @ solution[:39] - solution[39])
    np.testing.assert_allclose(model.residuals_[:, 0], np.sort(residuals), atol=1e-6)


def test_bounds_are_those_of_the_order_of_n_and_one():
    residuals = Residuals(np.arange(99.0)[:, None], 99)
    lower, upper = residuals.bounds(0.9)
    assert (lower[0], upper[0]) == (4.0, 94.0)
    assert residuals.bounds(0.99)[1] == np.inf


def test_coverage_of_random_numbers():
    generator = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        sample = np.sort(generator.normal(size=(30, 1)), axis=0)
        lower, upper = Residuals(sample, 30).bounds(0.8)
        new = generator.normal(size=50)
        covered.append(((lower <= new) & (new <= upper)).mean())
    assert np.mean(covered) == pytest.approx(0.81, abs=0.015)


def test_no_held_out_rows_are_infinitely_unsure():
    empty = Residuals.of(np.empty((0, 1)), np.empty(0))
    assert np.isinf(empty.bounds(0.5)).all()


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_the_best_share_is_that_of_the_better_scores(loss):
    y = np.random.default_rng(0).normal(size=200)
    numbers, levels = Numbers.of(y, np.ones(200), loss)

    def found(scores):
        return HeldOut(scores, levels, np.ones(200), None)

    truth, nothing = numbers.values[levels], np.zeros((200, 1))
    assert best_share(numbers, found(truth), nothing) == 0.0
    assert best_share(numbers, found(nothing), truth) == 1.0
    # Errors that cancel are mixed.
    assert best_share(numbers, found(truth + 1), truth - 1) == pytest.approx(0.5)


def test_a_quantile_is_shifted_as_far_as_rows_are_sure():
    y = np.arange(1000.0)
    numbers, levels = Numbers.of(y, np.ones(1000), "quantile", 0.9)

    def below(score):
        scores = np.full((1000, 1), (score - numbers.shift) / numbers.unit)
        shift = sure_shift(numbers, levels, scores, np.ones(1000))
        return (numbers.values <= scores[0] + shift + 1e-9).mean()

    assert below(500.0) == pytest.approx(0.881, abs=0.002)  # two standard errors
    assert below(990.0) == pytest.approx(0.919, abs=0.002)
    assert below(894.0) == pytest.approx(0.895)  # within them

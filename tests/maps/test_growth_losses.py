"""Objectives of growth: derivatives, starts and values against the definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax

from mbkl.engine.twins import TWINS
from mbkl.maps.growth_losses import OBJECTIVES, HingeLoss, LogLoss, Targets, objective_of
from mbkl.maps.numbers import Numbers

EVERY_OBJECTIVE = pytest.mark.parametrize("kind", OBJECTIVES.values(), ids=OBJECTIVES)
EVERY_CLASSES = pytest.mark.parametrize("n_classes", [2, 3, 5])


def problem(objective, n_rows=60, seed=0, spread=1.0):
    """Return scores on a grid of float32 numbers, and classes."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(scale=spread, size=(n_rows, objective.n_columns))
    return (np.round(scores * 64) / 64).astype(np.float32), generator.integers(
        objective.n_classes, size=n_rows
    )


@EVERY_OBJECTIVE
@EVERY_CLASSES
def test_gradients_are_those_of_finite_differences(kind, n_classes):
    objective, step = kind(n_classes), 2.0**-10
    scores, y = problem(objective)
    gradient, _ = objective.derivatives(scores, y)
    for column in range(objective.n_columns):
        change = np.zeros(objective.n_columns, np.float32)
        change[column] = step
        # In double precision: what is tested are the formulas.
        higher, lower = (
            objective.value((scores + sign * change).astype(np.float64), y) for sign in (1, -1)
        )
        expected = (higher - lower) / (2 * step)
        np.testing.assert_allclose(gradient[:, column], expected, atol=step)


@EVERY_OBJECTIVE
@EVERY_CLASSES
def test_curvatures_are_those_of_finite_differences(kind, n_classes):
    objective, step = kind(n_classes), 2.0**-7
    scores, y = problem(objective)
    _, curvature = objective.derivatives(scores, y)
    for column in range(objective.n_columns):
        change = np.zeros(objective.n_columns, np.float32)
        change[column] = step
        higher, lower = (
            objective.derivatives((scores + sign * change).astype(np.float64), y)[0]
            for sign in (1, -1)
        )
        expected = (higher - lower)[:, column] / (2 * step)
        smooth = np.abs(np.abs(scores[:, column]) - 1) > 2 * step  # the hinge has a kink at one
        assert smooth.mean() > 0.8
        np.testing.assert_allclose(curvature[smooth, column], expected[smooth], atol=1e-4)


@EVERY_OBJECTIVE
@EVERY_CLASSES
def test_the_start_is_the_best_constant(kind, n_classes):
    objective, generator = kind(n_classes), np.random.default_rng(1)
    y, weights = generator.integers(n_classes, size=200), generator.exponential(size=200)
    weights[y == 0] *= 3

    def loss(constant):
        scores = np.tile(constant, (200, 1))
        return float(objective.value(scores, y) @ weights)

    start = objective.start(y, weights)
    assert start.shape == (objective.n_columns,)
    assert start.dtype == np.float32
    best = minimize(
        loss, np.zeros(objective.n_columns), method="Nelder-Mead" if n_classes == 2 else None
    )
    assert loss(start.astype(float)) <= best.fun * (1 + 1e-6)


@EVERY_OBJECTIVE
@EVERY_CLASSES
def test_a_weight_of_two_starts_like_two_rows(kind, n_classes):
    y = np.arange(50) % n_classes
    weights = 1.0 + np.arange(50) % 3
    twice = np.repeat(np.arange(50), weights.astype(int))
    objective = kind(n_classes)
    start = objective.start(y, weights)
    np.testing.assert_array_equal(start, objective.start(y[twice], np.ones(twice.size)))


@EVERY_CLASSES
def test_a_class_without_rows_does_not_start_at_infinity(n_classes):
    start = LogLoss(n_classes).start(np.ones(9, int), np.ones(9))
    assert np.isfinite(start).all()


@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(0.1, 20))
def test_two_classes_are_a_softmax_of_two_columns(seed, spread):
    """Scores (-s/2, s/2) of two columns, of which the log loss of one column knows s alone."""
    objective = LogLoss(2)
    scores, y = problem(objective, seed=seed, spread=spread)
    both = np.hstack([-scores / 2, scores / 2])
    expected = -log_softmax(both.astype(np.float64), axis=1)[np.arange(len(y)), y]
    np.testing.assert_allclose(objective.value(scores, y), expected, rtol=1e-5, atol=1e-6)
    chance = np.exp(log_softmax(both.astype(np.float64), axis=1))
    gradient, curvature = objective.derivatives(scores, y)
    np.testing.assert_allclose(gradient[:, 0], chance[:, 1] - y, atol=1e-6)
    np.testing.assert_allclose(curvature[:, 0], chance[:, 0] * chance[:, 1], atol=1e-6)


@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(3, 9))
def test_many_classes_are_a_softmax(seed, n_classes):
    objective = LogLoss(n_classes)
    scores, y = problem(objective, seed=seed, spread=5.0)
    logs = log_softmax(scores.astype(np.float64), axis=1)
    np.testing.assert_allclose(
        objective.value(scores, y), -logs[np.arange(len(y)), y], rtol=1e-5, atol=1e-6
    )
    gradient, curvature = objective.derivatives(scores, y)
    np.testing.assert_allclose(gradient + np.eye(n_classes)[y], np.exp(logs), atol=1e-6)
    np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-5)
    assert (curvature >= 0).all()


@EVERY_CLASSES
def test_the_hinge_is_zero_beyond_the_margin(n_classes):
    objective = HingeLoss(n_classes)
    y = np.arange(20) % n_classes
    labels = np.where(y[:, None] == (np.arange(n_classes) if n_classes > 2 else [1]), 1, -1)
    scores = (1.5 * labels).astype(np.float32)
    gradient, curvature = objective.derivatives(scores, y)
    assert not gradient.any()
    assert not curvature.any()
    assert not objective.value(scores, y).any()
    assert (objective.value(-scores, y) == 2.5**2 * objective.n_columns).all()


@EVERY_OBJECTIVE
@EVERY_CLASSES
def test_large_scores_are_no_trouble(kind, n_classes):
    objective = kind(n_classes)
    scores, y = problem(objective, spread=300.0)
    gradient, curvature = objective.derivatives(scores, y)
    for array in (gradient, curvature, objective.value(scores, y)):
        assert array.dtype == np.float32
        assert np.isfinite(array).all()


@EVERY_OBJECTIVE
@EVERY_CLASSES
def test_packed_residuals_are_the_derivatives(kind, n_classes):
    objective = kind(n_classes)
    scores, y = problem(objective, spread=5.0)
    weights, unit = np.linspace(0.5, 2.0, len(y)).astype(np.float32), np.float32(2**8)
    packed = np.empty(scores.shape, np.int32)
    largest = objective.pack(TWINS, scores, y, weights, (unit, unit), packed)
    derivatives = [each * weights[:, None] for each in objective.derivatives(scores, y)]
    np.testing.assert_allclose(largest, [abs(each).max() for each in derivatives], rtol=1e-6)
    for each, found in zip(derivatives, (packed >> 16, packed & 0xFFFF), strict=True):
        np.testing.assert_allclose(found, each * unit, atol=0.51)


@EVERY_OBJECTIVE
@EVERY_CLASSES
def test_rows_are_independent_of_each_other(kind, n_classes):
    """Growth computes derivatives block by block: these are not to matter."""
    objective = kind(n_classes)
    scores, y = problem(objective, n_rows=70)
    whole = objective.derivatives(scores, y)
    for size in (1, 3, 64):
        parts = [slice(start, start + size) for start in range(0, 70, size)]
        pairs = [objective.derivatives(scores[part], y[part]) for part in parts]
        for all_at_once, found in zip(whole, zip(*pairs, strict=True), strict=True):
            assert np.concatenate(found).tobytes() == all_at_once.tobytes()


NUMBERS = pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "quantile", "poisson"]
)


def of_numbers(loss):
    generator = np.random.default_rng(0)
    given = generator.gamma(2.0, size=(60, 2)).round(2)
    numbers, y = Numbers.of(given, np.ones(60), loss, 0.8)
    scores = (np.round(generator.normal(size=(60, 2)) * 64) / 64).astype(np.float32)
    return objective_of("log_loss", Targets(None, 60, None, numbers)), y, scores


@NUMBERS
def test_gradients_of_numbers_are_those_of_finite_differences(loss):
    objective, y, scores = of_numbers(loss)
    gradient, curvature = objective.derivatives(scores, y)
    assert (curvature > 0).all()
    step = 2.0**-10
    for column in range(2):
        change = np.zeros(2)
        change[column] = step
        higher, lower = (objective.value(scores + sign * change, y) for sign in (1, -1))
        expected = (higher - lower) / (2 * step)
        # The corner of the pinball loss is rounded off.
        far = np.abs(scores - objective.numbers.values[y])[:, column] > 0.11
        np.testing.assert_allclose(gradient[far, column], expected[far], atol=2e-3)


@NUMBERS
def test_starts_of_numbers_are_the_best_constants(loss):
    objective, y, _ = of_numbers(loss)
    weights = np.random.default_rng(1).uniform(0.5, 1.0, y.size)
    start = objective.start(y, weights).astype(np.float64)

    def total(constant):
        return float(weights @ objective.value(np.tile(constant, (y.size, 1)), y))

    for column in range(2):
        for step in (-0.02, 0.02):
            other = start.copy()
            other[column] += step
            assert total(start) <= total(other) + 1e-6


def test_one_far_number_does_not_blur_the_others():
    given = np.append(np.random.default_rng(0).normal(size=9999), 1e9)
    numbers, y = Numbers.of(given, np.ones(10_000), "squared_error")
    objective = objective_of("log_loss", Targets(None, 2, None, numbers))
    gradient, _ = objective.derivatives(np.zeros((10_000, 1), np.float32), y)
    assert np.abs(gradient).max() <= 30

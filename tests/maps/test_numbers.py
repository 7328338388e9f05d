"""Numbers on a scale of their own."""

import numpy as np
import pytest

from mbkl.maps.numbers import Numbers, weighted_quantiles

LOSSES = ("squared_error", "absolute_error", "quantile", "poisson")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(50,), (50, 3)])
def test_numbers_come_back(loss, shape):
    y = np.random.default_rng(0).integers(0, 9, shape).astype(float)
    numbers, levels = Numbers.of(y, np.ones(50), loss, 0.3)
    given = numbers.shift + numbers.unit * numbers.values[levels]
    np.testing.assert_allclose(given.reshape(shape), y, atol=1e-12)
    assert numbers.n_columns == (1 if len(shape) == 1 else 3)


@pytest.mark.parametrize("loss", LOSSES[:3])
def test_scale_and_shift_change_neither_levels_nor_values(loss):
    generator = np.random.default_rng(0)
    y, weights = generator.normal(size=40), generator.uniform(1, 2, 40)
    first, levels = Numbers.of(y, weights, loss)
    second, same = Numbers.of(5 * y - 3, weights, loss)
    np.testing.assert_array_equal(levels, same)
    np.testing.assert_allclose(first.values, second.values, atol=1e-12)


def test_values_are_standardised():
    generator = np.random.default_rng(0)
    y, weights = generator.gamma(2.0, size=200), generator.uniform(1, 2, 200)
    numbers, levels = Numbers.of(y, weights, "squared_error")
    values = numbers.values[levels, 0]
    assert np.average(values, weights=weights) == pytest.approx(0, abs=1e-12)
    assert np.average(values**2, weights=weights) == pytest.approx(1)
    numbers, levels = Numbers.of(y, weights, "absolute_error")
    assert np.average(np.abs(numbers.values[levels, 0]), weights=weights) == pytest.approx(1)
    numbers, levels = Numbers.of(y, weights, "poisson")
    assert np.average(numbers.values[levels, 0], weights=weights) == pytest.approx(1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e300])
def test_a_constant_has_a_unit(loss, value):
    numbers, levels = Numbers.of(np.full(7, value), np.full(7, 0.1), loss)
    assert np.isfinite(numbers.values).all()
    assert (numbers.unit > 0).all()
    given = numbers.shift + numbers.unit * numbers.values[levels]
    np.testing.assert_allclose(given, value)


def test_equal_numbers_are_one_level():
    numbers, levels = Numbers.of(np.array([0.0, -0.0, 1.0]), np.ones(3), "squared_error")
    assert levels.tolist() == [0, 0, 1]
    assert len(numbers.values) == 2


def test_given_weights_predict_given_numbers():
    numbers, _ = Numbers.of(np.array([10.0, 20.0]), np.ones(2), "squared_error")
    weights, intercept = numbers.given(np.array([[1.0]]), np.array([0.0]))
    assert intercept + weights[0] == pytest.approx(20.0)
    counts, _ = Numbers.of(np.array([10.0, 20.0]), np.ones(2), "poisson")
    weights, intercept = counts.given(np.zeros((1, 1)), np.zeros(1))
    assert np.exp(intercept) == pytest.approx(15.0)


def test_weighted_quantiles_are_those_of_repeated_rows():
    generator = np.random.default_rng(0)
    columns, times = generator.normal(size=(20, 2)), generator.integers(1, 4, 20)
    levels = np.linspace(0.05, 1.0, 7)
    repeated = np.repeat(columns, times, axis=0)
    found = weighted_quantiles(columns, times.astype(float), levels)
    np.testing.assert_array_equal(
        found, weighted_quantiles(repeated, np.ones(len(repeated)), levels)
    )
    np.testing.assert_array_equal(
        found, np.quantile(repeated, levels, axis=0, method="inverted_cdf")
    )


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
def test_a_weight_is_as_many_rows(loss):
    y, counts = np.random.default_rng(0).random(40), np.random.default_rng(1).integers(1, 5, 40)
    weighted, _ = Numbers.of(y, counts.astype(float), loss)
    repeated, _ = Numbers.of(np.repeat(y, counts), np.ones(counts.sum()), loss)
    for name in ("values", "shift", "unit"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))

"""The kernel in the limit, on a sample: closed forms against refits, and what is chosen."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from mbkl.engine.rows import ArrayRows, Sample
from mbkl.maps.choose import (
    _EXPONENTS,
    _LARGEST_COST,
    _LARGEST_RESIDUAL,
    _RIDGES,
    _STUMP_SHARES,
    Choice,
    _Candidate,
    _Grid,
    _SampleLearner,
    choose_kernel,
    positions,
    rows_to_compare,
)

CANDIDATES = [_Candidate((0, 0, 3)), _Candidate((2, 1, 3))]


def make_sample(n_rows=40, n_features=4, n_classes=2, seed=0, missing=0.0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, n_features))
    score = X[:, 0] + 0.5 * generator.normal(size=n_rows)
    y = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    X[generator.random(X.shape) < missing] = np.nan
    return Sample(X, y, generator.random(n_rows) + 0.5)


def test_rows_that_repeat_with_several_classes_count_as_often_as_they_do():
    """A few different rows, each with both classes: no row is left out with all its equals."""
    generator = np.random.default_rng(0)
    X = generator.integers(2, size=(1000, 3)).astype(float)
    y = (generator.random(1000) < 0.1 + 0.6 * X[:, 0] * X[:, 1]).astype(int)
    sample = ArrayRows(X).sample(y, np.ones(1000), 500, seed=0)
    assert sample.y.size <= 16
    choice = choose_kernel(sample, 2, sample.n_different)
    cost_of_a_sample = choice.cost * sample.y.size / 1000
    assert cost_of_a_sample > 0.1
    once = choose_kernel(Sample(sample.X, sample.y, 7.0 * sample.weights), 2, sample.n_different)
    assert_close(choice, once)


def assert_sound(choice: Choice, n_features: int):
    """Check what must hold for any choice."""
    assert choice.rates.shape == (n_features,)
    assert (choice.rates > 0).all()
    assert choice.rates.sum() == pytest.approx(1.0)
    assert 0 < choice.depth <= 40
    assert 0 < choice.stump_share < 1
    assert 0 < choice.cost <= _LARGEST_COST
    assert np.isfinite(choice.error)
    assert choice.error >= 0


def assert_close(left: Choice, right: Choice, rtol=1e-4):
    np.testing.assert_allclose(left.rates, right.rates, rtol=rtol)
    assert left.depth == pytest.approx(right.depth, rel=rtol)
    assert left.stump_share == pytest.approx(right.stump_share, rel=rtol)
    assert left.cost == pytest.approx(right.cost, rel=rtol)
    assert left.error == pytest.approx(right.error, rel=rtol)


def choose_quietly(sample: Sample, n_classes=2, n_rows=None) -> Choice:
    """Choose; a warning of NumPy counts as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choice = choose_kernel(sample, n_classes, n_rows or sample.y.size)
    assert_sound(choice, sample.X.shape[1])
    return choice


# --- Positions and distances ---


def test_positions_are_shares_of_the_thresholds_below():
    X = np.array([[0.0], [10.0], [1.0], [1.0]])
    ranks, ranges = positions(Sample(X, np.zeros(4, dtype=int), np.array([1.0, 5.0, 2.0, 1.0])))
    # Of four by weight, one lies at zero and three at one; none is above the largest.
    np.testing.assert_allclose(ranks[:, 0], [0.0, 1.0, 0.25, 0.25])
    np.testing.assert_allclose(ranges[:, 0], [0.0, 1.0, 0.1, 0.1])


def test_missing_values_are_below_all_others():
    X = np.array([[np.nan], [2.0], [4.0], [3.0]])
    ranks, ranges = positions(Sample(X, np.zeros(4, dtype=int), np.ones(4)))
    np.testing.assert_allclose(ranks[:, 0], [0.0, 0.25, 1.0, 0.625])
    np.testing.assert_allclose(ranges[:, 0], [0.0, 0.25, 1.0, 0.625])


def test_constant_and_missing_columns_have_no_distance():
    X = np.column_stack([np.ones(5), np.full(5, np.nan)])
    ranks, ranges = positions(Sample(X, np.zeros(5, dtype=int), np.ones(5)))
    np.testing.assert_array_equal(ranks, 0.0)
    np.testing.assert_array_equal(ranges, 0.0)


def test_the_distance_is_the_chance_that_a_stump_parts_two_rows():
    sample = make_sample(missing=0.1)
    learner = _SampleLearner(sample, 2)
    rates = np.array([0.4, 0.3, 0.2, 0.1])
    distance, mean = learner.distance(rates)
    halves = [np.abs(part[:, None] - part) @ rates for part in positions(sample)]
    np.testing.assert_allclose(distance * mean, (halves[0] + halves[1]) / 2, atol=1e-6)
    assert distance.mean() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_the_slope_is_minus_the_derivative_of_the_kernel(candidate):
    distance = np.linspace(0.0, 3.0, 20)
    difference = candidate.kernel(distance - 1e-6) - candidate.kernel(distance + 1e-6)
    np.testing.assert_allclose(candidate.slope(distance), difference / 2e-6, rtol=1e-6)
    assert candidate.kernel(np.zeros(1))[0] == pytest.approx(1.0)


# --- Leave-one-out ---


def residuals_by_refits(learner, kernel, ridge):
    """Predict each row from all others by a regression on them."""
    n_rows = len(kernel)
    residuals = np.empty(learner.labels.shape)
    for row in range(n_rows):
        rest = np.delete(np.arange(n_rows), row)
        matrix = kernel[np.ix_(rest, rest)] + 1.0 + np.diag(ridge / learner.weights[rest])
        coefficients = np.linalg.solve(matrix, learner.labels[rest])
        residuals[row] = learner.labels[row] - (kernel[row, rest] + 1.0) @ coefficients
    return residuals


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("ridge", [0, 3, len(_RIDGES) - 1])
@pytest.mark.parametrize("candidate", CANDIDATES)
def test_errors_are_those_of_refits_without_each_row(n_classes, ridge, candidate):
    candidate = replace(candidate, place=(*candidate.place[:2], ridge))
    learner = _SampleLearner(make_sample(25, n_classes=n_classes), n_classes)
    kernel = candidate.kernel(learner.distance(np.full(4, 0.25))[0])
    expected = residuals_by_refits(learner, kernel, candidate.ridge)
    losses = np.clip(learner.labels * expected, 0.0, _LARGEST_RESIDUAL) ** 2
    mean = np.average(losses.mean(axis=1), weights=learner.weights)
    assert learner.solved(candidate, kernel).error == pytest.approx(mean, rel=1e-6)


def test_weights_solve_the_ridge_regression():
    learner = _SampleLearner(make_sample(), 2)
    kernel = CANDIDATES[0].kernel(learner.distance(np.full(4, 0.25))[0])
    unchanged = kernel.copy()
    weights = learner.solve(learner.factor(kernel, 0.1))
    matrix = kernel + 1.0 + np.diag(0.1 / learner.weights)
    np.testing.assert_allclose(matrix @ weights, learner.labels, atol=1e-4)
    np.testing.assert_array_equal(kernel, unchanged)
    assert learner.factor(-3.0 * np.eye(40), 0.1) is None


@pytest.mark.parametrize("start", [0, 3, len(_RIDGES) - 1])
def test_the_best_ridge_is_no_worse_than_its_neighbours(start):
    learner = _SampleLearner(make_sample(), 2)
    distance, _ = learner.distance(np.full(4, 0.25))
    best = learner.best_ridge(_Candidate((1, 0, start)), distance)
    kernel = best.kernel(distance)
    assert best.error == learner.solved(best, kernel).error
    for step in (-1, 1):
        neighbour = replace(best, place=(1, 0, best.place[2] + step))
        if 0 <= neighbour.place[2] < len(_RIDGES):
            assert best.error <= learner.solved(neighbour, kernel).error


def test_a_descent_solves_each_candidate_once_and_ends_below_its_neighbours():
    learner = _SampleLearner(make_sample(), 2)
    grid = _Grid(learner, learner.distance(np.full(4, 0.25))[0])
    best = grid.descend((0, 0, 3), (0, 1, 2))
    solved = [each for each in grid.solved.values() if each.weights is not None]
    assert best.error == min(each.error for each in solved)
    assert len(solved) < len(_EXPONENTS) * len(_STUMP_SHARES) * len(_RIDGES) / 2
    neighbours = [(axis, step) for axis in range(3) for step in (-1, 1)]
    for axis, step in neighbours:
        place = [*best.place]
        place[axis] += step
        assert best.error <= grid.at(tuple(place)).error


# --- What is chosen ---


def test_rates_concentrate_on_relevant_features():
    X = np.random.default_rng(0).normal(size=(300, 10))
    y = (X[:, 3] > 0.2).astype(int)
    choice = choose_quietly(Sample(X, y, np.ones(300)))
    assert choice.rates[3] > 0.7
    # Labels that noise blurs leave less to go by.
    assert choose_quietly(make_sample(300, 10)).rates[0] > 0.2


@pytest.mark.parametrize("features", [[1, 4], [0, 3, 5]], ids=["pair", "triple"])
def test_rates_concentrate_on_interactions(features):
    X = np.random.default_rng(0).normal(size=(400, 8))
    y = (np.prod(X[:, features], axis=1) > 0).astype(int)
    choice = choose_quietly(Sample(X, y, np.ones(400)))
    assert choice.rates[features].sum() > 0.7
    assert choice.stump_share < 0.5
    assert choice.error < 0.7


def test_rates_concentrate_on_a_parity_of_bits():
    bits = np.random.default_rng(0).integers(2, size=(400, 10)).astype(float)
    y = (bits[:, :3].sum(axis=1) % 2).astype(int)
    choice = choose_quietly(ArrayRows(bits).sample(y, np.ones(400), 500, 0))
    assert choice.rates[:3].sum() > 0.7


def test_noise_has_an_error_of_about_one():
    X = np.random.default_rng(0).normal(size=(300, 5))
    y = np.random.default_rng(1).integers(2, size=300)
    choice = choose_quietly(Sample(X, y, np.ones(300)))
    assert choice.error > 0.9


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_several_classes(n_classes):
    choice = choose_quietly(make_sample(150, n_classes=n_classes), n_classes)
    assert choice.rates.argmax() == 0


def test_swapping_the_classes_changes_nothing():
    sample = make_sample(100)
    swapped = Sample(sample.X, 1 - sample.y, sample.weights)
    assert_close(choose_quietly(swapped), choose_quietly(sample))


def test_more_rows_than_the_sample_has_make_ferns_deeper():
    sample = make_sample(100)
    depths = [choose_quietly(sample, n_rows=n_rows).depth for n_rows in (50, 100, 1000, 10**9)]
    assert depths == sorted(depths)
    assert depths[0] == depths[1] < depths[2]
    np.testing.assert_array_equal(
        choose_quietly(sample, n_rows=10_000).rates, choose_quietly(sample, n_rows=1_000).rates
    )


# --- Invariances ---


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_order_of_the_rows_does_not_matter(n_classes):
    sample = make_sample(120, n_classes=n_classes, missing=0.1)
    order = np.random.default_rng(1).permutation(120)
    permuted = Sample(sample.X[order], sample.y[order], sample.weights[order])
    assert_close(choose_quietly(permuted, n_classes), choose_quietly(sample, n_classes))


def test_the_order_of_the_features_does_not_matter():
    sample = make_sample(120)
    order = np.array([2, 0, 3, 1])
    expected, found = (
        choose_quietly(sample),
        choose_quietly(Sample(sample.X[:, order], sample.y, sample.weights)),
    )
    np.testing.assert_allclose(found.rates, expected.rates[order], rtol=1e-6)


def test_units_do_not_matter():
    sample = make_sample(120)
    scaled = Sample(sample.X * [1e-6, 1.0, 1e6, 3.0] + 5.0, sample.y, sample.weights)
    assert_close(choose_quietly(scaled), choose_quietly(sample))


def test_a_weight_is_a_repetition():
    sample = make_sample(100)
    times = np.random.default_rng(1).integers(1, 4, size=100)
    weighted = ArrayRows(sample.X).sample(sample.y, times.astype(float), 500, 0)
    repeated = ArrayRows(np.repeat(sample.X, times, axis=0)).sample(
        np.repeat(sample.y, times), np.ones(times.sum()), 500, 0
    )
    assert_close(choose_quietly(weighted), choose_quietly(repeated), rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-300, 1e-100, 1e-6, 1e6, 1e100])
def test_only_the_ratio_of_weights_matters(factor):
    sample = make_sample(100)
    weights = np.where(np.arange(100) % 2, 1.0, 20.0)
    expected = choose_quietly(Sample(sample.X, sample.y, weights))
    found = choose_quietly(Sample(sample.X, sample.y, factor * weights))
    assert_close(found, expected)


# --- Degenerate samples ---


@pytest.mark.parametrize("weight", [1e-300, 1e-100, 1e100, 1e300])
def test_one_row_of_extreme_weight(weight):
    sample = make_sample(60)
    weights = np.ones(60)
    weights[3] = weight
    choose_quietly(Sample(sample.X, sample.y, weights))


@pytest.mark.parametrize("value", [0.0, 7.0, np.nan])
def test_constant_features_get_the_smallest_rate(value):
    sample = make_sample(100)
    X = sample.X.copy()
    X[:, 2] = value
    choice = choose_quietly(Sample(X, sample.y, sample.weights))
    assert choice.rates[2] == pytest.approx(choice.rates.min())
    assert choice.rates[2] < 0.05


def test_one_feature():
    assert choose_quietly(make_sample(60, 1)).rates == pytest.approx([1.0])


@pytest.mark.parametrize("value", [1.0, np.nan])
@pytest.mark.parametrize("n_rows", [2, 50])
def test_all_rows_equal(value, n_rows):
    choice = choose_quietly(
        Sample(np.full((n_rows, 3), value), np.arange(n_rows) % 2, np.ones(n_rows))
    )
    np.testing.assert_allclose(choice.rates, 1 / 3)


@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize("n_features", [1, 4])
def test_a_few_rows(n_rows, n_features):
    X = np.random.default_rng(0).normal(size=(n_rows, n_features))
    choose_quietly(Sample(X, np.arange(n_rows) % 2, np.ones(n_rows)))


def test_values_missing_or_not():
    X = np.where(np.random.default_rng(0).random((80, 3)) < 0.5, np.nan, 1.0)
    y = np.isnan(X[:, 1]).astype(int)
    choice = choose_quietly(ArrayRows(X).sample(y, np.ones(80), 500, 0))
    assert choice.rates.argmax() == 1


def test_a_class_that_the_sample_lacks():
    sample = make_sample(50)
    choose_quietly(Sample(sample.X, np.zeros(50, dtype=int), sample.weights))
    choose_quietly(Sample(sample.X, sample.y, sample.weights), n_classes=4)


def test_more_features_than_rows():
    choose_quietly(make_sample(20, 400))


def test_many_features_allow_fewer_rows():
    assert rows_to_compare(1, 500) == 500
    assert rows_to_compare(0, 500) == 500
    assert rows_to_compare(10**9, 500) == 100
    assert rows_to_compare(10**9, 50) == 50


def test_the_choice_knows_how_many_rows_it_is_for():
    assert choose_quietly(make_sample(100), n_rows=5_000).n_rows == 5_000


def test_categories_that_tell_are_drawn_more_often():
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.integers(6, size=(300, 2)), generator.normal(size=(300, 2))])
    y = np.isin(X[:, 0], [1, 4, 5]).astype(int)
    choice = choose_kernel(Sample(X, y, np.ones(300)), 2, 300, n_levels=np.array([6, 6, 0, 0]))
    assert choice.rates.argmax() == 0
    assert choice.rates[0] > 0.6


def test_two_levels_are_parted_half_of_the_time():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [np.nan, 1.0], [np.nan, 1.0]])
    learner = _SampleLearner(Sample(X, np.arange(4) % 2, np.ones(4)), 2, np.array([2, 0]))
    distance, mean = learner.distance(np.array([0.6, 0.4]))
    np.testing.assert_allclose(mean * distance[0], [0.0, 0.3, 0.7, 0.7], rtol=1e-6)
    np.testing.assert_allclose(distance[2, 3], 0.0)

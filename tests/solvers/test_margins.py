"""Total losses and the best intercept."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mbkl.solvers.problem import Hinge, Logistic, Margins, SquaredHinge

LOSSES = [SquaredHinge(), Hinge(0.1), Logistic()]


def problem(loss, n_rows=40, n_columns=3, share=0.5, seed=0):
    generator = np.random.default_rng(seed)
    labels = np.where(generator.random((n_rows, n_columns)) < share, 1, -1).astype(np.int8)
    labels[0], labels[1] = 1, -1
    costs = generator.random((n_rows, 1)) + 0.1
    return Margins(labels, costs, loss), generator.normal(size=(n_rows, n_columns))


@pytest.mark.parametrize("loss", [*LOSSES, Hinge()], ids=repr)
@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("start", [-100.0, 0.0, 5.0])
def test_best_intercept_is_the_minimum(loss, share, start):
    margins, scores = problem(loss, share=share)
    found = margins.best_intercept(scores, np.full(3, start))
    for column in range(3):
        part = margins.columns(np.array([column]))

        def value(b, part=part, column=column):
            return float(part.value(scores[:, [column]] + b)[0])

        best = minimize_scalar(value, bounds=(-20, 20), method="bounded", options={"xatol": 1e-9})
        assert value(found[column]) <= best.fun * (1 + 1e-9)


@pytest.mark.parametrize("loss", [*LOSSES, Hinge()], ids=repr)
def test_one_label_alone_ends(loss):
    labels = np.ones((5, 1), dtype=np.int8)
    margins = Margins(labels, np.ones((5, 1)), loss)
    intercept = margins.best_intercept(np.zeros((5, 1)), np.zeros(1))
    assert np.isfinite(intercept).all()
    assert margins.value(np.zeros((5, 1)) + intercept)[0] < 0.01


@pytest.mark.parametrize("loss", [*LOSSES, Hinge()], ids=repr)
def test_values_are_weighted_sums(loss):
    margins, scores = problem(loss)
    m = margins.labels * scores
    np.testing.assert_allclose(margins.value(scores), (margins.costs * loss.value(m)).sum(axis=0))
    np.testing.assert_allclose(margins.support(scores), margins.costs * loss.support(m))
    np.testing.assert_allclose(margins.curvature(scores), margins.costs * loss.curvature(m))


def test_the_exact_value_is_not_smoothed():
    margins, scores = problem(Hinge(0.5))
    exact = Margins(margins.labels, margins.costs, Hinge())
    np.testing.assert_array_equal(margins.exact_value(scores), exact.value(scores))
    assert (margins.value(scores) < exact.value(scores)).all()


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic(), Hinge()], ids=repr)
def test_dual_value_bounds_the_loss_from_below(loss):
    margins, scores = problem(loss)
    support = margins.support(scores)
    bound = margins.dual_value(support) - (support * margins.labels * scores).sum(axis=0)
    np.testing.assert_allclose(bound, margins.value(scores))
    other = margins.support(scores[::-1])
    weaker = margins.dual_value(other) - (other * margins.labels * scores).sum(axis=0)
    assert (weaker <= margins.value(scores) + 1e-12).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_order_of_the_rows_does_not_matter(loss):
    margins, scores = problem(loss)
    order = np.random.default_rng(1).permutation(40)
    shuffled = Margins(margins.labels[order], margins.costs[order], loss)
    assert shuffled.value(scores[order]).tobytes() == margins.value(scores).tobytes()
    first = margins.best_intercept(scores, np.zeros(3))
    second = shuffled.best_intercept(scores[order], np.zeros(3))
    assert first.tobytes() == second.tobytes()


NUMBERS = ["squared_error", "absolute_error", "quantile", "poisson"]


def of_numbers(loss, n_rows=40, seed=0):
    generator = np.random.default_rng(seed)
    numbers = generator.gamma(2.0, size=(n_rows, 3)).round(1)
    numbers[0] = 0.0
    costs = generator.random((n_rows, 1)) + 0.1
    margins = Margins.of_numbers(numbers, costs, loss, 0.8)
    return margins, numbers, generator.normal(size=(n_rows, 3))


@pytest.mark.parametrize("loss", NUMBERS)
def test_losses_of_numbers_are_those_of_their_names(loss):
    margins, numbers, scores = of_numbers(loss)
    level = 0.8 if loss == "quantile" else 0.5
    away = numbers - scores
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(numbers > 0, numbers * np.log(numbers), 0.0)
    losses = {
        "squared_error": away**2,
        "poisson": np.exp(scores) - numbers * scores + logs - numbers,
    }
    expected = losses.get(loss, np.maximum(level * away, (level - 1) * away))
    np.testing.assert_allclose(margins.exact_value(scores), (margins.costs * expected).sum(axis=0))


@pytest.mark.parametrize("loss", NUMBERS)
def test_signed_supports_are_minus_the_slopes(loss):
    margins, _, scores = of_numbers(loss)
    step = 1e-6
    for column in range(3):
        part, own = margins.columns(np.array([column])), scores[:, [column]]
        for row in range(3):
            moved = own.copy()
            moved[row] += step
            slope = (part.value(moved) - part.value(own)) / step
            assert part.signed(part.support(own))[row] == pytest.approx(-slope, abs=1e-4)


@pytest.mark.parametrize("loss", NUMBERS)
def test_dual_values_of_numbers_bound_the_loss_from_below(loss):
    margins, _, scores = of_numbers(loss)
    support = margins.support(scores)
    bound = margins.dual_value(support) - (margins.signed(support) * scores).sum(axis=0)
    np.testing.assert_allclose(bound, margins.value(scores))
    other = margins.support(scores[::-1])
    weaker = margins.dual_value(other) - (margins.signed(other) * scores).sum(axis=0)
    assert (weaker <= margins.value(scores) + 1e-12).all()


@pytest.mark.parametrize("loss", NUMBERS)
def test_best_intercepts_of_numbers(loss):
    margins, numbers, _ = of_numbers(loss)
    nothing = np.zeros_like(numbers)
    found = margins.best_intercept(nothing, np.zeros(3))
    share = margins.costs / margins.costs.sum()
    means = (share * numbers).sum(axis=0)
    if loss == "squared_error":
        np.testing.assert_allclose(found, means)
    if loss == "poisson":
        np.testing.assert_allclose(found, np.log(means))
    for step in (-1e-3, 1e-3):
        assert (margins.value(nothing + found) <= margins.value(nothing + found + step)).all()


@pytest.mark.parametrize("loss", NUMBERS)
def test_parts_of_numbers(loss):
    margins, _, scores = of_numbers(loss)
    rows, columns = np.array([3, 5, 8]), np.array([2, 0])
    part = margins.rows(rows).columns(columns)
    np.testing.assert_array_equal(
        part.support(scores[rows][:, columns]), margins.support(scores)[rows][:, columns]
    )

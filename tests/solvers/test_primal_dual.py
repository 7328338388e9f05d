"""Step 1 where rows change sides with every step: few rows, high costs."""

import numpy as np
import pytest

from mbkl.learn.initial_guess import class_shares, initial_signs
from mbkl.learn.kernel_weights import PairOperator, smallest_cost
from mbkl.solvers.losses import Logistic, SquaredHinge
from mbkl.solvers.margins import Margins
from mbkl.learn.pairs import sample_pairs
from mbkl.solvers.dense_interior_point import DenseProblem, solve_densely
from mbkl.solvers.interior_point import minimise_weights
from mbkl.solvers.primal_dual import advance, assess, start_at

LOSSES = {"squared_hinge": SquaredHinge(), "logistic": Logistic()}
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES)


@pytest.fixture
def make_problem(make_data, make_operator):
    """Return a function that gives maps that outnumber the pairs, and the margins."""

    def make(loss, multiple, n_classes=2):
        X, y = make_data(80, 6, n_classes)
        operator, weights = make_operator(X, 300), np.ones(len(y))
        signs = initial_signs(operator, class_shares(operator, y, n_classes, weights), "balanced")
        pairs = sample_pairs(operator, y, n_classes, weights, 2, 50_000, 0)
        signed = PairOperator.of(operator, pairs, signs)
        cost = multiple * smallest_cost(signed, pairs, loss)
        costs = cost * pairs.weights[:, None]
        return signed, Margins(pairs.labels[:, None], costs, LOSSES[loss])

    return make


def equal_weights(operator):
    return np.full(operator.n_columns, 1.0 / operator.n_columns)


@EVERY_LOSS
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multiple", [10.0, 1e3, 1e5])
def test_same_solution_as_the_dense_solver(make_problem, loss, multiple, n_classes):
    operator, margins = make_problem(loss, multiple, n_classes)
    expected = solve_densely(DenseProblem(operator.dense(), margins), 1e-6, 100)
    found = minimise_weights(operator, margins, None, 1e-3, 100)
    assert found.relative_gap <= 1e-3
    assert expected.objective * (1 - 1e-6) <= found.objective
    assert found.objective <= expected.objective * (1 + 1e-3)


@EVERY_LOSS
def test_a_step_keeps_the_bounds_and_the_balance_of_labels(make_problem, loss):
    operator, margins = make_problem(loss, 100.0)
    point = start_at(operator, margins, equal_weights(operator), np.zeros(1))
    for _ in range(5):
        advance(operator, margins, point, 0.1)
        assert point.weights.min() > 0
        assert point.slack.min() > 0
        assert point.alpha.min() > 0
        total = point.alpha.sum()
        assert abs((margins.labels * point.alpha).sum()) <= 1e-9 * total
        np.testing.assert_allclose(point.scores, operator.forward(point.weights[:, None]))
        if margins.loss.support_is_limited:
            assert (point.alpha < margins.costs).all()


@EVERY_LOSS
def test_gap_bounds_the_distance_to_the_optimum(make_problem, loss):
    operator, margins = make_problem(loss, 100.0)
    best = solve_densely(DenseProblem(operator.dense(), margins), 1e-9, 100).objective
    point = start_at(operator, margins, equal_weights(operator), np.zeros(1))
    for _ in range(8):
        quality = assess(operator, margins, point)
        assert quality.objective >= best * (1 - 1e-8)
        assert quality.objective - quality.gap <= best * (1 + 1e-8)
        advance(operator, margins, point, 0.1)


def test_solution_does_not_depend_on_where_the_method_changes(make_problem, monkeypatch):
    operator, margins = make_problem("squared_hinge", 10.0)
    followed_weights = minimise_weights(operator, margins, None, 1e-4, 100)
    assert followed_weights.support is None
    monkeypatch.setattr("mbkl.solvers.interior_point._SHORT", np.inf)
    with_supports = minimise_weights(operator, margins, None, 1e-4, 100)
    assert with_supports.support is not None
    assert with_supports.objective == pytest.approx(followed_weights.objective, rel=2e-4)


def test_supports_serve_all_rounds_over_some_of_the_maps(make_problem, monkeypatch):
    monkeypatch.setattr("mbkl.solvers.interior_point._MAPS_OF_A_CHAIN", 3)
    monkeypatch.setattr("mbkl.solvers.interior_point._WORTH_THINNING", 0.9)
    operator, margins = make_problem("squared_hinge", 1e4)
    expected = solve_densely(DenseProblem(operator.dense(), margins), 1e-6, 100)
    found = minimise_weights(operator, margins, None, 1e-3, 300)
    assert found.relative_gap <= 1e-3
    assert found.objective == pytest.approx(expected.objective, rel=1e-3)


def test_stops_when_asked(make_problem, monkeypatch):
    monkeypatch.setattr("mbkl.solvers.interior_point._SHORT", np.inf)
    operator, margins = make_problem("squared_hinge", 1e3)
    seen = []
    minimise_weights(operator, margins, None, 1e-9, 100, lambda s: seen.append(s) or len(seen) > 3)
    assert len(seen) == 4

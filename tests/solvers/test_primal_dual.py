"""Step 1 where rows change sides with every step: few rows, high costs."""

from dataclasses import replace

import numpy as np
import pytest

from mbkl.engine import limits
from mbkl.learn.initial_guess import class_shares, initial_signs
from mbkl.learn.kernel_weights import KernelProblem
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.solvers import barrier, primal_dual
from mbkl.solvers.primal_dual import DenseMaps, Newton, assessed, balanced, longest, start_near
from mbkl.solvers.problem import Logistic, Margins, Problem, Solution, SquaredHinge

LOSSES = {"squared_hinge": SquaredHinge(), "logistic": Logistic()}
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES)


@pytest.fixture
def make_problem(make_data, make_operator):
    """Return a function that gives maps that outnumber the pairs, and the margins."""

    def make(loss, multiple, n_classes=2):
        X, y = make_data(80, 6, n_classes)
        rows = LabelledRows(make_operator(X, 300), y, n_classes, np.ones(len(y)), 0)
        signs = initial_signs(rows.operator, class_shares(rows), "balanced")
        step = KernelProblem.of(rows, signs, loss, 2, 50_000)
        return Problem(step.operator, step.margins(multiple * step.smallest_cost))

    return make


def exactly(problem, tol):
    """Solve with the matrix of all maps."""
    dense = replace(problem, operator=DenseMaps(problem.operator.dense()))
    return primal_dual.minimise(dense, None, tol, 100)


def by_passes(*arguments):
    """Solve without a matrix, as many pairs are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "FEW_PAIRS", 0)
        return barrier.minimise(*arguments)


def points(problem, count):
    """Yield the points that steps from equal weights lead to."""
    start = Solution.nothing(problem.shape)
    start.weights += 1.0 / start.weights.size
    point = start_near(problem, start)
    for _ in range(count):
        yield point
        step = Newton(problem, point).centred(0.1)
        point = point.moved(step, longest(problem.margins, point, step))


@EVERY_LOSS
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multiple", [10.0, 1e3, 1e5])
def test_same_solution_as_with_the_matrix_of_all_maps(make_problem, loss, multiple, n_classes):
    problem = make_problem(loss, multiple, n_classes)
    expected = exactly(problem, 1e-6)
    found = by_passes(problem, None, 1e-3, 500)
    assert found.relative_gap <= 1e-3
    assert expected.objective * (1 - 1e-6) <= found.objective
    assert found.objective <= expected.objective * (1 + 1e-3)


@EVERY_LOSS
def test_a_step_keeps_the_bounds_and_the_balance_of_labels(make_problem, loss):
    problem = make_problem(loss, 100.0)
    margins = problem.margins
    for point in points(problem, 6):
        assert min(point.weights.min(), point.slack.min(), point.alpha.min()) > 0
        total = point.alpha.sum()
        assert abs((margins.labels * point.alpha).sum()) <= 1e-9 * total
        np.testing.assert_allclose(point.scores, problem.operator.forward(point.weights))
        if margins.loss.support_is_limited:
            assert (point.alpha < margins.costs).all()


@EVERY_LOSS
def test_gap_bounds_the_distance_to_the_optimum(make_problem, loss):
    problem = make_problem(loss, 100.0)
    best = exactly(problem, 1e-9).objective
    for point in points(problem, 8):
        solution = assessed(problem, point)
        assert solution.objective >= best * (1 - 1e-8)
        assert solution.objective - solution.gap <= best * (1 + 1e-8)


@pytest.mark.parametrize("labels", [[1, 1, -1], [1, 1, 1]])
def test_balanced_supports_have_the_same_total_for_both_labels(labels):
    labels = np.array(labels, dtype=np.int8)[:, None]
    supports = balanced(Margins(labels, np.ones((3, 1)), SquaredHinge()), np.ones((3, 1)))
    assert supports[labels > 0].sum() == supports[labels < 0].sum()
    assert (supports <= 1).all()


def test_solution_does_not_depend_on_where_the_method_changes(make_problem, monkeypatch):
    problem = make_problem("squared_hinge", 10.0)
    followed_weights = by_passes(problem, None, 1e-4, 100)
    assert followed_weights.supports is None
    monkeypatch.setattr(barrier, "_SHORT", np.inf)
    monkeypatch.setattr(barrier, "_MOST_SHORT", 1)
    with_supports = by_passes(problem, None, 1e-4, 100)
    assert with_supports.supports is not None
    assert with_supports.objective == pytest.approx(followed_weights.objective, rel=2e-4)


def test_supports_serve_all_rounds_over_some_of_the_maps(make_problem, monkeypatch):
    problem = make_problem("squared_hinge", 1e4)
    expected = exactly(problem, 1e-6)
    monkeypatch.setattr(barrier, "_FEWEST_ADDED", 5)
    found = by_passes(problem, None, 1e-3, 300)
    assert found.relative_gap <= 1e-3
    assert found.objective == pytest.approx(expected.objective, rel=1e-3)


def test_stops_when_asked(make_problem, monkeypatch):
    monkeypatch.setattr(barrier, "_SHORT", np.inf)
    monkeypatch.setattr(barrier, "_MOST_SHORT", 1)
    problem = make_problem("squared_hinge", 1e3)
    seen = []
    by_passes(problem, None, 1e-9, 100, lambda s: seen.append(s) or len(seen) > 3)
    assert len(seen) == 4

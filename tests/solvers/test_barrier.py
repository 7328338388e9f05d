"""Step 1 over some of its maps at a time; test_kernel_weights.py compares its solutions."""

from dataclasses import replace

import numpy as np
import pytest

from mbkl.engine import limits
from mbkl.solvers import barrier, primal_dual
from mbkl.solvers.primal_dual import DenseMaps
from mbkl.solvers.problem import Problem, go_on


@pytest.fixture
def problem(make_data, make_learner):
    X, y = make_data(60, 4, 3)
    kernel = make_learner(X, y, n_maps=300).kernel_problem
    return Problem(kernel.operator, kernel.margins(5.0 * kernel.smallest_cost))


def minimise(problem, start=None, tol=1e-4, max_iter=500, progress=go_on):
    return barrier.minimise(problem, start, tol, max_iter, progress)


def exactly(problem, tol=1e-6):
    """Solve with the matrix of all maps."""
    dense = replace(problem, operator=DenseMaps(problem.operator.dense()))
    return primal_dual.minimise(dense, None, tol, 500)


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch):
    """Let problems of some hundred maps have several rounds."""
    monkeypatch.setattr(barrier, "_FEWEST_ADDED", 10)


@pytest.mark.parametrize("few_pairs", [0, np.inf])
def test_the_certificate_is_that_of_all_maps(problem, monkeypatch, few_pairs):
    monkeypatch.setattr(limits, "FEW_PAIRS", few_pairs)
    found = minimise(problem)
    scores = problem.operator.forward(found.weights)
    objective, gap, _ = problem.assess(found.weights, scores, found.intercept, found.supports)
    assert found.relative_gap <= 1e-4
    np.testing.assert_allclose(objective, found.objective, rtol=1e-9)
    np.testing.assert_allclose(gap, found.gap, atol=1e-6 * float(objective[0]))
    best = exactly(problem)
    assert found.objective[0] <= best.objective[0] * (1 + 1.1e-4)


def test_a_start_saves_iterations(problem):
    first = minimise(problem)
    again = minimise(problem, first)
    assert again.n_iter < first.n_iter
    assert again.relative_gap <= 1e-4


def test_iterations_of_all_rounds_count(problem):
    seen = []
    found = minimise(problem, progress=lambda so_far: bool(seen.append(so_far.n_iter)))
    assert seen == sorted(seen)
    assert found.n_iter == seen[-1]
    assert minimise(problem, tol=1e-9, max_iter=7).n_iter == 7


@pytest.mark.parametrize("few_pairs", [0, np.inf])
@pytest.mark.parametrize("cost", [3.0, 300.0])
def test_many_more_maps_than_pairs(make_data, make_learner, monkeypatch, cost, few_pairs):
    monkeypatch.setattr(limits, "FEW_PAIRS", few_pairs)
    X, y = make_data(400, 12, 2)
    kernel = make_learner(X, y, n_maps=3_000).kernel_problem
    problem = Problem(kernel.operator, kernel.margins(cost * kernel.smallest_cost))
    assert minimise(problem, tol=1e-3).relative_gap <= 1e-3


def test_what_rounds_do_not_finish_is_solved_with_all_maps(problem, monkeypatch):
    monkeypatch.setattr(barrier, "_ROUNDS", 1)
    found = minimise(problem)
    assert found.relative_gap <= 1e-4
    assert found.objective == pytest.approx(exactly(problem).objective, rel=2e-4)

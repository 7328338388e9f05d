"""Step 1 over some of its maps at a time; test_kernel_weights.py compares its solutions."""

import numpy as np
import pytest

from mbkl.solvers import barrier
from mbkl.solvers.problem import Problem, go_on


@pytest.fixture
def problem(make_data, make_learner):
    X, y = make_data(60, 4, 3)
    kernel = make_learner(X, y, n_maps=300).kernel_problem
    return Problem(kernel.operator, kernel.margins(5.0 * kernel.smallest_cost))


def by_rounds(problem, start=None, tol=1e-4, max_iter=500, progress=go_on, solve=None):
    first = problem.operator.thinned(3)
    return barrier.by_rounds(problem, start, tol, max_iter, progress, first, solve)


@pytest.mark.parametrize("solve", [barrier._by_passes, barrier._densely])
def test_the_certificate_is_that_of_all_maps(problem, solve):
    found = by_rounds(problem, solve=solve)
    scores = problem.operator.forward(found.weights)
    objective, gap, _ = problem.assess(found.weights, scores, found.intercept, found.supports)
    assert found.relative_gap <= 1e-4
    np.testing.assert_allclose(objective, found.objective, rtol=1e-9)
    np.testing.assert_allclose(gap, found.gap, atol=1e-6 * float(objective[0]))
    best = barrier.leaving_out(problem, None, 1e-6, 500)
    assert found.objective[0] <= best.objective[0] * (1 + 1.1e-4)


def test_a_start_saves_iterations(problem):
    first = by_rounds(problem)
    again = by_rounds(problem, first)
    assert again.n_iter < first.n_iter
    assert again.relative_gap <= 1e-4


def test_iterations_of_all_rounds_count(problem):
    seen = []
    found = by_rounds(problem, progress=lambda so_far: bool(seen.append(so_far.n_iter)))
    assert seen == sorted(seen)
    assert found.n_iter == seen[-1]
    assert by_rounds(problem, tol=1e-9, max_iter=7).n_iter == 7


@pytest.mark.parametrize("cost", [3.0, 300.0])
def test_many_more_maps_than_pairs(make_data, make_learner, cost):
    X, y = make_data(400, 12, 2)
    kernel = make_learner(X, y, n_maps=3_000).kernel_problem
    problem = Problem(kernel.operator, kernel.margins(cost * kernel.smallest_cost))
    for found in (by_rounds(problem, tol=1e-3), barrier.leaving_out(problem, None, 1e-3, 500)):
        assert found.relative_gap <= 1e-3

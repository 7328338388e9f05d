"""Step 1 over some of its maps at a time; test_kernel_weights.py compares its solutions."""

import numpy as np
import pytest

from mbkl.engine import limits
from mbkl.solvers import barrier, working_sets
from mbkl.solvers.problem import Problem


@pytest.fixture
def problem(make_data, make_learner):
    X, y = make_data(60, 4, 3)
    kernel = make_learner(X, y, n_maps=300).kernel_problem
    return Problem(kernel.operator, kernel.margins(5.0 * kernel.smallest_cost))


@pytest.mark.parametrize("work", [0.0, np.inf], ids=["passes", "matrix"])
def test_the_certificate_is_that_of_all_maps(problem, work, monkeypatch):
    monkeypatch.setattr(limits, "FIRST_MAPS", 5)
    monkeypatch.setattr(limits, "DENSE_WORK_OF_MAPS", work)
    found = working_sets.minimise(problem, None, 1e-4, 500, solve=barrier.minimise)
    scores = problem.operator.forward(found.weights)
    objective, gap, _ = problem.assess(found.weights, scores, found.intercept, found.supports)
    assert found.relative_gap <= 1e-4
    np.testing.assert_allclose(objective, found.objective, rtol=1e-9)
    np.testing.assert_allclose(gap, found.gap, atol=1e-6 * float(objective[0]))
    best = barrier.minimise(problem, None, 1e-6, 500)
    assert found.objective[0] <= best.objective[0] * (1 + 1.1e-4)


def test_a_start_saves_iterations(problem, monkeypatch):
    monkeypatch.setattr(limits, "FIRST_MAPS", 5)
    first = working_sets.minimise(problem, None, 1e-4, 500, solve=barrier.minimise)
    again = working_sets.minimise(problem, first, 1e-4, 500, solve=barrier.minimise)
    assert again.n_iter < first.n_iter
    assert again.relative_gap <= 1e-4


def test_iterations_of_all_rounds_count(problem, monkeypatch):
    monkeypatch.setattr(limits, "FIRST_MAPS", 5)
    seen = []
    found = working_sets.minimise(
        problem, None, 1e-4, 500, lambda so_far: bool(seen.append(so_far.n_iter)), solve=None
    )
    assert seen == sorted(seen)
    assert found.n_iter == seen[-1]
    ended = working_sets.minimise(problem, None, 1e-9, 7, solve=barrier.minimise)
    assert ended.n_iter == 7

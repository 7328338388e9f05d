"""The exact interior-point method: its start, its steps and the threads it leaves behind."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mbkl.solvers.primal_dual import DenseMaps, minimise, start_near
from mbkl.solvers.problem import Hinge, Logistic, Margins, Problem, SquaredHinge

LOSSES = [SquaredHinge(), Hinge(), Logistic()]


def make_problem(loss=LOSSES[0], with_penalty=False, cost=1.0, n_rows=40, n_maps=15):
    generator = np.random.default_rng(0)
    labels = np.where(np.arange(n_rows) % 2, 1, -1).astype(np.int8)[:, None]
    maps = np.sign(generator.normal(size=(n_rows, n_maps)) + 0.5 * labels)
    costs = cost * (generator.random((n_rows, 1)) + 0.5)
    penalty = generator.random(n_maps) + 0.5 if with_penalty else None
    return Problem(DenseMaps(maps), Margins(labels, costs, loss), penalty)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("with_penalty", [False, True])
@pytest.mark.parametrize("cost", [1e-4, 1.0, 1e4])
def test_the_start_is_inside_all_bounds(loss, with_penalty, cost):
    problem = make_problem(loss, with_penalty, cost)
    point = start_near(problem, None)
    assert (point.alpha > 0).all()
    if loss.support_is_limited:
        assert (point.alpha < problem.margins.costs).all()
    slacks = [each for each in (point.slack, point.low, point.high) if each is not None]
    assert all((slack > 0).all() for slack in slacks)
    assert (point.slack is None) == with_penalty
    products = [each for each in point.products(problem.margins.costs) if each is not None]
    assert len(products) == len(slacks)
    assert all((product > 0).all() for product in products)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("with_penalty", [False, True])
@pytest.mark.parametrize("cost", [1e-4, 0.1, 1.0, 1e4])
def test_few_steps_close_the_gap_at_any_cost(loss, with_penalty, cost):
    solution = minimise(make_problem(loss, with_penalty, cost), None, 1e-6, 60)
    assert solution.relative_gap <= 1e-6
    assert solution.n_iter < 60


@pytest.mark.parametrize("max_iter", [0, 1, 5])
def test_the_number_of_steps_is_limited(max_iter):
    assert minimise(make_problem(), None, 1e-14, max_iter).n_iter == max_iter


def test_bounds_are_never_crossed():
    problem = make_problem()
    weights = []
    minimise(problem, None, 1e-8, 60, lambda solution: weights.append(solution.weights.min()))
    assert min(weights) > 0


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_a_solution_leaves_the_threads_of_the_libraries_as_they_were():
    inside = []
    with threadpool_limits(2, user_api="blas"):
        minimise(make_problem(), None, 1e-6, 60, lambda _: inside.append(blas_threads()))
        assert blas_threads() == {2}
    assert all(threads == {1} for threads in inside)

"""The Newton system of one column against its dense Hessian."""

import numpy as np
import pytest

from mbkl.cells import operator_of
from mbkl.engine import limits
from mbkl.engine.rows import ArrayRows
from mbkl.maps import Ferns
from mbkl.solvers import newton_cg
from mbkl.solvers.newton_cg import NewtonSystem, PartPreconditioner, minimise
from mbkl.solvers.problem import FirstRows, Margins, Problem, Solution, SquaredHinge


def reduced_hessian(Z, curvature, penalty):
    """Return the Hessian with the intercept eliminated."""
    total = curvature.sum()
    centred = Z - (curvature @ Z) / total if total else Z
    return centred.T @ (curvature[:, None] * centred) + np.diag(penalty)


def solve(operator, curvature, penalty, right):
    system = NewtonSystem(operator, curvature[:, None], penalty[:, None])
    return system.solve(right[:, None], 1e-10)[:, 0]


@pytest.mark.parametrize("share_curved", [1.0, 0.3])
@pytest.mark.parametrize("n_features", [1, 4])
def test_steps_solve_the_dense_system(make_data, make_operator, n_features, share_curved):
    X, _ = make_data(120, n_features)
    operator = make_operator(X, n_maps=40)
    generator = np.random.default_rng(0)
    curvature = generator.random(120) * (generator.random(120) < share_curved)
    penalty = generator.random(operator.n_columns) + 0.5
    right = generator.normal(size=penalty.size)
    step = solve(operator, curvature, penalty, right)
    hessian = reduced_hessian(operator.dense(), curvature, penalty)
    np.testing.assert_allclose(step, np.linalg.solve(hessian, right), atol=1e-6)


@pytest.fixture
def ferns(make_data):
    """Ferns on some rows, their penalty, and the kernel matrix of the rows."""
    X, y = make_data(120, 3)
    maps, codes = Ferns(depth=2).fit_codes(ArrayRows(X), np.ones(120), 30, 0)
    operator = operator_of(codes, maps.cells)
    weights = np.random.default_rng(0).random(operator.n_slots) + 0.5
    return operator, operator.penalty(weights), operator.gram(weights), y


def test_a_part_of_all_rows_is_the_whole_inverse(ferns):
    operator, penalty, gram, _ = ferns
    generator = np.random.default_rng(1)
    curvature = generator.random(120) * (generator.random(120) < 0.6)
    right = generator.normal(size=penalty.size)
    rows = np.flatnonzero(curvature)
    part = FirstRows(operator, slice(120), gram)
    solver = PartPreconditioner(part, rows, curvature[rows], penalty[:, None])
    hessian = reduced_hessian(operator.dense(), curvature, penalty)
    found = solver.solve(right[:, None])[:, 0]
    np.testing.assert_allclose(found, np.linalg.solve(hessian, right), atol=1e-8)


def test_a_part_saves_iterations_and_leads_to_the_same(ferns, monkeypatch):
    operator, penalty, gram, y = ferns
    monkeypatch.setattr(limits, "FEWEST_OF_A_PART", 5)
    monkeypatch.setattr(limits, "SHARE_OF_A_PART", 0.5)
    margins = Margins(np.where(y == 1, 1, -1)[:, None], np.full((120, 1), 50.0), SquaredHinge())
    counts = []
    original = newton_cg.conjugate_gradient

    def counted(*arguments):
        solution, n_iter = original(*arguments)
        counts[-1] += n_iter
        return solution, n_iter

    monkeypatch.setattr(newton_cg, "conjugate_gradient", counted)
    problem = Problem(operator, margins, penalty)
    start = Solution.nothing(problem.shape)
    solutions = []
    for part in (None, FirstRows(operator.take(np.arange(60)), slice(60), gram[:60, :60])):
        counts.append(0)
        solutions.append(minimise(problem, start, 1e-6, 100, part=part))
    plain, with_part = solutions
    assert counts[1] < counts[0]
    np.testing.assert_allclose(with_part.objective, plain.objective, rtol=1e-5)


def test_a_flat_loss_leaves_the_penalty(make_data, make_operator):
    X, _ = make_data(60, 2)
    operator = make_operator(X)
    penalty = np.random.default_rng(0).random(operator.n_columns) + 0.5
    right = np.ones(penalty.size)
    step = solve(operator, np.zeros(60), penalty, right)
    np.testing.assert_allclose(step, right / penalty, rtol=1e-3)


def test_one_feature_takes_few_steps_however_many_maps(make_operator):
    """Nested maps are a chain, for which the preconditioner is exact."""
    X = np.random.default_rng(0).random((3000, 1))
    calls = {}
    for n_maps in (20, 800):
        operator = make_operator(X, n_maps)
        penalty = np.full(operator.n_columns, 1e-3)
        system = NewtonSystem(operator, np.ones((3000, 1)), penalty[:, None])
        product, calls[n_maps] = system._product, 0

        def counted(direction, product=product, n_maps=n_maps):
            calls[n_maps] += 1
            return product(direction)

        system._product = counted
        system.solve(np.random.default_rng(1).normal(size=(penalty.size, 1)), 1e-3)
    assert calls[800] <= max(5, calls[20] + 2)

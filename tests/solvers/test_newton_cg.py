"""The Newton system of one column against its dense Hessian."""

import numpy as np
import pytest

from mbkl.solvers.newton_cg import NewtonSystem


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

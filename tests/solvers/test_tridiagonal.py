"""The preconditioner: exact for nested maps, positive definite for anything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.solvers.newton_cg import ChainPreconditioner


@pytest.mark.parametrize("sizes", [(2,), (5,), (3, 1, 8, 2)])
def test_a_device_solves_chains_alike(sizes):
    """Cyclic reduction in Torch against LAPACK, also for several columns at once."""
    torch = pytest.importorskip("torch", reason="Torch is not installed.")
    generator, n = np.random.default_rng(0), sum(sizes)
    diagonal = generator.random((n, 2)) + 1.0
    neighbour = generator.uniform(-0.9, 0.9, size=(n, 2))
    neighbour[np.cumsum([0, *sizes[:-1]])] = 0.0
    penalty, right = generator.random(n) + 0.1, generator.normal(size=(n, 2))
    tensors = (torch.as_tensor(values) for values in (diagonal, neighbour, penalty[:, None]))
    found = ChainPreconditioner(*tensors, longest=max(sizes)).solve(torch.as_tensor(right))
    for column in range(2):
        solver = ChainPreconditioner(diagonal[:, column], neighbour[:, column], penalty)
        np.testing.assert_allclose(found[:, column], solver.solve(right[:, column]), rtol=1e-9)


def markov_covariance(n, seed):
    """Return the covariance of a random Markov chain."""
    generator = np.random.default_rng(seed)
    slopes, noise = generator.normal(size=n), generator.random(n) + 0.1
    L = np.eye(n)
    for k in range(1, n):
        L[k] += slopes[k] * L[k - 1]
        L[k, k] = 1.0
    return (L * noise) @ L.T


@pytest.mark.parametrize("n", [2, 7, 30])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_markov_chains_are_solved_exactly(n, scale):
    G = markov_covariance(n, seed=n)
    penalty = scale * (np.random.default_rng(0).random(n) + 0.5)
    neighbour = np.append(0, np.diag(G, 1))
    solver = ChainPreconditioner(np.diag(G), neighbour, penalty)
    right = np.random.default_rng(1).normal(size=n)
    expected = np.linalg.solve(G + np.diag(penalty), right)
    np.testing.assert_allclose(solver.solve(right), expected, rtol=1e-4, atol=1e-6 / scale)


def test_nested_maps_are_a_markov_chain(make_data, make_operator):
    X, _ = make_data(200, 1)
    operator = make_operator(X, n_maps=12)
    is_jump = operator.is_map
    Z = operator.dense()[:, is_jump]
    weights = np.random.default_rng(0).random((200, 1))
    centred = Z - (weights * Z).sum(axis=0) / weights.sum()
    G = centred.T @ (weights * centred)
    penalty = np.full(G.shape[0], 0.3)
    solver = ChainPreconditioner(np.diag(G), np.append(0, np.diag(G, 1)), penalty)
    right = np.random.default_rng(1).normal(size=G.shape[0])
    expected = np.linalg.solve(G + np.diag(penalty), right)
    np.testing.assert_allclose(solver.solve(right), expected, rtol=1e-5, atol=1e-8)


def test_groups_are_solved_apart():
    first, second = markov_covariance(4, seed=1), markov_covariance(3, seed=2)
    penalty, right = np.arange(1.0, 8.0), np.random.default_rng(0).normal(size=7)
    diagonal = np.concatenate([np.diag(first), np.diag(second)])
    neighbour = np.concatenate([[0], np.diag(first, 1), [0], np.diag(second, 1)])
    together = ChainPreconditioner(diagonal, neighbour, penalty).solve(right)
    alone = [
        ChainPreconditioner(np.diag(G), np.append(0, np.diag(G, 1)), penalty[part]).solve(
            right[part]
        )
        for G, part in ((first, slice(0, 4)), (second, slice(4, 7)))
    ]
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=1e-9)


@given(st.integers(2, 8), st.integers(0, 2**32), st.floats(-12, 12))
def test_it_is_symmetric_and_positive_definite(n, seed, log_penalty):
    generator = np.random.default_rng(seed)
    diagonal = generator.random(n) * (generator.random(n) < 0.8)
    bound = np.sqrt(diagonal[1:] * diagonal[:-1])
    neighbour = np.append(0, bound * generator.choice([-1, -0.5, 0, 0.9, 1], size=n - 1))
    penalty = 10.0**log_penalty * (generator.random(n) + 0.5)
    solver = ChainPreconditioner(diagonal, neighbour, penalty)
    inverse = np.column_stack([solver.solve(unit) for unit in np.eye(n)])
    # Compare in units in which the diagonal of the penalty is one.
    scaled = inverse * np.sqrt(penalty[:, None] * penalty)
    np.testing.assert_allclose(scaled, scaled.T, atol=1e-6)
    assert np.linalg.eigvalsh((scaled + scaled.T) / 2).min() > -1e-9
    assert (np.diag(scaled) > 0).all()


@pytest.mark.parametrize("spread", [0, 12])
def test_maps_without_curvature_get_their_penalty(spread):
    penalty = 10.0 ** np.linspace(-spread / 2, spread / 2, 5)
    solver = ChainPreconditioner(np.zeros(5), np.zeros(5), penalty)
    np.testing.assert_allclose(solver.solve(np.ones(5)), 1 / penalty, rtol=1e-2)


def test_identical_maps_stay_finite():
    solver = ChainPreconditioner(np.ones(4), np.array([0.0, 1, 1, 1]), np.full(4, 1e-9))
    assert np.isfinite(solver.solve(np.array([1.0, -1.0, 2.0, 0.0]))).all()

"""Conjugate gradients: exact solutions, tolerances and ways to stop; steps long enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.solvers.newton_cg import conjugate_gradient, descend, dot


def system(n, seed=0):
    generator = np.random.default_rng(seed)
    factor = generator.normal(size=(n, n))
    return factor @ factor.T + np.eye(n), generator.normal(size=n)


@given(st.integers(1, 12), st.integers(0, 2**32))
def test_the_solution_is_that_of_a_direct_solver(n, seed):
    matrix, right = system(n, seed)
    solution, _ = conjugate_gradient(lambda v: matrix @ v, np.copy, right, 1e-12, 10 * n + 20)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, right), atol=1e-7)


def test_as_many_steps_as_unknowns_are_enough():
    matrix, right = system(6)
    _, n_iter = conjugate_gradient(lambda v: matrix @ v, np.copy, right, 1e-9, 100)
    assert n_iter <= 7


def test_a_perfect_preconditioner_takes_one_step():
    matrix, right = system(20)
    solution, n_iter = conjugate_gradient(
        lambda v: matrix @ v, lambda r: np.linalg.solve(matrix, r), right, 1e-6, 100
    )
    assert n_iter == 1
    np.testing.assert_allclose(matrix @ solution, right, atol=1e-8)


def test_a_preconditioner_does_not_change_the_solution():
    matrix, right = system(10)
    diagonal = np.diag(matrix)
    plain, _ = conjugate_gradient(lambda v: matrix @ v, np.copy, right, 1e-12, 100)
    scaled, _ = conjugate_gradient(lambda v: matrix @ v, lambda r: r / diagonal, right, 1e-12, 100)
    np.testing.assert_allclose(plain, scaled, atol=1e-8)


@pytest.mark.parametrize("tolerance", [0.5, 1e-2, 1e-6])
def test_the_residual_is_within_the_tolerance(tolerance):
    matrix, right = system(40)
    solution, _ = conjugate_gradient(lambda v: matrix @ v, np.copy, right, tolerance, 1000)
    residual = np.linalg.norm(right - matrix @ solution)
    assert residual <= tolerance * np.linalg.norm(right) * (1 + 1e-6)


def test_the_number_of_steps_is_limited():
    matrix, right = system(40)
    _, n_iter = conjugate_gradient(lambda v: matrix @ v, np.copy, right, 1e-15, 3)
    assert n_iter == 3


def test_nothing_to_do_takes_no_step():
    solution, n_iter = conjugate_gradient(np.copy, np.copy, np.zeros(3), 1e-6, 10)
    assert n_iter == 0
    np.testing.assert_array_equal(solution, np.zeros(3))


def test_it_stops_where_the_curvature_is_not_positive():
    solution, n_iter = conjugate_gradient(lambda v: -v, np.copy, np.ones(3), 1e-6, 10)
    assert n_iter == 1
    np.testing.assert_array_equal(solution, np.zeros(3))


def test_columns_are_systems_of_their_own():
    matrix, _ = system(6)
    right = np.random.default_rng(1).normal(size=(6, 3)) * np.array([1.0, 1e-3, 0.0])
    solution, _ = conjugate_gradient(lambda v: matrix @ v, np.copy, right, 1e-10, 50)
    np.testing.assert_allclose(matrix @ solution, right, atol=1e-8)
    assert not solution[:, 2].any()


def test_the_right_hand_side_is_left_alone():
    matrix, right = system(5)
    before = right.copy()
    conjugate_gradient(lambda v: matrix @ v, np.copy, right, 1e-6, 10)
    np.testing.assert_array_equal(right, before)


def test_dot_is_the_inner_product():
    left, right = np.random.default_rng(0).normal(size=(2, 50))
    assert dot(left, right) == pytest.approx(float(left @ right))


@pytest.mark.parametrize("steepness", [0.1, 1.0, 7.0, 1e4])
def test_steps_lower_the_objective(steepness):
    def rise(step):
        return steepness * step**2 - step

    steps, gains = descend(rise, np.array([-1.0]))
    assert 0 < steps[0] <= 1
    assert gains[0] == -rise(steps)[0] > 0


def test_columns_have_steps_of_their_own():
    curvature = np.array([0.5, 8.0])
    steps, _ = descend(lambda step: curvature * step**2 - step, np.array([-1.0, -1.0]))
    assert steps[0] == 1.0
    assert steps[1] < 0.125


def test_no_step_where_the_objective_only_rises():
    steps, _ = descend(lambda step: step, np.array([-1.0]))
    assert steps[0] == 0.0

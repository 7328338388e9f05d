"""Step 1 against other solvers of the same problem, and its closed forms."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.special import expit
from sklearn.svm import LinearSVC

from mbkl.learn.initial_guess import class_shares, initial_signs
from mbkl.learn.kernel_weights import PairOperator, smallest_cost
from mbkl.solvers.losses import Hinge, Logistic, SquaredHinge
from mbkl.solvers.margins import Margins
from mbkl.learn.pairs import sample_pairs
from mbkl.solvers import interior_point
from mbkl.solvers.dense_interior_point import DenseProblem, solve_densely
from mbkl.solvers.interior_point import minimise_weights

LOSSES = {"squared_hinge": SquaredHinge(), "hinge": Hinge(), "logistic": Logistic()}
MULTIPLES = [1.5, 10.0, 300.0]
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES)
EVERY_SOLVER = pytest.mark.parametrize("solver", ["dense", "matrix-free", "with supports"])
# The matrix-free solvers need a smooth loss.
EVERY_SOLVER_AND_LOSS = pytest.mark.parametrize(
    ("solver", "loss"),
    [("dense", loss) for loss in LOSSES]
    + [
        (solver, loss)
        for solver in ("matrix-free", "with supports")
        for loss in ("squared_hinge", "logistic")
    ],
)


@pytest.fixture(scope="module")
def make_problem(make_data, make_operator):
    """Return a function that gives the signed maps on pairs, and the pairs."""

    def make(n_classes=2, n_rows=70, n_maps=35, weighted=True, seed=0):
        X, y = make_data(n_rows, 3, n_classes, seed)
        operator = make_operator(X, n_maps, seed)
        weights = np.random.default_rng(seed).random(n_rows) + 0.5 if weighted else np.ones(n_rows)
        shares = class_shares(operator, y, n_classes, weights)
        signs = initial_signs(operator, shares, "balanced")
        pairs = sample_pairs(operator, y, n_classes, weights, 2, 50_000, seed)
        return PairOperator.of(operator, pairs, signs), pairs

    return make


def learn(solver, operator, pairs, loss, cost, tol=1e-4, start=None, max_iter=100):
    """Solve Step 1 with the solver of that name."""
    margins = margins_of(pairs, loss, cost)
    if solver == "dense":
        return solve_densely(DenseProblem(operator.dense(), margins), tol, max_iter)
    with pytest.MonkeyPatch.context() as patch:
        if solver == "with supports":
            patch.setattr(interior_point, "_SHORT", np.inf)
        return minimise_weights(operator, margins, start, tol, max_iter)


def margins_of(pairs, loss, cost):
    return Margins(pairs.labels[:, None], cost * pairs.weights[:, None], LOSSES[loss])


def useful_cost(operator, pairs, loss, multiple):
    """Return a multiple of the smallest cost at which weights are positive."""
    smooth = "squared_hinge" if loss == "hinge" else loss
    return multiple * smallest_cost(operator, pairs, smooth)


def objective(S, pairs, loss, cost, theta, intercept):
    margins = pairs.labels * (S @ theta + intercept)
    return theta.sum() + cost * (pairs.weights * LOSSES[loss].value(margins)).sum()


def bounded_quasi_newton(S, pairs, loss, cost):
    """Return the smallest objective that L-BFGS-B finds with bounds on theta."""
    n_maps, costs = S.shape[1], cost * pairs.weights

    def value_and_gradient(variables):
        theta, intercept = variables[:-1], variables[-1]
        margins = pairs.labels * (S @ theta + intercept)
        if loss == "logistic":
            support = costs * expit(-margins)
        else:
            support = costs * 2 * np.maximum(0, 1 - margins)
        residual = -pairs.labels * support
        value = theta.sum() + (costs * LOSSES[loss].value(margins)).sum()
        return value, np.append(1 + S.T @ residual, residual.sum())

    result = minimize(
        value_and_gradient,
        np.zeros(n_maps + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * n_maps + [(None, None)],
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-11, "gtol": 1e-8, "maxcor": 50},
    )
    return result.fun


def linear_program(S, pairs, cost):
    """Return the smallest objective with the hinge loss."""
    n_pairs, n_maps = S.shape
    signed = pairs.labels[:, None] * np.column_stack([S, np.ones(n_pairs)])
    prices = np.concatenate([np.ones(n_maps), [0.0], cost * pairs.weights])
    bounds = [(0, None)] * n_maps + [(None, None)] + [(0, None)] * n_pairs
    constraints = -np.hstack([signed, np.eye(n_pairs)])
    return linprog(prices, A_ub=constraints, b_ub=-np.ones(n_pairs), bounds=bounds).fun


def reference(S, pairs, loss, cost):
    if loss == "hinge":
        return linear_program(S, pairs, cost)
    return bounded_quasi_newton(S, pairs, loss, cost)


@EVERY_SOLVER_AND_LOSS
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multiple", MULTIPLES)
def test_objective_is_that_of_a_general_solver(make_problem, solver, loss, n_classes, multiple):
    operator, pairs = make_problem(n_classes)
    cost = useful_cost(operator, pairs, loss, multiple)
    solution = learn(solver, operator, pairs, loss, cost)
    S = operator.dense()
    found = objective(S, pairs, loss, cost, solution.theta, solution.intercept[0])
    expected = reference(S, pairs, loss, cost)
    assert (solution.theta >= 0).all()
    assert found == pytest.approx(expected, rel=1e-3)
    assert solution.objective == pytest.approx(found, rel=1e-9)


@EVERY_SOLVER_AND_LOSS
@pytest.mark.parametrize("multiple", MULTIPLES)
def test_the_duality_gap_bounds_the_distance_to_the_optimum(make_problem, solver, loss, multiple):
    operator, pairs = make_problem()
    cost = useful_cost(operator, pairs, loss, multiple)
    optimum = reference(operator.dense(), pairs, loss, cost)
    for max_iter in (1, 3, 100):
        solution = learn(solver, operator, pairs, loss, cost, max_iter=max_iter)
        assert solution.objective - solution.gap <= optimum * (1 + 1e-6)
        assert optimum * (1 - 1e-6) <= solution.objective
    assert solution.relative_gap <= 1e-3


@EVERY_SOLVER
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("multiple", MULTIPLES)
def test_objective_is_that_of_liblinear(make_problem, solver, seed, multiple):
    operator, pairs = make_problem(seed=seed)
    cost = multiple * smallest_cost(operator, pairs, "squared_hinge")
    S = operator.dense()
    used = S.any(axis=0)
    liblinear = LinearSVC(
        penalty="l1", dual=False, C=cost, intercept_scaling=100, tol=1e-5, max_iter=20_000
    )
    liblinear.fit(S[:, used], pairs.labels, sample_weight=pairs.weights)
    weights = np.zeros(used.size)
    weights[used] = liblinear.coef_[0]
    clipped = np.maximum(weights, 0)
    margins = margins_of(pairs, "squared_hinge", cost)
    intercept = margins.best_intercept((S @ clipped)[:, None], liblinear.intercept_)[0]
    theirs = objective(S, pairs, "squared_hinge", cost, clipped, intercept)
    ours = learn(solver, operator, pairs, "squared_hinge", cost).objective
    assert ours <= theirs * (1 + 1e-3)
    if weights.min() >= 0:
        assert ours >= theirs * (1 - 1e-3)


def test_liblinear_often_needs_no_clipping(make_problem):
    """The test above compares in both directions on some of its problems."""
    n_unclipped = 0
    for seed in range(6):
        operator, pairs = make_problem(seed=seed)
        cost = 1.5 * smallest_cost(operator, pairs, "squared_hinge")
        liblinear = LinearSVC(penalty="l1", dual=False, C=cost, intercept_scaling=100)
        liblinear.fit(operator.dense(), pairs.labels, sample_weight=pairs.weights)
        n_unclipped += liblinear.coef_.min() >= 0
    assert n_unclipped >= 2


@EVERY_SOLVER
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_conditions_of_optimality(make_problem, solver, loss):
    operator, pairs = make_problem()
    cost = 20 * smallest_cost(operator, pairs, loss)
    solution = learn(solver, operator, pairs, loss, cost, tol=1e-8)
    margins = margins_of(pairs, loss, cost)
    scores = operator.forward(solution.theta[:, None]) + solution.intercept
    residuals = margins.labels * margins.support(scores)
    gradient = 1 - operator.adjoint(residuals)[:, 0]
    kept = solution.positive
    assert 0 < kept.sum() < kept.size
    assert gradient.min() >= -1e-3
    assert np.abs(gradient[kept]).max() <= 1e-2
    assert solution.theta[~kept].sum() <= 1e-4 * solution.theta.sum()
    assert abs(residuals.sum()) <= 1e-6 * np.abs(residuals).sum()


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_zero_up_to_the_smallest_cost(make_problem, loss, n_classes):
    operator, pairs = make_problem(n_classes)
    smallest = smallest_cost(operator, pairs, loss)
    S, nothing = operator.dense(), np.zeros(operator.n_columns)

    def without_maps(cost):
        margins = margins_of(pairs, loss, cost)
        best = margins.best_intercept(np.zeros((pairs.rows.size, 1)), np.zeros(1))
        return objective(S, pairs, loss, cost, nothing, best[0])

    below, above = 0.99 * smallest, 1.2 * smallest
    assert reference(S, pairs, loss, below) == pytest.approx(without_maps(below), rel=1e-7)
    assert reference(S, pairs, loss, above) < without_maps(above) * (1 - 1e-5)


def test_step_one_squares_the_hinge(make_data, make_learner):
    X, y = make_data()
    hinge, squared = (make_learner(X, y, loss=loss) for loss in ("hinge", "squared_hinge"))
    assert hinge.smallest_useful_C() == squared.smallest_useful_C()
    np.testing.assert_array_equal(hinge.learn_kernel(1.0).theta, squared.learn_kernel(1.0).theta)


@EVERY_LOSS
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_learner_knows_the_smallest_cost(make_data, make_learner, loss, n_classes):
    X, y = make_data(n_classes=n_classes)
    learner = make_learner(X, y, loss=loss)
    smallest = learner.smallest_useful_C()
    with pytest.warns(UserWarning, match=r"C_kernel=.* is too small.*constant"):
        kernel = learner.learn_kernel(0.999 * smallest)
    assert not kernel.theta.any()
    kernel = learner.learn_kernel(1.01 * smallest)
    assert kernel.theta.sum() == pytest.approx(1)


@EVERY_SOLVER_AND_LOSS
def test_a_start_from_another_cost_leads_to_the_same_objective(make_problem, solver, loss):
    operator, pairs = make_problem()
    low, high = (useful_cost(operator, pairs, loss, multiple) for multiple in (3, 30))
    start = learn(solver, operator, pairs, loss, low)
    warm = learn(solver, operator, pairs, loss, high, start=start)
    cold = learn(solver, operator, pairs, loss, high)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-3)


@EVERY_SOLVER
def test_a_callback_stops_the_solver(make_problem, solver):
    operator, pairs = make_problem()
    margins = margins_of(pairs, "squared_hinge", 1.0)
    seen = []

    def stop_after_two(solution):
        seen.append(solution.n_iter)
        return len(seen) == 2

    if solver == "dense":
        problem = DenseProblem(operator.dense(), margins)
        solution = solve_densely(problem, 1e-9, 100, stop_after_two)
    else:
        solution = minimise_weights(operator, margins, None, 1e-9, 100, stop_after_two)
    assert seen == [0, 1]
    assert solution.n_iter == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_operator_is_its_matrix(make_problem, n_classes):
    operator, pairs = make_problem(n_classes)
    S, generator = operator.dense(), np.random.default_rng(0)
    theta, residuals = generator.random((S.shape[1], 1)), generator.normal(size=(S.shape[0], 1))
    assert S.shape[0] == pairs.rows.size
    np.testing.assert_allclose(operator.forward(theta), S @ theta, atol=1e-10)
    np.testing.assert_allclose(operator.adjoint(residuals), S.T @ residuals, atol=1e-10)
    weights = generator.random((S.shape[0], 1))
    total, *columns = operator.products(weights)
    mean, diagonal, neighbour = (column[:, 0] for column in columns)
    gram = S.T @ (weights * S)
    assert total == pytest.approx(weights.sum())
    np.testing.assert_allclose(mean, S.T @ weights[:, 0], atol=1e-10)
    np.testing.assert_allclose(diagonal, np.diag(gram), atol=1e-10)
    neighbours = np.diag(gram, 1)
    is_jump = operator.parts[0].cells.is_jump
    expected = np.where(is_jump[1:] & is_jump[:-1], neighbours, 0)
    np.testing.assert_allclose(neighbour[1:], expected, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_the_operator_are_signed_for_their_class(
    make_data, make_operator, make_problem, n_classes
):
    operator, pairs = make_problem(n_classes)
    X, y = make_data(70, 3, n_classes)
    maps = make_operator(X, 35)
    weights = np.random.default_rng(0).random(70) + 0.5
    shares = class_shares(maps, y, n_classes, weights)
    signs = initial_signs(maps, shares, "balanced")
    expected = maps.dense()[pairs.rows] * signs[:, pairs.classes].T
    np.testing.assert_array_equal(operator.dense(), expected)


@pytest.fixture
def rounds(monkeypatch):
    """Count the maps of each round, which chains of any length are worth."""
    monkeypatch.setattr(interior_point, "_WORTH_THINNING", 0.9)
    sizes = []
    original = interior_point._iterate

    def counted(operator, *arguments, **options):
        sizes.append(int(operator.is_map.sum()))
        return original(operator, *arguments, **options)

    monkeypatch.setattr(interior_point, "_iterate", counted)
    return sizes


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multiple", MULTIPLES)
def test_long_chains_are_solved_from_some_of_their_maps(make_problem, rounds, n_classes, multiple):
    operator, pairs = make_problem(n_classes, n_rows=150, n_maps=400)
    cost = useful_cost(operator, pairs, "squared_hinge", multiple)
    solution = learn("matrix-free", operator, pairs, "squared_hinge", cost)
    expected = learn("dense", operator, pairs, "squared_hinge", cost)
    assert solution.relative_gap <= 1e-4
    assert solution.objective == pytest.approx(expected.objective, rel=2e-4)
    assert len(rounds) > 1
    assert max(rounds) < operator.is_map.sum()
    again = learn("matrix-free", operator, pairs, "squared_hinge", 1.3 * cost, start=solution)
    expected = learn("dense", operator, pairs, "squared_hinge", 1.3 * cost)
    assert again.objective == pytest.approx(expected.objective, rel=2e-4)


def test_where_rounds_do_not_suffice_all_maps_are_used(make_problem, rounds, monkeypatch):
    monkeypatch.setattr(interior_point, "_ROUNDS", 0)
    monkeypatch.setattr(interior_point, "_GOALS", (0.5,))
    operator, pairs = make_problem(2, n_rows=150, n_maps=400)
    cost = useful_cost(operator, pairs, "squared_hinge", 10.0)
    solution = learn("matrix-free", operator, pairs, "squared_hinge", cost)
    assert rounds[-1] == operator.is_map.sum()
    assert solution.relative_gap <= 1e-4


def test_a_callback_stops_the_rounds(make_problem, rounds):
    operator, pairs = make_problem(2, n_rows=150, n_maps=400)
    margins = margins_of(pairs, "squared_hinge", useful_cost(operator, pairs, "squared_hinge", 10))
    solution = minimise_weights(operator, margins, None, 1e-9, 100, lambda s: s.n_iter >= 3)
    assert solution.n_iter == 3
    assert np.isfinite(solution.gap)
    assert (solution.theta >= 0).all()

"""Step 1 against other solvers of the same problem, and its closed forms."""

from dataclasses import replace

import joblib
import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.special import expit
from sklearn.svm import LinearSVC

from mbkl.engine import limits
from mbkl.learn.initial_guess import class_shares, initial_signs
from mbkl.learn.kernel_weights import KernelProblem, is_positive
from mbkl.solvers import barrier
from mbkl.solvers.problem import LOSSES

MULTIPLES = [1.5, 10.0, 300.0]
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES)
OTHERS = ["matrix-free", "with supports", "some maps", "matrix of some maps"]
EVERY_SOLVER = pytest.mark.parametrize("solver", ["dense", *OTHERS])
# All but one need a smooth loss.
EVERY_SOLVER_AND_LOSS = pytest.mark.parametrize(
    ("solver", "loss"),
    [("dense", loss) for loss in LOSSES]
    + [(solver, loss) for solver in OTHERS for loss in ("squared_hinge", "logistic")],
)


@pytest.fixture(scope="module")
def make_problem(make_data, make_operator, labelled):
    """Return a function that gives Step 1 on some rows."""

    def make(loss="squared_hinge", n_classes=2, n_rows=70, n_maps=35, seed=0):
        X, y = make_data(n_rows, 3, n_classes, seed)
        operator = make_operator(X, n_maps, seed)
        weights = np.random.default_rng(seed).random(n_rows) + 0.5
        rows = labelled(operator, y, n_classes, weights, seed)
        signs = initial_signs(operator, class_shares(rows), "balanced")
        return KernelProblem.of(rows, signs, loss, 2, 50_000)

    return make


def solve(solver, problem, cost, *arguments):
    """Solve Step 1 with the solver of that name; return where it ended, and the solution."""
    with pytest.MonkeyPatch.context() as patch:
        is_dense = solver in ("dense", "matrix of some maps")
        patch.setattr(limits, "FEW_PAIRS", np.inf if is_dense else 0)
        if solver == "dense":
            patch.setattr(barrier, "_FEWEST_ADDED", 10_000)
        if "some maps" in solver:
            patch.setattr(barrier, "_FEWEST_ADDED", 5)
        if solver == "with supports":
            patch.setattr(barrier, "_SHORT", np.inf)
            patch.setattr(barrier, "_MOST_SHORT", 1)
        return problem.solve(cost, *arguments)


def learn(solver, problem, cost, tol=1e-4, start=None, max_iter=100):
    """Return where the solver of that name ends."""
    return solve(solver, problem, cost, start, tol, max_iter)[0]


def useful_cost(problem, multiple):
    """Return a multiple of the smallest cost at which weights are positive."""
    smooth = "squared_hinge" if problem.loss == "hinge" else problem.loss
    return multiple * replace(problem, loss=smooth).smallest_cost


def costs_of(problem, cost):
    """Return the cost of each pair, with that of all of them together."""
    return cost * problem.pairs.weights / problem.pairs.weights.sum()


def objective(problem, cost, theta, intercept):
    margins = problem.pairs.labels * (problem.operator.dense() @ theta + intercept)
    losses = LOSSES[problem.loss].value(margins)
    return theta.sum() + (costs_of(problem, cost) * losses).sum()


def bounded_quasi_newton(problem, cost):
    """Return the smallest objective that L-BFGS-B finds with bounds on theta."""
    S, labels, costs = problem.operator.dense(), problem.pairs.labels, costs_of(problem, cost)

    def value_and_gradient(variables):
        theta, intercept = variables[:-1], variables[-1]
        margins = labels * (S @ theta + intercept)
        if problem.loss == "logistic":
            support = costs * expit(-margins)
        else:
            support = costs * 2 * np.maximum(0, 1 - margins)
        residual = -labels * support
        value = theta.sum() + (costs * LOSSES[problem.loss].value(margins)).sum()
        return value, np.append(1 + S.T @ residual, residual.sum())

    result = minimize(
        value_and_gradient,
        np.zeros(S.shape[1] + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * S.shape[1] + [(None, None)],
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-11, "gtol": 1e-8, "maxcor": 50},
    )
    return result.fun


def linear_program(problem, cost):
    """Return the smallest objective with the hinge loss."""
    S = problem.operator.dense()
    n_pairs, n_maps = S.shape
    signed = problem.pairs.labels[:, None] * np.column_stack([S, np.ones(n_pairs)])
    prices = np.concatenate([np.ones(n_maps), [0.0], costs_of(problem, cost)])
    bounds = [(0, None)] * n_maps + [(None, None)] + [(0, None)] * n_pairs
    constraints = -np.hstack([signed, np.eye(n_pairs)])
    return linprog(prices, A_ub=constraints, b_ub=-np.ones(n_pairs), bounds=bounds).fun


def reference(problem, cost):
    """Return the optimum that a general solver finds: once for all of ours."""
    key = joblib.hash((problem.operator.dense(), problem.pairs.labels, problem.loss, cost))
    if key not in _REFERENCES:
        general = linear_program if problem.loss == "hinge" else bounded_quasi_newton
        _REFERENCES[key] = general(problem, cost)
    return _REFERENCES[key]


_REFERENCES = {}


@EVERY_SOLVER_AND_LOSS
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multiple", MULTIPLES)
def test_objective_is_that_of_a_general_solver(make_problem, solver, loss, n_classes, multiple):
    problem = make_problem(loss, n_classes)
    cost = useful_cost(problem, multiple)
    expected = reference(problem, cost)
    # Both where the solver ends, and with the weights near zero set to zero.
    for solution in solve(solver, problem, cost, None, 1e-4, 100):
        theta = solution.weights[:, 0]
        found = objective(problem, cost, theta, solution.intercept[0])
        assert (theta >= 0).all()
        assert found == pytest.approx(expected, rel=1e-3)
        assert solution.objective[0] == pytest.approx(found, rel=1e-9)
        assert solution.relative_gap <= 1e-4


@EVERY_SOLVER_AND_LOSS
@pytest.mark.parametrize("multiple", MULTIPLES)
def test_the_duality_gap_bounds_the_distance_to_the_optimum(make_problem, solver, loss, multiple):
    problem = make_problem(loss)
    cost = useful_cost(problem, multiple)
    optimum = reference(problem, cost)
    for max_iter in (1, 3, 100):
        for solution in solve(solver, problem, cost, None, 1e-4, max_iter):
            assert solution.objective[0] - solution.gap[0] <= optimum * (1 + 1e-6)
            assert optimum * (1 - 1e-6) <= solution.objective[0]
    assert solution.relative_gap <= 1e-3


@EVERY_SOLVER
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("multiple", MULTIPLES)
def test_objective_is_that_of_liblinear(make_problem, solver, seed, multiple):
    problem = make_problem(seed=seed)
    cost = useful_cost(problem, multiple)
    S, costs = problem.operator.dense(), costs_of(problem, cost)
    used = S.any(axis=0)
    liblinear = LinearSVC(
        penalty="l1", dual=False, intercept_scaling=100, tol=1e-5, max_iter=20_000
    )
    liblinear.fit(S[:, used], problem.pairs.labels, sample_weight=costs)
    weights = np.zeros(used.size)
    weights[used] = liblinear.coef_[0]
    clipped = np.maximum(weights, 0)
    scores = (S @ clipped)[:, None]
    intercept = problem.margins(cost).best_intercept(scores, liblinear.intercept_)[0]
    theirs = objective(problem, cost, clipped, intercept)
    ours = learn(solver, problem, cost).objective[0]
    assert ours <= theirs * (1 + 1e-3)
    if weights.min() >= 0:
        assert ours >= theirs * (1 - 1e-3)


def test_liblinear_often_needs_no_clipping(make_problem):
    """The test above compares in both directions on some of its problems."""
    n_unclipped = 0
    for seed in range(6):
        problem = make_problem(seed=seed)
        costs = costs_of(problem, useful_cost(problem, 1.5))
        liblinear = LinearSVC(penalty="l1", dual=False, intercept_scaling=100)
        liblinear.fit(problem.operator.dense(), problem.pairs.labels, sample_weight=costs)
        n_unclipped += liblinear.coef_.min() >= 0
    assert n_unclipped >= 2


@EVERY_SOLVER
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_conditions_of_optimality(make_problem, solver, loss):
    problem = make_problem(loss)
    cost = useful_cost(problem, 20)
    interior, solution = solve(solver, problem, cost, None, 1e-8, 100)
    margins = problem.margins(cost)
    scores = problem.operator.forward(interior.weights) + interior.intercept
    residuals = margins.labels * margins.support(scores)
    gradient = 1 - problem.operator.adjoint(residuals)[:, 0]
    kept = is_positive(interior)
    assert 0 < kept.sum() < kept.size
    assert gradient.min() >= -1e-3
    assert np.abs(gradient[kept]).max() <= 1e-2
    assert interior.weights[~kept].sum() <= 1e-4 * interior.weights.sum()
    assert abs(residuals.sum()) <= 1e-6 * np.abs(residuals).sum()
    assert (solution.weights > 0).sum() <= kept.sum()


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_zero_up_to_the_smallest_cost(make_problem, loss, n_classes):
    problem = make_problem(loss, n_classes)
    nothing = np.zeros(problem.operator.n_columns)

    def without_maps(cost):
        scores = np.zeros((problem.pairs.rows.size, 1))
        best = problem.margins(cost).best_intercept(scores, np.zeros(1))
        return objective(problem, cost, nothing, best[0])

    below, above = useful_cost(problem, 0.99), useful_cost(problem, 1.2)
    assert reference(problem, below) == pytest.approx(without_maps(below), rel=1e-7)
    assert reference(problem, above) < without_maps(above) * (1 - 1e-5)


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
    problem = make_problem(loss)
    low, high = (useful_cost(problem, multiple) for multiple in (3, 30))
    start = learn(solver, problem, low)
    warm = learn(solver, problem, high, start=start)
    cold = learn(solver, problem, high)
    assert warm.objective[0] == pytest.approx(cold.objective[0], rel=1e-3)


@EVERY_SOLVER
def test_a_callback_stops_the_solver(make_problem, solver):
    problem = make_problem()
    seen = []

    def stop_after_two(solution):
        seen.append(solution.n_iter)
        return len(seen) == 2

    _, solution = solve(solver, problem, useful_cost(problem, 10), None, 1e-9, 100, stop_after_two)
    # The method with supports goes on from a point that the other has told of.
    assert seen[0] == 0
    assert len(seen) == 2
    assert solution.n_iter == 1


@pytest.fixture
def rounds(monkeypatch):
    """Count the maps of each round, of which there are several."""
    monkeypatch.setattr(barrier, "_FEWEST_ADDED", 20)
    sizes = []
    original = barrier._follow

    def counted(problem, *arguments):
        sizes.append(int(problem.operator.is_map.sum()))
        return original(problem, *arguments)

    monkeypatch.setattr(barrier, "_follow", counted)
    return sizes


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multiple", MULTIPLES)
def test_long_chains_are_solved_from_some_of_their_maps(make_problem, rounds, n_classes, multiple):
    problem = make_problem(n_classes=n_classes, n_rows=150, n_maps=400)
    cost = useful_cost(problem, multiple)
    solution = learn("matrix-free", problem, cost)
    expected = learn("dense", problem, cost)
    assert solution.relative_gap <= 1e-4
    assert solution.objective[0] == pytest.approx(expected.objective[0], rel=2e-4)
    assert len(rounds) > 1
    assert max(rounds) < problem.operator.is_map.sum()
    again = learn("matrix-free", problem, 1.3 * cost, start=solution)
    expected = learn("dense", problem, 1.3 * cost)
    assert again.objective[0] == pytest.approx(expected.objective[0], rel=2e-4)


def test_where_rounds_do_not_suffice_all_maps_are_used(make_problem, rounds, monkeypatch):
    monkeypatch.setattr(barrier, "_ROUNDS", 1)
    monkeypatch.setattr(barrier, "_FIRST_GOAL", 0.5)
    problem = make_problem(n_rows=150, n_maps=400)
    solution = learn("matrix-free", problem, useful_cost(problem, 10.0))
    assert rounds[-1] == problem.operator.is_map.sum()
    assert solution.relative_gap <= 1e-4


def test_a_callback_stops_the_rounds(make_problem, rounds):
    problem = make_problem(n_rows=150, n_maps=400)
    cost = useful_cost(problem, 10)
    solution, _ = solve("matrix-free", problem, cost, None, 1e-9, 100, lambda s: s.n_iter >= 3)
    assert solution.n_iter == 3
    assert np.isfinite(solution.gap).all()
    assert (solution.weights >= 0).all()


def test_few_pairs_are_a_part_of_the_rows(make_data, make_operator, labelled):
    X, y = make_data(300, 3, 3)
    rows = labelled(make_operator(X), y, 3)
    signs = initial_signs(rows.operator, class_shares(rows), "balanced")
    problem = KernelProblem.of(rows, signs, "squared_hinge", 2, 90)
    assert problem.pairs.rows.size == 90
    assert problem.operator.dense().shape[0] == 90

"""Step 2 against liblinear, libsvm and scikit-learn's logistic regression."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from mbkl.learn.classifier_weights import one_vs_rest_labels
from mbkl.solvers.losses import exact_loss, smoothing_path
from mbkl.solvers.margins import Margins
from mbkl.solvers.dense_interior_point import DenseProblem, solve_densely
from mbkl.solvers.newton_cg import Solution, minimise

LOSSES = ["squared_hinge", "hinge", "logistic"]
COSTS = [0.03, 1.0, 30.0]
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES)
EVERY_COST = pytest.mark.parametrize("cost", COSTS)
EVERY_SOLVER = pytest.mark.parametrize("solver", ["dense", "matrix-free"])


def learn(solver, operator, labels, costs, theta, loss, start=None, max_iter=100):
    """Solve Step 2 with the solver of that name."""
    path = smoothing_path(loss)
    penalty = 2.0 / np.where(operator.is_map, theta, 1.0)
    if solver == "dense":
        return learn_densely(operator, labels, costs, penalty, exact_loss(path[-1]), max_iter)
    # The matrix-free solver approaches the hinge only so far.
    tol = 1e-4 if len(path) == 1 else 1e-3
    jumps, intercept = np.zeros((penalty.size, labels.shape[1])), np.zeros(labels.shape[1])
    if start is not None:
        jumps, intercept = start.jumps, start.intercept
    for stage in path:
        margins = Margins(labels, costs[:, None], stage)
        solution = minimise(operator, margins, penalty, jumps, intercept, tol, max_iter)
        jumps, intercept = solution.jumps, solution.intercept
    return solution


def learn_densely(operator, labels, costs, penalty, loss, max_iter):
    parts = []
    for column in range(labels.shape[1]):
        margins = Margins(labels[:, [column]], costs[:, None], loss)
        problem = DenseProblem(operator.dense(), margins, penalty)
        parts.append(solve_densely(problem, 1e-4, max_iter))
    return Solution(
        np.column_stack([part.theta for part in parts]),
        np.concatenate([part.intercept for part in parts]),
        np.array([part.objective for part in parts]),
        np.array([part.gap for part in parts]),
    )


@pytest.fixture(scope="module")
def make_problem(make_data, make_operator):
    """Return a function that gives an operator, labels, costs of rows and theta."""

    def make(n_classes=2, n_rows=70, n_maps=40, seed=0):
        X, y = make_data(n_rows, 3, n_classes, seed)
        operator = make_operator(X, n_maps, seed)
        generator = np.random.default_rng(seed)
        theta = generator.random(operator.n_columns) * operator.is_map
        theta /= theta.sum()
        weights = generator.random(n_rows) + 0.5
        return operator, one_vs_rest_labels(y, n_classes), weights, theta

    return make


def features_of(operator, theta):
    """Return the features whose usual SVM is the one of Step 2."""
    return (operator.dense() * np.sqrt(theta / 2))[:, operator.is_map]


def objective(features, labels, costs, loss, weights, intercept):
    margins = labels * (features @ weights + intercept)
    losses = exact_loss(smoothing_path(loss)[-1]).value(margins)
    return weights @ weights / 2 + (costs * losses).sum()


def library_model(loss):
    if loss == "squared_hinge":
        return LinearSVC(dual=False, intercept_scaling=1e3, tol=1e-9, max_iter=100_000)
    if loss == "hinge":
        return SVC(kernel="linear", tol=1e-7)
    return LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1000)


def library_objective(features, labels, costs, loss):
    model = library_model(loss).fit(features, labels, sample_weight=costs)
    return objective(features, labels, costs, loss, model.coef_[0], model.intercept_[0])


@EVERY_SOLVER
@EVERY_LOSS
@EVERY_COST
@pytest.mark.parametrize("n_classes", [2, 3])
def test_objective_is_that_of_the_libraries(make_problem, solver, loss, cost, n_classes):
    operator, labels, weights, theta = make_problem(n_classes)
    solution = learn(solver, operator, labels, cost * weights, theta, loss)
    features = features_of(operator, theta)
    is_jump = operator.is_map
    for column in range(labels.shape[1]):
        target = labels[:, column]
        jumps = solution.jumps[is_jump, column] / np.sqrt(theta[is_jump] / 2)
        ours = objective(features, target, cost * weights, loss, jumps, solution.intercept[column])
        theirs = library_objective(features, target, cost * weights, loss)
        assert ours == pytest.approx(theirs, rel=1e-3)
        assert solution.objective[column] == pytest.approx(ours, rel=1e-9)


@EVERY_SOLVER
@pytest.mark.parametrize("cost", [0.03, 1.0])
def test_hinge_objective_is_that_of_liblinear(make_problem, solver, cost):
    operator, labels, weights, theta = make_problem()
    features = features_of(operator, theta)
    liblinear = LinearSVC(loss="hinge", intercept_scaling=10, tol=1e-6, max_iter=300_000)
    liblinear.fit(features, labels[:, 0], sample_weight=cost * weights)
    theirs = objective(
        features, labels[:, 0], cost * weights, "hinge", liblinear.coef_[0], liblinear.intercept_[0]
    )
    solution = learn(solver, operator, labels, cost * weights, theta, "hinge")
    assert solution.objective[0] == pytest.approx(theirs, rel=1e-3)


@EVERY_COST
def test_the_problem_is_that_of_maps_and_their_complements(make_problem, cost):
    operator, labels, weights, theta = make_problem()
    is_jump = operator.is_map
    right = (operator.dense()[:, is_jump] > 0) * np.sqrt(theta[is_jump])
    left = (operator.dense()[:, is_jump] < 0) * np.sqrt(theta[is_jump])
    theirs = library_objective(np.hstack([right, left]), labels[:, 0], cost * weights, "hinge")
    solution = learn("dense", operator, labels, cost * weights, theta, "hinge")
    assert solution.objective[0] == pytest.approx(theirs, rel=1e-3)


@EVERY_SOLVER
@EVERY_LOSS
@EVERY_COST
def test_the_duality_gap_bounds_the_distance_to_the_optimum(make_problem, solver, loss, cost):
    operator, labels, weights, theta = make_problem()
    optimum = library_objective(features_of(operator, theta), labels[:, 0], cost * weights, loss)
    for max_iter in (1, 3, 100):
        solution = learn(solver, operator, labels, cost * weights, theta, loss, max_iter=max_iter)
        assert solution.objective[0] - solution.gap[0] <= optimum * (1 + 1e-6)
        assert optimum * (1 - 1e-5) <= solution.objective[0]
    assert solution.relative_gap <= 1e-3


@EVERY_LOSS
def test_classes_in_lock_step_are_solved_as_if_alone(make_problem, loss):
    operator, labels, weights, theta = make_problem(4)
    together = learn("matrix-free", operator, labels, weights, theta, loss)
    for column in range(4):
        alone = learn("matrix-free", operator, labels[:, [column]], weights, theta, loss)
        assert together.objective[column] == pytest.approx(alone.objective[0], rel=1e-3)


@EVERY_SOLVER
@EVERY_LOSS
def test_a_start_from_another_cost_leads_to_the_same_objective(make_problem, solver, loss):
    operator, labels, weights, theta = make_problem(3)
    start = learn(solver, operator, labels, weights, theta, loss)
    warm = learn(solver, operator, labels, 10 * weights, theta, loss, start=start)
    cold = learn(solver, operator, labels, 10 * weights, theta, loss)
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-3)


@EVERY_SOLVER
def test_cells_without_a_map_have_no_jump(make_problem, solver):
    operator, labels, weights, theta = make_problem(3)
    solution = learn(solver, operator, labels, weights, theta, "squared_hinge")
    assert not solution.jumps[~operator.is_map].any()


@EVERY_SOLVER
def test_the_intercept_is_free(make_problem, solver):
    operator, _labels, weights, theta = make_problem()
    only_one_left = np.where(np.arange(70) == 1, 1, -1).astype(np.int8)[:, None]
    solution = learn(solver, operator, only_one_left, 1e-6 * weights, theta, "squared_hinge")
    balance = (weights * only_one_left[:, 0]).sum() / weights.sum()
    assert solution.intercept[0] == pytest.approx(balance, abs=1e-4)


def test_labels_of_two_classes_are_one_problem():
    np.testing.assert_array_equal(one_vs_rest_labels(np.array([0, 1, 1]), 2), [[-1], [1], [1]])


def test_labels_of_more_classes_are_one_problem_each():
    labels = one_vs_rest_labels(np.array([0, 2]), 3)
    np.testing.assert_array_equal(labels, [[1, -1, -1], [-1, -1, 1]])

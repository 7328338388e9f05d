"""Step 2 against liblinear, libsvm and scikit-learn's logistic regression."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from mbkl.engine import limits
from mbkl.learn.algorithm import REFERENCE_ROWS, Kernel, Learner, Settings
from mbkl.learn.classifier_weights import one_vs_rest_labels
from mbkl.learn.progress import Progress
from mbkl.solvers.problem import LOSSES

COSTS = [0.03, 1.0, 30.0]
EVERY_LOSS = pytest.mark.parametrize("loss", list(LOSSES))
EVERY_COST = pytest.mark.parametrize("cost", COSTS)
# Sizes that lead seventy rows to each solver.
SOLVERS = {
    "kernel matrix": {"FEW_ROWS_GRAM": 70, "FEW_ROWS_HINGE": 70},
    "matrix-free": {"FEW_ROWS_GRAM": 69, "FEW_ROWS_HINGE": 0},
}


@pytest.fixture(params=SOLVERS)
def solver(request, monkeypatch):
    """The solvers in turn."""
    for name, value in SOLVERS[request.param].items():
        monkeypatch.setattr(limits, name, value)
    return request.param


@pytest.fixture
def matrix_free(monkeypatch):
    """Let few rows have the solver of many."""
    for name, value in SOLVERS["matrix-free"].items():
        monkeypatch.setattr(limits, name, value)


def learn(rows, theta, cost, loss, start=None, max_iter=100):
    """Solve Step 2 with that cost for a row of weight one."""
    # The matrix-free solver approaches the hinge only so far.
    tol = 1e-3 if loss == "hinge" else 1e-4
    own = {"loss": loss, "tol": tol, "max_iter": max_iter, "seed": 0}
    settings = Settings("ones", 0.0, "balanced", 0.5, negatives_per_positive=2, max_pairs=2, **own)
    learner = Learner(rows, theta, settings, Progress(SimpleNamespace(verbose=0)))
    C = cost * rows.weights.sum() / REFERENCE_ROWS
    return learner.learn_classifier(Kernel(theta), C, start)


@pytest.fixture(scope="module")
def make_problem(make_data, make_operator, labelled):
    """Return a function that gives labelled rows and theta."""

    def make(n_classes=2, n_rows=70, n_maps=40, seed=0):
        X, y = make_data(n_rows, 3, n_classes, seed)
        operator = make_operator(X, n_maps, seed)
        generator = np.random.default_rng(seed)
        theta = generator.random(operator.n_columns) * operator.is_map
        theta /= theta.sum()
        weights = generator.random(n_rows) + 0.5
        return labelled(operator, y, n_classes, weights), theta

    return make


def features_of(operator, theta):
    """Return the features whose usual SVM is the one of Step 2."""
    return (operator.dense() * np.sqrt(theta / 2))[:, operator.is_map]


def objective(features, labels, costs, loss, weights, intercept):
    margins = labels * (features @ weights + intercept)
    return weights @ weights / 2 + (costs * LOSSES[loss].value(margins)).sum()


def library_model(loss):
    if loss == "squared_hinge":
        return LinearSVC(dual=False, intercept_scaling=1e3, tol=1e-9, max_iter=100_000)
    if loss == "hinge":
        return SVC(kernel="linear", tol=1e-7)
    return LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1000)


def library_objective(features, labels, costs, loss):
    model = library_model(loss).fit(features, labels, sample_weight=costs)
    return objective(features, labels, costs, loss, model.coef_[0], model.intercept_[0])


@EVERY_LOSS
@EVERY_COST
@pytest.mark.parametrize("n_classes", [2, 3])
def test_objective_is_that_of_the_libraries(make_problem, solver, loss, cost, n_classes):
    rows, theta = make_problem(n_classes)
    solution = learn(rows, theta, cost, loss)
    features, costs = features_of(rows.operator, theta), cost * rows.weights
    is_jump = rows.operator.is_map
    for column, target in enumerate(one_vs_rest_labels(rows.y, n_classes).T):
        weights = solution.weights[is_jump, column] / np.sqrt(theta[is_jump] / 2)
        ours = objective(features, target, costs, loss, weights, solution.intercept[column])
        theirs = library_objective(features, target, costs, loss)
        assert ours == pytest.approx(theirs, rel=1e-3)
        assert solution.objective[column] == pytest.approx(ours, rel=1e-9)


@pytest.mark.parametrize("cost", [0.03, 1.0])
def test_hinge_objective_is_that_of_liblinear(make_problem, solver, cost):
    rows, theta = make_problem()
    features, costs = features_of(rows.operator, theta), cost * rows.weights
    labels = one_vs_rest_labels(rows.y, 2)[:, 0]
    liblinear = LinearSVC(loss="hinge", intercept_scaling=10, tol=1e-6, max_iter=300_000)
    liblinear.fit(features, labels, sample_weight=costs)
    theirs = objective(
        features, labels, costs, "hinge", liblinear.coef_[0], liblinear.intercept_[0]
    )
    assert learn(rows, theta, cost, "hinge").objective[0] == pytest.approx(theirs, rel=1e-3)


@EVERY_COST
def test_the_problem_is_that_of_maps_and_their_complements(make_problem, cost):
    rows, theta = make_problem()
    is_jump = rows.operator.is_map
    maps = rows.operator.dense()[:, is_jump]
    right, left = (maps > 0) * np.sqrt(theta[is_jump]), (maps < 0) * np.sqrt(theta[is_jump])
    labels = one_vs_rest_labels(rows.y, 2)[:, 0]
    theirs = library_objective(np.hstack([right, left]), labels, cost * rows.weights, "hinge")
    assert learn(rows, theta, cost, "hinge").objective[0] == pytest.approx(theirs, rel=1e-3)


@EVERY_COST
def test_the_kernel_matrix_leads_to_the_same_objective(make_problem, monkeypatch, cost):
    rows, theta = make_problem(3, n_maps=200)
    assert rows.n_rows < rows.operator.n_columns
    through_the_matrix = learn(rows, theta, cost, "squared_hinge")
    for name, value in SOLVERS["matrix-free"].items():
        monkeypatch.setattr(limits, name, value)
    by_passes = learn(rows, theta, cost, "squared_hinge")
    np.testing.assert_allclose(through_the_matrix.objective, by_passes.objective, rtol=2e-4)


@EVERY_LOSS
@EVERY_COST
def test_the_duality_gap_bounds_the_distance_to_the_optimum(make_problem, solver, loss, cost):
    rows, theta = make_problem()
    labels = one_vs_rest_labels(rows.y, 2)[:, 0]
    features = features_of(rows.operator, theta)
    optimum = library_objective(features, labels, cost * rows.weights, loss)
    for max_iter in (1, 3, 100):
        solution = learn(rows, theta, cost, loss, max_iter=max_iter)
        assert solution.objective[0] - solution.gap[0] <= optimum * (1 + 1e-6)
        assert optimum * (1 - 1e-5) <= solution.objective[0]
    assert solution.relative_gap <= 1e-3


@EVERY_LOSS
def test_classes_in_lock_step_are_solved_as_if_alone(make_problem, matrix_free, labelled, loss):
    rows, theta = make_problem(4)
    together = learn(rows, theta, 1.0, loss)
    for label in range(4):
        one = labelled(rows.operator, (rows.y == label).astype(int), 2, rows.weights)
        alone = learn(one, theta, 1.0, loss)
        assert together.objective[label] == pytest.approx(alone.objective[0], rel=1e-3)


@EVERY_LOSS
def test_a_start_from_another_cost_leads_to_the_same_objective(make_problem, solver, loss):
    rows, theta = make_problem(3)
    start = learn(rows, theta, 1.0, loss)
    warm = learn(rows, theta, 10.0, loss, start=start)
    cold = learn(rows, theta, 10.0, loss)
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-3)


def test_cells_without_a_map_have_no_weight(make_problem, solver):
    rows, theta = make_problem(3)
    solution = learn(rows, theta, 1.0, "squared_hinge")
    assert not solution.weights[~rows.operator.is_map].any()


def test_maps_without_a_kernel_weight_are_left_out(make_problem, solver):
    rows, theta = make_problem(3)
    theta[::2] = 0.0
    start = learn(rows, theta, 0.1, "squared_hinge")
    solution = learn(rows, theta, 1.0, "squared_hinge", start=start)
    assert solution.weights.shape == (theta.size, 3)
    assert not solution.weights[theta == 0].any()
    assert (solution.weights[theta > 0] != 0).any(axis=1).all()


@EVERY_LOSS
def test_no_map_at_all_is_an_intercept(make_problem, loss):
    rows, theta = make_problem(3)
    solution = learn(rows, np.zeros_like(theta), 1.0, loss)
    assert not solution.weights.any()
    costs = rows.weights
    for column, target in enumerate(one_vs_rest_labels(rows.y, 3).T):
        values = [
            (costs * LOSSES[loss].value(target * (solution.intercept[column] + shift))).sum()
            for shift in (0.0, 0.01, -0.01)
        ]
        assert solution.objective[column] == pytest.approx(values[0])
        assert values[0] <= min(values) + 1e-9


def test_the_intercept_is_free(make_problem, solver, labelled):
    rows, theta = make_problem()
    is_single = np.arange(70) == 1
    single = labelled(rows.operator, is_single.astype(int), 2, rows.weights)
    solution = learn(single, theta, 1e-6, "squared_hinge")
    balance = (rows.weights * np.where(is_single, 1, -1)).sum() / rows.weights.sum()
    assert solution.intercept[0] == pytest.approx(balance, abs=1e-4)


def test_labels_of_two_classes_are_one_problem():
    np.testing.assert_array_equal(one_vs_rest_labels(np.array([0, 1, 1]), 2), [[-1], [1], [1]])


def test_labels_of_more_classes_are_one_problem_each():
    labels = one_vs_rest_labels(np.array([0, 2]), 3)
    np.testing.assert_array_equal(labels, [[1, -1, -1], [-1, -1, 1]])

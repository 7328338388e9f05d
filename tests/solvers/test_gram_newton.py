"""Newton's method through the kernel matrix, against the solvers that see the maps."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from mbkl.engine import limits
from mbkl.engine.rows import ArrayRows
from mbkl.learn.classifier_weights import one_vs_rest_labels
from mbkl.maps import Ferns, Stumps
from mbkl.maps.families import Plan, Targets, draw_all
from mbkl.solvers import gram_newton, newton_cg
from mbkl.solvers.primal_dual import DenseMaps
from mbkl.solvers.problem import Margins, Problem, Solution, SquaredHinge

COSTS = [0.03, 1.0, 30.0]
EVERY_COST = pytest.mark.parametrize("cost", COSTS)


NOTHING = Solution.nothing((0, 0))


def columns_of(solution):
    """Return the solution of each column."""
    return [
        Solution(
            solution.weights[:, [column]],
            solution.intercept[column],
            solution.objective[column],
            solution.gap[column],
            solution.n_iter,
            solution.supports[:, [column]],
        )
        for column in range(solution.intercept.size)
    ]


def solve_matrix(gram, margins, tol):
    """Solve a problem of one column that is given by its kernel matrix alone."""
    problem = Problem(DenseMaps(np.zeros((len(gram), 1))), margins, np.ones(1), lambda: gram)
    return columns_of(gram_newton.minimise(problem, None, tol, 100))[0]


class Example:
    """A kernel matrix with labels, and the maps it comes from."""

    def __init__(self, X, y, n_classes, loops):
        plans = [Plan(Stumps(), 80), Plan(Ferns(depth=3), 80)]
        targets = Targets(y, n_classes, np.ones(len(X)))
        _, self.operator, _ = draw_all(plans, ArrayRows(X, loops), targets, 0)
        generator = np.random.default_rng(0)
        kernel_weights = generator.random(self.operator.n_slots) + 0.2
        kernel_weights /= kernel_weights[self.operator.is_map].sum()
        self.gram = self.operator.gram(kernel_weights)
        self.penalty = self.operator.penalty(kernel_weights)
        self.labels = one_vs_rest_labels(y, n_classes)
        self.weights = generator.random(len(X)) + 0.5

    def margins(self, cost):
        return Margins(self.labels, cost * self.weights[:, None], SquaredHinge())

    def problem(self, cost):
        margins = self.margins(cost)
        return Problem(self.operator, margins, self.penalty, lambda: self.gram)

    def solve(self, cost, start=None, tol=1e-4, max_iter=100):
        """Return the solution of each column."""
        start = None if start is None else replace(NOTHING, supports=start)
        return columns_of(gram_newton.minimise(self.problem(cost), start, tol, max_iter))

    def objective(self, cost, solution, column):
        scores = self.gram @ solution.supports[:, 0]
        margins = self.labels[:, column] * (scores + solution.intercept)
        losses = cost * self.weights * np.maximum(0.0, 1.0 - margins) ** 2
        return 0.5 * solution.supports[:, 0] @ scores + losses.sum()


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def problem(request, make_data, loops):
    X, y = make_data(90, 3, request.param)
    return Example(X, y, request.param, loops)


@EVERY_COST
def test_the_objective_is_that_of_the_map_solver(problem, cost):
    expected = newton_cg.minimise(problem.problem(cost), None, 1e-5, 100)
    solutions = problem.solve(cost)
    assert len(solutions) == problem.labels.shape[1]
    for column, solution in enumerate(solutions):
        assert solution.objective == pytest.approx(expected.objective[column], rel=1e-3)
        # The weights of the maps give the scores of the kernel matrix.
        scores = problem.operator.forward(solution.weights)
        np.testing.assert_allclose(scores, problem.gram @ solution.supports, atol=1e-8)


@EVERY_COST
def test_the_objective_is_that_of_liblinear(problem, cost):
    features = problem.operator.dense() / np.sqrt(problem.penalty)
    for column, solution in enumerate(problem.solve(cost)):
        labels = problem.labels[:, column]
        # A large constant feature makes the penalty of the intercept small.
        model = LinearSVC(C=cost, dual=False, tol=1e-7, max_iter=10_000, intercept_scaling=30.0)
        model.fit(features, labels, sample_weight=problem.weights)
        margins = labels * (features @ model.coef_[0] + model.intercept_[0])
        losses = cost * problem.weights * np.maximum(0.0, 1.0 - margins) ** 2
        expected = 0.5 * model.coef_[0] @ model.coef_[0] + losses.sum()
        assert solution.objective == pytest.approx(expected, rel=1e-3)


@EVERY_COST
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_the_gap_bounds_the_distance_to_the_optimum(problem, cost, tol):
    best = problem.solve(cost, tol=1e-9)
    for column, solution in enumerate(problem.solve(cost, tol=tol)):
        assert solution.gap <= tol * solution.objective
        assert solution.objective == pytest.approx(
            problem.objective(cost, solution, column), rel=1e-9
        )
        assert solution.objective - solution.gap <= best[column].objective * (1 + 1e-9)
        assert solution.objective >= best[column].objective * (1 - 1e-9)


def test_coefficients_are_those_of_an_optimum(problem):
    """They are the derivatives of the losses, and sum to zero."""
    for column, solution in enumerate(problem.solve(1.0, tol=1e-9)):
        scores = problem.gram @ solution.supports[:, 0] + solution.intercept
        labels = problem.labels[:, column]
        support = 2.0 * problem.weights * np.maximum(0.0, 1.0 - labels * scores)
        np.testing.assert_allclose(solution.supports[:, 0], labels * support, atol=1e-6)
        assert solution.supports.sum() == pytest.approx(0.0, abs=1e-8)


# --- Starting and stopping ---


def test_a_solution_is_a_start_that_needs_no_step(problem):
    solutions = problem.solve(1.0, tol=1e-6)
    start = np.column_stack([solution.supports for solution in solutions])
    for before, after in zip(solutions, problem.solve(1.0, start, tol=1e-5), strict=True):
        np.testing.assert_array_equal(after.supports, before.supports)
        assert after.n_iter <= 1


def test_a_start_from_another_cost_gives_the_same_optimum(problem):
    near = problem.solve(1.2, tol=1e-6)
    start = np.column_stack([solution.supports for solution in near])
    unchanged = start.copy()
    cold, warm = problem.solve(1.0, tol=1e-6), problem.solve(1.0, start, tol=1e-6)
    for left, right in zip(cold, warm, strict=True):
        assert left.objective == pytest.approx(right.objective, rel=1e-5)
    np.testing.assert_array_equal(start, unchanged)


def test_a_bad_start_is_no_trouble(problem):
    start = 1e3 * np.random.default_rng(0).normal(size=problem.labels.shape)
    for cold, far in zip(problem.solve(1.0), problem.solve(1.0, start), strict=True):
        assert far.objective == pytest.approx(cold.objective, rel=1e-3)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_the_limit_of_iterations_is_kept(problem, max_iter):
    start = np.zeros(problem.labels.shape)
    for column, solution in enumerate(problem.solve(30.0, start, 1e-14, max_iter)):
        assert solution.n_iter <= max_iter
        # Stopped early, the gap still tells how far it is.
        assert solution.objective == pytest.approx(problem.objective(30.0, solution, column))
        assert solution.gap >= 0


def test_inputs_are_not_changed(problem):
    gram, labels = problem.gram.copy(), problem.labels.copy()
    problem.solve(1.0)
    np.testing.assert_array_equal(problem.gram, gram)
    np.testing.assert_array_equal(problem.labels, labels)


# --- Extreme costs and matrices ---


@pytest.mark.parametrize("cost", [1e-12, 1e-6, 1e4, 1e8, 1e12])
def test_tiny_and_huge_costs(problem, cost):
    for column, solution in enumerate(problem.solve(cost, tol=1e-3)):
        assert np.isfinite(solution.supports).all()
        assert np.isfinite(solution.intercept)
        nothing = problem.margins(cost).columns(np.array([column]))
        scores = np.zeros((len(problem.gram), 1))
        constant = nothing.value(scores + nothing.best_intercept(scores, np.zeros(1)))[0]
        assert solution.objective <= constant * (1 + 1e-9)
        if cost <= 1e4:
            assert solution.gap <= 1e-3 * solution.objective


def test_a_tiny_cost_leaves_the_intercept(problem):
    for column, solution in enumerate(problem.solve(1e-9)):
        labels, weights = problem.labels[:, column], problem.weights
        assert np.abs(problem.gram @ solution.supports).max() < 1e-5
        # The squared hinge, all rows inside the margin, has the mean label as optimum.
        assert solution.intercept == pytest.approx(np.average(labels, weights=weights), abs=1e-4)


@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e3, 1e9])
def test_a_repeated_row_is_a_heavier_one(make_data, loops, cost):
    X, y = make_data(50, 3)
    problem = Example(X, y, 2, loops)
    times = np.random.default_rng(1).integers(1, 4, size=50)
    rows = np.repeat(np.arange(50), times)
    heavy = Margins(problem.labels, cost * times[:, None].astype(float), SquaredHinge())
    repeated = Margins(problem.labels[rows], np.full((rows.size, 1), cost), SquaredHinge())
    left = solve_matrix(problem.gram, heavy, 1e-5)
    right = solve_matrix(problem.gram[np.ix_(rows, rows)], repeated, 1e-5)
    assert left.objective == pytest.approx(right.objective, rel=1e-3)


@pytest.mark.parametrize("cost", [1.0, 1e6, 1e12])
def test_equal_rows_of_different_classes(cost):
    """Rows that nothing parts: the best is to say nothing of them."""
    generator = np.random.default_rng(0)
    Z = np.repeat(generator.choice([-1.0, 1.0], size=(20, 60)), 10, axis=0)
    labels = np.where(np.arange(200) % 2, 1, -1)[:, None].astype(np.int8)
    margins = Margins(labels, np.full((200, 1), cost), SquaredHinge())
    solution = solve_matrix(Z @ Z.T / 60, margins, 1e-3)
    assert solution.objective == pytest.approx(200 * cost, rel=1e-3)
    assert np.abs(Z @ Z.T @ solution.supports / 60 + solution.intercept).max() < 0.1


@pytest.mark.parametrize("n_rows", [700, 100])
def test_the_first_rows_of_one_class_are_no_trouble(loops, n_rows):
    """The start looks at a part of the rows only, and that may hold one class."""
    X = np.random.default_rng(0).normal(size=(n_rows, 3))
    X = X[np.argsort(X[:, 0])]
    problem = Example(X, (X[:, 0] > 0).astype(int), 2, loops)
    (solution,) = problem.solve(1.0)
    assert solution.gap <= 1e-4 * solution.objective


def test_a_matrix_of_zeros_leaves_the_intercept():
    labels = np.array([[1], [1], [-1]], dtype=np.int8)
    margins = Margins(labels, np.ones((3, 1)), SquaredHinge())
    solution = solve_matrix(np.zeros((3, 3)), margins, 1e-6)
    assert solution.intercept == pytest.approx(1 / 3)


# --- Threads ---


def with_threads(example, n_threads):
    """Return the problem of an example whose operator allows so many threads."""
    operator = SimpleNamespace(adjoint=example.operator.adjoint, n_threads=n_threads)
    return replace(example.problem(10.0), operator=operator)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch, make_data, loops):
    monkeypatch.setattr(limits, "WORTH_THREADS", 1)
    X, y = make_data(120, 3, 4)
    example = Example(X, y, 4, loops)
    expected = gram_newton.minimise(with_threads(example, 1), None, 1e-4, 100)
    for n_threads in (2, 3, 8):
        found = gram_newton.minimise(with_threads(example, n_threads), None, 1e-4, 100)
        assert found.n_iter == expected.n_iter
        for name in ("weights", "intercept", "objective", "gap", "supports"):
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


def test_a_callback_stops_all_columns(monkeypatch, make_data, loops):
    monkeypatch.setattr(limits, "WORTH_THREADS", 1)
    X, y = make_data(60, 3, 5)
    example = Example(X, y, 5, loops)
    for n_threads in (1, 2):
        calls = []

        def stop(solution, calls=calls):
            calls.append(solution.relative_gap)
            return True

        solution = gram_newton.minimise(with_threads(example, n_threads), None, 1e-9, 50, stop)
        assert len(calls) == 5
        assert solution.n_iter == 0
        assert np.isfinite([solution.objective, solution.gap]).all()


@EVERY_COST
@pytest.mark.parametrize("n_samples", [1, 3])
def test_rows_left_out_are_scored_as_by_the_others(cost, n_samples):
    """Against a fit without one of the samples that each row stands for."""
    generator = np.random.default_rng(0)
    points, labels = generator.normal(size=(30, 2)), generator.choice([-1.0, 1.0], size=(30, 1))
    gram = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
    margins = Margins(labels, np.full((30, 1), cost * n_samples), SquaredHinge())
    operator = DenseMaps(np.linalg.cholesky(gram + 1e-10 * np.eye(30)))
    whole = Problem(operator, margins, np.ones(30), lambda: gram)
    counts = np.full(30, float(n_samples))
    left_out = replace(whole, copies=lambda: counts)
    found = gram_newton.minimise(left_out, None, 1e-10, 100).left_out[:, 0]
    expected = np.empty(30)
    for row in range(30):
        costs = margins.costs.copy()
        costs[row] -= cost * (1 - 1e-6)
        without = replace(whole, margins=replace(margins, costs=costs))
        solution = gram_newton.minimise(without, None, 1e-10, 100)
        expected[row] = gram[row] @ solution.supports[:, 0] + solution.intercept[0]
    # Where the others stay on their sides of the margin the two are equal.
    assert np.median(np.abs(found - expected)) < 2e-3
    assert np.corrcoef(found, expected)[0, 1] > 0.97

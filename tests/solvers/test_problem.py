"""The contract of the solvers: what a problem and a solution promise."""

import inspect

import numpy as np
import pytest

from mbkl.engine import limits
from mbkl.solvers.choose import SOLVERS, solve
from mbkl.solvers.problem import LOSSES, Margins, Problem, SharedProgress, Solution, joined

EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES)


def solution_of(objective, gap, n_iter=0):
    objective, gap = np.array(objective), np.array(gap)
    return Solution(np.zeros((2, gap.size)), 0.0 * gap, objective, gap, n_iter)


@pytest.mark.parametrize(
    ("objective", "gap", "expected"),
    [
        ([4.0, 2.0], [1.0, 1.0], 0.5),
        ([4.0, 0.0], [1.0, 0.0], 0.25),
        ([0.0], [0.0], 0.0),
        ([0.0], [1.0], np.inf),
        ([], [], 0.0),
    ],
)
def test_the_relative_gap_is_that_of_the_worst_column(objective, gap, expected):
    assert solution_of(objective, gap).relative_gap == expected


@pytest.mark.parametrize("minimise", SOLVERS, ids=lambda minimise: minimise.__module__)
def test_solvers_take_what_the_contract_says_and_no_more(minimise):
    assert inspect.signature(minimise) == inspect.signature(solve)


def test_columns_are_within_a_tolerance_each():
    solution = solution_of([4.0, 0.0, 1.0], [1.0, 0.0, 0.1])
    assert solution.is_within(0.2).tolist() == [False, True, True]


def test_what_rows_have_does_not_come_along():
    solution = solution_of([1.0], [0.0])
    solution.supports, solution.slack = np.ones((5, 1)), np.ones((2, 1))
    assert solution.on_host().supports is None
    np.testing.assert_array_equal(solution.on_host().slack, solution.slack)


def test_joined_columns_count_the_longest_one():
    both = joined([solution_of([1.0], [0.5], 3), solution_of([2.0], [0.0], 7)])
    assert both.n_iter == 7
    assert both.weights.shape == (2, 2)
    assert both.objective.tolist() == [1.0, 2.0]


@pytest.fixture
def make_problem(make_data, make_operator):
    """Return a function that gives problems of Step 2, whose labels may be given."""

    def make(loss, labels=None):
        X, y = make_data(60, 3)
        operator = make_operator(X, 80)
        kernel_weights = np.ones(operator.n_slots) / operator.n_slots
        labels = np.where(y == 1, 1, -1)[:, None] if labels is None else labels
        margins = Margins(labels.astype(np.int8), np.ones((60, 1)), LOSSES[loss])
        gram = operator.gram(kernel_weights)
        return Problem(operator, margins, operator.penalty(kernel_weights), lambda: gram)

    return make


@pytest.fixture(params=["kernel matrix", "conjugate gradients"])
def each_solver(request, monkeypatch):
    """Let one solver of Step 2 after the other be the chosen one."""
    if request.param != "kernel matrix":
        monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 0)
        monkeypatch.setattr(limits, "FEW_ROWS_HINGE", 0)


@EVERY_LOSS
@pytest.mark.filterwarnings("error")
def test_one_label_alone_is_no_trouble(make_problem, each_solver, loss):
    """As in a fold that lacks a class: the objective may be zero."""
    labels = np.column_stack([np.full(60, -1), np.where(np.arange(60) % 2, 1, -1)])
    told = []
    solution = solve(
        make_problem(loss, labels), None, 1e-3, 100, lambda s: told.append(s.relative_gap)
    )
    assert np.isfinite(solution.weights).all()
    assert np.isfinite(solution.objective).all()
    assert not np.isnan(told).any()


@EVERY_LOSS
def test_progress_sees_every_step_and_may_stop(make_problem, each_solver, loss):
    problem, told = make_problem(loss), []
    solution = solve(problem, None, 1e-3, 100, lambda s: told.append(s.n_iter))
    if loss != "hinge":  # counted anew for each loss of a smoothing path
        assert told == list(range(solution.n_iter + 1))
    stopped = solve(problem, None, 1e-12, 100, lambda s: s.n_iter >= 1)
    assert 1 <= stopped.n_iter <= 5


@EVERY_LOSS
def test_the_gap_is_within_the_tolerance(make_problem, each_solver, loss):
    assert solve(make_problem(loss), None, 1e-3, 100).relative_gap <= 1e-3


def test_shared_progress_asks_each_and_ends_all_after_an_error():
    answers = iter([True, False, ValueError("broken")])

    def progress(state):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    tell = SharedProgress(progress)
    assert tell(0)
    assert tell.is_told_to_stop
    assert not tell(1)  # every solver makes one step at least
    with pytest.raises(ValueError, match="broken"):
        tell(2)
    assert tell(3)  # and asks no more
    assert tell.has_failed

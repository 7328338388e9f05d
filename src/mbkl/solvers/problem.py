"""The contract of all solvers.

A solver is a function

    minimise(problem, start, tol, max_iter, progress) -> Solution

that ends when the duality gap of every column is at most tol times its objective, after
max_iter iterations, when no further step helps, or when progress, which is called with the
solution so far before every step and at the end, returns True. A start is the solution of a
similar problem, or None. `mbkl.solvers.choose` picks the solver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import Values, cast, to_host
from mbkl.solvers.losses import positive_part
from mbkl.solvers.margins import Margins

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """What to minimise over weights w and a free intercept b, for each column of labels.

    The objective is price(w) + sum over rows of cost * loss(label * (Z w + b)), for classes; see
    `Margins` for numbers.
    """

    operator: Any  # the matrix Z of all maps on all rows, which need not be formed
    margins: Margins  # labels (or targets), costs and loss of the rows
    # (n_weights,): Step 2: the price is 1/2 sum penalty w^2. None is Step 1, of one column: the
    # price is sum w, and no weight may be negative
    penalty: Values = None
    # Returns Z diag(1 / penalty) Z', for a problem of few rows.
    gram: Callable[[], Array] | None = None
    # Returns so many rows that are as good as random, for a problem of many.
    first_rows: Callable[[int], FirstRows] | None = None
    # Returns how many samples each row stands for. Where it is given, solvers with a kernel
    # matrix tell how the first rows are scored by all others.
    copies: Callable[[], Array] | None = None
    needs_left_out: bool = False  # whether that is what the problem is solved for

    @property
    def n_rows(self) -> int:
        return self.margins.labels.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the weights."""
        return self.operator.n_columns, self.margins.labels.shape[1]

    def columns(self, columns: NDArray[np.intp]) -> Problem:
        """Return the problem of some of the columns."""
        return replace(self, margins=self.margins.columns(columns))

    def assess(
        self, weights: Values, scores: Values, intercept: Values, supports: Values = None
    ) -> tuple[Values, Values, Values]:
        """Return objective, duality gap and gradient of each column.

        The scores are those of the weights, without intercept. Supports are those of a solver that
        has its own, of which the signed ones add up to zero; None takes those of the scores, at
        the best intercept.
        """
        margins = self.margins
        shifted = scores + cast(intercept, scores)
        supports = margins.support(shifted) if supports is None else supports
        pull = self.operator.adjoint(margins.signed(supports))
        # Any supports that are feasible for the dual problem bound the optimum from below.
        if self.penalty is None:
            # They are where no map pulls by more than its price of one: shrunk, they are.
            price, slope = weights.sum(axis=0), 1.0
            dual = margins.dual_value(supports / max(1.0, float(pull.max())))
        else:
            penalty = self.penalty[:, None]
            price, slope = 0.5 * (penalty * weights**2).sum(axis=0), penalty * weights
            dual = margins.dual_value(supports) - 0.5 * (pull**2 / penalty).sum(axis=0)
        objective = price + margins.exact_value(shifted)
        return objective, positive_part(objective - dual), slope - pull


@dataclass(frozen=True)
class FirstRows:
    """Some rows of a problem that are as good as random."""

    operator: Any  # all maps on these rows
    numbers: Any  # which of all rows they are
    gram: Values = None  # (n_rows, n_rows): Z diag(1 / penalty) Z' of these rows
    copies: Callable[[], Array] | None = None  # returns how many samples each of them stands for

    def with_gram(self, kernel_weights: Values) -> FirstRows:
        """Return the same with their kernel matrix."""
        return replace(self, gram=self.operator.gram(kernel_weights))


@dataclass
class Solution:
    """Where a solver stands; a column (or entry) for each column of the problem.

    >>> Solution(np.ones((2, 1)), np.zeros(1), np.array([4.0]), np.array([1.0])).relative_gap
    0.25
    """

    weights: Values  # (n_weights, n_columns)
    # (n_columns,)
    intercept: Values
    objective: Values
    gap: Values
    n_iter: int = 0
    # (n_rows, n_columns): the variables of the dual problem, from a solver that has them
    supports: Values = None
    # (n_weights, n_columns): Step 1: what each map lacks to be worth its price; zero where its
    # weight is not
    slack: Values = None
    # (n_first_rows, n_columns): Step 2: scores of the first rows, each by a model that has not
    # seen it
    left_out: Values = None

    @classmethod
    def nothing(cls, shape: tuple[int, int]) -> Solution:
        """Return no weights at all, to start from."""
        intercept = np.zeros(shape[1])
        return cls(np.zeros(shape), intercept, np.inf + intercept, np.inf + intercept)

    @property
    def relative_gap(self) -> float:
        """The largest duality gap as a share of its objective, which may be zero."""
        gap, objective = to_host(self.gap), to_host(self.objective)
        share = np.where(gap > 0, np.inf, 0.0)
        return float(np.divide(gap, objective, out=share, where=objective > 0).max(initial=0.0))

    @property
    def standing(self) -> str:
        """Where the solver stands, in words."""
        return f"relative gap {self.relative_gap:.1e}"

    def is_within(self, tol: float) -> NDArray[np.bool_]:
        """Say of which columns the gap is small enough."""
        return to_host(self.gap <= tol * self.objective)

    def on_host(self) -> Solution:
        """Return the solution as arrays of NumPy, without what rows have, wherever they are."""
        own: dict[str, Any] = {
            each.name: to_host(getattr(self, each.name)) for each in fields(self)
        }
        return Solution(**{**own, "supports": None})


def joined(solutions: list[Solution]) -> Solution:
    """Put the solutions of single columns side by side."""

    def side_by_side(name: str) -> Values:
        own = [getattr(each, name) for each in solutions]
        return None if own[0] is None else np.concatenate(own, axis=1)

    return Solution(
        np.concatenate([each.weights for each in solutions], axis=1),
        np.concatenate([each.intercept for each in solutions]),
        np.concatenate([each.objective for each in solutions]),
        np.concatenate([each.gap for each in solutions]),
        max(each.n_iter for each in solutions),
        side_by_side("supports"),
        left_out=side_by_side("left_out"),
    )


Progress = Callable[[Solution], bool]
# problem, start, tol, max_iter, progress -> solution
Minimise = Callable[[Problem, Solution | None, float, int, Progress], Solution]


def go_on(solution: Solution) -> bool:
    """Never stop: the progress of a solver that nobody watches."""
    return False

"""Steps 0 and 1: the signs of the maps, and their weights in the kernel.

Alone in an SVM with a free intercept, a map gets the weights (a, -a) on its two sides. Step 0
keeps the sign of a, one per map and class. A fern has a sign in each cell. Most of its cells hold
few rows, of which the sign is little more than chance, so it is shrunk towards zero there. Numbers
are seen as two classes, above and below the mean, of which a row weighs as much as it is away from
it: a map then has the sign of the difference of the means on its two sides.

Step 1 finds the sizes, one theta >= 0 per map for all classes, from pairs of a row and a class. A
pair asks "is row i of class c?" and its maps are signed for class c. Every row gives the pair of
its own class (label +1) and a few of wrong classes (label -1), drawn by a hash of the row's codes,
so that neither the order of the rows nor their division among machines has any influence. With two
classes both questions are one, so each row gives one pair. Of numbers, each row gives a pair for
every target, whose label is the number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.cells import Operator
from mbkl.engine.arrays import (
    Values,
    exact_sum,
    exact_total,
    namespace,
    to_fixed_point,
    to_host,
    total_of,
)
from mbkl.learn.device_pairs import DevicePairs
from mbkl.learn.labelled_rows import LabelledRows, mix, row_hashes
from mbkl.solvers.choose import solve
from mbkl.solvers.problem import LOSSES, Margins, Problem, Progress, Solution, go_on, positive_part

Array = NDArray[np.float64]

# Rows of either class that are added to every cell of a fern.
_PRIOR_ROWS = 2.0


@dataclass(frozen=True)
class Shares:
    """Shares of the classes on the right side of each stump, or in each cell."""

    # (n_columns, n_classes or 1): p / t_p and n / t_n of the paper: of the class, and of all
    # others. Two classes need one column, that of the second class
    own: Values
    rest: Values
    row: Values  # (n_classes or 1,): what one row of the class and one of the others are together


def shares_of(rows: LabelledRows) -> Shares:
    """Return what is on the sides and in the cells of the maps, of classes or numbers."""
    return class_shares(rows) if rows.numbers is None else number_shares(rows)


def number_shares(rows: LabelledRows) -> Shares:
    """Add up how far numbers are above and below their mean, on the sides and in the cells."""
    assert rows.numbers is not None
    operator, place = rows.operator, rows.operator.to_device
    values, weights = place(rows.numbers.of_rows(rows.y)), place(rows.weights)[:, None]
    away = weights * (values - exact_sum(weights * values) / exact_sum(weights))

    def share(side: Values) -> Values:
        integers, unit = to_fixed_point(side)
        total = total_of(integers, unit)
        return operator.mass(integers) * unit / namespace(total).where(total > 0, total, 1.0)

    above, below = share(positive_part(away)), share(positive_part(-away))
    # The usual distance of a row from the mean, as a share of both sides.
    return Shares(above, below, 0.0 * above[0] + 4.0 / max(rows.n_rows, 1))


def class_shares(rows: LabelledRows) -> Shares:
    """Count the classes on the sides and in the cells of the maps."""
    operator, y, n_classes, weights = rows.operator, rows.y, rows.n_classes, rows.weights
    classes = operator.to_device(np.arange(n_classes))
    xp = namespace(classes)
    own_class = operator.to_device(y)[:, None] == classes
    integers, unit = to_fixed_point(xp.where(own_class, operator.to_device(weights)[:, None], 0.0))
    inside = operator.mass(integers) * unit
    totals = total_of(integers, unit)
    columns = slice(1, 2) if n_classes == 2 else slice(None)
    others = totals.sum() - totals[columns]
    rest_inside = inside.sum(axis=1)[:, None] - inside[:, columns]
    # A class without rows, as in some folds, has no share anywhere.
    own_total = xp.where(totals[columns] > 0, totals[columns], 1.0)
    rest_total = xp.where(others > 0, others, 1.0)
    own, rest = inside[:, columns] / own_total, rest_inside / rest_total
    # The weight of a row is that of a usual one: the unit of the weights does not matter.
    usual = exact_total(weights) / max(weights.size, 1)
    return Shares(own, rest, usual / own_total + usual / rest_total)


def initial_signs(operator: Operator, shares: Shares, rule: str) -> Array:
    """Return +1, -1 or 0 (no use) for each map and class; for cells, what is between.

    See `signs_of_stumps` for the rule. Ferns know no such choice.
    """
    xp = namespace(shares.own)
    is_cell = operator.to_device(operator.is_cell)[:, None]
    is_map = operator.to_device(operator.spread(operator.is_map))[:, None]
    signs = xp.where(is_cell, signs_of_cells(shares), signs_of_stumps(shares, rule))
    return xp.where(is_map, signs, 0.0)


def signs_of_stumps(shares: Shares, rule: str) -> Array:
    """Return +1, -1 or 0 for each stump and class.

    "balanced" is the solution of the one-map SVM with class-balanced costs: the
    class goes to the side where its share is larger. "median" is the table of the
    paper with its sign corrected: only maps that have the majority of the class on
    one side and that of the rest on the other.

    >>> own, rest = np.array([[0.9], [0.9]]), np.array([[0.6], [0.2]])
    >>> signs_of_stumps(Shares(own, rest, np.ones(1)), "balanced").ravel()
    array([1., 1.])
    >>> signs_of_stumps(Shares(own, rest, np.ones(1)), "median").ravel()
    array([0., 1.])
    """
    if rule == "median":
        xp = namespace(shares.own)
        return xp.where(shares.own >= 0.5, 1.0, 0.0) - xp.where(shares.rest >= 0.5, 1.0, 0.0)
    difference = shares.own - shares.rest
    # Shares are ratios of rounded sums: a difference of a few units in the
    # last place is a tie.
    xp = namespace(difference)
    return xp.where(abs(difference) > 1e-12, xp.sign(difference), 0.0)


def signs_of_cells(shares: Shares) -> Array:
    """Return the difference of the shares of each cell and class by their sum.

    It is near the sign of the difference in a cell of many rows most of which are on
    one side, and near zero in a cell of few.

    >>> own, rest = np.array([[0.001], [0.9]]), np.array([[0.0], [0.0]])
    >>> signs_of_cells(Shares(own, rest, np.array([0.002]))).ravel().round(2)
    array([0.2, 1. ])
    """
    difference = shares.own - shares.rest
    return difference / (shares.own + shares.rest + _PRIOR_ROWS * shares.row)


# ------------------------------------------------------------- pairs


@dataclass(frozen=True)
class Pairs:
    """Pairs sorted by class."""

    # (n_pairs,)
    rows: NDArray[np.intp]
    classes: NDArray[np.intp]
    # (n_pairs,): +1 where the class is the row's own, else -1; or numbers
    labels: NDArray[np.int8] | Array
    weights: Array  # (n_pairs,)


def n_wrong_classes(n_classes: int, negatives_per_positive: int) -> int:
    """Return how many wrong classes a row is paired with."""
    return 0 if n_classes == 2 else min(negatives_per_positive, n_classes - 1)


def pairs_of_a_row(rows: LabelledRows, negatives_per_positive: int) -> int:
    """Return how many pairs each row gives."""
    if rows.numbers is not None:
        return rows.numbers.n_columns
    return 1 + n_wrong_classes(rows.n_classes, negatives_per_positive)


def pairs_of(rows: LabelledRows, negatives_per_positive: int) -> Pairs:
    """Return the pairs of all rows, each with its own class and at most so many others."""
    y, every_row = rows.y, np.arange(rows.y.size)
    if rows.numbers is not None:
        n_columns = rows.numbers.n_columns
        own, columns = np.tile(every_row, n_columns), np.repeat(np.arange(n_columns), y.size)
        return Pairs(own, columns, rows.numbers.values[y].T.ravel(), rows.weights[own])
    if rows.n_classes == 2:
        labels = np.where(y == 1, 1, -1).astype(np.int8)
        return Pairs(every_row, np.zeros_like(every_row), labels, rows.weights)
    n_wrong = n_wrong_classes(rows.n_classes, negatives_per_positive)
    hashes = row_hashes(rows.operator, rows.seed)[:, 0]
    wrong = _wrong_classes(hashes, y, rows.n_classes, n_wrong)
    classes = np.concatenate([y[:, None], wrong], axis=1).ravel()
    labels = np.tile(np.array([1] + [-1] * n_wrong, dtype=np.int8), y.size)
    of_pair = np.repeat(every_row, 1 + n_wrong)
    order = np.argsort(classes, kind="stable")
    own = of_pair[order]
    return Pairs(own, classes[order], labels[order], rows.weights[own])


def _wrong_classes(hashes, y, n_classes: int, n_wrong: int) -> NDArray[np.intp]:
    """Draw distinct wrong classes for each row: a partial shuffle driven by its hash."""
    others = np.arange(n_classes - 1)
    deck = np.tile(others, (y.size, 1))
    every_row = np.arange(y.size)
    for position in range(n_wrong):
        left = n_classes - 1 - position
        pick = position + (mix(hashes, position + 1) % np.uint64(left)).astype(np.intp)
        chosen = deck[every_row, pick].copy()
        deck[every_row, pick] = deck[:, position]
        deck[:, position] = chosen
    drawn = deck[:, :n_wrong]
    return drawn + (drawn >= y[:, None])


@dataclass(frozen=True)
class SignedMaps:
    """The signed maps S on pairs: S[(i, c), k] = sign[k, c] * z_k(x_i).

    The value of a fern on a pair is the sign of the cell of the row for the class.
    """

    by_class: tuple[Operator, ...]  # the rows of the pairs of each class, in class order
    signs: Array  # (n_cells, len(by_class))

    @classmethod
    def of(cls, operator: Operator, pairs: Pairs, signs: Array) -> SignedMaps:
        """Build the operator of some pairs; classes without a pair are left out."""
        every_row = pairs.rows.size == operator.n_rows and signs.shape[1] == 1
        if every_row:
            return cls((operator,), signs)
        present, starts = np.unique(pairs.classes, return_index=True)
        by_class = tuple(operator.take(rows) for rows in np.split(pairs.rows, starts[1:]))
        return cls(by_class, signs[:, present])

    @property
    def n_columns(self) -> int:
        return self.by_class[0].n_slots

    def to_device(self, array, dtype=None) -> Array:
        """Return an array where the operator computes: here."""
        return array

    @property
    def is_map(self) -> NDArray[np.bool_]:
        """Which columns are maps."""
        return self.by_class[0].is_map

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which maps are nested in the one to their left."""
        # No fern is: the sum over the columns of a map has at most one term.
        return self.by_class[0].collect(self.by_class[0].is_chained) > 0

    @property
    def is_signed(self) -> NDArray[np.bool_]:
        """Which maps tell some class from the others."""
        return self.by_class[0].collect(np.abs(self.signs).sum(axis=1)) > 0

    def thinned(self, n_maps: int) -> NDArray[np.bool_]:
        """Say which maps are about so many of each chain, evenly spread."""
        return self.by_class[0].thinned(n_maps)

    def keep_maps(self, kept: NDArray[np.bool_], narrow: bool = True) -> SignedMaps:
        """Return the operator of some of the maps; frees memory of this one meanwhile.

        It is for passes, unless it is not to be `narrow`.
        """
        for own in self.by_class:
            own.forget_narrow()
        by_class = tuple(own.keep_maps(kept) for own in self.by_class)
        before, after = self.by_class[0], by_class[0]
        signs = np.zeros((after.n_columns, len(by_class)))
        signs[after.spread(after.is_map)] = self.signs[before.spread(kept & self.is_map)]
        if narrow:
            by_class = tuple(own.narrowed() for own in by_class)
        return SignedMaps(by_class, signs)

    def forward(self, theta: Array) -> Array:
        return np.concatenate(
            [
                own.forward(self.signs[:, [c]] * own.spread(theta))
                for c, own in enumerate(self.by_class)
            ]
        )

    def adjoint(self, residuals: Array) -> Array:
        return self.adjoint_and_total(residuals)[0]

    def adjoint_and_total(self, residuals: Array) -> tuple[Array, Array]:
        pulls, totals = np.zeros((self.n_columns, 1)), np.zeros(1)
        for c, (own, piece) in enumerate(zip(self.by_class, self._split(residuals), strict=True)):
            pull, total = own.adjoint_and_total(piece)
            pulls += own.collect(self.signs[:, [c]] * pull)
            totals += total
        return pulls, totals

    @property
    def longest_chain(self) -> int:
        return self.by_class[0].longest_chain

    def products(self, weights: Array) -> tuple[Array, Array, Array, Array]:
        total = np.zeros(1)
        mean, diagonal, neighbour = np.zeros((3, self.n_columns, 1))
        for c, (own, piece) in enumerate(zip(self.by_class, self._split(weights), strict=True)):
            sign = self.signs[:, [c]]
            own_total, own_mean, own_diagonal, own_neighbour = own.products(piece)
            total += own_total
            mean += own.collect(sign * own_mean)
            diagonal += own.collect(sign**2 * own_diagonal)
            own_neighbour[1:] *= sign[1:] * sign[:-1]
            neighbour += own.collect(own_neighbour)
        return total, mean, diagonal, neighbour

    def dense(self) -> Array:
        """Return S itself, of shape (n_pairs, n_columns)."""
        return np.concatenate([own.signed(self.signs[:, c]) for c, own in enumerate(self.by_class)])

    def take_narrow(self, rows: NDArray[np.intp]) -> SignedMaps:
        bounds = self._bounds()
        cuts = np.searchsorted(rows, bounds)
        by_class = tuple(
            own.take_narrow(rows[cuts[c] : cuts[c + 1]] - bounds[c])
            for c, own in enumerate(self.by_class)
        )
        return SignedMaps(by_class, self.signs)

    def _bounds(self) -> NDArray[np.intp]:
        return np.cumsum([0] + [own.n_rows for own in self.by_class])

    def _split(self, values: Array) -> list[Array]:
        return np.split(values, self._bounds()[1:-1])


# ------------------------------------------------------------- Step 1


@dataclass(frozen=True)
class KernelProblem:
    """Step 1 for any cost."""

    operator: Any
    pairs: Pairs
    loss: str  # smooth: no method here is good at the kink of the hinge with many pairs

    @classmethod
    def of(
        cls,
        rows: LabelledRows,
        signs: Array,
        loss: str,
        negatives_per_positive: int,
        max_pairs: int,
    ) -> KernelProblem:
        """Return the problem of the pairs of all rows, or of a class-balanced part of them."""
        rows = rows.balanced(max_pairs // pairs_of_a_row(rows, negatives_per_positive))
        pairs = pairs_of(rows, negatives_per_positive)
        kind = DevicePairs if rows.operator.many_at_once else SignedMaps
        return cls(kind.of(rows.operator, pairs, signs), pairs, loss)

    def margins(self, cost: float) -> Margins:
        """Return the losses of the pairs, as functions of their scores; a cost for all of them."""
        place, pairs = self.operator.to_device, self.pairs
        costs = cost / pairs.weights.sum() * place(pairs.weights)
        labels = place(pairs.labels)[:, None]
        if self.loss not in LOSSES:
            return Margins.of_numbers(labels, costs[:, None], self.loss, 0.5)
        return Margins(labels, costs[:, None], LOSSES[self.loss])

    @cached_property
    def smallest_cost(self) -> float:
        """The cost up to which all weights are zero, in closed form.

        With all weights zero the scores are the best constant; a map enters when its
        pull on the pairs exceeds the unit price of its weight.
        """
        margins = self.margins(float(self.pairs.weights.sum()))
        scores = 0.0 * margins.costs
        intercept = margins.best_intercept(scores, 0.0 * scores[0])
        support = margins.support(scores + intercept)
        pull = float(self.operator.adjoint(margins.signed(support)).max())
        return np.inf if pull <= 0.0 else 1.0 / pull * self.pairs.weights.sum()

    def solve(
        self,
        cost: float,
        start: Solution | None,
        tol: float,
        max_iter: int,
        progress: Progress = go_on,
    ) -> tuple[Solution, Solution]:
        """Return where the solver ended, and the solution with weights near zero set to zero."""
        margins = self.margins(cost)
        interior = solve(Problem(self.operator, margins), start, tol, max_iter, progress)
        return interior.on_host(), rounded(self.operator, margins, interior, tol).on_host()


def rounded(operator: Any, margins: Margins, solution: Solution, tol: float) -> Solution:
    """Set the weights on their way to zero to zero; update objective and gap.

    Where so many are on their way that the gap would exceed tol, they stay.
    """
    useful = operator.is_signed
    result = _keep_weights(operator, margins, solution, is_positive(solution) & useful)
    if solution.relative_gap <= tol < result.relative_gap:
        return _keep_weights(operator, margins, solution, operator.is_map & useful)
    return result


def is_positive(solution: Solution) -> NDArray[np.bool_]:
    """Say which weights are positive at the solution.

    Weight and slack are complementary: one of the two goes to zero. They are
    compared in their own units, the mean weight and the price of one.
    """
    weights, slack = to_host(solution.weights)[:, 0], to_host(solution.slack)[:, 0]
    mean = weights.sum() / max(int((weights > 0).sum()), 1)
    positive = weights > slack * mean
    return positive if positive.any() else weights > 0


def _keep_weights(
    operator: Any, margins: Margins, solution: Solution, useful: NDArray[np.bool_]
) -> Solution:
    weights = operator.to_device(np.where(useful[:, None], to_host(solution.weights), 0.0))
    scores = operator.forward(weights)
    intercept = margins.best_intercept(scores, operator.to_device(solution.intercept))
    objective = weights.sum(axis=0) + margins.exact_value(scores + intercept)
    # The lower bound of the optimum stays what it was.
    gap = positive_part(objective - (solution.objective - solution.gap))
    return replace(solution, weights=weights, intercept=intercept, objective=objective, gap=gap)

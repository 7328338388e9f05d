"""Step 1: the weights of the maps in the kernel.

It learns one theta >= 0 per map for all classes, from pairs of a row and a class. A pair asks "is
row i of class c?", and its maps have the signs of class c. Every row gives the pair of its own
class (label +1) and a few of wrong classes (label -1), drawn by a hash of the row's codes, so that
neither the order of the rows nor their division among machines has any influence. With two classes
both questions are the same, so each row gives one pair. A row with numbers gives a pair for every
target, whose label is the number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.cells import Block, FreeCells, Ladder, Operator, stacked
from mbkl.engine.arrays import Values, index_for, to_host
from mbkl.extras import require
from mbkl.learn.labelled_rows import LabelledRows, mix
from mbkl.solvers.choose import solve
from mbkl.solvers.problem import LOSSES, Margins, Problem, Progress, Solution, go_on, positive_part

Array = NDArray[np.float64]

# Terms of type bfloat16 that add up to a vector in float32 precision, on a device.
_PIECES = 3
_BLOCK_MAPS = 4_096

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
    """Return the pairs of all rows: the own class of each and at most so many wrong ones."""
    y, every_row = rows.y, np.arange(rows.y.size)
    if rows.numbers is not None:
        n_columns = rows.numbers.n_columns
        of_pair, columns = np.tile(every_row, n_columns), np.repeat(np.arange(n_columns), y.size)
        labels = rows.numbers.values[y].T.ravel()
        return Pairs(of_pair, columns, labels, rows.weights[of_pair])
    if rows.n_classes == 2:
        labels = np.where(y == 1, 1, -1).astype(np.int8)
        return Pairs(every_row, np.zeros_like(every_row), labels, rows.weights)
    n_wrong = n_wrong_classes(rows.n_classes, negatives_per_positive)
    hashes = rows.hashes[:, 0]
    wrong = _wrong_classes(hashes, y, rows.n_classes, n_wrong)
    classes = np.concatenate([y[:, None], wrong], axis=1).ravel()
    labels = np.tile(np.array([1] + [-1] * n_wrong, dtype=np.int8), y.size)
    of_pair = np.repeat(every_row, 1 + n_wrong)
    order = np.argsort(classes, kind="stable")
    of_pair = of_pair[order]
    return Pairs(of_pair, classes[order], labels[order], rows.weights[of_pair])


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
        if pairs.rows.size == operator.n_rows and signs.shape[1] == 1:  # every row once
            return cls((operator,), signs)
        present, starts = np.unique(pairs.classes, return_index=True)
        by_class = tuple(operator.take(rows) for rows in np.split(pairs.rows, starts[1:]))
        return cls(by_class, signs[:, present])

    @property
    def n_columns(self) -> int:
        return self.by_class[0].n_slots

    def to_device(self, array, dtype=None) -> Array:
        """Return the array as it is, since this operator computes on the CPU."""
        return array

    @property
    def is_map(self) -> NDArray[np.bool_]:
        """Which columns are maps."""
        return self.by_class[0].is_map

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which maps are nested in the one to their left."""
        # No fern is nested, and a stump has one column, so the sum has at most one term.
        return self.by_class[0].collect(self.by_class[0].is_chained) > 0

    @property
    def is_signed(self) -> NDArray[np.bool_]:
        """Which maps have a sign for some class."""
        return self.by_class[0].collect(np.abs(self.signs).sum(axis=1)) > 0

    def keep_maps(self, kept: NDArray[np.bool_]) -> SignedMaps:
        """Return the operator of some of the maps."""
        by_class = tuple(maps.keep_maps(kept) for maps in self.by_class)
        before, after = self.by_class[0], by_class[0]
        signs = np.zeros((after.n_columns, len(by_class)))
        signs[after.spread(after.is_map)] = self.signs[before.spread(kept & self.is_map)]
        return SignedMaps(by_class, signs)

    def forward(self, theta: Array) -> Array:
        pairs = zip(self.by_class, self.signs.T[:, :, None], strict=True)
        return np.concatenate([maps.forward(signs * maps.spread(theta)) for maps, signs in pairs])

    def adjoint(self, residuals: Array) -> Array:
        return self.adjoint_and_total(residuals)[0]

    def adjoint_and_total(self, residuals: Array) -> tuple[Array, Array]:
        pulls, totals = np.zeros((self.n_columns, 1)), np.zeros(1)
        for c, (maps, piece) in enumerate(zip(self.by_class, self._split(residuals), strict=True)):
            pull, total = maps.adjoint_and_total(piece)
            pulls += maps.collect(self.signs[:, [c]] * pull)
            totals += total
        return pulls, totals

    @property
    def longest_chain(self) -> int:
        return self.by_class[0].longest_chain

    def products(self, weights: Array) -> tuple[Array, Array, Array, Array]:
        total = np.zeros(1)
        mean, diagonal, neighbour = np.zeros((3, self.n_columns, 1))
        for c, (maps, piece) in enumerate(zip(self.by_class, self._split(weights), strict=True)):
            sign = self.signs[:, [c]]
            class_total, class_mean, class_diagonal, class_neighbour = maps.products(piece)
            total += class_total
            mean += maps.collect(sign * class_mean)
            diagonal += maps.collect(sign**2 * class_diagonal)
            class_neighbour[1:] *= sign[1:] * sign[:-1]
            neighbour += maps.collect(class_neighbour)
        return total, mean, diagonal, neighbour

    def dense(self) -> Array:
        """Return S itself, of shape (n_pairs, n_columns)."""
        pairs = zip(self.by_class, self.signs.T, strict=True)
        return np.concatenate([maps.signed(signs) for maps, signs in pairs])

    def take(self, rows: NDArray[np.intp]) -> SignedMaps:
        bounds = self._bounds()
        cuts = np.searchsorted(rows, bounds)
        by_class = tuple(
            maps.take(rows[cuts[c] : cuts[c + 1]] - bounds[c])
            for c, maps in enumerate(self.by_class)
        )
        return SignedMaps(by_class, self.signs)

    def _bounds(self) -> NDArray[np.intp]:
        return np.cumsum([0] + [maps.n_rows for maps in self.by_class])

    def _split(self, values: Array) -> list[Array]:
        return np.split(values, self._bounds()[1:-1])


# ------------------------------------------------------------- on a device


@dataclass(frozen=True)
class DevicePairs:
    """The signed maps S on pairs as a matrix on a device, transposed: a line per map.

    The matrix of tens of thousands of pairs fits in memory, and reading it is the fastest way to
    multiply with it. The entries of stumps are 0, +1 and -1, exact in bfloat16; those of ferns,
    which are fewer, lie between.
    """

    matrices: tuple[Values, ...]  # (n_slots, n_pairs): those of each family
    families: tuple[Ladder | FreeCells, ...]  # cells of the maps of each family

    @classmethod
    def of(cls, operator: Operator, pairs: Pairs, signs: Values) -> DevicePairs:
        """Form the matrix of some pairs."""
        rows, classes = operator.to_device(pairs.rows), operator.to_device(pairs.classes)
        matrices = operator.of_columns(
            lambda block, part: _signed(block, rows, classes, part), signs
        )
        return cls(tuple(matrices), tuple(block.cells for block in operator.blocks))

    @property
    def n_columns(self) -> int:
        return sum(len(matrix) for matrix in self.matrices)

    @property
    def longest_chain(self) -> int:
        return max(int(np.diff(cells.offsets).max(initial=1)) for cells in self.families)

    @property
    def is_map(self) -> NDArray[np.bool_]:
        return np.concatenate([cells.is_map for cells in self.families])

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which maps are nested in the one to their left; ferns never are."""
        return np.concatenate([cells.collect(cells.is_chained) > 0 for cells in self.families])

    @property
    def is_signed(self) -> NDArray[np.bool_]:
        return np.concatenate([to_host(matrix.any(1)) for matrix in self.matrices])

    def to_device(self, array, dtype=None) -> Values:
        return require("torch", "gpu").as_tensor(array, device=self.matrices[0].device)

    def forward(self, theta: Values) -> Values:
        total, start = 0.0, 0
        for matrix in self.matrices:
            total = total + _product(matrix.t(), theta[start : start + len(matrix)])
            start += len(matrix)
        return total

    def adjoint(self, residuals: Values) -> Values:
        return stacked([_product(matrix, residuals) for matrix in self.matrices])

    def adjoint_and_total(self, residuals: Values) -> tuple[Values, Values]:
        return self.adjoint(residuals), residuals.sum(axis=0)

    def products(self, weights: Values) -> tuple[Values, Values, Values, Values]:
        pieces = [_own_products(matrix, weights) for matrix in self.matrices]
        diagonal, neighbour = (stacked(list(column)) for column in zip(*pieces, strict=True))
        neighbour[index_for(~self.is_chained, neighbour)] = 0.0
        return weights.sum(axis=0), self.adjoint(weights), diagonal, neighbour

    def keep_maps(self, kept: NDArray[np.bool_]) -> DevicePairs:
        """Return the matrix of some of the maps."""
        bounds = np.cumsum([len(matrix) for matrix in self.matrices])[:-1]
        kept_maps = [
            cells.keep_lines(matrix, kept_lines)
            for matrix, cells, kept_lines in zip(
                self.matrices, self.families, np.split(kept, bounds), strict=True
            )
        ]
        matrices, families = zip(*kept_maps, strict=True)
        return DevicePairs(matrices, families)


def _own_products(matrix: Values, weights: Values) -> tuple[Values, Values]:
    """Return the products of each map with itself and with the one to its left."""
    diagonal, neighbour = weights.new_zeros((2, len(matrix), 1))
    for start in range(0, len(matrix), _BLOCK_MAPS):
        # One line before the block, for its first neighbour.
        block = matrix[max(start - 1, 0) : start + _BLOCK_MAPS]
        first = min(start, 1)
        diagonal[start : start + _BLOCK_MAPS] = _product(block[first:] ** 2, weights)
        neighbour[max(start, 1) : start + _BLOCK_MAPS] = _product(block[1:] * block[:-1], weights)
    return diagonal, neighbour


def _product(left: Values, right: Values) -> Values:
    """Return left @ right to float32 precision."""
    torch = require("torch", "gpu")
    if left.dtype != torch.bfloat16:
        return (left @ right.to(left.dtype)).double()
    # A fast product has eight columns, of which the first hold terms that add up to the vector.
    columns = left.new_zeros((right.shape[0], 8))
    rest = right[:, 0].double()
    for number in range(_PIECES):
        columns[:, number] = rest
        rest = rest - columns[:, number]
    if left.is_cuda:
        product = torch.mm(left, columns, out_dtype=torch.float32)
    else:
        product = left.float() @ columns.float()
    return product.double().sum(1, keepdim=True)


def _signed(block: Block, rows: Values, classes: Values, signs: Values) -> Values:
    """Return the value of each slot on each pair."""
    codes: Values = block.codes
    values = codes.values[:, rows]
    lines = [
        block.cells.signed_lines(values, classes, signs, slots)
        for slots in np.split(
            np.arange(block.cells.n_slots), range(_BLOCK_MAPS, block.cells.n_slots, _BLOCK_MAPS)
        )
    ]
    return stacked(lines)


# ------------------------------------------------------------- Step 1


@dataclass(frozen=True)
class KernelProblem:
    """Step 1 for any cost."""

    operator: Any
    pairs: Pairs
    loss: str  # a smooth one, as the solvers are slow at the kink of the hinge with many pairs

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
        """Return the losses of the pairs, whose costs sum to the given one."""
        place, pairs = self.operator.to_device, self.pairs
        costs = cost / pairs.weights.sum() * place(pairs.weights)
        labels = place(pairs.labels)[:, None]
        if self.loss not in LOSSES:
            return Margins.of_numbers(labels, costs[:, None], self.loss, 0.5)
        return Margins(labels, costs[:, None], LOSSES[self.loss])

    @cached_property
    def smallest_cost(self) -> float:
        """The cost up to which all weights are zero, in closed form.

        With all weights zero the score is the best constant; a map enters when its gradient
        exceeds one, the price of its weight.
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
        """Return the solver's solution, and the same with weights near zero set to zero."""
        margins = self.margins(cost)
        interior = solve(Problem(self.operator, margins), start, tol, max_iter, progress)
        return interior.on_host(), rounded(self.operator, margins, interior, tol).on_host()


def rounded(operator: Any, margins: Margins, solution: Solution, tol: float) -> Solution:
    """Set weights that converge to zero to zero; update objective and gap.

    If the gap would then exceed tol, they stay.
    """
    useful = operator.is_signed
    result = _keep_weights(operator, margins, solution, is_positive(solution) & useful)
    if solution.relative_gap <= tol < result.relative_gap:
        return _keep_weights(operator, margins, solution, operator.is_map & useful)
    return result


def is_positive(solution: Solution) -> NDArray[np.bool_]:
    """Say which weights are positive at the solution.

    Weight and slack are complementary: one of the two goes to zero. They are compared in units
    of the mean weight and of the price, which is one.
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

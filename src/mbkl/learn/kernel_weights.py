"""Step 1: the weights of the kernel, one theta >= 0 per map for all classes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.namespace import to_host
from mbkl.learn.device_pairs import DevicePairs
from mbkl.learn.losses import smoothing_path
from mbkl.learn.margins import Margins
from mbkl.learn.operator import AnyOperator
from mbkl.learn.pairs import Pairs
from mbkl.solvers.dense_interior_point import DenseProblem, solve_densely
from mbkl.solvers.interior_point import WeightSolution, minimise_weights

Array = NDArray[np.float64]

# Up to this many multiplications per iteration (pairs squared times maps) the dense
# solver is faster; it also copes with any cost (measured).
_DENSE_WORK = 5e8


@dataclass(frozen=True)
class PairOperator:
    """The signed maps S on pairs: S[(i, c), k] = sign[k, c] * z_k(x_i).

    The value of a fern on a pair is the sign of the cell of the row for the class.

    Parameters
    ----------
    parts : tuple of MapOperator or JointOperator
        The rows of the pairs of each class, in class order.
    signs : ndarray of shape (n_cells, len(parts))
    """

    parts: tuple[AnyOperator, ...]
    signs: Array

    @classmethod
    def of(cls, operator: AnyOperator, pairs: Pairs, signs: Array) -> PairOperator:
        """Build the operator of some pairs; classes without a pair are left out."""
        every_row = pairs.rows.size == operator.n_rows and signs.shape[1] == 1
        if every_row:
            return cls((operator,), signs)
        present, starts = np.unique(pairs.classes, return_index=True)
        parts = tuple(operator.take(rows) for rows in np.split(pairs.rows, starts[1:]))
        return cls(parts, signs[:, present])

    @property
    def n_columns(self) -> int:
        return self.parts[0].n_slots

    def to_device(self, array, dtype=None) -> Array:
        """Return an array where the operator computes: here."""
        return array

    @property
    def is_map(self) -> NDArray[np.bool_]:
        """Which columns are maps."""
        return self.parts[0].is_map

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which maps are nested in the one to their left."""
        # No fern is: the sum over the columns of a map has at most one term.
        return self.parts[0].collect(self.parts[0].is_chained)

    @property
    def is_signed(self) -> NDArray[np.bool_]:
        """Which maps tell some class from the others."""
        return self.parts[0].collect(np.abs(self.signs).sum(axis=1)) > 0

    def thinned(self, n_maps: int) -> NDArray[np.bool_]:
        """Say which maps are about so many of each chain, evenly spread."""
        return self.parts[0].thinned(n_maps)

    def keep_maps(self, kept: NDArray[np.bool_]) -> PairOperator:
        """Return the operator of some of the maps; frees memory of this one meanwhile."""
        for part in self.parts:
            part.forget_narrow()
        parts = tuple(part.keep_maps(kept).narrowed() for part in self.parts)
        before, after = self.parts[0], parts[0]
        signs = np.zeros((after.n_columns, len(parts)))
        signs[after.spread(after.is_map)] = self.signs[before.spread(kept & self.is_map)]
        return PairOperator(parts, signs)

    def forward(self, theta: Array) -> Array:
        return np.concatenate(
            [
                part.forward(self.signs[:, [c]] * part.spread(theta))
                for c, part in enumerate(self.parts)
            ]
        )

    def adjoint(self, residuals: Array) -> Array:
        return self.adjoint_and_total(residuals)[0]

    def adjoint_and_total(self, residuals: Array) -> tuple[Array, Array]:
        pulls, totals = np.zeros((self.n_columns, 1)), np.zeros(1)
        for c, (part, piece) in enumerate(zip(self.parts, self._split(residuals), strict=True)):
            pull, total = part.adjoint_and_total(piece)
            pulls += part.collect(self.signs[:, [c]] * pull)
            totals += total
        return pulls, totals

    @property
    def longest_chain(self) -> int:
        return self.parts[0].longest_chain

    def products(self, weights: Array) -> tuple[Array, Array, Array, Array]:
        total = np.zeros(1)
        mean, diagonal, neighbour = np.zeros((3, self.n_columns, 1))
        for c, (part, piece) in enumerate(zip(self.parts, self._split(weights), strict=True)):
            sign = self.signs[:, [c]]
            part_total, part_mean, part_diagonal, part_neighbour = part.products(piece)
            total += part_total
            mean += part.collect(sign * part_mean)
            diagonal += part.collect(sign**2 * part_diagonal)
            part_neighbour[1:] *= sign[1:] * sign[:-1]
            neighbour += part.collect(part_neighbour)
        return total, mean, diagonal, neighbour

    def dense(self) -> Array:
        """Return S itself, of shape (n_pairs, n_columns)."""
        return np.concatenate([part.signed(self.signs[:, c]) for c, part in enumerate(self.parts)])

    def take_narrow(self, rows: NDArray[np.intp]) -> PairOperator:
        bounds = self._bounds()
        cuts = np.searchsorted(rows, bounds)
        parts = tuple(
            part.take_narrow(rows[cuts[c] : cuts[c + 1]] - bounds[c])
            for c, part in enumerate(self.parts)
        )
        return PairOperator(parts, self.signs)

    def _bounds(self) -> NDArray[np.intp]:
        return np.cumsum([0] + [part.n_rows for part in self.parts])

    def _split(self, values: Array) -> list[Array]:
        return np.split(values, self._bounds()[1:-1])


AnyPairs = PairOperator | DevicePairs


def learn_kernel_weights(
    operator: AnyPairs,
    pairs: Pairs,
    loss: str,
    cost: float,
    start: WeightSolution | None,
    tol: float,
    max_iter: int,
    progress=lambda solution: False,
) -> WeightSolution:
    """Solve Step 1.

    Parameters
    ----------
    operator : PairOperator
    pairs : Pairs
    loss : {"squared_hinge", "logistic"}
        Smooth: no method here is good at the kink of the hinge with many pairs.
    cost : float
        Cost of a pair of weight one.
    start : WeightSolution or None
        Solution for another cost, to start from.
    tol, max_iter, progress
        See `minimise_weights`.
    """
    margins = pair_margins(operator, pairs, loss, cost)
    if isinstance(operator, DevicePairs):
        return minimise_weights(operator, margins, start, tol, max_iter, progress)
    if float(pairs.rows.size) ** 2 * operator.n_columns <= _DENSE_WORK:
        problem = DenseProblem(operator.dense(), margins)
        return solve_densely(problem, tol, max_iter, progress)
    return minimise_weights(operator, margins, start, tol, max_iter, progress)


def rounded(
    operator: AnyPairs, margins: Margins, solution: WeightSolution, tol: float
) -> WeightSolution:
    """Set the weights on their way to zero to zero; update objective and gap.

    Where so many are on their way that the gap would exceed tol, they stay.
    """
    positive = to_host(solution.positive)
    result = _keep_weights(operator, margins, solution, positive & operator.is_signed)
    if solution.relative_gap <= tol < result.relative_gap:
        return _keep_weights(operator, margins, solution, operator.is_map & operator.is_signed)
    return result


def _keep_weights(
    operator: AnyPairs, margins: Margins, solution: WeightSolution, useful: NDArray[np.bool_]
) -> WeightSolution:
    theta = operator.to_device(np.where(useful, to_host(solution.theta), 0.0))
    scores = operator.forward(theta[:, None])
    intercept = margins.best_intercept(scores, operator.to_device(solution.intercept))
    objective = float(theta.sum() + margins.exact_value(scores + intercept)[0])
    # The lower bound of the optimum stays what it was.
    gap = max(objective - (solution.objective - solution.gap), 0.0)
    return replace(solution, theta=theta, intercept=intercept, objective=objective, gap=gap)


def pair_margins(operator: AnyPairs, pairs: Pairs, loss: str, cost: float) -> Margins:
    """Return the losses of the pairs, as functions of their scores."""
    (smooth,) = smoothing_path(loss)
    labels, weights = operator.to_device(pairs.labels), operator.to_device(pairs.weights)
    return Margins(labels[:, None], cost * weights[:, None], smooth)


def smallest_cost(operator: AnyPairs, pairs: Pairs, loss: str) -> float:
    """Return the cost up to which all weights are zero, in closed form.

    With all weights zero the scores are the best constant; a map enters when its
    pull on the pairs exceeds the unit price of its weight.
    """
    margins = pair_margins(operator, pairs, loss, 1.0)
    scores = 0.0 * margins.costs
    intercept = margins.best_intercept(scores, 0.0 * scores[0])
    support = margins.support(scores + intercept)
    pull = float(operator.adjoint(margins.labels * support).max())
    return np.inf if pull <= 0.0 else 1.0 / pull

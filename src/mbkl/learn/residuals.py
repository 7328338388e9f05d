"""How far off rows are that took no part in learning: for intervals, and for the cost.

With a squared error and the kernel matrix of few rows, every row is predicted by all others in
closed form. Else the rows are divided into folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import exact_total
from mbkl.learn.algorithm import REFERENCE_ROWS, Kernel, Learner
from mbkl.learn.calibration import HeldOut, held_out_scores
from mbkl.maps.numbers import Numbers, weighted_quantiles
from mbkl.solvers.blas import one_blas_thread
from mbkl.solvers.choose import may_use_gram
from mbkl.solvers.gram_newton import inverse_of
from mbkl.solvers.margins import Margins

Array = NDArray[np.float64]

# Costs that are tried are this factor apart, and so many times at most; the solver need not be
# more accurate than this for it.
_STEP, _MOST_STEPS, _ROUGHLY = 3.0, 5, 0.01

# Quantiles that are kept of residuals, and where exponents end.
_MOST_VALUES, _LARGEST_SCORE = 2_000, 60.0


def held_out(learner: Learner, kernel: Kernel, C_kernel: float, C: float) -> HeldOut:
    """Return scores of rows that took no part."""
    rows = learner.rows
    is_ridge = learner.settings.loss == "squared_error" and kernel.theta.any()
    if is_ridge and may_use_gram(rows.n_rows, rows.operator.n_columns) and rows.n_rows > 1:
        scores = _left_out(learner, kernel, C)
        return HeldOut(scores, rows.y, rows.weights, np.arange(rows.n_rows))
    return held_out_scores(learner, C_kernel, C)


def _left_out(learner: Learner, kernel: Kernel, C: float) -> Array:
    """Return the score of each row by a model of all others, in closed form."""
    rows = learner.rows
    assert rows.numbers is not None
    costs = C * REFERENCE_ROWS / exact_total(rows.weights) * rows.weights
    gram = rows.gram.matrix() if rows.gram else rows.operator.gram(learner.weights_of(kernel))
    targets = rows.numbers.values[rows.y]
    with one_blas_thread():
        inverse = inverse_of(gram, 2.0 * costs)
        return targets - (inverse @ targets) / np.diag(inverse)[:, None]


def best_cost(learner: Learner, C_kernel: float, C: float) -> float:
    """Return the cost with the smallest loss of held-out rows, beginning at the given one."""
    tried: dict[int, float] = {}
    settings = replace(learner.settings, tol=max(learner.settings.tol, _ROUGHLY))
    learner = replace(learner, settings=settings).with_gram()

    def loss(step: int) -> float:
        if step not in tried:
            inside = abs(step) <= _MOST_STEPS
            tried[step] = _loss_of(learner, C_kernel, C * _STEP**step) if inside else np.inf
        return tried[step]

    best = 0
    for direction in (-1, 1):
        while loss(best + direction) < loss(best):
            best += direction
    return C * _STEP**best


def _loss_of(learner: Learner, C_kernel: float, C: float) -> float:
    """Return the loss of rows by models that did not see them."""
    found, numbers = held_out_scores(learner, C_kernel, C), learner.rows.numbers
    assert numbers is not None
    return mean_loss(numbers, found.y, found.scores, found.weights)


def mean_loss(numbers: Numbers, y: NDArray[np.intp], scores: Array, weights: Array) -> float:
    """Return the mean loss of numbers, for scores."""
    costs = weights[:, None]
    margins = Margins.of_numbers(numbers.values[y], costs, numbers.loss, numbers.quantile)
    return float(margins.exact_value(scores).mean()) / exact_total(weights)


def best_share(numbers: Numbers | None, drawn: HeldOut, grown: Array) -> float:
    """Return the share of the second scores in a mixture that has the smallest loss."""
    assert numbers is not None
    shares = np.linspace(0.0, 1.0, 11)
    losses = [
        mean_loss(numbers, drawn.y, (1.0 - share) * drawn.scores + share * grown, drawn.weights)
        for share in shares
    ]
    return float(shares[int(np.argmin(losses))])


@dataclass(frozen=True)
class Residuals:
    """How numbers are distributed around predictions of models that did not see them.

    Parameters
    ----------
    values : ndarray of shape (n_values, n_columns)
        Increasing quantiles of the residuals, at even levels, in the unit of the targets; those
        of counts are divided by the square root of the prediction.
    n_rows : float
        How many rows they are of.
    """

    values: Array
    n_rows: float

    @classmethod
    def of(cls, numbers: Numbers | None, y, scores: Array, weights: Array) -> Residuals:
        """Return the residuals of rows.

        Parameters
        ----------
        numbers : Numbers
        y : ndarray of shape (n_rows,)
        scores : ndarray of shape (n_rows, n_columns)
        weights : ndarray of shape (n_rows,)
        """
        assert numbers is not None
        if not len(y):
            return cls(np.zeros((1, numbers.n_columns)), 0.0)
        if numbers.loss == "poisson":
            means = np.exp(np.minimum(scores, _LARGEST_SCORE))
            away = (numbers.values[y] - means) / np.sqrt(means) * np.sqrt(numbers.unit)
        else:
            away = (numbers.values[y] - scores) * numbers.unit
        n_rows = exact_total(weights) ** 2 / exact_total(weights**2)
        levels = (np.arange(min(len(y), _MOST_VALUES)) + 1.0) / min(len(y), _MOST_VALUES)
        return cls(weighted_quantiles(away, weights, levels), n_rows)

    def bounds(self, coverage: float) -> tuple[Array, Array]:
        """Return what to add for the lower and the upper bound.

        Of n rows and a new one, each is as likely to have any place in their order: the levels are
        counted among n + 1.

        Examples
        --------
        >>> residuals = Residuals(np.arange(-9.0, 10.0)[:, None], 19)
        >>> residuals.bounds(0.9)
        (array([-9.]), array([9.]))
        >>> residuals.bounds(0.95)
        (array([-inf]), array([inf]))
        """
        return -self._upper(-self.values[::-1], coverage), self._upper(self.values, coverage)

    def _upper(self, values: Array, coverage: float) -> Array:
        level = (1.0 + coverage) / 2.0 * (1.0 + 1.0 / max(self.n_rows, 1e-9))
        if level > 1.0 + 1e-12:
            return np.full(values.shape[1], np.inf)
        place = int(np.ceil(level * len(values) - 1e-9)) - 1
        return values[min(place, len(values) - 1)]

"""Fourier kernel learning: a sparse sum of Gaussian kernels, each of random features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.utils import check_random_state

from mbkl_paper.baselines.base import (
    AT_LEAST_ONE,
    POSITIVE,
    Array,
    CostRival,
    one_vs_rest_labels,
)
from mbkl_paper.baselines.binary_codes import mean_squared_distance

# Iterations between two looks at the duality gap, which costs as much as one.
_BETWEEN_LOOKS = 10
_FIRST_GUESS = 0.05


@dataclass(frozen=True)
class Losses:
    """C * max(0, 1 - label * score)^2 of all rows, for several problems side by side.

    Parameters
    ----------
    labels : ndarray of shape (n_rows, n_problems)
        +1 or -1.
    C : float

    Examples
    --------
    >>> import numpy as np
    >>> losses = Losses(np.array([[1.0], [1.0], [-1.0]]), C=2.0)
    >>> losses.total(np.zeros((3, 1)))
    6.0
    >>> losses.best_intercept(np.zeros((3, 1))).round(3)
    array([0.333])
    """

    labels: Array
    C: float

    def total(self, scores: Array) -> float:
        return float(self.C * (np.maximum(0.0, 1.0 - self.labels * scores) ** 2).sum())

    def support(self, scores: Array) -> Array:
        """Return minus the derivative by the score, times the label: not negative."""
        return 2.0 * self.C * np.maximum(0.0, 1.0 - self.labels * scores)

    def best_intercept(self, scores: Array) -> Array:
        """Minimise the loss over a constant added to each column.

        Its derivative is a rising line between neighbouring places where the loss of a
        row begins (of the class -1) or ends (of the class +1).
        """
        places = self.labels - scores
        order = np.argsort(places, axis=0)
        places = np.take_along_axis(places, order, axis=0)
        ends = np.take_along_axis(self.labels > 0, order, axis=0)
        # Before each place: how many rows have a loss, and the sum of their places.
        count = _before(~ends) + _from(ends)
        total = _before(places * ~ends) + _from(places * ends)
        is_reached = count * places >= total
        is_reached[-1] = True  # whatever the last digits say
        first = np.argmax(is_reached, axis=0)[None]
        place, count, total = (
            np.take_along_axis(values, first, axis=0)[0] for values in (places, count, total)
        )
        return np.where(count > 0, total / np.maximum(count, 1), place)


def _before(values: NDArray) -> NDArray:
    """Return the sum of the values before each one."""
    return np.cumsum(values, axis=0) - values


def _from(values: NDArray) -> NDArray:
    """Return the sum of each value and those after it."""
    return np.cumsum(values[::-1], axis=0)[::-1]


@dataclass(frozen=True)
class GroupSolution:
    """Weights of all columns, group after group, and intercepts."""

    weights: Array
    intercept: Array
    gap: float
    n_iter: int


class FourierMKL(CostRival):
    """Multiple kernel learning by the group lasso over random Fourier features.

    Gaussian kernels of several widths each have a block of random features, and the
    weights w_m of block m, of all classes together, are one group:

        sum_m ||w_m||_2 + C * sum of max(0, 1 - y (w . phi(x) + b))^2

    This is an SVM whose kernel is a learned sum of the kernels; those that do not help
    get no weight at all. It is solved by accelerated proximal gradients until the
    duality gap is small.

    Parameters
    ----------
    factors : tuple of float, default=(1 / 4, 1 / 2, 1, 2)
        Kernel m is exp(-gamma_m ||x - z||^2), with gamma_m these numbers over the mean
        squared distance of the training rows. The default is the best of five sets of
        factors in cross-validation on Sonar and Liver: these are no fair test of it.
    n_components : int, default=500
        Random features of each kernel.
    C : float, default=1.0
        Cost.
    tol : float, default=1e-2
        The gap is at most tol times the objective.
    max_iter : int, default=2000
        Largest number of iterations.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    gammas_ : ndarray of shape (n_kernels,)
    kernel_weights_ : ndarray of shape (n_kernels,)
        Norms of the groups, in proportion to the learned weights of the kernels.
    coef_ : ndarray of shape (1 or n_classes, n_kernels * n_components)
    intercept_ : ndarray of shape (1 or n_classes,)
    gap_ : float
        Relative duality gap.
    n_iter_ : int

    References
    ----------
    E. Bazavan, F. Li, C. Sminchisescu. "Fourier Kernel Learning." ECCV 2012.

    Examples
    --------
    >>> from mbkl_paper.baselines import FourierMKL
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> FourierMKL(n_components=50, C=10, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints: dict = {
        "factors": ["array-like"],
        "n_components": [AT_LEAST_ONE],
        "C": [POSITIVE],
        "tol": [POSITIVE],
        "max_iter": [AT_LEAST_ONE],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        factors=(1 / 4, 1 / 2, 1, 2),
        *,
        n_components=500,
        C=1.0,
        tol=1e-2,
        max_iter=2000,
        random_state=None,
    ):
        self.factors = factors
        self.n_components = n_components
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _learn(self, X, numbers) -> None:
        super()._learn(X, numbers)
        solution = self._solution
        self.coef_, self.intercept_ = solution.weights.T, solution.intercept
        self.gap_, self.n_iter_ = solution.gap, solution.n_iter
        self.kernel_weights_ = _norms(solution.weights, self.gammas_.size)

    def _learn_features(self, X) -> Array:
        if not all(factor > 0 for factor in self.factors):
            raise ValueError(f"factors must be positive, got {self.factors!r}.")
        random = check_random_state(self.random_state)
        self.gammas_ = np.asarray(self.factors) / mean_squared_distance(X)
        self._samplers = [
            RBFSampler(
                gamma=gamma,
                n_components=self.n_components,
                random_state=random.randint(2**31 - 1),
            ).fit(X)
            for gamma in self.gammas_
        ]
        return self._features(X)

    def _features(self, X) -> Array:
        return np.hstack([sampler.transform(X) for sampler in self._samplers])

    def _solve(
        self, features: Array, numbers, C: float, smaller: GroupSolution | None = None
    ) -> GroupSolution:
        losses = Losses(one_vs_rest_labels(numbers, self.classes_.size), C)
        start = None if smaller is None else smaller.weights
        solution = minimise_group_lasso(
            features, losses, self.gammas_.size, start, self.tol, self.max_iter
        )
        if solution.gap > self.tol:
            warnings.warn(
                f"The relative duality gap is {solution.gap:.2g}, above tol={self.tol}, after "
                f"{solution.n_iter} iterations at C={C}; use a smaller C or a larger max_iter.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return solution

    def _evaluate(self, solution: GroupSolution, features: Array) -> Array:
        return features @ solution.weights + solution.intercept


def minimise_group_lasso(
    features: Array,
    losses: Losses,
    n_groups: int,
    start: Array | None,
    tol: float,
    max_iter: int,
) -> GroupSolution:
    """Minimise the sum of the norms of equal groups of weights plus the losses.

    The intercept is at its best for the weights at any time, which leaves a smooth
    function of the weights; the momentum starts anew where it would lead uphill.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_columns)
    losses : Losses
    n_groups : int
        Number of groups of neighbouring columns.
    start : ndarray of shape (n_columns, n_problems) or None
    tol : float
        Relative duality gap.
    max_iter : int
    """
    weights = np.zeros((features.shape[1], losses.labels.shape[1])) if start is None else start
    scores = features @ weights
    ahead, ahead_scores, speed = weights, scores, 1.0
    # No curvature of the loss is higher: that of all rows, without what intercepts take up.
    highest = 2.0 * losses.C * float(((features - features.mean(axis=0)) ** 2).sum()) or 1.0
    curvature = _FIRST_GUESS * highest
    for n_iter in range(max_iter + 1):
        if n_iter % _BETWEEN_LOOKS == 0 or n_iter == max_iter:
            own = losses.best_intercept(scores)
            gap = _relative_gap(features, losses, weights, scores + own, n_groups)
            if gap <= tol:
                break
        intercept = losses.best_intercept(ahead_scores)
        level = losses.total(ahead_scores + intercept)
        pull = features.T @ (losses.labels * losses.support(ahead_scores + intercept))
        # Few rows have a loss near the end: steps grow until the model breaks down.
        curvature *= 0.9
        while True:
            moved = _shrink(ahead + pull / curvature, 1.0 / curvature, n_groups)
            moved_scores, move = features @ moved, moved - ahead
            model = level - np.vdot(pull, move) + curvature / 2 * np.vdot(move, move)
            if curvature >= highest or losses.total(moved_scores + intercept) <= model:
                break
            curvature = min(2.0 * curvature, highest)
        if np.vdot(move, moved - weights) < 0:
            speed = 1.0
        following = (1.0 + np.sqrt(1.0 + 4.0 * speed**2)) / 2.0
        momentum = (speed - 1.0) / following
        ahead = moved + momentum * (moved - weights)
        ahead_scores = moved_scores + momentum * (moved_scores - scores)
        weights, scores, speed = moved, moved_scores, following
    return GroupSolution(weights, own, gap, max(n_iter, 1))


def _relative_gap(features, losses: Losses, weights, scores, n_groups: int) -> float:
    """Return (objective - dual value) / objective, with the support scaled to be feasible."""
    objective = _norms(weights, n_groups).sum() + losses.total(scores)
    support = losses.support(scores)
    longest = _norms(features.T @ (losses.labels * support), n_groups).max()
    # The dual value of s * support is a parabola in s; groups are at most of length one.
    square = (support**2).sum() / (4.0 * losses.C)
    total = support.sum()
    scale = min(total / (2.0 * square), 1.0 / longest) if square > 0 and longest > 0 else 0.0
    return float((objective - scale * total + scale**2 * square) / max(objective, 1e-300))


def _norms(weights: Array, n_groups: int) -> Array:
    return np.linalg.norm(weights.reshape(n_groups, -1), axis=1)


def _shrink(weights: Array, length: float, n_groups: int) -> Array:
    """Shorten each group by a length, to nothing where it is not longer."""
    norms = _norms(weights, n_groups)
    factors = np.maximum(0.0, 1.0 - length / np.maximum(norms, 1e-300))
    return weights * np.repeat(factors, len(weights) // n_groups)[:, None]

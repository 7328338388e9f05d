"""Power mean SVM: dual coordinate descent with a polynomial in the logarithm."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from mbkl_paper.baselines.base import (
    AT_LEAST_ONE,
    POSITIVE,
    Array,
    CostRival,
    one_vs_rest_labels,
)

# Where the sums are known exactly, and what is added before the logarithm.
ANCHORS = np.array([0.01, 0.06, 0.75])
OFFSET = 0.05
# From values at the anchors to coefficients of 1, log and log^2.
INTERPOLATION = np.linalg.inv(np.vander(np.log(ANCHORS + OFFSET), 3, increasing=True))
# Small data do the first sweeps without a compiler, and need no more as a rule.
_SMALL = 30_000
_PLAIN_SWEEPS = 30


@dataclass(frozen=True)
class Entries:
    """The entries of the rows that are not zero, with a constant feature at the end.

    Parameters
    ----------
    indptr, indices : ndarray
        As in a CSR matrix.
    logs : ndarray of shape (n_entries,)
        log(x + offset).
    updates : ndarray of shape (n_entries, 3) or None
        What the entry of a row adds to the polynomial of its feature; for training rows.
    lengths : ndarray of shape (n_rows,)
        K(x, x), the sums of the rows.
    """

    indptr: NDArray
    indices: NDArray
    logs: Array
    updates: Array | None
    lengths: Array

    @property
    def n_rows(self) -> int:
        return self.lengths.size

    def scores(self, weights: Array) -> Array:
        """Return the sums of the polynomials, of weights (n_features + 1, 3, n_columns)."""
        shape = (self.n_rows, len(weights))
        powers = [np.ones_like(self.logs), self.logs, self.logs**2]
        return sum(
            sparse.csr_array((power, self.indices, self.indptr), shape=shape) @ weights[:, degree]
            for degree, power in enumerate(powers)
        )


class PowerMeanSVM(CostRival):
    """SVM with a power mean kernel, at the cost of a linear one.

    The kernel is the sum over the features of ((x^p + z^p) / 2)^(1 / p): chi2 for p = -1
    and nearly min(x, z) for p = -8. What a feature adds to a score is a smooth function of
    it; a parabola in log(x + 0.05) through three of its values takes its place, so that a
    step of coordinate descent costs as much as in a linear SVM. The loss is the squared
    hinge. Each feature is divided by its largest training value.

    Parameters
    ----------
    p : float, default=-1.0
        Exponent, negative.
    C : float, default=0.01
        Cost.
    tol : float, default=0.1
        Largest difference of projected gradients at which a problem is solved.
    max_iter : int, default=1000
        Largest number of sweeps.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of the rows.
    n_jobs : int or None, default=None
        Classes that are learned side by side; None and -1 mean all cores.

    Attributes
    ----------
    polynomials_ : ndarray of shape (n_features + 1, 3, 1 or n_classes)
        Coefficients of 1, log and log^2 of each feature and of the constant.
    n_iter_ : int

    Notes
    -----
    The approximation at the smallest anchor, 0.01, is the anchor itself for all x, as in
    the program of the author. Since the parabola is no kernel, the iteration need not
    converge at large costs.

    References
    ----------
    J. Wu. "Power Mean SVM for Large Scale Visual Classification." CVPR 2012.

    Examples
    --------
    >>> from mbkl_paper.baselines import PowerMeanSVM
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> PowerMeanSVM(C=1.0, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    _takes_negative = False
    _parameter_constraints: dict = {
        "p": [Interval(Real, None, 0.0, closed="neither")],
        "C": [POSITIVE],
        "tol": [POSITIVE],
        "max_iter": [AT_LEAST_ONE],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(self, p=-1.0, *, C=0.01, tol=0.1, max_iter=1000, random_state=None, n_jobs=None):
        self.p = p
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learn(self, X, numbers) -> None:
        super()._learn(X, numbers)
        self.polynomials_, self.n_iter_ = self._solution

    def _learn_features(self, X) -> Entries:
        self._scaler = MaxAbsScaler().fit(X)
        return self._entries(X, training=True)

    def _features(self, X) -> Entries:
        return self._entries(X, training=False)

    def _entries(self, X, training: bool) -> Entries:
        scaled = sparse.csr_array(self._scaler.transform(X))
        scaled.eliminate_zeros()
        constant = sparse.csr_array(np.ones((X.shape[0], 1)))
        rows = sparse.hstack([scaled, constant], format="csr")
        updates = None
        if training:
            values = power_mean(rows.data[:, None], ANCHORS, self.p)
            values[:, 0] = ANCHORS[0]
            updates = values @ INTERPOLATION.T
        logs = np.log(rows.data + OFFSET)
        return Entries(rows.indptr, rows.indices, logs, updates, rows.sum(axis=1))

    def _solve(self, features: Entries, numbers, C: float, smaller=None) -> tuple[Array, int]:
        """Return the polynomials of all problems, and the sweeps of the longest."""
        labels = one_vs_rest_labels(numbers, self.classes_.size)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=labels.shape[1])
        n_threads = -1 if self.n_jobs is None else self.n_jobs
        solved = Parallel(n_jobs=n_threads, prefer="threads")(
            delayed(self._descend)(features, np.ascontiguousarray(column), C, seed)
            for column, seed in zip(labels.T, seeds, strict=True)
        )
        weights, n_iter = zip(*solved, strict=True)
        if max(n_iter) > self.max_iter:
            warnings.warn(
                f"Coordinate descent did not reach tol={self.tol} in max_iter={self.max_iter} "
                f"sweeps at C={C}; use a smaller C or a larger tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return np.stack(weights, axis=2), min(max(n_iter), self.max_iter)

    def _descend(self, entries: Entries, labels: Array, C: float, seed) -> tuple[Array, int]:
        """Return the polynomials of one problem, and the sweeps (one too many if stopped)."""
        generator = np.random.default_rng(seed)
        n_rows, ridge = entries.n_rows, 0.5 / C
        alpha, active = np.zeros(n_rows), np.ones(n_rows, dtype=bool)
        weights = np.zeros((self.n_features_in_ + 1, 3))
        fixed = (entries.indptr, entries.indices, entries.logs, entries.updates, labels)
        limit = np.inf
        for n_iter in range(1, self.max_iter + 1):
            sweep = _choose_sweep(entries.logs.size, n_iter)
            order = generator.permutation(np.flatnonzero(active))
            largest, smallest = sweep(
                order, *fixed, entries.lengths + ridge, ridge, limit, alpha, weights, active
            )
            # Rows left out so far are looked at once more before the end.
            if largest - smallest <= self.tol:
                if active.all():
                    return weights, n_iter
                active[:], limit = True, np.inf
            else:
                limit = largest if largest > 0 else np.inf
        return weights, self.max_iter + 1

    def _evaluate(self, solution, features: Entries) -> Array:
        return features.scores(solution[0])


def power_mean(x, z, p: float) -> Array:
    """Return ((x^p + z^p) / 2)^(1 / p) of positive numbers.

    Examples
    --------
    >>> float(power_mean(1.0, 3.0, -1.0))
    1.5
    """
    smaller, larger = np.minimum(x, z), np.maximum(x, z)
    # Powers of a ratio of at most one neither overflow nor vanish together.
    return smaller * ((1.0 + (larger / smaller) ** p) / 2.0) ** (1.0 / p)


def _choose_sweep(n_entries: int, n_iter: int):
    """Return the compiled sweep, or its twin for what is done sooner than compiled."""
    is_loaded = "mbkl_paper.baselines.loops" in sys.modules
    if n_entries < _SMALL and n_iter <= _PLAIN_SWEEPS and not is_loaded:
        return plain_sweep
    from mbkl_paper.baselines.loops import power_mean_sweep

    return power_mean_sweep


def plain_sweep(
    order, indptr, indices, logs, updates, labels, diagonal, ridge, limit, alpha, weights, active
) -> tuple[float, float]:
    """Do what `loops.power_mean_sweep` does, with the same bits."""
    largest, smallest = -np.inf, np.inf
    for row in order:
        entries = slice(indptr[row], indptr[row + 1])
        features, places = indices[entries], logs[entries]
        weight = weights[features]
        terms = weight[:, 0] + (weight[:, 1] + weight[:, 2] * places) * places
        gradient = labels[row] * np.cumsum(terms)[-1] - 1.0 + ridge * alpha[row]
        projected = gradient
        if alpha[row] == 0.0:
            if gradient > limit:
                active[row] = False
                continue
            projected = min(gradient, 0.0)
        largest, smallest = max(largest, projected), min(smallest, projected)
        if projected == 0.0:
            continue
        before = alpha[row]
        alpha[row] = max(before - gradient / diagonal[row], 0.0)
        weights[features] += (alpha[row] - before) * labels[row] * updates[entries]
    return largest, smallest

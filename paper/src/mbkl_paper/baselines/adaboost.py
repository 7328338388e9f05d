"""Boosted decision stumps: Real, Gentle and Modest AdaBoost."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import gen_even_slices
from sklearn.utils._param_validation import Interval, StrOptions

from mbkl_paper.baselines.base import AT_LEAST_ONE, Array, Rival, one_vs_rest_labels

# Rows times stumps, problems and rounds: below, NumPy is done before compiled loops are loaded.
_WORTH_COMPILING = 100_000_000
# Sums of a pass that take as long as handing them to a thread.
_SMALLEST_SHARE = 3_000_000
# Weights that sum to one become whole numbers whose sums are exact in any order.
_WHOLE = 2.0**52

Search = Callable[[Array], NDArray[np.intp]]


class Stumps(NamedTuple):
    """Features and thresholds, those of a feature together and in ascending order."""

    features: NDArray[np.intp]
    thresholds: Array


class AdaBoostStumps(Rival):
    """AdaBoost of decision stumps, one-vs-rest.

    Every round finds the stump of least weighted squared error (which is also that of
    least Gini impurity) by one pass over histograms, for all classes side by side, and
    adds a value f on either side of it. With weights D that sum to one, W+ and W- their
    sums over the two classes on that side, and V+ and V- those of the inverted weights
    proportional to 1 - D, the variants differ in f:

    - Real: log(W+ / W-) / 2, with 1 / n_samples added to both;
    - Gentle: (W+ - W-) / (W+ + W-);
    - Modest: W+ (1 - V+) - W- (1 - V-).

    Then D becomes proportional to D exp(-y f).

    Parameters
    ----------
    variant : {"modest", "gentle", "real"}, default="modest"
        The paper does not say which one it used; "modest" is that of the work it cites.
    n_rounds : int, default=500
        Stumps of each class.
    n_bins : int, default=256
        Features with more different values are divided at quantiles.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores.

    Attributes
    ----------
    n_rounds_ : int
        Rounds done; fewer if no stump had anything to add.
    stump_features_, stump_thresholds_ : ndarray of shape (n_stumps,)
        The different stumps that were chosen.
    coef_ : ndarray of shape (1 or n_classes, n_stumps)
        What each adds on its right side, and takes on its left side.
    intercept_ : ndarray of shape (1 or n_classes,)

    References
    ----------
    A. Vezhnevets, V. Vezhnevets. "Modest AdaBoost - Teaching AdaBoost to Generalize
    Better." Graphicon 2005.
    J. Friedman, T. Hastie, R. Tibshirani. "Additive Logistic Regression: a Statistical
    View of Boosting." Annals of Statistics 2000.

    Examples
    --------
    >>> from mbkl_paper.baselines import AdaBoostStumps
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> AdaBoostStumps(n_rounds=20).fit(X, y).score(X, y) > 0.95
    True
    """

    _takes_sparse = False
    _parameter_constraints: dict = {
        "variant": [StrOptions({"gentle", "real", "modest"})],
        "n_rounds": [AT_LEAST_ONE],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(self, variant="modest", *, n_rounds=500, n_bins=256, n_jobs=None):
        self.variant = variant
        self.n_rounds = n_rounds
        self.n_bins = n_bins
        self.n_jobs = n_jobs

    def _learn(self, X, numbers) -> None:
        labels = one_vs_rest_labels(numbers, self.classes_.size)
        stumps = candidates(X, self.n_bins)
        work = X.shape[0] * stumps.thresholds.size * labels.shape[1] * self.n_rounds
        # What was learned by compiled loops predicts by them too.
        self._is_compiled = work >= _WORTH_COMPILING
        if self._is_compiled:
            search = compiled_search(X, stumps, self.n_jobs)
        else:
            search = plain_search(X, stumps)
        self._boost(X, labels, stumps, search)

    def _boost(self, X: Array, labels: Array, stumps: Stumps, search: Search) -> None:
        scores, intercept = np.zeros(labels.shape), np.zeros(labels.shape[1])
        rounds: list[NDArray[np.intp]] = []
        jumps: list[Array] = []
        while len(rounds) < self.n_rounds and stumps.thresholds.size:
            D = np.exp(-labels * scores - (-labels * scores).max(axis=0))
            D /= D.sum(axis=0)
            chosen = search(np.rint(np.hstack([D * (labels > 0), D * (labels < 0)]) * _WHOLE))
            right = X[:, stumps.features[chosen]] > stumps.thresholds[chosen]
            left_value, right_value = (
                _VALUES[self.variant](D, labels, side) for side in (~right, right)
            )
            if not (left_value.any() or right_value.any()):
                break
            scores += np.where(right, right_value, left_value)
            rounds.append(chosen)
            jumps.append((right_value - left_value) / 2.0)
            intercept += (right_value + left_value) / 2.0
        self.n_rounds_, self.intercept_ = len(rounds), intercept
        self._finish(stumps, np.array(rounds, dtype=np.intp), np.array(jumps))

    def _finish(self, stumps: Stumps, rounds: NDArray[np.intp], jumps: Array) -> None:
        """Keep each stump once, and what a feature adds as a table."""
        used, place = np.unique(rounds, return_inverse=True)
        sums = np.zeros((used.size, self.intercept_.size))
        np.add.at(sums, (place.reshape(jumps.shape), np.arange(self.intercept_.size)), jumps)
        # What was added and taken away again is not needed.
        adds = sums.any(axis=1)
        self.coef_ = sums[adds].T
        self.stump_features_ = stumps.features[used[adds]]
        self.stump_thresholds_ = stumps.thresholds[used[adds]]
        asked, first = np.unique(self.stump_features_, return_index=True)
        tables = [np.zeros((0, self.intercept_.size))]
        for own in np.split(sums[adds], first[1:]) if asked.size else ():
            steps = np.cumsum(own, axis=0)
            tables.append(2.0 * np.vstack([0.0 * steps[:1], steps]) - steps[-1])
        offsets = np.append(first, self.stump_features_.size)
        self._tables = (asked, offsets, self.stump_thresholds_, np.concatenate(tables))

    def _scores(self, X) -> Array:
        scores = np.tile(self.intercept_, (X.shape[0], 1))
        if self._is_compiled:
            from mbkl_paper.baselines.loops import add_tables

            add_tables(X, *self._tables, scores)
        else:
            plain_tables(X, *self._tables, scores)
        return scores


def plain_search(X: Array, stumps: Stumps) -> Search:
    """Return what finds the best stump of each problem.

    It takes weights of shape (n_rows, 2 * n_problems), whole numbers: those of the rows of
    the class, then of the others.
    """
    is_right = (X[:, stumps.features] > stumps.thresholds).T.astype(np.float64)

    def search(weights: Array) -> NDArray[np.intp]:
        n_problems = weights.shape[1] // 2
        right = is_right @ weights
        left = weights.sum(axis=0) - right
        # The squared error is 1 - the sum over both sides of (W+ - W-)^2 / (W+ + W-).
        fit = np.zeros((len(right), n_problems))
        for side in (left, right):
            positive, negative = side[:, :n_problems], side[:, n_problems:]
            fit += (positive - negative) ** 2 / np.maximum(positive + negative, 1e-300)
        return fit.argmax(axis=0)

    return search


def compiled_search(X: Array, stumps: Stumps, n_jobs: int | None) -> Search:
    """Return what does the same by histograms, feature by feature."""
    from mbkl_paper.baselines.loops import best_stumps

    n_features = X.shape[1]
    offsets = np.searchsorted(stumps.features, np.arange(n_features + 1))
    codes = np.empty(X.shape[::-1], dtype=np.min_scalar_type(np.diff(offsets).max()))
    for feature, column in enumerate(X.T):
        own = slice(offsets[feature], offsets[feature + 1])
        codes[feature] = np.searchsorted(stumps.thresholds[own], column)
    n_threads = effective_n_jobs(-1 if n_jobs is None else n_jobs)

    def search(weights: Array) -> NDArray[np.intp]:
        n_problems = weights.shape[1] // 2
        fits = np.empty((n_features, n_problems))
        best = np.empty((n_features, n_problems), dtype=np.intp)
        totals = weights.sum(axis=0)
        arguments = (codes, offsets, weights.astype(np.int64), totals, fits, best)
        n_shares = min(n_threads, n_features, 1 + codes.size * 2 * n_problems // _SMALLEST_SHARE)
        Parallel(n_jobs=n_shares, prefer="threads")(
            delayed(best_stumps)(*arguments, part.start, part.stop)
            for part in gen_even_slices(n_features, n_shares)
        )
        return best[fits.argmax(axis=0), np.arange(n_problems)]

    return search


def plain_tables(X, features, offsets, thresholds, tables, scores) -> None:
    """Add to the scores, of every feature, the line of its table that a row falls in.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    features : ndarray of shape (n_groups,)
    offsets : ndarray of shape (n_groups + 1,)
        Thresholds of group g are offsets[g] to offsets[g + 1] - 1; its table has a line more.
    thresholds : ndarray of shape (n_stumps,)
    tables : ndarray of shape (n_stumps + n_groups, n_columns)
    scores : ndarray of shape (n_rows, n_columns)
        Written.
    """
    for group, feature in enumerate(features):
        own = thresholds[offsets[group] : offsets[group + 1]]
        scores += tables[offsets[group] + group + np.searchsorted(own, X[:, feature])]


def candidates(X: Array, n_bins: int) -> Stumps:
    """Return the stumps between neighbouring values of each feature, or at quantiles."""
    thresholds = []
    for column in X.T:
        values = np.unique(column)
        if values.size > n_bins:
            places = np.arange(1, n_bins) * column.size // n_bins
            lower = np.unique(np.sort(column)[places - 1])
            lower = lower[lower < values[-1]]
            upper = values[np.searchsorted(values, lower) + 1]
        else:
            lower, upper = values[:-1], values[1:]
        middle = lower / 2 + upper / 2
        # Between two neighbouring numbers there may be no third.
        thresholds.append(np.where(middle < upper, middle, lower))
    sizes = [piece.size for piece in thresholds]
    return Stumps(np.repeat(np.arange(X.shape[1]), sizes), np.concatenate(thresholds))


def _real(D: Array, labels: NDArray, side: NDArray) -> Array:
    positive, negative = _sums(D, labels, side)
    # A side without one of the classes would weigh infinitely.
    return np.log((positive + 1 / len(D)) / (negative + 1 / len(D))) / 2.0


def _gentle(D: Array, labels: NDArray, side: NDArray) -> Array:
    positive, negative = _sums(D, labels, side)
    return (positive - negative) / np.maximum(positive + negative, 1e-300)


def _modest(D: Array, labels: NDArray, side: NDArray) -> Array:
    inverted = (1.0 - D) / (1.0 - D).sum(axis=0)
    positive, negative = _sums(D, labels, side)
    far_positive, far_negative = _sums(inverted, labels, side)
    return positive * (1.0 - far_positive) - negative * (1.0 - far_negative)


def _sums(weights: Array, labels: NDArray, side: NDArray) -> tuple[Array, Array]:
    """Return the weights of either class on one side."""
    inside = weights * side
    return (inside * (labels > 0)).sum(axis=0), (inside * (labels < 0)).sum(axis=0)


_VALUES = {"gentle": _gentle, "real": _real, "modest": _modest}

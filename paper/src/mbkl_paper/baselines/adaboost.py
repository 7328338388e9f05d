"""Boosted decision stumps: Real, Gentle and Modest AdaBoost."""

from __future__ import annotations

from functools import partial
from numbers import Integral

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.utils import gen_even_slices
from sklearn.utils._param_validation import Interval, StrOptions

from mbkl_paper.baselines.base import AT_LEAST_ONE, Array, Rival
from mbkl.engine import choose_engine
from mbkl.engine.codes import DenseCodes, densify
from mbkl.engine.fixed_point import to_fixed_point, total_of
from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.learn.classifier_weights import one_vs_rest_labels
from mbkl.learn.tables import Ladder
from mbkl.maps.binning import BinEdges, bin_columns
from mbkl.maps.families import MapSet
from mbkl.maps.stumps import StumpMaps
from mbkl.predictor import TablePredictor

_FEW_ROUNDS = 20
# Sums of a pass that take as long as handing them to a thread.
_SMALLEST_SHARE = 3_000_000


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
        maps = candidates(X, self.n_bins)
        # Many passes over few rows are worth compiled kernels too.
        n_passes = max(1, self.n_rounds // _FEW_ROUNDS)
        engine = choose_engine(2 * X.size * labels.shape[1] * n_passes, self.n_jobs)
        codes = densify(bin_columns(X, maps.features, maps.edges, engine))
        search = plain_search if type(engine) is NumpyEngine else _compiled_search
        self._boost(maps, codes, labels, partial(search, maps.cells, codes, engine))

    def _boost(self, maps: StumpMaps, codes: DenseCodes, labels: NDArray, search) -> None:
        cells, scores = maps.cells, np.zeros(labels.shape)
        intercept = np.zeros(labels.shape[1])
        stumps: list[NDArray] = []
        jumps: list[Array] = []
        while len(stumps) < self.n_rounds and maps.n_maps:
            D = np.exp(-labels * scores - (-labels * scores).max(axis=0))
            D /= D.sum(axis=0)
            chosen = search(*to_fixed_point(np.hstack([D * (labels > 0), D * (labels < 0)])))
            group = cells.group[chosen]
            right = chosen - cells.offsets[group] <= codes.values[group].T
            left_value, right_value = (
                _VALUES[self.variant](D, labels, side) for side in (~right, right)
            )
            if not (left_value.any() or right_value.any()):
                break
            scores += np.where(right, right_value, left_value)
            stumps.append(chosen)
            jumps.append((right_value - left_value) / 2.0)
            intercept += (right_value + left_value) / 2.0
        self._finish(maps, np.array(stumps), np.array(jumps), intercept)

    def _finish(self, maps: StumpMaps, stumps: NDArray, jumps: Array, intercept: Array) -> None:
        used, place = np.unique(stumps.astype(np.int64), return_inverse=True)
        sums = np.zeros((used.size, intercept.size))
        np.add.at(sums, (place.reshape(jumps.shape), np.arange(intercept.size)), jumps)
        # What was added and taken away again is not needed.
        adds = sums.any(axis=1)
        jumps = sums[adds]
        is_used = np.zeros(maps.cells.n_cells, dtype=bool)
        is_used[used[adds]] = True
        kept = maps.select(is_used[maps.cells.is_map])
        self.coef_, self.intercept_ = jumps.T, intercept
        self.stump_features_, self.stump_thresholds_ = kept.stump_features, kept.edges.thresholds
        self.n_rounds_ = len(stumps)
        everything = MapSet((kept,))
        tables = everything.tables(jumps)
        self._predictor = TablePredictor(everything, tables, intercept, self.n_jobs)

    def _scores(self, X) -> Array:
        return self._predictor.scores(X)


def plain_search(cells: Ladder, codes: DenseCodes, engine, weights: NDArray, unit) -> NDArray:
    """Return the cell at whose left edge the best stump of each problem is.

    Parameters
    ----------
    cells, codes, engine
        The stumps, the rows and what sums over them.
    weights : ndarray of shape (n_rows, 2 * n_problems)
        Fixed-point numbers: those of the rows of the class, then of the others.
    unit : ndarray of shape (2 * n_problems,)
        What one is worth.
    """
    n_problems = unit.size // 2
    right = cells.mass(engine.histogram(codes, weights)) * unit
    left = total_of(weights, unit) - right
    # The squared error is 1 - the sum over both sides of (W+ - W-)^2 / (W+ + W-).
    fit = np.zeros((cells.n_cells, n_problems))
    for side in (left, right):
        positive, negative = side[:, :n_problems], side[:, n_problems:]
        fit += (positive - negative) ** 2 / np.maximum(positive + negative, 1e-300)
    fit[~cells.is_map] = -1.0
    return fit.argmax(axis=0)


def _compiled_search(cells: Ladder, codes: DenseCodes, engine, weights, unit) -> NDArray:
    """Do the same, group by group: no histogram of all cells is ever stored."""
    from mbkl_paper.baselines.kernels import best_stumps

    n_problems = unit.size // 2
    fits = np.empty((codes.n_groups, n_problems))
    stumps = np.empty((codes.n_groups, n_problems), dtype=np.int64)
    n_shares = min(engine.n_threads, 1 + codes.n_stored * unit.size // _SMALLEST_SHARE)
    arguments = (codes.values, codes.offsets, weights, unit, total_of(weights, unit), fits, stumps)
    Parallel(n_jobs=n_shares, prefer="threads")(
        delayed(best_stumps)(*arguments, part.start, part.stop)
        for part in gen_even_slices(codes.n_groups, min(n_shares, codes.n_groups))
    )
    return stumps[fits.argmax(axis=0), np.arange(n_problems)]


def candidates(X: Array, n_bins: int) -> StumpMaps:
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
    sizes = np.array([piece.size for piece in thresholds])
    kept = np.flatnonzero(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
    everything = np.concatenate(thresholds)
    return StumpMaps(kept, BinEdges(everything, offsets), np.ones(everything.size, dtype=np.int64))


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

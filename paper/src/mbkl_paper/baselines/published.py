"""MBKL as its authors ran it: Algorithm 1 to the letter, with liblinear's solvers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Options, StrOptions

from mbkl_paper.baselines.base import (
    AT_LEAST_ONE,
    POSITIVE,
    Array,
    CostRival,
    one_vs_rest_labels,
)
from mbkl_paper.baselines.l1_svm import l1_svm
from mbkl_paper.baselines.linear import LinearSVM

# Maps on all rows, -1 or +1, a line for each map.
Maps = NDArray[np.int8]

_MAPS_OF_A_FEATURE, _FEWEST_MAPS = 64, 2_000
# Maps that are turned to floating point at a time.
_MAPS_AT_ONCE = 2_000


@dataclass(frozen=True)
class Published:
    """What the steps have found.

    Parameters
    ----------
    weights : ndarray of shape (n_maps,)
        Of Step 1, before those that are not positive are dropped.
    n_iter : int
        Sweeps of Step 1.
    seconds : float
        Of Steps 0 and 1.
    C_kernel : float
        Cost of Step 1.
    coef : ndarray of shape (1 or n_classes, n_kept)
        What each map with a positive weight adds to a score.
    intercept : ndarray of shape (1 or n_classes,)
    """

    weights: Array
    n_iter: int
    seconds: float
    C_kernel: float
    coef: Array
    intercept: Array

    @property
    def kept(self) -> NDArray[np.intp]:
        """Maps with a positive weight."""
        return np.flatnonzero(self.weights > 0)


class Pairs(NamedTuple):
    """Samples of Step 1: rows, classes that they are asked about, and the answers, +1 or -1."""

    rows: NDArray[np.intp]
    classes: NDArray[np.intp]
    labels: NDArray[np.int8]


class PublishedMBKL(CostRival):
    """Multiple Binary Kernel Learning as published.

    Step 1 is liblinear's l1-regularised SVM (`-s 5`), which knows of no constraint and stops
    early; weights that are not positive are dropped afterwards. It keeps many times more maps
    than the minimum with theta >= 0 that `mbkl.MBKLClassifier` computes. No maps are
    merged, weights are not scaled, and C is the cost of a sample.

    Parameters
    ----------
    n_maps : int or "auto", default="auto"
        Number of random stumps; "auto" is 64 a feature, at least 2,000.
    init_rule : {"median", "balanced", "printed"}, default="median"
        Step 0. "median" is the table of the paper with its signs corrected, "printed" is
        that table as it stands, and "balanced" puts each class on the side of a map
        where its share is larger.
    theta_power : {0.5, 1}, default=1
        Step 2 sees the maps times theta to this power: 1 is printed, and 0.5 belongs to the
        kernel that Step 1 learns.
    C : float, default=1.0
        Cost of a row in Step 2.
    C_kernel : float or None, default=None
        Cost of a sample in Step 1; None means C.
    negatives_per_positive : int, default=2
        Wrong classes that each row is asked about in Step 1.
    tol : float, default=0.01
        Tolerance of both steps, liblinear's default.
    max_iter : int, default=1000
        Largest number of sweeps of Step 1, and of Newton iterations of Step 2.
    random_state : int, RandomState instance or None, default=None
        Seed of maps and samples.

    Attributes
    ----------
    theta_ : ndarray of shape (n_maps,)
        Weights of the maps, zero where they are dropped.
    n_maps_, n_dropped_ : int
        Number of maps kept, and of those whose weight was negative.
    stump_features_, stump_thresholds_ : ndarray of shape (n_maps,)
    coef_ : ndarray of shape (1 or n_classes, n_maps_)
    intercept_ : ndarray of shape (1 or n_classes,)
    n_iter_ : int
        Sweeps of Step 1.
    timings_ : dict
        Seconds of Steps 0 and 1.

    References
    ----------
    G. Roig, X. Boix, L. Van Gool. "Random Decision Stumps for Kernel Learning and
    Efficient SVM." ACCV 2014.

    Examples
    --------
    >>> from mbkl_paper.baselines import PublishedMBKL
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> PublishedMBKL(n_maps=300, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints: dict = {
        "n_maps": [AT_LEAST_ONE, StrOptions({"auto"})],
        "init_rule": [StrOptions({"median", "balanced", "printed"})],
        "theta_power": [Options(Real, {0.5, 1})],
        "C": [POSITIVE],
        "C_kernel": [POSITIVE, None],
        "negatives_per_positive": [AT_LEAST_ONE],
        "tol": [POSITIVE],
        "max_iter": [AT_LEAST_ONE],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_maps="auto",
        *,
        init_rule="median",
        theta_power=1,
        C=1.0,
        C_kernel=None,
        negatives_per_positive=2,
        tol=0.01,
        max_iter=1000,
        random_state=None,
    ):
        self.n_maps = n_maps
        self.init_rule = init_rule
        self.theta_power = theta_power
        self.C = C
        self.C_kernel = C_kernel
        self.negatives_per_positive = negatives_per_positive
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _learn(self, X, numbers) -> None:
        super()._learn(X, numbers)
        found = self._solution
        self.theta_, self.n_iter_ = np.maximum(found.weights, 0.0), found.n_iter
        self.n_maps_, self.n_dropped_ = found.kept.size, int((found.weights < 0).sum())
        self.coef_, self.intercept_ = found.coef, found.intercept
        self.timings_ = {"kernel weights": found.seconds}

    # Maps --------------------------------------------------------------------------------------

    def _learn_features(self, X) -> Maps:
        """Draw stumps: a feature, and a threshold in the interval of its training values."""
        generator = check_random_state(self.random_state)
        n_maps = self.n_maps
        if n_maps == "auto":
            n_maps = max(_MAPS_OF_A_FEATURE * X.shape[1], _FEWEST_MAPS)
        low, high = (_dense(bound).ravel() for bound in (X.min(axis=0), X.max(axis=0)))
        self.stump_features_ = features = generator.randint(X.shape[1], size=n_maps)
        self.stump_thresholds_ = generator.uniform(low[features], high[features])
        self._seed = int(generator.randint(2**31 - 1))
        return self._features(X)

    def _features(self, X) -> Maps:
        columns = sparse.csc_array(X) if sparse.issparse(X) else X
        maps = np.empty((len(self.stump_features_), X.shape[0]), dtype=np.int8)
        for some in _blocks(len(maps)):
            values = _dense(columns[:, self.stump_features_[some]])
            maps[some] = np.where(values > self.stump_thresholds_[some], 1, -1).T
        return maps

    # Steps -------------------------------------------------------------------------------------

    def _solve(self, features: Maps, numbers, C: float, smaller=None) -> Published:
        C_kernel = C if self.C_kernel is None else self.C_kernel
        if smaller is not None and smaller.C_kernel == C_kernel:
            weights, n_iter, seconds = smaller.weights, smaller.n_iter, smaller.seconds
        else:
            began = time.perf_counter()
            weights, n_iter = self._kernel_weights(features, numbers, C_kernel)
            seconds = time.perf_counter() - began
        kept = weights > 0
        coef, intercept = self._classifier(features[kept], weights[kept], numbers, C)
        return Published(weights, n_iter, seconds, C_kernel, coef, intercept)

    def _kernel_weights(self, maps: Maps, numbers, C: float) -> tuple[Array, int]:
        """Run Steps 0 and 1; return theta before any is dropped, and the sweeps."""
        columns, labels, useful = self.signed_maps(maps, numbers)
        options = {"tol": self.tol, "max_iter": self.max_iter, "seed": self._seed}
        weights, n_iter = l1_svm(columns, labels, C, **options)
        theta = np.zeros(len(maps))
        theta[useful] = weights[:-1]
        return theta, n_iter

    def signed_maps(self, maps: Maps, numbers) -> tuple[Maps, NDArray, NDArray[np.intp]]:
        """Run Step 0; return what liblinear is given, and which maps its columns are.

        The last column is the intercept.
        """
        n_classes = self.classes_.size
        signs = initial_signs(maps, one_vs_rest_labels(numbers, n_classes), self.init_rule)
        pairs = draw_pairs(numbers, n_classes, self.negatives_per_positive, self._seed)
        useful = np.flatnonzero(signs.any(axis=1))
        columns = np.empty((useful.size + 1, pairs.rows.size), dtype=np.int8)
        columns[-1] = 1
        for some in _blocks(useful.size):
            chosen = useful[some]
            columns[some] = maps[chosen][:, pairs.rows] * signs[chosen][:, pairs.classes]
        return columns, pairs.labels, useful

    def _classifier(self, maps: Maps, theta: Array, numbers, C: float) -> tuple[Array, Array]:
        """Run Step 2 on theta^power * (map, not map); return weights of the maps and intercepts.

        The two columns of a map have the scalar products of one column of -1 and +1 over the
        root of two, and of a constant one, which all maps share.
        """
        scale = theta**self.theta_power / np.sqrt(2.0)
        constant = np.sqrt((scale**2).sum())
        columns = np.empty((maps.shape[1], theta.size + 1))
        columns[:, :-1], columns[:, -1] = maps.T * scale, constant
        svm = LinearSVM(C=C, tol=self.tol, max_iter=self.max_iter).fit(columns, numbers)
        return svm.coef_[:, :-1] * scale, svm.intercept_ + svm.coef_[:, -1] * constant

    def _evaluate(self, solution: Published, features: Maps) -> Array:
        kept = solution.kept
        scores = np.tile(solution.intercept, (features.shape[1], 1))
        for some in _blocks(kept.size):
            scores += features[kept[some]].T.astype(np.float64) @ solution.coef[:, some].T
        return scores


def initial_signs(maps: Maps, labels: Array, rule: str) -> NDArray[np.int8]:
    """Return Step 0: +1, -1 or 0 for each map and class.

    Parameters
    ----------
    maps : ndarray of shape (n_maps, n_rows)
    labels : ndarray of shape (n_rows, 1 or n_classes)
        +1 where the row is of the class, else -1.
    rule : {"median", "balanced", "printed"}
        See `PublishedMBKL`.

    Examples
    --------
    >>> import numpy as np
    >>> maps = np.array([[1, 1, -1, -1], [1, 1, 1, -1]], dtype=np.int8)
    >>> labels = np.array([[1], [1], [-1], [-1]])
    >>> [initial_signs(maps, labels, rule).ravel().tolist() for rule in ("median", "balanced")]
    [[1, 0], [1, 1]]
    """
    own = (labels > 0) / np.maximum((labels > 0).sum(axis=0), 1)
    rest = (labels < 0) / np.maximum((labels < 0).sum(axis=0), 1)
    signs = np.empty((len(maps), labels.shape[1]), dtype=np.int8)
    for some in _blocks(len(maps)):
        above = (maps[some] > 0).astype(np.float64)
        of_class, of_others = above @ own, above @ rest
        if rule == "balanced":
            difference = of_class - of_others
            signs[some] = np.where(np.abs(difference) > 1e-12, np.sign(difference), 0)
        else:
            # Shares are ratios of whole numbers: a rounding error below one half is one half.
            halves = [np.where(share >= 0.5 - 1e-12, 1, 0) for share in (of_class, of_others)]
            signs[some] = halves[0] - halves[1]
    return -signs if rule == "printed" else signs


def draw_pairs(numbers: NDArray[np.intp], n_classes: int, n_wrong: int, seed: int) -> Pairs:
    """Return each row with its own class, and with so many others drawn at random.

    With two classes both questions are one, and each row is asked once.

    Examples
    --------
    >>> import numpy as np
    >>> draw_pairs(np.array([0, 1, 2]), 3, 2, seed=0).labels
    array([ 1, -1, -1,  1, -1, -1,  1, -1, -1], dtype=int8)
    """
    n_rows = len(numbers)
    if n_classes == 2:
        labels = np.where(numbers == 1, 1, -1).astype(np.int8)
        return Pairs(np.arange(n_rows), np.zeros(n_rows, dtype=np.intp), labels)
    n_wrong = min(n_wrong, n_classes - 1)
    generator = np.random.default_rng(seed)
    others = np.tile(np.arange(1, n_classes), (n_rows, 1))
    steps = generator.permuted(others, axis=1)[:, :n_wrong]
    wrong = (numbers[:, None] + steps) % n_classes
    classes = np.column_stack([numbers, wrong]).ravel()
    labels = np.tile(np.array([1] + [-1] * n_wrong, dtype=np.int8), n_rows)
    return Pairs(np.repeat(np.arange(n_rows), 1 + n_wrong), classes, labels)


def _blocks(n_maps: int) -> list[slice]:
    starts = range(0, n_maps, _MAPS_AT_ONCE)
    return [slice(start, min(start + _MAPS_AT_ONCE, n_maps)) for start in starts]


def _dense(values) -> NDArray:
    return values.toarray() if sparse.issparse(values) else np.asarray(values)

"""SVM with an exact chi2, RB-chi2 or intersection kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import SVC
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import _ovr_decision_function

from mbkl_paper.baselines.additive_kernels import chi2_distance, chi2_kernel, intersection_kernel
from mbkl_paper.baselines.base import POSITIVE, Array, CostRival, one_vs_rest_labels
from mbkl_paper.baselines.fast_intersection import ExactFunctions, Tables

_COMPARISONS = {
    "chi2": chi2_kernel,
    "rb_chi2": chi2_distance,
    "intersection": intersection_kernel,
}
# Numbers in the functions of the fast evaluation; beyond, the kernel is computed.
_MOST_NUMBERS = 50_000_000


@dataclass(frozen=True)
class DualSolution:
    """A score is kernel row @ coefficients + intercept.

    Parameters
    ----------
    coefficients : ndarray of shape (n_rows, n_columns)
        Labels times dual variables.
    intercept : ndarray of shape (n_columns,)
    is_final : ndarray of shape (n_columns,)
        Whether no dual variable is at its upper bound: larger costs change nothing.
    """

    coefficients: Array
    intercept: Array
    is_final: NDArray[np.bool_]


class KernelSVM(CostRival):
    """SVM with a kernel of histograms, solved by libsvm.

    Parameters
    ----------
    kernel : {"chi2", "rb_chi2", "intersection"}, default="chi2"
        "chi2" is sum 2 x z / (x + z), "intersection" is sum min(x, z), and "rb_chi2" is
        exp(-D / mean D) with D = sum (x - z)^2 / (x + z) and its mean over all pairs of
        training rows. Features must not be negative.
    C : float, default=1.0
        Cost of the hinge loss, summed over rows.
    multi_class : {"ovr", "ovo"}, default="ovr"
        One problem for each class against the rest, or one for each pair of classes
        and a vote, as libsvm does by itself.
    tol : float, default=1e-3
        Tolerance of libsvm.
    cache_size : float, default=1000
        Megabytes that libsvm may use to keep rows of the kernel.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores.

    Attributes
    ----------
    gamma_ : float
        One over the mean distance, with kernel="rb_chi2".
    support_ : ndarray of shape (n_support,)
        Numbers of the rows that have a coefficient.
    support_vectors_ : ndarray of shape (n_support, n_features)
    dual_coef_ : ndarray of shape (n_problems, n_support)
    intercept_ : ndarray of shape (n_problems,)

    Notes
    -----
    The intersection kernel is evaluated feature by feature, by binary search among the
    support values, unless the functions of all features and problems are too large.

    References
    ----------
    C.-C. Chang, C.-J. Lin. "LIBSVM: A Library for Support Vector Machines." ACM TIST 2011.
    S. Maji, A. Berg, J. Malik. "Efficient Classification for Additive Kernel SVMs." PAMI
    2013.
    J. Zhang et al. "Local Features and Kernels for Classification of Texture and Object
    Categories." IJCV 2007 (the width of the RB-chi2 kernel).

    Examples
    --------
    >>> from mbkl_paper.baselines import KernelSVM
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelSVM("rb_chi2", C=10).fit(X, y).score(X, y) > 0.95
    True
    """

    _takes_negative = False
    _parameter_constraints: dict = {
        "kernel": [StrOptions(set(_COMPARISONS))],
        "C": [POSITIVE],
        "multi_class": [StrOptions({"ovr", "ovo"})],
        "tol": [POSITIVE],
        "cache_size": [POSITIVE],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        kernel="chi2",
        *,
        C=1.0,
        multi_class="ovr",
        tol=1e-3,
        cache_size=1000,
        n_jobs=None,
    ):
        self.kernel = kernel
        self.C = C
        self.multi_class = multi_class
        self.tol = tol
        self.cache_size = cache_size
        self.n_jobs = n_jobs

    def _learn(self, X, numbers) -> None:
        gram = self._kernel_of_training_rows(self._share(X))
        solution = self._solve(gram, numbers, self.C)
        self.support_ = np.flatnonzero(solution.coefficients.any(axis=1))
        support = X[self.support_]
        self.support_vectors_ = support.toarray() if sparse.issparse(X) else support
        self.dual_coef_ = solution.coefficients[self.support_].T
        self.intercept_ = solution.intercept
        self._functions = self._fast_functions()

    def _fast_functions(self) -> ExactFunctions | Tables | None:
        n_numbers = self.support_vectors_.size * len(self.dual_coef_)
        if self.kernel != "intersection" or n_numbers > _MOST_NUMBERS:
            return None
        return ExactFunctions.of(self.support_vectors_, self.dual_coef_.T)

    def _scores(self, X) -> Array:
        if self._functions is not None:
            dense = X.toarray() if sparse.issparse(X) else X
            return self._votes(self._functions.scores(dense) + self.intercept_)
        compared = _COMPARISONS[self.kernel](X, self.support_vectors_, n_jobs=self.n_jobs)
        return self._votes(self._kernel(compared) @ self.dual_coef_.T + self.intercept_)

    def _share(self, X) -> Array:
        """Compare all rows with each other."""
        return _COMPARISONS[self.kernel](X, n_jobs=self.n_jobs)

    def _part(self, shared, train, test):
        gram = self._kernel_of_training_rows(shared[np.ix_(train, train)])
        return gram, self._kernel(shared[np.ix_(test, train)])

    def _kernel_of_training_rows(self, compared: Array) -> Array:
        if self.kernel == "rb_chi2":
            n_rows = len(compared)
            mean = compared.sum() / (n_rows * (n_rows - 1))
            self.gamma_ = 1.0 / mean if mean > 0 else 1.0
        return self._kernel(compared)

    def _kernel(self, compared: Array) -> Array:
        if self.kernel != "rb_chi2":
            return compared
        compared *= -self.gamma_
        return np.exp(compared, out=compared)

    def _solve(
        self, features: Array, numbers, C: float, smaller: DualSolution | None = None
    ) -> DualSolution:
        def solve(column: int, rows: NDArray, labels: NDArray):
            if smaller is not None and smaller.is_final[column]:
                return smaller.coefficients[:, column], smaller.intercept[column], True
            gram = features if len(rows) == len(features) else features[np.ix_(rows, rows)]
            machine = SVC(C=C, kernel="precomputed", tol=self.tol, cache_size=self.cache_size)
            machine.fit(gram, labels)
            coefficients = np.zeros(len(features))
            coefficients[rows[machine.support_]] = machine.dual_coef_[0]
            is_final = bool(np.abs(machine.dual_coef_).max(initial=0.0) < C * (1 - 1e-9))
            return coefficients, machine.intercept_[0], is_final

        n_threads = -1 if self.n_jobs is None else self.n_jobs
        solved = Parallel(n_jobs=n_threads, prefer="threads")(
            delayed(solve)(column, *problem)
            for column, problem in enumerate(self._problems(numbers))
        )
        coefficients, intercept, is_final = zip(*solved, strict=True)
        return DualSolution(np.column_stack(coefficients), np.array(intercept), np.array(is_final))

    def _problems(self, numbers: NDArray[np.intp]) -> Iterator[tuple[NDArray, NDArray]]:
        """Yield rows and labels of each problem of two classes."""
        n_classes = int(numbers.max()) + 1
        if self.multi_class == "ovr" or n_classes == 2:
            for labels in one_vs_rest_labels(numbers, n_classes).T:
                yield np.arange(numbers.size), labels
        else:
            for first, second in combinations(range(n_classes), 2):
                rows = np.flatnonzero((numbers == first) | (numbers == second))
                yield rows, np.where(numbers[rows] == second, 1, -1)

    def _evaluate(self, solution: DualSolution, features: Array) -> Array:
        return self._votes(features @ solution.coefficients + solution.intercept)

    def _votes(self, scores: Array) -> Array:
        """Return scores of classes from those of problems."""
        n_classes = self.classes_.size
        if self.multi_class == "ovr" or n_classes == 2:
            return scores
        return _ovr_decision_function(scores > 0, scores, n_classes)

"""Approximate intersection-kernel SVMs: tables after training, or encodings before it."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils._param_validation import StrOptions

from mbkl_paper.baselines.base import AT_LEAST_ONE, FeatureMap
from mbkl_paper.baselines.fast_intersection import Tables
from mbkl_paper.baselines.kernel_svm import KernelSVM


class ApproximateIntersectionSVM(KernelSVM):
    """Intersection-kernel SVM whose scores are read from tables.

    The SVM is trained exactly. What a feature adds to a score is a function of that
    feature alone; it is tabulated at the ends of equal bins between zero and the largest
    support value, and linear in between. The cost of a row does not depend on the number
    of support vectors.

    Parameters
    ----------
    n_bins : int, default=100
        Bins of each feature.
    C, multi_class, tol, cache_size, n_jobs
        See `KernelSVM`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_
        See `KernelSVM`.

    References
    ----------
    S. Maji, A. Berg, J. Malik. "Efficient Classification for Additive Kernel SVMs." PAMI
    2013.

    Examples
    --------
    >>> from mbkl_paper.baselines import ApproximateIntersectionSVM
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ApproximateIntersectionSVM(C=10).fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints: dict = {
        **KernelSVM._parameter_constraints,
        "n_bins": [AT_LEAST_ONE],
    }
    _parameter_constraints.pop("kernel")

    def __init__(
        self, n_bins=100, *, C=1.0, multi_class="ovr", tol=1e-3, cache_size=1000, n_jobs=None
    ):
        super().__init__(
            "intersection",
            C=C,
            multi_class=multi_class,
            tol=tol,
            cache_size=cache_size,
            n_jobs=n_jobs,
        )
        self.n_bins = n_bins

    def _fast_functions(self) -> Tables:
        return Tables.of(self.support_vectors_, self.dual_coef_.T, self.n_bins)


class IntersectionEncoding(FeatureMap):
    """Sparse encoding whose scalar products approximate the intersection kernel.

    A feature, divided by its largest training value and multiplied by the number of
    bins, fills so many of its columns with ones. A linear SVM on these columns is an
    approximate intersection-kernel SVM that never forms a kernel matrix.

    Parameters
    ----------
    encoding : {"phi_2", "phi_1"}, default="phi_2"
        "phi_1" rounds to whole columns, "phi_2" fills the last one in part: the model is
        piecewise constant or piecewise linear.
    n_bins : int, default=100
        Columns for each feature.

    Attributes
    ----------
    highest_ : ndarray of shape (n_features,)
        Largest training values. Values beyond count as the largest.

    References
    ----------
    S. Maji, A. Berg. "Max-Margin Additive Classifiers for Detection." ICCV 2009.

    Examples
    --------
    >>> from mbkl_paper.baselines import IntersectionEncoding
    >>> phi = IntersectionEncoding("phi_2", n_bins=10).fit_transform([[0.32], [1.0]])
    >>> float((phi[[0]] @ phi[[1]].T).toarray()[0, 0].round(6))
    0.32
    """

    _takes_negative = False
    _parameter_constraints: dict = {
        "encoding": [StrOptions({"phi_1", "phi_2"})],
        "n_bins": [AT_LEAST_ONE],
    }

    def __init__(self, encoding="phi_2", n_bins=100):
        self.encoding = encoding
        self.n_bins = n_bins

    def _learn(self, X) -> int:
        self.highest_ = MaxAbsScaler().fit(X).max_abs_
        return self.n_bins * X.shape[1]

    def _map(self, X) -> sparse.csr_array:
        rows = sparse.csr_array(X)
        scale = np.where(self.highest_ > 0, self.highest_, 1.0)[rows.indices]
        levels = np.minimum(rows.data / scale, 1.0) * self.n_bins
        if self.encoding == "phi_1":
            levels = np.rint(levels)
        # An entry of level 2.3 becomes columns 1, 1 and 0.3.
        counts = np.ceil(levels).astype(np.int64)
        ends = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
        columns = np.repeat(rows.indices.astype(np.int64) * self.n_bins, counts) + within
        heights = np.repeat(np.sqrt(scale / self.n_bins), counts)
        data = np.minimum(np.repeat(levels, counts) - within, 1.0) * heights
        # liblinear takes no longer numbers than these.
        index = np.int32 if max(ends[-1], self._n_features_out) < 2**31 else np.int64
        places = (columns.astype(index), ends[rows.indptr].astype(index))
        return sparse.csr_array((data, *places), shape=(X.shape[0], self._n_features_out))

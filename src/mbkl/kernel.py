"""MBKernel: the learned kernel by itself, as a transformer and a kernel function."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from mbkl.base import BinaryMapsEstimator
from mbkl.engine import choose_engine
from mbkl.engine.codes import DenseCodes, densify
from mbkl.learn.tables import Cells
from mbkl.progress import CallbackSupportMixin, Progress, with_callbacks


class MBKernel(CallbackSupportMixin, TransformerMixin, BinaryMapsEstimator):
    """Kernel learned as a weighted sum of random binary maps.

    K(x, z) is the total weight of the maps on which x and z agree, between 0 and 1.
    With psi the running sums of theta along each feature, that of stumps equals
    1 - ||psi(x) - psi(z)||_1, so that a pair costs one step per feature, not per map.

    Parameters
    ----------
    maps, n_maps, theta, init_rule, negatives_per_positive, max_pairs, loss
        See `MBKLClassifier`.
    C_kernel : float, default=1.0
        Cost of Step 1; see `MBKLClassifier`.
    class_weight, tol, max_iter, random_state, n_jobs, verbose
        See `MBKLClassifier`.
    sparse_output : bool, default=True
        Whether `transform` returns a CSR matrix; a dense array otherwise, as
        `set_output` needs it.

    Attributes
    ----------
    theta_, n_maps_, stump_features_, stump_thresholds_, classes_, timings_
        See `MBKLClassifier`.
    fern_features_, fern_thresholds_, feature_rates_
        See `MBKLClassifier`.
    n_iter_ : int
        Iterations of Step 1.

    See Also
    --------
    MBKLClassifier : The kernel with its classifier.

    Examples
    --------
    >>> from mbkl import MBKernel
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> kernel = MBKernel(random_state=0).fit(X, y)
    >>> bool(kernel.kernel(X[:2]).diagonal().min() > 0.999)
    True
    >>> SVC(kernel=kernel.kernel).fit(X, y).score(X, y) > 0.9
    True
    """

    _parameter_constraints: dict = {
        **BinaryMapsEstimator._parameter_constraints,
        "C_kernel": [Interval(Real, 0.0, None, closed="neither")],
        "sparse_output": ["boolean"],
    }

    def __init__(
        self,
        *,
        maps="auto",
        n_maps="auto",
        theta="ones",
        init_rule="balanced",
        C_kernel=1.0,
        negatives_per_positive=2,
        max_pairs=50_000,
        loss="squared_hinge",
        class_weight=None,
        tol=1e-3,
        max_iter=200,
        random_state=None,
        n_jobs=None,
        verbose=0,
        sparse_output=True,
    ):
        self.maps = maps
        self.n_maps = n_maps
        self.theta = theta
        self.init_rule = init_rule
        self.C_kernel = C_kernel
        self.negatives_per_positive = negatives_per_positive
        self.max_pairs = max_pairs
        self.loss = loss
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.sparse_output = sparse_output

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        self : MBKernel
        """
        X, y, weights = self._validate_rows(X, y, sample_weight)
        learner = self._learner(X, y, weights, Progress(self)).canonical()
        kernel = learner.learn_kernel(self.C_kernel)
        self._keep(learner, kernel)
        self.n_iter_ = kernel.solution.n_iter if kernel.solution else 1
        self.timings_ = learner.progress.finish()
        return self

    def transform(self, X):
        """Return the explicit feature map: sqrt(theta) in one column of every map.

        A stump has two columns, one for each side, and a fern one for every cell.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        phi : sparse matrix or ndarray of shape (n_samples, n_columns)
            phi @ phi.T is the kernel.
        """
        codes = self._codes(X)
        weights = np.split(self.theta_, self._bounds())
        blocks = [
            _explicit_map(part, piece, theta)
            for part, piece, theta in zip(self._maps.parts, codes, weights, strict=True)
        ]
        phi = sparse.csr_matrix(sparse.hstack(blocks, format="csr"))
        return phi if self.sparse_output else phi.toarray()

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None
            Names of the input features, where X had none.

        Returns
        -------
        names : ndarray of str
            Such as "petal width > 0.75" and "petal width <= 0.75". Cells of ferns are
            numbered, such as "fern 12 cell 3".
        """
        check_is_fitted(self)
        inputs = _check_feature_names_in(self, input_features)
        names = [name for part in self._maps.parts for name in part.column_names(inputs)]
        return np.asarray(names, dtype=object)

    def kernel(self, X, Z=None):
        """Return the kernel matrix.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples_X, n_features)
        Z : {array-like, sparse matrix} of shape (n_samples_Z, n_features) or None
            None means X.

        Returns
        -------
        K : ndarray of shape (n_samples_X, n_samples_Z)
            Total weight of the maps on which two samples agree.
        """
        distance = self.distance(X, Z)
        return float(self.theta_.sum()) - distance

    def distance(self, X, Z=None):
        """Return the total weight of the maps on which two samples disagree.

        A metric: for stumps the city-block distance after warping each feature by its
        weights. The distance in the feature space of the kernel is sqrt(2 * distance).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples_X, n_features)
        Z : {array-like, sparse matrix} of shape (n_samples_Z, n_features) or None
            None means X.

        Returns
        -------
        D : ndarray of shape (n_samples_X, n_samples_Z)
        """
        codes = self._codes(X)
        others = codes if Z is None else self._codes(Z)
        distance = np.zeros((codes[0].n_rows, others[0].n_rows))
        engine = choose_engine(
            self._maps.n_codes(max(len(distance), others[0].n_rows)), self.n_jobs
        )
        weights = np.split(self.theta_, self._bounds())
        for part, left, right, theta in zip(self._maps.parts, codes, others, weights, strict=True):
            distance += part.cells.distance(left, right, _slots(part, theta), engine)
        return distance

    def warp(self, X):
        """Return psi(X): each used feature on the scale on which the kernel measures it.

        The kernel of stumps (and projections) is 1 - ||psi(x) - psi(z)||_1. That of ferns
        is no such distance.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        psi : ndarray of shape (n_samples, n_used_features)
        """
        codes = self._codes(X)
        warped = []
        weights = np.split(self.theta_, self._bounds())
        for part, piece, theta in zip(self._maps.parts, codes, weights, strict=True):
            if isinstance(part.cells, Cells):
                raise ValueError(
                    "warp needs maps that are stumps or projections; with ferns use "
                    "distance or transform."
                )
            warped.append(part.cells.warp(piece, _slots(part, theta)).T)
        return np.hstack(warped)

    def _codes(self, X) -> list[DenseCodes]:
        X = self._validate_new(X)
        engine = choose_engine(self._maps.n_codes(X.shape[0]), self.n_jobs)
        return [densify(codes) for codes in self._maps.codes(X, engine)]

    def _bounds(self) -> np.ndarray:
        """Return where in theta the second family begins, the third, and so on."""
        return np.cumsum([part.n_maps for part in self._maps.parts])[:-1]


def _slots(part, theta: np.ndarray) -> np.ndarray:
    """Return the weights of the maps of a family, zero in slots that are no map."""
    weights = np.zeros(part.cells.n_slots)
    weights[part.cells.is_map] = theta
    return weights


def _explicit_map(part, codes: DenseCodes, theta: np.ndarray) -> sparse.csr_matrix:
    """Return sqrt(theta) in one column per map: that of a side, or of a cell."""
    columns, n_columns = part.cells.active_columns(codes)
    values = np.broadcast_to(np.sqrt(theta), columns.shape)
    indptr = np.arange(codes.n_rows + 1) * columns.shape[1]
    return sparse.csr_matrix(
        (values.ravel(), columns.ravel(), indptr), shape=(codes.n_rows, n_columns)
    )

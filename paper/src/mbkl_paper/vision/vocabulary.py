"""Visual words: cluster centres of local descriptors, and descriptors told in words."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import PCA
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

_ROWS_AT_ONCE = 512
_NO_SPREAD = 1e-12


class Vocabulary(TransformerMixin, BaseEstimator):
    """Words learned by k-means, and descriptors as weights of their nearest words.

    Parameters
    ----------
    n_words : int, default=1024
        Number of words.
    coding : {"hard", "soft"}, default="hard"
        "hard" gives the nearest word the weight 1. "soft" shares it out among the
        nearest ones, by exp(-sharpness * d^2 / s^2) with d the distance to a word and s^2
        the mean of the squared distances of the training data to their nearest word.
    n_neighbors : int, default=5
        Number of words that a descriptor is shared out among.
    sharpness : float, default=3.0
        How fast the weight falls with the distance.
    n_components : int or None, default=None
        Descriptors are reduced to this many principal components first. None keeps them.
    max_descriptors : int, default=200_000
        Larger training data are sampled.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample and of k-means.

    Attributes
    ----------
    words_ : ndarray of shape (n_words, n_features or n_components)
        The words, of type float32.
    reduction_ : PCA or None
        Reduces descriptors to their principal components.
    spread_ : float
        Mean squared distance of the training data to their nearest words.
    n_features_in_ : int
        Length of a descriptor.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import Vocabulary
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])
    >>> vocabulary = Vocabulary(n_words=2, random_state=0).fit(X)
    >>> codes = vocabulary.transform(X).toarray()
    >>> bool((codes[0] == codes[1]).all()), bool((codes[0] == codes[2]).all())
    (True, False)
    """

    _parameter_constraints: dict = {
        "n_words": [Interval(Integral, 1, None, closed="left")],
        "coding": [StrOptions({"hard", "soft"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "sharpness": [Interval(Real, 0, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "max_descriptors": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_words=1024,
        *,
        coding="hard",
        n_neighbors=5,
        sharpness=3.0,
        n_components=None,
        max_descriptors=200_000,
        random_state=None,
    ):
        self.n_words = n_words
        self.coding = coding
        self.n_neighbors = n_neighbors
        self.sharpness = sharpness
        self.n_components = n_components
        self.max_descriptors = max_descriptors
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the words.

        Parameters
        ----------
        X : array-like of shape (n_descriptors, n_features)
        y : ignored

        Returns
        -------
        self : Vocabulary
        """
        X = validate_data(self, X, dtype=np.float32)
        random_state = check_random_state(self.random_state)
        X = sampled(X, self.n_words, self.max_descriptors, random_state)
        with threadpool_limits(1, user_api="blas"):
            self.reduction_ = self.n_components and PCA(
                self.n_components, svd_solver="covariance_eigh"
            ).fit(X)
            X = self._reduced(X)
            self.words_, self.spread_ = cluster_centres(X, self.n_words, random_state)
        return self

    def transform(self, X):
        """Return the weights of the words for each descriptor.

        Parameters
        ----------
        X : array-like of shape (n_descriptors, n_features)

        Returns
        -------
        codes : sparse matrix of shape (n_descriptors, n_words)
            Each row sums to one.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, reset=False)
        X = self._reduced(X)
        # Few rows at a time, whose distances to all words fit into a cache.
        blocks = [
            self._nearest(X[first : first + _ROWS_AT_ONCE])
            for first in range(0, len(X), _ROWS_AT_ONCE)
        ]
        nearest, weights = (np.concatenate(parts) for parts in zip(*blocks))
        return sparse_rows(nearest, weights, len(self.words_))

    def _nearest(self, X: NDArray[np.float32]) -> tuple[NDArray, NDArray]:
        """Return the numbers of the words nearest to each row, and their weights."""
        n_neighbors = min(self.n_neighbors, len(self.words_)) if self.coding == "soft" else 1
        nearest, distances = smallest(relative_distances(X, self.words_), n_neighbors)
        excess = distances - distances[:, :1]
        weights = np.exp(-self.sharpness / max(self.spread_, _NO_SPREAD) * excess)
        return nearest, weights / weights.sum(axis=1, keepdims=True)

    def _reduced(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return X if self.reduction_ is None else self.reduction_.transform(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def sampled(
    X: NDArray[np.float32], n_words: int, max_rows: int, random_state
) -> NDArray[np.float32]:
    """Return at most `max_rows` rows, after a check that they suffice for the words."""
    n_rows = min(len(X), max_rows)
    if n_rows < n_words:
        raise ValueError(
            f"n_words={n_words} words cannot be learned from n_samples = {n_rows} descriptors; use "
            "fewer words, more images or a larger max_descriptors."
        )
    if len(X) <= max_rows:
        return X
    return X[np.sort(random_state.choice(len(X), max_rows, replace=False))]


def cluster_centres(
    X: NDArray[np.float32], n_words: int, random_state
) -> tuple[NDArray[np.float32], float]:
    """Return the centres of clusters of rows, and the mean squared distance to them."""
    means = MiniBatchKMeans(
        n_words,
        batch_size=max(4096, 4 * n_words),
        init_size=3 * n_words,
        n_init=1,
        # Words hardly move after a few passes.
        max_iter=10,
        random_state=random_state,
    )
    # With several threads the last digits, and with them when to stop, are left to chance.
    with threadpool_limits(1):
        means.fit(X)
    return means.cluster_centers_.astype(np.float32), float(means.inertia_ / len(X))


def relative_distances(X: NDArray[np.float32], words: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return squared distances of rows to words, less the squared length of the row."""
    distances = X @ (-2 * words).T
    distances += (words * words).sum(axis=1)
    return distances


def smallest(values: NDArray[np.float32], count: int) -> tuple[NDArray[np.intp], NDArray]:
    """Return where the smallest entries of each row lie, and them; of equal ones the first.

    Their places in `values` become infinite. For a few entries out of many, searching
    again and again is several times as fast as partitioning.

    Examples
    --------
    >>> import numpy as np
    >>> smallest(np.array([[3.0, 1.0, 2.0, 1.0]]), 3)[0]
    array([[1, 3, 2]])
    """
    rows = np.arange(len(values))
    columns = np.empty((len(values), count), dtype=np.intp)
    found = np.empty((len(values), count), dtype=values.dtype)
    for rank in range(count):
        columns[:, rank] = values.argmin(axis=1)
        found[:, rank] = values[rows, columns[:, rank]]
        values[rows, columns[:, rank]] = np.inf
    return columns, found


def sparse_rows(columns: NDArray, values: NDArray, n_columns: int) -> sparse.csr_matrix:
    """Return the sparse matrix with the same number of entries in each row."""
    indptr = np.arange(len(columns) + 1) * columns.shape[1]
    return sparse.csr_matrix(
        (values.ravel(), columns.ravel(), indptr), shape=(len(columns), n_columns)
    )

"""Nested sparse quantization (Boix, Roig, Van Gool 2012): binary descriptors and codes."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from mbkl_paper.vision.pyramid import PyramidTransformer, max_pool
from mbkl_paper.vision.vocabulary import cluster_centres, sampled, smallest, sparse_rows


class NestedSparseQuantization(PyramidTransformer):
    """Words that occur in each region of an image, by comparing binary descriptors.

    Sparse quantization of a vector is the nearest vector of zeros and k ones: its k
    largest entries become 1. The inner one turns descriptors and words into such
    vectors, the outer one sets the words at the smallest Hamming distances to 1. Codes
    are pooled by their maximum, so that all features are 0 or 1.

    Parameters
    ----------
    descriptor : LocalDescriptor or None, default=None
        Local descriptor; None means DenseSIFT().
    n_words : int, default=1024
        Number of words.
    n_ones : int, default=32
        Number of entries of a descriptor that become 1.
    n_neighbors : int, default=5
        Number of words that are set for each descriptor.
    pyramid : tuple, default=(1, 2, 4)
        Levels of the pyramid; see `BagOfWords`.
    max_descriptors : int, default=200_000
        Number of descriptors that the words are learned from.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample of descriptors and of k-means.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores. The result is the same, to
        the bit, for any number.

    Attributes
    ----------
    coder_ : BinaryVocabulary
        The words.
    descriptor_ : LocalDescriptor
        The descriptor in use.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import DenseSIFT, NestedSparseQuantization
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 40, 40), dtype=np.uint8)
    >>> words = NestedSparseQuantization(DenseSIFT(scales=(4,)), n_words=20, random_state=0)
    >>> features = words.fit_transform(images)
    >>> features.shape, sorted(set(features.ravel().tolist()))
    ((4, 420), [0.0, 1.0])
    """

    _parameter_constraints: dict = {
        **PyramidTransformer._parameter_constraints,
        "n_ones": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        descriptor=None,
        n_words=1024,
        *,
        n_ones=32,
        n_neighbors=5,
        pyramid=(1, 2, 4),
        max_descriptors=200_000,
        random_state=None,
        n_jobs=None,
    ):
        self.descriptor = descriptor
        self.n_words = n_words
        self.n_ones = n_ones
        self.n_neighbors = n_neighbors
        self.pyramid = pyramid
        self.max_descriptors = max_descriptors
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _coder(self, random_state) -> BinaryVocabulary:
        return BinaryVocabulary(
            self.n_words,
            n_ones=self.n_ones,
            n_neighbors=self.n_neighbors,
            max_descriptors=self.max_descriptors,
            random_state=random_state,
        )

    def _pool(self, codes, regions, n_regions) -> NDArray[np.float32]:
        return max_pool(codes, regions, n_regions).ravel().astype(np.float32)


class BinaryVocabulary(TransformerMixin, BaseEstimator):
    """Binary words, and descriptors as the set of the words nearest to them.

    Parameters
    ----------
    n_words, n_ones, n_neighbors, max_descriptors, random_state
        See `NestedSparseQuantization`.

    Attributes
    ----------
    words_ : ndarray of shape (n_words, n_features)
        The words, zeros and ones of type float32.
    n_features_in_ : int
        Length of a descriptor.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision.sparse_quantization import BinaryVocabulary
    >>> X = np.array([[0.9, 0.8, 0.1], [0.1, 0.7, 0.9]])
    >>> words = BinaryVocabulary(n_words=2, n_ones=2, n_neighbors=1, random_state=0).fit(X)
    >>> words.words_[words.transform(X).indices]
    array([[1., 1., 0.],
           [0., 1., 1.]], dtype=float32)
    """

    _parameter_constraints: dict = {
        "n_words": [Interval(Integral, 1, None, closed="left")],
        "n_ones": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "max_descriptors": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_words=1024,
        *,
        n_ones=32,
        n_neighbors=5,
        max_descriptors=200_000,
        random_state=None,
    ):
        self.n_words = n_words
        self.n_ones = n_ones
        self.n_neighbors = n_neighbors
        self.max_descriptors = max_descriptors
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the words: cluster centres of binary descriptors, made binary themselves.

        Parameters
        ----------
        X : array-like of shape (n_descriptors, n_features)
        y : ignored

        Returns
        -------
        self : BinaryVocabulary
        """
        X = validate_data(self, X, dtype=np.float32)
        if self.n_ones >= X.shape[1]:
            raise ValueError(
                f"n_ones={self.n_ones} must be smaller than the length of a descriptor, "
                f"n_features = {X.shape[1]}: otherwise all entries become 1."
            )
        random_state = check_random_state(self.random_state)
        X = sampled(X, self.n_words, self.max_descriptors, random_state)
        binary = largest(X, self.n_ones).astype(np.float32)
        centres, _ = cluster_centres(binary, self.n_words, random_state)
        self.words_ = largest(centres, self.n_ones).astype(np.float32)
        return self

    def transform(self, X):
        """Return the words nearest to each descriptor.

        Parameters
        ----------
        X : array-like of shape (n_descriptors, n_features)

        Returns
        -------
        codes : sparse matrix of shape (n_descriptors, n_words)
            Ones for the `n_neighbors` nearest words; of equally near ones the first.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, reset=False)
        # All vectors have as many ones: the more of them two share, the smaller is
        # their Hamming distance.
        shared = largest(X, self.n_ones).astype(np.float32) @ self.words_.T
        nearest, _ = smallest(-shared, min(self.n_neighbors, len(self.words_)))
        return sparse_rows(nearest, np.ones(nearest.shape, np.float32), len(self.words_))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def largest(values: NDArray[np.float32], count: int) -> NDArray[np.bool_]:
    """Return which are the largest entries of each row; of equal ones the first.

    Examples
    --------
    >>> import numpy as np
    >>> largest(np.float32([[0.2, 0.9, 0.2, 0.5], [0, 0, 0, 1]]), 2).astype(int)
    array([[0, 1, 0, 1],
           [1, 0, 0, 1]])
    """
    n_columns = values.shape[1]
    limit = np.partition(values, n_columns - count, axis=1)[:, n_columns - count, None]
    above = values > limit
    equal = values == limit
    room = count - above.sum(axis=1, keepdims=True)
    return above | (equal & (np.cumsum(equal, axis=1, dtype=np.int32) <= room))

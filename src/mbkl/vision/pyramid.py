"""Spatial pyramids: the words of an image, region by region."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mbkl.vision.images import ImageTransformer, as_images, named, positive_integers
from mbkl.vision.local import LocalDescriptor

# Words are learned from this many descriptors of an image at least, where it has them.
# More images beat more descriptors of each.
_DESCRIPTORS_PER_IMAGE = 100


class PyramidTransformer(ImageTransformer):
    """Local descriptors, coded by words and pooled over the regions of a pyramid."""

    descriptor: LocalDescriptor | None
    n_words: int
    pyramid: tuple
    max_descriptors: int
    random_state: object

    _parameter_constraints: dict = {
        **ImageTransformer._parameter_constraints,
        "descriptor": [LocalDescriptor, None],
        "n_words": [Interval(Integral, 1, None, closed="left")],
        "pyramid": [tuple, list],
        "max_descriptors": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _coder(self, random_state) -> BaseEstimator:
        """Return the transformer, not fitted, of descriptors into codes."""

    @abstractmethod
    def _default_descriptor(self) -> LocalDescriptor:
        """Return the descriptor that None stands for."""

    @abstractmethod
    def _pool(self, codes: sparse.csr_matrix, regions: list, n_regions: int) -> NDArray:
        """Return the pooled codes of an image, all regions one after the other."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the words from a sample of the local descriptors.

        Parameters
        ----------
        X : list of images, or array of shape (n, height, width) or (n, height, width, 3)
            Arrays of uint8 values or of floats from 0 to 1, paths, or contents of files.
        y : ignored

        Returns
        -------
        self : PyramidTransformer
        """
        images = as_images(X)
        levels(self.pyramid)
        self.descriptor_ = self.descriptor or self._default_descriptor()
        random_state = check_random_state(self.random_state)
        sample = self._sample(images, random_state)
        self.coder_ = self._coder(random_state).fit(sample)
        return self

    def transform(self, X):
        """Return the pooled codes of each image.

        Parameters
        ----------
        X : list of images
            See `fit`.

        Returns
        -------
        features : ndarray of shape (n_images, n_regions * n_words)
            The regions one after the other, from the coarsest level on.
        """
        check_is_fitted(self)
        rows = self._in_threads(self._transform_one, named(as_images(X)))
        return np.stack(rows)

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns of `transform`, such as "2x2 row 0 column 1 word 7".

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        regions = [
            f"{rows}x{columns} row {row} column {column}"
            for rows, columns in levels(self.pyramid)
            for row in range(rows)
            for column in range(columns)
        ]
        names = [f"{region} word {word}" for region in regions for word in range(self.n_words)]
        return np.asarray(names, dtype=object)

    def _sample(self, images, random_state) -> NDArray[np.float32]:
        """Return descriptors drawn from all images, or from a part of them."""
        n_images = min(len(images), -(-self.max_descriptors // _DESCRIPTORS_PER_IMAGE))
        chosen = np.sort(random_state.choice(len(images), n_images, replace=False))
        seeds = random_state.randint(np.iinfo(np.int32).max, size=n_images)
        each = -(-self.max_descriptors // n_images)
        drawn = self._in_threads(
            self._draw,
            [(images[i], f"images[{i}]", each, seed) for i, seed in zip(chosen, seeds)],
        )
        return np.concatenate(drawn)

    def _draw(self, image, name: str, n_drawn: int, seed: int) -> NDArray[np.float32]:
        found = self.descriptor_.extract(image, name).descriptors
        if len(found) <= n_drawn:
            return found
        return found[np.random.default_rng(seed).choice(len(found), n_drawn, replace=False)]

    def _transform_one(self, image, name: str) -> NDArray[np.float32]:
        features = self.descriptor_.extract(image, name)
        codes = self.coder_.transform(features.descriptors)
        regions, n_regions = regions_of(features.positions, levels(self.pyramid))
        return self._pool(codes, regions, n_regions)


def levels(pyramid) -> list[tuple[int, ...]]:
    """Return the number of rows and columns of each level.

    Examples
    --------
    >>> levels((1, 2, (1, 3)))
    [(1, 1), (2, 2), (1, 3)]
    """
    pairs = []
    for level in pyramid:
        sides = positive_integers(level, "A level of pyramid")
        pairs.append(sides * 2 if isinstance(level, Integral) else sides)
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ValueError(
            "pyramid must list one or more levels, each a number n for n x n regions or a pair "
            f"(rows, columns), not {pyramid!r}."
        )
    return pairs


def regions_of(
    positions: NDArray[np.float32], pyramid: list[tuple[int, ...]]
) -> tuple[list[NDArray[np.intp]], int]:
    """Return the number of the region, at each level, that each point lies in.

    Parameters
    ----------
    positions : ndarray of shape (n_points, 2)
        Row and column as shares of height and width, below 1.
    pyramid : list of pairs
        Rows and columns of each level.

    Returns
    -------
    regions : list of ndarray of shape (n_points,)
        Regions are numbered through all levels.
    n_regions : int
    """
    regions, n_regions = [], 0
    for rows, columns in pyramid:
        row = (positions[:, 0] * rows).astype(np.intp)
        column = (positions[:, 1] * columns).astype(np.intp)
        regions.append(n_regions + row * columns + column)
        n_regions += rows * columns
    return regions, n_regions


def sum_pool(codes: sparse.csr_matrix, regions: list, n_regions: int) -> NDArray[np.float64]:
    """Return the sum of the codes over each region, of shape (n_regions, n_words)."""
    points = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
    n_words = codes.shape[1]
    pooled = np.zeros(n_regions * n_words)
    for level in regions:
        slots = level[points] * n_words + codes.indices
        pooled += np.bincount(slots, weights=codes.data, minlength=pooled.size)
    return pooled.reshape(n_regions, n_words)


def max_pool(codes: sparse.csr_matrix, regions: list, n_regions: int) -> NDArray[np.float64]:
    """Return the largest code of each word over each region, of shape (n_regions, n_words)."""
    points = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
    n_words = codes.shape[1]
    pooled = np.zeros(n_regions * n_words)
    for level in regions:
        np.maximum.at(pooled, level[points] * n_words + codes.indices, codes.data)
    return pooled.reshape(n_regions, n_words)

"""Spatial pyramids: the words of an image, region by region."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mbkl_paper.vision.images import ImageTransformer, as_images, named
from mbkl_paper.vision.local import LocalDescriptor
from mbkl_paper.vision.sift import DenseSIFT

# Words are learned from this many descriptors of an image, where it has them: those of
# more images would hardly differ, and take time.
_DESCRIPTORS_PER_IMAGE = 200


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
    def _pool(self, codes: sparse.csr_matrix, regions: list, n_regions: int) -> NDArray:
        """Return the pooled codes of an image, all regions one after the other."""

    # The settings of the descriptor are the user's, and checked as well.
    @_fit_context(prefer_skip_nested_validation=False)
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
        descriptor = DenseSIFT() if self.descriptor is None else clone(self.descriptor)
        self.descriptor_ = descriptor.fit(images)
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
            The regions one after the other, level by level.
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
            f"{level.name} row {row} column {column}"
            for level in levels(self.pyramid)
            for row in range(level.rows)
            for column in range(level.columns)
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


class Level(NamedTuple):
    """Regions of equal size, in rows and columns, on the image without a margin all around."""

    name: str
    rows: int
    columns: int
    margin: float = 0.0


def levels(pyramid) -> list[Level]:
    """Return the levels of a pyramid.

    Examples
    --------
    >>> [level.name for level in levels((1, 2, (1, 3), "centre"))]
    ['1x1', '2x2', '1x3', 'centre']
    """
    found = []
    for level in pyramid:
        if level == "centre":
            found.append(Level("centre", 1, 1, margin=0.25))
            continue
        sides: Any = [level, level] if isinstance(level, Integral) else level
        valid = isinstance(sides, tuple | list) and len(sides) == 2
        if not valid or not all(isinstance(n, Integral) and int(n) >= 1 for n in sides):
            raise ValueError(
                "A level of pyramid must be a number n for n x n regions, a pair (rows, columns) "
                f"or 'centre', not {level!r}."
            )
        rows, columns = (int(side) for side in sides)
        found.append(Level(f"{rows}x{columns}", rows, columns))
    if not found:
        raise ValueError("pyramid is empty: it must list one or more levels, such as (1, 2, 4).")
    return found


def regions_of(
    positions: NDArray[np.floating], pyramid: list[Level]
) -> tuple[list[NDArray[np.intp]], int]:
    """Return the number of the region, at each level, that each point lies in.

    Parameters
    ----------
    positions : ndarray of shape (n_points, 2)
        Row and column as shares of height and width, below 1.
    pyramid : list of Level

    Returns
    -------
    regions : list of ndarray of shape (n_points,)
        Regions are numbered through all levels; -1 is outside of all.
    n_regions : int
    """
    regions, n_regions = [], 0
    for level in pyramid:
        shares = (positions - level.margin) / (1 - 2 * level.margin)
        inside = ((shares >= 0) & (shares < 1)).all(axis=1)
        row, column = (shares * (level.rows, level.columns)).astype(np.intp).T
        regions.append(np.where(inside, n_regions + row * level.columns + column, -1))
        n_regions += level.rows * level.columns
    return regions, n_regions


def sum_pool(codes: sparse.csr_matrix, regions: list, n_regions: int) -> NDArray[np.float64]:
    """Return the sum of the codes over each region, of shape (n_regions, n_words)."""
    pooled = np.zeros(n_regions * codes.shape[1])
    for slots, values in _slots(codes, regions):
        pooled += np.bincount(slots, weights=values, minlength=pooled.size)
    return pooled.reshape(n_regions, -1)


def max_pool(codes: sparse.csr_matrix, regions: list, n_regions: int) -> NDArray[np.float64]:
    """Return the largest code of each word over each region, of shape (n_regions, n_words)."""
    pooled = np.zeros(n_regions * codes.shape[1])
    for slots, values in _slots(codes, regions):
        np.maximum.at(pooled, slots, values)
    return pooled.reshape(n_regions, -1)


def _slots(codes: sparse.csr_matrix, regions: list) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield for each level where the entries of the codes go, region by region, and them."""
    points = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
    for level in regions:
        region = level[points]
        inside = region >= 0
        yield (region * codes.shape[1] + codes.indices)[inside], codes.data[inside]

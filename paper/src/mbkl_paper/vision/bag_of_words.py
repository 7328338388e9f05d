"""Bag of words: how often each visual word occurs in each region of an image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from mbkl_paper.vision.pyramid import PyramidTransformer, max_pool, sum_pool
from mbkl_paper.vision.vocabulary import Vocabulary


class BagOfWords(PyramidTransformer):
    """Histograms of visual words over the regions of a spatial pyramid.

    Parameters
    ----------
    descriptor : LocalDescriptor or None, default=None
        `DenseSIFT`, `OpponentSIFT`, `ColourSIFT`, `ColourPatches` or `HueHistogram`. None
        means DenseSIFT().
    n_words : int, default=1024
        Number of words.
    coding, n_neighbors, sharpness, n_components
        See `Vocabulary`.
    pyramid : tuple, default=(1, 2, 4)
        Levels of the pyramid: n for n x n regions, (rows, columns) for others, "centre" for
        the middle of the image, half as high and wide, where the object often is. The
        default has 1 + 4 + 16 = 21 regions.
    pooling : {"average", "max"}, default="average"
        How the codes of the points of a region are put together. Averages are divided by
        the number of regions, so that the features of an image sum to one.
    max_descriptors : int, default=200_000
        Number of descriptors that the words are learned from.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample of descriptors and of k-means.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores. The result is the same, to
        the bit, for any number.

    Attributes
    ----------
    coder_ : Vocabulary
        The words.
    descriptor_ : LocalDescriptor
        The descriptor in use.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import BagOfWords, DenseSIFT
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 40, 40), dtype=np.uint8)
    >>> words = BagOfWords(DenseSIFT(scales=(4,)), n_words=8, pyramid=(1, 2), random_state=0)
    >>> features = words.fit_transform(images)
    >>> features.shape, float(features.sum(axis=1).round(4).max())
    ((4, 40), 1.0)
    """

    _parameter_constraints: dict = {
        **PyramidTransformer._parameter_constraints,
        **{
            name: Vocabulary._parameter_constraints[name]
            for name in ("coding", "n_neighbors", "sharpness", "n_components")
        },
        "pooling": [StrOptions({"average", "max"})],
    }

    def __init__(
        self,
        descriptor=None,
        n_words=1024,
        *,
        coding="hard",
        n_neighbors=5,
        sharpness=3.0,
        n_components=None,
        pyramid=(1, 2, 4),
        pooling="average",
        max_descriptors=200_000,
        random_state=None,
        n_jobs=None,
    ):
        self.descriptor = descriptor
        self.n_words = n_words
        self.coding = coding
        self.n_neighbors = n_neighbors
        self.sharpness = sharpness
        self.n_components = n_components
        self.pyramid = pyramid
        self.pooling = pooling
        self.max_descriptors = max_descriptors
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _coder(self, random_state) -> Vocabulary:
        return Vocabulary(
            self.n_words,
            coding=self.coding,
            n_neighbors=self.n_neighbors,
            sharpness=self.sharpness,
            n_components=self.n_components,
            max_descriptors=self.max_descriptors,
            random_state=random_state,
        )

    def _pool(self, codes, regions, n_regions) -> NDArray[np.float32]:
        if self.pooling == "max":
            return max_pool(codes, regions, n_regions).ravel().astype(np.float32)
        sums = sum_pool(codes, regions, n_regions)
        # A region without points has the sum zero, and stays so.
        sums /= np.maximum(sums.sum(axis=1, keepdims=True), 1)
        return (sums / sums.sum()).ravel().astype(np.float32)

"""Descriptors put together for a task, with the settings that did best on training data."""

from __future__ import annotations

from sklearn.pipeline import FeatureUnion

from mbkl_paper.vision.bag_of_words import BagOfWords
from mbkl_paper.vision.colour import ColourPatches
from mbkl_paper.vision.hog import HOG
from mbkl_paper.vision.pyramid import PyramidTransformer
from mbkl_paper.vision.sift import DenseSIFT, OpponentSIFT
from mbkl_paper.vision.sparse_quantization import NestedSparseQuantization


def pedestrian_descriptor(n_jobs=None) -> HOG:
    """Return the descriptor for small grey images of pedestrians.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores.

    Returns
    -------
    descriptor : HOG

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import pedestrian_descriptor
    >>> images = np.random.default_rng(0).integers(0, 256, (5, 36, 18), dtype=np.uint8)
    >>> pedestrian_descriptor().fit_transform(images).shape
    (5, 5115)
    """
    # On held-out training sets of Daimler, large cells, the logarithm, and finer and coarser
    # differences beside the usual ones each brought half a point or more, and several sizes
    # of cells another quarter.
    return HOG(cell=(6, 9, 12), padding="half", span=(1, 2, 4), contrast="log", n_jobs=n_jobs)


def scene_descriptor(kind="bag_of_words", random_state=None, n_jobs=None) -> PyramidTransformer:
    """Return the descriptor for images of many categories: 1,024 words in 21 regions.

    Parameters
    ----------
    kind : {"bag_of_words", "sparse_quantization"}, default="bag_of_words"
        Averages of words, which need a kernel, or near-binary codes pooled by their
        maximum, which do without.
    random_state : int, RandomState instance or None, default=None
        Seed of the words.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores.

    Returns
    -------
    descriptor : BagOfWords or NestedSparseQuantization

    Examples
    --------
    >>> from mbkl_paper.vision import scene_descriptor
    >>> scene_descriptor("sparse_quantization", random_state=0).n_words
    1024
    """
    kinds = {"bag_of_words": BagOfWords, "sparse_quantization": NestedSparseQuantization}
    if kind not in kinds:
        raise ValueError(f"kind must be one of {sorted(kinds)}, not {kind!r}.")
    sift = DenseSIFT(step=4, scales=(4, 6, 8))
    return kinds[kind](sift, 1024, random_state=random_state, n_jobs=n_jobs)


def flower_descriptor(random_state=None, n_jobs=None) -> FeatureUnion:
    """Return the descriptor for flowers: shape, colour and both of them together.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the words.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores.

    Returns
    -------
    descriptor : FeatureUnion
        Bags of words of SIFT (shape), opponent SIFT (both) and mean colours: 24,000 numbers.

    Examples
    --------
    >>> from mbkl_paper.vision import flower_descriptor
    >>> [name for name, _ in flower_descriptor(random_state=0).transformer_list]
    ['shape', 'shape_and_colour', 'colour']
    """
    # Chosen on the training part of the first split of Flowers17. The centre, where the
    # flower is, was worth three to five points to each bag; W-SIFT beside these nothing.
    shared = {
        "coding": "soft",
        "pyramid": (1, 2, "centre"),
        "max_descriptors": 100_000,
        "random_state": random_state,
        "n_jobs": n_jobs,
    }
    shape = DenseSIFT(step=6, scales=(4, 8, 12))
    both = OpponentSIFT(step=6, scales=(4, 8, 12))
    colour = ColourPatches(step=6, scales=(2, 4, 8))
    return FeatureUnion(
        [
            ("shape", BagOfWords(shape, 1000, n_components=80, **shared)),
            ("shape_and_colour", BagOfWords(both, 2000, n_components=96, **shared)),
            ("colour", BagOfWords(colour, 1000, **shared)),
        ]
    )

"""GIST: how much of each scale and orientation lies in each part of a scene."""

from __future__ import annotations

from functools import lru_cache
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from mbkl_paper.vision.images import (
    ImageTransformer,
    Pixels,
    as_images,
    as_pixels,
    grey,
    named,
    resized,
)

# Mirrored pixels around the image, so that its opposite borders do not touch.
_PREFILTER_BORDER = 5
_FILTER_BORDER = 32
# Where the filters lie, as Oliva and Torralba have chosen it: the finest has this
# frequency in cycles per pixel, and each further one is this much coarser.
_FINEST = 0.3
_RATIO = 1.85
_RADIAL_WIDTH = 3.5
# Contrast that the local one must reach to be divided away.
_NOISE = 0.2


class GIST(ImageTransformer):
    """Energies of Gabor filters, averaged over the blocks of a grid (Oliva, Torralba 2001).

    The grey image is brought to one size, its local contrast is normalised, and the
    magnitudes of its responses to filters of several scales and orientations are averaged
    over 4 x 4 blocks.

    Parameters
    ----------
    size : int, default=256
        The image is cut to its central square, and resized to this side.
    n_scales : int, default=4
        Number of scales of the filters.
    n_orientations : int, default=8
        Number of orientations of each scale.
    n_blocks : int, default=4
        Number of blocks along each side.
    cutoff : float, default=4.0
        Frequency, in cycles per image, below which the prefilter removes brightness.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import GIST
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 64, 64), dtype=np.uint8)
    >>> GIST(size=64).fit_transform(images).shape
    (2, 512)
    """

    _parameter_constraints: dict = {
        **ImageTransformer._parameter_constraints,
        "size": [Interval(Integral, 8, None, closed="left")],
        "n_scales": [Interval(Integral, 1, None, closed="left")],
        "n_orientations": [Interval(Integral, 1, None, closed="left")],
        "n_blocks": [Interval(Integral, 1, None, closed="left")],
        "cutoff": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        size=256,
        n_scales=4,
        n_orientations=8,
        n_blocks=4,
        cutoff=4.0,
        n_jobs=None,
    ):
        self.size = size
        self.n_scales = n_scales
        self.n_orientations = n_orientations
        self.n_blocks = n_blocks
        self.cutoff = cutoff
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Check the parameters; there is nothing to learn.

        Parameters
        ----------
        X : list of images
            See `transform`.
        y : ignored

        Returns
        -------
        self : GIST
        """
        as_images(X)
        return self

    def transform(self, X):
        """Return the mean energies of each image.

        Parameters
        ----------
        X : list of images, or array of shape (n, height, width) or (n, height, width, 3)
            Arrays of uint8 values or of floats from 0 to 1, paths, or contents of files.

        Returns
        -------
        features : ndarray of shape (n_images, n_scales * n_orientations * n_blocks**2)
            The blocks of each filter one after the other, the finest scale first.
        """
        self._validate_params()
        if self.size < self.n_blocks:
            raise ValueError(f"n_blocks={self.n_blocks} is more than the size={self.size} allows.")
        images = named(as_images(X))
        return np.stack(self._in_threads(self._transform_one, images))

    def get_feature_names_out(self, input_features=None):
        """Return names such as "scale 0 orientation 3 row 1 column 2".

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str
        """
        names = [
            f"scale {scale} orientation {orientation} row {row} column {column}"
            for scale in range(self.n_scales)
            for orientation in range(self.n_orientations)
            for row in range(self.n_blocks)
            for column in range(self.n_blocks)
        ]
        return np.asarray(names, dtype=object)

    def _transform_one(self, image, name: str) -> NDArray[np.float32]:
        square = _central_square(grey(as_pixels(image, name)))
        even = prefiltered(resized(square, (self.size, self.size)), self.cutoff)
        energies = filtered(even, self.n_scales, self.n_orientations)
        return block_means(energies, self.n_blocks).ravel()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def prefiltered(pixels: Pixels, cutoff: float) -> Pixels:
    """Return an image without its slow changes of brightness, of even local contrast.

    Parameters
    ----------
    pixels : ndarray of shape (size, size)
        From 0 to 1.
    cutoff : float
        Cycles per image at which half of the brightness is removed.
    """
    border = _PREFILTER_BORDER
    logarithm = np.log1p(255 * np.pad(pixels, border, mode="symmetric"))
    distance = np.hypot(*_frequencies(len(logarithm)))
    low = np.exp(-np.log(2) * (distance / cutoff) ** 2).astype(np.float32)
    detail = logarithm - fft.ifft2(fft.fft2(logarithm) * low).real
    contrast = np.sqrt(np.abs(fft.ifft2(fft.fft2(detail**2) * low)))
    return (detail / (_NOISE + contrast))[border:-border, border:-border]


def filtered(pixels: Pixels, n_scales: int, n_orientations: int) -> Pixels:
    """Return the magnitude of the response to each filter, of shape (n_filters, size, size)."""
    border = min(_FILTER_BORDER, len(pixels))
    spectrum = fft.fft2(np.pad(pixels, border, mode="symmetric"))
    gabors = gabor_filters(len(spectrum), n_scales, n_orientations)
    inside = slice(border, -border)
    return np.stack([np.abs(fft.ifft2(spectrum * gabor))[inside, inside] for gabor in gabors])


@lru_cache(maxsize=4)
def gabor_filters(size: int, n_scales: int, n_orientations: int) -> Pixels:
    """Return the filters on the frequencies of `scipy.fft`, the finest scale first.

    They are Gaussian in the ratio of the frequency to their own and in the angle.

    Returns
    -------
    filters : ndarray of shape (n_scales * n_orientations, size, size)
    """
    down, right = _frequencies(size)
    frequency, angle = np.hypot(down, right) / size, np.arctan2(down, right)
    angular_width = 2 * np.pi * 16 * (n_orientations / 32) ** 2
    filters = []
    for scale in range(n_scales):
        radial = _RADIAL_WIDTH * (frequency / (_FINEST / _RATIO**scale) - 1) ** 2
        for orientation in range(n_orientations):
            turned = angle + np.pi * orientation / n_orientations
            turned = (turned + np.pi) % (2 * np.pi) - np.pi
            filters.append(np.exp(-radial - angular_width * turned**2))
    return np.stack(filters).astype(np.float32)


def block_means(planes: Pixels, n_blocks: int) -> Pixels:
    """Return the mean of each block of a grid, of shape (n_planes, n_blocks, n_blocks)."""
    size = planes.shape[1]
    edges = np.arange(n_blocks + 1) * size // n_blocks
    sums = np.add.reduceat(planes, edges[:-1], axis=1)
    sums = np.add.reduceat(sums, edges[:-1], axis=2)
    lengths = np.diff(edges).astype(np.float32)
    return sums / (lengths[:, None] * lengths)


def _central_square(pixels: Pixels) -> Pixels:
    side = min(pixels.shape)
    top, left = ((length - side) // 2 for length in pixels.shape)
    return pixels[top : top + side, left : left + side]


def _frequencies(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the cycles per image, down and to the right, of each Fourier coefficient."""
    cycles = fft.fftfreq(size, 1 / size)
    down, right = np.broadcast_arrays(cycles[:, None], cycles)
    return down, right

"""Local descriptors: what the image looks like around each point of a dense grid."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from mbkl_paper.vision.images import (
    ImageTransformer,
    Pixels,
    as_images,
    as_pixels,
    named,
    positive_integers,
)

# Side of a patch, in units of its scale: SIFT has four bins by four.
PATCH = 4


class LocalFeatures(NamedTuple):
    """Descriptors of an image and where they lie.

    Parameters
    ----------
    descriptors : ndarray of shape (n_points, n_numbers)
    positions : ndarray of shape (n_points, 2)
        Centres of the patches, row and column, as shares of the height and the width.
    """

    descriptors: Pixels
    positions: Pixels


class LocalDescriptor(ImageTransformer):
    """Descriptors of square patches around the points of a grid.

    A patch is `PATCH` times its scale wide and has `_n_bins` by `_n_bins` bins. An
    entry of a descriptor is the mean of a plane (an orientation, a colour) over a bin,
    pixels weighing less the farther from its centre they lie. Descriptors with the
    same step and scales lie at the same points.
    """

    step: int
    scales: tuple[int, ...]

    _n_bins = PATCH
    _parameter_constraints: dict = {
        **ImageTransformer._parameter_constraints,
        "step": [Interval(Integral, 1, None, closed="left")],
        "scales": [tuple, list],
    }

    @abstractmethod
    def _planes(self, pixels: Pixels, scale: int) -> Pixels:
        """Return the planes that are averaged, an array of shape (height, width, n_planes)."""

    @abstractmethod
    def _finish(self, bins: Pixels) -> Pixels:
        """Return descriptors from means of shape (n_points, n_bins, n_bins, n_planes)."""

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
        self : LocalDescriptor
        """
        as_images(X)
        positive_integers(self.scales, "scales")
        return self

    def transform(self, X):
        """Return the descriptors of each image.

        Parameters
        ----------
        X : list of images, or array of shape (n, height, width) or (n, height, width, 3)
            Arrays of uint8 values or of floats from 0 to 1, paths, or contents of files.

        Returns
        -------
        descriptors : list of ndarray of shape (n_points, n_numbers)
            Their number depends on the size of the image.
        """
        self._validate_params()
        found = self._in_threads(self.extract, named(as_images(X)))
        return [features.descriptors for features in found]

    def extract(self, image, name: str = "image") -> LocalFeatures:
        """Return the descriptors of one image and their positions.

        Parameters
        ----------
        image : array of shape (height, width) or (height, width, 3), path or bytes
        name : str
            What to call the image in an error.

        Returns
        -------
        features : LocalFeatures
        """
        scales = positive_integers(self.scales, "scales")
        pixels = as_pixels(image, name)
        side = min(pixels.shape[:2])
        parts = [self._at_scale(pixels, scale) for scale in scales if _extent(scale) < side]
        if not parts:
            raise ValueError(
                f"{name} of shape {pixels.shape} is too small: with scales={scales} both "
                f"sides must have at least {_extent(min(scales)) + 1} pixels."
            )
        descriptors, positions = zip(*parts)
        return LocalFeatures(np.concatenate(descriptors), np.concatenate(positions))

    def _at_scale(self, pixels: Pixels, scale: int) -> LocalFeatures:
        height, width = pixels.shape[:2]
        rows, columns = grid(height, scale, self.step), grid(width, scale, self.step)
        means = _weighted_means(self._planes(pixels, scale), self._spacing(scale))
        bins = self._bins_of(means, rows, columns, scale)
        centres = np.meshgrid(
            (rows + _extent(scale) / 2 + 0.5) / height,
            (columns + _extent(scale) / 2 + 0.5) / width,
            indexing="ij",
        )
        positions = np.stack(centres, axis=-1).reshape(-1, 2).astype(np.float32)
        return LocalFeatures(self._finish(bins), positions)

    def _bins_of(self, means: Pixels, rows, columns, scale: int) -> Pixels:
        """Return the means at the centres of the bins of each point of the grid."""
        n_bins, spacing = self._n_bins, self._spacing(scale)
        first = (_extent(scale) - (n_bins - 1) * spacing) // 2
        offsets = first + spacing * np.arange(n_bins)
        shape = (rows.size, columns.size, n_bins, n_bins, means.shape[2])
        bins = np.empty(shape, dtype=np.float32)
        for i, down in enumerate(offsets):
            for j, right in enumerate(offsets):
                bins[:, :, i, j] = means[
                    rows[0] + down : rows[-1] + down + 1 : self.step,
                    columns[0] + right : columns[-1] + right + 1 : self.step,
                ]
        return bins.reshape(-1, *shape[2:])

    def _spacing(self, scale: int) -> int:
        return PATCH * scale // self._n_bins

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def grid(length: int, scale: int, step: int) -> NDArray[np.intp]:
    """Return the first pixel, along one side, of each patch that fits, centred as a whole.

    Examples
    --------
    >>> grid(20, scale=4, step=3)
    array([0, 3, 6])
    """
    free = length - 1 - _extent(scale)
    n_points = free // step + 1
    return (free - (n_points - 1) * step) // 2 + step * np.arange(n_points)


def soft_votes(angle: Pixels, weight: Pixels, n_directions: int) -> Pixels:
    """Return the weight of each pixel shared out between the two directions next to it.

    Parameters
    ----------
    angle : ndarray of any shape
        In radians, from -pi to pi; direction k is 2 pi k / n_directions.
    weight : ndarray of the same shape
    n_directions : int

    Returns
    -------
    votes : ndarray with one more axis, of length n_directions

    Examples
    --------
    >>> import numpy as np
    >>> soft_votes(np.float32([np.pi / 8]), np.float32([1.0]), 8)
    array([[0.5, 0.5, 0. , 0. , 0. , 0. , 0. , 0. ]], dtype=float32)
    """
    turn = angle * np.float32(n_directions / (2 * np.pi))
    votes = np.empty((*angle.shape, n_directions), dtype=np.float32)
    # One direction after the other: twice as fast as writing to the two of each pixel.
    for direction in range(n_directions):
        distance = np.abs(turn - np.float32(direction))
        distance = np.minimum(distance, np.abs(distance - np.float32(n_directions)))
        share = np.maximum(np.float32(1) - distance, np.float32(0))
        np.multiply(share, weight, out=votes[..., direction])
    return votes


def _extent(scale: int) -> int:
    """Return the distance between the centres of the first and the last bin of SIFT."""
    return (PATCH - 1) * scale


def _weighted_means(planes: Pixels, spacing: int) -> Pixels:
    """Return means around each pixel, the weights falling linearly to zero at the next bin."""
    distance = np.abs(np.arange(1 - spacing, spacing))
    weights = ((spacing - distance) / spacing**2).astype(np.float32)
    return cv2.sepFilter2D(planes, -1, weights, weights, borderType=cv2.BORDER_CONSTANT)

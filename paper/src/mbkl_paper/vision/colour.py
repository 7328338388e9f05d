"""Colour: the spaces that SIFT is computed in, and descriptors of colour alone."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import cv2
import numpy as np
from sklearn.utils._param_validation import Interval

from mbkl_paper.vision.images import Pixels, colour, grey
from mbkl_paper.vision.local import LocalDescriptor, soft_votes

_OPPONENT = np.array(
    [[1, -1, 0], [1, 1, -2], [1, 1, 1]] / np.sqrt([[2], [6], [3]]), dtype=np.float32
)
# Brightness, of at most sqrt(3), below which colour is noise.
_DARK = 0.02


def opponent(pixels: Pixels) -> Pixels:
    """Return (R - G) / sqrt(2), (R + G - 2B) / sqrt(6) and (R + G + B) / sqrt(3)."""
    return colour(pixels) @ _OPPONENT.T


def shading_free(pixels: Pixels) -> Pixels:
    """Return the brightness, and the opponent colours divided by it."""
    red_green, yellow_blue, brightness = np.moveaxis(opponent(pixels), 2, 0)
    base = np.maximum(brightness, _DARK)
    return np.stack([brightness, red_green / base, yellow_blue / base], axis=2)


SPACES: dict[str, Callable[[Pixels], Pixels]] = {
    "grey": lambda pixels: grey(pixels)[:, :, None],
    "rgb": colour,
    "opponent": opponent,
    "w": shading_free,
}


class ColourPatches(LocalDescriptor):
    """Mean colours, as lightness, a and b, of the 2 x 2 quarters of patches on a grid.

    Parameters
    ----------
    step : int, default=6
        Pixels between points of the grid.
    scales : tuple of int, default=(4, 8)
        A patch is four times its scale wide.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import ColourPatches
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 32, 40, 3), dtype=np.uint8)
    >>> ColourPatches(step=8, scales=(4,)).fit_transform(images)[0].shape
    (12, 12)
    """

    _n_bins = 2

    def __init__(self, *, step=6, scales=(4, 8), n_jobs=None):
        self.step = step
        self.scales = scales
        self.n_jobs = n_jobs

    def _planes(self, pixels: Pixels, scale: int) -> Pixels:
        return cv2.cvtColor(colour(pixels), cv2.COLOR_RGB2Lab) / np.float32(100)

    def _finish(self, bins: Pixels) -> Pixels:
        return bins.reshape(len(bins), -1)


class HueHistogram(LocalDescriptor):
    """Histograms of the hue of patches on a grid, pixels voting with their saturation.

    Parameters
    ----------
    step : int, default=6
        Pixels between points of the grid.
    scales : tuple of int, default=(4, 8)
        A patch is four times its scale wide.
    n_hues : int, default=36
        Number of bins of the histogram.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import HueHistogram
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 32, 40, 3), dtype=np.uint8)
    >>> HueHistogram(step=8, scales=(4,)).fit_transform(images)[0].shape
    (12, 36)
    """

    _n_bins = 1
    _parameter_constraints: dict = {
        **LocalDescriptor._parameter_constraints,
        "n_hues": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, *, step=6, scales=(4, 8), n_hues=36, n_jobs=None):
        self.step = step
        self.scales = scales
        self.n_hues = n_hues
        self.n_jobs = n_jobs

    def _planes(self, pixels: Pixels, scale: int) -> Pixels:
        red_green, yellow_blue = np.moveaxis(opponent(pixels), 2, 0)[:2]
        hue, saturation = np.arctan2(red_green, yellow_blue), np.hypot(red_green, yellow_blue)
        return soft_votes(hue, saturation, self.n_hues)

    def _finish(self, bins: Pixels) -> Pixels:
        return bins.reshape(len(bins), -1)

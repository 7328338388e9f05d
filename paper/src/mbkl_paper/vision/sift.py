"""SIFT on a dense grid, of grey values and of colours."""

from __future__ import annotations

from numbers import Real

import cv2
import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from mbkl_paper.vision.colour import SPACES
from mbkl_paper.vision.images import Pixels
from mbkl_paper.vision.local import PATCH, LocalDescriptor, soft_votes

N_ORIENTATIONS = 8
# Largest entry of a SIFT descriptor before it is normalised again (Lowe 2004).
_CLIP = 0.2


class DenseSIFT(LocalDescriptor):
    """SIFT descriptors of the grey image on a dense grid, at several scales.

    A descriptor holds, for 4 x 4 bins, histograms of the gradient over 8 orientations.
    Gradients vote for the two orientations and the four bins next to them, bins weigh
    less the farther from the centre they are, and the descriptor is brought to unit
    length, clipped at 0.2 and brought to unit length again.

    Parameters
    ----------
    step : int, default=6
        Pixels between points of the grid.
    scales : tuple of int, default=(4, 6, 8, 10)
        Sizes of a bin in pixels; a patch is four bins wide. Scales whose patch is larger
        than the image are left out.
    smoothing : float, default=1/6
        The image is blurred by a Gaussian of this many bins first.
    contrast : float, default=0.005
        Descriptors of patches whose gradients are weaker are zero: their
        orientations are noise.
    root : bool, default=True
        Whether to take square roots of the entries ("RootSIFT"), so that Euclidean
        distances become Hellinger distances.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import DenseSIFT
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 32, 40), dtype=np.uint8)
    >>> descriptors = DenseSIFT(step=8, scales=(4,)).fit_transform(images)
    >>> [d.shape for d in descriptors]
    [(12, 128), (12, 128)]
    """

    space = "grey"

    _parameter_constraints: dict = {
        **LocalDescriptor._parameter_constraints,
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "contrast": [Interval(Real, 0, None, closed="left")],
        "root": ["boolean"],
    }

    def __init__(
        self,
        *,
        step=6,
        scales=(4, 6, 8, 10),
        smoothing=1 / 6,
        contrast=0.005,
        root=True,
        n_jobs=None,
    ):
        self.step = step
        self.scales = scales
        self.smoothing = smoothing
        self.contrast = contrast
        self.root = root
        self.n_jobs = n_jobs

    def _planes(self, pixels: Pixels, scale: int) -> Pixels:
        channels = SPACES[self.space](_blurred(pixels, self.smoothing * scale))
        down, right = np.gradient(channels, axis=(0, 1))
        votes = soft_votes(np.arctan2(down, right), np.hypot(down, right), N_ORIENTATIONS)
        return votes.reshape(*pixels.shape[:2], -1)

    def _finish(self, bins: Pixels) -> Pixels:
        n_points, n_bins = bins.shape[:2]
        weighted = bins * _window()[:, :, None]
        # The channels one after the other, each a SIFT descriptor by itself.
        split = weighted.reshape(n_points, n_bins, n_bins, -1, N_ORIENTATIONS)
        channels: Pixels = np.moveaxis(split, 3, 1).reshape(-1, n_bins**2 * N_ORIENTATIONS)
        strength = np.linalg.norm(channels, axis=1)
        channels[strength < self.contrast] = 0
        clipped = np.minimum(_normalised(channels, 2), _CLIP)
        final = np.sqrt(_normalised(clipped, 1)) if self.root else _normalised(clipped, 2)
        return final.reshape(n_points, -1)


class OpponentSIFT(DenseSIFT):
    """SIFT descriptors of the three opponent colours, 384 numbers.

    The channels are (R - G) / sqrt(2), (R + G - 2B) / sqrt(6) and (R + G + B) / sqrt(3).

    Parameters
    ----------
    step, scales, smoothing, contrast, root, n_jobs
        See `DenseSIFT`.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import OpponentSIFT
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 32, 40, 3), dtype=np.uint8)
    >>> OpponentSIFT(step=8, scales=(4,)).fit_transform(images)[0].shape
    (12, 384)
    """

    space = "opponent"


class ColourSIFT(DenseSIFT):
    """SIFT descriptors of the channels of a colour space.

    Parameters
    ----------
    space : {"w", "rgb", "opponent", "grey"}, default="w"
        "w" has the brightness and the two opponent colours divided by it, which shadows
        and shading leave as they are (W-SIFT, also called C-SIFT).
    step, scales, smoothing, contrast, root, n_jobs
        See `DenseSIFT`.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import ColourSIFT
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 32, 40, 3), dtype=np.uint8)
    >>> ColourSIFT(step=8, scales=(4,)).fit_transform(images)[0].shape
    (12, 384)
    """

    _parameter_constraints: dict = {
        **DenseSIFT._parameter_constraints,
        "space": [StrOptions(set(SPACES))],
    }

    def __init__(
        self,
        space="w",
        *,
        step=6,
        scales=(4, 6, 8, 10),
        smoothing=1 / 6,
        contrast=0.005,
        root=True,
        n_jobs=None,
    ):
        super().__init__(
            step=step,
            scales=scales,
            smoothing=smoothing,
            contrast=contrast,
            root=root,
            n_jobs=n_jobs,
        )
        self.space = space


def _blurred(pixels: Pixels, sigma: float) -> Pixels:
    if sigma == 0:
        return pixels
    return cv2.GaussianBlur(pixels, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)


def _window() -> Pixels:
    """Return the weight of each bin: a Gaussian whose deviation is half the patch (Lowe 2004)."""
    offset = np.arange(PATCH) - (PATCH - 1) / 2
    weights = np.exp(-(offset**2) / (2 * (PATCH / 2) ** 2)).astype(np.float32)
    return weights[:, None] * weights


def _normalised(rows: Pixels, power: int) -> Pixels:
    """Return rows divided by their l1 or l2 norm; rows of zeros stay."""
    norms = np.linalg.norm(rows, ord=power, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, np.float32(1))

"""Histograms of oriented gradients, in the form of Felzenszwalb and others (2010)."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mbkl_paper.vision.images import (
    ImageTransformer,
    Pixels,
    as_images,
    as_pixels,
    colour,
    named,
    positive_integers,
    resized,
)
from mbkl_paper.vision.local import soft_votes

# Pixels of a batch of images: the votes of all of them then fit into a cache.
_PIXELS_AT_ONCE = 2**17

# Rounds to the nearest direction. Diagonal gradients, frequent in small numbers, lie between
# two of them: always the first one, whatever the last digit is.
_NEAREST = 0.499

_CONTRASTS: dict[str, Callable[[Pixels], Pixels]] = {
    "linear": lambda pixels: pixels,
    "sqrt": np.sqrt,
    "log": lambda pixels: np.log1p(255 * pixels) / np.float32(np.log(256)),
}


class HOG(ImageTransformer):
    """Histograms of oriented gradients, 31 numbers a cell.

    Gradients vote for the cells next to them by bilinear interpolation. The histogram
    of a cell has 18 directions, and 9 orientations with opposite directions joined. It is
    divided by the norm of each of the four blocks of 2 x 2 cells that the cell is part of,
    clipped, and the four are averaged; four more numbers tell how textured the blocks are.
    All features are at least zero.

    Parameters
    ----------
    cell : int or tuple of int, default=6
        Side of a cell in pixels. The features of several sizes are put one after the other.
    padding : int or "half", default=0
        Pixels by which the image is extended on each side, repeating those at the border.
        "half" is half a cell: the first cell is then centred at the border.
    span : int or tuple of int, default=2
        Pixels between the two that a difference is taken of. 2 is the usual central
        difference, 1 sees finer and 4 coarser detail. The features of several are put one
        after the other, each relative to the blocks of all: they tell how sharp edges are.
    contrast : {"linear", "sqrt", "log"}, default="linear"
        What is done to the brightness first. "log" makes gradients ratios of brightness.
    soft : bool, default=True
        Whether a gradient votes for the two directions next to it, or for the nearest.
    n_orientations : int, default=9
        Number of orientations; a cell has three times as many numbers and four.
    clip : float, default=0.2
        Largest value of a normalised histogram.
    epsilon : float, default=1e-4
        Added to the energy of a block, so that blocks without gradients stay zero.
    size : tuple (height, width) or None, default=None
        Images are resized to this size. None needs images of equal size.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores. The result is the same, to
        the bit, for any number.

    Attributes
    ----------
    image_shape_ : tuple (height, width)
        Size of the images.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl_paper.vision import HOG
    >>> images = np.random.default_rng(0).integers(0, 256, (5, 36, 18), dtype=np.uint8)
    >>> HOG().fit_transform(images).shape
    (5, 558)
    """

    _parameter_constraints: dict = {
        **ImageTransformer._parameter_constraints,
        "cell": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "padding": [StrOptions({"half"}), Interval(Integral, 0, None, closed="left")],
        "span": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "contrast": [StrOptions(set(_CONTRASTS))],
        "soft": ["boolean"],
        "n_orientations": [Interval(Integral, 1, None, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "size": [tuple, list, None],
    }

    def __init__(
        self,
        *,
        cell=6,
        padding=0,
        span=2,
        contrast="linear",
        soft=True,
        n_orientations=9,
        clip=0.2,
        epsilon=1e-4,
        size=None,
        n_jobs=None,
    ):
        self.cell = cell
        self.padding = padding
        self.span = span
        self.contrast = contrast
        self.soft = soft
        self.n_orientations = n_orientations
        self.clip = clip
        self.epsilon = epsilon
        self.size = size
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Take note of the size of the images.

        Parameters
        ----------
        X : list of images
            See `transform`.
        y : ignored

        Returns
        -------
        self : HOG
        """
        images = as_images(X)
        if self.size is None:
            shape = as_pixels(images[0], "images[0]").shape[:2]
        else:
            shape = positive_integers(self.size, "size")
            if len(shape) != 2:
                raise ValueError(f"size must be a pair (height, width), not {self.size!r}.")
        for cell in positive_integers(self.cell, "cell"):
            for span in positive_integers(self.span, "span"):
                needed = max(cell, span + 1) - 2 * self._padding(cell)
                if min(shape) < needed:
                    raise ValueError(
                        f"images of {shape[0]} x {shape[1]} pixels are smaller than a cell: "
                        f"cell={cell}, span={span} and padding={self.padding} need {needed} x "
                        f"{needed} at least; use smaller cells, or size to enlarge the images."
                    )
        self.image_shape_ = shape
        return self

    def transform(self, X):
        """Return the histograms of each image.

        Parameters
        ----------
        X : list of images, or array of shape (n, height, width) or (n, height, width, 3)
            Arrays of uint8 values or of floats from 0 to 1, paths, or contents of files.
            Colour images vote, at each pixel, with the channel of the largest gradient.

        Returns
        -------
        features : ndarray of shape (n_images, n_features)
            For each size of cells, each span, each row and each column of cells: directed
            and undirected histogram, and texture.
        """
        check_is_fitted(self)
        images = named(as_images(X))
        n_together = max(1, _PIXELS_AT_ONCE // int(np.prod(self.image_shape_)))
        batches = [
            (images[first : first + n_together],) for first in range(0, len(images), n_together)
        ]
        return np.concatenate(self._in_threads(self._transform_batch, batches))

    def get_feature_names_out(self, input_features=None):
        """Return names such as "cell 6 span 2 row 0 column 1 directed 3".

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        channels = [
            *(f"directed {number}" for number in range(2 * self.n_orientations)),
            *(f"undirected {number}" for number in range(self.n_orientations)),
            *(f"texture {number}" for number in range(4)),
        ]
        names = []
        for cell in positive_integers(self.cell, "cell"):
            rows, columns = (
                n_cells(length + 2 * self._padding(cell), cell) for length in self.image_shape_
            )
            names += [
                f"cell {cell} span {span} row {row} column {column} {channel}"
                for span in positive_integers(self.span, "span")
                for row in range(rows)
                for column in range(columns)
                for channel in channels
            ]
        return np.asarray(names, dtype=object)

    def _transform_batch(self, images) -> NDArray[np.float32]:
        pixels = _CONTRASTS[self.contrast](_stacked([self._sized(*image) for image in images]))
        parts = []
        for cell in positive_integers(self.cell, "cell"):
            margin = self._padding(cell)
            padded = np.pad(pixels, ((0, 0), (0, 0), (margin, margin), (margin, margin)), "edge")
            histograms = [
                self._histograms(padded, cell, span)
                for span in positive_integers(self.span, "span")
            ]
            factors = block_factors(histograms, self.epsilon)
            parts += [
                normalised_cells(histogram, factors, self.clip).reshape(len(images), -1)
                for histogram in histograms
            ]
        return np.concatenate(parts, axis=1)

    def _sized(self, image, name: str) -> Pixels:
        """Return an image of the right size."""
        pixels = as_pixels(image, name)
        if self.size is not None:
            pixels = resized(pixels, self.image_shape_)
        if pixels.shape[:2] != self.image_shape_:
            raise ValueError(
                f"{name} has {pixels.shape[0]} x {pixels.shape[1]} pixels where the images of fit "
                f"had {self.image_shape_[0]} x {self.image_shape_[1]}: set size=(height, width) "
                "to bring all images to one size."
            )
        return pixels

    def _histograms(self, pixels: Pixels, cell: int, span: int) -> Pixels:
        """Return the directed histograms, of shape (n, rows, columns, n_directions)."""
        height, width = pixels.shape[2:]
        down, right = strongest(*gradients(pixels, span))
        n_directions = 2 * self.n_orientations
        angle, strength = np.arctan2(down, right), np.hypot(down, right)
        if not self.soft:
            unit = np.float32(np.pi / self.n_orientations)
            angle = np.floor(angle / unit + np.float32(_NEAREST)) * unit
        votes = soft_votes(angle, strength, n_directions)
        by_row = cell_weights(height, cell, span) @ votes.reshape(*votes.shape[:2], -1)
        by_row = by_row.reshape(*by_row.shape[:2], -1, n_directions)
        return cell_weights(width, cell, span) @ by_row

    def _padding(self, cell: int) -> int:
        return cell // 2 if self.padding == "half" else self.padding


def _stacked(images: list[Pixels]) -> Pixels:
    """Return images of one size as an array of shape (n, n_channels, height, width)."""
    if all(image.ndim == 2 for image in images):
        return np.stack(images)[:, None]
    return np.moveaxis(np.stack([colour(image) for image in images]), 3, 1)


def gradients(pixels: Pixels, span: int) -> tuple[Pixels, Pixels]:
    """Return the slopes, down and to the right, at all points where both can be taken.

    Differences over an odd number of pixels lie at the corners between four pixels; they
    are the means of those on either side.

    Parameters
    ----------
    pixels : ndarray of shape (..., height, width)
    span : int
        Pixels between the two of a difference.

    Returns
    -------
    down, right : ndarray of shape (..., height - span, width - span)
        The first point lies (span + 1) / 2 pixels from the border.

    Examples
    --------
    >>> import numpy as np
    >>> down, right = gradients(np.outer([0.0, 1.0, 4.0, 9.0], np.ones(4)), 2)
    >>> down
    array([[2., 2.],
           [4., 4.]])
    """
    down = (pixels[..., span:, :] - pixels[..., :-span, :]) / np.float32(span)
    right = (pixels[..., span:] - pixels[..., :-span]) / np.float32(span)
    middle = slice(span // 2, -(span // 2) or None)
    down, right = down[..., middle], right[..., middle, :]
    if span % 2 == 1:
        down = (down[..., 1:] + down[..., :-1]) / np.float32(2)
        right = (right[..., 1:, :] + right[..., :-1, :]) / np.float32(2)
    return down, right


def strongest(down: Pixels, right: Pixels) -> tuple[Pixels, Pixels]:
    """Return the gradient of the channel, the second axis, in which it is largest."""
    if down.shape[1] == 1:
        return down[:, 0], right[:, 0]
    best = (down**2 + right**2).argmax(axis=1)[:, None]
    return (
        np.take_along_axis(down, best, axis=1)[:, 0],
        np.take_along_axis(right, best, axis=1)[:, 0],
    )


def n_cells(length: int, cell: int) -> int:
    """Return the number of cells along a side; the last one may be half outside."""
    return (length + cell // 2) // cell


def cell_weights(length: int, cell: int, span: int) -> Pixels:
    """Return the share of each gradient in each cell, falling linearly between centres.

    Returns
    -------
    weights : ndarray of shape (n_cells, length - span)
    """
    points = (span + 1) / 2 + np.arange(length - span)
    centres = (np.arange(n_cells(length, cell)) + 0.5) * cell
    return np.maximum(0, 1 - np.abs(points - centres[:, None]) / cell).astype(np.float32)


def block_factors(histograms: list[Pixels], epsilon: float) -> list[Pixels]:
    """Return one over the norm of each of the four blocks that each cell is part of.

    Parameters
    ----------
    histograms : list of ndarray of shape (n, rows, columns, 2 * n_orientations)
        Directed histograms for each span. The norm is that of their root mean square,
        so that one span can be told to be stronger than another.
    epsilon : float

    Returns
    -------
    factors : list of four ndarray of shape (n, rows, columns, 1)
    """
    energies = [(_undirected(histogram) ** 2).sum(axis=3) for histogram in histograms]
    energy = np.pad(sum(energies) / np.float32(len(energies)), ((0, 0), (1, 1), (1, 1)), "edge")
    rows = energy[:, 1:] + energy[:, :-1]
    factor = 1 / np.sqrt(rows[:, :, 1:] + rows[:, :, :-1] + np.float32(epsilon))[..., None]
    return [factor[:, :-1, :-1], factor[:, :-1, 1:], factor[:, 1:, :-1], factor[:, 1:, 1:]]


def normalised_cells(directed: Pixels, factors: list[Pixels], clip: float) -> Pixels:
    """Return the features of cells, each relative to the four blocks it is part of.

    Parameters
    ----------
    directed : ndarray of shape (n, rows, columns, 2 * n_orientations)
    factors : list of four ndarray of shape (n, rows, columns, 1)
    clip : float

    Returns
    -------
    features : ndarray of shape (n, rows, columns, 3 * n_orientations + 4)
    """
    n_directions = directed.shape[3]
    histogram = np.concatenate([directed, _undirected(directed)], axis=3)
    scaled = [np.minimum(histogram * factor, np.float32(clip)) for factor in factors]
    texture = np.stack([part[..., n_directions:].sum(axis=3) for part in scaled], axis=3)
    return np.concatenate(
        [sum(scaled) / np.float32(2), texture / np.sqrt(np.float32(n_directions))], axis=3
    )


def _undirected(directed: Pixels) -> Pixels:
    """Return histograms with opposite directions joined."""
    n_orientations = directed.shape[3] // 2
    return directed[..., :n_orientations] + directed[..., n_orientations:]

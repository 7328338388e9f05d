"""Images: read, checked, brought to one form, and shared out among threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from numbers import Integral
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from threadpoolctl import threadpool_limits

# Values of pixels, float32 everywhere.
Pixels = NDArray[np.floating]

# Shares of red, green and blue in the brightness of a pixel (ITU-R BT.601).
_BRIGHTNESS = np.array([0.299, 0.587, 0.114], dtype=np.float32)


def read_image(source: str | os.PathLike | bytes) -> NDArray[np.uint8]:
    """Read an image file.

    Parameters
    ----------
    source : path or bytes
        A file, or the contents of one (JPEG, PNG, PGM, ...).

    Returns
    -------
    image : ndarray of shape (height, width) or (height, width, 3)
        Grey values, or red, green and blue, of type uint8.

    Examples
    --------
    >>> from mbkl_paper.vision import read_image
    >>> read_image(b"P5 3 2 255 " + bytes([0, 50, 100, 150, 200, 250]))
    array([[  0,  50, 100],
           [150, 200, 250]], dtype=uint8)
    """
    if isinstance(source, bytes):
        content, name = source, f"these {len(source)} bytes"
    else:
        content, name = Path(source).read_bytes(), f"the file {os.fspath(source)!r}"
    image = None
    if content:
        try:
            image = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_ANYCOLOR)
        except cv2.error as error:
            raise ValueError(f"Cannot read {name} as an image: {error}") from error
    if image is None:
        raise ValueError(f"Cannot read {name} as an image: damaged, empty or of another format.")
    return image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def as_pixels(image: Any, name: str = "image") -> Pixels:
    """Return an image as float32 values from 0 to 1.

    Parameters
    ----------
    image : path, bytes or array-like of shape (height, width) or (height, width, 3)
        Arrays hold uint8 values, or floats from 0 to 1.
    name : str
        What to call the image in an error.

    Returns
    -------
    pixels : ndarray of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> as_pixels(np.array([[0, 51, 255]], dtype=np.uint8))
    array([[0. , 0.2, 1. ]], dtype=float32)
    """
    if isinstance(image, str | os.PathLike | bytes):
        image = read_image(image)
    values = np.asarray(image)
    if values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] != 3):
        raise ValueError(
            f"{name} must have the shape (height, width) or (height, width, 3), not {values.shape}."
        )
    if values.size == 0:
        raise ValueError(f"{name} has no pixels: its shape is {values.shape}.")
    if values.dtype == np.uint8:
        return values.astype(np.float32) / np.float32(255)
    if values.dtype.kind != "f":
        raise ValueError(
            f"{name} must hold uint8 values or floats from 0 to 1, not {values.dtype} values."
        )
    # Written so that NaN fails too.
    if not (values.min() >= 0 and values.max() <= 1):
        raise ValueError(
            f"{name} holds floats, which must lie between 0 and 1 and must not be NaN; "
            f"divide by the largest possible value, or convert to uint8."
        )
    return values.astype(np.float32)


def as_images(X: Any) -> list | NDArray:
    """Return images as a sequence, checked to be one and not to be empty.

    Parameters
    ----------
    X : list of images, or array of shape (n, height, width) or (n, height, width, 3)
        Images as `as_pixels` takes them.

    Returns
    -------
    images : list or ndarray
    """
    if isinstance(X, str | os.PathLike | bytes) or not hasattr(X, "__len__"):
        raise ValueError(
            "images must be a list of arrays or paths, or an array of shape "
            f"(n_images, height, width) or (n_images, height, width, 3), not a {type(X).__name__}. "
            "Put a single image into a list."
        )
    if isinstance(X, np.ndarray) and X.dtype.kind in "biufc" and X.ndim not in (3, 4):
        raise ValueError(
            "images in an array must have the shape (n_images, height, width) or "
            f"(n_images, height, width, 3), not {X.shape}. Put a single image into a list."
        )
    images = X if isinstance(X, np.ndarray) else list(X)
    if len(images) == 0:
        raise ValueError("images is empty: at least one image is needed.")
    return images


def named(images: Iterable) -> list[tuple[Any, str]]:
    """Return each image with what to call it in an error."""
    return [(image, f"images[{number}]") for number, image in enumerate(images)]


def positive_integers(values: Any, name: str) -> tuple[int, ...]:
    """Return one or more positive whole numbers, given alone or as a sequence, as a tuple."""
    numbers = (values,) if isinstance(values, Integral) else tuple(values)
    if not numbers or not all(isinstance(n, Integral) and int(n) >= 1 for n in numbers):
        raise ValueError(f"{name} must be one or more positive whole numbers, not {values!r}.")
    return numbers


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Return an image in another size, (height, width), each pixel a mean of those it covers."""
    if pixels.shape[:2] == size:
        return pixels
    shrinks = pixels.shape[0] > size[0] and pixels.shape[1] > size[1]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return cv2.resize(pixels, (size[1], size[0]), interpolation=method)


def grey(pixels: Pixels) -> Pixels:
    """Return the brightness of an image or of a stack of images, colour being the last axis."""
    return pixels if pixels.ndim == 2 else pixels @ _BRIGHTNESS


def colour(pixels: Pixels) -> Pixels:
    """Return an image with three channels, those of a grey one being equal."""
    return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)


class ImageTransformer(TransformerMixin, BaseEstimator):
    """What transformers of images share: threads, tags and the check of `n_jobs`."""

    n_jobs: int | None

    _parameter_constraints: dict = {"n_jobs": [Integral, None]}

    def _in_threads(self, function: Callable, items: Iterable) -> list:
        """Return function(*item) of each item, in order."""
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0; use None or -1 for all cores.")
        n_threads = effective_n_jobs(-1 if self.n_jobs is None else self.n_jobs)
        with threadpool_limits(1, user_api="blas"):
            calls = (delayed(function)(*item) for item in items)
            return Parallel(n_jobs=n_threads, prefer="threads")(calls)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Images may differ in size, or be paths: they are no table.
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.no_validation = True
        return tags

"""Data of the benchmarks: read from the folder MBKL_DATA, or made up where it is not set."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CELL = 6
N_DIRECTIONS = 18
_HOG_BLOCK = 4_000


class MissingData(Exception):
    """A data set is not there; the message names it."""


@dataclass(frozen=True)
class Dataset:
    """Training and test part of a data set.

    Parameters
    ----------
    name : str
        Says "synthetic" where the data are made up.
    X_train, X_test : ndarray of shape (n_rows, n_features)
    y_train, y_test : ndarray of shape (n_rows,)
    """

    name: str
    X_train: NDArray
    y_train: NDArray
    X_test: NDArray
    y_test: NDArray

    def first(self, rows: int | None = None, features: int | None = None) -> Dataset:
        """Return a part: some rows, spread evenly over all, and the first features."""
        train, test = _spread(len(self.y_train), rows), _spread(len(self.y_test), rows)
        return replace(
            self,
            X_train=np.ascontiguousarray(self.X_train[train, :features]),
            y_train=self.y_train[train],
            X_test=np.ascontiguousarray(self.X_test[test, :features]),
            y_test=self.y_test[test],
        )

    @property
    def shape(self) -> str:
        rows, features = self.X_train.shape
        return f"{rows:,} x {features:,}"


def _spread(n_rows: int, wanted: int | None) -> NDArray[np.intp]:
    if wanted is None or wanted >= n_rows:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, wanted).astype(np.intp)


# ---------------------------------------------------------------- stored sets


def has_data() -> bool:
    """Say whether the environment names a folder of data."""
    return bool(os.environ.get("MBKL_DATA"))


def find(*parts: str) -> Path:
    """Return the path of a file below MBKL_DATA; raise MissingData where it is not."""
    if not has_data():
        raise MissingData(f"{parts[-1]} is missing: MBKL_DATA does not name a folder of data.")
    path = Path(os.environ["MBKL_DATA"]).joinpath(*parts)
    if not path.exists():
        raise MissingData(f"{'/'.join(parts)} is missing in the folder MBKL_DATA.")
    return path


def mnist() -> Dataset:
    """Return MNIST with its official split: 60,000 and 10,000 images of 784 pixels."""
    with np.load(find("suite", "mnist.npz")) as stored:
        X, y = stored["X"].astype(np.float32), stored["y"]
        train, test = stored["train_idx"], stored["test_idx"]
    return Dataset("MNIST", X[train], y[train], X[test], y[test])


def flights() -> tuple[NDArray, NDArray]:
    """Return one million flights of 10 features, and whether each was late."""
    with np.load(find("suite", "flights-1m.npz")) as stored:
        return np.ascontiguousarray(stored["X"], dtype=np.float32), stored["y"]


def uci(name: str) -> tuple[NDArray, NDArray]:
    """Return attributes and classes of "sonar" or "liver"."""
    with np.load(find("paper", name, f"{name}.npz")) as stored:
        return stored["X"].astype(np.float64), stored["y"]


# ---------------------------------------------------------------- made-up sets


def gaussian_classes(
    n_rows: int, n_features: int, n_classes: int = 2, separation: float = 2.0, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Draw classes with different means and spreads.

    Parameters
    ----------
    n_rows, n_features, n_classes : int
    separation : float
        Typical distance of a class mean from the origin, whatever the number of
        features; the spread within a class is about one.
    seed : int

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
    """
    generator = np.random.default_rng(seed)
    means = generator.normal(size=(n_classes, n_features)) * separation / np.sqrt(n_features)
    spreads = generator.uniform(0.9, 1.1, size=(n_classes, n_features))
    y = generator.permutation(np.arange(n_rows) % n_classes)
    X = generator.standard_normal((n_rows, n_features), dtype=np.float32)
    for label in range(n_classes):
        members = y == label
        X[members] = X[members] * spreads[label] + means[label]
    return X, y


def gaussian_dataset(n_rows: int, n_features: int, n_classes: int = 2, seed: int = 0) -> Dataset:
    """Return two classes with as many rows for the test as for training."""
    X, y = gaussian_classes(2 * n_rows, n_features, n_classes, seed=seed)
    return Dataset("synthetic classes", X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


# ---------------------------------------------------------------- Daimler


def daimler_hog() -> Dataset:
    """Return the Daimler pedestrians as HOG descriptors of 558 numbers.

    Training rows are the sets 1 and 2 (19,600), test rows the sets T1 and T2.
    Without MBKL_DATA, synthetic rows of the same shape take their place. The
    descriptors are kept in the folder MBKL_CACHE, or in that for temporary files.
    """
    if not has_data():
        return _like_daimler()
    source = find("paper", "daimler", "daimler.npz")
    with np.load(source) as stored:
        y, fold = stored["y"].astype(np.intp), stored["fold"]
        X = _cached_descriptors(stored)
    train, test = np.isin(fold, (0, 1)), np.isin(fold, (3, 4))
    return Dataset("Daimler HOG", X[train], y[train], X[test], y[test])


def _like_daimler() -> Dataset:
    """Return two classes of the shape of Daimler; no value is negative, as in a histogram."""
    data = gaussian_dataset(19_600, 558)
    low = np.minimum(data.X_train.min(axis=0), data.X_test.min(axis=0))
    name = "synthetic, shaped like Daimler"
    return replace(data, name=name, X_train=data.X_train - low, X_test=data.X_test - low)


def _cached_descriptors(stored) -> NDArray[np.float32]:
    folder = Path(os.environ.get("MBKL_CACHE") or Path(tempfile.gettempdir()) / "mbkl-benchmarks")
    path = folder / "daimler-hog-558.npz"
    if path.exists():
        with np.load(path) as cached:
            return cached["X"]
    X = hog(stored["X"])
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"unfinished-{os.getpid()}-{path.name}")
    np.savez(unfinished, X=X)
    unfinished.replace(path)
    return X


def hog(images: NDArray) -> NDArray[np.float32]:
    """Return UoCTTI histograms of oriented gradients, 31 numbers per cell of 6 pixels.

    Parameters
    ----------
    images : ndarray of shape (n_images, height, width)
        Grey values.

    Returns
    -------
    descriptors : ndarray of shape (n_images, n_cells * 31)
        For each cell 18 directed, 9 undirected and 4 texture entries, all >= 0.
    """
    parts = [
        _describe_cells(_cell_histograms(images[first : first + _HOG_BLOCK].astype(np.float32)))
        for first in range(0, len(images), _HOG_BLOCK)
    ]
    return np.concatenate(parts)


def _cell_histograms(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return gradient strength by cell and direction: (images, cell rows, cell columns, 18)."""
    height, width = images.shape[1:]
    across = (images[:, 1:-1, 2:] - images[:, 1:-1, :-2]) / 2
    down = (images[:, 2:, 1:-1] - images[:, :-2, 1:-1]) / 2
    strength = np.hypot(across, down).reshape(len(images), -1)
    direction = _directions(across, down).reshape(len(images), -1)
    # Each interior pixel votes for its four nearest cell centres, in two dimensions at once.
    votes = np.kron(_votes(height), _votes(width)).astype(np.float32)
    histograms = [np.where(direction == d, strength, 0) @ votes for d in range(N_DIRECTIONS)]
    shape = (len(images), _n_cells(height), _n_cells(width), N_DIRECTIONS)
    return np.stack(histograms, axis=-1).reshape(shape)


def _directions(across: NDArray[np.float32], down: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return the nearest of 18 directions; the smaller number where two are equally near."""
    half = N_DIRECTIONS // 2
    nearest = np.zeros(across.shape, dtype=np.int8)
    longest = np.full(across.shape, -1.0, dtype=np.float32)
    for number in range(half):
        angle = number * np.pi / half
        length = across * np.float32(np.cos(angle)) + down * np.float32(np.sin(angle))
        closer = np.abs(length) > longest
        longest[closer] = np.abs(length[closer])
        nearest[closer] = np.where(length[closer] < 0, number + half, number)
    return nearest


def _n_cells(length: int) -> int:
    return (length + CELL // 2) // CELL


def _votes(length: int) -> NDArray[np.float64]:
    """Return bilinear weights of shape (interior pixels, cells) along one side of an image."""
    position = (np.arange(1, length - 1) + 0.5) / CELL - 0.5
    distance = np.abs(position[:, None] - np.arange(_n_cells(length)))
    return np.maximum(0.0, 1.0 - distance)


def _describe_cells(directed: NDArray[np.float32]) -> NDArray[np.float32]:
    """Normalise each cell by the four blocks around it, clip, and add up."""
    half = N_DIRECTIONS // 2
    undirected = directed[..., :half] + directed[..., half:]
    energy = np.pad((undirected**2).sum(axis=-1), ((0, 0), (1, 1), (1, 1)), mode="edge")
    block = energy[:, :-1, :-1] + energy[:, 1:, :-1] + energy[:, :-1, 1:] + energy[:, 1:, 1:]
    rows, columns = directed.shape[1:3]
    entries = np.concatenate([directed, undirected], axis=-1)
    total, texture = np.zeros_like(entries), []
    for down in (0, 1):
        for right in (0, 1):
            energies = block[:, down : down + rows, right : right + columns]
            clipped = np.minimum(0.2, entries / np.sqrt(energies + 1e-4)[..., None])
            total += clipped / 2
            texture.append(clipped[..., N_DIRECTIONS:].sum(axis=-1) / np.sqrt(N_DIRECTIONS))
    described = np.concatenate([total, np.stack(texture, axis=-1)], axis=-1)
    return described.reshape(len(directed), -1).astype(np.float32)

"""Data of the benchmarks: read from the folder MBKL_DATA, or synthetic if it is not set."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class MissingData(Exception):
    """A data set is missing; the message names it."""


@dataclass(frozen=True)
class Dataset:
    """Training and test part of a data set.

    Parameters
    ----------
    name : str
        Contains "synthetic" if the data are.
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
    """Return the path of a file below MBKL_DATA; raise MissingData if it does not exist."""
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


# ---------------------------------------------------------------- synthetic sets


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
    Without MBKL_DATA, the rows are synthetic, of the same shape. Descriptors are
    cached in the folder MBKL_CACHE, or in the folder of temporary files.
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
    """Return two classes of the shape of Daimler, without negative values as in a histogram."""
    data = gaussian_dataset(19_600, 558)
    low = np.minimum(data.X_train.min(axis=0), data.X_test.min(axis=0))
    name = "synthetic, shaped like Daimler"
    return replace(data, name=name, X_train=data.X_train - low, X_test=data.X_test - low)


def _cached_descriptors(stored) -> NDArray[np.float32]:
    folder = Path(os.environ.get("MBKL_CACHE") or Path(tempfile.gettempdir()) / "mbkl-benchmarks")
    path = folder / "daimler-hog.npz"
    if path.exists():
        with np.load(path) as cached:
            return cached["X"]
    from mbkl_paper.vision import HOG

    X = HOG(soft=False).fit_transform(stored["X"])
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"unfinished-{os.getpid()}-{path.name}")
    np.savez(unfinished, X=X)
    unfinished.replace(path)
    return X

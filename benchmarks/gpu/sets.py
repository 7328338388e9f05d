"""The sets that the GPU is measured on, and planted rows of the same shapes where they are not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.data import Dataset, MissingData
from benchmarks.large.sets import split


@dataclass(frozen=True)
class Shape:
    """Size of a set."""

    n_rows: int
    n_features: int
    n_classes: int


# Training rows.
SHAPES = {
    "letter": Shape(16_000, 16, 26),
    "shuttle": Shape(43_500, 9, 7),
    "covtype-15k": Shape(11_340, 54, 7),
    "electricity": Shape(36_249, 8, 2),
    "census-kdd": Shape(199_523, 78, 2),
    "flights-1m": Shape(800_000, 10, 2),
    "mnist": Shape(60_000, 784, 10),
    "adult": Shape(32_561, 91, 2),
}
QUICK = {"two classes": Shape(300, 5, 2), "three classes": Shape(300, 4, 3)}


def load(name: str, shape: Shape) -> Dataset:
    """Return a stored set, or planted rows of its shape."""
    if name in SHAPES:
        try:
            data = split(name)
        except (MissingData, OSError):
            data = None
        if data is not None:
            return data
    return planted(f"{name} (planted)", shape)


def planted(name: str, shape: Shape, seed: int = 0) -> Dataset:
    """Draw rows whose classes depend on features, and on products of them.

    A third of the features are whole numbers and a third are mostly zero.
    """
    generator = np.random.default_rng(seed)
    n_test = max(shape.n_rows // 5, min(shape.n_rows, 20_000))
    size = (shape.n_rows + n_test, shape.n_features)
    X = generator.standard_normal(size, dtype=np.float32)
    X[:, 1::3] = np.round(3 * X[:, 1::3])
    X[:, 2::3] = np.maximum(X[:, 2::3] - 1, 0)
    used = generator.choice(shape.n_features, min(shape.n_features, 12), replace=False)
    slopes = generator.normal(size=(used.size, shape.n_classes)).astype(np.float32)
    products = generator.normal(size=(used.size, shape.n_classes)).astype(np.float32)
    known = X[:, used] / X[:, used].std(axis=0)
    scores = known @ slopes + (known * np.roll(known, 1, axis=1)) @ products
    scores += 2 * generator.standard_normal(scores.shape, dtype=np.float32)
    y = scores.argmax(axis=1)
    train = slice(0, shape.n_rows)
    test = slice(shape.n_rows, None)
    return Dataset(name, X[train], y[train], X[test], y[test])

"""The sets that the GPU is measured on, or planted rows of the same shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.data import Dataset, MissingData
from benchmarks.suite.datasets import CLASSES, NUMBERS
from benchmarks.suite.protocol import ALL_ROWS


@dataclass(frozen=True)
class Shape:
    """Size of a set; 0 classes mean a regression, and the first columns are categories."""

    n_rows: int
    n_features: int
    n_classes: int
    n_categories: int = 0


# Training rows.
SHAPES = {
    "diamonds": Shape(40_455, 9, 0),
    "beijing-pm25": Shape(31_317, 14, 0),
    "planted numbers": Shape(1_000_000, 20, 0),
    "planted categories": Shape(200_000, 12, 2, n_categories=6),
    "letter": Shape(16_000, 16, 26),
    "shuttle": Shape(43_500, 9, 7),
    "covtype-15k": Shape(11_340, 54, 7),
    "electricity": Shape(36_249, 8, 2),
    "census-kdd": Shape(199_523, 78, 2),
    "flights-1m": Shape(800_000, 10, 2),
    "mnist": Shape(60_000, 784, 10),
    "adult": Shape(32_561, 91, 2),
}
QUICK = {
    "two classes": Shape(300, 5, 2),
    "three classes": Shape(300, 4, 3),
    "numbers": Shape(300, 5, 0),
    "categories": Shape(300, 5, 2, n_categories=2),
}
# Numbers of levels of the first categories; the others have few.
LEVELS = (1_000, 200)


def load(name: str, shape: Shape) -> Dataset:
    """Return a stored set, or planted rows of its shape."""
    if name in SHAPES:
        try:
            return ALL_ROWS.fold((CLASSES if shape.n_classes else NUMBERS).load(name), 0)
        except (MissingData, OSError):
            pass
    return planted(f"{name} (planted)", shape)


def planted(name: str, shape: Shape, seed: int = 0) -> Dataset:
    """Draw rows whose classes depend on features, and on products of them.

    A third of the features are whole numbers and a third are mostly zero. Each level of a category
    stands for a normal random number.
    """
    generator = np.random.default_rng(seed)
    n_test = max(shape.n_rows // 5, min(shape.n_rows, 20_000))
    size = (shape.n_rows + n_test, shape.n_features)
    X = generator.standard_normal(size, dtype=np.float32)
    X[:, 1::3] = np.round(3 * X[:, 1::3])
    X[:, 2::3] = np.maximum(X[:, 2::3] - 1, 0)
    levels = _levels(X, shape.n_categories, generator)
    used = generator.choice(shape.n_features, min(shape.n_features, 12), replace=False)
    n_scores = max(shape.n_classes, 1)
    slopes = generator.normal(size=(used.size, n_scores)).astype(np.float32)
    products = generator.normal(size=(used.size, n_scores)).astype(np.float32)
    known = X[:, used] / X[:, used].std(axis=0)
    scores = known @ slopes + (known * np.roll(known, 1, axis=1)) @ products
    scores += 2 * generator.standard_normal(scores.shape, dtype=np.float32)
    y = scores.argmax(axis=1) if shape.n_classes else scores[:, 0]
    X[:, : shape.n_categories] = levels
    train = slice(0, shape.n_rows)
    test = slice(shape.n_rows, None)
    return Dataset(name, X[train], y[train], X[test], y[test])


def _levels(X: np.ndarray, n_categories: int, generator) -> np.ndarray:
    """Return levels for the first columns, and set these columns to the numbers of the levels."""
    levels = np.empty((len(X), n_categories), dtype=np.float32)
    for column in range(n_categories):
        n_levels = [*LEVELS, 12][min(column, len(LEVELS))]
        level = generator.integers(n_levels, size=len(X))
        levels[:, column] = level
        X[:, column] = generator.standard_normal(n_levels, dtype=np.float32)[level]
    return levels

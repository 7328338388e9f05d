"""The data sets of the suite: stored ones below MBKL_DATA, and two that come with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_wine

from benchmarks.data import find

# The sets used to choose the defaults of mbkl: every second one of the alphabet. The others
# confirm the choice. The names are spelled out, so that a new set does not move the old ones.
DEVELOPMENT = (
    "adult",
    "census-kdd",
    "credit-a",
    "dna",
    "flights-1m",
    "glass",
    "letter",
    "mnist",
    "optdigits",
    "phoneme",
    "satimage",
    "shuttle",
    "spambase",
    "usps",
    "vowel",
    "wine-quality-white",
)

BUNDLED: dict[str, Callable] = {"breast-cancer": load_breast_cancer, "wine": load_wine}


@dataclass(frozen=True)
class Table:
    """All rows of a data set, before any split.

    Parameters
    ----------
    name : str
    X : ndarray of shape (n_rows, n_features)
        NaN where a value is missing.
    y : ndarray of shape (n_rows,)
    split : tuple of ndarray or None
        Positions of the official training and test rows, where there are some.
    """

    name: str
    X: NDArray[np.float32]
    y: NDArray
    split: tuple[NDArray, NDArray] | None = None


def names() -> list[str]:
    """Return the names of all stored data sets in the order of the alphabet."""
    return sorted(path.stem for path in find("suite").glob("*.npz"))


def has_official_split(name: str) -> bool:
    """Say whether a data set comes divided into training and test rows; reads no rows."""
    if name in BUNDLED:
        return False
    with np.load(find("suite", f"{name}.npz")) as stored:
        return "train_idx" in stored


def load(name: str) -> Table:
    """Read a data set."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        return Table(name, X.astype(np.float32), y)
    with np.load(find("suite", f"{name}.npz")) as stored:
        split = (stored["train_idx"], stored["test_idx"]) if "train_idx" in stored else None
        return Table(name, stored["X"].astype(np.float32), stored["y"], split)

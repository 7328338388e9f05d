"""The data sets of the suite: stored ones below MBKL_DATA, and some of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_friedman1

from benchmarks.data import find

FEWEST_ROWS_OF_LARGE = 10_000
# The sets on which the defaults of mbkl were chosen: every second name in alphabetical order. The
# others confirm the choice. The names are listed, so that new sets do not change the halves.
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

# The same for the regression sets, and three more sets that were used to find rules.
DEVELOPMENT_OF_NUMBERS = (
    "ailerons",
    "airfoil",
    "beijing-pm25",
    "chicago-ridership",
    "computers-price",
    "cpu-act",
    "growth-dutch",
    "house-8l",
    "insurance",
    "kin8nm",
    "lucas-house",
    "real-estate-taipei",
    "tecator",
    "wine-white",
)


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
        Positions of the official training and test rows, if the set has them.
    has_classes : bool
        Whether y are classes; if so, samples of rows are stratified.
    """

    name: str
    X: NDArray[np.float32]
    y: NDArray
    split: tuple[NDArray, NDArray] | None = None
    has_classes: bool = True

    @property
    def strata(self) -> NDArray:
        """The strata for sampling: the classes, or a single stratum for numbers."""
        return self.y if self.has_classes else np.zeros(len(self.y), np.int8)


@dataclass(frozen=True)
class Sets:
    """Data sets of one kind.

    Parameters
    ----------
    folder : str
        Folder of the stored sets, below MBKL_DATA.
    development : tuple of str
        Sets on which the defaults were chosen.
    bundled : mapping from name to callable
        Sets that need no folder, for quick runs.
    has_classes : bool
    """

    folder: str
    development: tuple[str, ...]
    bundled: Mapping[str, Callable]
    has_classes: bool = True

    def names(self) -> list[str]:
        """Return the names of all stored data sets in alphabetical order."""
        return sorted(path.stem for path in find(self.folder).glob("*.npz"))

    def large(self) -> list[str]:
        """Return the names of the sets with more than `FEWEST_ROWS_OF_LARGE` rows."""
        return [name for name in self.names() if self._n_rows(name) > FEWEST_ROWS_OF_LARGE]

    def _n_rows(self, name: str) -> int:
        with np.load(find(self.folder, f"{name}.npz")) as stored:
            return len(stored["y"])

    def half(self, name: str) -> str:
        """Say whether the defaults were chosen on a set ("development") or not ("confirmation")."""
        return "development" if name in self.development else "confirmation"

    def has_official_split(self, name: str) -> bool:
        """Say whether a set has official training and test rows, without reading the rows."""
        if name in self.bundled:
            return False
        with np.load(find(self.folder, f"{name}.npz")) as stored:
            return "train_idx" in stored

    def load(self, name: str) -> Table:
        """Read a data set."""
        if name in self.bundled:
            X, y = self.bundled[name](return_X_y=True)
            return Table(name, X.astype(np.float32), y, None, self.has_classes)
        with np.load(find(self.folder, f"{name}.npz")) as stored:
            split = (stored["train_idx"], stored["test_idx"]) if "train_idx" in stored else None
            X = stored["X"].astype(np.float32)
            return Table(name, X, stored["y"], split, self.has_classes)


def _friedman(return_X_y: bool) -> tuple[NDArray, NDArray]:
    return make_friedman1(500, noise=1.0, random_state=0)


CLASSES = Sets("suite", DEVELOPMENT, {"breast-cancer": load_breast_cancer, "wine": load_wine})
NUMBERS = Sets(
    "regression",
    DEVELOPMENT_OF_NUMBERS,
    {"diabetes": load_diabetes, "friedman": _friedman},
    has_classes=False,
)

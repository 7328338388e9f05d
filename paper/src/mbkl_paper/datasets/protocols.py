"""How the rows of a benchmark are divided: official splits, or splits drawn at random.

Each protocol is called with the labels and a random state, and returns an iterator of
pairs of index arrays, train and test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
Protocol = Callable[..., Iterator[Split]]


@dataclass(frozen=True, eq=False)
class FixedSplits:
    """Official splits: nothing is drawn, so the random state plays no part."""

    splits: tuple[Split, ...]

    def __call__(self, y: NDArray, random_state) -> Iterator[Split]:
        return iter(self.splits)


@dataclass(frozen=True)
class StratifiedFolds:
    """Cross-validation with the proportions of the classes kept, `n_repeats` times."""

    n_folds: int = 5

    def __call__(self, y: NDArray, random_state, n_repeats: int = 1) -> Iterator[Split]:
        from sklearn.model_selection import RepeatedStratifiedKFold

        folds = RepeatedStratifiedKFold(
            n_splits=self.n_folds, n_repeats=n_repeats, random_state=random_state
        )
        return folds.split(np.zeros(y.size), y)


@dataclass(frozen=True)
class HeldOut:
    """A random share of the rows to test on, with the proportions of the classes kept."""

    share: float

    def __call__(
        self, y: NDArray, random_state, n_repeats: int = 1, test_size: float | None = None
    ) -> Iterator[Split]:
        from sklearn.model_selection import StratifiedShuffleSplit

        if test_size is None:
            # The splitter needs a row for every class.
            test_size = max(round(self.share * y.size), int(y.max()) + 1)
        draws = StratifiedShuffleSplit(n_repeats, test_size=test_size, random_state=random_state)
        return draws.split(np.zeros(y.size), y)


@dataclass(frozen=True)
class PerClass:
    """Random rows of every class: `n_train` to train on, `n_test` others (or all) to test."""

    n_train: int
    n_test: int | None = None

    def __call__(self, y: NDArray, random_state, n_repeats: int = 1) -> Iterator[Split]:
        from sklearn.utils import check_random_state

        smallest = int(np.bincount(y).min())
        if smallest <= self.n_train:
            raise ValueError(
                f"A class has {smallest} rows; of every class {self.n_train} are trained on, "
                "and at least one is tested on."
            )
        generator = check_random_state(random_state)
        return (self._draw(y, generator) for _ in range(n_repeats))

    def _draw(self, y: NDArray, generator) -> Split:
        end = None if self.n_test is None else self.n_train + self.n_test
        drawn = [generator.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
        train = np.concatenate([rows[: self.n_train] for rows in drawn])
        test = np.concatenate([rows[self.n_train : end] for rows in drawn])
        return np.sort(train), np.sort(test)

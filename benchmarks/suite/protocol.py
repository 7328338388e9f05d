"""The division of data sets into training and test rows, the same for every method."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.data import Dataset
from benchmarks.suite.datasets import CLASSES, Sets, Table

# Must be increased when a change of the code below changes the rows of a fold.
VERSION = 1


@dataclass(frozen=True)
class Protocol:
    """How a data set is divided.

    Parameters
    ----------
    train_rows, test_rows : int or None
        Largest number of rows of each part; None means all.
    n_folds : int
        Folds of a set without an official split; 1 tests on a quarter of the rows.
    rows_per_class : int
        A sample of training rows keeps at least this many of each class, if there are
        as many, so that every fold of an inner cross-validation has all classes.
    seed : int
    """

    train_rows: int | None = 10_000
    test_rows: int | None = 20_000
    n_folds: int = 3
    rows_per_class: int = 5
    seed: int = 0

    @property
    def fingerprint(self) -> str:
        """A hash of the settings of the protocol."""
        settings = json.dumps({"version": VERSION, **asdict(self)}, sort_keys=True)
        return hashlib.sha256(settings.encode()).hexdigest()[:12]

    def folds_of(self, name: str, sets: Sets = CLASSES) -> range:
        """Return the numbers of the folds of a data set, without reading its rows."""
        return range(1 if sets.has_official_split(name) else self.n_folds)

    def fold(self, table: Table, number: int) -> Dataset:
        """Return training and test rows of a fold.

        Training rows are in random order, so that an inner cross-validation that cuts
        them without shuffling has random folds, too.

        Parameters
        ----------
        table : Table
        number : int
            One of `folds_of`.
        """
        train, test = self._split(table, number)
        seed = [self.seed, number]
        train = train[draw(table.strata[train], self.train_rows, seed, self.rows_per_class)]
        test = test[draw(table.strata[test], self.test_rows, seed)]
        train = np.random.default_rng(seed).permutation(train)
        X, y = table.X, table.y
        return Dataset(table.name, X[train], y[train], X[test], y[test])

    def _split(self, table: Table, number: int) -> tuple[NDArray, NDArray]:
        if table.split is not None:
            return table.split
        if self.n_folds == 1:
            rows = np.arange(len(table.y))
            return train_test_split(
                rows, test_size=0.25, random_state=self.seed, stratify=table.strata
            )
        folds = StratifiedKFold(self.n_folds, shuffle=True, random_state=self.seed)
        return list(folds.split(table.X, table.strata))[number]


STANDARD = Protocol()
ALL_ROWS = Protocol(train_rows=None, test_rows=None, n_folds=1)
QUICK = Protocol(train_rows=300, test_rows=300, n_folds=2)


def draw(y: NDArray, limit: int | None, seed, rows_per_class: int = 0) -> NDArray[np.intp]:
    """Draw rows without replacement, stratified by class.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
    limit : int or None
        Largest number of rows to draw; None means all.
    seed : int or sequence of int
    rows_per_class : int
        Fewest rows of each class that has as many; the largest class gets fewer instead.

    Returns
    -------
    positions : ndarray
        In ascending order.

    Examples
    --------
    >>> y = np.array([0] * 90 + [1] * 10)
    >>> np.bincount(y[draw(y, 20, seed=0)])
    array([18,  2])
    >>> np.bincount(y[draw(y, 20, seed=0, rows_per_class=5)])
    array([15,  5])
    """
    if limit is None or len(y) <= limit:
        return np.arange(len(y))
    labels, counts = np.unique(y, return_counts=True)
    exact = counts * (limit / len(y))
    wanted = np.floor(exact).astype(np.intp)
    most_cut = np.argsort(wanted - exact, kind="stable")
    wanted[most_cut[: limit - wanted.sum()]] += 1
    wanted = np.maximum(wanted, np.minimum(counts, rows_per_class))
    wanted[np.argmax(wanted)] -= wanted.sum() - limit
    generator = np.random.default_rng(seed)
    drawn = [
        generator.choice(np.flatnonzero(y == label), size, replace=False)
        for label, size in zip(labels, wanted)
    ]
    return np.sort(np.concatenate(drawn))

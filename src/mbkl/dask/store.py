"""What a worker holds: the rows of its partitions, their codes, and numbers for each row.

A store is an actor: it lives on one worker, and its methods run there. It knows nothing of the
other stores; what they hold together is put together by `Crew`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import choose_loops
from mbkl.engine.arrays import group_totals
from mbkl.engine.bundles import Bundling
from mbkl.engine.codes import BundledCodes, DenseCodes
from mbkl.engine.rows import ArrayRows, ranges_of_blocks, told_apart
from mbkl.learn.labelled_rows import hashes_of, merge_equal_rows
from mbkl.maps.growing_rows import GrowingRows


@dataclass(frozen=True)
class Reference:
    """An array of all stores, by the name under which each has its part."""

    key: int


@dataclass(frozen=True)
class Instruction:
    """Compute an array from others, on every store."""

    key: int  # name of the result
    function: Any
    arguments: tuple  # with a `Reference` for each array of the stores
    options: dict


class Store:
    """The part of the rows that one worker holds."""

    def __init__(self, n_jobs: int | None = 1) -> None:
        self._n_jobs = n_jobs
        self._X: list[NDArray] = []
        self._labels: list[NDArray] = []
        self._weights: list[NDArray] = []
        self._objects: dict[int, Any] = {}

    def hold(self, X: NDArray, y: NDArray, weights: NDArray | None) -> None:
        """Take one more partition; only rows of positive weight count."""
        if weights is None:
            weights = np.ones(len(y))
        self._n_features = X.shape[1]
        present = weights > 0
        if not present.all():
            X, y, weights = X[present], y[present], weights[present]
        if len(y):
            self._X.append(X)
            self._labels.append(y)
            self._weights.append(weights)

    def run(
        self, program: Sequence[Instruction], method: str, arguments: tuple, forget: Sequence[int]
    ) -> Any:
        """Follow instructions, call a method, and forget what is needed no more."""
        for step in program:
            values = [
                self._objects[each.key] if isinstance(each, Reference) else each
                for each in step.arguments
            ]
            function = _gather if step.function == "gather" else step.function
            self._objects[step.key] = function(*values, **step.options)
        result = getattr(self, method)(*arguments)
        for key in forget:
            self._objects.pop(key, None)
        return result

    # What rows there are -------------------------------------------------------------------

    def shape(self) -> tuple[int, int | None]:
        """Return the number of rows, and of features where there are any rows."""
        return sum(map(len, self._X)), self._X[0].shape[1] if self._X else None

    def classes(self) -> list[NDArray]:
        """Return the labels that occur."""
        return [distinct(labels) for labels in self._labels]

    def pieces(self) -> list[tuple[NDArray, NDArray, NDArray]]:
        """Hand over all partitions."""
        found = list(zip(self._X, self._labels, self._weights, strict=True))
        self._X, self._labels, self._weights = [], [], []
        return found

    def encode(self, classes: NDArray, y: int, weights: int) -> None:
        """Keep classes as numbers, and the weights, under these names."""
        numbers = [_places(classes, labels) for labels in self._labels]
        self._objects[y] = np.concatenate([np.empty(0, np.intp), *numbers])
        self._objects[weights] = np.concatenate([np.empty(0), *self._weights])
        self._labels, self._weights = [], []

    def ranges(self) -> tuple:
        """Return smallest and largest values of the columns, and which ones have NaN."""
        return ranges_of_blocks(self._X) if self._X else (None, None, None)

    def release_rows(self) -> None:
        """Forget X: the codes are all that is needed from now on."""
        self._X = []

    # A sample of the rows ------------------------------------------------------------------

    def hash_rows(self, y: int | None, seed: int, keys: int) -> None:
        """Keep a random number for each row, of its values and class."""
        labels = None if y is None else self._objects[y]
        found, start = [np.empty(0, np.uint64)], 0
        for X in self._X:
            own = slice(start, start + len(X))
            found.append(ArrayRows(X).keys(None if labels is None else labels[own], seed))
            start += len(X)
        self._objects[keys] = np.concatenate(found)

    def smallest_keys(self, keys: int, n_keys: int) -> NDArray[np.uint64]:
        """Return the smallest different ones of the random numbers."""
        return np.unique(self._objects[keys])[:n_keys]

    def split_keys(self, keys: int, n_parts: int) -> list[NDArray[np.uint64]]:
        """Return the different random numbers, divided by size."""
        distinct = np.unique(self._objects[keys])
        return np.split(distinct, np.searchsorted(distinct, _bounds(n_parts)))

    def rows_of_keys(self, keys: int, chosen: NDArray, y: int | None, integers: int) -> tuple:
        """Return which of the chosen rows are here, with values, class and weights."""
        own = self._objects[keys]
        place = np.minimum(np.searchsorted(chosen, own), chosen.size - 1)
        here = np.flatnonzero(chosen[place] == own)
        place = place[here]
        mass = np.zeros(chosen.size, dtype=np.int64)
        np.add.at(mass, place, self._objects[integers][here, 0])
        found, first = np.unique(place, return_index=True)
        rows = here[first]
        labels = np.zeros(rows.size, np.intp) if y is None else self._objects[y][rows]
        return found, self._rows_of_X(rows), labels, mass

    def _rows_of_X(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return some rows as float32, which is how they are compared."""
        if not self._X:
            return np.empty((0, 0), dtype=np.float32)
        bounds = np.cumsum([0] + [len(X) for X in self._X])
        taken = np.empty((rows.size, self._X[0].shape[1]), dtype=np.float32)
        with np.errstate(over="ignore"):
            for X, start, stop in zip(self._X, bounds[:-1], bounds[1:], strict=True):
                here = np.flatnonzero((rows >= start) & (rows < stop))
                taken[here] = X[rows[here] - start]
        return taken

    # Codes -----------------------------------------------------------------------------------

    def bin(self, key: int, features: NDArray, edges) -> None:
        """Keep the codes of some columns of X."""
        self._objects[key] = self._coded(features.size, lambda rows: rows.bin(features, edges))

    def bin_ferns(self, key: int, ferns) -> None:
        """Keep the cell of each row in each fern."""
        self._objects[key] = self._coded(ferns.n_maps, lambda rows: rows.bin_ferns(ferns))

    def _coded(self, n_groups: int, code: Callable[[ArrayRows], DenseCodes]) -> DenseCodes:
        """Return the codes of all partitions; one without rows where there are none."""
        n_rows = sum(map(len, self._X))
        loops = choose_loops(n_groups * n_rows, self._n_jobs)
        X = self._X or [np.empty((0, self._n_features))]
        codes = [code(ArrayRows(each, loops)) for each in X]
        return replace(codes[0], values=np.concatenate([each.values for each in codes], axis=1))

    def renumber(self, codes: int, groups, numbers, offsets, key: int) -> None:
        """Keep the codes of some groups with new numbers for their cells."""
        self._objects[key] = self._objects[codes].renumbered(groups, numbers, offsets)

    def keep_groups(self, codes: int, groups: NDArray, key: int) -> None:
        """Keep the codes of some groups."""
        self._objects[key] = self._objects[codes].keep_groups(groups)

    def bundle(self, codes: int, plan: Bundling, key: int) -> None:
        """Keep the codes of groups joined as planned for all rows."""
        old = self._objects[codes]
        bundles = replace(old, values=plan.join(old.values), offsets=plan.cell_offsets)
        self._objects[key] = BundledCodes(bundles, plan)

    def take(self, codes: int, rows: int, key: int) -> None:
        """Keep the codes of some rows."""
        self._objects[key] = self._objects[codes].take(self._objects[rows])

    def counts(self, codes: int) -> NDArray[np.int64]:
        """Return the number of rows in each cell."""
        return self._objects[codes].counts()

    def histogram(self, codes: int, residuals: int) -> NDArray[np.int64]:
        """Return the sum of the residuals in each cell."""
        return self._objects[codes].histogram(self._objects[residuals])

    # Numbers of rows, put together ------------------------------------------------------------

    def largest(self, key: int) -> NDArray[np.float64]:
        """Return the largest magnitude of each column."""
        values = self._objects[key]
        return np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))

    def total(self, key: int) -> NDArray[np.int64]:
        """Return the sum of each column of integers."""
        return self._objects[key].sum(axis=0)

    def fetch(self, key: int) -> NDArray:
        """Return the numbers of all rows."""
        return self._objects[key]

    def group_totals(self, key: int, group: int) -> tuple[NDArray, NDArray[np.int64]]:
        """Return the groups that rows are of, and the sum of the integers of each."""
        groups, place = np.unique(self._objects[group], return_inverse=True)
        return groups, group_totals(self._objects[key], place, groups.size)

    def totals_below(self, key: int, integers: int, bounds: NDArray) -> NDArray[np.int64]:
        """Return the sum of the integers of rows whose number is below each bound."""
        values, weights = self._objects[key], self._objects[integers]
        place = np.searchsorted(bounds, values, side="right")
        return np.cumsum(group_totals(weights, place, bounds.size + 1))[:-1]

    def find(self, key: int, rows: int) -> int:
        """Keep which rows are not zero; return how many."""
        self._objects[rows] = np.flatnonzero(self._objects[key])
        return self._objects[rows].size

    def pick(self, key: int, rows: int) -> NDArray:
        """Return the numbers of some rows."""
        return self._objects[key][self._objects[rows]]

    def pick_codes(self, codes: int, rows: int) -> NDArray:
        """Return the codes of some rows."""
        return self._objects[codes].values[:, self._objects[rows]]

    # Ferns that grow ---------------------------------------------------------------------------

    def split_equal(self, keys: int, integers: int, n_parts: int) -> list:
        """Return keys and weights of all rows, in order and divided by key."""
        own, weights = self._objects[keys], self._objects[integers]
        order = np.lexsort((weights, own))
        cuts = np.searchsorted(own[order], _bounds(n_parts))
        whole = (own[order], weights[order], order)
        return list(zip(*(np.split(part, cuts) for part in whole), strict=True))

    def keep_keys(self, answers: Sequence[tuple], key: int) -> None:
        """Keep keys that tell equal rows apart."""
        order = np.concatenate([rows for rows, _ in answers])
        told = np.empty(order.size, np.uint64)
        told[order] = np.concatenate([keys for _, keys in answers])
        self._objects[key] = told

    def grow(self, key: int, codes: int, objective, y: int, weights: int, keys: int, seed: int):
        """Keep rows to grow ferns on."""
        own = self._objects
        rows = GrowingRows(own[codes], objective, own[y], own[weights], own[keys], seed)
        own[key] = rows

    def growing(self, key: int, method: str, *arguments) -> Any:
        """Let the rows that ferns grow on take a step."""
        return getattr(self._objects[key], method)(*arguments)

    def growing_sample(self, key: int, *arguments) -> tuple[NDArray, NDArray]:
        """Return codes and residuals of a sample."""
        sample = self._objects[key].sample(*arguments)
        return sample.codes, sample.residuals

    def keep_training_weights(self, key: int, weights: int) -> None:
        """Keep the weights, zero for rows that take no part."""
        self._objects[weights] = self._objects[key].training_weights()

    # Equal rows -----------------------------------------------------------------------------

    def split_rows(self, sums: int, seed: int, y: int, integers: int, n_parts: int) -> list:
        """Merge the equal rows of this store; return what tells rows apart, divided by hash."""
        hashes = hashes_of(self._objects[sums], seed)
        labels, weights = self._objects[y], self._objects[integers][:, 0]
        rows, merged = merge_equal_rows(hashes, labels, weights)
        high = hashes[rows, 1]
        cuts = np.searchsorted(high, _bounds(n_parts))
        whole = (hashes[rows], labels[rows], merged, rows)
        return list(zip(*(np.split(part, cuts) for part in whole), strict=True))

    def keep_rows(self, merged: Sequence[tuple], rows: int, weights: int, unit: float) -> int:
        """Keep which rows stand for all equal ones, and their weights; return how many."""
        chosen = np.concatenate([part for part, _ in merged])
        integers = np.concatenate([part for _, part in merged])
        order = np.argsort(chosen)
        self._objects[rows] = chosen[order]
        self._objects[weights] = integers[order] * unit
        return chosen.size

    def first_hashes(self, sums: int, seed: int, y: int, n_rows: int) -> tuple:
        """Return hashes and classes of the first rows in the order of their own."""
        hashes, labels = hashes_of(self._objects[sums], seed), self._objects[y]
        rows = own_order(hashes, labels)[:n_rows]
        return hashes[rows], labels[rows], rows

    def set_rows(self, key: int, rows: NDArray[np.intp]) -> None:
        """Keep numbers of rows."""
        self._objects[key] = rows

    def smallest_hashes(self, sums: int, seed: int, y: int, kinds: int, quota: int) -> tuple:
        """Return the rows of each kind with the smallest hashes, as many as the quota."""
        hashes, labels = hashes_of(self._objects[sums], seed), self._objects[y]
        own = self._objects[kinds]
        chosen = [
            rows[np.argsort(hashes[rows, 0], kind="stable")[:quota]]
            for rows in (np.flatnonzero(own == kind) for kind in np.unique(own))
        ]
        rows = np.concatenate([np.empty(0, np.intp), *chosen])
        return hashes[rows], labels[rows], rows, own[rows]


def distinct(labels: NDArray) -> NDArray:
    """Return the different labels, or rows of several targets, in order."""
    return np.unique(labels, axis=None if labels.ndim == 1 else 0)


def _places(classes: NDArray, labels: NDArray) -> NDArray[np.intp]:
    """Return the place of each label among all, which are in order."""
    if labels.ndim == 1:
        return np.searchsorted(classes, labels)
    together = np.concatenate([classes, labels])
    return np.unique(together, axis=0, return_inverse=True)[1].reshape(-1)[len(classes) :]


def merge_stores(found: Sequence[tuple]) -> tuple[list[tuple], int]:
    """Merge equal rows of several stores, of which each tells (hashes, y, integers, rows).

    Returned are for each store those of its rows that stand for all equal ones, with their
    weights, and how many there are in all.
    """
    source = np.repeat(np.arange(len(found)), [len(own[1]) for own in found])
    hashes, y, integers, rows = (
        np.concatenate([own[position] for own in found]) for position in range(4)
    )
    chosen, merged = merge_equal_rows(hashes, y, integers)
    answers = [
        (rows[chosen[source[chosen] == store]], merged[source[chosen] == store])
        for store in range(len(found))
    ]
    return answers, chosen.size


def tell_apart(parts: Sequence[tuple]) -> tuple[list[tuple], None]:
    """Return keys that tell equal rows of several stores apart, for each store.

    Each tells (keys, weights, rows).
    """
    keys, weights = (np.concatenate([own[position] for own in parts]) for position in range(2))
    ends = np.cumsum([own[2].size for own in parts])[:-1]
    told = np.split(told_apart(keys, weights), ends)
    return [(own[2], each) for own, each in zip(parts, told, strict=True)], None


def count_different(parts: Sequence[NDArray[np.uint64]]) -> tuple[list, int]:
    """Return how many different numbers the stores have, and nothing for the stores."""
    return [None] * len(parts), np.unique(np.concatenate(parts)).size


def own_order(hashes: NDArray[np.uint64], y: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the order of rows that a learner in memory sorts them in."""
    return np.lexsort((y, hashes[:, 0], hashes[:, 1]))


def _bounds(n_parts: int) -> NDArray[np.uint64]:
    """Return what divides random numbers into parts of about the same size."""
    return np.array([2**64 * part // n_parts for part in range(1, n_parts)], dtype=np.uint64)


def _gather(codes: Any, tables: NDArray) -> NDArray[np.float64]:
    return codes.gather(tables)

"""The data of a worker: the rows of its partitions, and arrays and codes computed from them.

A store is a Dask actor: it lives on one worker and calls functions there. It knows nothing of the
other stores; `Crew` combines their answers. The functions in this file get the arrays of one
store, and are sent to all stores by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import choose_loops
from mbkl.engine.arrays import group_totals
from mbkl.engine.codes import DenseCodes
from mbkl.engine.rows import ArrayRows, Rows, steps, to_float32, told_apart
from mbkl.learn.labelled_rows import hashes_of, merge_equal_rows, smallest_of_kinds


@dataclass(frozen=True)
class Expression:
    """An array of all stores by its key, with a function that computes it if it is new."""

    key: int
    function: Callable | None = None
    arguments: tuple = ()  # arrays of the stores are expressions


class Store:
    """The arrays of one worker by key; the first are its rows, their targets and weights."""

    def __init__(self, n_jobs: int = 1) -> None:
        self._n_jobs = n_jobs
        self._objects: dict[int, Any] = {}

    def hold(self, pieces: Sequence[tuple[NDArray, NDArray, NDArray]]) -> None:
        """Load partitions; skip those without rows, whose labels may have another type."""
        filled = [piece for piece in pieces if len(piece[1])] or pieces[:1]
        X, y, weights = zip(*filled, strict=True)
        loaded = Partitions(X, self._n_jobs), np.concatenate(y), np.concatenate(weights)
        self._objects.update(enumerate(loaded))

    def run(self, function: Callable, arguments: tuple, forget: Sequence[int] = ()) -> Any:
        """Call a function, then delete the arrays with the given keys."""
        result = function(*map(self._value, arguments))
        for key in forget:
            self._objects.pop(key, None)
        return result

    def _value(self, argument: Any) -> Any:
        """Return the array of an expression, computed if necessary, or any other argument as is."""
        if not isinstance(argument, Expression):
            return argument
        if argument.function is not None:
            arguments = map(self._value, argument.arguments)
            self._objects[argument.key] = argument.function(*arguments)
        return self._objects[argument.key]


class Partitions(Rows):
    """The rows of several partitions, without joining their arrays."""

    def __init__(self, pieces: Sequence[NDArray], n_jobs: int) -> None:
        self._pieces, self._n_jobs = pieces, n_jobs
        self.dtype = np.result_type(*pieces)
        self.shape = (sum(map(len, pieces)), pieces[0].shape[1])

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        start = 0
        for X in self._pieces:
            for rows in steps(len(X), step):
                yield slice(start + rows.start, start + rows.stop), X[rows]
            start += len(X)

    def bin(self, features: NDArray, edges) -> DenseCodes:
        return self._coded(features.size, lambda rows: rows.bin(features, edges))

    def bin_ferns(self, ferns) -> DenseCodes:
        return self._coded(ferns.n_maps, lambda rows: rows.bin_ferns(ferns))

    def _coded(self, n_groups: int, code: Callable[[ArrayRows], DenseCodes]) -> DenseCodes:
        loops = choose_loops(n_groups * self.shape[0], self._n_jobs)
        codes = [code(ArrayRows(X, loops)) for X in self._pieces]
        return replace(codes[0], values=np.concatenate([each.values for each in codes], axis=1))


# Functions of arrays and codes of a store --------------------------------------------------------


def invoke(target: Any, method: str, *arguments) -> Any:
    """Call a method of rows, codes or growing rows."""
    return getattr(target, method)(*arguments)


def identity(values: Any) -> Any:
    return values


def nothing(*values) -> None:
    """Return None; a call of this function computes its arguments without returning them."""


def rows_of_keys(rows: Rows, keys, chosen: NDArray, y: NDArray | None, integers: NDArray) -> tuple:
    """Return which of the chosen keys this store has, the rows, their labels, and all weights."""
    place = np.minimum(np.searchsorted(chosen, keys), chosen.size - 1)
    here = np.flatnonzero(chosen[place] == keys)
    place = place[here]
    mass = group_totals(integers[here, 0], place, chosen.size)
    present, first = np.unique(place, return_index=True)
    first = here[first]
    labels = np.zeros(first.size, np.intp) if y is None else y[first]
    # As float32, the precision of comparisons with thresholds.
    return present, to_float32(rows.take(first)), labels, mass


def totals_of_groups(integers: NDArray, group: NDArray) -> tuple[NDArray, NDArray[np.int64]]:
    """Return the distinct groups of the rows, and the sum of the integers of each group."""
    groups, place = np.unique(group, return_inverse=True)
    return groups, group_totals(integers, place, groups.size)


def totals_below(values: NDArray, integers: NDArray, bounds: NDArray) -> NDArray[np.int64]:
    """Return, for each bound, the sum of the integers of the rows with values below it."""
    place = np.searchsorted(bounds, values, side="right")
    return np.cumsum(group_totals(integers, place, bounds.size + 1))[:-1]


def samples_of(growing, drafts, chances) -> list[tuple[NDArray, NDArray]]:
    """Return codes and residuals of samples of growing rows."""
    return [(each.codes, each.residuals) for each in growing.samples(drafts, chances)]


def first_hashes(sums: NDArray, seed: int, y: NDArray, n_rows: int) -> tuple:
    """Return hashes, classes and row numbers of the first rows in the order of learning."""
    hashes = hashes_of(sums, seed)
    rows = learning_order(hashes, y)[:n_rows]
    return hashes[rows], y[rows], rows


def smallest_hashes(sums: NDArray, seed: int, y: NDArray, kinds: NDArray, quota: int) -> tuple:
    """Return hashes, classes and row numbers of the `quota` smallest hashes of each kind."""
    hashes = hashes_of(sums, seed)
    rows = smallest_of_kinds(hashes[:, 0], kinds, quota)
    return hashes[rows], y[rows], rows


def learning_order(hashes: NDArray[np.uint64], y: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the order in which learning in memory sorts the rows."""
    return np.lexsort((y, hashes[:, 0], hashes[:, 1]))


def distinct(labels: NDArray) -> NDArray:
    """Return the sorted distinct labels, or distinct rows of several targets."""
    return np.unique(labels, axis=None if labels.ndim == 1 else 0)


def places(classes: NDArray, labels: NDArray) -> NDArray[np.intp]:
    """Return the index of each label among all classes, which are sorted."""
    if labels.ndim == 1:
        return np.searchsorted(classes, labels)
    together = np.concatenate([classes, labels])
    return np.unique(together, axis=0, return_inverse=True)[1].reshape(-1)[len(classes) :]


# Functions of a shuffle of rows between stores ---------------------------------------------------


# Rows with the same key go to one store, which chooses some of them and returns the choice to the
# stores they came from. The last column of each part has the row numbers within the store.


def divide(keys: NDArray[np.uint64], columns: tuple[NDArray, ...], n_parts: int) -> list[tuple]:
    """Return columns of rows, divided by ranges of keys into parts of about the same size."""
    order = np.argsort(keys, kind="stable")
    bounds = np.array([2**64 * part // n_parts for part in range(1, n_parts)], dtype=np.uint64)
    cuts = np.searchsorted(keys[order], bounds)
    return list(zip(*(np.split(column[order], cuts) for column in columns), strict=True))


def divide_all(keys: NDArray[np.uint64], weights: NDArray, n_parts: int) -> list[tuple]:
    """Divide keys, weights and numbers of all rows."""
    return divide(keys, (keys, weights, np.arange(keys.size)), n_parts)


def divide_merged(sums: NDArray, seed: int, y: NDArray, integers: NDArray, n_parts: int) -> list:
    """Merge the equal rows of a store, then divide hashes, classes, weights and row numbers."""
    hashes = hashes_of(sums, seed)
    rows, merged, _ = merge_equal_rows(hashes, y, integers[:, 0])
    return divide(hashes[rows, 1], (hashes[rows], y[rows], merged, rows), n_parts)


def choose_rows(choose: Callable, parts: Sequence[tuple]) -> list[tuple]:
    """Return, for each store, which of its rows are chosen, and their values."""
    store = np.repeat(np.arange(len(parts)), [part[-1].size for part in parts])
    *columns, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
    chosen, values = choose(*columns)
    by_store = [np.flatnonzero(store[chosen] == number) for number in range(len(parts))]
    return [(rows[chosen[places]], values[places]) for places in by_store]


def first_of_equal(keys: NDArray, weights: NDArray) -> tuple[NDArray[np.intp], NDArray]:
    """Choose one row of each key; its value is the key."""
    return np.unique(keys, return_index=True)[::-1]


def distinct_keys(keys: NDArray, weights: NDArray) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """Choose all rows, and give equal ones different keys."""
    return np.arange(keys.size), told_apart(keys, weights)


def merge_equal(hashes: NDArray, y: NDArray, integers: NDArray) -> tuple[NDArray, NDArray]:
    """Choose one of each set of equal rows; its value is the weight of all of them."""
    return merge_equal_rows(hashes, y, integers)[:2]


def chosen_of_store(answers: Sequence[tuple]) -> tuple[NDArray[np.intp], NDArray]:
    """Return the sorted numbers of the chosen rows of a store, and their values."""
    rows, values = (np.concatenate(column) for column in zip(*answers, strict=True))
    order = np.argsort(rows)
    return rows[order], values[order]

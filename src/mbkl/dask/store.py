"""What a worker holds: the rows of its partitions, and arrays and codes computed from them.

A store is an actor: it lives on one worker, and calls functions there. It knows nothing of the
other stores; what they hold together is put together by `Crew`. Functions of this file get the
arrays of one store, and are sent to all of them by name.
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
class Order:
    """An array of all stores, by its name, with what computes it where it is not there yet."""

    key: int
    function: Callable | None = None
    arguments: tuple = ()  # orders, where they are arrays of the stores


class Store:
    """The arrays of one worker, by name: first its rows, their targets and their weights."""

    def __init__(self, n_jobs: int = 1) -> None:
        self._n_jobs = n_jobs
        self._objects: dict[int, Any] = {}

    def hold(self, pieces: Sequence[tuple[NDArray, NDArray, NDArray]]) -> None:
        """Take all partitions; those without rows may have labels of another type."""
        X, y, weights = zip(*([one for one in pieces if len(one[1])] or pieces[:1]), strict=True)
        loaded = Partitions(X, self._n_jobs), np.concatenate(y), np.concatenate(weights)
        self._objects.update(enumerate(loaded))

    def run(self, function: Callable, arguments: tuple, forget: Sequence[int] = ()) -> Any:
        """Call a function, and forget what is needed no more."""
        result = function(*map(self._follow, arguments))
        for key in forget:
            self._objects.pop(key, None)
        return result

    def _follow(self, argument: Any) -> Any:
        """Return an argument as it is, or the array that it orders."""
        if not isinstance(argument, Order):
            return argument
        if argument.function is not None:
            own = map(self._follow, argument.arguments)
            self._objects[argument.key] = argument.function(*own)
        return self._objects[argument.key]


class Partitions(Rows):
    """The rows of several arrays, one after the other."""

    def __init__(self, pieces: Sequence[NDArray], n_jobs: int) -> None:
        self._pieces, self._n_jobs = pieces, n_jobs
        self.dtype = np.result_type(*pieces)
        self.shape = (sum(map(len, pieces)), pieces[0].shape[1])

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        start = 0  # partitions are not joined, which would copy them
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


# What stores are asked of their arrays and codes ------------------------------------------------


def ask(thing: Any, method: str, *arguments) -> Any:
    """Call a method of rows or codes, or of rows that ferns grow on."""
    return getattr(thing, method)(*arguments)


def itself(values: Any) -> Any:
    return values


def nothing(*values) -> None:
    """Let arrays be computed, and return none of them."""


def rows_of_keys(rows: Rows, keys, chosen: NDArray, y: NDArray | None, integers: NDArray) -> tuple:
    """Return which of the chosen rows are here, with values, class and weights."""
    place = np.minimum(np.searchsorted(chosen, keys), chosen.size - 1)
    here = np.flatnonzero(chosen[place] == keys)
    place = place[here]
    mass = group_totals(integers[here, 0], place, chosen.size)
    found, first = np.unique(place, return_index=True)
    first = here[first]
    labels = np.zeros(first.size, np.intp) if y is None else y[first]
    # As float32, which is how they are compared.
    return found, to_float32(rows.take(first)), labels, mass


def totals_of_groups(integers: NDArray, group: NDArray) -> tuple[NDArray, NDArray[np.int64]]:
    """Return the groups that rows are of, and the sum of the integers of each."""
    groups, place = np.unique(group, return_inverse=True)
    return groups, group_totals(integers, place, groups.size)


def totals_below(values: NDArray, integers: NDArray, bounds: NDArray) -> NDArray[np.int64]:
    """Return the sum of the integers of rows whose number is below each bound."""
    place = np.searchsorted(bounds, values, side="right")
    return np.cumsum(group_totals(integers, place, bounds.size + 1))[:-1]


def samples_of(growing, drafts, chances) -> list[tuple[NDArray, NDArray]]:
    """Return codes and residuals of samples of rows that ferns grow on."""
    return [(each.codes, each.residuals) for each in growing.samples(drafts, chances)]


def first_hashes(sums: NDArray, seed: int, y: NDArray, n_rows: int) -> tuple:
    """Return hashes and classes of the first rows in the order of their own."""
    hashes = hashes_of(sums, seed)
    rows = own_order(hashes, y)[:n_rows]
    return hashes[rows], y[rows], rows


def smallest_hashes(sums: NDArray, seed: int, y: NDArray, kinds: NDArray, quota: int) -> tuple:
    """Return the rows of each kind with the smallest hashes, as many as the quota."""
    hashes = hashes_of(sums, seed)
    rows = smallest_of_kinds(hashes[:, 0], kinds, quota)
    return hashes[rows], y[rows], rows


def own_order(hashes: NDArray[np.uint64], y: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the order of rows that a learner in memory sorts them in."""
    return np.lexsort((y, hashes[:, 0], hashes[:, 1]))


def distinct(labels: NDArray) -> NDArray:
    """Return the different labels, or rows of several targets, in order."""
    return np.unique(labels, axis=None if labels.ndim == 1 else 0)


def places(classes: NDArray, labels: NDArray) -> NDArray[np.intp]:
    """Return the places of labels among all, which are in order."""
    if labels.ndim == 1:
        return np.searchsorted(classes, labels)
    together = np.concatenate([classes, labels])
    return np.unique(together, axis=0, return_inverse=True)[1].reshape(-1)[len(classes) :]


# What stores send each other --------------------------------------------------------------------


# Rows with the same key meet at one store, which chooses some of them and tells their stores. The
# last column of what is sent are the numbers of the rows, as their store has them.


def divide(keys: NDArray[np.uint64], columns: tuple[NDArray, ...], n_parts: int) -> list[tuple]:
    """Return columns of rows, divided by key into parts of about the same size."""
    order = np.argsort(keys, kind="stable")
    bounds = np.array([2**64 * part // n_parts for part in range(1, n_parts)], dtype=np.uint64)
    cuts = np.searchsorted(keys[order], bounds)
    return list(zip(*(np.split(own[order], cuts) for own in columns), strict=True))


def divide_all(keys: NDArray[np.uint64], weights: NDArray, n_parts: int) -> list[tuple]:
    """Return keys and weights of all rows."""
    return divide(keys, (keys, weights, np.arange(keys.size)), n_parts)


def divide_merged(sums: NDArray, seed: int, y: NDArray, integers: NDArray, n_parts: int) -> list:
    """Merge the equal rows of a store; return hashes, classes and weights."""
    hashes = hashes_of(sums, seed)
    rows, merged, _ = merge_equal_rows(hashes, y, integers[:, 0])
    return divide(hashes[rows, 1], (hashes[rows], y[rows], merged, rows), n_parts)


def join(choose: Callable, parts: Sequence[tuple]) -> list[tuple]:
    """Return for each store which of its rows are chosen, with a value each."""
    store = np.repeat(np.arange(len(parts)), [own[-1].size for own in parts])
    *columns, rows = (np.concatenate(own) for own in zip(*parts, strict=True))
    chosen, values = choose(*columns)
    own = [np.flatnonzero(store[chosen] == number) for number in range(len(parts))]
    return [(rows[chosen[places]], values[places]) for places in own]


def first_of_equal(keys: NDArray, weights: NDArray) -> tuple[NDArray[np.intp], NDArray]:
    """Choose one row of each key."""
    return np.unique(keys, return_index=True)[::-1]


def tell_apart(keys: NDArray, weights: NDArray) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """Choose all rows, and give equal ones different keys."""
    return np.arange(keys.size), told_apart(keys, weights)


def one_for_all(hashes: NDArray, y: NDArray, integers: NDArray) -> tuple[NDArray, NDArray]:
    """Choose one of each set of equal rows, with the weight of all of them."""
    return merge_equal_rows(hashes, y, integers)[:2]


def keep_chosen(answers: Sequence[tuple]) -> tuple[NDArray[np.intp], NDArray]:
    """Return which rows of a store are chosen, in order, and the value of each."""
    rows, values = (np.concatenate(own) for own in zip(*answers, strict=True))
    order = np.argsort(rows)
    return rows[order], values[order]

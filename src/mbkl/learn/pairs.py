"""Which (row, class) pairs Step 1 learns from.

A pair asks "is row i of class c?" and its maps are signed for class c. Every
sampled row gives the pair of its own class (label +1) and a few of wrong classes
(label -1). With two classes both questions are one, so each row gives one pair.

Rows are drawn by a hash of their codes, so that neither their order nor their
division among machines has any influence. Equal rows are merged before, so that a
row of weight two is the same as two equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.hashing import scramble
from mbkl.engine.namespace import to_host
from mbkl.learn.operator import AnyOperator, MapOperator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Pairs sorted by class.

    Parameters
    ----------
    rows, classes : ndarray of shape (n_pairs,)
    labels : ndarray of shape (n_pairs,)
        +1 where the class is the row's own, else -1.
    weights : ndarray of shape (n_pairs,)
    """

    rows: NDArray[np.intp]
    classes: NDArray[np.intp]
    labels: NDArray[np.int8]
    weights: Array


def sample_pairs(
    operator: AnyOperator,
    y: NDArray[np.intp],
    n_classes: int,
    weights: Array,
    negatives_per_positive: int,
    max_pairs: int,
    seed: int,
) -> Pairs:
    """Draw the pairs: all rows where they fit in `max_pairs`, else a class-balanced part.

    Parameters
    ----------
    operator : MapOperator or JointOperator
    y : ndarray of shape (n_rows,)
        Class of each row.
    n_classes : int
    weights : ndarray of shape (n_rows,)
    negatives_per_positive : int
        Wrong classes per row, at most n_classes - 1.
    max_pairs : int
        Largest number of pairs.
    seed : int

    Returns
    -------
    pairs : Pairs
    """
    n_wrong = wrong_classes_of(n_classes, negatives_per_positive)
    rows = np.arange(y.size)
    too_many = rows.size * (1 + n_wrong) > max_pairs
    hashes = row_hashes(operator, seed)[:, 0] if n_wrong or too_many else np.empty(0, np.uint64)
    if too_many:
        rows = subsample(hashes, y, n_classes, max_pairs // (1 + n_wrong))
    if n_classes == 2:
        labels = np.where(y[rows] == 1, 1, -1).astype(np.int8)
        return Pairs(rows, np.zeros_like(rows), labels, weights[rows])
    wrong = _wrong_classes(hashes[rows], y[rows], n_classes, n_wrong)
    classes = np.concatenate([y[rows, None], wrong], axis=1).ravel()
    labels = np.tile(np.array([1] + [-1] * n_wrong, dtype=np.int8), rows.size)
    rows = np.repeat(rows, 1 + n_wrong)
    order = np.argsort(classes, kind="stable")
    rows, classes, labels = rows[order], classes[order], labels[order]
    return Pairs(rows, classes, labels, weights[rows])


def wrong_classes_of(n_classes: int, negatives_per_positive: int) -> int:
    """Return how many wrong classes a row is paired with."""
    return 0 if n_classes == 2 else min(negatives_per_positive, n_classes - 1)


def row_hashes(operator: AnyOperator, seed: int) -> NDArray[np.uint64]:
    """Return two independent hashes of each row's codes, of shape (n_rows, 2)."""
    sums = operator.gather(operator.to_device(cell_numbers(operator, seed)))
    return hashes_of(to_host(sums), seed)


def cell_numbers(operator: AnyOperator, seed: int) -> Array:
    """Return two random numbers for each cell, to be added up over the groups of a row.

    They are integers small enough for all sums to be exact in float64.
    """
    parts = (operator,) if isinstance(operator, MapOperator) else operator.parts
    n_groups = sum(part.codes.n_groups for part in parts)
    bits = 52 - max(n_groups, 1).bit_length()
    generator = np.random.Generator(np.random.Philox(seed))
    return generator.integers(2**bits, size=(operator.n_columns, 2)).astype(np.float64)


def hashes_of(sums: Array, seed: int) -> NDArray[np.uint64]:
    """Return hashes for the sums of the random numbers of each row's cells."""
    return _mix(sums.astype(np.int64).view(np.uint64), seed)


def _mix(values: NDArray[np.uint64], salt) -> NDArray[np.uint64]:
    """Return other random numbers for each salt."""
    with np.errstate(over="ignore"):
        steps = np.uint64(1) + np.asarray(salt, np.uint64)
        return scramble(values + np.uint64(0x9E3779B97F4A7C15) * steps)


def subsample(hashes, y, n_classes: int, n_rows: int) -> NDArray[np.intp]:
    """Return about `n_rows` rows, as many of each class as there are or is fair."""
    quota = equal_quota(np.bincount(y, minlength=n_classes), n_rows)
    chosen = []
    for label in range(n_classes):
        rows = np.flatnonzero(y == label)
        chosen.append(rows[np.argsort(hashes[rows], kind="stable")][:quota])
    return np.sort(np.concatenate(chosen))


def equal_quota(counts: NDArray[np.intp], budget: int) -> int:
    """Return the largest q for which sum(min(counts, q)) does not exceed the budget.

    Examples
    --------
    >>> import numpy as np
    >>> equal_quota(np.array([2, 10, 10]), 12)
    5
    """
    for position, count in enumerate(np.sort(counts)):
        share = budget // (counts.size - position)
        if count > share:
            return max(int(share), 1)
        budget -= int(count)
    return int(counts.max())


def _wrong_classes(hashes, y, n_classes: int, n_wrong: int) -> NDArray[np.intp]:
    """Draw distinct wrong classes for each row: a partial shuffle driven by its hash."""
    others = np.arange(n_classes - 1)
    deck = np.tile(others, (y.size, 1))
    every_row = np.arange(y.size)
    for position in range(n_wrong):
        left = n_classes - 1 - position
        pick = position + (_mix(hashes, position + 1) % np.uint64(left)).astype(np.intp)
        chosen = deck[every_row, pick].copy()
        deck[every_row, pick] = deck[:, position]
        deck[:, position] = chosen
    drawn = deck[:, :n_wrong]
    return drawn + (drawn >= y[:, None])

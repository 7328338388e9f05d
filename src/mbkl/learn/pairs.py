"""Which (row, class) pairs Step 1 learns from.

A pair asks "is row i of class c?" and its maps are signed for class c. Every
row gives the pair of its own class (label +1) and a few of wrong classes
(label -1). With two classes both questions are one, so each row gives one pair. Of numbers, each
row gives a pair for every target, whose label is the number.

Wrong classes are drawn by a hash of the row's codes, so that neither the order of the rows nor
their division among machines has any influence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.learn.labelled_rows import LabelledRows, mix, row_hashes

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Pairs sorted by class."""

    # (n_pairs,)
    rows: NDArray[np.intp]
    classes: NDArray[np.intp]
    # (n_pairs,): +1 where the class is the row's own, else -1; or numbers
    labels: NDArray[np.int8] | Array
    weights: Array  # (n_pairs,)


def n_wrong_classes(n_classes: int, negatives_per_positive: int) -> int:
    """Return how many wrong classes a row is paired with."""
    return 0 if n_classes == 2 else min(negatives_per_positive, n_classes - 1)


def pairs_of_a_row(rows: LabelledRows, negatives_per_positive: int) -> int:
    """Return how many pairs each row gives."""
    if rows.numbers is not None:
        return rows.numbers.n_columns
    return 1 + n_wrong_classes(rows.n_classes, negatives_per_positive)


def pairs_of(rows: LabelledRows, negatives_per_positive: int) -> Pairs:
    """Return the pairs of all rows, each with its own class and at most so many others."""
    y, every_row = rows.y, np.arange(rows.y.size)
    if rows.numbers is not None:
        n_columns = rows.numbers.n_columns
        own, columns = np.tile(every_row, n_columns), np.repeat(np.arange(n_columns), y.size)
        return Pairs(own, columns, rows.numbers.values[y].T.ravel(), rows.weights[own])
    if rows.n_classes == 2:
        labels = np.where(y == 1, 1, -1).astype(np.int8)
        return Pairs(every_row, np.zeros_like(every_row), labels, rows.weights)
    n_wrong = n_wrong_classes(rows.n_classes, negatives_per_positive)
    hashes = row_hashes(rows.operator, rows.seed)[:, 0]
    wrong = _wrong_classes(hashes, y, rows.n_classes, n_wrong)
    classes = np.concatenate([y[:, None], wrong], axis=1).ravel()
    labels = np.tile(np.array([1] + [-1] * n_wrong, dtype=np.int8), y.size)
    of_pair = np.repeat(every_row, 1 + n_wrong)
    order = np.argsort(classes, kind="stable")
    own = of_pair[order]
    return Pairs(own, classes[order], labels[order], rows.weights[own])


def _wrong_classes(hashes, y, n_classes: int, n_wrong: int) -> NDArray[np.intp]:
    """Draw distinct wrong classes for each row: a partial shuffle driven by its hash."""
    others = np.arange(n_classes - 1)
    deck = np.tile(others, (y.size, 1))
    every_row = np.arange(y.size)
    for position in range(n_wrong):
        left = n_classes - 1 - position
        pick = position + (mix(hashes, position + 1) % np.uint64(left)).astype(np.intp)
        chosen = deck[every_row, pick].copy()
        deck[every_row, pick] = deck[:, position]
        deck[:, position] = chosen
    drawn = deck[:, :n_wrong]
    return drawn + (drawn >= y[:, None])

"""Learning from codes in files: the same steps, without sorting the rows."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mbkl.learn.algorithm import Learner
from mbkl.learn.classifier_weights import FEW_ROWS_GRAM
from mbkl.learn.operator import AnyOperator
from mbkl.learn.pairs import row_hashes, subsample, wrong_classes_of
from mbkl.solvers.newton_cg import FirstRows


@dataclass
class StreamLearner(Learner):
    """A learner whose rows stay where they are on the disk.

    Parameters
    ----------
    rank : ndarray of shape (n_rows,)
        Place of each row in an order of their own, in which a `Learner` would sort them.
    """

    rank: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))

    def take(self, rows: NDArray[np.intp]) -> StreamLearner:
        rank = self.rank[rows] if self.rank.size else self.rank
        return replace(cast(StreamLearner, super().take(rows)), rank=rank)

    def canonical(self) -> Learner:
        """Return the same data with equal rows merged; few rows are sorted too."""
        if self.operator.n_rows <= FEW_ROWS_GRAM:
            return super().canonical()
        rows, weights = self.merged_rows()
        if rows.size <= FEW_ROWS_GRAM:
            return replace(Learner.take(self, rows), weights=weights)
        # Row rows[order[i]] is the i-th on the disk, and was the order[i]-th when sorted.
        order = np.argsort(rows)
        merged = self if rows.size == self.y.size else self.take(rows[order])
        return replace(merged, weights=weights[order], rank=order)

    @cached_property
    def _pairs(self):
        """The pairs of Step 1, in the order in which a `Learner` would have them."""
        if not self.rank.size:
            return super()._pairs
        rows = self._rows_of_pairs()
        # From the file in its order, in one pass; then in that of the pairs.
        order = np.argsort(rows)
        ordered = self.take(rows[order]).take(np.argsort(order))
        part = Learner(**{each.name: getattr(ordered, each.name) for each in fields(Learner)})
        part.__dict__["signs"] = self.signs
        return part._pairs

    def _rows_of_pairs(self) -> NDArray[np.intp]:
        rows = np.arange(self.y.size)
        n_wrong = wrong_classes_of(self.n_classes, self.settings.negatives_per_positive)
        if rows.size * (1 + n_wrong) > self.settings.max_pairs:
            hashes = row_hashes(self.operator, self.settings.seed)[:, 0]
            n_rows = self.settings.max_pairs // (1 + n_wrong)
            rows = subsample(hashes, self.y, self.n_classes, n_rows)
        return rows[np.argsort(self.rank[rows])]

    def first_rows(self, operator: AnyOperator, n_rows: int) -> FirstRows:
        numbers = np.argpartition(self.rank, n_rows)[:n_rows]
        numbers = numbers[np.argsort(self.rank[numbers])]
        return FirstRows(operator.take(numbers), numbers)

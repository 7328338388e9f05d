"""Learning from rows on the workers: the same steps, and the same bits."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mbkl.dask.crew import Crew
from mbkl.dask.rows import Node, RemoteRows, RowSet
from mbkl.dask.store import merge_parts, own_order
from mbkl.engine.arrays import to_fixed_point
from mbkl.learn.algorithm import Learner
from mbkl.learn.classifier_weights import FEW_ROWS_GRAM
from mbkl.learn.operator import AnyOperator
from mbkl.learn.pairs import cell_numbers, equal_quota, wrong_classes_of
from mbkl.solvers.newton_cg import FirstRows


@dataclass
class DaskLearner(Learner):
    """A learner whose rows stay on the workers, except for bounded parts of them.

    Parameters
    ----------
    crew : Crew
    sums : RemoteRows or None
        Random numbers of the cells of each row, added up; from these come its hashes.
    """

    crew: Crew = None  # type: ignore[assignment]
    sums: RemoteRows | None = None

    def canonical(self) -> Learner:
        """Return the same data with equal rows merged; few rows are collected here."""
        sums = self.operator.gather(cell_numbers(self.operator, self.settings.seed))
        integers, unit = to_fixed_point(self.weights[:, None])
        names = (sums.compute_now(), self.settings.seed, self._y_key(), integers.compute_now())
        answers, counts = self.crew.exchange("merge-rows", "split_rows", names, merge_parts)
        rows, weights = Node(self.crew), Node(self.crew)
        arguments = (rows.key, weights.key, float(unit[0]))
        self.crew.answered("keep-rows", "keep_rows", answers, *arguments)
        kept = RowSet(rows, sum(counts))
        merged = self
        if kept.size < self.operator.n_rows:
            merged = replace(self, operator=self.operator.take(kept), y=self.y[kept])
            sums = sums[kept]
        own_weights = RemoteRows(self.crew, weights, np.empty(0), kept.size)
        merged = replace(merged, weights=own_weights, sums=sums)
        return merged.collected(merged.all_rows()) if kept.size <= FEW_ROWS_GRAM else merged

    def all_rows(self) -> RowSet:
        """Return all rows, to be collected in the order of their own."""
        return self._first(self.y.size)

    def first_rows(self, operator: AnyOperator, n_rows: int) -> FirstRows:
        rows = self._first(n_rows)
        return FirstRows(operator.take(rows), rows)

    def collected(self, rows: RowSet) -> Learner:
        """Return a learner here, on some of the rows."""
        own = {each.name: getattr(self, each.name) for each in fields(Learner)}
        own |= {
            "operator": self.operator.take(rows),
            "y": self.y[rows],
            "weights": self.weights[rows],
        }
        return Learner(**own)

    @cached_property
    def _pairs(self):
        """The pairs of Step 1: their rows are a bounded sample, which is collected here."""
        part = self.collected(self._rows_of_pairs())
        part.__dict__["signs"] = self.signs
        return part._pairs

    def _rows_of_pairs(self) -> RowSet:
        n_wrong = wrong_classes_of(self.n_classes, self.settings.negatives_per_positive)
        n_rows = self.settings.max_pairs // (1 + n_wrong)
        if self.y.size <= n_rows:
            return self.all_rows()
        quota = equal_quota(self._class_counts(), n_rows)
        answers = self.crew.call("smallest_hashes", *self._hash_names(), quota)
        hashes, labels = _joined(answers)
        chosen = [
            rows[np.argsort(hashes[rows, 0], kind="stable")[:quota]]
            for rows in (np.flatnonzero(labels == label) for label in np.unique(labels))
        ]
        return self._row_set(answers, np.concatenate(chosen))

    def _class_counts(self):
        own_class = (self.y[:, None] == np.arange(self.n_classes)).astype(np.int64)
        return own_class.sum(axis=0)

    def _first(self, n_rows: int) -> RowSet:
        """Return the first rows in the order of their own."""
        answers = self.crew.call("first_hashes", *self._hash_names(), n_rows)
        return self._row_set(answers, own_order(*_joined(answers))[:n_rows])

    def _row_set(self, answers: list, chosen: NDArray[np.intp]) -> RowSet:
        """Return rows of which the stores have told, to be collected in the order of their own.

        Parameters
        ----------
        answers : list of (hashes, y, rows)
            Of each store.
        chosen : ndarray
            Places among all of these, one store after the other.
        """
        chosen = np.sort(chosen)
        starts = np.cumsum([0] + [rows.size for _, _, rows in answers])
        places = np.split(chosen, np.searchsorted(chosen, starts[1:-1]))
        node = Node(self.crew)
        own = [
            (node.key, rows[place - start])
            for (_, _, rows), place, start in zip(answers, places, starts[:-1], strict=True)
        ]
        self.crew.call_each("set_rows", own)
        hashes, labels = _joined(answers)
        return RowSet(node, chosen.size, own_order(hashes[chosen], labels[chosen]))

    def _hash_names(self) -> tuple:
        assert self.sums is not None
        return self.sums.compute_now(), self.settings.seed, self._y_key()

    def _y_key(self) -> int:
        return self.y.compute_now()


def _joined(answers: list) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return the hashes and classes of which all stores have told."""
    hashes, labels, _ = zip(*answers, strict=True)
    return np.concatenate(hashes), np.concatenate(labels)

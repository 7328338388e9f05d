"""Learning from rows on the workers: the same steps, and the same bits."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from mbkl.dask.crew import Crew
from mbkl.dask.rows import Node, RemoteRows, RowSet
from mbkl.dask.store import merge_parts
from mbkl.engine.fixed_point import to_fixed_point
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
        parts = self.crew.call("smallest_hashes", *self._hash_names(), quota)
        hashes = np.concatenate([part[0] for part in parts])
        labels = np.concatenate([part[1] for part in parts])
        chosen = np.zeros(hashes.size, dtype=bool)
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            chosen[rows[np.argsort(hashes[rows], kind="stable")[:quota]]] = True
        bounds = np.cumsum([part[0].size for part in parts])[:-1]
        own = [part[2][mask] for part, mask in zip(parts, np.split(chosen, bounds), strict=True)]
        return self._in_order(own)

    def _class_counts(self):
        own_class = (self.y[:, None] == np.arange(self.n_classes)).astype(np.int64)
        return own_class.sum(axis=0)

    def _first(self, n_rows: int) -> RowSet:
        """Return the first rows in the order of their own."""
        parts = self.crew.call("first_hashes", *self._hash_names(), n_rows)
        order = _order(parts)[:n_rows]
        starts = np.cumsum([0] + [part[1].size for part in parts])
        own = [
            part[2][np.sort(order[(order >= start) & (order < stop)]) - start]
            for part, start, stop in zip(parts, starts[:-1], starts[1:], strict=True)
        ]
        return self._in_order(own)

    def _in_order(self, own: list) -> RowSet:
        """Return some rows of each store, to be collected in the order of all."""
        node = Node(self.crew)
        self.crew.call_each("set_rows", [(node.key, rows) for rows in own])
        names = self._hash_names()
        parts = self.crew.call("hashes_of_rows", *names, node.key)
        order = _order(parts)
        return RowSet(node, order.size, order)

    def _hash_names(self) -> tuple:
        assert self.sums is not None
        return self.sums.compute_now(), self.settings.seed, self._y_key()

    def _y_key(self) -> int:
        return self.y.compute_now()


def _order(parts: list):
    """Return the order in which a learner in memory would sort rows of several stores."""
    hashes = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    return np.lexsort((labels, hashes[:, 0], hashes[:, 1]))

"""How good models are on rows that they did not see."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.cli.console import Console
from mbkl.cli.models import encoded_for_training, encoder_of
from mbkl.cli.options import Reading
from mbkl.cli.outcomes import Outcome, outcome_of
from mbkl.tabular import Frame, FrameError

Split = tuple[Any, NDArray, Any, NDArray]


@dataclass(frozen=True)
class Splits:
    """Rows to learn from and rows to be right about: a test file, or else folds."""

    frame: Frame
    test: Frame | None
    n_splits: int
    seed: int

    @classmethod
    def read(
        cls,
        console: Console,
        reading: Reading,
        data: Path,
        test: Path | None,
        n_folds: int,
        seed: int,
    ) -> Splits:
        """Read the files, and see how many folds there can be."""
        with console.steps(reading=1) as steps:
            steps.begin("reading", f"reading {data.name}")
            frame = reading.read(data, console)
            if not frame.is_sparse:  # the same notes as those of a fit
                console.notes(encoder_of(frame).notes_)
            if test is not None:
                return cls(frame, reading.read_test(test, frame), 1, seed)
        return cls(frame, None, _possible_folds(frame, n_folds, console), seed)

    def __iter__(self) -> Iterator[Split]:
        """Yield X and y to learn from, and X and y to be right about.

        Each split learns anew how to encode columns, so that no test row has a say in it.
        """
        for train, test in self._pairs():
            (X_train, X_test), _ = encoded_for_training(train, test)
            yield X_train, train.y, X_test, test.y

    @property
    def classes(self) -> NDArray | None:
        """Return the classes to tell apart, or None where numbers are to be predicted."""
        return None if self.frame.task == "regression" else np.unique(self.frame.y)

    def _pairs(self) -> Iterator[tuple[Frame, Frame]]:
        from sklearn.model_selection import KFold, StratifiedKFold

        if self.test is not None:
            yield self.frame, self.test
            return
        if self.classes is None:
            parts = KFold(self.n_splits, shuffle=True, random_state=self.seed)
            for inside, outside in parts.split(np.arange(self.frame.n_rows)):
                yield self.frame.take(inside), self.frame.take(outside)
            return
        alone = _rows_alone_in_their_class(self.frame.y)
        others = np.setdiff1d(np.arange(self.frame.n_rows), alone)
        folds = StratifiedKFold(self.n_splits, shuffle=True, random_state=self.seed)
        with warnings.catch_warnings():
            # A class with fewer rows than folds is outside of some of them only.
            warnings.simplefilter("ignore", UserWarning)
            pairs = list(folds.split(others, self.frame.y[others]))
        for inside, outside in pairs:
            train = np.union1d(others[inside], alone)
            yield self.frame.take(train), self.frame.take(others[outside])


def _possible_folds(frame: Frame, n_folds: int, console: Console) -> int:
    """Return how many folds there can be, and say so if some classes have too few rows."""
    if frame.task == "regression":
        return min(n_folds, frame.n_rows)
    classes, counts = np.unique(frame.y, return_counts=True)
    if counts.max() < 2:
        raise FrameError(
            f"{frame.path}, column '{frame.target}': each class has one row only, so that none "
            "can be held out. Choose another column (--target), or a test file (--test)."
        )
    few = [f"'{label}'" for label in classes[counts < n_folds]]
    if few:
        shown = ", ".join(few[:5]) + (", ..." if len(few) > 5 else "")
        many = "1 class has" if len(few) == 1 else f"{len(few)} classes have"
        console.note(
            f"{many} fewer rows than there are folds: {shown}. A class with one "
            "row is learned from, but never tested."
        )
    return min(n_folds, int(counts.max()))


def _rows_alone_in_their_class(labels: NDArray) -> NDArray[np.intp]:
    _, first, counts = np.unique(labels, return_index=True, return_counts=True)
    return first[counts == 1]


def try_out(model: Any, split: Split, classes: NDArray | None) -> Outcome:
    """Fit a model on one side of a split and predict the other; no classes means numbers."""
    X_train, y_train, X_test, y_test = split
    began = time.perf_counter()
    model.fit(X_train, y_train)
    return outcome_of(model, X_test, y_test, classes, time.perf_counter() - began)

"""How good models are on rows that they did not see, whose classes or numbers are known."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from mbkl.cli.console import Console, save_figure
from mbkl.cli.models import encoded_for_training, encoded_with_notes
from mbkl.cli.options import Reading
from mbkl.explain.quality import figures_of_the_mean, number_figures, probability_figures
from mbkl.tabular import Frame, FrameError

Split = tuple[Any, NDArray, Any, NDArray]

# Share of the rows that intervals are to hold.
COVERAGE = 0.9


@dataclass(frozen=True)
class _Outcome:
    """What was predicted for rows, and the seconds of the fit."""

    truth: NDArray
    predictions: NDArray
    seconds: float

    # By which methods are compared: its name, what several are called, how it is announced.
    score_name: ClassVar[str]
    scores_name: ClassVar[str]
    score_in_words: ClassVar[str]


@dataclass(frozen=True)
class Labels(_Outcome):
    """Classes that were predicted, of all classes, sorted, and their probabilities."""

    classes: NDArray
    probabilities: NDArray[np.float64] | None

    score_name, scores_name, score_in_words = "accuracy", "accuracies", "accuracy"

    @property
    def score(self) -> float:
        """Share of the rows with the right label."""
        return float((self.truth == self.predictions).mean())

    def figures(self) -> dict[str, Any]:
        """Return accuracies, figures of the probabilities and of each class."""
        from sklearn import metrics

        y, guess, classes = self.truth, self.predictions, self.classes
        by_class = metrics.precision_recall_fscore_support(
            y, guess, labels=classes, zero_division=0.0
        )
        _, recall, _, n_rows = by_class
        result: dict[str, Any] = {
            "rows": y.size,
            "accuracy": self.score,
            "balanced_accuracy": float(recall[n_rows > 0].mean()),
            "always_the_most_frequent": float(n_rows.max() / y.size),
        }
        if self.probabilities is not None:
            result |= probability_figures(y, self.probabilities, classes)
        columns = (column.tolist() for column in (classes, *by_class))
        result["classes"] = [
            {"label": label, "rows": n, "precision": p, "recall": r, "f1": f}
            for label, p, r, f, n in zip(*columns, strict=True)
        ]
        result["confusion"] = metrics.confusion_matrix(y, guess, labels=classes)
        return result

    def show(self, console: Console, figures: dict[str, Any], folds: str | None) -> None:
        """Print the figures of all rows, and those of each class."""
        rows = [
            (name.replace("_", " "), value)
            for name, value in figures.items()
            if isinstance(value, int | float)
        ]
        console.grid([*rows, ("accuracy of the folds", folds)] if folds else rows)
        print()
        header = ["class", "rows", "precision", "recall", "f1"]
        console.grid(
            [[str(one["label"]), *list(one.values())[1:]] for one in figures["classes"]], header
        )

    def draw(self, path: Path, target: str) -> None:
        """Draw ROC, precision and recall, and reliability."""
        from mbkl.plot import QualityDisplay

        if self.probabilities is None:
            raise typer.BadParameter("--plot needs probabilities, and this model has none.")
        display = QualityDisplay.from_predictions(self.truth, self.probabilities, self.classes)
        save_figure(display.figure_, path)


@dataclass(frozen=True)
class Numbers(_Outcome):
    """Numbers that were predicted, and bounds of shape (n_rows, 2) that are to hold the truth."""

    bounds: NDArray[np.float64] | None

    score_name, scores_name, score_in_words = "r2", "r2s", "R2"

    @property
    def score(self) -> float:
        """Share of the variance that is explained."""
        return number_figures(self.truth, self.predictions).get("r2", float("nan"))

    def figures(self) -> dict[str, Any]:
        """Return R2, errors and intervals, beside those of always saying the mean."""
        return {
            "rows": self.truth.size,
            **number_figures(self.truth, self.predictions, self.bounds),
            "always_the_mean": figures_of_the_mean(self.truth, COVERAGE),
        }

    def show(self, console: Console, figures: dict[str, Any], folds: str | None) -> None:
        """Print the figures beside those of the mean."""
        names = {
            "r2": "R2",
            "rmse": "RMSE",
            "mae": "MAE",
            "below": "rows below the prediction",
            "coverage": f"coverage of the {COVERAGE:.0%} interval",
            "mean_width": "its mean width",
        }
        mean = figures["always_the_mean"]
        rows = [
            (words, figures[name], mean.get(name, ""))
            for name, words in names.items()
            if name in figures
        ]
        console.grid(rows, [f"{figures['rows']:,} rows", "model", "always the mean"])
        more = {"R2 of the folds": folds, "seconds per fit": figures.get("seconds_per_fit")}
        more = {name: value for name, value in more.items() if value}
        if more:
            print()
            console.grid(list(more.items()))

    def draw(self, path: Path, target: str) -> None:
        """Draw predictions against the truth, and residuals."""
        from mbkl.plot import PredictionDisplay

        display = PredictionDisplay.from_predictions(
            self.truth, self.predictions, self.bounds, name=target
        )
        save_figure(display.figure_, path)


Outcome = Labels | Numbers


def outcome_of(model: Any, X: Any, y: NDArray, classes: NDArray | None, seconds=0.0) -> Outcome:
    """Return what a fitted model predicts; no classes means numbers."""
    if classes is None:
        has_intervals = hasattr(model, "predict_interval")
        bounds = model.predict_interval(X, COVERAGE) if has_intervals else None
        return Numbers(y, model.predict(X), seconds, bounds)
    probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    return Labels(y, model.predict(X), seconds, classes, probabilities)


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcomes of several folds as one; its seconds are those of a mean fold."""

    def rows_of(name: str) -> Any:
        found = [getattr(one, name) for one in outcomes]
        return None if any(own is None for own in found) else np.concatenate(found)

    first = outcomes[0]
    by_row = {field.name for field in fields(first)} - {"seconds", "classes"}
    seconds = float(np.mean([one.seconds for one in outcomes]))
    return replace(first, **{name: rows_of(name) for name in by_row}, seconds=seconds)


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
        with console.steps(1) as steps:
            steps.begin(f"reading {data.name}")
            frame = reading.read(data, console)
            console.note(*encoded_with_notes(frame)[2])  # the same as those of a fit
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
        frame, kind, alone = self.frame, KFold, np.empty(0, np.intp)
        if self.classes is not None:
            kind = StratifiedKFold
            _, first, counts = np.unique(frame.y, return_index=True, return_counts=True)
            alone = first[counts == 1]
        others = np.setdiff1d(np.arange(frame.n_rows), alone)
        folds = kind(self.n_splits, shuffle=True, random_state=self.seed)
        with warnings.catch_warnings():
            # A class with fewer rows than folds is outside of some of them only.
            warnings.simplefilter("ignore", UserWarning)
            pairs = list(folds.split(others, frame.y[others]))
        for inside, outside in pairs:
            yield frame.take(np.union1d(others[inside], alone)), frame.take(others[outside])


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


def try_out(model: Any, split: Split, classes: NDArray | None) -> Outcome:
    """Fit a model on one side of a split and predict the other; no classes means numbers."""
    X_train, y_train, X_test, y_test = split
    began = time.perf_counter()
    model.fit(X_train, y_train)
    return outcome_of(model, X_test, y_test, classes, time.perf_counter() - began)

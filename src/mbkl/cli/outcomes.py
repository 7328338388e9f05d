"""How good models are on rows that they did not see, whose classes or numbers are known."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from mbkl.cli.console import Console, save_figure
from mbkl.cli.models import encoded_for_training, encoded_with_notes
from mbkl.cli.options import Reading
from mbkl.explain.held_out import COVERAGE, Outcome, folds_of, outcome_of
from mbkl.explain.quality import figures_of_the_mean, number_figures, probability_figures
from mbkl.tabular import Frame, FrameError

Split = tuple[Any, NDArray, Any, NDArray]


@dataclass(frozen=True)
class _Compared(Outcome):
    """An outcome with a score by which methods are compared."""

    # Its name, what several are called, how it is announced.
    score_name: ClassVar[str]
    scores_name: ClassVar[str]
    score_in_words: ClassVar[str]


@dataclass(frozen=True)
class Labels(_Compared):
    """Classes that were predicted, of all classes, sorted, and their probabilities."""

    classes: NDArray

    score_name, scores_name, score_in_words = "accuracy", "accuracies", "accuracy"

    @property
    def score(self) -> float:
        """Share of the rows with the right label."""
        return float((self.truth == self.predictions).mean())

    def figures(self, targets: Sequence[str] = ()) -> dict[str, Any]:
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
        if self.more is not None:
            result |= probability_figures(y, self.more, classes)
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

    def draw(self, path: Path, targets: Sequence[str]) -> None:
        """Draw ROC, precision and recall, and reliability."""
        from mbkl.plot import QualityDisplay

        if self.more is None:
            raise typer.BadParameter("--plot needs probabilities, and this model has none.")
        display = QualityDisplay.from_predictions(self.truth, self.more, self.classes)
        save_figure(display.figure_, path)


@dataclass(frozen=True)
class Numbers(_Compared):
    """Numbers that were predicted, and bounds that are to hold the truth: two for each number."""

    score_name, scores_name, score_in_words = "r2", "r2s", "R2"

    @property
    def score(self) -> float:
        """Share of the variance that is explained, a mean over the targets."""
        found = [number_figures(*one).get("r2", float("nan")) for one in self._columns]
        return float(np.mean(found))

    @property
    def _columns(self) -> list[tuple[Any, ...]]:
        """Truth, predictions and bounds of each target."""
        if self.truth.ndim == 1:
            return [(self.truth, self.predictions, self.more)]
        numbers = zip(self.truth.T, self.predictions.T, strict=True)
        return [
            (*one, None if self.more is None else self.more[:, k]) for k, one in enumerate(numbers)
        ]

    def figures(self, targets: Sequence[str] = ()) -> dict[str, Any]:
        """Return R2, errors and intervals, beside those of always saying the mean."""
        found = [
            {
                "rows": len(self.truth),
                **number_figures(*one),
                "always_the_mean": figures_of_the_mean(one[0], COVERAGE),
            }
            for one in self._columns
        ]
        if self.truth.ndim == 1:
            return found[0]
        named = [{"name": name, **own} for name, own in zip(targets, found, strict=True)]
        return {"rows": len(self.truth), "r2": self.score, "targets": named}

    def show(self, console: Console, figures: dict[str, Any], folds: str | None) -> None:
        """Print the figures beside those of the mean."""
        for number, own in enumerate(figures.get("targets", [figures])):
            if number:
                print()
            self._show_target(console, own)
        more = {
            "mean R2 of the targets": figures["r2"] if "targets" in figures else None,
            "R2 of the folds": folds,
            "seconds per fit": figures.get("seconds_per_fit"),
        }
        more = {name: value for name, value in more.items() if value}
        if more:
            print()
            console.grid(list(more.items()))

    def _show_target(self, console: Console, figures: dict[str, Any]) -> None:
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
        what = figures.get("name", f"{figures['rows']:,} rows")
        console.grid(rows, [what, "model", "always the mean"])

    def draw(self, path: Path, targets: Sequence[str]) -> None:
        """Draw predictions against the truth, and residuals, a row of pictures for each target."""
        from matplotlib.figure import Figure

        from mbkl.plot import PredictionDisplay

        columns = self._columns
        figure = Figure(figsize=(9, 4 * len(columns)), layout="constrained")
        axes = figure.subplots(len(columns), 2, squeeze=False)
        for own, name, pair in zip(columns, targets or ["y"], axes, strict=True):
            PredictionDisplay.from_predictions(*own, name=name, ax=pair)
        save_figure(figure, path)


def measured(outcome: Outcome, classes: NDArray | None) -> Labels | Numbers:
    """Return an outcome with its figures; no classes means numbers."""
    own = vars(outcome)
    return Numbers(**own) if classes is None else Labels(**own, classes=classes)


@dataclass(frozen=True)
class Splits:
    """Rows to learn from and rows to be right about: a test file, or else folds."""

    frame: Frame
    test: Frame | None
    folds: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]

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
                return cls(frame, reading.read_test(test, frame), ())
        are_classes = frame.task != "regression"
        if are_classes:
            _check_classes(frame, n_folds, console)
        return cls(frame, None, list(folds_of(frame.y, are_classes, n_folds, seed)))

    def __len__(self) -> int:
        return len(self.folds) or 1

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
        if self.test is not None:
            yield self.frame, self.test
        for inside, outside in self.folds:
            yield self.frame.take(inside), self.frame.take(outside)


def _check_classes(frame: Frame, n_folds: int, console: Console) -> None:
    """Say which classes have few rows; if all of them have one, none can be held out."""
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


def try_out(model: Any, split: Split, classes: NDArray | None) -> Labels | Numbers:
    """Fit a model on one side of a split and predict the other; no classes means numbers."""
    X_train, y_train, X_test, y_test = split
    began = time.perf_counter()
    model.fit(X_train, y_train)
    return measured(outcome_of(model, X_test, y_test, time.perf_counter() - began), classes)

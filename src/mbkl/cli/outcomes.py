"""What was predicted for rows whose classes or numbers are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from mbkl.cli.console import Console
from mbkl.cli.files import save_figure
from mbkl.explain.quality import figures_of_the_mean, number_figures, probability_figures

# Share of the rows that intervals are to hold.
COVERAGE = 0.9


@dataclass(frozen=True)
class _Outcome:
    """What was predicted for rows, and the seconds of the fit."""

    truth: NDArray
    predictions: NDArray
    seconds: float

    # By which methods are compared: its name, what several are called, how it is announced,
    # and by what it is multiplied to be shown with so many decimals.
    score_name: ClassVar[str]
    scores_name: ClassVar[str]
    score_in_words: ClassVar[str]
    factor: ClassVar[float]
    decimals: ClassVar[int]

    def written(self, score: float) -> str:
        """Return a score as it is shown."""
        return f"{self.factor * score:.{self.decimals}f}"


@dataclass(frozen=True)
class Labels(_Outcome):
    """Classes that were predicted, of all classes, sorted, and their probabilities."""

    classes: NDArray
    probabilities: NDArray[np.float64] | None

    score_name, scores_name, score_in_words = "accuracy", "accuracies", "accuracy, %"
    factor, decimals = 100.0, 1

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
    factor, decimals = 1.0, 3

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
    from dataclasses import fields, replace

    def rows_of(name: str) -> Any:
        found = [getattr(one, name) for one in outcomes]
        return None if any(own is None for own in found) else np.concatenate(found)

    first = outcomes[0]
    by_row = {field.name for field in fields(first)} - {"seconds", "classes"}
    seconds = float(np.mean([one.seconds for one in outcomes]))
    return replace(first, **{name: rows_of(name) for name in by_row}, seconds=seconds)

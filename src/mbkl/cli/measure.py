"""`mbkl evaluate`: the quality of predictions on rows that were not learned from."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console, Grid, check_picture
from mbkl.cli.options import DataFile, Folds, Learning, Picture, Reading, TestFile, option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mbkl.explain.quality import Outcome
    from mbkl.tabular import Frame

_WORDS = {
    "r2": "R2",
    "rmse": "RMSE",
    "mae": "MAE",
    "below": "rows below the prediction",
    "coverage": "coverage of the 90% interval",
    "mean_width": "its mean width",
    "fold_accuracies": "accuracy of the folds",
    "fold_r2s": "R2 of the folds",
}


def evaluate(
    data: DataFile,
    console: Console,
    reading: Reading,
    learning: Learning,
    model: Annotated[
        Path | None, option("Model file to be tried on the file; nothing is learned.")
    ] = None,
    test: TestFile = None,
    folds: Folds = 5,
    plot: Picture = None,
) -> None:
    """Measure how good predictions are on rows that were not learned from.

    By cross-validation; or on a test file; or by trying a model on the file.

    mbkl evaluate people.csv --target income --plot quality.png

    mbkl evaluate train.csv -t income --test test.csv

    mbkl evaluate diamonds.csv -t price --plot residuals.png

    mbkl evaluate test.csv --model people.mbkl
    """
    if model is not None and test is not None:
        raise typer.BadParameter("--model is tried on the file itself: leave out --test.")
    check_picture(plot, data, model, test)
    console.step(f"reading {data.name}", 0.1)
    import numpy as np
    from sklearn.metrics import accuracy_score, r2_score

    from mbkl.cli.models import Trained
    from mbkl.explain.quality import class_figures, joined, outcome_of

    if model is not None:
        trained = Trained.load(model)
        frame = trained.schema.read_labelled(data, console, reading.target)
        console.step("predicting")
        outcomes = [outcome_of(trained.model, trained.schema.encoded(frame), frame.y)]
        classes = trained.schema.classes
    else:
        splits = Splits.read(console, reading, data, test, folds, learning.seed)
        frame, outcomes = splits.frame, _of_new_models(console, learning, splits)
        classes = None if frame.task == "regression" else np.unique(frame.y)
    whole = joined(outcomes)
    if classes is None:
        figures, score, scores = _number_figures(whole, frame.targets), r2_score, "fold_r2s"
    else:
        figures, score, scores = class_figures(whole, classes), accuracy_score, "fold_accuracies"
    if len(outcomes) > 1:
        figures[scores] = [float(score(one.truth, one.predictions)) for one in outcomes]
    if whole.seconds:
        figures["seconds_per_fit"] = whole.seconds
    if plot is not None:
        console.picture(_drawn(whole, classes, frame.targets), plot)
    console.result(figures, *_grids(figures))


def _of_new_models(console: Console, learning: Learning, splits: Splits) -> list[Outcome]:
    """Return the outcome of each split: fit on its training rows, predict its test rows."""
    from mbkl.explain.quality import outcome_of

    outcomes = []
    for number, (X, y, X_test, y_test) in enumerate(splits, 1):
        step, part = f"fold {number} of {len(splits)}", 1 / (len(splits) + 1 - number)
        model = console.watched(learning.estimator(splits.frame.task), step, part)
        began = time.perf_counter()
        model.fit(X, y)
        outcomes.append(outcome_of(model, X_test, y_test, time.perf_counter() - began))
    return outcomes


@dataclass(frozen=True)
class Splits:
    """Labelled rows, divided into training rows and test rows by a test file or by folds."""

    frame: Frame  # of the file, and X its encoded features
    X: Any
    test: tuple[Any, NDArray] | None = None
    folds: Sequence[tuple[NDArray, NDArray]] = ()

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
        """Read a file and its test file; without one, rows are held out fold by fold."""
        from mbkl.cli.models import learned_schema
        from mbkl.explain.quality import folds_of

        frame = reading.read(data, console)
        schema, X, notes = learned_schema(frame, reading)
        console.note(*notes)
        if test is not None:
            new = schema.read_labelled(test, console)
            return cls(frame, X, (schema.encoded(new), new.y))
        are_classes = frame.task != "regression"
        if are_classes:
            _check_classes(frame, n_folds, console)
        return cls(frame, X, folds=list(folds_of(frame.y, are_classes, n_folds, seed)))

    def __len__(self) -> int:
        return len(self.folds) or 1

    def __iter__(self) -> Iterator[tuple[Any, NDArray, Any, NDArray]]:
        """Yield X and y of the training rows, and X and y of the test rows."""
        rows, y = getattr(self.X, "iloc", self.X), self.frame.y
        if self.test is not None:
            yield self.X, y, *self.test
        for inside, outside in self.folds:
            yield rows[inside], y[inside], rows[outside], y[outside]


def _check_classes(frame: Frame, n_folds: int, console: Console) -> None:
    """Note which classes have few rows; raise an error if all classes have a single row."""
    import numpy as np

    from mbkl.tabular import FrameError

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


# ---------------------------------------------------------------- figures


def _number_figures(outcome: Outcome, targets: Sequence[str]) -> dict[str, Any]:
    """Return the metrics of a regression; with several targets those of each."""
    import numpy as np

    from mbkl.explain.quality import figures_of_targets

    n_rows, by_target = {"rows": len(outcome.truth)}, figures_of_targets(outcome)
    if len(by_target) == 1:
        return n_rows | by_target[0]
    r2 = float(np.mean([figures.get("r2", np.nan) for figures in by_target]))
    return {**n_rows, "r2": r2, "targets": dict(zip(targets, by_target, strict=True))}


def _grids(figures: dict[str, Any], name: str = "") -> list[Grid]:
    """Return grids of the metrics of all rows, and of each class or target."""
    mean = figures.get("always_the_mean")
    rows: list[list[Any]] = []
    for key, value in figures.items():
        if key.startswith("fold_"):
            value = f"{min(value):.3f} to {max(value):.3f}"
        if isinstance(value, int | float | str):
            words = _WORDS.get(key, key.replace("_", " "))
            rows.append([words, value] if mean is None else [words, value, mean.get(key, "")])
    grids = [Grid(rows, ["", ""] if mean is None else [name, "model", "always the mean"])]
    if "classes" in figures:
        by_class = [list(each.values()) for each in figures["classes"]]
        grids.append(Grid(by_class, ["class", "rows", "precision", "recall", "f1"]))
    for target, of_target in figures.get("targets", {}).items():
        grids += _grids(of_target, target)
    return grids


def _drawn(outcome: Outcome, classes: NDArray | None, targets: Sequence[str]) -> Any:
    """Draw curves of probabilities, or predictions and residuals of each target."""
    from matplotlib.figure import Figure

    from mbkl.plot import PredictionDisplay, QualityDisplay

    if classes is not None:
        if outcome.uncertainty is None:
            raise typer.BadParameter("--plot needs probabilities, and this model has none.")
        return QualityDisplay.from_predictions(outcome.truth, outcome.uncertainty, classes).figure_
    columns = outcome.by_target()
    figure = Figure(figsize=(9, 4 * len(columns)), layout="constrained")
    axes = figure.subplots(len(columns), 2, squeeze=False)
    for of_target, name, pair in zip(columns, targets or ["y"], axes, strict=True):
        PredictionDisplay.from_predictions(*of_target, name=name, ax=pair)
    return figure

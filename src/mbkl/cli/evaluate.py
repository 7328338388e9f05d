"""`mbkl evaluate`: how good predictions are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console
from mbkl.cli.files import check_picture, save_figure
from mbkl.cli.options import DataFile, Folds, Learning, Reading, TestFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mbkl.cli.validation import Outcome


def evaluate(
    data: DataFile,
    console: Console,
    reading: Reading,
    learning: Learning,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Model file to be tried on the file; nothing is learned.", show_default=False
        ),
    ] = None,
    test: TestFile = None,
    folds: Folds = 5,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Picture of ROC, precision and recall, and reliability, .png, .svg or .pdf.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure how good predictions are on rows that were not learned from.

    By cross-validation; or on a test file; or by trying a model on the file.

    mbkl evaluate people.csv --target income --plot quality.png

    mbkl evaluate train.csv -t income --test test.csv

    mbkl evaluate test.csv --model people.mbkl
    """
    if model is not None and test is not None:
        raise typer.BadParameter("--model is tried on the file itself: leave out --test.")
    if plot is not None:
        check_picture(plot, data, model, test)
    if model is not None:
        classes, outcomes = _of_a_model(console, model, data, reading.target)
    else:
        classes, outcomes = _of_new_models(console, reading, learning, data, test, folds)
    if plot is not None:
        from mbkl.cli.validation import joined

        _draw(joined(outcomes), classes, plot)
    _report(console, classes, outcomes)
    if plot is not None:
        console.say(f"picture: {plot}")


def _draw(outcome: Outcome, classes: NDArray, path: Path) -> None:
    from mbkl.plot import QualityDisplay

    if outcome.probabilities is None:
        raise typer.BadParameter("--plot needs probabilities, and this model has none.")
    display = QualityDisplay.from_predictions(outcome.labels, outcome.probabilities, classes)
    save_figure(display.figure_, path)


def _of_a_model(
    console: Console, path: Path, data: Path, target: str | None
) -> tuple[NDArray, list[Outcome]]:
    """Try a model on a frame."""
    with console.steps(reading=1, predicting=1) as steps:
        steps.begin("reading")
        from mbkl.cli.models import Trained
        from mbkl.cli.validation import outcome_of

        trained = Trained.load(path)
        steps.part(data.name)
        frame = trained.read_labelled(data, console, target)
        steps.begin("predicting")
        outcome = outcome_of(trained.model, trained.features(frame), frame.y)
    return trained.model.classes_, [outcome]


def _of_new_models(
    console: Console,
    reading: Reading,
    learning: Learning,
    data: Path,
    test: Path | None,
    n_folds: int,
) -> tuple[NDArray, list[Outcome]]:
    """Learn from parts of a frame and try what was learned on the rest."""
    import numpy as np

    from mbkl.cli.validation import Splits, try_out

    splits = Splits.read(console, reading, data, test, n_folds, learning.seed)
    names = [f"fold {number + 1} of {splits.n_splits}" for number in range(splits.n_splits)]
    outcomes = []
    with console.steps(**dict.fromkeys(names, 1)) as steps:
        for name, split in zip(names, splits, strict=True):
            steps.begin(name)
            outcomes.append(try_out(steps.watch(learning.estimator()), split))
    return np.unique(splits.frame.y), outcomes


def _report(console: Console, classes: NDArray, outcomes: list[Outcome]) -> None:
    """Print the figures."""
    from mbkl.cli.validation import figures, joined

    result = figures(joined(outcomes), classes)
    if len(outcomes) > 1:
        result["fold_accuracies"] = [one.accuracy for one in outcomes]
    if outcomes[0].seconds:
        result["seconds_per_fit"] = joined(outcomes).seconds

    def show() -> None:
        rows: list[tuple[str, Any]] = [
            (name.replace("_", " "), value)
            for name, value in result.items()
            if isinstance(value, int | float)
        ]
        if len(outcomes) > 1:
            lowest, highest = min(result["fold_accuracies"]), max(result["fold_accuracies"])
            rows.append(("accuracy of the folds", f"{lowest:.3f} to {highest:.3f}"))
        console.grid(rows)
        print()
        header = ["class", "rows", "precision", "recall", "f1"]
        console.grid(
            [[str(one["label"]), *list(one.values())[1:]] for one in result["classes"]], header
        )

    console.result(result, show)

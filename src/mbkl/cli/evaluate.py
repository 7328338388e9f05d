"""`mbkl evaluate`: how good predictions are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mbkl.cli.console import Console
from mbkl.cli.files import check_picture
from mbkl.cli.options import DataFile, Folds, Learning, Reading, TestFile, option

if TYPE_CHECKING:
    from mbkl.cli.outcomes import Outcome


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
    plot: Annotated[
        Path | None,
        option(
            "Picture of ROC, precision and recall, and reliability; or of predicted against "
            "true numbers and residuals, .png, .svg or .pdf.",
            metavar="FILE",
        ),
    ] = None,
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
    if plot is not None:
        check_picture(plot, data, model, test)
    if model is not None:
        target, outcomes = _of_a_model(console, model, data, reading.target)
    else:
        target, outcomes = _of_new_models(console, reading, learning, data, test, folds)
    if plot is not None:
        from mbkl.cli.outcomes import joined

        joined(outcomes).draw(plot, target)
    _report(console, outcomes)
    if plot is not None:
        console.say(f"picture: {plot}")


def _of_a_model(
    console: Console, path: Path, data: Path, target: str | None
) -> tuple[str, list[Outcome]]:
    """Try a model on a frame; return the column that is predicted, and what came out."""
    with console.steps(reading=1, predicting=1) as steps:
        steps.begin("reading")
        from mbkl.cli.models import Trained
        from mbkl.cli.outcomes import outcome_of

        trained = Trained.load(path)
        steps.part(data.name)
        frame = trained.read_labelled(data, console, target)
        steps.begin("predicting")
        classes = None if trained.predicts_numbers else trained.model.classes_
        outcome = outcome_of(trained.model, trained.features(frame), frame.y, classes)
    return frame.target or "y", [outcome]


def _of_new_models(
    console: Console,
    reading: Reading,
    learning: Learning,
    data: Path,
    test: Path | None,
    n_folds: int,
) -> tuple[str, list[Outcome]]:
    """Learn from parts of a frame and try what was learned on the rest."""
    from mbkl.cli.validation import Splits, try_out

    splits = Splits.read(console, reading, data, test, n_folds, learning.seed)
    names = [f"fold {number + 1} of {splits.n_splits}" for number in range(splits.n_splits)]
    outcomes = []
    with console.steps(**dict.fromkeys(names, 1)) as steps:
        for name, split in zip(names, splits, strict=True):
            steps.begin(name)
            model = steps.watch(learning.estimator(splits.frame.task))
            outcomes.append(try_out(model, split, splits.classes))
    return splits.frame.target or "y", outcomes


def _report(console: Console, outcomes: list[Outcome]) -> None:
    """Print the figures."""
    from mbkl.cli.outcomes import joined

    whole = joined(outcomes)
    result, folds = whole.figures(), None
    if len(outcomes) > 1:
        scores = [one.score for one in outcomes]
        result[f"fold_{whole.scores_name}"] = scores
        folds = f"{min(scores):.3f} to {max(scores):.3f}"
    if outcomes[0].seconds:
        result["seconds_per_fit"] = whole.seconds
    console.result(result, lambda: whole.show(console, result, folds))

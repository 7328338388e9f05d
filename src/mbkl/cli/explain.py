"""`mbkl explain`: what a model has learned, and why it says what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console, check_picture, save_figure
from mbkl.cli.options import ModelFile, option

if TYPE_CHECKING:
    from mbkl.cli.models import Trained
    from mbkl.explain import GlobalExplanation, LocalExplanation

# Characters of a value that a person reads.
_LONG = 60


def explain(
    model: ModelFile,
    console: Console,
    data: Annotated[
        Path | None,
        typer.Argument(
            help="File over whose rows importances are averaged, such as that of the training.",
            show_default=False,
        ),
    ] = None,
    row: Annotated[int | None, option("Row of the file to explain, from 1.", min=1)] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of columns to show.")] = 10,
    plot: Annotated[
        Path | None,
        option(
            "Picture of the importances, or of what the row has added, .png, .svg or .pdf.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Show which columns matter, or what each of them says about one row.

    mbkl explain people.mbkl people.csv --plot importance.png

    mbkl explain people.mbkl new.csv --row 3 --plot why.png
    """
    if row is not None and data is None:
        raise typer.BadParameter("--row needs the file that has it.")
    check_picture(plot, model, data)
    with console.steps(1, 4) as steps:
        steps.begin(f"reading {model.name}")
        from mbkl.cli.models import Trained
        from mbkl.explain import explain_global, explain_local

        trained = Trained.load(model)
        frame = None if data is None else trained.read(data, console)
        X = None if frame is None else trained.features(frame)
        steps.begin("explaining")
        if row is None or X is None:
            explanation: Any = explain_global(trained.model, X)
        elif row > X.shape[0]:
            raise ValueError(f"{data}: no row {row}; the last one is {X.shape[0]}.")
        else:
            one = X[row - 1 : row]
            values = trained.in_words(one, frame)
            explanation = explain_local(trained.model, one, background=X)
        if plot is not None:
            from mbkl.plot import ImportanceDisplay

            if row is None:
                figure = ImportanceDisplay.from_explanation(explanation).figure_
            else:
                figure = _drawn_row(explanation, values, top)
            save_figure(figure, plot)
    if row is None:
        _show_importances(console, explanation, top)
    else:
        _show_row(console, trained, explanation, values, row, top)
    if plot is not None:
        console.say(f"picture: {plot}")


def _drawn_row(explanation: LocalExplanation, values: list[str], top: int) -> Any:
    """Return a figure of what a row has added, to each target below the other."""
    from matplotlib.figure import Figure

    from mbkl.plot import WaterfallDisplay

    known = zip(explanation.feature_names, values, strict=True)
    names = [f"{name} = {value}" for name, value in known]
    options: dict[str, Any] = {"names": names, "max_features": top}
    if explanation.unit == "score" or len(explanation.classes) == 1:
        return WaterfallDisplay.from_explanation(explanation, **options).figure_
    targets = explanation.classes
    figure = Figure(figsize=(7, 4 * len(targets)), layout="constrained")
    for target, axis in zip(targets, figure.subplots(len(targets)), strict=True):
        WaterfallDisplay.from_explanation(explanation, label=target, ax=axis, **options)
    return figure


def _show_importances(console: Console, explanation: GlobalExplanation, top: int) -> None:
    """Print the most important columns, and the pairs that tell more together."""
    names, importance = explanation.feature_names, explanation.importance
    found = [[names[i], float(importance[i])] for i in explanation.ranking]

    def show() -> None:
        console.grid(found[:top], ["column", "importance"])
        pairs = _strongest_pairs(explanation)[: min(top, 5)]
        if pairs:
            print()
            console.grid(pairs, ["together", "interaction"])

    named = [{"name": name, "importance": value} for name, value in found]
    console.result({**explanation.to_dict(), "columns": named}, show)


def _strongest_pairs(explanation: GlobalExplanation) -> list[list[Any]]:
    """Return names and strengths of pairs of features that interact, the strongest first."""
    import numpy as np

    names = [explanation.feature_names[feature] for feature in explanation.pair_features]
    first, second = np.triu_indices(len(names), 1)
    strengths = explanation.pair_strengths[first, second]
    order = np.argsort(-strengths, kind="stable")
    return [
        [f"{names[first[pair]]} and {names[second[pair]]}", float(strengths[pair])]
        for pair in order
        if strengths[pair] > 0
    ]


def _show_row(
    console: Console,
    trained: Trained,
    explanation: LocalExplanation,
    values: list[str],
    row: int,
    top: int,
) -> None:
    """Print what the features add to numbers, or to the score of the class, predicted."""
    import numpy as np

    scores, names = explanation.scores[0], trained.targets or ("the prediction",)
    adds = "adds"
    content: dict[str, Any] = {"row": row}
    # Scores of classes are of the order of one, numbers of any size.
    write = ("{:+.4g}" if trained.predicts_numbers else "{:+.3f}").format
    if trained.predicts_numbers:
        said = scores
        if trained.model.loss == "poisson":
            said, adds = np.exp(said), "adds to its logarithm"
        names = explanation.classes if said.size > 1 else names
        parts = [(f"{names[k]} is {said[k]:.6g}", 1, k) for k in range(said.size)]
        content["prediction"] = said.tolist() if said.size > 1 else float(said[0])
    else:
        best = int(scores[0] > 0) if scores.size == 1 else int(scores.argmax())
        content["label"] = trained.model.classes_.tolist()[best]
        # What is for one of two classes is against the other.
        place = (2 * best - 1, 0) if scores.size == 1 else (1, best)
        parts = [(f"{names[0]} is '{content['label']}'", *place)]

    def show() -> None:
        shown = [value if len(value) <= _LONG else f"{value[:_LONG]}..." for value in values]
        for number, (words, sign, column) in enumerate(parts):
            added = sign * explanation.contributions[0, :, column]
            order = np.argsort(-np.abs(added), kind="stable")[:top]
            start, score = sign * explanation.baseline[column], sign * scores[column]
            rows = [[explanation.feature_names[i], shown[i], write(added[i])] for i in order]
            if order.size < added.size:
                others = score - start - added[order].sum()
                rows.append(["all other columns", "", write(others)])
            rows += [["a mean row", "", write(start)], ["sum", "", write(score)]]
            if number:
                print()
            console.grid(rows, [f"row {row}: {words} because", "value", adds])

    console.result({**content, "values": values, **explanation.to_dict()}, show)

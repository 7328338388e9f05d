"""`mbkl explain`: what a model has learned, and why it says what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console
from mbkl.cli.files import check_picture, save_figure
from mbkl.cli.options import ModelFile, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mbkl.cli.models import Trained
    from mbkl.explain import GlobalExplanation, InputColumn, LocalExplanation


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
    if plot is not None:
        check_picture(plot, model, data)
    with console.steps(reading=1, explaining=4) as steps:
        steps.begin("reading", f"reading {model.name}")
        from mbkl.cli.models import Trained

        trained = Trained.load(model)
        frame = None if data is None else trained.read(data, console)
        X = None if frame is None else trained.features(frame)
        steps.begin("explaining")
        if row is not None:
            explained = _explain_row(trained, X, row, str(data), trained.columns(frame))
            if plot is not None:
                from mbkl.plot import WaterfallDisplay

                local, values = explained
                names = [f"{name} = {value}" for name, value in zip(local.feature_names, values)]
                display = WaterfallDisplay.from_explanation(local, names=names, max_features=top)
                save_figure(display.figure_, plot)
        else:
            from mbkl.explain import explain_global

            explanation = explain_global(trained.model, X)
            if plot is not None:
                from mbkl.plot import ImportanceDisplay

                save_figure(ImportanceDisplay.from_explanation(explanation).figure_, plot)
    if row is not None:
        _show_row(console, trained, *explained, row, top)
    else:
        _show_importances(console, explanation, top)
    if plot is not None:
        console.say(f"picture: {plot}")


def _explain_row(
    trained: Trained, X: Any, row: int, path: str, columns: Sequence[InputColumn]
) -> tuple[LocalExplanation, list[str]]:
    """Return why a row gets its scores, by column, and what the columns are in words."""
    from mbkl.explain import explain_local

    if row > X.shape[0]:
        raise ValueError(f"{path}: no row {row}; the last one is {X.shape[0]}.")
    one = X[row - 1 : row]
    coded = trained.model._validate_new(one)
    values = coded.toarray() if hasattr(coded, "toarray") else coded
    written = [column.words(value) for column, value in zip(columns, values[0], strict=True)]
    return explain_local(trained.model, one, background=X), written


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
    """Print what the features add to the number, or to the score of the class, predicted."""
    import numpy as np

    scores = explanation.scores[0]
    if trained.predicts_numbers:
        is_logarithm = trained.model.loss == "poisson"
        label = float(np.exp(scores[0]) if is_logarithm else scores[0])
        sign, column = 1, 0
        target = trained.target or "the prediction"
        words = f"row {row}: {target} is {label:.6g} because"
        adds = "adds to its logarithm" if is_logarithm else "adds"
    else:
        label, sign, column = _said_of_classes(trained, scores)
        words, adds = f"row {row} is '{label}' because", "adds"
    added = sign * explanation.contributions[0, :, column]
    order = np.argsort(-np.abs(added), kind="stable")[:top]

    names, shown = explanation.feature_names, added[order].sum()
    start, score = sign * explanation.baseline[column], sign * scores[column]

    # Scores of classes are of the order of one, numbers of any size.
    write = "{:+.3f}".format
    if trained.predicts_numbers:
        write = "{:+.4g}".format

    def show() -> None:
        rows = [[names[i], values[i], write(added[i])] for i in order]
        if order.size < added.size:
            rows.append(["all other columns", "", write(score - start - shown)])
        rows += [["a mean row", "", write(start)], ["sum", "", write(score)]]
        console.grid(rows, [words, "value", adds])

    name = "prediction" if trained.predicts_numbers else "label"
    content = {"row": row, name: label, "values": values, **explanation.to_dict()}
    console.result(content, show)


def _said_of_classes(trained: Trained, scores: Any) -> tuple[Any, int, int]:
    """Return the class of a row, the score that is of it, and the sign that it is of it with."""
    two_classes = scores.size == 1
    best = int(scores[0] > 0) if two_classes else int(scores.argmax())
    label = trained.model.classes_.tolist()[best]
    # With two classes there is one score, and what is for one of them is against the other.
    sign, column = (1 if best else -1, 0) if two_classes else (1, best)
    return label, sign, column

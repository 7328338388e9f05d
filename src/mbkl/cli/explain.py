"""`mbkl explain`: the importances of columns, and the explanation of a single row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console, Grid, check_picture
from mbkl.cli.options import ModelFile, Picture, option

if TYPE_CHECKING:
    from mbkl.cli.models import Trained
    from mbkl.explain import GlobalExplanation, LocalExplanation

# Largest number of characters of a printed value, and of printed pairs of columns.
_LONG, _PAIRS = 60, 5


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
    plot: Picture = None,
) -> None:
    """Show which columns matter, or what each of them says about one row.

    mbkl explain people.mbkl people.csv --plot importance.png

    mbkl explain people.mbkl new.csv --row 3 --plot why.png
    """
    if row is not None and data is None:
        raise typer.BadParameter("--row needs the file that has it.")
    check_picture(plot, model, data)
    console.step(f"reading {model.name}", 0.1)
    from mbkl.cli.models import Trained
    from mbkl.explain import explain_global, explain_local

    trained = Trained.load(model)
    frame = None if data is None else trained.schema.read(data, console)
    X = None if frame is None else trained.schema.encoded(frame)
    console.step("explaining")
    if row is None or X is None:
        explanation = explain_global(trained.model, X)
        if plot is not None:
            from mbkl.plot import ImportanceDisplay

            console.picture(ImportanceDisplay.from_explanation(explanation).figure_, plot)
        _show_importances(console, explanation, top)
    elif row > X.shape[0]:
        raise ValueError(f"{data}: no row {row}; the last one is {X.shape[0]}.")
    else:
        x = X[row - 1 : row]
        of_row, values = explain_local(trained.model, x, background=X), trained.in_words(x, frame)
        if plot is not None:
            console.picture(_drawn_row(of_row, values, top), plot)
        _show_row(console, trained, of_row, values, row, top)


def _drawn_row(explanation: LocalExplanation, values: list[str], top: int) -> Any:
    """Return a figure of the contributions of a row, with a waterfall for each target."""
    from matplotlib.figure import Figure

    from mbkl.plot import WaterfallDisplay

    pairs = zip(explanation.feature_names, values, strict=True)
    names = [f"{name} = {value}" for name, value in pairs]
    # Of classes only the predicted one is drawn.
    labels = [None] if explanation.unit == "score" else explanation.classes
    figure = Figure(figsize=(7, 4 * len(labels)), layout="constrained")
    for label, axis in zip(labels, figure.subplots(len(labels), squeeze=False).flat, strict=True):
        WaterfallDisplay.from_explanation(
            explanation, label=label, ax=axis, names=names, max_features=top
        )
    return figure


def _show_importances(console: Console, explanation: GlobalExplanation, top: int) -> None:
    """Print the most important columns, and the pairs with the strongest interactions."""
    from mbkl.explain.explanations import strongest_pairs

    names, importance = explanation.feature_names, explanation.importance
    ranked = [[names[i], float(importance[i])] for i in explanation.ranking]
    grids = [Grid(ranked[:top], ["column", "importance"])]
    strongest = strongest_pairs(explanation, min(top, _PAIRS))
    pairs = [[f"{names[i]} and {names[j]}", strength] for i, j, strength in strongest]
    if pairs:
        grids.append(Grid(pairs, ["together", "interaction"]))
    named = [{"name": name, "importance": value} for name, value in ranked]
    console.result({**explanation.to_dict(), "columns": named}, *grids)


def _show_row(
    console: Console,
    trained: Trained,
    explanation: LocalExplanation,
    values: list[str],
    row: int,
    top: int,
) -> None:
    """Print the contributions of features to predicted numbers, or to the predicted class."""
    import numpy as np

    from mbkl.classifier import best_class

    scores, content = explanation.scores[0], {"row": row, "values": values}
    targets = trained.schema.targets or ("the prediction",)
    if explanation.unit == "score":
        (best,) = best_class(explanation.scores).tolist()
        label = content["label"] = trained.model.classes_.tolist()[best]
        # Two classes have one score, for the second class; its negative is for the first.
        sign, column = (2 * best - 1, 0) if scores.size == 1 else (1, best)
        predictions = {f"{targets[0]} is '{label}'": (column, sign)}
    else:
        numbers = np.exp(scores) if explanation.unit == "log" else scores
        targets = explanation.classes if scores.size > 1 else targets
        content["prediction"] = numbers.tolist() if scores.size > 1 else float(numbers[0])
        predictions = {f"{targets[k]} is {number:.6g}": (k, 1) for k, number in enumerate(numbers)}
    # Scores of classes are of the order of one, numbers of any magnitude.
    write = ("{:+.3f}" if explanation.unit == "score" else "{:+.4g}").format
    adds = "adds to its logarithm" if explanation.unit == "log" else "adds"
    grids = []
    for words, (column, sign) in predictions.items():
        added = sign * explanation.contributions[0, :, column]
        start, score = sign * explanation.baseline[column], sign * scores[column]
        order = np.argsort(-np.abs(added), kind="stable")[:top]
        rows = [[explanation.feature_names[i], _short(values[i]), write(added[i])] for i in order]
        if order.size < added.size:
            rows.append(["all other columns", "", write(score - start - added[order].sum())])
        rows += [["a mean row", "", write(start)], ["sum", "", write(score)]]
        grids.append(Grid(rows, [f"row {row}: {words} because", "value", adds]))
    console.result({**content, **explanation.to_dict()}, *grids)


def _short(value: str) -> str:
    return value if len(value) <= _LONG else f"{value[:_LONG]}..."

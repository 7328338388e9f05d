"""`mbkl explain`: what a model has learned, and why it says what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console
from mbkl.cli.files import check_picture, save_figure
from mbkl.cli.options import ModelFile

if TYPE_CHECKING:
    from mbkl.cli.models import Trained
    from mbkl.explain import GlobalExplanation, LocalExplanation


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
    row: Annotated[
        int | None,
        typer.Option(min=1, help="Row of the file to explain, from 1.", show_default=False),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of features to show.")] = 10,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Picture of the importances, .png, .svg or .pdf.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show which features matter, or what each of them says about one row.

    mbkl explain people.mbkl people.csv --plot importance.png

    mbkl explain people.mbkl new.csv --row 3
    """
    if row is not None and data is None:
        raise typer.BadParameter("--row needs the file that has it.")
    if row is not None and plot is not None:
        raise typer.BadParameter("--plot shows all rows: leave out --row.")
    if plot is not None:
        check_picture(plot, model, data)
    with console.steps(reading=1, explaining=4) as steps:
        steps.begin("reading", f"reading {model.name}")
        from mbkl.cli.models import Trained

        trained = Trained.load(model)
        X = None if data is None else trained.features(trained.read(data, console))
        steps.begin("explaining")
        if row is not None:
            explained = _explain_row(trained, X, row, str(data))
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
    trained: Trained, X: Any, row: int, path: str
) -> tuple[LocalExplanation, list[str | float | None]]:
    """Return why a row gets its scores, and the row."""
    import numpy as np

    from mbkl.explain import explain_local

    if row > X.shape[0]:
        raise ValueError(f"{path}: no row {row}; the last one is {X.shape[0]}.")
    one = X[row - 1 : row]
    values = one.toarray() if hasattr(one, "toarray") else np.asarray(one)
    # As they are written: 0.1, not the float32 number next to it with all its digits.
    written = [
        value if value is None or isinstance(value, str) else float(str(value))
        for value in values[0]
    ]
    return explain_local(trained.model, one, background=X), written


def _show_importances(console: Console, explanation: GlobalExplanation, top: int) -> None:
    """Print the most important features, and the pairs that tell more together."""

    def show() -> None:
        names, order = explanation.feature_names, explanation.ranking[:top]
        rows = [[names[feature], float(explanation.importance[feature])] for feature in order]
        console.grid(rows, ["feature", "importance"])
        pairs = _strongest_pairs(explanation)[: min(top, 5)]
        if pairs:
            print()
            console.grid(pairs, ["together", "interaction"])

    console.result(explanation.to_dict(), show)


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
    values: list[str | float | None],
    row: int,
    top: int,
) -> None:
    """Print what the features add to the score of the class that is predicted."""
    import numpy as np

    scores = explanation.scores[0]
    two_classes = scores.size == 1
    best = int(scores[0] > 0) if two_classes else int(scores.argmax())
    label = trained.model.classes_.tolist()[best]
    # With two classes there is one score, and what is for one of them is against the other.
    sign, column = (1 if best else -1, 0) if two_classes else (1, best)
    added = sign * explanation.contributions[0, :, column]
    order = np.argsort(-np.abs(added), kind="stable")[:top]

    names, shown = explanation.feature_names, added[order].sum()
    start, score = sign * explanation.baseline[column], sign * scores[column]

    def show() -> None:
        rows = [[names[i], _in_words(values[i]), f"{added[i]:+.3f}"] for i in order]
        if order.size < added.size:
            rows.append(["all other features", "", f"{score - start - shown:+.3f}"])
        rows += [["a mean row", "", f"{start:+.3f}"], ["sum", "", f"{score:+.3f}"]]
        console.grid(rows, [f"row {row} is '{label}' because", "value", "adds"])

    content = {"row": row, "label": label, "values": values, **explanation.to_dict()}
    console.result(content, show)


def _in_words(value: str | float | None) -> str:
    if value is None or value != value:
        return "missing"
    return value if isinstance(value, str) else f"{value:g}"

"""`mbkl report`: all about a model on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mbkl.cli.console import Console
from mbkl.cli.files import check_output
from mbkl.cli.options import DataFile, ModelFile, Target, TestFile, option


def report(
    model: ModelFile,
    data: DataFile,
    console: Console,
    target: Target = None,
    test: TestFile = None,
    output: Annotated[
        Path | None, option("Page to write.", "--output", "-o", shown="name of the model + .html")
    ] = None,
    title: Annotated[str | None, option("Of the page.")] = None,
) -> None:
    """Write a page with figures and pictures of a model, as one HTML file.

    The file must have the labels; it is best the one that the model learned from, with new
    rows in --test.

    mbkl report people.mbkl people.csv

    mbkl report people.mbkl train.csv --test test.csv -o people.html
    """
    path = output or Path(f"{model.stem}.html")
    check_output(path, model, data, test)
    with console.steps(reading=1, writing=3) as steps:
        steps.begin("reading", f"reading {data.name}")
        from mbkl.cli.models import Trained
        from mbkl.report import write_report

        trained = Trained.load(model)
        frame = trained.read_labelled(data, console, target)
        X = trained.features(frame)
        X_test, y_test = None, None
        if test is not None:
            held_out = trained.read_labelled(test, console, target)
            X_test, y_test = trained.features(held_out), held_out.y
        steps.begin("writing", f"writing {path.name}")
        write_report(
            trained.model,
            X,
            frame.y,
            path,
            X_test=X_test,
            y_test=y_test,
            columns=trained.columns(frame),
            target=frame.target,
            title=title or f"{model.stem}: {frame.target}",
        )
    console.say(f"{path}: {path.stat().st_size:,} bytes.")
    console.result({"output": path, "rows": frame.n_rows})

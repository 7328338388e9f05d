"""`mbkl predict`: labels or numbers of new rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console
from mbkl.cli.files import check_output
from mbkl.cli.options import DataFile, ModelFile, option

if TYPE_CHECKING:
    import pyarrow as pa

    from mbkl.cli.models import Trained
    from mbkl.tabular import Frame


def predict(
    model: ModelFile,
    data: DataFile,
    console: Console,
    output: Annotated[
        Path | None,
        option("File to write, .csv or .parquet.", "--output", "-o", shown="stdout, as CSV"),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    interval: Annotated[
        float | None,
        option("Add bounds that hold this share of the numbers, such as 0.9.", metavar="SHARE"),
    ] = None,
    keep: Annotated[
        list[str] | None, option("Column of the file to copy, such as a key; can be repeated.")
    ] = None,
) -> None:
    """Predict the labels of new rows, or their numbers.

    Columns are found by their names; others, such as the one of the labels, do not matter.

    mbkl predict people.mbkl new.csv

    mbkl predict people.mbkl new.parquet -o labels.parquet --proba --keep id

    mbkl predict diamonds.mbkl new.csv --interval 0.9
    """
    if interval is not None and not 0 < interval < 1:
        raise typer.BadParameter(f"--interval must be between 0 and 1, got {interval}.")
    if output is not None:
        check_output(output, model, data)
        if output.suffix not in (".csv", ".parquet"):
            raise typer.BadParameter(f"{output} must end with .csv or .parquet.")
    with console.steps(model=1, reading=3, predicting=3) as steps:
        steps.begin("model", f"reading {model.name}")
        from mbkl.cli.models import Trained

        trained = Trained.load(model)
        _check_options(trained, proba, interval)
        steps.begin("reading", f"reading {data.name}")
        frame = trained.read(data, console, keep or [])
        steps.begin("predicting")
        predictions = _predictions(trained, frame, proba, interval, keep or [])
    if output is not None:
        from mbkl.io.container import write_atomically

        write_atomically(output, iter([_bytes(predictions, output.suffix)]))
        console.say(f"{output}: {frame.n_rows:,} predictions.")
        console.result({"output": output, "rows": frame.n_rows})
    else:
        text = _bytes(predictions, ".csv").decode
        console.result(predictions.to_pydict(), lambda: print(text(), end=""))


def _check_options(trained: Trained, proba: bool, interval: float | None) -> None:
    """Complain of what a model of this kind does not know."""
    if trained.predicts_numbers and proba:
        raise ValueError(
            f"{trained.path}: this model predicts numbers, which have no probabilities; use "
            "--interval 0.9."
        )
    if not trained.predicts_numbers and interval is not None:
        raise ValueError(f"{trained.path}: this model predicts classes; use --proba.")
    if proba and not hasattr(trained.model, "predict_proba"):
        raise ValueError(
            f"{trained.path}: this model knows no probabilities; learn it anew with 'mbkl fit'."
        )


def _predictions(
    trained: Trained, frame: Frame, proba: bool, interval: float | None, keep: list[str]
) -> pa.Table:
    """Return what is kept, the labels with probabilities, or the numbers with bounds."""
    import pyarrow as pa

    columns: dict[str, Any] = {name: frame.columns.column(frame.position(name)) for name in keep}
    X = trained.features(frame)
    if trained.predicts_numbers:
        columns["prediction"] = trained.model.predict(X)
        if interval is not None:
            bounds = trained.model.predict_interval(X, interval)
            columns["lower"], columns["upper"] = bounds.T
        return pa.table(columns)
    if not proba:
        return pa.table({**columns, "label": trained.model.predict(X)})
    classes, probabilities = trained.model.classes_, trained.model.predict_proba(X)
    columns["label"] = classes[probabilities.argmax(axis=1)]
    for label, column in zip(classes, probabilities.T, strict=True):
        columns[f"probability {label}"] = column
    return pa.table(columns)


def _bytes(predictions: pa.Table, suffix: str) -> bytes:
    """Return the contents of a file."""
    if suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        sink = pa.BufferOutputStream()
        parquet.write_table(predictions, sink)
        return sink.getvalue().to_pybytes()
    # That of pyarrow puts every text into quotes.
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(predictions.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in predictions.columns), strict=True))
    return lines.getvalue().encode()

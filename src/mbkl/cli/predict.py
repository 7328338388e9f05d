"""`mbkl predict`: labels of new rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console
from mbkl.cli.files import check_output
from mbkl.cli.options import DataFile, ModelFile

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
        typer.Option(
            "--output", "-o", help="File to write, .csv or .parquet.", show_default="stdout, as CSV"
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of the file to copy, such as a key; can be repeated.", show_default=False
        ),
    ] = None,
) -> None:
    """Predict the labels of new rows.

    Columns are found by their names; others, such as the one of the labels, do not matter.

    mbkl predict people.mbkl new.csv

    mbkl predict people.mbkl new.parquet -o labels.parquet --proba --keep id
    """
    if output is not None:
        check_output(output, model, data)
        if output.suffix not in (".csv", ".parquet"):
            raise typer.BadParameter(f"{output} must end with .csv or .parquet.")
    with console.steps(model=1, reading=3, predicting=3) as steps:
        steps.begin("model", f"reading {model.name}")
        from mbkl.cli.models import Trained

        trained = Trained.load(model)
        if proba and not hasattr(trained.model, "predict_proba"):
            raise ValueError(
                f"{model}: this model knows no probabilities; learn it anew with 'mbkl fit'."
            )
        steps.begin("reading", f"reading {data.name}")
        frame = trained.read(data, console, keep or [])
        steps.begin("predicting")
        predictions = _predictions(trained, frame, proba, keep or [])
    if output is not None:
        from mbkl.io.container import write_atomically

        write_atomically(output, iter([_bytes(predictions, output.suffix)]))
        console.say(f"{output}: {frame.n_rows:,} predictions.")
        console.result({"output": output, "rows": frame.n_rows})
    else:
        text = _bytes(predictions, ".csv").decode
        console.result(predictions.to_pydict(), lambda: print(text(), end=""))


def _predictions(trained: Trained, frame: Frame, proba: bool, keep: list[str]) -> pa.Table:
    """Return what is kept, the labels, and the probabilities."""
    import pyarrow as pa

    columns: dict[str, Any] = {name: frame.columns.column(frame.position(name)) for name in keep}
    X = trained.features(frame)
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

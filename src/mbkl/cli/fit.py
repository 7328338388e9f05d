"""`mbkl fit`: from a file to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mbkl.cli.console import Console
from mbkl.cli.files import check_output
from mbkl.cli.options import DataFile, Learning, Reading, option

if TYPE_CHECKING:
    from mbkl.tabular import Frame


def fit(
    data: DataFile,
    console: Console,
    reading: Reading,
    learning: Learning,
    output: Annotated[
        Path | None,
        option("Model file to write.", "--output", "-o", shown="name of the data + .mbkl"),
    ] = None,
    max_time: Annotated[
        float | None, option("Seconds after which to end with what is reached.")
    ] = None,
    checkpoint: Annotated[
        Path | None, option("File from which a fit that was stopped goes on.")
    ] = None,
) -> None:
    """Learn a model from a file.

    mbkl fit people.csv --target income

    mbkl fit people.csv -t income -o income.mbkl --drop id

    mbkl fit diamonds.csv -t price --loss absolute_error

    mbkl fit train.svm --tune
    """
    path = output or Path(f"{data.name.split('.')[0]}.mbkl")
    check_output(path, data)
    with console.steps(reading=2, encoding=1, learning=10, writing=1) as steps:
        steps.begin("reading", f"reading {data.name}")
        from mbkl.cli.models import Trained, encoded_for_training

        frame = reading.read(data, console)
        steps.begin("encoding")
        [X], encoder = encoded_for_training(frame)
        notes = encoder.notes_ if encoder else []
        console.notes(notes)
        steps.begin("learning")
        model = steps.watch(
            learning.estimator(frame.task, max_time=max_time, checkpoint=checkpoint)
        )
        model.fit(X, _with_name(frame))
        steps.begin("writing", f"writing {path.name}")
        model = getattr(model, "best_estimator_", model)
        rules = encoder.rules if encoder else None
        dialect = {**reading.dialect(), "header": frame.header}
        Trained(path, model, rules, frame.target, dialect).save()
    summary = {
        "model": path,
        "rows": frame.n_rows,
        "features": model.n_features_in_,
        "columns": len(frame.names),
        "task": frame.task,
        **({} if frame.task == "regression" else {"classes": model.classes_}),
        "maps": model.n_maps_,
        "C": model.C_,
        "seconds": model.timings_["total"],
        "notes": [*frame.notes, *notes],
    }
    n_columns = len(encoder.rules) if encoder else len(frame.names)
    what = "numbers" if frame.task == "regression" else f"{len(model.classes_)} classes"
    console.say(
        f"{path}: {what}, learned from {frame.n_rows:,} rows of "
        f"{n_columns} column{'s' if n_columns > 1 else ''} in {model.timings_['total']:.1f} s."
    )
    console.result(summary)


def _with_name(frame: Frame) -> Any:
    """Return the labels, or numbers that know what they are called."""
    import pandas as pd

    return pd.Series(frame.y, name=frame.target) if frame.task == "regression" else frame.y

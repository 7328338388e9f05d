"""The commands but `evaluate`, `compare` and `explain`."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console, Grid, check_output
from mbkl.cli.options import DataFile, Learning, ModelFile, Reading, Target, TestFile, option

if TYPE_CHECKING:
    from mbkl.cli.models import Trained
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

    mbkl fit house.csv -t heating -t cooling

    mbkl fit people.csv -t income --tune
    """
    path = output or Path(f"{data.name.split('.')[0]}.mbkl")
    check_output(path, data)
    console.step(f"reading {data.name}", 0.1)
    import pandas as pd

    from mbkl.cli.models import Trained, learned_schema

    frame = reading.read(data, console)
    console.step("encoding", 0.1)
    schema, X, notes = learned_schema(frame, reading)
    console.note(*notes)
    estimator = learning.estimator(frame.task, max_time=max_time, checkpoint=checkpoint)
    # A frame or series gives the regressor the names of the targets.
    numbers = pd.DataFrame(frame.y, columns=list(frame.targets)).squeeze(axis=1)
    y = numbers if frame.task == "regression" else frame.y
    model = console.watched(estimator, "learning", 0.95).fit(X, y)
    model = getattr(model, "best_estimator_", model)
    console.step(f"writing {path.name}")
    Trained(model, schema).save(path)
    seconds, n_columns = model.timings_["total"], schema.n_features
    classes = {"classes": model.classes_} if frame.task == "classification" else {}
    what = f"{len(model.classes_)} classes" if classes else "numbers"
    console.say(
        f"{path}: {what}, learned from {frame.n_rows:,} rows of "
        f"{n_columns} column{'s' if n_columns > 1 else ''} in {seconds:.1f} s."
    )
    console.result(
        {
            "model": path,
            "rows": frame.n_rows,
            "features": model.n_features_in_,
            "columns": len(frame.names) or n_columns,
            "task": frame.task,
            **classes,
            "maps": model.n_maps_,
            "C": model.C_,
            "seconds": seconds,
            "notes": [*frame.notes, *notes],
        }
    )


def predict(
    model: ModelFile,
    data: DataFile,
    console: Console,
    output: Annotated[
        Path | None,
        option("File to write, .csv or .parquet.", "--output", "-o", shown="stdout, as CSV"),
    ] = None,
    proba: Annotated[bool, option("Add the probability of each class.", "--proba")] = False,
    interval: Annotated[
        float | None,
        option("Add bounds that hold this share of the numbers, such as 0.9.", min=0, max=1),
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
    if output is not None:
        check_output(output, model, data)
        if output.suffix not in (".csv", ".parquet"):
            raise typer.BadParameter(f"{output} must end with .csv or .parquet.")
    console.step(f"reading {model.name}")
    import pandas as pd

    from mbkl.cli.models import Trained
    from mbkl.engine.files import write_atomically

    trained = Trained.load(model)
    if proba and not hasattr(trained.model, "predict_proba"):
        raise ValueError(f"{model}: this model knows no probabilities; of numbers use --interval.")
    if interval is not None and not trained.predicts_numbers:
        raise ValueError(f"{model}: this model predicts classes; use --proba.")
    console.step(f"reading {data.name}")
    frame = trained.schema.read(data, console, keep or ())
    console.step("predicting")
    kept = {name: pd.Series(frame.column(name).to_pylist(), dtype=object) for name in keep or ()}
    columns = _predictions(trained, frame, proba, interval)
    for name in kept.keys() & columns.keys():
        raise ValueError(f"{data}: '{name}' is the name of a column of predictions; rename it.")
    predictions = pd.DataFrame({**kept, **columns})
    if output is None:
        console.end_steps()
        if console.as_json:
            console.result(predictions.to_dict("list"))
        else:
            predictions.to_csv(sys.stdout, index=False)
        return
    write = predictions.to_parquet if output.suffix == ".parquet" else predictions.to_csv
    content = io.BytesIO()
    write(content, index=False)
    write_atomically(output, iter([content.getvalue()]))
    console.say(f"{output}: {frame.n_rows:,} predictions.")
    console.result({"output": output, "rows": frame.n_rows})


def _predictions(
    trained: Trained, frame: Frame, proba: bool, interval: float | None
) -> dict[str, Any]:
    """Return columns: labels with their probabilities, or numbers with the bounds of intervals."""
    import numpy as np

    X, model = trained.schema.encoded(frame), trained.model
    if not trained.predicts_numbers:
        columns = {"label": model.predict(X)}
        if proba:
            by_class = zip(model.classes_, model.predict_proba(X).T, strict=True)
            columns |= {f"probability {label}": values for label, values in by_class}
        return columns
    columns = {"prediction": model.predict(X)}
    if interval is not None:
        columns["lower"], columns["upper"] = np.moveaxis(model.predict_interval(X, interval), -1, 0)
    if not model.is_multi_output_:
        return columns
    return {
        f"{kind} {target}": values[:, number]
        for number, target in enumerate(model.target_names_)
        for kind, values in columns.items()
    }


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
    console.step(f"reading {data.name}", 0.1)
    from mbkl.cli.models import Trained
    from mbkl.report import write_report

    trained = Trained.load(model)
    frame = trained.schema.read_labelled(data, console, target)
    X_test, y_test = None, None
    if test is not None:
        held_out = trained.schema.read_labelled(test, console, target)
        X_test, y_test = trained.schema.encoded(held_out), held_out.y
    console.step(f"writing {path.name}")
    write_report(
        trained.model,
        trained.schema.encoded(frame),
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


def export(
    model: ModelFile,
    console: Console,
    onnx: Annotated[Path | None, option("ONNX file to write.", metavar="FILE")] = None,
    c: Annotated[Path | None, option("Header of C to write.", "--c", metavar="FILE")] = None,
    name: Annotated[str, typer.Option(help="What functions in C begin with.")] = "model",
) -> None:
    """Write a model as ONNX, or as a header of plain C; both know how to encode the columns.

    mbkl export people.mbkl --onnx people.onnx

    mbkl export people.mbkl --c people.h --name people
    """
    wanted = {kind: path for kind, path in (("onnx", onnx), ("c", c)) if path is not None}
    if not wanted:
        raise typer.BadParameter("say what to write: --onnx FILE, --c FILE or both.")
    if onnx == c:
        raise typer.BadParameter("--onnx and --c name the same file; give each one of its own.")
    for path in wanted.values():
        check_output(path, model)
    console.step(f"reading {model.name}")
    from mbkl.cli.models import Trained
    from mbkl.io import export_c, export_onnx

    trained = Trained.load(model)
    columns = None if trained.rules is None else [rule["name"] for rule in trained.rules]
    if onnx is not None:
        console.step(f"writing {onnx.name}")
        export_onnx(trained.model, onnx, columns)
    if c is not None:
        console.step(f"writing {c.name}")
        export_c(trained.model, c, columns, name)
    for path in wanted.values():
        console.say(f"{path}: {path.stat().st_size:,} bytes.")
    console.result(wanted)


def info(model: ModelFile, console: Console) -> None:
    """Show what a model knows: its classes or numbers, its columns and its parameters.

    mbkl info people.mbkl
    """
    from sklearn.utils._pprint import _changed_params

    from mbkl.cli.models import Trained

    trained = Trained.load(model)
    learned = trained.model
    parameters = _changed_params(learned)
    content = {
        "model": model,
        "bytes": model.stat().st_size,
        "kind": type(learned).__name__,
        "target": ", ".join(trained.schema.targets) or None,
        **({} if trained.predicts_numbers else {"classes": learned.classes_.tolist()}),
        "features": learned.n_features_in_,
        "maps": learned.n_maps_,
        "C": learned.C_,
        "parameters": parameters,
        "rules": trained.rules,
    }
    in_words = {
        "classes": ", ".join(map(str, getattr(learned, "classes_", ()))),
        "parameters": ", ".join(f"{name}={value!r}" for name, value in parameters.items()),
        "rules": ", ".join(f"{rule['name']} ({rule['kind']})" for rule in trained.rules or ()),
    }
    rows = [(name, in_words.get(name, str(value))) for name, value in content.items()]
    console.result(content, Grid(rows, n_left=2))


def warmup(console: Console) -> None:
    """Compile and cache the loops, so that nothing waits for the compiler.

    mbkl warmup
    """
    console.step("compiling what fits and explanations need")
    from mbkl.warmup import warmup as compile_all

    seconds = compile_all()
    console.say(f"All loops are ready ({seconds:.1f} s).")
    console.result({"seconds": seconds})


def demo(
    console: Console,
    folder: Annotated[Path, typer.Argument(help="Where to write all files.")] = Path("mbkl-demo"),
) -> None:
    """Try every command on data that ship with scikit-learn; takes a minute.

    mbkl demo
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_demo_files(folder)
    for line in _demo_lines(folder):
        console.say(f"\n$ mbkl {line}")
        _run_line(line, console)
    console.say(f"\nAll files are in {folder}.")
    console.result({"folder": folder, "files": sorted(path.name for path in folder.iterdir())})


def write_demo_files(folder: Path) -> None:
    """Write breast cancer data as files for training and test."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    data = load_breast_cancer(as_frame=True)
    frame = data.data.assign(diagnosis=pd.Categorical.from_codes(data.target, data.target_names))
    train, test = train_test_split(frame, random_state=0, stratify=data.target)
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)


def _demo_lines(folder: Path) -> list[str]:
    """Return the commands of the demo, without those that need a missing library."""
    from importlib.util import find_spec

    def file(name: str) -> str:
        return shlex.quote(str(folder / name))

    train, test, model = file("train.csv"), file("test.csv"), file("model.mbkl")
    lines = [
        f"fit {train} --target diagnosis --output {model}",
        f"info {model}",
        f"evaluate {test} --model {model}",
        f"explain {model} {train}",
        f"predict {model} {test} --proba --output {file('labels.csv')}",
        f"report {model} {train} --test {test} --output {file('report.html')}",
        f"export {model} --c {file('model.h')}",
    ]
    if find_spec("onnx"):
        lines.append(f"export {model} --onnx {file('model.onnx')}")
    return [*lines, f"compare {train} --target diagnosis --test {test}"]


def _run_line(line: str, console: Console) -> None:
    """Run one command like a user; if it fails, end the demo."""
    from mbkl.cli import main

    quiet = ["--quiet"] if console.quiet else []
    # With --json, stdout holds only the result of the demo itself.
    with contextlib.redirect_stdout(sys.stderr if console.as_json else sys.stdout):
        code = main([*shlex.split(line), *quiet])
    if code:
        raise typer.Exit(code)

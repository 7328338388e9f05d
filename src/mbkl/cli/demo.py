"""`mbkl demo`: every command on data that ship with scikit-learn."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from mbkl.cli.console import Console


def demo(
    console: Console,
    folder: Annotated[Path, typer.Argument(help="Where to write all files.")] = Path("mbkl-demo"),
) -> None:
    """Try every command on data that ship with scikit-learn; takes a minute.

    mbkl demo
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write_files(folder)
    for line in _commands(folder):
        console.say(f"\n$ mbkl {line}")
        _run(line, console)
    console.say(f"\nAll files are in {folder}.")
    console.result({"folder": folder, "files": sorted(path.name for path in folder.iterdir())})


def _write_files(folder: Path) -> None:
    """Write breast cancer data as files for training and test."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    data = load_breast_cancer(as_frame=True)
    frame = data.data.assign(diagnosis=pd.Categorical.from_codes(data.target, data.target_names))
    train, test = train_test_split(frame, random_state=0, stratify=data.target)
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)


def _commands(folder: Path) -> list[str]:
    """Return the commands, those for which a library is missing left out."""
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
    plot = f" --plot {file('comparison.png')}" if find_spec("matplotlib") else ""
    return [*lines, f"compare {train} --target diagnosis --test {test}{plot}"]


def _run(line: str, console: Console) -> None:
    """Run one command as the user would."""
    import contextlib
    import sys

    from mbkl.cli import main

    quiet = ["--quiet"] if console.quiet else []
    # The result of the demo itself is to be all of stdout.
    elsewhere = contextlib.redirect_stdout(sys.stderr) if console.as_json else None
    with elsewhere or contextlib.nullcontext():
        code = main([*shlex.split(line), *quiet])
    if code == 130:
        raise KeyboardInterrupt
    if code:
        raise ValueError(f"the demo ends here: 'mbkl {line}' failed.")

"""`mbkl export`: models for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mbkl.cli.console import Console
from mbkl.cli.files import check_output
from mbkl.cli.options import ModelFile, option


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
    if onnx is None and c is None:
        raise typer.BadParameter("say what to write: --onnx FILE, --c FILE or both.")
    for path in (onnx, c):
        if path is not None:
            check_output(path, model)
    written = {}
    with console.steps(reading=1, onnx=1, c=1) as steps:
        steps.begin("reading", f"reading {model.name}")
        from mbkl.cli.models import Trained
        from mbkl.io import export_c, export_onnx

        trained = Trained.load(model)
        if onnx is not None:
            steps.begin("onnx", f"writing {onnx.name}")
            export_onnx(trained.model, onnx, trained.rules)
            written["onnx"] = onnx
        if c is not None:
            steps.begin("c", f"writing {c.name}")
            export_c(trained.model, c, trained.rules, name)
            written["c"] = c
    for path in written.values():
        console.say(f"{path}: {path.stat().st_size:,} bytes.")
    console.result(written)

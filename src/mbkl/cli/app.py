"""The commands of `mbkl`."""

from __future__ import annotations

from typing import Annotated

import typer

from mbkl import __version__
from mbkl.cli.command import command
from mbkl.cli.compare import compare
from mbkl.cli.console import Console
from mbkl.cli.demo import demo
from mbkl.cli.evaluate import evaluate
from mbkl.cli.explain import explain
from mbkl.cli.export import export
from mbkl.cli.fit import fit
from mbkl.cli.info import info
from mbkl.cli.predict import predict
from mbkl.cli.report import report

app = typer.Typer(
    name="mbkl",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def warmup(console: Console) -> None:
    """Compile and cache the loops, so that nothing waits for the compiler.

    mbkl warmup
    """
    with console.steps(loops=1) as steps:
        steps.begin("loops", "compiling what fits and explanations need")
        from mbkl.warmup import warmup as compile_all

        seconds = compile_all()
    console.say(f"All loops are ready ({seconds:.1f} s).")
    console.result({"seconds": seconds})


for _function in (demo, fit, predict, evaluate, compare, explain, report, export, info, warmup):
    app.command(no_args_is_help=False)(command(_function))


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"mbkl {__version__}")
        raise typer.Exit


@app.callback()
def mbkl(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learn the kernel of an SVM from your file of rows: fit, predict, explain, export.

    Begin with 'mbkl demo', or 'mbkl fit data.csv --target column'.
    """

"""The program `mbkl`: its commands, their options as groups of fields, and its exit codes."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from mbkl import __version__
from mbkl.cli.commands import demo, export, fit, info, predict, report, warmup
from mbkl.cli.compare import compare
from mbkl.cli.console import Console
from mbkl.cli.explain import explain
from mbkl.cli.measure import evaluate

# Errors of files or of the installation; any other exception is a bug of this program.
_EXPECTED = (ValueError, OSError, ImportError, MemoryError)
_COMMANDS = (demo, fit, predict, evaluate, compare, explain, report, export, info, warmup)


def _parameters(owner: Callable) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a function or a data class; data classes are expanded into fields."""
    hints = get_type_hints(owner, include_extras=True)
    for parameter in inspect.signature(owner).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint):
            yield from _parameters(hint)  # type: ignore[arg-type]
        else:
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint)


def _command(function: Callable) -> Callable:
    """Turn a function into a command with all options as parameters, as typer needs them.

    Each parameter is an argument, an option, or a data class whose fields are options. One of
    them must be `console`.
    """
    groups: dict[str, Any] = {
        name: kind for name, kind in get_type_hints(function).items() if is_dataclass(kind)
    }

    def run_command(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{each.name: values.pop(each.name) for each in _parameters(kind)})
        with _errors_in_one_line(values["console"]):
            function(**values)
            sys.stdout.flush()

    parameters = list(_parameters(function))
    run_command.__name__, run_command.__doc__ = function.__name__, function.__doc__
    run_command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run_command.__annotations__ = {each.name: each.annotation for each in parameters}
    return run_command


@contextlib.contextmanager
def _errors_in_one_line(console: Console) -> Iterator[None]:
    """Run a command; print its warnings as notes, and an error as a line with an exit code."""
    # --quiet also silences libraries that write to stderr.
    silence = contextlib.redirect_stderr(io.StringIO())
    try:
        with silence if console.quiet else contextlib.nullcontext(), _warnings_as_notes(console):
            try:
                yield
            finally:
                console.end_steps()
    except BrokenPipeError:  # the reader of the output has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        _print_error("interrupted.")
        raise typer.Exit(130) from None
    except (typer.Exit, typer.BadParameter):
        raise
    except Exception as error:
        if console.debug:
            traceback.print_exc()
        _print_error(_in_one_line(error))
        raise typer.Exit(1) from None


@contextlib.contextmanager
def _warnings_as_notes(console: Console) -> Iterator[None]:
    def show(message: Warning | str, *_: Any) -> None:
        console.note(" ".join(str(message).split()))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _in_one_line(error: Exception) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    # Control characters from a file must not reach the terminal.
    words = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)
    if isinstance(error, MemoryError):
        return "not enough memory for this; use fewer rows, or fewer maps (--n-maps)."
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, _EXPECTED):
        return words
    return f"unexpected, please report this: {type(error).__name__}: {words} (--debug shows where)"


def _print_error(line: str) -> None:
    print(f"mbkl: {line}", file=sys.stderr)


app = typer.Typer(
    name="mbkl",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _function in _COMMANDS:
    app.command(no_args_is_help=False)(_command(_function))


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


def run(arguments: list[str] | None) -> int:
    try:
        return int(app(arguments, prog_name="mbkl", standalone_mode=False) or 0)
    except Exception as error:
        # Versions of typer raise errors of click or copies of them: recognise both by a method.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "mbkl"
        message = error.format_message().rstrip(".")
        if "\n" in message:  # the help itself
            print(message, file=sys.stderr)
        else:
            _print_error(f"{message}. See '{where} --help'.")
        return getattr(error, "exit_code", 2)

"""What all commands share: options in groups or from a file, errors in one line, exit codes."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import sys
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from mbkl.cli.console import Console

# What can be wrong with the files, or with what is installed; anything else is our mistake.
_EXPECTED = (ValueError, OSError, ImportError, MemoryError)


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make what a file says the defaults of a command.

    A section with the name of the command holds its options, such as `n-maps` or `n_maps`;
    those outside of any section are for all commands that have them.
    """
    if path is None:
        return None
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} is no TOML file: {error}") from None
    known = {
        name.lstrip("-").replace("-", "_"): parameter.name
        for parameter in context.command.params
        for name in parameter.opts
    }
    commands = getattr(context.parent and context.parent.command, "commands", {})
    strange = [key for key, one in content.items() if isinstance(one, dict) and key not in commands]
    if strange:
        raise typer.BadParameter(f"{path}: there is no command '{strange[0]}'.")
    options: dict[str, Any] = {}
    own = content.get(context.info_name or "", {})
    for key, value in {**content, **own}.items():
        name = known.get(key.replace("-", "_"))
        if name is not None:
            options[name] = _as_written(value)
        elif key in own:
            raise typer.BadParameter(f"{path}: 'mbkl {context.info_name}' has no option '{key}'.")
    context.default_map = options
    return path


def _as_written(value: Any) -> Any:
    """Return a value as it would stand on the command line; lists and switches as they are."""
    return value if isinstance(value, bool | list) else str(value)


@dataclass(frozen=True)
class _Shared:
    """Options of every command that it does not see itself."""

    config: Annotated[
        Path | None,
        typer.Option(
            is_eager=True,
            callback=_read_config,
            help="TOML file with options. Those on the command line win.",
        ),
    ] = None
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came up.")] = False


def command(function: Callable) -> Callable:
    """Make a function a command, which has all options as parameters, as typer wants them.

    Each parameter is an argument or an option, or a data class whose fields are options;
    `console` must be among them.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in groups:
            parameters += _options(groups[parameter.name])
        else:
            parameters.append(_parameter(parameter.name, hints[parameter.name], parameter.default))
    parameters += _options(_Shared)

    @functools.wraps(function)
    def run_command(config: Path | None, debug: bool, **values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
        console = values["console"]
        try:
            with _silence(console.quiet), _warnings_as_notes(console):
                function(**values)
                sys.stdout.flush()
        except BrokenPipeError:  # whoever reads the output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            _complain("interrupted.")
            raise typer.Exit(130) from None
        except (typer.Exit, typer.BadParameter):
            raise
        except Exception as error:
            if debug:
                traceback.print_exc()
            _complain(_in_one_line(error))
            raise typer.Exit(1) from None

    run_command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run_command.__annotations__ = {one.name: one.annotation for one in parameters}
    del run_command.__wrapped__
    return run_command


def run(app: typer.Typer, arguments: list[str] | None) -> int:
    """Run an app and return the exit code."""
    try:
        return int(app(arguments, prog_name="mbkl", standalone_mode=False) or 0)
    except Exception as error:
        # typer raises what click raised before it, under other names.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "mbkl"
        message = error.format_message().rstrip(".")
        if "\n" in message:  # the help itself
            print(message, file=sys.stderr)
        else:
            _complain(f"{message}. See '{where} --help'.")
        return getattr(error, "exit_code", 2)


def _options(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [_parameter(one.name, hints[one.name], one.default) for one in fields(group)]


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


@contextlib.contextmanager
def _silence(quiet: bool) -> Iterator[None]:
    """Keep everything off stderr, whoever writes it."""
    with contextlib.redirect_stderr(io.StringIO()) if quiet else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def _warnings_as_notes(console: Console) -> Iterator[None]:
    said: set[str] = set()

    def show(message: Warning | str, *_: Any) -> None:
        words = " ".join(str(message).split())
        if words not in said:  # such as once for each fold
            said.add(words)
            console.note(words)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _in_one_line(error: Exception) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    # What was found in a file must not get at the terminal.
    words = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in words)
    if isinstance(error, MemoryError):
        return "not enough memory for this; use fewer rows, or fewer maps (--n-maps)."
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, _EXPECTED):
        return words
    return f"unexpected, please report this: {type(error).__name__}: {words} (--debug shows where)"


def _complain(line: str) -> None:
    print(f"mbkl: {line}", file=sys.stderr)

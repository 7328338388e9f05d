"""Options from a TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import typer


def read_config(context: typer.Context, path: Path | None) -> Path | None:
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
            options[name] = _plain(value)
        elif key in own:
            raise typer.BadParameter(f"{path}: 'mbkl {context.info_name}' has no option '{key}'.")
    context.default_map = options
    return path


def _plain(value: Any) -> Any:
    """Return a value as it would stand on the command line; lists and switches as they are."""
    return value if isinstance(value, bool | list) else str(value)

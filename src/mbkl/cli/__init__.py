"""The command `mbkl`."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, with the arguments of the process if there are no others.

    Returns
    -------
    code : int
        0: success, 1: an error in a file or its contents, 2: an error in the options,
        130: interrupted.
    """
    try:
        from mbkl.cli.app import run
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        print("mbkl: the command line needs more: pip install 'mbkl[cli]'", file=sys.stderr)
        return 1
    return run(arguments)

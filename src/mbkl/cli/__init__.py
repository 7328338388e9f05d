"""The command `mbkl`."""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, with the arguments of the process if there are no others.

    Returns
    -------
    code : int
        0: fine, 1: something is wrong with a file or its contents, 2: with the options,
        130: interrupted.
    """
    # Before libraries with threads of OpenMP are loaded: those that wait for others must not keep
    # a core busy, or all of them crawl where another program has one.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from mbkl.cli.app import run
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        print("mbkl: the command line needs more: pip install 'mbkl[cli]'", file=sys.stderr)
        return 1
    return run(arguments)

"""The command `mbkl`."""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, with the arguments of the process if there are no others.

    Returns
    -------
    code : int
        0: success, 1: an error in a file or its contents, 2: an error in the options,
        130: interrupted.
    """
    # Set before libraries with OpenMP are loaded: threads that wait actively slow each other down
    # where another program uses a core.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from mbkl.cli.app import run
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        print("mbkl: the command line needs more: pip install 'mbkl[cli]'", file=sys.stderr)
        return 1
    return run(arguments)

"""Run the benchmarks of a package, one after the other, each in a separate process."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.common import FOLDER, say


def run_package(
    package: str, names: Sequence[str], about: str | None, arguments: Sequence[str] | None = None
) -> int:
    """Run the benchmarks that the command line names, or all; return the number of failures.

    Parameters
    ----------
    package : str
        For example "benchmarks.speed".
    names : sequence of str
        Its modules.
    about : str or None
        Help of the command.
    arguments : sequence of str or None
        None means those of the command line.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description=about)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, nothing recorded")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.names) - set(names))
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; choose of {', '.join(names)}")
    options = ["--quick"] if chosen.quick else []
    failed = [name for name in chosen.names or names if _run(f"{package}.{name}", options) != 0]
    if failed:
        say(f"failed: {', '.join(failed)}")
    return len(failed)


def _run(module: str, options: Sequence[str]) -> int:
    say(f"===== {module}")
    command = [sys.executable, "-m", module, *options]
    return subprocess.run(command, cwd=FOLDER.parent, check=False).returncode

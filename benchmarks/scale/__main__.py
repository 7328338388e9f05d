"""Run the benchmarks of scale, one after the other, each in a process of its own.

python -m benchmarks.scale                  all of them
python -m benchmarks.scale out_of_core      one, or several
python -m benchmarks.scale --quick          tiny sizes, nothing recorded
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.common import FOLDER, say

NAMES = ("out_of_core", "dask_overhead", "cost_model")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that the command line names; return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, nothing recorded")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.names) - set(NAMES))
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; choose of {', '.join(NAMES)}")
    failed = [name for name in chosen.names or NAMES if _run(name, chosen.quick) != 0]
    if failed:
        say(f"failed: {', '.join(failed)}")
    return len(failed)


def _run(name: str, quick: bool) -> int:
    say(f"===== {name}")
    command = [sys.executable, "-m", f"benchmarks.scale.{name}", *(["--quick"] if quick else [])]
    return subprocess.run(command, cwd=FOLDER.parent, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())

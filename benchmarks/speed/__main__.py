"""Run the speed benchmarks, one after the other, each in a separate process.

python -m benchmarks.speed                  all of them
python -m benchmarks.speed against_paper    one, or several
python -m benchmarks.speed --quick          tiny sizes, nothing recorded
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.package import run_package

NAMES = (
    "startup",
    "against_paper",
    "growth",
    "memory",
    "prediction",
    "mnist",
    "uci",
    "export",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that the command line names; return the number of failures."""
    return run_package("benchmarks.speed", NAMES, __doc__, arguments)


if __name__ == "__main__":
    raise SystemExit(main())

"""Run the benchmarks of scale, one after the other, each in a separate process.

python -m benchmarks.scale                  all of them
python -m benchmarks.scale out_of_core      one, or several
python -m benchmarks.scale --quick          tiny sizes, nothing recorded
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.package import run_package

NAMES = ("out_of_core", "dask_overhead", "cost_model")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that the command line names; return the number of failures."""
    return run_package("benchmarks.scale", NAMES, __doc__, arguments)


if __name__ == "__main__":
    raise SystemExit(main())

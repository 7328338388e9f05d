"""Time until a first model is learned: import, first fit, compilation.

Shows that `import mbkl` takes well under a second and that a first fit on Iris does
not wait for a compiler. One command:

    python -m benchmarks.speed.startup
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks.common import markdown_table, parse, record, say, start

COMMAND = "python -m benchmarks.speed.startup"

_TIMED = """
import time
began = time.perf_counter()
{code}
print("seconds", time.perf_counter() - began)
import sys
print("numba loaded", "numba" in sys.modules)
"""
_IRIS = """
from mbkl import MBKLClassifier
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
{clock}
MBKLClassifier(random_state=0).fit(X, y)
"""
_WHOLE = _IRIS.format(clock="")
_FIT_ALONE = _IRIS.format(clock="began = time.perf_counter()")
_WARMUP = """
from mbkl.cli import main
main(["warmup"])
"""


def run_fresh(code: str, cache: str | None = None) -> tuple[float, bool]:
    """Run code in a fresh process; return its seconds and whether it loaded Numba.

    Parameters
    ----------
    code : str
        May set `began`, to leave out the time before.
    cache : str or None
        Folder for compiled loops; None means the usual one.
    """
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(code=code)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    taken, loaded = done.stdout.strip().splitlines()[-2:]
    return float(taken.split()[-1]), loaded.endswith("True")


def measure(what: str, code: str, repeats: int, cold: bool = False) -> dict:
    """Run code in several fresh processes; `cold` gives each an empty cache."""
    results = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            results.append(run_fresh(code, folder if cold else None))
    times = [taken for taken, _ in results]
    row = {
        "what": what,
        "median, s": statistics.median(times),
        "fastest, s": min(times),
        "slowest, s": max(times),
        "processes": repeats,
        "Numba loaded": "yes" if any(loaded for _, loaded in results) else "no",
    }
    say(f"{what}: {row['median, s']:.3f} s")
    return row


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and record."""
    quick = parse(__doc__, arguments).quick
    repeats = 1 if quick else 5
    run_fresh("from mbkl import MBKLClassifier")  # fills byte code and file cache
    imports = {
        "import mbkl": "import mbkl",
        "from mbkl import MBKLClassifier": "from mbkl import MBKLClassifier",
        "for comparison: from sklearn.svm import LinearSVC": "from sklearn.svm import LinearSVC",
    }
    rows = [measure(what, code, repeats) for what, code in imports.items()]
    rows.append(measure("first fit on Iris", _FIT_ALONE, repeats))
    rows.append(measure("first fit on Iris, nothing compiled yet", _FIT_ALONE, repeats, cold=True))
    rows.append(measure("imports, load_iris and first fit", _WHOLE, repeats))
    rows.append(measure("mbkl warmup, nothing compiled yet", _WARMUP, 1, cold=True))
    run_fresh(_WARMUP)
    rows.append(measure("mbkl warmup, all compiled", _WARMUP, repeats))
    notes = [
        "Seconds inside a fresh Python process, after the interpreter has started.",
        "'Nothing compiled yet' gives Numba an empty folder for its cache.",
    ]
    record("startup", COMMAND, markdown_table(rows), notes, title="Start-up", quick=quick)


if __name__ == "__main__":
    raise SystemExit(start(main))

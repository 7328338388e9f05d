"""A fit whose codes are in files, compared with the same fit in memory.

Shows that a fit to 100 million codes takes less than 80 MB of memory and gives the same bits,
and how exact `estimate_memory` is. One command:

    python -m benchmarks.scale.out_of_core
"""

from __future__ import annotations

import gc
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common import (
    MEGABYTE,
    _return_free_memory,
    markdown_table,
    memory_bars,
    parse,
    record,
    say,
    seconds,
    start,
)
from benchmarks.data import MissingData
from benchmarks.scale.problems import DRAWN, Shape, digest, rows_of, write_rows
from mbkl import MBKLClassifier, estimate_memory
from mbkl.memory import MemoryEstimate, parse_bytes

COMMAND = "python -m benchmarks.scale.out_of_core"
_WARM = Shape(6_000, 4)
# Seconds between two readings of the memory: shorter than any stage, longer than a reading.
_INTERVAL = 0.001
_PEAK, _ESTIMATE = "peak beyond X, MB", "estimate_memory, MB"


@dataclass(frozen=True)
class Problem:
    """Rows, and the maps to learn from them.

    Parameters
    ----------
    shape : Shape
    settings : dict
        Parameters of the classifier.
    limit : str or None
        max_memory; None means the estimate for codes in files.
    """

    shape: Shape
    settings: dict
    limit: str | None = None

    @property
    def estimate(self) -> MemoryEstimate:
        shape = self.shape
        model = MBKLClassifier(**self.settings)
        return estimate_memory(model, shape.n_rows, shape.n_features, shape.n_classes)

    @property
    def allowed(self) -> int:
        return self.estimate.streamed if self.limit is None else parse_bytes(self.limit)

    @property
    def is_large(self) -> bool:
        """Whether files save any memory."""
        return self.allowed < self.estimate.in_memory

    def __str__(self) -> str:
        maps = self.settings.get("maps", "default")
        names = maps if isinstance(maps, str) else " and ".join(maps)
        return f"{self.shape}, {names}"


@dataclass(frozen=True)
class Measured:
    """A fit: peak bytes without mapped files, seconds, and a digest of the model."""

    peak: int
    seconds: float
    bits: str


LARGE = Problem(Shape(100_000, 1_000), {"maps": "stumps", "n_maps": 3_000}, "80MB")
OTHERS = (
    Problem(Shape(60_000, 40, 5), {"maps": "stumps", "n_maps": 2_000}),
    Problem(Shape(200_000, 100), {"maps": "stumps", "n_maps": 1_000}),
    Problem(Shape(200_000, 100, 10), {"maps": "stumps", "n_maps": 2_000}),
    Problem(Shape(60_000, 10), {"maps": ["stumps", "ferns"], "n_maps": 500}),
    Problem(Shape(60_000, 20), DRAWN),
)
QUICK_LARGE = Problem(Shape(60_000, 300), {"maps": "stumps", "n_maps": 600})
QUICK_OTHERS = (Problem(Shape(5_000, 10), {"maps": ["stumps", "ferns"], "n_maps": 50}),)


def measure(problem: Problem, folder: Path, repeats: int, in_files: bool) -> Measured:
    """Fit in a fresh process."""
    settings = dict(problem.settings)
    if in_files:
        settings |= {"max_memory": problem.allowed, "cache_folder": str(folder)}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(_measure, str(folder), settings, repeats).result()


def _measure(folder: str, settings: dict, repeats: int) -> Measured:
    X, y = rows_of(_WARM)
    # Libraries and loops are loaded before the measurement.
    for theta in ("ones", "learned"):
        small = {"maps": ["stumps", "ferns"], "n_maps": 60, "theta": theta, "random_state": 0}
        MBKLClassifier(**small).fit(X, y)
    X, y = np.load(f"{folder}/X.npy", mmap_mode="r"), np.load(f"{folder}/y.npy")
    model = MBKLClassifier(random_state=0, **settings)
    peak = _peak(lambda: model.fit(X, y))
    times = [seconds(lambda: model.fit(X, y)) for _ in range(repeats)]
    return Measured(peak, statistics.median(times), digest(model))


def _peak(work) -> int:
    """Return the rise of the memory of this process in bytes, without mapped files."""
    gc.collect()
    _return_free_memory()
    before, most, running = _used(), 0, True

    def watch() -> None:
        nonlocal most
        while running:
            most = max(most, _used() - before)
            time.sleep(_INTERVAL)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        running = False
        watcher.join()
    return most


def _used() -> int:
    import resource

    resident, shared = Path("/proc/self/statm").read_text().split()[1:3]
    return (int(resident) - int(shared)) * resource.getpagesize()


def compare(problem: Problem, repeats: int) -> list[dict]:
    """Return a line for the fit in memory, and one for that in files."""
    estimate = problem.estimate
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder, problem.shape)
        plain = measure(problem, folder, repeats, in_files=False)
        lines = [_line(problem, "in memory", plain, plain, estimate.in_memory)]
        if problem.is_large:
            streamed = measure(problem, folder, repeats, in_files=True)
            lines.append(_line(problem, "in files", streamed, plain, estimate.streamed))
    for line in lines:
        say(f"{problem}, {line['codes']}: {line['fit, s']:.2f} s, {line[_PEAK]:.0f} MB")
    return lines


def _line(problem: Problem, way: str, this: Measured, plain: Measured, expected: int) -> dict:
    in_files = way == "in files"
    return {
        "data and maps": str(problem),
        "codes": way,
        "fit, s": this.seconds,
        "times in memory": this.seconds / plain.seconds,
        _PEAK: this.peak / MEGABYTE,
        _ESTIMATE: expected / MEGABYTE,
        "measured / estimated": this.peak / expected,
        "max_memory, MB": problem.allowed / MEGABYTE if in_files else "-",
        "files as estimated, MB": problem.estimate.on_disk / MEGABYTE if in_files else "-",
        "same bits": "yes" if this.bits == plain.bits else "NO",
    }


def _plot(lines: list[dict]) -> Figure:
    labels = [f"{line['data and maps']}\n{line['codes']}" for line in lines]
    pairs = {"measured peak": _PEAK, "estimate_memory": _ESTIMATE}
    sizes = {label: [line[key] for line in lines] for label, key in pairs.items()}
    return memory_bars(labels, sizes, "memory beyond X (megabytes, logarithmic)")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and record."""
    quick = parse(__doc__ or "", arguments).quick
    if not sys.platform.startswith("linux"):
        raise MissingData("memory is measured as Linux tells it.")
    large, others, repeats = (QUICK_LARGE, QUICK_OTHERS, 1) if quick else (LARGE, OTHERS, 3)
    lines = [line for problem in (large, *others) for line in compare(problem, repeats)]
    notes = [
        "Memory of a fresh process that has fitted a small model before: the most during the fit, "
        "less that before it, without the mapped file of X (float32).",
        f"Time: median of {repeats} fits that nothing watches, after the one whose memory is "
        "measured; X and the files of codes are in the page cache as far as the system keeps them.",
        "Where no limit was asked for, max_memory is what estimate_memory says for codes in files; "
        "where that saves nothing, there is no such line.",
    ]
    record(
        "out_of_core",
        COMMAND,
        markdown_table(lines),
        notes,
        _plot(lines),
        title="Codes in files",
        quick=quick,
    )


if __name__ == "__main__":
    raise SystemExit(start(main))

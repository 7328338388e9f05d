"""Peak memory of a fit, for the shape of Daimler and for one million rows.

Shows that a fit needs less than 4 bytes per value of X and 100 bytes per map beyond X,
and that one million rows of 10 features fit in 2 GB in all. One command:

    python -m benchmarks.speed.memory
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common import (
    MEGABYTE,
    PAPER_FORM,
    Memory,
    markdown_table,
    memory_bars,
    parse,
    peak_memory,
    record,
    say,
    start,
)
from benchmarks.data import MissingData, daimler_hog, flights
from mbkl import MBKLClassifier
from mbkl.warmup import warmup

COMMAND = "python -m benchmarks.speed.memory"
BYTES_PER_VALUE = 4
BYTES_PER_MAP = 100
LIMIT_FOR_FLIGHTS = 2e9
# Rows of the warm-up fit: enough to load what a large fit uses.
_WARM_ROWS = 3_000


def prepare_daimler(n_rows: int | None, n_features: int | None, n_maps: int) -> tuple:
    """Load the rows as float32 and warm the loops."""
    data = daimler_hog().first(n_rows, n_features)
    X, y = data.X_train.astype(np.float32), data.y_train
    warmup()
    few = data.first(_WARM_ROWS)
    MBKLClassifier(**PAPER_FORM, n_maps=n_maps, random_state=0).fit(few.X_train, few.y_train)
    return X, y, n_maps, data.name


def fit(prepared: tuple) -> tuple:
    """Fit; return shape, number of maps and name of the data."""
    X, y, n_maps, name = prepared
    MBKLClassifier(**PAPER_FORM, n_maps=n_maps, random_state=0).fit(X, y)
    return *X.shape, n_maps, name


def prepare_flights(n_rows: int | None, n_maps: int) -> tuple:
    """Load the rows."""
    X, y = flights()
    return np.ascontiguousarray(X[:n_rows]), y[:n_rows], n_maps, "flights-1m"


def _row(memory: Memory, of_process: bool) -> dict:
    """Return the line of a fit, with the rise of the memory or that of the whole process."""
    rows, features, n_maps, name = memory.result
    what, peak = "rise during the fit, beyond X", memory.rise
    limit: float = BYTES_PER_VALUE * rows * features + BYTES_PER_MAP * n_maps
    if of_process:
        what, peak = "whole process: Python, libraries, data and fit", memory.peak
        limit = LIMIT_FOR_FLIGHTS
    return {
        "data": f"{name}, {rows:,} x {features:,}",
        "maps": n_maps,
        "what": what,
        "peak, MB": peak / MEGABYTE,
        "limit, MB": limit / MEGABYTE,
        "share of the limit": peak / limit,
        "matrix of the maps would take, MB": 8 * rows * n_maps / MEGABYTE,
    }


def _plot(rows: list[dict]) -> Figure:
    labels = [f"{row['data']}\nK = {row['maps']:,}" for row in rows]
    pairs = {"measured peak": "peak, MB", "limit": "limit, MB"}
    sizes = {label: [row[key] for row in rows] for label, key in pairs.items()}
    return memory_bars(labels, sizes, "memory (megabytes, logarithmic)")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and record."""
    quick = parse(__doc__, arguments).quick
    part, all_maps = ((6_000, 60), (500,)) if quick else ((None, None), (10_000, 160_000))
    rows = []
    for n_maps in all_maps:
        rows.append(_row(peak_memory(prepare_daimler, fit, *part, n_maps), of_process=False))
        say(f"{rows[-1]['data']}, {n_maps:,} maps: {rows[-1]['peak, MB']:.1f} MB")
    sizes = (20_000, 200) if quick else (None, 2_000)
    try:
        rows.append(_row(peak_memory(prepare_flights, fit, *sizes), of_process=True))
        say(f"{rows[-1]['data']}: {rows[-1]['peak, MB']:.0f} MB")
    except MissingData as missing:
        say(f"skipped: {missing}")
    notes = [
        "Resident memory of a fresh process. For Daimler's shape X is float32, the loops are "
        f"warm, and the limit is {BYTES_PER_VALUE} bytes per value of X plus {BYTES_PER_MAP} "
        "bytes per map.",
        "The last column is arithmetic, 8 bytes per row and map, and not measured.",
    ]
    record(
        "memory",
        COMMAND,
        markdown_table(rows),
        notes,
        _plot(rows),
        title="Peak memory of a fit",
        quick=quick,
    )


if __name__ == "__main__":
    raise SystemExit(start(main))

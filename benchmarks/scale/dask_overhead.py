"""The overhead of Dask in a pass over rows on a cluster, and the time of a whole fit.

Shows that a pass takes less than 50 ms more than its computation and the transfer of tables
and histograms, and that a fit on a cluster gives the bits of a local one. One command:

    python -m benchmarks.scale.dask_overhead
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common import (
    MEGABYTE,
    markdown_table,
    median_seconds,
    parse,
    plain_log_ticks,
    record,
    say,
    seconds,
    start,
)
from benchmarks.scale.cluster import local_cluster, on_the_workers
from benchmarks.scale.problems import Shape, digest, rows_of
from mbkl import MBKLClassifier
from mbkl.cells import Ladder, Operator, operator_of
from mbkl.engine import choose_loops
from mbkl.engine.arrays import smallest_code_dtype
from mbkl.engine.codes import DenseCodes

COMMAND = "python -m benchmarks.scale.dask_overhead"
ALLOWED_MILLISECONDS = 50
_GROUPS, _FEW_ROWS = 16, 64
_ROUTES = {False: "by way of the scheduler", True: "straight to the workers"}


LARGE = Shape(200_000, 20)


@dataclass(frozen=True)
class Sizes:
    """What to measure: in a full run, or in a quick one."""

    n_workers: tuple[int, ...] = (1, 2, 4)
    megabytes: tuple[float, ...] = (0.001, 0.1, 1.0, 4.0)
    passes: int = 100
    shape: Shape = LARGE
    n_maps: int = 2_000
    fits: int = 3


QUICK = Sizes((1, 2), (0.001, 0.1), 5, Shape(6_000, 5), 100, 1)


# ---------------------------------------------------------------- one pass


def operator_on(crew, megabytes: float) -> Operator:
    """Return the maps of few rows on every worker, with tables of this size."""
    from mbkl.dask.rows import RemoteCodes

    here = operator_here(megabytes).codes
    node = crew.keep_each([here] * crew.n_stores)
    there = RemoteCodes(crew, node, crew.n_stores * _FEW_ROWS, here.offsets, here.loops)
    return operator_of(there, Ladder(here.offsets))


def operator_here(megabytes: float) -> Operator:
    """Return the same maps on the rows of one worker, in this process."""
    n_cells = max(round(megabytes * MEGABYTE / 8 / _GROUPS), 2)
    offsets = n_cells * np.arange(_GROUPS + 1)
    values = np.random.default_rng(0).integers(n_cells, size=(_GROUPS, _FEW_ROWS))
    values = values.astype(smallest_code_dtype(n_cells))
    return operator_of(DenseCodes(values, offsets, choose_loops(0, 1)), Ladder(offsets))


def curvature_on(crew):
    """Return a number for each of the few rows on the workers."""
    from mbkl.dask.rows import RemoteRows

    node = crew.keep_each([np.ones((_FEW_ROWS, 1))] * crew.n_stores)
    return RemoteRows(crew, node, np.empty((0, 1)), crew.n_stores * _FEW_ROWS)


def one_pass(operator: Operator, curvature) -> Callable[[], object]:
    """Return a function that does the pass of a solver for a direction: forward, and adjoint."""
    direction = np.ones((operator.n_columns, 1))
    return lambda: operator.adjoint_and_total(curvature * operator.forward(direction))


def crew_of(client, n_workers: int):
    """Return stores with a single row, one on each worker."""
    from mbkl.dask.crew import Crew

    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    rows = (np.zeros((1, 1), np.float32), np.zeros(1), np.ones(1))
    pieces = {worker: [client.scatter(rows, workers=[worker])] for worker in workers}
    assert len(pieces) == n_workers
    return Crew(client, pieces)


def measure_passes(client, n_workers: int, sizes: Sizes) -> dict[float, float]:
    """Return the milliseconds of a pass for each size of the tables."""
    crew = crew_of(client, n_workers)
    curvature = curvature_on(crew)
    times = {}
    for megabytes in sizes.megabytes:
        work = one_pass(operator_on(crew, megabytes), curvature)
        work()
        times[megabytes] = 1e3 * statistics.median(seconds(work) for _ in range(sizes.passes))
    crew.close()
    return times


def measure_here(sizes: Sizes) -> dict[float, float]:
    """Return the milliseconds of the same passes in this process."""
    times = {}
    for megabytes in sizes.megabytes:
        work = one_pass(operator_here(megabytes), np.ones((_FEW_ROWS, 1)))
        times[megabytes] = 1e3 * statistics.median(seconds(work) for _ in range(sizes.passes))
    return times


def pass_lines(n_workers: int, times: dict[bool, dict], here: dict, sizes: Sizes) -> list[dict]:
    """Return a line for each size of the tables."""
    smallest = min(sizes.megabytes)
    lines = []
    for megabytes in sizes.megabytes:
        moved = 2 * n_workers * (megabytes - smallest)
        line: dict = {"workers": n_workers, "table, MB": megabytes}
        line["the same pass here, ms"] = here[megabytes]
        for direct, of_route in times.items():
            overhead = of_route[megabytes] - here[megabytes]
            transfer = overhead - (of_route[smallest] - here[smallest])
            line[f"{_ROUTES[direct]}, ms"] = of_route[megabytes]
            # The transfer of small tables is lost in the noise.
            per_megabyte = transfer / moved if megabytes >= 1 else "-"
            line[f"{_ROUTES[direct]}, ms per MB moved"] = per_megabyte
        lines.append(line)
    return lines


# ---------------------------------------------------------------- a whole fit


def fit_line(client, n_workers: int, X, y, sizes: Sizes, local: MBKLClassifier, here: float):
    """Return a line that compares a fit on the cluster with one in this process."""
    from mbkl.dask import MBKLClassifier as OnDask

    parts = on_the_workers(X, y, n_workers)
    model = OnDask(client=client, **_settings(sizes)).fit(*parts)
    taken = median_seconds({"fit": lambda: model.fit(*parts)}, sizes.fits)["fit"]
    say(f"fit with {n_workers} workers: {taken:.2f} s, here {here:.2f} s")
    return {
        "workers": n_workers,
        "fit on Dask, s": taken,
        "fit here with one thread, s": here,
        "same bits": "yes" if digest(model) == digest(local) else "NO",
    }


def _settings(sizes: Sizes) -> dict:
    return {"maps": "stumps", "n_maps": sizes.n_maps, "random_state": 0}


# ---------------------------------------------------------------- all of it


def _plot(passes: list[dict], fits: list[dict]) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    for direct, style in ((False, "o-"), (True, "s--")):
        for colour, n_workers in enumerate(dict.fromkeys(line["workers"] for line in passes)):
            shown = [line for line in passes if line["workers"] == n_workers]
            left.loglog(
                [line["table, MB"] for line in shown],
                [line[f"{_ROUTES[direct]}, ms"] for line in shown],
                style,
                color=f"C{colour}",
                label=f"{n_workers}, {_ROUTES[direct]}",
            )
    left.set_xlabel("table, and histogram (megabytes)")
    left.set_ylabel("time of a pass over few rows (ms)")
    plain_log_ticks(left.yaxis)
    sizes = sorted({line["table, MB"] for line in passes})
    left.set_xticks(sizes, [f"{size:g}" for size in sizes])
    left.legend(fontsize=7, title="workers", title_fontsize=7)
    left.grid(True, alpha=0.3)
    places = np.arange(len(fits))
    bars = right.bar(places, [line["fit on Dask, s"] for line in fits])
    right.bar_label(bars, fmt="{:.2f} s", fontsize=8)
    right.axhline(fits[0]["fit here with one thread, s"], color="k", ls=":", label="here, 1 thread")
    right.set_xticks(places, [str(line["workers"]) for line in fits])
    right.set_xlabel("workers of one thread")
    right.set_ylabel("time of a whole fit (seconds)")
    right.margins(y=0.15)
    right.legend(fontsize=7)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and record."""
    quick = parse(__doc__ or "", arguments).quick
    sizes = QUICK if quick else Sizes()
    X, y = rows_of(sizes.shape)
    local = MBKLClassifier(n_jobs=1, **_settings(sizes)).fit(X, y)
    taken_here = median_seconds({"fit": lambda: local.fit(X, y)}, sizes.fits)["fit"]
    passes_here, passes, fits = measure_here(sizes), [], []
    for n_workers in sizes.n_workers:
        times = {}
        for direct in _ROUTES:
            with local_cluster(n_workers, direct) as client:
                times[direct] = measure_passes(client, n_workers, sizes)
                if not direct:
                    fits.append(fit_line(client, n_workers, X, y, sizes, local, taken_here))
        passes += pass_lines(n_workers, times, passes_here, sizes)
        shown = ", ".join(f"{way[min(way)]:.1f} ms" for way in times.values())
        say(f"a pass with {n_workers} workers, and straight to them: {shown}")
    worst = max(
        line[f"{_ROUTES[False]}, ms"] - line["the same pass here, ms"]
        for line in passes
        if line["table, MB"] == min(sizes.megabytes)
    )
    notes = [
        f"First table: forward and adjoint of one column, as the solver calls them, on "
        f"{_FEW_ROWS} rows a worker, where there is next to nothing to compute; median of "
        f"{sizes.passes}. A table goes to every worker, and a histogram of the same size comes "
        "back: 'moved' is both, for all workers, all on one machine.",
        f"With tables of a kilobyte a pass costs at most {worst:.1f} ms more than here; "
        f"{ALLOWED_MILLISECONDS} ms were allowed.",
        "'Straight' is a Client(direct_to_workers=True); without it, which is the default of "
        "Dask, what a client says to an actor goes by way of the scheduler.",
        f"Second table: {sizes.shape}, {sizes.n_maps:,} stumps, rows on the workers; median of "
        f"{sizes.fits} fits, by way of the scheduler. Workers, scheduler and client share the "
        "cores of this machine.",
    ]
    record(
        "dask_overhead",
        COMMAND,
        "\n\n".join([markdown_table(passes), markdown_table(fits)]),
        notes,
        _plot(passes, fits),
        title="Overhead of Dask",
        quick=quick,
    )


if __name__ == "__main__":
    raise SystemExit(start(main))

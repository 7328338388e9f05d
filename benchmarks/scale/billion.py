"""Predictions of the cost model for a billion rows on a hundred machines."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from unittest import mock

from benchmarks.common import MEGABYTE, markdown_table
from benchmarks.scale.constants import Constants
from benchmarks.scale.counting import Tally
from benchmarks.scale.fits import N_WORKERS, Fit, count_and_time
from benchmarks.scale.model import OF_FEW_ROWS, pass_names, seconds_of
from benchmarks.scale.problems import Shape
from mbkl import MBKLClassifier, estimate_memory

# A hypothetical cluster.
ROWS, FEATURES = 10**9, 100
MACHINES, CORES = 100, 16
NETWORK = 1.25e9  # bytes a second: ten gigabits
# Bytes that a worker sends to others for each of its rows, to find equal rows.
EXCHANGED_BYTES = 40


@dataclass(frozen=True)
class Case:
    """A fit whose passes are counted on few rows, to predict its time on many.

    Parameters
    ----------
    name : str
    fit : Fit
        On Dask.
    few_ferns : bool
        Whether to draw as few ferns as a billion rows would get.
    """

    name: str
    fit: Fit
    few_ferns: bool = False

    def count(self, client) -> Tally:
        limit = mock.patch("mbkl.engine.limits.CODES_OF_FERNS", 0)
        with limit if self.few_ferns else contextlib.nullcontext():
            return count_and_time(self.fit, client, repeats=0)[0]

    @property
    def worker_bytes(self) -> int:
        """Memory of a worker: that of a local fit of its rows, and X until it is encoded."""
        n_rows = ROWS // MACHINES
        model = MBKLClassifier(**self.fit.settings)
        estimate = estimate_memory(model, n_rows, FEATURES, self.fit.shape.n_classes)
        return estimate.in_memory + 4 * n_rows * FEATURES


def cases(n_rows: int, n_features: int) -> tuple[Case, ...]:
    """Return the fits to predict for a billion rows."""
    return (
        Case("stumps", Fit("Dask", Shape(n_rows, n_features), {"maps": "stumps"})),
        Case("default", Fit("Dask", Shape(n_rows, n_features)), few_ferns=True),
        Case("stumps, 10 classes", Fit("Dask", Shape(n_rows, n_features, 10), {"maps": "stumps"})),
    )


def counts_of(case: Case, tally: Tally) -> dict[str, float]:
    """Return what was counted, per row or per worker."""
    n_rows, work = case.fit.shape.n_rows, tally.on_workers
    exchanges = tally.here["exchanges"]
    own_tasks = tally.here["tasks"] - exchanges * _exchange_tasks(N_WORKERS)
    return {
        "look-ups of codes, a row": sum(work[name] for name in pass_names()) / n_rows,
        "numbers of row state, a row": work["row state"] / n_rows,
        "values binned, a row": work["bin"] / n_rows,
        "stumps of ferns binned, a row": work["bin ferns"] / n_rows,
        "codes copied, a row": work["take"] / n_rows,
        "calls to all workers": tally.here["round trips"],
        "tables out, MB a worker": tally.here["bytes out"] / N_WORKERS / MEGABYTE,
        "histograms back, MB a worker": tally.here["bytes back"] / N_WORKERS / MEGABYTE,
        "samples back, MB": tally.here["bytes of samples"] / MEGABYTE,
        "exchanges": exchanges,
        "other tasks, a worker": own_tasks / N_WORKERS,
    }


def _exchange_tasks(n_workers: int) -> int:
    """Return the tasks of one exchange: each worker sends each worker a part and an answer."""
    return 2 * n_workers**2 + 3 * n_workers


def predict_cluster(case: Case, tally: Tally, costs: Constants) -> dict[str, float]:
    """Return the seconds of each part of a fit of a billion rows on the cluster."""
    counts, work = counts_of(case, tally), tally.on_workers
    rows = ROWS / case.fit.shape.n_rows / MACHINES
    moved = MACHINES * (counts["tables out, MB a worker"] + counts["histograms back, MB a worker"])
    tasks = counts["exchanges"] * _exchange_tasks(MACHINES)
    tasks += counts["other tasks, a worker"] * MACHINES
    return {
        "gather and histogram": seconds_of(work, costs, *pass_names()) * rows / CORES,
        "row state": work["row state"] * costs.large_row_state * rows,
        "binning, copies": seconds_of(work, costs, "bin", "bin ferns", "take") * rows / CORES,
        "order of the rows": seconds_of(work, costs, "order") * rows,
        "exchange of hashes": EXCHANGED_BYTES * ROWS / MACHINES / NETWORK,
        "calls": counts["calls to all workers"] * costs.round_trip(MACHINES),
        "tables and histograms": moved * MEGABYTE / NETWORK,
        "tasks": tasks * costs.unit["tasks"],
        "few rows, here": sum(
            seconds_of(tally.here, costs, name)
            for name in (*OF_FEW_ROWS, *pass_names(), "row state")
        ),
    }


_FORMULAS = {
    "gather and histogram": "look-ups a row x {rows:.0e} rows / ({machines} machines x {cores} "
    "cores) x s a look-up",
    "row state": "numbers a row x {rows:.0e} rows / {machines} machines x s a number: NumPy, one "
    "thread",
    "binning, copies": "values x s a value / ({machines} x {cores})",
    "order of the rows": "{rows:.0e} / {machines} x s a row: one thread",
    "exchange of hashes": "{exchanged} bytes x {rows:.0e} / {machines} / {network:g} GB/s",
    "calls": "calls x (first worker + {others} x each further one)",
    "tables and histograms": "MB a worker, out and back, x {machines} / {network:g} GB/s, of the "
    "client",
    "tasks": "exchanges x (2 x {machines}^2 + 3 x {machines}) + others x {machines}, x s a task",
    "few rows, here": "samples of bounded size: as counted",
}


def cluster_tables(costs: Constants, counted_cases: dict[str, tuple[Case, Tally]]) -> str:
    """Return tables of what was counted, and of the predicted times."""
    formula = {
        "rows": ROWS,
        "machines": MACHINES,
        "cores": CORES,
        "others": MACHINES - 1,
        "exchanged": EXCHANGED_BYTES,
        "network": NETWORK / 1e9,
    }
    counts = {name: counts_of(*pair) for name, pair in counted_cases.items()}
    times = {name: predict_cluster(*pair, costs) for name, pair in counted_cases.items()}
    for name, (_, tally) in counted_cases.items():
        work = tally.on_workers
        look_ups = sum(work[each] for each in pass_names())
        mean = seconds_of(work, costs, *pass_names()) / look_ups
        counts[name]["nanoseconds of a look-up, mean"] = 1e9 * mean
    first = [
        {"counted": key, **{name: counts[name][key] for name in counts}}
        for key in next(iter(counts.values()))
    ]
    second: list[dict] = [
        {
            "part": part,
            "how": text.format(**formula),
            **{f"{name}, s": times[name][part] for name in times},
        }
        for part, text in _FORMULAS.items()
    ]
    totals = {f"{name}, s": sum(times[name].values()) for name in times}
    second.append({"part": "all", "how": "", **totals})
    memory = {
        f"{name}, s": f"{case.worker_bytes / 1e9:.1f} GB"
        for name, (case, _) in counted_cases.items()
    }
    second.append(
        {
            "part": "memory of a worker",
            "how": "estimate_memory of its rows, and 4 bytes for each value of X",
            **memory,
        }
    )
    return "\n\n".join([markdown_table(first), markdown_table(second)])

"""A model of the time of a fit: its constants, its check, and predictions for a billion rows.

Counts the operations of fits, predicts their time from the cost of each operation, and compares
it with the measured time. One command:

    python -m benchmarks.scale.cost_model
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common import markdown_table, n_cores, number, parse, record, say, start
from benchmarks.scale import billion, constants
from benchmarks.scale.cluster import local_cluster
from benchmarks.scale.constants import Constants
from benchmarks.scale.counting import Tally
from benchmarks.scale.fits import N_WORKERS, Fit, count_and_time
from benchmarks.scale.model import PASSES, pass_names, predict
from benchmarks.scale.problems import DRAWN, Shape

COMMAND = "python -m benchmarks.scale.cost_model"
FEW_STUMPS = {"maps": "stumps", "n_maps": 200}
FERNS = {"maps": ["stumps", "ferns"], "n_maps": 500}
CHECKS = (
    Fit("in memory", Shape(50_000, 20), FEW_STUMPS),
    Fit("in memory", Shape(200_000, 20), FEW_STUMPS),
    Fit("in memory", Shape(800_000, 20), FEW_STUMPS),
    Fit("in memory", Shape(100_000, 100), {"maps": "stumps"}),
    Fit("in memory", Shape(50_000, 50, 10), {"maps": "stumps"}),
    Fit("in memory", Shape(60_000, 10), FERNS),
    Fit("in memory", Shape(120_000, 10), FERNS),
    Fit("in memory", Shape(60_000, 20), DRAWN),
    Fit("in files", Shape(100_000, 1_000), {"maps": "stumps", "n_maps": 3_000}),
    Fit("in files", Shape(60_000, 10), FERNS),
    Fit("Dask", Shape(200_000, 20), {"maps": "stumps", "n_maps": 2_000}),
    Fit("Dask", Shape(60_000, 10), FERNS),
)
QUICK_CHECKS = (
    Fit("in memory", Shape(5_000, 10), {"maps": "stumps", "n_maps": 50}),
    Fit("Dask", Shape(5_000, 10), {"maps": "stumps", "n_maps": 50}),
)
UNITS = {
    "bin": "value of X into one of 65 cells",
    "bin ferns": "stump of a fern and row",
    "row state": "number: loss, rounding and sum",
    "order": "row: class looked up, sorted by hash, equal ones merged",
    "take": "code copied, in any order",
    "agreement": "code compared, for a kernel matrix of ferns",
    "city block": "place compared, for a kernel matrix of stumps",
    "centre": "entry of a kernel matrix picked and centred",
    "factor": "multiplication of a Cholesky factor",
    "read": "byte of a file in the page cache",
    "write": "byte of a file",
    "byte sent": "byte to a worker on this machine",
    "tasks": "task of the scheduler",
    "round trips": "call to one worker, for a sum over few rows",
}


# ---------------------------------------------------------------- predicted and measured


@dataclass(frozen=True)
class Checked:
    """A fit, the operations it does, and its measured seconds."""

    fit: Fit
    tally: Tally
    taken: float

    def parts(self, costs: Constants) -> dict[str, float]:
        """Return the predicted seconds of each part."""
        return predict(self.tally, costs, N_WORKERS if self.fit.where == "Dask" else 1)

    @property
    def passes(self) -> float:
        """Passes over all rows and problems; passes over fewer rows count as fractions."""
        shape = self.fit.shape
        n_problems = 1 if shape.n_classes == 2 else shape.n_classes
        both = (self.tally.here, self.tally.on_workers)
        rows = sum(work[f"rows of {name}"] for work in both for name in PASSES)
        return rows / (2 * self.fit.n_families * n_problems * shape.n_rows)

    def line(self, costs: Constants) -> dict:
        """Return a line: predicted against measured."""
        expected = sum(self.parts(costs).values())
        return {
            "where": self.fit.where,
            "fit": str(self.fit),
            "passes": self.passes,
            "predicted, s": expected,
            "measured, s": self.taken,
            "measured / predicted": self.taken / expected,
        }


def check(fit: Fit, client, costs: Constants, repeats: int) -> Checked:
    """Count and time a fit."""
    checked = Checked(fit, *count_and_time(fit, client, repeats))
    line = checked.line(costs)
    say(f"{fit.where}, {fit}: {line['predicted, s']:.2f} s predicted, {checked.taken:.2f} s")
    return checked


def check_tables(all_checked: list[Checked], costs: Constants) -> str:
    """Return tables of predicted and measured times, and of the parts of the predictions."""
    first = [checked.line(costs) for checked in all_checked]
    second = [
        {"seconds predicted for": f"{checked.fit.where}: {checked.fit}", **checked.parts(costs)}
        for checked in all_checked
    ]
    return "\n\n".join([markdown_table(first), markdown_table(second)])


# ---------------------------------------------------------------- tables and a plot


def duration(value: float) -> str:
    """Format seconds in a suitable unit.

    Examples
    --------
    >>> duration(0.00123), duration(4.5e-10)
    ('1.23 ms', '0.45 ns')
    """
    for factor, unit in ((1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1:
            return f"{number(value * factor)} {unit}"
    return f"{number(value * 1e9)} ns"


def constants_table(costs: Constants) -> str:
    """Return a table of all constants; for passes also with all threads, and bytes read."""
    threads = f"a second, {n_cores()} threads"
    lines = []
    for name in pass_names():
        # Each code is read once for all columns.
        n_bytes = 1.0 if name.endswith("one column") else 0.1
        line = _constant(f"{name}: code looked up", costs.unit[name])
        line[threads] = f"{1 / costs.on_all_cores[name]:.2e}"
        line["codes read, GB/s"] = n_bytes / costs.unit[name] / 1e9
        lines.append(line)
    others = {f"{name}: {text}": costs.unit[name] for name, text in UNITS.items()}
    others |= {
        "row state: number of an array that no cache holds": costs.large_row_state,
        "read: byte of a file that is not in the page cache": costs.cold_read,
        "round trips: each further worker": costs.message,
    }
    lines += [
        {**_constant(name, value), threads: "-", "codes read, GB/s": "-"}
        for name, value in sorted(others.items())
    ]
    return markdown_table(lines)


def _constant(name: str, value: float) -> dict:
    rate = f"{1 / value:.2e}" if value else "-"
    return {"operation": name, "time": duration(value), "a second": rate}


def _plot(all_checked: list[Checked], costs: Constants) -> Figure:
    figure = Figure(figsize=(9, 1.4 + 0.5 * len(all_checked)), layout="constrained")
    axes = figure.subplots()
    places, left = np.arange(len(all_checked)), np.zeros(len(all_checked))
    parts = [checked.parts(costs) for checked in all_checked]
    for name in parts[0]:
        pairs = zip(parts, all_checked, strict=True)
        share = np.array([part[name] / checked.taken for part, checked in pairs])
        axes.barh(places, share, left=left, height=0.6, label=name)
        left += share
    axes.axvline(1.0, color="k", ls=":", lw=1)
    labels = [
        f"{checked.fit.where}: {checked.fit}\n{number(checked.taken)} s measured"
        for checked in all_checked
    ]
    axes.set_yticks(places, labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("predicted time, by parts, as a share of the measured time")
    figure.legend(loc="outside upper center", ncols=4, fontsize=8)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, predict, compare and record."""
    quick = parse(__doc__ or "", arguments).quick
    costs = constants.measure(constants.QUICK if quick else constants.Sizes())
    say("constants measured")
    checks, repeats = (QUICK_CHECKS, 1) if quick else (CHECKS, 3)
    size = (5_000, 10) if quick else (100_000, billion.FEATURES)
    with local_cluster(N_WORKERS) as client:
        all_checked = [check(fit, client, costs, repeats) for fit in checks]
        counted_cases = {case.name: (case, case.count(client)) for case in billion.cases(*size)}
    record(
        "cost_constants",
        COMMAND,
        constants_table(costs),
        [
            "Medians, one core. 'One column' are codes of ferns with "
            f"{constants.FERN_CELLS} cells, 'many columns' are {constants.COLUMNS} of stumps with "
            f"{constants.STUMP_CELLS} cells, each counted as a look-up.",
            f"One core copies memory at {costs.bandwidth / 1e9:.1f} GB/s, read and written.",
            "Calls go by way of the scheduler; all workers are on this machine.",
        ],
        title="Cost model: constants",
        quick=quick,
    )
    record(
        "cost_check",
        COMMAND,
        check_tables(all_checked, costs),
        [
            "A pass is a gather and a histogram of all rows and problems; those of fewer rows "
            "count as their share. Counted by wrapping the engines while a fit runs.",
            f"One thread, or {N_WORKERS} workers of one thread each; measured is the median of "
            f"{repeats} fits that are not counted.",
            "Not in the model: the choice of maps, drawing them, and what the solvers do with "
            "tables.",
        ],
        _plot(all_checked, costs),
        title="Cost model: predicted and measured",
        quick=quick,
    )
    shape = next(iter(counted_cases.values()))[0].fit.shape
    record(
        "cost_cluster",
        COMMAND,
        billion.cluster_tables(costs, counted_cases),
        [
            f"Not measured: {billion.ROWS:.0e} rows of {billion.FEATURES} features on "
            f"{billion.MACHINES} machines with {billion.CORES} of the cores of this one each, a "
            "worker on each machine, and a network of "
            f"{8 * billion.NETWORK / 1e9:g} gigabits a second.",
            f"Counted with {N_WORKERS} workers on {shape.n_rows:,} rows of "
            f"{shape.n_features} features; the number of passes is taken to be the same. The "
            "default has the 200 ferns that a billion rows get.",
        ],
        title="Cost model: a billion rows",
        quick=quick,
    )


if __name__ == "__main__":
    raise SystemExit(start(main))

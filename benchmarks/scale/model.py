"""The predicted time of the parts of a fit: counted units, times the cost of a unit."""

from __future__ import annotations

from benchmarks.scale.constants import Constants
from benchmarks.scale.counting import Tally

PASSES = ("gather", "histogram")
KINDS = ("one column", "many columns")
OF_FEW_ROWS = ("agreement", "city block", "centre", "factor")


def seconds_of(work, costs: Constants, *operations: str) -> float:
    """Return the time of some operations on one core."""
    return sum(work[name] * costs.unit[name] for name in operations)


def pass_names() -> list[str]:
    """Return the operations that read codes."""
    return [f"{name}, {kind}" for name in PASSES for kind in KINDS]


def predict(tally: Tally, costs: Constants, n_workers: int = 1) -> dict[str, float]:
    """Return the seconds of each part of a fit.

    Parameters
    ----------
    tally : Tally
    costs : Constants
    n_workers : int
        Workers of one thread that share the work of `tally.on_workers`.
    """

    def both(*operations: str) -> float:
        here = seconds_of(tally.here, costs, *operations)
        return here + seconds_of(tally.on_workers, costs, *operations) / n_workers

    codes = both(*pass_names())
    reading = seconds_of(tally.here, costs, "read")
    sent = sum(tally.here[name] for name in ("bytes out", "bytes back", "bytes of samples"))
    return {
        "gather and histogram": codes,
        "row state": both("row state"),
        "binning, order, copies": both("bin", "bin ferns", "order", "take"),
        "few rows": both(*OF_FEW_ROWS),
        # A block is read while the previous one is processed.
        "files": max(reading - codes, 0.0) + seconds_of(tally.here, costs, "write"),
        "Dask: calls and tasks": tally.here["round trips"] * costs.round_trip(n_workers)
        + seconds_of(tally.here, costs, "tasks"),
        "Dask: bytes": sent * costs.unit["byte sent"],
    }

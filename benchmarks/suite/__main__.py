"""Compare classifiers, or regressors, over all data sets of the suite.

python -m benchmarks.suite                         all methods and sets, then the report
python -m benchmarks.suite --sets pima glass       some sets only; printed, not recorded
python -m benchmarks.suite --report-only           the report of the results so far
python -m benchmarks.suite --quick                 small sets and few methods, nothing recorded
python -m benchmarks.suite --rows 1000 --folds 2   fewer rows and folds, where time is short
python -m benchmarks.suite --all-rows              sets of more than 10,000 rows, nothing tuned
python -m benchmarks.suite --task regression       numbers as targets, or their --task quantiles

Every result is stored at once, so a run that was stopped continues where it was. Results
of mbkl are measured again when its source has changed, those of the rivals when their
parameters have changed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.common import FOLDER, say, start
from benchmarks.data import has_data
from benchmarks.suite import report, runner
from benchmarks.suite.collection import collect
from benchmarks.suite.protocol import ALL_ROWS, QUICK, STANDARD, Protocol
from benchmarks.suite.store import Store
from benchmarks.suite.tasks import TASKS, Task

COMMAND = "python -m benchmarks.suite"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--task", choices=list(TASKS), default="classification", help="default: %(default)s"
    )
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="data sets; default: all")
    parser.add_argument("--all-rows", action="store_true", help="large sets, nothing tuned")
    parser.add_argument("--rows", type=int, help="the most training rows")
    parser.add_argument("--folds", type=int, help="folds of a set; default: 3")
    parser.add_argument("--results", type=Path, help="file of the results")
    parser.add_argument("--retry", action="store_true", help="try again what failed before")
    parser.add_argument("--report-only", action="store_true", help="measure nothing")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that it runs; nothing is recorded"
    )
    chosen = parser.parse_args(arguments)
    if chosen.quick and chosen.all_rows:
        parser.error("--quick has few rows; leave --all-rows out")
    task = TASKS[chosen.task]
    known_sets = _known_sets(task, chosen.quick) if chosen.sets else []
    for what, given, known in [
        ("method", chosen.methods, list(task.methods)),
        ("data set", chosen.sets, known_sets),
    ]:
        unknown = sorted(set(given or ()) - set(known))
        if unknown:
            parser.error(f"unknown {what} {unknown[0]!r}; choose of {', '.join(known)}")
    return chosen


def _known_sets(task: Task, quick: bool) -> list[str]:
    """Return the names of the data sets; a quick run needs no stored ones."""
    stored = [] if quick and not has_data() else task.sets.names()
    return [*(task.sets.bundled if quick else ()), *stored]


def _all_sets(task: Task, chosen: argparse.Namespace) -> list[str]:
    if chosen.quick:
        return list(task.sets.bundled)
    return task.sets.large() if chosen.all_rows else task.sets.names()


def _all_methods(task: Task, chosen: argparse.Namespace) -> Sequence[str]:
    if chosen.quick:
        return task.quick_methods
    return task.large_methods if chosen.all_rows else list(task.methods)


def _protocol(chosen: argparse.Namespace) -> Protocol:
    if chosen.quick:
        return QUICK
    protocol = ALL_ROWS if chosen.all_rows else STANDARD
    given = {"train_rows": chosen.rows, "n_folds": chosen.folds}
    return replace(protocol, **{name: value for name, value in given.items() if value})


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the missing results, and report."""
    chosen = parse(arguments)
    task, protocol = TASKS[chosen.task], _protocol(chosen)
    names = chosen.sets or _all_sets(task, chosen)
    methods = chosen.methods or _all_methods(task, chosen)
    units = runner.plan(task, names, methods, protocol)
    results = FOLDER / "suite" / task.results
    store = Store(chosen.results or (None if chosen.quick else results))
    if not chosen.report_only:
        runner.run(task, units, store, protocol, chosen.retry)
    is_part = bool(chosen.sets or chosen.methods)
    options = "" if task.is_default else f" --task {task.name}"
    options += " --all-rows" if chosen.all_rows else ""
    options += f" --rows {chosen.rows}" if chosen.rows else ""
    options += f" --folds {chosen.folds}" if chosen.folds else ""
    report.write(
        task,
        collect(units, store),
        protocol,
        f"{COMMAND}{options}",
        print_only=chosen.quick or is_part,
    )
    if is_part and not chosen.quick:
        say("a part of the suite: printed only; --report-only by itself records all there is")


if __name__ == "__main__":
    raise SystemExit(start(main))

"""Measure the experiments of the paper and write the report.

python -m mbkl_paper.experiments                          all sets and systems, then the report
python -m mbkl_paper.experiments --sets sonar liver       some sets; the report has all there is
python -m mbkl_paper.experiments --systems mbkl linear    some systems
python -m mbkl_paper.experiments --splits 2               the first splits of each set
python -m mbkl_paper.experiments --report-only            the report of what is measured so far
python -m mbkl_paper.experiments --quick                  small made-up sets, nothing recorded

Every result is kept as soon as it is there: a run that was stopped goes on where it was.
Results of mbkl are measured again when its source has changed, those of the rivals when
their parameters or those of the descriptors of images have.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from mbkl_paper.experiments import quick, report, sets
from mbkl_paper.experiments.cells import Task, plan, run
from mbkl_paper.experiments.collection import collect
from mbkl_paper.experiments.common import say
from mbkl_paper.experiments.sets import Problem
from mbkl_paper.experiments.store import CellStore
from mbkl_paper.experiments.systems import (
    MBKL,
    STUMPS,
    SWEEP,
    SWEPT,
    SYSTEMS,
    VARIANTS,
)

COMMAND = "python -m mbkl_paper.experiments"
# Below the folder in which the command is called: that of the repository.
RESULTS = Path("paper", "results.jsonl")
OUTPUT = Path("paper", "report")
# Figures 2 and 3 are about the first of these whose data are there.
ANALYSED = ("flowers17", "osr")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=list(sets.SETS))
    parser.add_argument("--systems", nargs="+", metavar="NAME", choices=list(SYSTEMS))
    parser.add_argument("--splits", type=int, help="the first so many of each set only")
    parser.add_argument("--results", type=Path, help="file of the results")
    parser.add_argument("--output", type=Path, help="folder of the report")
    parser.add_argument("--cache", type=Path, help="folder of the descriptors of images")
    parser.add_argument("--retry", action="store_true", help="try again what failed before")
    parser.add_argument("--report-only", action="store_true", help="measure nothing")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that it runs; nothing is recorded"
    )
    chosen = parser.parse_args(arguments)
    if chosen.quick and (chosen.sets or chosen.report_only):
        parser.error("--quick has sets of its own and measures them; leave the others out")
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and report."""
    chosen = parse(arguments)
    if chosen.quick:
        with tempfile.TemporaryDirectory() as folder:
            problems = sets.load(quick.SETS, Path(folder))
            chosen.systems = chosen.systems or quick.SYSTEMS
            chosen.output = chosen.output or Path(folder)
            page = _work(chosen, problems, CellStore(chosen.results), quick.ANALYSED, quick.SWEEP)
            if page is not None:
                print(page.read_text(encoding="utf-8"))
        return
    problems = sets.load(sets.SETS, chosen.cache or sets.default_cache())
    if not problems:
        say("nothing to do: none of the data sets is there; MBKL_DATA names their folder")
        return
    analysed = next((name for name in ANALYSED if name in problems), None)
    _work(chosen, problems, CellStore(chosen.results or RESULTS), analysed, SWEEP)


def _work(
    chosen: argparse.Namespace,
    problems: dict[str, Problem],
    store: CellStore,
    analysed: str | None,
    sizes: Sequence[int],
) -> Path | None:
    """Measure the tables, sets without images first, then Figure 3; report all there is."""
    ordered = sorted(problems.values(), key=lambda one: one.settings.descriptor is not None)
    systems = chosen.systems or list(SYSTEMS)
    if not chosen.report_only:
        wanted = [one for one in ordered if one.name in (chosen.sets or problems)]
        run(_first(_tables(wanted, systems), chosen.splits), store, chosen.retry)
        if analysed in {one.name for one in wanted}:
            swept = [name for name in SWEPT if name in systems]
            tasks = _sweep(problems[analysed], swept, store, sizes)
            run(_first(tasks, chosen.splits), store, chosen.retry)
    tasks = _tables(problems.values(), list(SYSTEMS))
    if analysed is not None:
        tasks += _sweep(problems[analysed], SWEPT, store, sizes)
    return report.write(collect(tasks, store), chosen.output or OUTPUT, COMMAND, analysed)


def _first(tasks: list[Task], n_splits: int | None) -> list[Task]:
    return [task for task in tasks if n_splits is None or task.unit.fold < n_splits]


def _tables(problems: Iterable[Problem], systems: Sequence[str]) -> list[Task]:
    """Return the tasks of the tables; with MBKL come its other forms."""
    tasks = []
    for problem in problems:
        forms = problem.settings.variants if MBKL.name in systems else ()
        named = [SYSTEMS[name] for name in systems if not problem.settings.leaves_out(name)]
        tasks += plan(problem, [*named, *(VARIANTS[form] for form in forms)])
    return tasks


def _sweep(
    problem: Problem, systems: Sequence[str], store: CellStore, sizes: Sequence[int]
) -> list[Task]:
    """Return the tasks of Figure 3, at the costs that the tables have found."""
    tasks = []
    for system in (SYSTEMS[name] for name in systems):
        found = collect(plan(problem, [system]), store).cells.get((problem.name, system.name))
        if found:
            names = ("C", "C_kernel", "theta_shrinkage")
            costs = {name: getattr(found[0], name) for name in names}
            known = {key: value for key, value in costs.items() if value is not None}
            if found[0].thresholds is not None:
                known["maps"] = STUMPS[found[0].thresholds]
            tasks += plan(problem, [system.at(size, known) for size in sizes])
    return tasks


if __name__ == "__main__":
    main()

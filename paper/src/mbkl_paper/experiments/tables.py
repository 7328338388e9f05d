"""The tables of the paper, our figures beside the printed ones."""

from __future__ import annotations

import statistics

from mbkl_paper.experiments.collection import Collection
from mbkl_paper.experiments.common import number
from mbkl_paper.experiments.printed import ACCURACY, LEARNING
from mbkl_paper.experiments.systems import MBKL, PUBLISHED, SYSTEMS, System

Row = dict[str, object]
NOTHING = "-"
_MAX_PAIRS = 50_000


def beside(ours, printed) -> str:
    """Write our figure, and the printed one in parentheses."""
    return f"{number(ours)} ({NOTHING if printed is None else number(printed)})"


def data_sets(collection: Collection) -> list[Row]:
    """Return the sizes of one split of each set; the printed ones have their errata corrected."""
    rows: list[Row] = []
    for name, problem in collection.problems.items():
        ours = next(cells[0] for (found, _), cells in collection.cells.items() if found == name)
        printed = problem.benchmark.printed
        rows.append(
            {
                "data set": problem.title,
                "classes": beside(ours.n_classes, printed.n_classes),
                "training": beside(ours.train_rows, printed.n_train),
                "test": beside(ours.predict_rows, printed.n_test),
                "features": beside(ours.n_features, printed.n_features),
                "descriptor, printed": printed.descriptor,
                "splits": len(problem.splits),
                "all systems, min": number(minutes(collection, name)),
            }
        )
    return rows


def minutes(collection: Collection, name: str) -> float:
    """Return how long the systems of the tables took on a set, with the choice of their costs.

    Splits that share their training rows have one fit, which counts once.
    """
    of_set = {system: cells for (found, system), cells in collection.cells.items() if found == name}
    tables = [cells for system, cells in of_set.items() if system in SYSTEMS]
    fits = sum(sum({cell.choice_seconds + cell.fit_seconds for cell in cells}) for cells in tables)
    return (fits + sum(cell.predict_seconds for cells in tables for cell in cells)) / 60


def accuracy(collection: Collection, field: str = "accuracy") -> list[Row]:
    """Return accuracies: mean ± deviation over splits, and the printed ones; the best in bold."""
    systems = [one for one in SYSTEMS if any(system == one for _, system in collection.cells)]
    rows: list[Row] = [{"system": SYSTEMS[system].label} for system in systems]
    for name, problem in collection.problems.items():
        complete = [system for system in systems if collection.is_complete(name, system)]
        best = max((collection.mean(name, one, field) for one in complete), default=None)
        for row, system in zip(rows, systems):
            if problem.settings.leaves_out(system):
                row[problem.title] = ""
                continue
            text = accuracy_text(collection, name, system, field)
            if system in complete and collection.mean(name, system, field) == best:
                text = f"**{text}**"
            if field == "accuracy":
                text = f"{text} ({ACCURACY.get((name, system), NOTHING)})"
            row[problem.title] = text
    return rows


def accuracy_text(collection: Collection, name: str, system: str, field: str = "accuracy") -> str:
    """Write mean and deviation, with the number of splits where some are not measured."""
    if not collection.has(name, system):
        return "failed" if (name, system) in collection.failures else NOTHING
    values = collection.values(name, system, field)
    text = f"{100 * statistics.fmean(values):.1f}"
    if len(values) > 1:
        text += f" ± {100 * statistics.stdev(values):.1f}"
    if not collection.is_complete(name, system):
        text += f" [{len(values)} of {len(collection.problems[name].splits)} splits]"
    return text


def learning(collection: Collection) -> list[Row]:
    """Return the learning parameters of MBKL: ours with θ learned, and as published."""
    return [
        _learning_row(collection, name, form)
        for name in collection.problems
        for form in (MBKL, PUBLISHED)
        if collection.has(name, form.name)
    ]


def _learning_row(collection: Collection, name: str, form: System) -> Row:
    problem, cells = collection.problems[name], collection.cells[name, form.name]
    settings, printed = problem.settings, LEARNING.get(name)
    negatives = settings.negatives_per_positive
    n_pairs = n_samples(cells[0].train_rows, cells[0].n_classes, negatives)
    ours = {
        "initial maps": (settings.n_maps, "n_maps"),
        "θ ≠ 0": (round(collection.mean(name, form.name, "n_maps")), "n_kept"),
        "negatives per positive": (negatives, "negatives_per_positive"),
        "samples": (n_pairs, "n_pairs"),
        "Steps 0 and 1, s": (
            collection.median(name, form.name, "step_1_seconds"),
            "step_1_seconds",
        ),
        "total, s": (collection.median(name, form.name, "fit_seconds"), "total_seconds"),
    }
    row: Row = {"data set": problem.title, "system": form.label}
    for key, (own, theirs) in ours.items():
        row[key] = beside(own, getattr(printed, theirs, None))
    gaps = [cell.step_1_gap for cell in cells if cell.step_1_gap is not None]
    shrinkages = [cell.theta_shrinkage for cell in cells if cell.theta_shrinkage is not None]
    row["gap of Step 1"] = f"{max(gaps):.1e}" if gaps else NOTHING
    row["shrinkage of θ"] = number(statistics.fmean(shrinkages)) if shrinkages else NOTHING
    return row


def n_samples(n_rows: int, n_classes: int, negatives_per_positive: int) -> int:
    """Return how many samples Step 1 learns from.

    Examples
    --------
    >>> n_samples(1020, 17, 10), n_samples(240, 8, 7), n_samples(19600, 2, 1)
    (11220, 1920, 19600)
    """
    if n_classes == 2:
        return n_rows
    return min(n_rows * (1 + min(negatives_per_positive, n_classes - 1)), _MAX_PAIRS)

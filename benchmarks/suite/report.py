"""Tables and notes of the suite: summary, time, and every data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common import markdown_table, record, say
from benchmarks.suite import plots, ranking
from benchmarks.suite.collection import (
    Collection,
    fit_seconds_of,
    measure_of,
    megabytes_of,
    predict_microseconds_of,
)
from benchmarks.suite.methods import REFERENCE
from benchmarks.suite.protocol import ALL_ROWS, Protocol
from benchmarks.suite.tasks import Task

LEVEL = 0.05
_HALVES = ("development", "confirmation")


def write(
    task: Task, collection: Collection, protocol: Protocol, command: str, print_only: bool = False
) -> None:
    """Print the report, and write it to RESULTS.md.

    Parameters
    ----------
    task : Task
    collection : Collection
    protocol : Protocol
    command : str
        Command that repeats the measurement.
    print_only : bool
        Do not change RESULTS.md.
    """
    if not collection.names:
        say("nothing is measured yet, so there is no report")
        return
    ending = "_all_rows" if protocol == ALL_ROWS else ""
    heading = ", all rows" if protocol == ALL_ROWS else ""
    names = collection.complete
    if names and collection.methods:
        record(
            f"{task.section}{ending}",
            command,
            summary(task, collection, names),
            [
                *_summary_notes(task, collection, names),
                *_protocol_notes(task, protocol),
                *task.notes,
            ],
            _difference_plot(task, collection, names),
            title=f"{task.title} over {len(names)} data sets{heading}",
            quick=print_only,
        )
        record(
            f"{task.section}_time{ending}",
            command,
            time_table(task, collection, names),
            _time_notes(task, collection),
            _time_plot(task, collection, names),
            title=f"Time and size for {task.name} over {len(names)} data sets{heading}",
            quick=print_only,
        )
    else:
        say("no data set has results of every method, so there is no summary")
    record(
        f"{task.section}_sets{ending}",
        command,
        sets_table(task, collection),
        _sets_notes(task, collection),
        title=f"{task.title} on each data set{heading}",
        quick=print_only,
    )


# ---------------------------------------------------------------- summary


def summary(task: Task, collection: Collection, names: Sequence[str]) -> str:
    """Return tables of all data sets, of each half, and of methods without a search."""
    halves = {half: [name for name in names if task.sets.half(name) == half] for half in _HALVES}
    sizes = " and ".join(f"{len(members)} {half} sets" for half, members in halves.items())
    untuned = [method for method in collection.methods if method not in task.tuned]
    parts = [
        _overall_table(task, collection, names),
        f"The same by halves, {sizes}. The defaults of mbkl were chosen on the development "
        "sets; the confirmation sets took no part in that.",
        _halves_table(task, collection, names, halves),
    ]
    if 1 < len(untuned) < len(collection.methods):
        parts += [
            "Among methods that search no parameters:",
            _halves_table(task, replace(collection, methods=untuned), names, halves),
        ]
    return "\n\n".join(parts)


def _overall_table(task: Task, collection: Collection, names: Sequence[str]) -> str:
    measures = {name: collection.matrix(names, measure_of(name)) for name in task.measures}
    n_wins = ranking.wins(measures[task.measure])
    mean_ranks = _mean_ranks(task, collection, names)
    return markdown_table(
        {
            "method": collection.methods[position],
            "mean rank": f"{mean_ranks[position]:.2f}",
            **{
                f"mean {name}": task.written(values[:, position].mean(), name)
                for name, values in measures.items()
            },
            "wins": int(n_wins[position]),
        }
        for position in np.argsort(mean_ranks, kind="stable")
    )


def _halves_table(
    task: Task, collection: Collection, names: Sequence[str], halves: dict[str, list[str]]
) -> str:
    columns: dict[str, list[str]] = {}
    for half, members in halves.items():
        mean = rank = ["-"] * len(collection.methods)
        if members:
            means = collection.matrix(members, measure_of(task.measure)).mean(axis=0)
            mean = [task.written(value) for value in means]
            rank = [f"{value:.2f}" for value in _mean_ranks(task, collection, members)]
        columns |= {f"{half}, mean {task.measure}": mean, f"{half}, mean rank": rank}
    return markdown_table(
        {
            "method": collection.methods[position],
            **{heading: values[position] for heading, values in columns.items()},
        }
        for position in np.argsort(_mean_ranks(task, collection, names), kind="stable")
    )


def _mean_ranks(task: Task, collection: Collection, names: Sequence[str]) -> np.ndarray:
    return ranking.ranks(collection.matrix(names, measure_of(task.measure))).mean(axis=0)


def _can_test(collection: Collection, names: Sequence[str]) -> bool:
    """Say whether there are enough methods and data sets for Friedman's test."""
    return len(collection.methods) >= 3 and len(names) >= 2


def _summary_notes(task: Task, collection: Collection, names: Sequence[str]) -> list[str]:
    notes = [
        f"{_unit(task)}eans over folds, then over data sets. A win is the best {task.measure} on a "
        "set, shared ones count for all.",
    ]
    if _can_test(collection, names):
        statistic, p_value = ranking.friedman(collection.matrix(names, measure_of(task.measure)))
        difference = ranking.critical_difference(len(collection.methods), len(names), LEVEL)
        notes.append(
            f"Friedman test of equal {task.measure}: statistic {statistic:.1f}, p = {p_value:.2g}. "
            f"Bars join methods whose mean ranks differ by less than {difference:.2f} (Nemenyi, "
            f"level {LEVEL})."
        )
    left_out = [name for name in collection.names if name not in names]
    if left_out:
        notes.append(
            f"Left out, because a method has no result there: {', '.join(left_out)}. The table "
            "of all data sets shows which."
        )
        notes += _notes_on_all_sets(task, collection)
    if collection.others:
        left = ", ".join(collection.others)
        notes.append(f"Methods not measured yet, or on few data sets: {left}.")
    return [*notes, *_failure_notes(collection), *_version_notes(collection)]


def _notes_on_all_sets(task: Task, collection: Collection) -> list[str]:
    """Return a note on the methods with results on all data sets: ranks and measures."""
    everywhere = [
        method
        for method in collection.methods
        if all((name, method) in collection.results for name in collection.names)
    ]
    if len(everywhere) < 2:
        return []
    part = replace(collection, methods=everywhere)
    means = part.matrix(part.names, measure_of(task.measure)).mean(axis=0)
    mean_ranks = _mean_ranks(task, part, part.names)
    figures = "; ".join(
        f"{everywhere[position]} {mean_ranks[position]:.2f}, {task.written(means[position])}"
        for position in np.argsort(mean_ranks, kind="stable")
    )
    missing = ", ".join(method for method in collection.methods if method not in everywhere)
    sets = f"on all {len(part.names)} sets, without {missing}"
    return [f"Mean rank and {task.measure} {sets}: {figures}."]


def _failure_notes(collection: Collection) -> list[str]:
    """Return a note for each method that failed, with its message."""
    names: dict[tuple[str, str], list[str]] = {}
    for (name, method), message in collection.failures.items():
        names.setdefault((method, message), []).append(name)
    return [
        f"{method} failed on {', '.join(where)}: {message}"
        for (method, message), where in names.items()
    ]


def _version_notes(collection: Collection) -> list[str]:
    """Return a note if the results come from several versions of the libraries."""
    versions = {result.versions for folds in collection.results.values() for result in folds}
    if len(versions) < 2:
        return []
    return [f"Results come from several versions: {'; '.join(sorted(versions))}."]


def _unit(task: Task) -> str:
    return "Per cent; m" if task.in_per_cent else "M"


def _protocol_notes(task: Task, protocol: Protocol) -> list[str]:
    kind, of_classes = "", ""
    if task.sets.has_classes:
        kind = "stratified "
        of_classes = (
            f", by class; {protocol.rows_per_class} training rows of each class are kept, where "
            "there are as many"
        )
    limits = "All rows are used."
    if protocol.train_rows is not None:
        limits = (
            f"At most {protocol.train_rows:,} training and {protocol.test_rows:,} test rows, "
            f"drawn at random{of_classes}."
        )
    otherwise = f"{kind}{protocol.n_folds}-fold cross-validation"
    if protocol.n_folds == 1:
        otherwise = "a quarter of the rows for testing"
    return [f"The official split where there is one, otherwise {otherwise}. {limits}"]


def _difference_plot(task: Task, collection: Collection, names: Sequence[str]) -> Figure | None:
    if not _can_test(collection, names):
        return None
    difference = ranking.critical_difference(len(collection.methods), len(names), LEVEL)
    mean_ranks = dict(zip(collection.methods, _mean_ranks(task, collection, names).tolist()))
    return plots.critical_difference(mean_ranks, difference, len(names), task)


# ---------------------------------------------------------------- time and size


def time_table(task: Task, collection: Collection, names: Sequence[str]) -> str:
    """Return times and sizes, fastest first."""
    means = collection.matrix(names, measure_of(task.measure)).mean(axis=0)
    scores = dict(zip(collection.methods, means))
    has_reference = REFERENCE in collection.methods
    rows = []
    for method, seconds in sorted(
        _fit_medians(collection, names).items(), key=lambda item: item[1]
    ):
        ratio: float | str = "-"
        if has_reference:
            ratio = collection.median_ratio(names, method, REFERENCE, fit_seconds_of)
        rows.append(
            {
                "method": method,
                "fit, s": seconds,
                f"fit, times {REFERENCE}": ratio,
                "predict, µs a row": collection.median(names, method, predict_microseconds_of),
                "model, MB": collection.median(names, method, megabytes_of),
                f"mean {task.measure}": task.written(scores[method]),
            }
        )
    return markdown_table(rows)


def _fit_medians(collection: Collection, names: Sequence[str]) -> dict[str, float]:
    return {
        method: collection.median(names, method, fit_seconds_of) for method in collection.methods
    }


def _time_notes(task: Task, collection: Collection) -> list[str]:
    return [
        "Medians over data sets of medians over folds. Fitting includes the choice of "
        f"parameters; its ratio to {REFERENCE} is taken on each fold.",
        "Each measurement follows a fit to a few rows, so that imports, compilation and the start "
        "of processes are in none. All cores, one method at a time.",
        "Size is that of the pickled model, with its preprocessing, without the record of a "
        f"search. The picture shows mean {task.measure} against median time.",
        "Results are kept from run to run; machine and load above are those of the last run.",
        *_version_notes(collection),
    ]


def _time_plot(task: Task, collection: Collection, names: Sequence[str]) -> Figure:
    means = collection.matrix(names, measure_of(task.measure)).mean(axis=0).tolist()
    points = {
        method: (seconds, mean)
        for (method, seconds), mean in zip(_fit_medians(collection, names).items(), means)
    }
    return plots.score_against_time(points, len(names), task)


# ---------------------------------------------------------------- every data set


def sets_table(task: Task, collection: Collection) -> str:
    """Return the first measure of every method on every data set, the best in bold."""
    failing = {method for _, method in collection.failures}
    methods = [
        *collection.methods,
        *(method for method in collection.others if method in failing),
    ]
    rows: list[dict[str, object]] = []
    for name in collection.names:
        means = {
            method: collection.mean(name, method, measure_of(task.measure))
            for method in methods
            if (name, method) in collection.results
        }
        cells = {method: _cell(task, collection, name, method, means) for method in methods}
        sizes = _sizes(task, collection, name)
        rows.append({"data set": name, "half": task.sets.half(name), **sizes, **cells})
    return markdown_table(rows)


def _sizes(task: Task, collection: Collection, name: str) -> dict[str, int | str]:
    of_y = "classes" if task.sets.has_classes else "different targets"
    for (data_set, _), folds in collection.results.items():
        if data_set == name:
            return {
                "rows": folds[0].train_rows,
                "features": folds[0].n_features,
                of_y: folds[0].n_classes,
                "folds": len(folds),
            }
    return dict.fromkeys(("rows", "features", of_y, "folds"), "-")


def _cell(
    task: Task, collection: Collection, name: str, method: str, means: dict[str, float]
) -> str:
    if (name, method) in collection.failures:
        return "failed"
    if method not in means:
        return "-"
    text = task.written(means[method])
    return f"**{text}**" if means[method] == max(means.values()) else text


def _sets_notes(task: Task, collection: Collection) -> list[str]:
    return [
        f"{_unit(task)}ean over folds; the best in bold, - where folds are not measured. Rows are "
        "those of training in the first fold.",
        *_failure_notes(collection),
    ]

"""Tables and notes of the suite: summary, time, and every data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common import markdown_table, percent, record, say
from benchmarks.suite import plots, ranking
from benchmarks.suite.collection import (
    Collection,
    accuracy_of,
    balanced_accuracy_of,
    fit_seconds_of,
    megabytes_of,
    predict_microseconds_of,
)
from benchmarks.suite.datasets import DEVELOPMENT
from benchmarks.suite.methods import NOTES, REFERENCE
from benchmarks.suite.protocol import ALL_ROWS, Protocol

LEVEL = 0.05
_HALVES = ("development", "confirmation")


def write(
    collection: Collection, protocol: Protocol, command: str, print_only: bool = False
) -> None:
    """Print the report, and put it in RESULTS.md.

    Parameters
    ----------
    collection : Collection
    protocol : Protocol
    command : str
        What repeats the measurement.
    print_only : bool
        Leave RESULTS.md as it is.
    """
    if not collection.names:
        say("nothing is measured yet, so there is no report")
        return
    ending = "_all_rows" if protocol == ALL_ROWS else ""
    heading = ", all rows" if protocol == ALL_ROWS else ""
    names = collection.complete
    if names and collection.methods:
        record(
            f"suite{ending}",
            command,
            summary(collection, names),
            [*_summary_notes(collection, names), *_protocol_notes(protocol), *NOTES],
            _difference_plot(collection, names),
            title=f"Accuracy over {len(names)} data sets{heading}",
            quick=print_only,
        )
        record(
            f"suite_time{ending}",
            command,
            time_table(collection, names),
            _time_notes(collection),
            _time_plot(collection, names),
            title=f"Time and size over {len(names)} data sets{heading}",
            quick=print_only,
        )
    else:
        say("no data set has results of every method, so there is no summary")
    record(
        f"suite_sets{ending}",
        command,
        sets_table(collection),
        _sets_notes(collection),
        title=f"Accuracy on each data set{heading}",
        quick=print_only,
    )


# ---------------------------------------------------------------- summary


def summary(collection: Collection, names: Sequence[str]) -> str:
    """Return two tables: over all data sets, and over each half of them."""
    halves = {half: [name for name in names if _half(name) == half] for half in _HALVES}
    sizes = " and ".join(f"{len(members)} {half} sets" for half, members in halves.items())
    return "\n\n".join(
        [
            _overall_table(collection, names),
            f"The same by halves, {sizes}. The defaults of mbkl were chosen on the development "
            "sets; the confirmation sets took no part in that.",
            _halves_table(collection, names, halves),
        ]
    )


def _half(name: str) -> str:
    return "development" if name in DEVELOPMENT else "confirmation"


def _overall_table(collection: Collection, names: Sequence[str]) -> str:
    accuracy = collection.matrix(names, accuracy_of)
    balanced = collection.matrix(names, balanced_accuracy_of).mean(axis=0)
    n_wins = ranking.wins(accuracy)
    mean_ranks = _mean_ranks(collection, names)
    return markdown_table(
        {
            "classifier": collection.methods[position],
            "mean rank": f"{mean_ranks[position]:.2f}",
            "mean accuracy": percent(accuracy[:, position].mean()),
            "mean balanced accuracy": percent(balanced[position]),
            "mean log loss": _mean_log_loss(collection, names, collection.methods[position]),
            "wins": int(n_wins[position]),
        }
        for position in np.argsort(mean_ranks, kind="stable")
    )


def _mean_log_loss(collection: Collection, names: Sequence[str], method: str) -> str:
    """Return the mean over folds and sets, or a dash where some were not measured."""
    means = [[one.log_loss for one in collection.results[name, method]] for name in names]
    if any(loss is None for losses in means for loss in losses):
        return "-"
    return f"{np.mean([np.mean(losses) for losses in means]):.3f}"


def _halves_table(
    collection: Collection, names: Sequence[str], halves: dict[str, list[str]]
) -> str:
    columns: dict[str, list[str]] = {}
    for half, members in halves.items():
        accuracy = rank = ["-"] * len(collection.methods)
        if members:
            means = collection.matrix(members, accuracy_of).mean(axis=0)
            accuracy = [percent(value) for value in means]
            rank = [f"{value:.2f}" for value in _mean_ranks(collection, members)]
        columns |= {f"{half}, mean accuracy": accuracy, f"{half}, mean rank": rank}
    return markdown_table(
        {
            "classifier": collection.methods[position],
            **{heading: values[position] for heading, values in columns.items()},
        }
        for position in np.argsort(_mean_ranks(collection, names), kind="stable")
    )


def _mean_ranks(collection: Collection, names: Sequence[str]) -> np.ndarray:
    return ranking.ranks(collection.matrix(names, accuracy_of)).mean(axis=0)


def _can_test(collection: Collection, names: Sequence[str]) -> bool:
    """Say whether there are enough methods and data sets for Friedman's test."""
    return len(collection.methods) >= 3 and len(names) >= 2


def _summary_notes(collection: Collection, names: Sequence[str]) -> list[str]:
    notes = [
        "Per cent; means over folds, then over data sets. A win is the best accuracy on a set, "
        "shared ones count for all.",
    ]
    if _can_test(collection, names):
        statistic, p_value = ranking.friedman(collection.matrix(names, accuracy_of))
        difference = ranking.critical_difference(len(collection.methods), len(names), LEVEL)
        notes.append(
            f"Friedman test of equal accuracy: statistic {statistic:.1f}, p = {p_value:.2g}. "
            f"Bars join methods whose mean ranks differ by less than {difference:.2f} (Nemenyi, "
            f"level {LEVEL})."
        )
    left_out = [name for name in collection.names if name not in names]
    if left_out:
        notes.append(
            f"Left out, because a method has no result there: {', '.join(left_out)}. The table "
            "of all data sets shows which."
        )
        notes += _notes_on_all_sets(collection)
    if collection.others:
        left = ", ".join(collection.others)
        notes.append(f"Methods not measured yet, or on few data sets: {left}.")
    return [*notes, *_failure_notes(collection), *_version_notes(collection)]


def _notes_on_all_sets(collection: Collection) -> list[str]:
    """Return ranks and accuracies over all data sets, of the methods that have them all."""
    everywhere = [
        method
        for method in collection.methods
        if all((name, method) in collection.results for name in collection.names)
    ]
    if len(everywhere) < 2:
        return []
    part = replace(collection, methods=everywhere)
    accuracy = part.matrix(part.names, accuracy_of).mean(axis=0)
    mean_ranks = _mean_ranks(part, part.names)
    figures = "; ".join(
        f"{everywhere[position]} {mean_ranks[position]:.2f}, {percent(accuracy[position])}"
        for position in np.argsort(mean_ranks, kind="stable")
    )
    missing = ", ".join(method for method in collection.methods if method not in everywhere)
    return [f"Mean rank and accuracy on all {len(part.names)} sets, without {missing}: {figures}."]


def _failure_notes(collection: Collection) -> list[str]:
    """Return a sentence for each method and message."""
    names: dict[tuple[str, str], list[str]] = {}
    for (name, method), message in collection.failures.items():
        names.setdefault((method, message), []).append(name)
    return [
        f"{method} failed on {', '.join(where)}: {message}"
        for (method, message), where in names.items()
    ]


def _version_notes(collection: Collection) -> list[str]:
    """Return a warning where the results come from several versions of the libraries."""
    found = {result.versions for folds in collection.results.values() for result in folds}
    if len(found) < 2:
        return []
    return [f"Results come from several versions: {'; '.join(sorted(found))}."]


def _protocol_notes(protocol: Protocol) -> list[str]:
    limits = "All rows are used."
    if protocol.train_rows is not None:
        limits = (
            f"At most {protocol.train_rows:,} training and {protocol.test_rows:,} test rows, drawn "
            f"by class; {protocol.rows_per_class} training rows of each class are kept, where "
            "there are as many."
        )
    return [
        "The official split where there is one, otherwise stratified "
        f"{protocol.n_folds}-fold cross-validation. {limits}"
    ]


def _difference_plot(collection: Collection, names: Sequence[str]) -> Figure | None:
    if not _can_test(collection, names):
        return None
    difference = ranking.critical_difference(len(collection.methods), len(names), LEVEL)
    mean_ranks = dict(zip(collection.methods, _mean_ranks(collection, names).tolist()))
    return plots.critical_difference(mean_ranks, difference, len(names))


# ---------------------------------------------------------------- time and size


def time_table(collection: Collection, names: Sequence[str]) -> str:
    """Return times and sizes, fastest first."""
    accuracy = dict(zip(collection.methods, collection.matrix(names, accuracy_of).mean(axis=0)))
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
                "classifier": method,
                "fit, s": seconds,
                f"fit, times {REFERENCE}": ratio,
                "predict, µs a row": collection.median(names, method, predict_microseconds_of),
                "model, MB": collection.median(names, method, megabytes_of),
                "mean accuracy": percent(accuracy[method]),
            }
        )
    return markdown_table(rows)


def _fit_medians(collection: Collection, names: Sequence[str]) -> dict[str, float]:
    return {
        method: collection.median(names, method, fit_seconds_of) for method in collection.methods
    }


def _time_notes(collection: Collection) -> list[str]:
    return [
        "Medians over data sets of medians over folds. Fitting includes the choice of "
        f"parameters; its ratio to {REFERENCE} is taken on each fold.",
        "Each measurement follows a fit to a few rows, so that imports, compilation and the start "
        "of processes are in none. All cores, one method at a time; waiting threads of OpenMP "
        "sleep (OMP_WAIT_POLICY=passive).",
        "Size is that of the pickled model, with its preprocessing, without the record of a "
        "search. The picture shows mean accuracy against median time.",
        "Results are kept from run to run; machine and load above are those of the last run.",
        *_version_notes(collection),
    ]


def _time_plot(collection: Collection, names: Sequence[str]) -> Figure:
    accuracy = collection.matrix(names, accuracy_of).mean(axis=0).tolist()
    points = {
        method: (seconds, mean)
        for (method, seconds), mean in zip(_fit_medians(collection, names).items(), accuracy)
    }
    return plots.accuracy_against_time(points, len(names))


# ---------------------------------------------------------------- every data set


def sets_table(collection: Collection) -> str:
    """Return the accuracy of every method on every data set, the best in bold."""
    failing = {method for _, method in collection.failures}
    methods = [
        *collection.methods,
        *(method for method in collection.others if method in failing),
    ]
    rows: list[dict[str, object]] = []
    for name in collection.names:
        means = {
            method: collection.mean(name, method, accuracy_of)
            for method in methods
            if (name, method) in collection.results
        }
        cells = {method: _cell(collection, name, method, means) for method in methods}
        rows.append({"data set": name, "half": _half(name), **_sizes(collection, name), **cells})
    return markdown_table(rows)


def _sizes(collection: Collection, name: str) -> dict[str, int | str]:
    for (data_set, _), folds in collection.results.items():
        if data_set == name:
            return {
                "rows": folds[0].train_rows,
                "features": folds[0].n_features,
                "classes": folds[0].n_classes,
                "folds": len(folds),
            }
    return dict.fromkeys(("rows", "features", "classes", "folds"), "-")


def _cell(collection: Collection, name: str, method: str, means: dict[str, float]) -> str:
    if (name, method) in collection.failures:
        return "failed"
    if method not in means:
        return "-"
    text = percent(means[method])
    return f"**{text}**" if means[method] == max(means.values()) else text


def _sets_notes(collection: Collection) -> list[str]:
    return [
        "Per cent, mean over folds; the best in bold, - where folds are not measured. Rows are "
        "those of training in the first fold.",
        *_failure_notes(collection),
    ]

"""What was not reached, by how much, and what was tried: computed from the cells."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations

from mbkl_paper.experiments.collection import Collection
from mbkl_paper.experiments.common import number
from mbkl_paper.experiments.printed import ACCURACY, ORDERINGS, TARGETS
from mbkl_paper.experiments.systems import (
    DEFAULT,
    MBKL,
    ONES,
    PAPER,
    PUBLISHED,
    SYSTEMS,
    VARIANTS,
    System,
)
from mbkl_paper.experiments.tables import NOTHING, Row, accuracy_text


def targets(collection: Collection) -> list[Row]:
    """Return how far the forms of MBKL are from the target of each set."""
    return [
        _target_row(collection, name, form)
        for name in collection.problems
        if name in TARGETS
        for form in (MBKL, PUBLISHED, ONES, DEFAULT)
        if collection.has(name, form.name)
    ]


def _target_row(collection: Collection, name: str, form: System) -> Row:
    target, ours = TARGETS[name], 100 * collection.mean(name, form.name)
    rivals = {
        100 * collection.mean(name, system): SYSTEMS[system].label
        for system in PAPER
        if system != MBKL.name and collection.has(name, system)
    }
    best = max(rivals, default=float("-inf"))
    reached = (ours >= target.accuracy, best - ours <= target.behind)
    return {
        "data set": collection.problems[name].title,
        "system": form.label,
        "accuracy": f"{ours:.1f}",
        "standard error": _standard_error(collection.values(name, form.name)),
        "target": f"{target.accuracy}",
        "below target": NOTHING if reached[0] else f"{target.accuracy - ours:.1f}",
        "best rival": f"{rivals[best]}, {best:.1f}" if rivals else NOTHING,
        "behind it (allowed)": f"{max(best - ours, 0):.1f} ({target.behind})",
        "reached": " and ".join(
            part for part, is_so in zip(("accuracy", "distance"), reached) if is_so
        )
        or "neither",
    }


def _standard_error(values: list[float]) -> str:
    if len(values) < 2:
        return NOTHING
    return f"{100 * statistics.stdev(values) / len(values) ** 0.5:.1f}"


def orderings(collection: Collection) -> list[Row]:
    """Return how many pairs of systems stand in the printed order, where the data are others."""
    rows: list[Row] = []
    for name in collection.problems:
        known = [one for one in PAPER if (name, one) in ACCURACY and collection.has(name, one)]
        pairs = [
            (one, other)
            for one, other in combinations(known, 2)
            if ACCURACY[name, one] != ACCURACY[name, other]
        ]
        if name in ORDERINGS and pairs:
            with_mbkl = [pair for pair in pairs if MBKL.name in pair]
            rows.append(
                {
                    "data set": collection.problems[name].title,
                    "pairs in the printed order": _share(collection, name, pairs),
                    "of these, with MBKL": _share(collection, name, with_mbkl),
                }
            )
    return rows


def _share(collection: Collection, name: str, pairs: Sequence[tuple[str, str]]) -> str:
    n_alike = sum(
        (ACCURACY[name, one] > ACCURACY[name, other])
        == (collection.mean(name, one) > collection.mean(name, other))
        for one, other in pairs
    )
    return f"{n_alike} of {len(pairs)}"


def descriptors(collection: Collection) -> list[Row]:
    """Return what a linear SVM makes of each descriptor of the Daimler images."""
    printed = ACCURACY["daimler", "linear"]
    return [
        {
            "descriptor": problem.title,
            "numbers an image": number(collection.cells[name, "linear"][0].n_features),
            "Linear SVM": f"{accuracy_text(collection, name, 'linear')} ({printed})",
        }
        for name, problem in collection.problems.items()
        if name.startswith("daimler") and collection.has(name, "linear")
    ]


def tried(collection: Collection) -> list[Row]:
    """Return forms of MBKL: accuracy in the choice on training rows, on test rows, and maps."""
    rows: list[Row] = []
    for name, problem in collection.problems.items():
        forms = [MBKL, ONES, *(VARIANTS[label] for label in problem.settings.variants)]
        measured = [form for form in forms if collection.is_complete(name, form.name)]
        if not problem.settings.variants or len(measured) < 2:
            continue
        rows += [_tried_row(collection, name, form) for form in measured]
        # In every split the form that its training rows prefer.
        splits = zip(*(collection.cells[name, form.name] for form in measured))
        chosen = [max(cells, key=lambda cell: cell.choice_accuracy or 0.0) for cells in splits]
        accuracy = f"{100 * statistics.fmean(cell.accuracy for cell in chosen):.1f}"
        best = {"form": "the best choice of each split", "choice": NOTHING, "test": accuracy}
        rows.append({"data set": problem.title, **best, "maps kept": NOTHING})
    return rows


def _tried_row(collection: Collection, name: str, form: System) -> Row:
    return {
        "data set": collection.problems[name].title,
        "form": form.label,
        "choice": f"{100 * collection.mean(name, form.name, 'choice_accuracy'):.1f}",
        "test": accuracy_text(collection, name, form.name),
        "maps kept": round(collection.mean(name, form.name, "n_maps")),
    }

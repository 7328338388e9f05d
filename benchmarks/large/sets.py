"""The data sets of more than 10,000 rows at full size, beside boosting and forests.

All contestants learn from the same rows with their defaults, in one process. Official splits
where there are some, a quarter of the rows for testing elsewhere.

    python -m benchmarks.large.sets
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import markdown_table, percent, record, say, start
from benchmarks.data import Dataset, gaussian_dataset, has_data
from benchmarks.large.contest import CONTESTANTS, OURS, REFERENCE, Outcome, compete
from benchmarks.suite.datasets import CLASSES, Sets

COMMAND = "python -m benchmarks.large.sets"
FEWEST_ROWS = 10_000
# Sets whose test rows were looked at while growth and its defaults were designed: their figures
# are optimistic. The others are the fair ones.
LOOKED_AT = ("adult", "covtype-15k", "electricity", "flights-1m", "magic")


def split(name: str, sets: Sets = CLASSES) -> Dataset | None:
    """Return all rows of a set, None where they are few."""
    table = sets.load(name)
    if len(table.y) <= FEWEST_ROWS:
        return None
    train, test = table.split or train_test_split(
        np.arange(len(table.y)), test_size=0.25, random_state=0, stratify=table.strata
    )
    return Dataset(name, table.X[train], table.y[train], table.X[test], table.y[test])


def line_of(data: Dataset, outcomes: dict[str, Outcome]) -> dict:
    """Return what to print of one set."""
    ours = outcomes[OURS]
    rivals = {name: each for name, each in outcomes.items() if name != OURS}
    best = max(rivals, key=lambda name: rivals[name].accuracy)
    calmest = min(rivals, key=lambda name: rivals[name].log_loss)
    line: dict = {
        "set": data.name + (" (looked at)" if data.name in LOOKED_AT else ""),
        "rows": len(data.y_train),
        "mbkl": percent(ours.accuracy),
        "best rival": f"{percent(rivals[best].accuracy)} {best}",
        "log loss": f"{ours.log_loss:.4f}",
        "best rival's": f"{rivals[calmest].log_loss:.4f} {calmest}",
        "fit, s": ours.seconds,
    }
    if REFERENCE in rivals:
        line["LightGBM"] = percent(rivals[REFERENCE].accuracy)
        line["time of LightGBM's"] = ours.seconds / rivals[REFERENCE].seconds
    return line


def means(found: dict[str, dict[str, Outcome]]) -> list[dict]:
    """Return means over the sets that all contestants of a line have."""
    lines = []
    for name in CONTESTANTS:
        own = [outcomes[name] for outcomes in found.values() if name in outcomes]
        if len(own) == len(found):
            lines.append(
                {
                    "contestant": name,
                    "mean accuracy": percent(float(np.mean([each.accuracy for each in own]))),
                    "mean log loss": f"{np.mean([each.log_loss for each in own]):.4f}",
                    "median fit, s": float(np.median([each.seconds for each in own])),
                }
            )
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="printed, not recorded")
    parser.add_argument("--methods", nargs="+", metavar="NAME", choices=list(CONTESTANTS))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, nothing recorded")
    chosen = parser.parse_args(arguments)
    methods = chosen.methods or list(CONTESTANTS)
    if chosen.quick:
        methods = [OURS, "HistGradientBoosting"]
        found = {"quick": _outcomes(gaussian_dataset(400, 5), methods)}
        print(markdown_table(means(found)))
        return
    if not has_data():
        say("MBKL_DATA does not name the folder of the data sets: nothing to measure")
        return
    lines, found = [], {}
    for name in chosen.sets or CLASSES.names():
        data = split(name)
        if data is not None:
            found[name] = _outcomes(data, methods)
            lines.append(line_of(data, found[name]))
    text = f"{markdown_table(lines)}\n\n{markdown_table(means(found))}"
    if chosen.sets or chosen.methods:
        print(text)
        return
    notes = ["Test rows of sets marked so were looked at while growth was designed."]
    record("large_sets", COMMAND, text, notes, title="Sets of more than 10,000 rows at full size")


def _outcomes(data: Dataset, methods: Sequence[str]) -> dict[str, Outcome]:
    found = {}
    for name in methods:
        outcome = compete(name, data)
        if outcome is not None:
            found[name] = outcome
            say(
                f"{data.name}, {name}: {percent(outcome.accuracy)}, log loss "
                f"{outcome.log_loss:.4f}, {outcome.seconds:.1f} s"
            )
    return found


if __name__ == "__main__":
    raise SystemExit(start(main))

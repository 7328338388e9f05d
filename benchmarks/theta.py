"""Learned kernel weights of Step 1 compared with equal weights, on the sets of the suite.

Both learn from the same rows. A set is divided anew for every draw. Sets with few test rows have
more draws, because the accuracy of a single draw varies by points.

    python -m benchmarks.theta --half development
    python -m benchmarks.theta --half confirmation --search
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from benchmarks.common import markdown_table, say, start
from benchmarks.data import Dataset
from benchmarks.suite.datasets import CLASSES, Table
from benchmarks.suite.protocol import draw
from mbkl import MBKLClassifier, MBKLClassifierCV

TRAIN_ROWS, TEST_ROWS, TRAIN_SHARE = 800, 3_000, 0.7
# Smaller classes are left out: they would be missing in some folds.
ROWS_OF_A_CLASS = 10
# Each set has enough draws for this many test rows in total, within these limits.
ALL_TEST_ROWS, DRAWS = 15_000, (5, 20)


def divided(table: Table, seed: int) -> Dataset:
    """Return training and test rows of a draw."""
    y = np.unique(table.y, return_inverse=True)[1]
    enough = np.flatnonzero(np.bincount(y)[y] >= ROWS_OF_A_CLASS)
    limit = TRAIN_ROWS + TEST_ROWS
    some = enough[draw(y[enough], limit, seed, rows_per_class=ROWS_OF_A_CLASS)]
    n_train = min(TRAIN_ROWS, int(TRAIN_SHARE * some.size))
    train, test = train_test_split(some, train_size=n_train, stratify=y[some], random_state=seed)
    return Dataset(table.name, table.X[train], y[train], table.X[test], y[test])


def gains(table: Table, searches: bool, n_draws: int | None = None) -> tuple[NDArray, NDArray]:
    """Return, for each draw, the accuracy of equal weights, and the gain by learned weights."""
    kind = MBKLClassifierCV if searches else MBKLClassifier
    n_test = len(divided(table, 0).y_test)
    n_draws = n_draws or int(np.clip(ALL_TEST_ROWS // n_test, *DRAWS))
    accuracy = np.empty((n_draws, 2))
    for seed in range(n_draws):
        data = divided(table, seed)
        for column, theta in enumerate(("ones", "learned")):
            model = kind(maps="stumps", theta=theta, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # from costs at the end of a grid
                model.fit(data.X_train, data.y_train)
            accuracy[seed, column] = 100 * model.score(data.X_test, data.y_test)
    return accuracy[:, 0], accuracy[:, 1] - accuracy[:, 0]


def line_of(name: str, equal: NDArray, gain: NDArray) -> dict:
    """Return the line of a set in the table."""
    error = gain.std(ddof=1) / gain.size**0.5 if gain.size > 1 else np.nan
    return {
        "set": name,
        "draws": gain.size,
        "equal weights": f"{equal.mean():.2f}",
        "learned": f"{gain.mean():+.2f}",
        "standard error": f"{error:.2f}",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", choices=("development", "confirmation"), default="development")
    parser.add_argument("--search", action="store_true", help="MBKLClassifierCV")
    parser.add_argument("--sets", nargs="+", help="some sets, in place of a half")
    parser.add_argument("--draws", type=int, help="of each set")
    chosen = parser.parse_args(arguments)
    names = chosen.sets or [each for each in CLASSES.names() if CLASSES.half(each) == chosen.half]
    lines, means = [], []
    for name in names:
        equal, gain = gains(CLASSES.load(name), chosen.search, chosen.draws)
        lines.append(line_of(name, equal, gain))
        means.append(gain.mean())
        say(f"{name}: {gain.mean():+.2f}")
    print(markdown_table(lines))
    print(f"Mean {np.mean(means):+.3f}, worst {min(means):+.2f}, best {max(means):+.2f}.")


if __name__ == "__main__":
    raise SystemExit(start(main))

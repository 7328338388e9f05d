"""Learning curves: planted rows from 2,000 to 2,000,000, compared with LightGBM.

A label is the sign of x0 x1 + sin(3 x2) + x3 / 2 + noise, of twenty features. Both learn from the
same rows in one process; several draws of each size show the spread of the results. A fit to
10,000,000 rows in a separate process shows how much memory a fit takes beyond X.

    python -m benchmarks.large
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import log_loss

from benchmarks.common import (
    MEGABYTE,
    Memory,
    markdown_table,
    n_cores,
    parse,
    peak_memory,
    percent,
    record,
    say,
    start,
)
from benchmarks.data import Dataset
from mbkl import MBKLClassifier

COMMAND = "python -m benchmarks.large"
OURS, REFERENCE = "MBKLClassifier", "LightGBM"
SIZES, QUICK_SIZES = (2_000, 20_000, 200_000, 2_000_000), (500, 2_000)
N_FEATURES, NOISE, TEST_ROWS = 20, 0.8, 100_000
# Draws of each size; fewer of the largest, which takes longest.
DRAWS, DRAWS_OF_THE_LARGEST = 5, 3
MEMORY_ROWS, QUICK_MEMORY_ROWS = 10_000_000, 5_000


@dataclass(frozen=True)
class Outcome:
    """Quality and time of one fit."""

    accuracy: float
    log_loss: float
    seconds: float
    seconds_of_prediction: float


def planted(n_rows: int, seed: int) -> Dataset:
    """Draw training and test rows."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n_rows + TEST_ROWS, N_FEATURES), dtype=np.float32)
    score = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] / 2
    y = (score + NOISE * generator.normal(size=len(X)) > 0).astype(int)
    return Dataset("planted", X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def compete(name: str, data: Dataset) -> Outcome:
    """Fit and test a contestant with its defaults."""
    model = _contestant(name)
    began = time.perf_counter()
    model.fit(data.X_train, data.y_train)
    fitted = time.perf_counter()
    probabilities = model.predict_proba(data.X_test)
    ended = time.perf_counter()
    is_right = model.classes_[probabilities.argmax(axis=1)] == data.y_test
    loss = log_loss(data.y_test, probabilities, labels=model.classes_)
    return Outcome(float(is_right.mean()), loss, fitted - began, ended - fitted)


def _contestant(name: str):
    if name == OURS:
        return MBKLClassifier(random_state=0)
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=n_cores(), random_state=0, verbose=-1)


def measure(sizes: Sequence[int], draws: int) -> list[dict]:
    """Return a line for each size."""
    lines = []
    for n_rows in sizes:
        n_draws = min(draws, DRAWS_OF_THE_LARGEST) if n_rows >= SIZES[-1] else draws
        outcomes: dict[str, list[Outcome]] = {OURS: [], REFERENCE: []}
        for seed in range(n_draws):
            data = planted(n_rows, seed)
            for name in (REFERENCE, OURS):
                outcome = compete(name, data)
                outcomes[name].append(outcome)
                say(f"{n_rows:,} rows, {name}: {percent(outcome.accuracy)} {outcome.seconds:.1f} s")
        ours, theirs = outcomes[OURS], outcomes[REFERENCE]
        accuracies = np.array([each.accuracy for each in ours])
        ratios = [
            (a.seconds / b.seconds, a.seconds_of_prediction / b.seconds_of_prediction)
            for a, b in zip(ours, theirs, strict=True)
        ]
        fit_ratio, predict_ratio = np.median(ratios, axis=0).tolist()
        lines.append(
            {
                "rows": n_rows,
                "mbkl": percent(float(accuracies.mean())),
                "spread of draws": f"{100 * float(np.ptp(accuracies)):.2f}",
                "LightGBM": percent(float(np.mean([each.accuracy for each in theirs]))),
                "log loss": f"{np.mean([each.log_loss for each in ours]):.4f}",
                "of LightGBM": f"{np.mean([each.log_loss for each in theirs]):.4f}",
                "fit, s": float(np.median([each.seconds for each in ours])),
                "of LightGBM, s": float(np.median([each.seconds for each in theirs])),
                "time ratio": fit_ratio,
                "predict ratio": predict_ratio,
            }
        )
    return lines


def _fit_and_test(data: Dataset) -> Outcome:
    return compete(OURS, data)


def memory_line(memory: Memory, n_rows: int) -> dict:
    """Return the line of the fit to very many rows."""
    return {
        "rows": n_rows,
        "accuracy": percent(memory.result.accuracy),
        "log loss": f"{memory.result.log_loss:.4f}",
        "fit, s": memory.result.seconds,
        "X, MB": 4 * n_rows * N_FEATURES / MEGABYTE,
        "memory beyond X and test rows, MB": memory.rise / MEGABYTE,
    }


def picture(lines: list[dict]):
    """Draw accuracy against the number of rows."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5, 3.2), layout="constrained")
    rows = [line["rows"] for line in lines]
    for name, label in (("mbkl", "mbkl, defaults"), ("LightGBM", "LightGBM, defaults")):
        axis.semilogx(rows, [float(line[name].rstrip("% ")) for line in lines], "o-", label=label)
    axis.set(xlabel="training rows", ylabel="test accuracy, %")
    axis.legend(frameon=False)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, draw and record."""
    chosen = parse(__doc__ or "", arguments)
    lines = measure(QUICK_SIZES if chosen.quick else SIZES, 1 if chosen.quick else DRAWS)
    n_rows = QUICK_MEMORY_ROWS if chosen.quick else MEMORY_ROWS
    memory = [memory_line(peak_memory(planted, _fit_and_test, n_rows, 0), n_rows)]
    if chosen.quick:
        print(markdown_table(lines), markdown_table(memory), sep="\n\n")
        return
    note = (
        f"{N_FEATURES} features, of which four matter; {TEST_ROWS:,} test rows; "
        f"{DRAWS} draws of each size, {DRAWS_OF_THE_LARGEST} of the largest; medians of times. "
        "Rows of this kind were looked at while growth was designed."
    )
    title = "Learning curves: planted rows"
    record("large_growth", COMMAND, markdown_table(lines), [note], picture(lines), title=title)
    note = "Rise of the resident memory of a fresh process during fit and test."
    title = "Memory of a fit to 10,000,000 planted rows"
    record("large_memory", COMMAND, markdown_table(memory), [note], title=title)


if __name__ == "__main__":
    raise SystemExit(start(main))

"""Accuracy on Sonar and Liver, compared with the figures of the paper.

Shows 5 times stratified 5-fold cross-validation; a logistic function transforms the
attributes, and every choice is made inside the training folds. One command:

    python -m benchmarks.speed.uci
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC, LinearSVC

from benchmarks.common import PAPER_FORM, markdown_table, parse, record, say, start
from benchmarks.data import MissingData, uci
from mbkl import MBKLClassifierCV

COMMAND = "python -m benchmarks.speed.uci"
# Published accuracy of the method, in per cent.
PAPER = {"sonar": 86.3, "liver": 75.0}
COSTS = [0.01, 0.1, 1, 10, 100, 1000]
GAMMAS = (0.1, 1.0, 10.0)


def methods(quick: bool) -> dict[str, Callable[[NDArray], BaseEstimator]]:
    """Return functions from training rows to an estimator that chooses its own parameters."""
    ours = {"Cs": (0.1, 1), "cv": 2, "n_maps": 200} if quick else {}
    grid = [0.1, 1] if quick else COSTS
    return {
        "mbkl": lambda X: MBKLClassifierCV(random_state=0, **ours),
        "mbkl, stumps, learned": lambda X: MBKLClassifierCV(**PAPER_FORM, random_state=0, **ours),
        "mbkl, stumps, ones": lambda X: MBKLClassifierCV(maps="stumps", random_state=0, **ours),
        "LinearSVC": lambda X: GridSearchCV(
            LinearSVC(dual=False, max_iter=10_000, random_state=0), {"C": grid}, cv=5
        ),
        "SVC, RBF": lambda X: GridSearchCV(SVC(), {"C": grid, "gamma": _gammas(X)}, cv=5),
    }


def _gammas(X: NDArray) -> list[float]:
    """Return widths around scikit-learn's choice for these rows."""
    return [factor / (X.shape[1] * X.var()) for factor in GAMMAS]


def squash(X: NDArray, train: NDArray, test: NDArray) -> tuple[NDArray, NDArray]:
    """Standardise by the training rows, then apply the logistic function."""
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    squashed = expit((X - mean) / np.where(spread > 0, spread, 1.0))
    return squashed[train], squashed[test]


def cross_validate(X, y, make: Callable, n_repeats: int, n_folds: int) -> dict[str, NDArray]:
    """Return accuracy, balanced accuracy and seconds: means of each repetition."""
    results = np.empty((n_repeats, n_folds, 3))
    for repeat in range(n_repeats):
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=repeat)
        for fold, (train, test) in enumerate(folds.split(X, y)):
            X_train, X_test = squash(X, train, test)
            began = time.perf_counter()
            predictions = make(X_train).fit(X_train, y[train]).predict(X_test)
            results[repeat, fold] = (
                100 * accuracy_score(y[test], predictions),
                100 * balanced_accuracy_score(y[test], predictions),
                time.perf_counter() - began,
            )
    means = results.mean(axis=1)
    return {"accuracy": means[:, 0], "balanced": means[:, 1], "seconds": means[:, 2]}


def _with_spread(values: NDArray) -> str:
    return f"{values.mean():.1f} ± {values.std(ddof=1) if values.size > 1 else 0:.1f}"


def _plot(results: dict[tuple[str, str], dict]) -> Figure:
    names = list(dict.fromkeys(name for name, _ in results))
    figure = Figure(figsize=(6.5 * len(names), 4), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names):
        shown = {m: r["accuracy"] for (n, m), r in results.items() if n == name}
        spread = [values.std(ddof=1) if values.size > 1 else 0 for values in shown.values()]
        axes.bar(list(shown), [values.mean() for values in shown.values()], yerr=spread, capsize=4)
        axes.axhline(PAPER[name], color="black", linestyle=":", label="the paper's MBKL")
        axes.set_ylim(50, 100)
        axes.set_ylabel("accuracy (per cent; bars: spread of repetitions)")
        axes.set_title(name.capitalize())
        axes.tick_params(axis="x", labelsize=8)
        axes.legend(fontsize=8)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and record."""
    quick = parse(__doc__, arguments).quick
    # Costs at the ends of the grid may fit nothing or not converge, which is expected.
    warnings.simplefilter("ignore")
    n_repeats, n_folds = (2, 2) if quick else (5, 5)
    results, rows = {}, []
    for name in PAPER:
        try:
            X, y = uci(name)
        except MissingData as missing:
            say(f"skipped: {missing}")
            continue
        for method, make in methods(quick).items():
            result = cross_validate(X, y, make, n_repeats, n_folds)
            say(f"{name}, {method}: {_with_spread(result['accuracy'])}")
            results[name, method] = result
            rows.append(
                {
                    "data": name.capitalize(),
                    "classifier": method,
                    "accuracy": _with_spread(result["accuracy"]),
                    "balanced accuracy": _with_spread(result["balanced"]),
                    "paper's MBKL": f"{PAPER[name]:.1f}",
                    "fit and choice, s": float(np.median(result["seconds"])),
                }
            )
    if not rows:
        raise MissingData("both sonar.npz and liver.npz are missing.")
    notes = [
        f"{n_repeats} times stratified {n_folds}-fold cross-validation, in per cent; the spread "
        "is the standard deviation of the repetitions.",
        "Attributes: logistic function of the standardised value, statistics of the training "
        "fold. Costs (and the width of the RBF kernel) are chosen by 5-fold cross-validation "
        "inside the training folds.",
    ]
    record(
        "uci",
        COMMAND,
        markdown_table(rows),
        notes,
        _plot(results),
        title="Sonar and Liver",
        quick=quick,
    )


if __name__ == "__main__":
    raise SystemExit(start(main))

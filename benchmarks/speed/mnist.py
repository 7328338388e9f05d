"""Ten classes: time of a fit and test accuracy on MNIST, compared with a linear SVM.

Shows 60,000 rows of 784 features with 20,000 maps, for three ways to weight the maps.
One command:

    python -m benchmarks.speed.mnist
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from benchmarks.common import markdown_table, parse, percent, record, say, seconds, start
from benchmarks.data import Dataset, mnist
from mbkl import MBKLClassifier, MBKLClassifierCV

COMMAND = "python -m benchmarks.speed.mnist"
METHODS = ("learned", "ones", "reweighted")
COSTS = (0.01, 0.1, 1, 10, 100)
LINEAR_COSTS = (0.001, 0.01, 0.1, 1)
LARGEST_PIXEL = 255.0


def measure_ours(data: Dataset, part: Dataset, theta: str, n_maps: int, costs) -> dict:
    """Choose the cost on a part of the training rows, fit on all and test."""
    settings = {"maps": "stumps", "theta": theta, "n_maps": n_maps, "random_state": 0}
    search = MBKLClassifierCV(Cs=costs, cv=3, **settings)
    seconds_of_search = seconds(lambda: search.fit(part.X_train, part.y_train))
    costs = f"{search.C_kernel_:g} and {search.C_:g}" if theta == "learned" else f"{search.C_:g}"
    say(f"theta={theta!r}: cost {costs} chosen in {seconds_of_search:.1f} s")
    model = MBKLClassifier(C_kernel=search.C_kernel_, C=search.C_, **settings)
    fit_seconds = seconds(lambda: model.fit(data.X_train, data.y_train))
    stages = ", ".join(f"{name} {value:.2g}" for name, value in model.timings_.items())
    say(f"theta={theta!r}: fitted in {fit_seconds:.1f} s")
    return {
        "classifier": f'mbkl, theta="{theta}"',
        "C": costs,
        "choice of C, s": seconds_of_search,
        "fit, s": fit_seconds,
        "test accuracy": percent(model.score(data.X_test, data.y_test)),
        "maps kept": model.n_maps_,
        "stages, s": stages,
    }


def measure_linear(data: Dataset, part: Dataset, costs) -> dict:
    """Do the same with a linear SVM on pixels between 0 and 1."""
    search = GridSearchCV(LinearSVC(dual=False, random_state=0), {"C": list(costs)}, cv=3)
    X_part, X_train = part.X_train / LARGEST_PIXEL, data.X_train / LARGEST_PIXEL
    seconds_of_search = seconds(lambda: search.fit(X_part, part.y_train))
    # liblinear sums the losses: with more rows the same trade-off needs a smaller cost.
    cost = search.best_params_["C"] * len(part.y_train) / len(data.y_train)
    say(f"LinearSVC: cost {cost:.3g} chosen in {seconds_of_search:.1f} s")
    model = LinearSVC(dual=False, C=cost, random_state=0)
    fit_seconds = seconds(lambda: model.fit(X_train, data.y_train))
    say(f"LinearSVC: fitted in {fit_seconds:.1f} s")
    return {
        "classifier": "LinearSVC",
        "C": f"{cost:.3g}",
        "choice of C, s": seconds_of_search,
        "fit, s": fit_seconds,
        "test accuracy": percent(model.score(data.X_test / LARGEST_PIXEL, data.y_test)),
        "maps kept": "-",
        "stages, s": "-",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and record."""
    quick = parse(__doc__, arguments).quick
    warnings.simplefilter("ignore", ConvergenceWarning)
    data = mnist()
    if quick:
        data = data.first(1_500)
    part = data.first(400 if quick else 6_000)
    n_maps = 1_500 if quick else 20_000
    costs, linear_costs = ((0.01, 0.1), (0.01, 0.1)) if quick else (COSTS, LINEAR_COSTS)
    rows = [measure_ours(data, part, theta, n_maps, costs) for theta in METHODS]
    rows.append(measure_linear(data, part, linear_costs))
    notes = [
        f"{data.name}, {data.shape}, 10 classes, K = {n_maps:,}; {len(data.y_test):,} test rows.",
        f"C chosen by 3-fold cross-validation on {len(part.y_train):,} training rows. LinearSVC "
        "reads pixels between 0 and 1; its C is scaled to the number of rows.",
        "Where two costs are given, the first is that of Step 1 (C_kernel).",
    ]
    record("mnist", COMMAND, markdown_table(rows), notes, title="MNIST, ten classes", quick=quick)


if __name__ == "__main__":
    raise SystemExit(start(main))

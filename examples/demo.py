"""Train on data that ship with scikit-learn, compare with rivals, draw pictures.

Run with `make demo`, or `python examples/demo.py [folder for the pictures]`.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COSTS = (0.01, 0.1, 1, 10, 100)
PAPER = {"maps": "stumps", "theta": "learned", "theta_shrinkage": 0}


def rivals() -> dict:
    """Return the models, one thread each; costs are chosen by 3-fold cross-validation."""
    linear = make_pipeline(StandardScaler(), LinearSVC(dual=False, max_iter=20_000))
    radial = make_pipeline(StandardScaler(), SVC())
    return {
        "MBKL": MBKLClassifierCV(cv=3, random_state=0, n_jobs=1),
        "MBKL, untuned": MBKLClassifier(random_state=0, n_jobs=1),
        "MBKL of the paper": MBKLClassifierCV(Cs=COSTS, cv=3, **PAPER, random_state=0, n_jobs=1),
        "linear SVM": GridSearchCV(linear, {"linearsvc__C": COSTS}, cv=3),
        "RBF SVM": GridSearchCV(radial, {"svc__C": COSTS}, cv=3),
        "random forest": RandomForestClassifier(random_state=0),
        "gradient boosting": HistGradientBoostingClassifier(random_state=0),
    }


def compare(data: dict) -> dict[str, dict[str, tuple[float, float]]]:
    """Return accuracy (%) and seconds per fit of each model on each data set, 3-fold."""
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    results: dict[str, dict[str, tuple[float, float]]] = {}
    for set_name, (X, y) in data.items():
        for name, model in rivals().items():
            began = time.perf_counter()
            scores = [model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds.split(X, y)]
            seconds = (time.perf_counter() - began) / len(scores)
            results.setdefault(name, {})[set_name] = (100 * float(np.mean(scores)), seconds)
            print(f"  {set_name:14s} {name:20s} {100 * np.mean(scores):5.1f} %  {seconds:6.2f} s")
    return results


def draw_comparison(results: dict, folder: Path) -> Path:
    """Draw the accuracies side by side."""
    names = list(results)
    sets = list(results[names[0]])
    figure, axes = plt.subplots(1, len(sets), figsize=(11, 3.2), sharey=True)
    for axis, set_name in zip(axes, sets, strict=True):
        values = [results[name][set_name][0] for name in names]
        colours = ["tab:orange" if name.startswith("MBKL") else "tab:gray" for name in names]
        axis.barh(names, values, color=colours)
        for position, value in enumerate(values):
            axis.text(value - 0.3, position, f"{value:.1f}", va="center", ha="right", color="w")
        axis.set(title=set_name, xlim=(min(values) - 5, 100), xlabel="accuracy, %")
        axis.invert_yaxis()
    figure.tight_layout()
    path = folder / "comparison.png"
    figure.savefig(path, dpi=120)
    return path


def draw_model(folder: Path) -> Path:
    """Draw what a model has learned: its step functions and its kernel."""
    data = load_breast_cancer()
    order = np.argsort(data.target, kind="stable")
    model = MBKLClassifier(**PAPER, random_state=0).fit(data.data, data.target)
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.2))
    spread = [float(np.ptp(table)) for table in model.tables_]
    for axis, group in zip(axes[:2], np.argsort(spread)[::-1], strict=False):
        feature = model.table_features_[group]
        thresholds = model.stump_thresholds_[model.stump_features_ == feature]
        table = model.tables_[group][:, 0]
        edges = np.concatenate([[data.data[:, feature].min()], thresholds])
        axis.step(
            np.append(edges, data.data[:, feature].max()), np.append(table, table[-1]), where="post"
        )
        axis.set(xlabel=data.feature_names[feature], ylabel="adds to the score of 'benign'")
    kernels = {
        "kernel of the paper": MBKernel(**PAPER, random_state=0),
        "kernel, the default": MBKernel(random_state=0),
    }
    for axis, (title, kernel) in zip(axes[2:], kernels.items(), strict=True):
        kernel.fit(data.data, data.target)
        image = axis.imshow(kernel.kernel(data.data[order]), cmap="magma")
        axis.set(title=title, xlabel="samples, sorted by class")
        figure.colorbar(image, ax=axis, shrink=0.8)
    figure.tight_layout()
    path = folder / "model.png"
    figure.savefig(path, dpi=120)
    return path


def main(folder: str = "demo") -> None:
    """Run the comparison and write the pictures."""
    # liblinear warns whenever the largest cost does not converge.
    warnings.filterwarnings("ignore", "Liblinear failed to converge")
    target = Path(folder)
    target.mkdir(exist_ok=True)
    print("Accuracy of 3-fold cross-validation and seconds per fit in one thread, with tuning:")
    loaders = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}
    # OpenMP threads that wait for a busy core slow gradient boosting down up to tenfold.
    with threadpool_limits(1, "openmp"):
        results = compare({name: load(return_X_y=True) for name, load in loaders.items()})
    for path in (draw_comparison(results, target), draw_model(target)):
        print(f"picture: {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""`mbkl compare`: the quality of predictions compared with other methods."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console, Grid, check_picture
from mbkl.cli.measure import Splits
from mbkl.cli.options import DataFile, Folds, Learning, Picture, Reading, TestFile, option

if TYPE_CHECKING:
    from mbkl.tabular import Frame

_OURS = "MBKL"
_COSTS_AND_WIDTHS = {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.01, 0.1]}
# With more rows an RBF SVM takes minutes, and runs only if the user names it.
_MANY_ROWS = 2_000
# Largest number of columns of zeros and ones by which rivals encode a column of text.
_TEXTS = 30


def compare(
    data: DataFile,
    console: Console,
    reading: Reading,
    learning: Learning,
    test: TestFile = None,
    folds: Folds = 5,
    rival: Annotated[
        list[str] | None,
        option(
            "What to compare with: most-frequent, linear-svm (of classes), mean, ridge (of "
            "numbers), rbf-svm, random-forest, gradient-boosting, lightgbm; can be repeated.",
            shown="all that are quick",
            metavar="NAME",
        ),
    ] = None,
    plot: Picture = None,
) -> None:
    """Compare MBKL with other methods: linear ones, RBF SVMs, forests, boosting.

    By cross-validation, or on a test file; all learn from the same rows. Rivals have their
    defaults, but the RBF SVM, which chooses its cost and width by cross-validation; SVMs and
    ridge see scaled features, and means for missing values. Without --jobs all run in one thread:
    threads that wait for each other make boosting up to ten times slower on busy cores.

    mbkl compare people.csv --target income --plot comparison.png

    mbkl compare train.csv -t income --test test.csv --rival rbf-svm
    """
    check_picture(plot, data, test)
    console.step(f"reading {data.name}", 0.1)
    from joblib import effective_n_jobs
    from threadpoolctl import threadpool_limits

    splits = Splits.read(console, reading, data, test, folds, learning.seed)
    frame = splits.frame
    n_jobs = effective_n_jobs(1 if learning.jobs is None else learning.jobs)
    learning = replace(learning, jobs=n_jobs)
    rivals = _rivals(frame, learning.seed, n_jobs)
    contestants = {_OURS: learning.estimator(frame.task)}
    for name in rival or _quick(rivals, frame.n_rows, console):
        if name not in rivals:
            known = ", ".join(rivals)
            raise typer.BadParameter(f"no rival '{name}' for {frame.task}; there are: {known}.")
        contestants[name] = rivals[name]
    # Limits the threads of methods that have no option for them.
    with threadpool_limits(n_jobs):
        by_method = _scores_of_all(contestants, splits, console)
    score, scores = ("r2", "r2s") if frame.task == "regression" else ("accuracy", "accuracies")
    result: dict[str, dict[str, Any]] = {
        name: {
            score: fmean(value for value, _ in folds),
            f"fold_{scores}": [value for value, _ in folds],
            "seconds": fmean(seconds for _, seconds in folds),
        }
        for name, folds in by_method.items()
    }
    ranking = sorted(result, key=lambda name: -result[name][score])
    rows = [[name, result[name][score], f"{result[name]['seconds']:.2f}"] for name in ranking]
    header = ["", "R2" if score == "r2" else score, "seconds a fit"]
    if plot is not None:
        console.picture(_drawn({name: by_method[name] for name in ranking}, header[1:]), plot)
    console.result({"ranking": ranking, "results": result}, Grid(rows, header))


def _scores_of_all(
    contestants: dict[str, Any], splits: Splits, console: Console
) -> dict[str, list[tuple[float, float]]]:
    """Return the score and the seconds of the fit of each method on each split.

    A rival that raises an error on a split is left out.
    """
    from sklearn.base import clone

    by_method: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    n_left = len(contestants) * len(splits)
    for number, (X, y, X_test, y_test) in enumerate(splits, 1):
        for name in list(by_method):
            console.step(f"{name}, {number} of {len(splits)}", 1 / n_left)
            n_left -= 1
            model, began = clone(contestants[name]), time.perf_counter()
            with warnings.catch_warnings():
                if name != _OURS:
                    warnings.simplefilter("ignore")
                try:
                    model.fit(X, y)
                    seconds = time.perf_counter() - began
                    by_method[name].append((float(model.score(X_test, y_test)), seconds))
                except (TypeError, ValueError) as error:
                    if name == _OURS:
                        raise
                    console.note(f"{name} drops out: {' '.join(str(error).split())[:200]}")
                    del by_method[name]
    return by_method


def _drawn(by_method: dict[str, list[tuple[float, float]]], captions: list[str]) -> Any:
    """Draw scores and times: a large dot for the mean, a small one for each fold."""
    from matplotlib.figure import Figure

    from mbkl.plot.style import COLOURS, QUIET, quieten

    figure = Figure(figsize=(9, 0.4 * len(by_method) + 1.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for place, (name, columns) in enumerate(by_method.items()):
        colour = COLOURS[0] if name == _OURS else QUIET
        for axis, folds in zip(axes, zip(*columns, strict=True), strict=True):
            axis.plot(folds, [place] * len(folds), ".", color=colour, alpha=0.5)
            axis.plot(fmean(folds), place, "o", color=colour)
    for axis, caption in zip(axes, captions, strict=True):
        axis.set_xlabel(f"{caption} (small dots: folds)")
        quieten(axis, grid="x")
    axes[0].set_yticks(range(len(by_method)), list(by_method))
    axes[0].invert_yaxis()
    axes[1].set_xscale("log")
    return figure


def _quick(rivals: dict[str, Any], n_rows: int, console: Console) -> list[str]:
    """Return the names of the rivals that do not take minutes."""
    if n_rows <= _MANY_ROWS:
        return list(rivals)
    console.note(
        f"rbf-svm takes long with more than {_MANY_ROWS:,} rows (--rival rbf-svm): left out."
    )
    return [name for name in rivals if name != "rbf-svm"]


def _rivals(frame: Frame, seed: int, n_jobs: int) -> dict[str, Any]:
    """Return classifiers or regressors by name; they encode text as columns of zeros and ones."""
    from sklearn import dummy, ensemble, linear_model, svm
    from sklearn.compose import (
        TransformedTargetRegressor,
        make_column_selector,
        make_column_transformer,
    )
    from sklearn.impute import SimpleImputer
    from sklearn.model_selection import GridSearchCV
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    def scaled(model: Any) -> Any:
        # Centring would make a sparse matrix dense.
        scaler = StandardScaler(with_mean=frame.matrix is None)
        return make_pipeline(SimpleImputer(keep_empty_features=True), scaler, model)

    if frame.task == "regression":
        kind = "Regressor"
        search = GridSearchCV(svm.SVR(), _COSTS_AND_WIDTHS, cv=3)
        rivals = {
            "mean": dummy.DummyRegressor(),
            "ridge": scaled(linear_model.RidgeCV([0.01, 0.1, 1.0, 10.0, 100.0])),
            # The width of the epsilon tube is in the unit of the target, so the target is scaled.
            "rbf-svm": scaled(TransformedTargetRegressor(search, transformer=StandardScaler())),
        }
    else:
        kind = "Classifier"
        rivals = {
            "most-frequent": dummy.DummyClassifier(),
            "linear-svm": scaled(svm.LinearSVC(random_state=seed)),
            "rbf-svm": scaled(GridSearchCV(svm.SVC(), _COSTS_AND_WIDTHS, cv=3)),
        }
    forest = getattr(ensemble, f"RandomForest{kind}")(random_state=seed, n_jobs=n_jobs)
    boosting = getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=seed)
    rivals |= {"random-forest": forest, "gradient-boosting": boosting}
    if find_spec("lightgbm"):
        make = getattr(import_module("lightgbm"), f"LGBM{kind}")
        rivals["lightgbm"] = make(random_state=seed, n_jobs=n_jobs, verbose=-1)
    if len(frame.targets) > 1:
        rivals = {name: MultiOutputRegressor(model) for name, model in rivals.items()}
    if frame.matrix is not None:
        return rivals
    ones = OneHotEncoder(
        max_categories=_TEXTS, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    text = (ones, make_column_selector(dtype_exclude="number"))
    return {
        name: make_pipeline(make_column_transformer(text, remainder="passthrough"), model)
        for name, model in rivals.items()
    }

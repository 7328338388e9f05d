"""`mbkl compare`: MBKL beside other methods, on the user's file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console
from mbkl.cli.files import check_picture, save_figure
from mbkl.cli.options import DataFile, Folds, Learning, Reading, TestFile, option
from mbkl.extras import require

if TYPE_CHECKING:
    from mbkl.cli.outcomes import Outcome
    from mbkl.tabular import Frame

_OURS = "MBKL"
_TREES = ("random-forest", "gradient-boosting", "lightgbm")
_RIVALS = {
    "classification": ("most-frequent", "linear-svm", "rbf-svm", *_TREES),
    "regression": ("mean", "ridge", "rbf-svm", *_TREES),
}
_ALL_RIVALS = tuple(dict.fromkeys(name for names in _RIVALS.values() for name in names))
_COSTS_AND_WIDTHS = {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.01, 0.1]}
# With more rows an RBF kernel takes minutes, and it is tried if asked for only.
_MANY_ROWS = 2_000
# Different texts of a column for which rivals have a column of zeros and ones each.
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
            f"What to compare with: {', '.join(_ALL_RIVALS)}; can be repeated.",
            shown="all that are quick",
            metavar="NAME",
        ),
    ] = None,
    plot: Annotated[Path | None, option("Picture to draw, .png, .svg or .pdf.")] = None,
) -> None:
    """Compare MBKL with other methods: linear ones, RBF SVMs, forests, boosting.

    By cross-validation, or on a test file; all learn from the same rows. Rivals have their
    defaults, but the RBF SVM, which chooses its cost and width by cross-validation; SVMs and
    ridge see scaled features, and means for missing values.

    mbkl compare people.csv --target income --plot comparison.png

    mbkl compare train.csv -t income --test test.csv --rival rbf-svm
    """
    unknown = [name for name in rival or () if name not in _ALL_RIVALS]
    if unknown:
        raise typer.BadParameter(f"no rival '{unknown[0]}'; there are: {', '.join(_ALL_RIVALS)}.")
    if plot is not None:
        check_picture(plot, data, test)
    outcomes = _try_all(console, reading, learning, data, test, folds, rival)
    (ours, *_) = outcomes[_OURS]
    score, fold_scores = ours.score_name, f"fold_{ours.scores_name}"
    result: dict[str, dict[str, Any]] = {
        name: {
            score: fmean(one.score for one in all_folds),
            fold_scores: [one.score for one in all_folds],
            "seconds": fmean(one.seconds for one in all_folds),
        }
        for name, all_folds in outcomes.items()
    }
    ranking = sorted(result, key=lambda name: -result[name][score])
    if plot is not None:
        _draw(result, ranking, ours, plot)
        console.say(f"picture: {plot}")

    def show() -> None:
        rows = [
            [name, ours.written(result[name][score]), f"{result[name]['seconds']:.2f}"]
            for name in ranking
        ]
        console.grid(rows, ["", ours.score_in_words, "seconds a fit"])

    console.result({"ranking": ranking, "results": result}, show)


def _try_all(
    console: Console,
    reading: Reading,
    learning: Learning,
    data: Path,
    test: Path | None,
    n_folds: int,
    rivals: list[str] | None,
) -> dict[str, list[Outcome]]:
    """Try each method on each split."""
    from joblib import effective_n_jobs
    from threadpoolctl import threadpool_limits

    from mbkl.cli.validation import Splits, try_out

    splits = Splits.read(console, reading, data, test, n_folds, learning.seed)
    n_jobs, frame = effective_n_jobs(learning.jobs or -1), splits.frame
    contestants: dict[str, Callable[[], Any]] = {_OURS: lambda: learning.estimator(frame.task)}
    for name in rivals or _quick_rivals(frame, console):
        rival = _rival(name, frame, learning.seed, n_jobs)
        contestants[name] = rival if frame.is_sparse else _encoding(rival)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in contestants}
    turns = [(number, name) for number in range(splits.n_splits) for name in contestants]
    with console.steps(**{f"{name}, {number + 1}": 1 for number, name in turns}) as steps:
        for number, split in enumerate(splits):
            for name, make in contestants.items():
                steps.begin(f"{name}, {number + 1}")
                # The limit is for those without an option for it.
                with threadpool_limits(n_jobs), _tolerant(name, console):
                    outcomes[name].append(try_out(make(), split, splits.classes))
    return {name: found for name, found in outcomes.items() if len(found) == splits.n_splits}


@contextmanager
def _tolerant(name: str, console: Console) -> Iterator[None]:
    """Let a rival that cannot learn from some rows drop out."""
    with warnings.catch_warnings():
        if name != _OURS:
            warnings.simplefilter("ignore")
        try:
            yield
        except ValueError as error:
            if name == _OURS:
                raise
            console.note(f"{name} drops out: {' '.join(str(error).split())[:200]}")


def _quick_rivals(frame: Frame, console: Console) -> list[str]:
    """Return those that are installed, take such rows, and do not take minutes."""
    from importlib.util import find_spec

    left_out = {}
    if frame.n_rows > _MANY_ROWS:
        left_out["rbf-svm"] = f"takes long with more than {_MANY_ROWS:,} rows (--rival rbf-svm)"
    if frame.is_sparse:
        left_out["gradient-boosting"] = "takes no sparse matrices"
    if not find_spec("lightgbm"):
        left_out["lightgbm"] = "is not installed"
    console.notes(f"{name} {reason}: left out." for name, reason in left_out.items())
    return [name for name in _RIVALS[frame.task or "classification"] if name not in left_out]


def _rival(name: str, frame: Frame, seed: int, n_jobs: int) -> Callable[[], Any]:
    """Return a function that makes a classifier, or a regressor."""
    find = _regressors if frame.task == "regression" else _classifiers
    rivals = find(frame.is_sparse, seed, n_jobs)
    if name not in rivals:
        raise typer.BadParameter(
            f"rival '{name}' is not for {frame.task}; there are: {', '.join(rivals)}."
        )
    return rivals[name]


def _regressors(sparse: bool, seed: int, n_jobs: int) -> dict[str, Callable[[], Any]]:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.dummy import DummyRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    def svm() -> Any:
        # The width of its band is in the unit of the target.
        search = GridSearchCV(SVR(), _COSTS_AND_WIDTHS, cv=3)
        return TransformedTargetRegressor(search, transformer=StandardScaler())

    return {
        "mean": DummyRegressor,
        "ridge": lambda: _scaled(RidgeCV([0.01, 0.1, 1.0, 10.0, 100.0]), sparse),
        "rbf-svm": lambda: _scaled(svm(), sparse),
        "random-forest": lambda: RandomForestRegressor(random_state=seed, n_jobs=n_jobs),
        "gradient-boosting": lambda: HistGradientBoostingRegressor(random_state=seed),
        "lightgbm": lambda: _lightgbm("LGBMRegressor", seed, n_jobs),
    }


def _classifiers(sparse: bool, seed: int, n_jobs: int) -> dict[str, Callable[[], Any]]:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC, LinearSVC

    return {
        "most-frequent": DummyClassifier,
        "linear-svm": lambda: _scaled(LinearSVC(random_state=seed), sparse),
        "rbf-svm": lambda: _scaled(GridSearchCV(SVC(), _COSTS_AND_WIDTHS, cv=3), sparse),
        "random-forest": lambda: RandomForestClassifier(random_state=seed, n_jobs=n_jobs),
        "gradient-boosting": lambda: HistGradientBoostingClassifier(random_state=seed),
        "lightgbm": lambda: _lightgbm("LGBMClassifier", seed, n_jobs),
    }


def _encoding(make: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that makes a model which takes text too, as columns of zeros and ones."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    ones = OneHotEncoder(
        max_categories=_TEXTS, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    text = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer((ones, text), remainder="passthrough")
    return lambda: make_pipeline(columns, make())


def _scaled(model: Any, sparse: bool) -> Any:
    """Return a model behind the steps that SVMs need."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    if sparse:
        return make_pipeline(MaxAbsScaler(), model)
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), model)


def _lightgbm(kind: str, seed: int, n_jobs: int) -> Any:
    lightgbm = require("lightgbm", "bench")
    return getattr(lightgbm, kind)(random_state=seed, n_jobs=n_jobs, verbose=-1)


def _draw(result: dict[str, Any], ranking: list[str], ours: Outcome, path: Path) -> None:
    """Draw the scores: a large dot for the mean, a small one for each fold."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 0.4 * len(ranking) + 1.2))
    axis = figure.subplots()
    for position, name in enumerate(ranking):
        colour = "tab:orange" if name == _OURS else "tab:gray"
        folds = [ours.factor * value for value in result[name][f"fold_{ours.scores_name}"]]
        axis.plot(folds, [position] * len(folds), ".", color=colour, alpha=0.5)
        axis.plot(ours.factor * result[name][ours.score_name], position, "o", color=colour)
    axis.set_yticks(range(len(ranking)), ranking)
    axis.set_xlabel(f"{ours.score_in_words}; small dots are folds")
    axis.grid(axis="x", alpha=0.3)
    axis.invert_yaxis()
    save_figure(figure, path)

"""`mbkl evaluate` and `mbkl compare`: how good predictions are, alone and beside other methods."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console, check_picture, save_figure
from mbkl.cli.options import DataFile, Folds, Learning, Reading, TestFile, option
from mbkl.extras import require

if TYPE_CHECKING:
    from mbkl.cli.outcomes import Labels, Numbers, Splits
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


def evaluate(
    data: DataFile,
    console: Console,
    reading: Reading,
    learning: Learning,
    model: Annotated[
        Path | None, option("Model file to be tried on the file; nothing is learned.")
    ] = None,
    test: TestFile = None,
    folds: Folds = 5,
    plot: Annotated[
        Path | None,
        option(
            "Picture of ROC, precision and recall, and reliability; or of predicted against "
            "true numbers and residuals, .png, .svg or .pdf.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Measure how good predictions are on rows that were not learned from.

    By cross-validation; or on a test file; or by trying a model on the file.

    mbkl evaluate people.csv --target income --plot quality.png

    mbkl evaluate train.csv -t income --test test.csv

    mbkl evaluate diamonds.csv -t price --plot residuals.png

    mbkl evaluate test.csv --model people.mbkl
    """
    if model is not None and test is not None:
        raise typer.BadParameter("--model is tried on the file itself: leave out --test.")
    check_picture(plot, data, model, test)
    from mbkl.cli.outcomes import Splits
    from mbkl.explain.held_out import joined

    if model is not None:
        targets, outcomes = _of_a_model(console, model, data, reading.target)
    else:
        splits = Splits.read(console, reading, data, test, folds, learning.seed)
        targets, outcomes = splits.frame.targets, _of_new_models(console, learning, splits)
    whole = joined(outcomes)
    result, range_of_folds = whole.figures(targets), None
    if len(outcomes) > 1:
        scores = [one.score for one in outcomes]
        result[f"fold_{whole.scores_name}"] = scores
        range_of_folds = f"{min(scores):.3f} to {max(scores):.3f}"
    if whole.seconds:
        result["seconds_per_fit"] = whole.seconds
    if plot is not None:
        whole.draw(plot, targets)
    console.result(result, lambda: whole.show(console, result, range_of_folds))
    if plot is not None:
        console.say(f"picture: {plot}")


def _of_a_model(
    console: Console, path: Path, data: Path, targets: list[str] | None
) -> tuple[tuple[str, ...], list[Labels | Numbers]]:
    """Try a model on a frame; return the columns that are predicted, and what came out."""
    with console.steps(1, 1) as steps:
        steps.begin(f"reading {data.name}")
        from mbkl.cli.models import Trained
        from mbkl.cli.outcomes import measured
        from mbkl.explain.held_out import outcome_of

        trained = Trained.load(path)
        frame = trained.read_labelled(data, console, targets)
        steps.begin("predicting")
        classes = None if trained.predicts_numbers else trained.model.classes_
        outcome = outcome_of(trained.model, trained.features(frame), frame.y)
    return frame.targets, [measured(outcome, classes)]


def _of_new_models(console: Console, learning: Learning, splits: Splits) -> list[Labels | Numbers]:
    """Learn from parts of a frame and try what was learned on the rest."""
    from mbkl.cli.outcomes import try_out

    outcomes = []
    with console.steps(*[1] * len(splits)) as steps:
        for number, split in enumerate(splits, 1):
            steps.begin(f"fold {number} of {len(splits)}")
            model = steps.watch(learning.estimator(splits.frame.task))
            outcomes.append(try_out(model, split, splits.classes))
    return outcomes


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
    check_picture(plot, data, test)
    from mbkl.cli.outcomes import Splits

    splits = Splits.read(console, reading, data, test, folds, learning.seed)
    outcomes = _try_all(console, learning, splits, rival)
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
        _draw({name: result[name][fold_scores] for name in ranking}, ours.score_in_words, plot)
        console.say(f"picture: {plot}")

    def show() -> None:
        rows = [[name, result[name][score], f"{result[name]['seconds']:.2f}"] for name in ranking]
        console.grid(rows, ["", ours.score_in_words, "seconds a fit"])

    console.result({"ranking": ranking, "results": result}, show)


def _try_all(
    console: Console, learning: Learning, splits: Splits, rivals: list[str] | None
) -> dict[str, list[Labels | Numbers]]:
    """Try each method on each split."""
    from joblib import effective_n_jobs
    from sklearn.base import clone
    from threadpoolctl import threadpool_limits

    from mbkl.cli.outcomes import try_out

    n_jobs, frame = effective_n_jobs(learning.jobs or -1), splits.frame
    contestants = {_OURS: learning.estimator(frame.task)}
    for name in rivals or _quick_rivals(frame, console):
        contestants[name] = _rival(name, frame, learning.seed, n_jobs)
    outcomes: dict[str, list[Labels | Numbers]] = {name: [] for name in contestants}
    with console.steps(*[1] * len(splits) * len(contestants)) as steps:
        for number, split in enumerate(splits, 1):
            for name, model in contestants.items():
                steps.begin(f"{name}, {number}")
                # The limit is for those without an option for it.
                with threadpool_limits(n_jobs), _tolerant(name, console):
                    outcomes[name].append(try_out(clone(model), split, splits.classes))
    return {name: found for name, found in outcomes.items() if len(found) == len(splits)}


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
    console.note(*(f"{name} {reason}: left out." for name, reason in left_out.items()))
    return [name for name in _RIVALS[frame.task or "classification"] if name not in left_out]


def _rival(name: str, frame: Frame, seed: int, n_jobs: int) -> Any:
    """Return a classifier or a regressor, which takes text as columns of zeros and ones."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rivals = _RIVALS[frame.task or "classification"]
    if name not in rivals:
        raise typer.BadParameter(
            f"rival '{name}' is not for {frame.task}; there are: {', '.join(rivals)}."
        )
    model = _rival_of_numbers(name, frame.task == "regression", frame.is_sparse, seed, n_jobs)
    if len(frame.targets) > 1:
        model = MultiOutputRegressor(model)
    if frame.is_sparse:
        return model
    ones = OneHotEncoder(
        max_categories=_TEXTS, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    text = make_column_selector(dtype_exclude="number")
    return make_pipeline(make_column_transformer((ones, text), remainder="passthrough"), model)


def _rival_of_numbers(name: str, regression: bool, sparse: bool, seed: int, n_jobs: int) -> Any:
    """Return a classifier or a regressor of columns of numbers."""
    from sklearn import dummy, ensemble, svm
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import StandardScaler

    kind = "Regressor" if regression else "Classifier"
    match name:
        case "most-frequent" | "mean":
            return getattr(dummy, f"Dummy{kind}")()
        case "random-forest":
            return getattr(ensemble, f"RandomForest{kind}")(random_state=seed, n_jobs=n_jobs)
        case "gradient-boosting":
            return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=seed)
        case "lightgbm":
            make = getattr(require("lightgbm", "bench"), f"LGBM{kind}")
            return make(random_state=seed, n_jobs=n_jobs, verbose=-1)
        case "ridge":
            return _scaled(RidgeCV([0.01, 0.1, 1.0, 10.0, 100.0]), sparse)
        case "linear-svm":
            return _scaled(svm.LinearSVC(random_state=seed), sparse)
    search = GridSearchCV(svm.SVR() if regression else svm.SVC(), _COSTS_AND_WIDTHS, cv=3)
    if regression:  # the width of its band is in the unit of the target
        search = TransformedTargetRegressor(search, transformer=StandardScaler())
    return _scaled(search, sparse)


def _scaled(model: Any, sparse: bool) -> Any:
    """Return a model behind the steps that SVMs need."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    if sparse:
        return make_pipeline(MaxAbsScaler(), model)
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), model)


def _draw(scores: dict[str, list[float]], score_in_words: str, path: Path) -> None:
    """Draw the scores: a large dot for the mean, a small one for each fold."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 0.4 * len(scores) + 1.2))
    axis = figure.subplots()
    for position, (name, folds) in enumerate(scores.items()):
        colour = "tab:orange" if name == _OURS else "tab:gray"
        axis.plot(folds, [position] * len(folds), ".", color=colour, alpha=0.5)
        axis.plot(fmean(folds), position, "o", color=colour)
    axis.set_yticks(range(len(scores)), list(scores))
    axis.set_xlabel(f"{score_in_words}; small dots are folds")
    axis.grid(axis="x", alpha=0.3)
    axis.invert_yaxis()
    save_figure(figure, path)

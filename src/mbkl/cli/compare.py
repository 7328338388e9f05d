"""`mbkl compare`: MBKL beside other classifiers, on the user's file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbkl.cli.console import Console
from mbkl.cli.files import check_picture, save_figure
from mbkl.cli.options import DataFile, Folds, Learning, Reading, TestFile

if TYPE_CHECKING:
    from mbkl.cli.validation import Outcome

_OURS = "MBKL"
# Those that take seconds where others take minutes.
_USUAL_RIVALS = ("linear", "approx_chi2")


def compare(
    data: DataFile,
    console: Console,
    reading: Reading,
    learning: Learning,
    test: TestFile = None,
    folds: Folds = 5,
    rival: Annotated[
        list[str] | None,
        typer.Option(
            help="System of the paper to compare with, such as chi2, or 'all'; can be repeated.",
            metavar="NAME",
            show_default=", ".join(_USUAL_RIVALS),
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Picture to draw, .png, .svg or .pdf.", show_default=False),
    ] = None,
) -> None:
    """Compare MBKL with other classifiers: forests, boosting, linear and kernel SVMs.

    By cross-validation, or on a test file; all learn from the same rows. Rivals have their
    defaults; systems of the paper see features between 0 and 1, and means for missing values.

    mbkl compare people.csv --target income --plot comparison.png

    mbkl compare train.csv -t income --test test.csv --rival chi2 --rival intersection
    """
    if plot is not None:
        check_picture(plot, data, test)
    outcomes = _try_all(console, reading, learning, data, test, folds, rival)
    result: dict[str, dict[str, Any]] = {
        name: {
            "accuracy": _mean([one.accuracy for one in all_folds]),
            "fold_accuracies": [one.accuracy for one in all_folds],
            "seconds": _mean([one.seconds for one in all_folds]),
        }
        for name, all_folds in outcomes.items()
    }
    ranking = sorted(result, key=lambda name: -result[name]["accuracy"])
    if plot is not None:
        _draw(result, ranking, plot)
        console.say(f"picture: {plot}")

    def show() -> None:
        rows = [
            [name, f"{100 * result[name]['accuracy']:.1f}", f"{result[name]['seconds']:.2f}"]
            for name in ranking
        ]
        console.grid(rows, ["", "accuracy, %", "seconds a fit"])

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
    """Try each classifier on each split."""
    with console.steps(reading=1) as steps:
        steps.begin("reading", f"reading {data.name}")
        from threadpoolctl import threadpool_limits

        from mbkl.cli.validation import splits_of, try_out

        frame = reading.read(data)
        held_out = None if test is None else reading.read_test(test, frame)
    contestants = _contestants(console, learning, rivals, frame.is_sparse)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in contestants}
    n_splits = n_folds if test is None else 1
    names = [f"{name}, {number + 1}/{n_splits}" for number in range(n_splits) for name in outcomes]
    with console.steps(**dict.fromkeys(names, 1)) as steps:
        waiting = iter(names)
        for split in splits_of(frame, held_out, n_folds, learning.seed):
            for name, make in contestants.items():
                steps.begin(next(waiting))
                with threadpool_limits(learning.jobs):  # for those without an option for it
                    outcomes[name].append(try_out(make(), split))
    return outcomes


def _contestants(
    console: Console, learning: Learning, rivals: list[str] | None, sparse: bool
) -> dict[str, Callable[[], Any]]:
    """Return, for each name, a function that makes the classifier."""
    from importlib.util import find_spec

    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    seed, jobs = learning.seed, learning.jobs or -1
    found: dict[str, Callable[[], Any]] = {
        _OURS: learning.estimator,
        "random forest": lambda: RandomForestClassifier(random_state=seed, n_jobs=jobs),
    }
    if sparse:
        console.note("scikit-learn's gradient boosting takes no sparse matrices: left out.")
    else:
        found["gradient boosting"] = lambda: HistGradientBoostingClassifier(random_state=seed)
    if find_spec("lightgbm"):
        found["LightGBM"] = lambda: _lightgbm(seed, jobs)
    for name in _systems(rivals):
        found[name] = lambda name=name: _system(name, seed, jobs, sparse)  # type: ignore[misc]
    return found


def _lightgbm(seed: int, jobs: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=jobs, verbose=-1)


def _systems(wanted: list[str] | None) -> list[str]:
    """Return the names of the systems of the paper to compare with."""
    from mbkl.baselines import names

    if not wanted:
        return list(_USUAL_RIVALS)
    if "all" in wanted:
        return names()
    unknown = [name for name in wanted if name not in names()]
    if unknown:
        raise typer.BadParameter(f"no rival '{unknown[0]}'; there are: all, {', '.join(names())}.")
    return wanted


def _system(name: str, seed: int, jobs: int, sparse: bool) -> Any:
    """Return a system of the paper behind the steps that its kernels need."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    from mbkl.baselines import Squash, make

    system = make(name, random_state=seed, n_jobs=jobs)
    if sparse:
        return make_pipeline(MaxAbsScaler(), system)
    return make_pipeline(SimpleImputer(keep_empty_features=True), Squash(), system)


def _draw(result: dict[str, Any], ranking: list[str], path: Path) -> None:
    """Draw the accuracies: a large dot for the mean, a small one for each fold."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 0.4 * len(ranking) + 1.2))
    axis = figure.subplots()
    for position, name in enumerate(ranking):
        colour = "tab:orange" if name == _OURS else "tab:gray"
        folds = [100 * value for value in result[name]["fold_accuracies"]]
        axis.plot(folds, [position] * len(folds), ".", color=colour, alpha=0.5)
        axis.plot(100 * result[name]["accuracy"], position, "o", color=colour)
    axis.set_yticks(range(len(ranking)), ranking)
    axis.set_xlabel("accuracy, %; small dots are folds")
    axis.grid(axis="x", alpha=0.3)
    axis.invert_yaxis()
    save_figure(figure, path)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)

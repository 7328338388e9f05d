"""Time of a prediction per row, compared with other classifiers on the same rows.

Shows batches of 10,000 rows and single rows of 558 features, for a model of about
3,800 maps. One command:

    python -m benchmarks.speed.prediction
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.common import (
    ROWS_IN_A_TURN,
    markdown_table,
    median_seconds,
    n_cores,
    number,
    one_row_at_a_time,
    parse,
    percent,
    plain_log_ticks,
    record,
    say,
    start,
)
from benchmarks.data import Dataset, daimler_hog
from mbkl import MBKLClassifier

COMMAND = "python -m benchmarks.speed.prediction"
OURS = "mbkl"
FAST_PATH = "mbkl, predictor_.scores"
FRESH = "mbkl, predictor_.scores, process without Numba"
FLOAT32 = "LinearSVC, float32 rows"
MICROSECOND = 1e-6


@dataclass(frozen=True)
class Sizes:
    """Sizes to measure: those of a full run, or those of a quick one."""

    part: tuple[int | None, int | None] = (None, None)
    kept_maps: int = 3_800
    few: int = 2_000
    more: int = 5_000
    trees: int = 100
    rounds: int = 50
    batch: int = 10_000
    batch_repeats: int = 15
    turns: int = 40
    seconds_each: float = 20.0


QUICK = Sizes(
    part=(1_000, 40),
    kept_maps=200,
    few=300,
    more=300,
    trees=5,
    rounds=5,
    batch=500,
    batch_repeats=2,
    turns=3,
    seconds_each=2.0,
)


def fit_models(data: Dataset, sizes: Sizes) -> dict[str, object]:
    """Fit all contestants; slow ones on a part of the rows, which can only speed up predict."""
    all_rows, more, few = data, data.first(sizes.more), data.first(sizes.few)
    cores = n_cores()
    plans = {
        OURS: (
            MBKLClassifier(maps="stumps", n_maps=sizes.kept_maps, random_state=0),
            all_rows,
        ),
        "LinearSVC": (LinearSVC(dual=False, random_state=0), all_rows),
        "SVC, RBF": (SVC(), few),
        "AdditiveChi2Sampler + LinearSVC": (
            make_pipeline(AdditiveChi2Sampler(), LinearSVC(dual=False, random_state=0)),
            more,
        ),
        "RandomForest": (
            RandomForestClassifier(sizes.trees, n_jobs=cores, random_state=0),
            all_rows,
        ),
        "HistGradientBoosting": (
            HistGradientBoostingClassifier(
                max_iter=sizes.trees, early_stopping=False, random_state=0
            ),
            more,
        ),
        **_optional_models(sizes, more, few),
    }
    models = {}
    for name, (model, rows) in plans.items():
        models[name] = model.fit(_input_of(name, rows.X_train), rows.y_train)
        say(f"{name} fitted on {len(rows.y_train):,} rows")
    models[FLOAT32] = models["LinearSVC"]
    return models


def _optional_models(sizes: Sizes, more: Dataset, few: Dataset) -> dict:
    """Return the contestants from libraries that may not be installed."""
    plans = {}
    try:
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=sizes.trees, n_jobs=n_cores(), verbose=-1)
        plans["LightGBM"] = (model, more)
    except ImportError:
        say("lightgbm is not installed and left out")
    try:
        from interpret.glassbox import ExplainableBoostingClassifier

        model = ExplainableBoostingClassifier(
            interactions=0, max_rounds=sizes.rounds, outer_bags=2, random_state=0
        )
        plans["EBM"] = (model, few)
    except ImportError:
        say("interpret is not installed and left out")
    return plans


def _input_of(name: str, X: np.ndarray) -> np.ndarray:
    """Return the rows in the type of a contestant."""
    return X.astype(np.float64) if "Linear" in name and name != FLOAT32 else X


def time_batches(models: dict, X: np.ndarray, sizes: Sizes) -> dict[str, float]:
    """Return microseconds per row of `predict` on a batch, with all cores."""
    contestants = {
        name: partial(model.predict, _input_of(name, X)) for name, model in models.items()
    }
    contestants[FAST_PATH] = partial(models[OURS].predictor_.scores, X)
    for work in contestants.values():
        work()
    taken = median_seconds(contestants, sizes.batch_repeats, sizes.seconds_each, is_short=True)
    return {name: value / len(X) / MICROSECOND for name, value in taken.items()}


def time_single_rows(models: dict, X: np.ndarray, sizes: Sizes) -> dict[str, float]:
    """Return microseconds of `predict` on one row at a time, with one thread."""
    fresh = _time_in_fresh_process(models[OURS].predictor_, X, sizes)
    _use_one_thread(models)
    contestants = {
        name: one_row_at_a_time(model.predict, _input_of(name, X)) for name, model in models.items()
    }
    contestants[FAST_PATH] = one_row_at_a_time(models[OURS].predictor_.scores, X)
    if "LightGBM" in models:
        booster = models["LightGBM"].booster_
        contestants["LightGBM, booster_.predict"] = one_row_at_a_time(
            lambda row: booster.predict(row, num_threads=1), X
        )
    with threadpool_limits(1):
        for work in contestants.values():
            work()
        taken = median_seconds(contestants, sizes.turns, sizes.seconds_each)
    per_row = {**taken, FRESH: fresh}
    return {name: value / ROWS_IN_A_TURN / MICROSECOND for name, value in per_row.items()}


def _time_in_fresh_process(predictor, X: np.ndarray, sizes: Sizes) -> float:
    """Return the seconds of a turn in a process that has not loaded the compiled loops."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(_time_turns, predictor, X[:1_000], sizes.turns).result()


def _time_turns(predictor, X: np.ndarray, turns: int) -> float:
    work = one_row_at_a_time(predictor.scores, X)
    work()
    return median_seconds({FRESH: work}, turns)[FRESH]


def _use_one_thread(models: dict) -> None:
    """Give the rivals one thread: more only cost time on a single row."""
    for model in models.values():
        if "n_jobs" in model.get_params() and not isinstance(model, MBKLClassifier):
            model.set_params(n_jobs=1)


def _plot(batch: dict[str, float], single: dict[str, float]) -> Figure:
    figure = Figure(figsize=(13, 5), layout="constrained")
    panels = figure.subplots(1, 2)
    titles = ("batch, all cores", "single rows, one thread")
    for axes, times, title in zip(panels, (batch, single), titles):
        names = sorted(times, key=times.get)
        colours = ["tab:orange" if name.startswith(OURS) else "tab:blue" for name in names]
        bars = axes.barh(names, [times[name] for name in names], color=colours)
        axes.bar_label(bars, [number(times[name]) for name in names], fontsize=8, padding=2)
        axes.invert_yaxis()
        axes.set_xscale("log")
        plain_log_ticks(axes.xaxis)
        axes.tick_params(labelsize=8)
        axes.margins(x=0.15)
        axes.set_xlabel("microseconds per row (logarithmic)")
        axes.set_title(title)
    keys = [Patch(color="tab:orange", label="mbkl"), Patch(color="tab:blue", label="others")]
    figure.legend(handles=keys, loc="outside lower center", ncols=2)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, measure and record."""
    quick = parse(__doc__, arguments).quick
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    sizes = QUICK if quick else Sizes()
    data = daimler_hog().first(*sizes.part)
    models = fit_models(data, sizes)
    X = np.ascontiguousarray(data.X_test[: sizes.batch])
    batch = time_batches(models, X, sizes)
    say("batches timed")
    accuracy = {
        name: percent(model.score(_input_of(name, data.X_test), data.y_test))
        for name, model in models.items()
    }
    single = time_single_rows(models, X, sizes)
    rows = [
        {
            "classifier": name,
            "batch, µs per row": batch.get(name, "-"),
            "times mbkl": batch[name] / batch[OURS] if name in batch else "-",
            "single row, µs": single[name],
            "times mbkl, single": single[name] / single[OURS],
            "test accuracy": accuracy.get(name, "-"),
        }
        for name in single
    ]
    notes = [
        f"{data.name}, {data.X_train.shape[1]} features; batches of {len(X):,} rows. mbkl has "
        f"theta='ones' and {models[OURS].n_maps_:,} maps; forests and boosting have "
        f"{sizes.trees} trees, EBM {sizes.rounds} rounds.",
        "Medians of turns, in which the classifiers follow each other, each beginning with a tenth "
        "of a second that does not count. Batches may use all cores, single rows one. LinearSVC "
        "reads float64 rows unless stated, others float32.",
        "Accuracies are not a comparison: SVC and EBM learned from "
        f"{sizes.few:,} rows, the chi2 map and boosting from {sizes.more:,}, without tuning.",
        "predictor_.scores is the fast path of mbkl for single rows: scores, without the checks "
        "that scikit-learn makes on every call. booster_.predict is the same of LightGBM. The "
        "last row is a process that has only loaded the model and uses NumPy alone.",
    ]
    record(
        "prediction",
        COMMAND,
        markdown_table(rows),
        notes,
        _plot(batch, single),
        title="Time of a prediction",
        quick=quick,
    )


if __name__ == "__main__":
    raise SystemExit(start(main))

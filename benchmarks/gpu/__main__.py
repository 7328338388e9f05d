"""The default model on a GPU, compared with all cores of its machine.

One command, below eight minutes on an H200:

    python -m benchmarks.gpu [--imagenet] [--sets NAME ...] [--budget SECONDS] [--quick]

Sets that are missing below MBKL_DATA are replaced by planted rows of their shapes. Some sets are
regressions, whose accuracy is R2, or have categories. Times of fits are medians of three after a
warm-up; scored rows are the test rows, repeated to 100,000 and 1,000,000. Numbers go to
$OUT/gpu.json if OUT is set. `--quick` needs no GPU. `--imagenet` also measures the paper's shape,
which takes two minutes more.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from unittest import mock

import numpy as np

from benchmarks import large
from benchmarks.common import machine, markdown_table, percent, record, say, start
from benchmarks.data import Dataset, MissingData
from benchmarks.gpu import imagenet
from benchmarks.gpu.sets import QUICK, SHAPES, Shape, load, planted
from mbkl import MBKLClassifier, MBKLRegressor
from mbkl.engine import limits, torch_loops
from mbkl.engine.device import Device, DeviceRows
from mbkl.maps import device_growth, grown_ferns
from mbkl.maps.grown_ferns import Growth

COMMAND = "python -m benchmarks.gpu"
PLANTED_ROWS, QUICK_ROWS = 2_000_000, 600
SCORED_ROWS, QUICK_SCORED = (100_000, 1_000_000), (100, 200)
# Matrices of more bytes are not scored.
MOST_BYTES = 1_000_000_000
# Parameters that differ from the defaults, in quick runs only.
SETTINGS: dict = {}
ROWS_OF_CLASSES = Shape(0, 0, 2)
# Fits that take longer than this are not repeated.
LONG = 6.0

# Timed functions of a grown fit: owner, attribute, and name in the report.
STAGES = (
    (DeviceRows, "__init__", "upload"),
    (grown_ferns, "fine_stumps", "thresholds and codes"),
    (DeviceRows, "sample", "of these: rows of thresholds"),
    (DeviceRows, "bin", "of these: codes"),
    (DeviceRows, "keys_apart", "keys"),
    (device_growth.DeviceGrowingRows, "__init__", "labels and weights"),
    (device_growth.DeviceGrowingRows, "begin", "first residuals"),
    (Growth, "_draft", "drafts"),
    (device_growth.DeviceGrowingRows, "choose", "stumps"),
    (device_growth.DeviceGrowingRows, "add", "tables and residuals"),
    (Device, "record", "of these: recordings"),
    (grown_ferns, "averaged_maps", "maps"),
)


def synchronise() -> None:
    """Wait until the device has finished."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds_of(action: Callable[[], object]) -> float:
    """Return the wall-clock time of an action."""
    synchronise()
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        action()
    synchronise()
    return time.perf_counter() - began


def repeated(action: Callable[[], object]) -> float:
    """Return the median time of three calls, or the time of one long call."""
    times = [seconds_of(action)]
    while times[0] < LONG and len(times) < 3:
        times.append(seconds_of(action))
    return median(times)


@contextmanager
def timed_stages(times: dict[str, float]):
    """Add up the times of the stages of fits, each until the device has finished."""

    def timed(function, name):
        def call(*arguments, **keywords):
            began = time.perf_counter()
            result = function(*arguments, **keywords)
            synchronise()
            times[name] = times.get(name, 0.0) + time.perf_counter() - began
            return result

        return call

    with ExitStack() as stack:
        for owner, attribute, name in STAGES:
            replacement = timed(getattr(owner, attribute), name)
            stack.enter_context(mock.patch.object(owner, attribute, replacement))
        yield


def checked_loops(device: str) -> str:
    """Return which loops work here, recorded, fused or plain, and how far their scores differ."""
    if device == "torch":
        return "plain"
    generator = np.random.default_rng(0)
    X = generator.normal(size=(12_000, 6)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0) + (X[:, 2] > 0.5)
    levels = np.column_stack([X, generator.integers([20, 900], size=(12_000, 2))])
    levels[::9, 6] = np.nan
    of_levels = (levels[:, 7] % 7 > 3) + (X[:, 3] > 0)
    settings = {"maps": "grown", "n_maps": 30, "random_state": 0, "device": device}
    fits = [
        (MBKLClassifier(**settings), X, y),
        (MBKLClassifier(**settings, categorical_features=[6, 7]), levels, of_levels),
        *(
            (MBKLRegressor(**settings, loss=loss), X, np.exp(X[:, 0] * X[:, 1] / 4))
            for loss in ("squared_error", "quantile", "poisson")
        ),
    ]

    def scores():
        with mock.patch.object(limits, "GROWN_CODES_ON_A_DEVICE", 0):
            models = [model.fit(*rows) for model, *rows in fits]
        with mock.patch("mbkl.predictor.CODES_TO_PREDICT_ON_A_DEVICE", 0):
            pairs = zip(models, fits, strict=True)
            return np.concatenate([scored(model)(rows).ravel() for model, (_, rows, _) in pairs])

    plain = mock.patch.object(Device, "loops", torch_loops)
    one_by_one = mock.patch.object(Device, "can_record", False)
    with plain:
        expected = scores()
    for name, restriction in (("recorded", None), ("fused", one_by_one)):
        if restriction is not None:
            restriction.start()
        try:
            difference = float(np.abs(scores() - expected).max())
        except Exception:
            traceback.print_exc()
        else:
            return f"{name}; scores differ from those of plain loops by at most {difference:.1e}"
    plain.start()
    return "plain, since the others failed"


def model_on(device: str, shape: Shape = ROWS_OF_CLASSES) -> MBKLClassifier | MBKLRegressor:
    """Return the default model for rows of a shape."""
    settings = {"random_state": 0, "device": device, **SETTINGS}
    if shape.n_categories:
        settings["categorical_features"] = list(range(shape.n_categories))
    return MBKLClassifier(**settings) if shape.n_classes else MBKLRegressor(**settings)


def scored(model) -> Callable:
    """Return the method of a model that scores rows."""
    return getattr(model, "decision_function", model.predict)


def measure_set(data: Dataset, shape: Shape, device: str, sizes: Sequence[int]) -> dict:
    """Fit and predict one set on all cores and on the device."""
    line: dict = {"set": data.name, "rows": len(data.y_train), "columns": data.X_train.shape[1]}
    line["classes"] = int(np.unique(data.y_train).size) if shape.n_classes else 0
    models = {}
    for name, place in (("cores", "cpu"), ("GPU", device)):
        model = models[name] = model_on(place, shape)
        fit = partial(model.fit, data.X_train, data.y_train)
        if place != "cpu":
            seconds_of(fit)  # compiles the kernels
        line[f"fit {name}, s"] = repeated(fit)
        line[f"accuracy {name}"] = percent(model.score(data.X_test, data.y_test))
        line[f"maps {name}"] = model.n_maps_
    line["fit ratio"] = line["fit cores, s"] / line["fit GPU, s"]
    line["stages"] = stages_of(fit)
    for n_rows in sizes:
        if n_rows * data.X_test[:1].nbytes > MOST_BYTES:
            continue
        X = np.resize(data.X_test, (n_rows, data.X_test.shape[1]))
        for name, model in models.items():
            score = partial(scored(model), X)
            score()
            line[f"score {n_rows:,} {name}, s"] = repeated(score)
        pair = [line[f"score {n_rows:,} {name}, s"] for name in models]
        line[f"score ratio {n_rows:,}"] = pair[0] / pair[1]
    return line


def measure_planted(n_rows: int, device: str) -> tuple[dict, dict[str, float]]:
    """Grow on many planted rows; return a line, and the times of the stages."""
    data = large.planted(n_rows, 0)
    model = model_on(device)
    model.set_params(maps="grown")
    fit = partial(model.fit, data.X_train, data.y_train)
    seconds_of(fit)
    line = {"set": f"planted, {n_rows:,} x {data.X_train.shape[1]}", "fit GPU, s": repeated(fit)}
    line["accuracy GPU"] = percent(model.score(data.X_test, data.y_test))
    line["maps GPU"] = model.n_maps_
    return line, stages_of(fit)


def stages_of(fit: Callable[[], object]) -> dict[str, float]:
    """Return the times of the stages of a fit."""
    stages: dict[str, float] = {}
    with timed_stages(stages):
        stages["whole fit"] = seconds_of(fit)
    return stages


def measure_xgboost(data: Dataset, shape: Shape, device: str) -> float | None:
    """Return the time of a fit of XGBoost on the same device, or None without XGBoost."""
    if device == "torch" or not shape.n_classes or importlib.util.find_spec("xgboost") is None:
        return None
    from xgboost import XGBClassifier

    y = np.unique(data.y_train, return_inverse=True)[1]
    rival = XGBClassifier(device=device, tree_method="hist")
    rival.fit(data.X_train, y)
    return repeated(partial(rival.fit, data.X_train, y))


def short(line: dict, sizes: Sequence[int]) -> dict:
    """Return the line of a set in the last table."""
    shown = {"set": line["set"]}
    for key in ("fit cores, s", "fit GPU, s", "fit ratio", "accuracy cores", "accuracy GPU"):
        shown[key] = line.get(key, "-")
    for n_rows in sizes:
        shown[f"score ratio {n_rows:,}"] = line.get(f"score ratio {n_rows:,}", "-")
    return shown


def device_here(quick: bool) -> str:
    """Return the device to measure, or raise an error if there is none."""
    try:
        import torch
    except ImportError:
        raise MissingData("Torch is not installed: pip install 'mbkl[gpu]'") from None
    if torch.cuda.is_available():
        return "cuda"
    if not quick:
        raise MissingData("there is no GPU that Torch can use")
    return "torch"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, nothing recorded")
    parser.add_argument("--imagenet", action="store_true", help="the paper's shape too")
    parser.add_argument("--sets", nargs="*", metavar="NAME", choices=list(SHAPES))
    parser.add_argument("--force", action="store_true", help="few rows on the device too")
    parser.add_argument(
        "--budget", type=float, default=440.0, help="seconds after which no set is begun"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Check, measure and record."""
    chosen = parse(arguments)
    device = device_here(chosen.quick)
    began = time.perf_counter()
    shapes = QUICK if chosen.quick else SHAPES
    if chosen.sets is not None:
        shapes = {name: SHAPES[name] for name in chosen.sets}
    sizes = QUICK_SCORED if chosen.quick else SCORED_ROWS
    if chosen.quick:
        SETTINGS["n_maps"] = 20
    if chosen.force:
        limits.GROWN_CODES_ON_A_DEVICE = limits.CODES_ON_A_DEVICE = 0
    loops = checked_loops(device)
    say(f"loops over ferns: {loops}")
    results: dict = {"machine": machine(), "loops": loops, "lines": []}
    line, stages = measure_planted(QUICK_ROWS if chosen.quick else PLANTED_ROWS, device)
    results |= {"planted": line, "stages": stages}
    say(f"{line}\n" + "\n".join(f"    {name}: {value:.3f} s" for name, value in stages.items()))
    if not chosen.quick:  # compile the loops
        for shape in (Shape(12_000, 20, 2, 2), Shape(12_000, 20, 3), Shape(21_000, 20, 0)):
            warm = planted("warm", shape)
            model_on("cpu", shape).fit(warm.X_train, warm.y_train).predict(warm.X_test)
    for name, shape in shapes.items():
        if time.perf_counter() - began > chosen.budget:
            say(f"no time left for {name}")
            continue
        data = load(name, shape)
        try:
            set_line = measure_set(data, shape, device, sizes)
        except Exception:  # continue with the other sets
            traceback.print_exc()
            continue
        rival = measure_xgboost(data, shape, device)
        if rival is not None:
            set_line["XGBoost GPU, s"] = rival
        results["lines"].append(set_line)
        say(str(set_line))
        write(results)
    write(results)
    table = [short(each, sizes) for each in (line, *results["lines"])]
    ratios = [each["fit ratio"] for each in results["lines"]]
    notes = [f"Loops over ferns: {loops}."]
    if ratios:
        notes.append(f"Geometric mean of the fit ratios: {np.exp(np.mean(np.log(ratios))):.2f}.")
    is_partial = chosen.quick or chosen.sets is not None or chosen.force
    record("gpu", COMMAND, markdown_table(table), notes, title="GPU", quick=is_partial)
    if chosen.imagenet:
        imagenet.main(["--quick"] if chosen.quick else [])


def write(results: dict) -> None:
    """Write all numbers below $OUT, if that is set."""
    if folder := os.environ.get("OUT"):
        Path(folder, "gpu.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    raise SystemExit(start(main))

"""Time of a prediction with exported models: ONNX and C compared with mbkl.

Shows batches and single rows with one thread, for stumps and for the default with its
ferns, and the sizes of the files. One command:

    python -m benchmarks.speed.export
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import (
    MEGABYTE,
    ROWS_IN_A_TURN,
    markdown_table,
    median_seconds,
    one_row_at_a_time,
    parse,
    percent,
    record,
    say,
    start,
)
from benchmarks.data import Dataset, daimler_hog, gaussian_dataset
from mbkl import MBKLClassifier
from mbkl.io import export_c, export_onnx, save

COMMAND = "python -m benchmarks.speed.export"
OURS = "mbkl"
FAST_PATH = "mbkl, predictor_.scores"
MICROSECOND = 1e-6

_LOOP = """
#include "model.h"
void run(const float *X, int n_rows, int *labels);
void run(const float *X, int n_rows, int *labels)
{
    int row;
    for (row = 0; row < n_rows; row++)
        labels[row] = model_predict(X + row * model_n_features);
}
"""


@dataclass(frozen=True)
class Sizes:
    """Sizes to measure: those of a full run, or those of a quick one."""

    part: tuple[int | None, int | None] = (None, None)
    stumps: int = 3_800
    rows: int = 5_000
    batch: int = 5_000
    batch_repeats: int = 15
    turns: int = 40
    seconds_each: float = 20.0


QUICK = Sizes(part=(1_000, 40), stumps=200, rows=300, batch=200, batch_repeats=2, turns=3)


def plans(sizes: Sizes) -> dict[str, tuple[MBKLClassifier, Dataset]]:
    """Return models to fit, and their data."""
    stumps = MBKLClassifier(maps="stumps", n_maps=sizes.stumps, n_jobs=1, random_state=0)
    default = MBKLClassifier(n_jobs=1, random_state=0)
    return {
        "stumps": (stumps, daimler_hog().first(*sizes.part)),
        "default": (default, gaussian_dataset(sizes.rows, 20)),
        "default, 3 classes": (default, gaussian_dataset(sizes.rows, 20, 3)),
    }


def labellers(model: MBKLClassifier, folder: Path) -> dict[str, tuple[Callable, Path | None]]:
    """Return functions from rows to labels, and the file of each."""
    save(model, folder / "model.mbkl")
    return {
        OURS: (model.predict, folder / "model.mbkl"),
        FAST_PATH: (model.predictor_.scores, None),
        **_in_onnxruntime(model, folder / "model.onnx"),
        **_in_c(model, folder / "model.h"),
    }


def _in_onnxruntime(model: MBKLClassifier, path: Path) -> dict:
    try:
        import onnxruntime
    except ImportError:
        say("onnxruntime is not installed and left out")
        return {}
    export_onnx(model, path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return {"ONNX, onnxruntime": (lambda X: session.run(["label"], {"X": X})[0], path)}


def _in_c(model: MBKLClassifier, path: Path) -> dict:
    compiler = shutil.which("cc")
    if compiler is None:
        say("there is no compiler of C, which is left out")
        return {}
    export_c(model, path)
    source, library = path.with_suffix(".c"), path.with_suffix(".so")
    source.write_text(_LOOP)
    command = [compiler, "-std=c99", "-O3", "-march=native", "-fPIC", "-shared"]
    subprocess.run([*command, "-o", library, source, "-lm"], check=True)
    run = ctypes.CDLL(str(library)).run
    run.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    run.restype = None

    def predict(X: np.ndarray) -> np.ndarray:
        labels = np.empty(len(X), dtype=np.int32)
        run(X.ctypes.data, len(X), labels.ctypes.data)
        return model.classes_[labels]

    return {"C, called from Python": (predict, path)}


def measure(name: str, model: MBKLClassifier, data: Dataset, sizes: Sizes) -> list[dict]:
    """Fit, export and time one model; return rows of the table."""
    model.fit(data.X_train, data.y_train)
    X = np.ascontiguousarray(data.X_test[: sizes.batch], dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        ways = labellers(model, Path(folder))
        say(f"{name}: fitted on {data.shape} and exported")
        batches = {what: lambda p=predict: p(X) for what, (predict, _) in ways.items()}
        singles = {what: one_row_at_a_time(predict, X) for what, (predict, _) in ways.items()}
        for work in (*batches.values(), *singles.values()):
            work()
        batch = median_seconds(batches, sizes.batch_repeats, sizes.seconds_each, is_short=True)
        single = median_seconds(singles, sizes.turns, sizes.seconds_each)
        expected = model.predict(X)
        return [
            {
                "model": name,
                "how": what,
                "batch, µs per row": batch[what] / len(X) / MICROSECOND,
                "times mbkl": batch[what] / batch[OURS],
                "single row, µs": single[what] / ROWS_IN_A_TURN / MICROSECOND,
                "times mbkl, single": single[what] / single[OURS],
                "file, MB": path.stat().st_size / MEGABYTE if path else "-",
                "same labels, %": percent((predict(X) == expected).mean()) if path else "-",
            }
            for what, (predict, path) in ways.items()
        ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and record."""
    quick = parse(__doc__, arguments).quick
    sizes = QUICK if quick else Sizes()
    rows, notes = [], []
    for name, (model, data) in plans(sizes).items():
        rows += measure(name, model, data, sizes)
        notes.append(
            f"{name}: {data.name}, {data.X_train.shape[1]} features, {model.n_maps_:,} maps."
        )
    notes += [
        f"Medians of turns, in which all follow each other, with one thread; batches of "
        f"{sizes.batch:,} rows of float32.",
        "ONNX adds up tables in double precision, as mbkl does, C in float32. The C is compiled "
        "with -O3 -march=native and called by ctypes, which takes a microsecond or two.",
    ]
    record("export", COMMAND, markdown_table(rows), notes, title="Exported models", quick=quick)


if __name__ == "__main__":
    raise SystemExit(start(main))

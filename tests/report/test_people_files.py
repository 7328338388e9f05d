"""Files as people have them, through every command, and each report in a browser."""

import gzip
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score

from mbkl import MBKLClassifier
from mbkl.cli import main
from mbkl.cli.console import Console
from mbkl.cli.models import Trained
from mbkl.parquet import read_parquet

FILES = Path(os.environ.get("MBKL_DATA", "")) / "tables"
pytestmark = pytest.mark.skipif(
    not FILES.exists(), reason="MBKL_DATA names no folder with these files"
)

SMALL = ["--n-maps", "60", "--jobs", "1"]
N_ROWS = 250
CASES = {
    "birthwt.csv": ["low", "--drop", "bwt"],
    "titanic.csv": ["survived"],
    "german.data": ["-1"],
    "compas.csv.gz": ["two_year_recid"],
    "baseball.csv.gz": ["lg"],
    "diamonds.csv.gz": ["cut"],
    "airports.csv": ["state"],
    "weather.csv": ["weather"],
    "adult-train.csv.gz": ["income"],
    "birthwt.csv, numbers": ["bwt", "--drop", "low"],
    "diamonds.csv.gz, numbers": ["price"],
    "baseball.csv.gz, counts": ["hr", "--loss", "poisson"],
}
NOTES = {
    "birthwt.csv": "'Unnamed: 0' is left out",
    "titanic.csv": "'Unnamed: 0' is left out",
    "german.data": "The first line holds numbers",
    "compas.csv.gz": "named 'decile_score.1', 'priors_count.1'",
    "baseball.csv.gz": "without a label",
    "diamonds.csv.gz": "'Unnamed: 0' is left out",
    "airports.csv": "rows than there are folds",
}


def some_rows(name: str, seed: int = 0) -> Path:
    """Write some lines of a file into the current folder, the first one among them."""
    content = (FILES / name).read_bytes()
    head, *lines = (gzip.decompress(content) if name.endswith("gz") else content).splitlines(True)
    chosen = np.random.default_rng(seed).permutation(len(lines))[:N_ROWS]
    path = Path(f"{seed} {name.removesuffix('.gz')}")
    path.write_bytes(head + b"".join(lines[row] for row in chosen))
    return path


@pytest.fixture
def say(capsys, tmp_path, monkeypatch):
    """Return a function that runs a command and returns what it said."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments) -> str:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert code == 0, err
        assert "warning" not in err.lower()
        return err + out

    return run


@pytest.mark.parametrize("way", ["frame", "CSV", "index in Parquet", "named index in Parquet"])
def test_an_index_that_is_sorted_by_the_target_tells_nothing(say, way):
    """Rows of birthwt are sorted by the target: with their numbers the AUC would be 1."""
    plain = pd.read_csv(FILES / "birthwt.csv", index_col=0).drop(columns="bwt")
    shuffled = plain.sample(frac=1.0, random_state=0)
    folds = StratifiedKFold(3)

    def auc(frame):
        model = MBKLClassifier(n_maps=60, n_jobs=1, random_state=0)
        X, y = frame.drop(columns="low"), frame["low"]
        return cross_val_score(model, X, y, scoring="roc_auc", cv=folds).mean()

    expected = auc(shuffled.reset_index(drop=True))
    assert expected < 0.75
    if way == "frame":
        assert auc(shuffled) == expected
        return
    if way == "CSV":
        shuffled.to_csv("rows.csv")
        shuffled.to_csv("plain.csv", index=False)
        name, bare = "rows.csv", "plain.csv"
    else:
        shuffled.rename_axis("key" if "named" in way else None).to_parquet("rows.parquet")
        shuffled.reset_index(drop=True).to_parquet("plain.parquet")
        name, bare = "rows.parquet", "plain.parquet"

    def measured(path):
        said = say("evaluate", path, "-t", "low", "--folds", 3, *SMALL)
        return float(said.split("auc")[1].split()[0]), "is left out" in said

    assert measured(bare) == (measured(name)[0], False)
    assert measured(name)[1]
    if name.endswith("parquet"):
        X, _ = read_parquet(name, "low")
        assert set(X.columns) == set(plain.columns) - {"low"}


@pytest.mark.parametrize("name", CASES)
def test_every_command(say, page, name):
    data, options = some_rows(name.split(",")[0]), CASES[name]
    folds = [data, "-t", *options, *SMALL, "--folds", 2]
    measured = say("evaluate", *folds, "--plot", "q.png")
    assert NOTES.get(name, "") in say("fit", *folds[:-2], "-o", "m.mbkl") + measured
    # Those whose target follows from other columns, such as the league from the team.
    known = ("compas.csv.gz", "airports.csv", "baseball.csv.gz")
    if name not in known and "accuracy" in measured:
        assert float(measured.split("accuracy")[1].split()[0]) < 0.9

    trained = Trained.load(Path("m.mbkl"))
    X = trained.schema.encoded(trained.schema.read(Path(data), Console(quiet=True)))
    say("compare", *folds, "--rival", "mean" if trained.predicts_numbers else "most-frequent")
    say("evaluate", data, "--model", "m.mbkl")
    assert "importance" in say("explain", "m.mbkl", data)
    assert "because" in say("explain", "m.mbkl", data, "--row", 3, "--plot", "why.png")
    how = ["--interval", 0.9] if trained.predicts_numbers else ["--proba"]
    say("predict", "m.mbkl", data, *how, "-o", "labels.csv")
    found = pd.read_csv("labels.csv").to_numpy()[:, 1:].astype(float)
    np.testing.assert_allclose(found, spread(trained.model, X))

    say("export", "m.mbkl", "--onnx", "m.onnx", "--c", "m.h", "--name", "m")
    check_onnx(trained.model, X)
    check_c()
    say("report", "m.mbkl", data, "-o", "m.html")
    check_page(page, trained.model, X)


def spread(model, X):
    """Return the probabilities of rows, or their intervals."""
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict_interval(X)


def check_onnx(model, X):
    """Compare labels or numbers of the exported model, from raw columns, with those of Python."""
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    session = runtime.InferenceSession("m.onnx")
    columns = {name: np.asarray(X[name]) for name in X}
    inputs = {
        name: np.where(pd.isna(own), "", own) if own.dtype.kind == "O" else own.astype(np.float32)
        for name, own in columns.items()
    }
    asked = {one.name for one in session.get_inputs()}
    if asked == set(inputs):
        feed = {name: values[:, None] for name, values in inputs.items()}
    else:
        (only,) = asked
        feed = {only: np.column_stack(list(inputs.values()))}
    found, *_ = session.run(None, feed)
    if hasattr(model, "classes_"):
        assert (found == model.predict(X)).mean() > 0.99
    else:
        np.testing.assert_allclose(found.ravel(), model.predict(X), rtol=1e-3)


def check_c():
    """Let a compiler read the exported model."""
    compiler = shutil.which("cc")
    if compiler:
        command = [compiler, "-fsyntax-only", "-Wall", "-Werror", "-x", "c", "-"]
        subprocess.run(command, input=b'#include "m.h"\n', check=True)


# Press and choose all there is, but nothing of the rows.
PLAY = """
for (const id of ["shape-feature", "shape-class", "curve-class"]) {
  const list = document.getElementById(id);
  for (let i = 0; list && i < list.options.length; i += 1) {
    list.selectedIndex = i;
    list.dispatchEvent(new Event("change"));
  }
}
for (const button of document.querySelectorAll("button")) button.click();
"""
# Choose the first row, change one column after the other, and note what the page says.
MOVE = """
(() => {
  const list = document.getElementById("what-if-row");
  const back = () => { list.selectedIndex = 0; list.dispatchEvent(new Event("change")); };
  const outcome = () => [...document.querySelectorAll(".outcome li")].map((line) =>
    [line.querySelector(".name").textContent, { ...line.dataset }]);
  const moves = [];
  function change(column, value, control) {
    control.dispatchEvent(new Event("change"));
    moves.push({ name: column.name, kind: column.kind, value, outcome: outcome() });
    back();
  }
  back();
  page.whatIf.features.forEach((column, place) => {
    const line = document.getElementById(`move-${place}`);
    if (column.kind === "category") {
      for (const choice of [0, line.options.length - 2, line.options.length - 1]) {
        line.selectedIndex = choice;
        change(column, line.options[choice].text, line);
      }
      return;
    }
    const exact = [...document.querySelectorAll(".slider input")].find((input) =>
      (input.getAttribute("aria-label") || "").startsWith(`${column.name}, exact value`));
    const middle = column.low + (column.high - column.low) / 3;
    for (const value of [column.kind === "number" ? middle : Math.round(middle), null]) {
      exact.value = value === null ? "" : column.kind === "date" ? date(value) : value;
      change(column, value, exact);
    }
  });
  return moves;
})()
"""


def check_page(page, model, X):
    """Run the report and compare what it says of changed rows with Python."""
    page.open(Path("m.html").absolute())
    page.run(PLAY)
    first = X.iloc[[page.run("page.whatIf.numbers[0]") - 1]]
    moves = page.run(MOVE)
    assert {move["name"] for move in moves} <= set(X.columns)
    assert len(moves) > len(X.columns) or len(X.columns) > 20
    for move in moves:
        name, value = move["name"], move["value"]
        if move["kind"] == "category":
            value = None if value == "missing" else value
            if pd.api.types.is_numeric_dtype(X[name]):  # true and false are numbers here
                value = {"false": 0.0, "true": 1.0}.get(value, np.nan)
        row = first.assign(**{name: pd.Series([value], first.index, X[name].dtype)})
        if hasattr(model, "classes_"):
            chances = dict(zip(map(str, model.classes_), model.predict_proba(row)[0], strict=True))
            for label, shown in move["outcome"]:
                assert float(shown["chance"]) == pytest.approx(chances[label], abs=1e-6), move
        else:
            ((_, shown),) = move["outcome"]
            found = [float(shown[name]) for name in ("prediction", "lower", "upper")]
            np.testing.assert_allclose(found, [*model.predict(row), *spread(model, row)[0]])
    assert page.complaints() == []

"""`mbkl fit`."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

SMALL = ["--n-maps", "40", "--jobs", "1"]


def write_formats(folder, people):
    """Write numbers and labels in all formats; return the files and their targets."""
    numbers = people[["age", "member"]].astype(float)
    labels = (people["income"] == "high").astype(int)
    frame = numbers.assign(income=people["income"])
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_csv(folder / "a.csv.gz", index=False)
    frame.to_csv(folder / "a.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "a.parquet")
    frame.to_feather(folder / "a.feather")
    np.savez(folder / "a.npz", X=numbers, y=labels)
    np.save(folder / "a.npy", numbers.assign(y=labels))
    dump_svmlight_file(numbers.fillna(0.0), labels, str(folder / "a.svm"))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("a.csv", "income"),
        ("a.csv.gz", "income"),
        ("a.tsv", -1),
        ("a.parquet", "income"),
        ("a.feather", 2),
        ("a.npz", None),
        ("a.npy", -1),
        ("a.svm", None),
    ],
)
def test_every_format(mbkl, tmp_path, people, name, target):
    write_formats(tmp_path, people)
    arguments = [] if target is None else ["--target", target]
    result = mbkl.json("fit", name, *arguments, *SMALL)
    assert result["model"] == "a.mbkl"
    assert result["rows"] == 90
    assert result["classes"] == ([0, 1] if name in ("a.npz", "a.npy", "a.svm") else ["high", "low"])
    predictions = mbkl.json("predict", "a.mbkl", name)
    assert len(predictions["label"]) == 90


def test_what_the_user_is_told(mbkl, people_csv):
    result = mbkl("fit", people_csv, "-t", "income", "-o", "m.mbkl", *SMALL)
    assert result.out == ""
    assert "Column 'key' is left out: 90 different texts" in result.err
    assert result.lines[-1].startswith("m.mbkl: 2 classes, learned from 90 rows of 5 columns")


def test_quiet_is_quiet(mbkl, people_csv):
    result = mbkl("fit", people_csv, "-t", "income", "-o", "m.mbkl", "--quiet", *SMALL)
    assert (result.out, result.err) == ("", "")


def test_options_reach_the_model(mbkl, people_csv):
    options = ["--maps", "stumps", "--theta", "learned", "-C", "2", "--loss", "logistic"]
    options += ["--balanced", "--seed", "7", "--jobs", "1", "--max-time", "60"]
    mbkl("fit", people_csv, "-t", "income", "-o", "m.mbkl", *options, *SMALL)
    shown = mbkl.json("info", "m.mbkl")
    expected = {
        "maps": "stumps",
        "n_maps": 40,
        "theta": "learned",
        "C": 2.0,
        "loss": "logistic",
        "class_weight": "balanced",
        "random_state": 7,
    }
    assert expected.items() <= shown["parameters"].items()
    assert shown["C"] == 2.0


def test_tuned_models(mbkl, people_csv):
    arguments = ["-t", "income", "-o", "m.mbkl", "--tune", "--maps", "stumps", "-C", "3"]
    assert mbkl.json("fit", people_csv, *arguments, *SMALL)["C"] == 3.0


def test_the_same_seed_gives_the_same_file(mbkl, people_csv, tmp_path):
    for name in ("a.mbkl", "b.mbkl"):
        mbkl("fit", people_csv, "-t", "income", "-o", name, *SMALL)
    assert (tmp_path / "a.mbkl").read_bytes() == (tmp_path / "b.mbkl").read_bytes()


def test_an_old_model_is_replaced_but_never_the_data(mbkl, people_csv, tmp_path):
    (tmp_path / "m.mbkl").write_text("old")
    mbkl("fit", people_csv, "-t", "income", "-o", "m.mbkl", *SMALL)
    assert (tmp_path / "m.mbkl").stat().st_size > 100
    line = mbkl.error("fit", people_csv, "-t", "income", "-o", people_csv, *SMALL)
    assert "read by this command" in line


# ---------------------------------------------------------------- bad input


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file, here with a name that commands find."""

    def write_file(text, name="bad.csv"):
        (tmp_path / name).write_text(text)
        return name

    return write_file


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("", "y", "bad.csv: the file is empty"),
        ("a,y\n", "y", "bad.csv: there are no rows"),
        ("a,y\n1,u\n2,v\n", "z", "bad.csv: no column 'z'; there are: a, y"),
        ("a,Label\n1,u\n2,v\n", "label", "did you mean 'Label'"),
        ("a,y\n1,u\n2,v\n", "7", "no column '7'"),
        ("a,y\n1,u\n2,u\n", "y", "bad.csv, column 'y': the label is always u"),
        ("a,y\n1,\n2,\n", "y", "bad.csv, column 'y': the label is empty"),
        ("a,y\n1,0.5\n2,0.5\n", "y", "bad.csv, column 'y': the label is always 0.5"),
        ("a,y\n1,u\n2\n", "y", "Expected 2 columns, got 1"),
        ("a,y\n1,u\ninf,v\n", "y", "bad.csv, row 2, column 'a': infinity"),
        ("y\nu\nv\n", "y", "No column is left"),
    ],
)
def test_bad_tables(mbkl, write, text, target, words):
    line = mbkl.error("fit", write(text), "-t", target)
    assert words in line


def test_a_target_is_needed(mbkl, people_csv):
    line = mbkl.error("fit", people_csv)
    assert "--target" in line
    assert "key, age, town" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv", "-t", "y"], "none.csv: there is no such file"),
        (["a.csv", "-t", "y", "-o", "nowhere/m.mbkl"], "no folder nowhere"),
        (["a.csv", "-t", "y", "-o", "."], "is a folder"),
        (["a.csv", "-t", "y", "--drop", "b"], "no column 'b'"),
        (["a.parquet", "-t", "y"], "a.parquet: this is no readable .parquet file"),
        (["a.csv", "-t", "y", "--jobs", "0"], "n_jobs"),
        (["a.csv", "-t", "y", "-C", "-1"], "'C' parameter"),
        (["a.csv", "-t", "y", "--encoding", "klingon"], "a.csv"),
    ],
)
def test_bad_arguments(mbkl, write, arguments, words):
    write("a,y\n1,u\n2,v\n3,u\n4,v\n", "a.csv")
    write("PAR1 nonsense", "a.parquet")
    assert words in mbkl.error("fit", *arguments)


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="no such permissions")
def test_a_folder_that_cannot_be_written_to(mbkl, people_csv, tmp_path, monkeypatch):
    folder = tmp_path / "locked"
    folder.mkdir()
    # The superuser may write anywhere, whatever the mode of a folder says.
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder.relative_to(tmp_path))
    line = mbkl.error("fit", people_csv, "-t", "income", "-o", "locked/m.mbkl")
    assert "nothing can be written to the folder locked" in line


def test_rows_without_a_label_are_left_out(mbkl, write):
    rows = [f"{number},{'uv'[number % 2]}" for number in range(20)] + ["3,", "4,NA"]
    result = mbkl.json("fit", write("a,y\n" + "\n".join(rows)), "-t", "y", *SMALL)
    assert result["rows"] == 20
    assert any("2 rows without a label" in note for note in result["notes"])


def test_dropped_and_text_columns(mbkl, people, tmp_path):
    people.assign(code=np.arange(90) % 3).to_csv("p.csv", index=False)
    arguments = ["-t", "income", "--drop", "street", "--drop", "key", "--text", "code"]
    mbkl("fit", "p.csv", *arguments, *SMALL)
    rules = {rule["name"]: rule["kind"] for rule in mbkl.json("info", "p.mbkl")["rules"]}
    assert rules["code"] == "text"
    assert "street" not in rules
    assert pd.read_csv("p.csv")["code"].dtype.kind == "i"

"""Files as people have them, through every command."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SMALL = ["--n-maps", "40", "--jobs", "1"]
FILES = Path(os.environ.get("MBKL_DATA", "")) / "tables"


@pytest.fixture
def sorted_rows():
    """Return rows that tell nothing, sorted by the label, so that their numbers tell all."""
    noise = np.random.default_rng(0).normal(size=(120, 2))
    frame = pd.DataFrame(noise, columns=["a", "b"])
    return frame.assign(y=np.repeat(["no", "yes"], 60))


def write(frame, way):
    """Write rows with their numbers, and return the name of the file."""
    if way == "csv":
        frame.to_csv("rows.csv")
        return "rows.csv"
    if way == "Unnamed: 0":
        frame.rename_axis("Unnamed: 0").reset_index().to_csv("rows.csv", index=False)
        return "rows.csv"
    if way == "row names of R":
        Path("rows.csv").write_text(frame.to_csv().removeprefix(","))
        return "rows.csv"
    frame.rename_axis("key" if way == "named index" else None).to_parquet("rows.parquet")
    return "rows.parquet"


WAYS = ["csv", "Unnamed: 0", "row names of R", "index", "named index"]


@pytest.mark.parametrize("way", WAYS)
def test_an_index_is_no_feature_for_any_command(mbkl, sorted_rows, way):
    name = write(sorted_rows.sample(frac=1.0, random_state=0), way)
    note = "'key' is left out" if way == "named index" else "_' is left out"
    note = note if name.endswith("parquet") else "'Unnamed: 0' is left out"

    def told(*arguments):
        result = mbkl(*arguments, "--json")
        assert note in result.err, arguments[0]
        return result.out

    assert '"features": 2' in told("fit", name, "-t", "y", *SMALL)
    told("predict", "rows.mbkl", name)
    told("explain", "rows.mbkl", name)
    told("report", "rows.mbkl", name)
    told("evaluate", name, "--model", "rows.mbkl")
    arguments = ["-t", "y", "--folds", "3", *SMALL]
    told("compare", name, "--rival", "linear-svm", *arguments)
    told("evaluate", name, *arguments)
    assert mbkl.json("evaluate", name, *arguments)["accuracy"] < 0.7
    # New rows need no index, and may have another.
    sorted_rows[["b", "a"]].to_csv("new.csv", index=False)
    assert len(mbkl.json("predict", "rows.mbkl", "new.csv")["label"]) == 120


def test_an_index_can_be_copied_to_the_predictions(mbkl, sorted_rows):
    shuffled = sorted_rows.sample(frac=1.0, random_state=0)
    name = write(shuffled, "named index")
    mbkl("fit", name, "-t", "y", *SMALL)
    found = mbkl.json("predict", "rows.mbkl", name, "--keep", "key")
    assert found["key"] == shuffled.index.tolist()


@pytest.mark.parametrize("written", [(True, False), ("TRUE", "FALSE"), ("yes", "no"), (1, 0)])
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_targets_that_are_true_or_false(mbkl, written, name):
    a = np.random.default_rng(0).normal(size=60)
    frame = pd.DataFrame({"a": a, "y": [written[0] if one > 0 else written[1] for one in a]})
    (frame.to_csv if name == "a.csv" else frame.to_parquet)(name, index=False)
    frame.to_csv("test.csv", index=False)
    mbkl("fit", name, "-t", "y", *SMALL)
    assert mbkl.json("evaluate", "test.csv", "--model", "a.mbkl")["accuracy"] > 0.9
    arguments = ["evaluate", name, "-t", "y", "--test", "test.csv", *SMALL]
    assert mbkl.json(*arguments)["accuracy"] > 0.9
    assert mbkl("report", "a.mbkl", "test.csv").err


def test_files_without_names_from_training_to_prediction(mbkl, tmp_path):
    draw = np.random.default_rng(0).integers(0, 9, (60, 3)).tolist()
    rows = [f"{a} {b}  {c} {'u' if a > b else 'v'}" for a, b, c in draw]
    Path("a.data").write_text("\n".join(rows))
    mbkl("fit", "a.data", "--no-header", "-t", "column_4", *SMALL)
    Path("new.data").write_text("8 1 2 u\n")
    assert mbkl.json("predict", "a.mbkl", "new.data")["label"] == ["u"]
    result = mbkl.json(
        "evaluate", "a.data", "--no-header", "-t", "-1", "--test", "new.data", *SMALL
    )
    assert result["rows"] == 1


def test_decimals_and_encodings_from_training_to_prediction(mbkl, sorted_rows):
    frame = sorted_rows.assign(straße="Köln", a=sorted_rows["b"] + 5 * (sorted_rows["y"] == "yes"))
    frame.to_csv("a.csv", sep=";", decimal=",", encoding="cp1252", index=False)
    frame.to_csv("b.csv", sep="\t", encoding="utf-16", index=False)
    assert "read as cp1252" in mbkl("fit", "a.csv", "-t", "y", *SMALL).err
    for name in ("a.csv", "b.csv"):
        assert mbkl.json("evaluate", name, "--model", "a.mbkl")["accuracy"] > 0.9
    assert mbkl.json("fit", "a.csv", "-t", "y", "--decimal", ",", *SMALL)["features"] == 3


@pytest.mark.parametrize("command", ["fit", "evaluate", "compare"])
def test_targets_that_are_no_classes(mbkl, command):
    prices = np.random.default_rng(0).integers(300, 9_000, 200)
    y = [f"key {number}" for number in range(200)]
    pd.DataFrame({"a": prices, "y": y}).to_csv("a.csv", index=False)
    line = mbkl.error(command, "a.csv", "-t", "y")
    assert "a.csv, column 'y'" in line
    assert "different labels in 200 rows are no classes" in line
    assert "--target" in line
    assert "--task classification" in line


def test_numbers_can_be_made_classes(mbkl):
    frame = pd.DataFrame({"a": [1, 2, 3] * 10, "y": [0.5, 1.5, 2.5] * 10})
    frame.to_csv("a.csv", index=False)
    result = mbkl.json("fit", "a.csv", "-t", "y", "--task", "classification", *SMALL)
    assert result["classes"] == ["0.5", "1.5", "2.5"]
    assert mbkl.json("evaluate", "a.csv", "--model", "a.mbkl")["accuracy"] == 1.0


ODD = {
    "one row": "a,y\n1,u\n",
    "names only": "a,y\n",
    "nothing": "",
    "blank lines": "\n\n\n",
    "one column": "y\nu\nv\n",
    "an unclosed quote": 'a,y\n"1,u\n2,v\n',
    "short rows": "a,y\n1\n2,v\n",
    "long rows": "a,y\n1,u,3\n2,v,4,5\n",
    "a comment in between": "a,y\n1,u\n# half\n2,v\n",
    "labels missing": "a,y\n1,\n2,\n",
    "features missing": "a,y\n,u\n,v\n,u\n,v\n",
    "a page of the web": "<!DOCTYPE html>\n<html><body>\n<p>404, not found</p>\n</body></html>\n",
    "JSON": '{"a": [1, 2], "y": ["u", "v"]}\n',
    "bytes": "\x00\x01\x02",
    "infinity": "a,y\n1,u\ninf,v\n2,u\n3,v\n",
    "names with quotes": 'a"b,y\n1,u\n2,v\n',
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("command", ["fit", "evaluate", "compare"])
def test_odd_files_give_no_traceback(mbkl, capsys, command, name):
    from mbkl.cli import main

    Path("odd.csv").write_text(ODD[name])
    code = main([command, "odd.csv", "-t", "y", *SMALL])
    errors = capsys.readouterr().err
    assert code in (0, 1)
    assert "Traceback" not in errors
    assert "unexpected" not in errors
    if code:
        assert "odd.csv" in errors.splitlines()[-1]


@pytest.mark.skipif(not FILES.exists(), reason="MBKL_DATA names no folder with these files")
def test_a_real_target_that_is_a_number(mbkl):
    found = mbkl("evaluate", FILES / "birthwt.csv", "-t", "bwt", "--folds", "2")
    assert "R2" in found.out


def test_columns_with_names_of_python(mbkl):
    frame = pd.DataFrame({"self": range(40), "class": ["u", "v"] * 20, "y": [0] * 20 + [1] * 20})
    frame.to_csv("a.csv", index=False)
    mbkl("fit", "a.csv", "-t", "y", *SMALL)
    assert len(mbkl.json("predict", "a.mbkl", "a.csv")["label"]) == 40


def test_a_column_without_a_name_that_is_empty_in_new_rows(mbkl):
    rows = "".join(f"{'*' if age > 30 else ''},{age},{int(age > 20)}\n" for age in range(40))
    Path("a.csv").write_text(",age,y\n" + rows)
    Path("new.csv").write_text(",age\n,5\n,25\n")
    mbkl("fit", "a.csv", "-t", "y", *SMALL)
    assert mbkl.json("predict", "a.mbkl", "new.csv")["label"] == [0, 1]


def test_a_column_that_tells_the_label_by_itself_is_named(mbkl, sorted_rows):
    sorted_rows.assign(code=np.where(sorted_rows["y"] == "no", "B2", "A1")).to_csv(
        "leak.csv", index=False
    )
    note = "Column 'code' alone tells 'y' almost perfectly"
    options = ["leak.csv", "-t", "y", *SMALL]
    found = mbkl("fit", *options, "--json")
    assert note in found.err
    assert note in found.out
    assert note in mbkl("evaluate", *options, "--folds", "2").err
    mbkl("report", "leak.mbkl", "leak.csv")
    assert note in Path("leak.html").read_text()
    assert "alone tells" not in mbkl("fit", *options, "--drop", "code").err

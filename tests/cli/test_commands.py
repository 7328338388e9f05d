"""From a file to a model, and what is done with models."""

import io
import json
import os

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from mbkl import MBKLClassifier
from mbkl.cli import commands
from mbkl.cli.console import Console
from mbkl.io import load, load_extra, save
from mbkl.maps import Ferns
from mbkl.tabular import TableEncoder

SMALL = ["--n-maps", "40", "--jobs", "1"]


# ---------------------------------------------------------------- mbkl fit


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
    assert result["columns"] == 2
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


# ---------------------------------------------------------------- mbkl predict


def expected_of(model_file, people):
    model, rules = load(model_file), load_extra(model_file)["rules"]
    encoder = TableEncoder.from_rules(rules)
    return model, encoder.transform(people)


def test_labels_go_to_stdout(mbkl, model_file, people_csv, people):
    result = mbkl("predict", model_file, people_csv)
    assert result.err == ""
    model, X = expected_of(model_file, people)
    found = pd.read_csv(io.StringIO(result.out))
    assert list(found.columns) == ["label"]
    assert found["label"].tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_labels_probabilities_and_keys_go_to_a_file(mbkl, model_file, people_csv, people, name):
    result = mbkl("predict", model_file, people_csv, "-o", name, "--proba", "--keep", "key")
    assert result.out == ""
    assert "90 predictions" in result.err
    found = pd.read_csv(name) if name.endswith("csv") else pd.read_parquet(name)
    assert list(found.columns) == ["key", "label", "probability high", "probability low"]
    assert found["key"].tolist() == people["key"].tolist()
    model, X = expected_of(model_file, people)
    np.testing.assert_allclose(
        found[["probability high", "probability low"]], model.predict_proba(X)
    )
    assert found["label"].tolist() == model.predict(X).tolist()


def test_json(mbkl, model_file, people_csv):
    content = mbkl.json("predict", model_file, people_csv, "--proba")
    assert set(content) == {"label", "probability high", "probability low"}
    assert mbkl.json("predict", model_file, people_csv, "-o", "p.csv") == {
        "output": "p.csv",
        "rows": 90,
    }


def test_quiet_keeps_the_result_only(mbkl, model_file, people_csv):
    assert mbkl("predict", model_file, people_csv, "-q").out.startswith("label\n")
    result = mbkl("predict", model_file, people_csv, "-q", "-o", "p.csv")
    assert (result.out, result.err) == ("", "")


def test_columns_are_found_by_name_and_others_do_not_matter(mbkl, model_file, people_csv, people):
    others = people.drop(columns=["income", "key"]).iloc[:, ::-1].assign(more=1)
    others.to_parquet("other.parquet")
    assert mbkl("predict", model_file, "other.parquet").out == (
        mbkl("predict", model_file, people_csv).out
    )


def test_a_column_to_keep_must_not_have_the_name_of_the_predictions(mbkl, model_file, people):
    people.assign(label=0).to_csv("new.csv", index=False)
    message = mbkl.error("predict", model_file, "new.csv", "--keep", "label")
    assert "'label' is the name of a column of predictions" in message


def test_text_that_looks_like_numbers_in_new_rows(mbkl, tmp_path):
    rows = [f"{'1' if n % 2 else 'x'},{n % 7},{'u' if n % 2 else 'v'}" for n in range(40)]
    (tmp_path / "a.csv").write_text("code,n,y\n" + "\n".join(rows))
    (tmp_path / "b.csv").write_text("code,n\n1,3\n1,4\n")
    mbkl("fit", "a.csv", "-t", "y", "--n-maps", "40")
    assert mbkl.json("predict", "a.mbkl", "b.csv")["label"] == ["u", "u"]


def test_missing_marks_of_the_training_hold_for_new_rows(mbkl, tmp_path):
    rows = [f"{n if n % 5 else 'none given'};{'u' if n > 20 else 'v'}" for n in range(40)]
    (tmp_path / "a.csv").write_text("n;y\n" + "\n".join(rows))
    mbkl("fit", "a.csv", "-t", "y", "--missing", "none given", "--n-maps", "40")
    assert len(mbkl.json("predict", "a.mbkl", "a.csv")["label"]) == 40


def test_sparse_rows_may_have_fewer_or_more_features(mbkl, tmp_path):
    X = np.random.default_rng(0).poisson(0.5, (40, 6))
    y = (X[:, 0] > X[:, 1]).astype(int)
    dump_svmlight_file(X, y, "a.svm")
    dump_svmlight_file(X[:, :3], y, "fewer.svm")
    dump_svmlight_file(np.hstack([X, X]), y, "more.svm")
    mbkl("fit", "a.svm", "--n-maps", "40")
    labels = mbkl.json("predict", "a.mbkl", "a.svm")["label"]
    assert mbkl.json("predict", "a.mbkl", "more.svm")["label"] == labels
    assert len(mbkl.json("predict", "a.mbkl", "fewer.svm")["label"]) == 40


def test_sparse_models_are_explained_and_exported(mbkl, tmp_path):
    (tmp_path / "a.svm").write_text("0 1:1\n1 2:1\n0 1:2\n1 2:2\n" * 9)
    mbkl("fit", "a.svm", "--n-maps", "10")
    assert mbkl.json("info", "a.mbkl")["rules"] is None
    assert mbkl("info", "a.mbkl").out
    assert "x1" in mbkl("explain", "a.mbkl", "a.svm", "--row", "36").out
    assert "the last one is 36" in mbkl.error("explain", "a.mbkl", "a.svm", "--row", "37")
    mbkl("report", "a.mbkl", "a.svm", "-o", "a.html")
    mbkl("export", "a.mbkl", "--c", "a.h")


def test_models_saved_by_the_library(mbkl, people):
    from mbkl import MBKLClassifier

    X = people[["age", "member"]].astype(float)
    model = MBKLClassifier(n_maps=40, random_state=0)
    save(model.fit(X, people["income"]), "named.mbkl")
    save(model.fit(X.to_numpy(), people["income"]), "plain.mbkl")
    np.savez("two.npz", X=X)
    people.to_parquet("p.parquet")
    labels = mbkl.json("predict", "named.mbkl", "p.parquet")["label"]
    assert mbkl.json("predict", "plain.mbkl", "two.npz")["label"] == labels
    np.savez("three.npz", X=X.assign(more=0.0))
    assert "3 columns, but the model has 2" in mbkl.error("predict", "plain.mbkl", "three.npz")


def test_models_of_frames_with_text_saved_by_the_library(mbkl, people, people_csv):
    from mbkl import MBKLClassifier

    X = people[["age", "town", "member"]].assign(street=people["street"].astype("category"))
    model = MBKLClassifier(n_maps=40, random_state=0).fit(X, people["income"])
    save(model, "frame.mbkl")
    labels = mbkl.json("predict", "frame.mbkl", people_csv)["label"]
    assert labels == model.predict(X).tolist()


def test_numbers_beyond_float32_are_its_largest(mbkl, model_file, people):
    labels = []
    for age in (1e30, 1e300):
        people.assign(age=age).to_csv("far.csv", index=False)
        labels.append(mbkl.json("predict", model_file, "far.csv")["label"])
    assert labels[0] == labels[1]


# ---------------------------------------------------------------- bad input


def test_a_missing_column(mbkl, model_file, people):
    people.drop(columns="age").assign(Age=1).to_csv("b.csv", index=False)
    line = mbkl.error("predict", model_file, "b.csv")
    assert line == "mbkl: b.csv: no column 'age'; did you mean 'Age'?"


def test_missing_columns_that_no_other_is_like(mbkl, model_file, people):
    people.drop(columns=["age", "since"]).to_csv("b.csv", index=False)
    line = mbkl.error("predict", model_file, "b.csv")
    assert line == (
        "mbkl: b.csv: no column 'age', 'since', as in training; add what is missing, with empty "
        "fields where nothing is known."
    )


def test_what_a_file_holds_cannot_get_at_the_terminal(mbkl, model_file, tmp_path):
    (tmp_path / "b.csv").write_bytes(b"a\n1,\x1b[31mred\n")
    assert "\x1b" not in mbkl.error("predict", model_file, "b.csv")


def test_text_in_a_column_of_numbers(mbkl, model_file, people):
    people["age"] = people["age"].astype(object)
    people.loc[6, "age"] = "seven"
    people.to_csv("b.csv", index=False)
    line = mbkl.error("predict", model_file, "b.csv")
    assert "b.csv, row 7, column 'age': 'seven' is no number" in line


def test_sparse_rows_for_a_model_of_columns(mbkl, model_file, tmp_path):
    (tmp_path / "a.svm").write_text("0 1:1\n")
    assert "no columns with names" in mbkl.error("predict", model_file, "a.svm")


def test_unknown_columns_to_keep(mbkl, model_file, people_csv):
    assert "no column 'id'" in mbkl.error("predict", model_file, people_csv, "--keep", "id")


def test_probabilities_need_no_option(mbkl, people_csv):
    mbkl("fit", people_csv, "-t", "income", "-o", "m.mbkl", "--n-maps", "40")
    mbkl("predict", "m.mbkl", people_csv, "--proba", "-o", "p.csv")


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "no mbkl model file"), (b"a,b\n1,2\n", "no mbkl model file"), (None, "no such file")],
)
def test_what_is_no_model(mbkl, tmp_path, people_csv, content, words):
    if content is not None:
        (tmp_path / "m.mbkl").write_bytes(content)
    line = mbkl.error("predict", "m.mbkl", people_csv)
    assert "m.mbkl" in line
    assert words in line


def test_a_damaged_model(mbkl, model_file, people_csv, tmp_path):
    content = bytearray(model_file.read_bytes())
    content[-100] ^= 1
    (tmp_path / "m.mbkl").write_bytes(content)
    line = mbkl.error("predict", "m.mbkl", people_csv)
    assert "m.mbkl: The model file is damaged" in line
    assert "'mbkl fit' writes a new one" in line


@pytest.mark.parametrize(
    "extra",
    [
        {"rules": 3},
        {"rules": [3]},
        {"dialect": {"anything": 1}},
        {"dialect": []},
        {"target": 5},
    ],
    ids=json.dumps,
)
def test_models_with_nonsense_about_tables(mbkl, model_file, people_csv, extra):
    save(load(model_file), "m.mbkl", extra=extra)
    assert "makes no sense" in mbkl.error("predict", "m.mbkl", people_csv)


def test_a_kernel_cannot_predict(mbkl, people_csv):
    from mbkl import MBKernel

    save(MBKernel(n_maps=10).fit([[0.0], [1.0]], [0, 1]), "k.mbkl")
    assert "MBKernel, which cannot predict" in mbkl.error("predict", "k.mbkl", people_csv)


@pytest.mark.parametrize("name", ["nowhere/p.csv", "p.mbkl/p.csv"])
def test_outputs_that_cannot_be_written(mbkl, model_file, people_csv, name):
    assert "no folder" in mbkl.error("predict", model_file, people_csv, "-o", name)


def test_the_model_is_not_overwritten(mbkl, model_file, people_csv, tmp_path):
    copy = tmp_path / "copy.csv"
    copy.write_bytes(people_csv.read_bytes())
    assert "read by this command" in mbkl.error("predict", model_file, "copy.csv", "-o", "copy.csv")


# ---------------------------------------------------------------- mbkl report


def test_one_page(mbkl, model_file, people_csv, people, tmp_path):
    people[:20].to_csv("test.csv", index=False)
    arguments = ["report", model_file, people_csv, "--test", "test.csv", "--title", "All people"]
    result = mbkl.json(*arguments, "-o", "page.html")
    assert result == {"output": "page.html", "rows": 90}
    page = (tmp_path / "page.html").read_text()
    assert "All people" in page
    assert '"Rome"' in page
    assert "town=Rome" not in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "nowhere/a.html"], "no folder nowhere"),
        (["--target", "nothing"], "no column 'nothing'"),
    ],
)
def test_bad_arguments_of_report(mbkl, model_file, people_csv, arguments, words):
    assert words in mbkl.error("report", model_file, people_csv, *arguments)


# ---------------------------------------------------------------- mbkl export


def test_both_at_once(mbkl, model_file, tmp_path):
    result = mbkl.json("export", model_file, "--onnx", "m.onnx", "--c", "m.h", "--name", "people")
    assert result == {"onnx": "m.onnx", "c": "m.h"}
    assert (tmp_path / "m.onnx").stat().st_size > 1000
    assert "int people_predict(const float *x)" in (tmp_path / "m.h").read_text()


def test_progress(mbkl, model_file, monkeypatch):
    seen = []
    monkeypatch.setattr(Console, "step", lambda _, words: seen.append(words))
    mbkl("export", model_file, "--onnx", "m.onnx", "--c", "m.h")
    assert seen == [f"reading {model_file.name}", "writing m.onnx", "writing m.h"]


def test_quiet(mbkl, model_file):
    result = mbkl("export", model_file, "--c", "m.h", "--quiet")
    assert (result.out, result.err) == ("", "")


def test_bad_arguments_of_export(mbkl, model_file):
    assert "no folder nowhere" in mbkl.error("export", model_file, "--c", "nowhere/m.h")
    assert "name must be" in mbkl.error("export", model_file, "--c", "m.h", "--name", "a b")
    assert "read by this command" in mbkl.error("export", model_file, "--c", model_file)
    same = ["--onnx", "m.x", "--c", "m.x"]
    assert "the same file" in mbkl.error("export", model_file, *same, code=2)


# ---------------------------------------------------------------- mbkl info


def test_what_a_model_knows(mbkl, model_file):
    content = mbkl.json("info", model_file)
    assert content["classes"] == ["high", "low"]
    assert content["target"] == "income"
    kinds = {rule["name"]: rule["kind"] for rule in content["rules"]}
    assert kinds == {
        "age": "number",
        "town": "text",
        "street": "text",
        "member": "number",
        "since": "number",
    }


def test_in_words(mbkl, model_file):
    shown = mbkl("info", model_file).out
    assert "high, low" in shown
    assert "random_state=0" in shown
    assert "town (text)" in shown


def test_parameters_of_maps_that_were_given(mbkl, make_data):
    save(MBKLClassifier(maps=Ferns(depth=3), n_maps=20).fit(*make_data()), "a.mbkl")
    assert "maps=Ferns(depth=3), n_maps=20" in mbkl("info", "a.mbkl").out
    assert mbkl.json("info", "a.mbkl")["parameters"]["maps"]["depth"] == 3


# ---------------------------------------------------------------- mbkl demo


def test_it_runs_every_command(mbkl, tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(commands, "_run_line", lambda line, console: ran.append(line.split()[0]))
    result = mbkl.json("demo", "here")
    assert set(ran) == {"fit", "info", "evaluate", "explain", "predict", "export"} | {
        "report",
        "compare",
    }
    assert result == {"folder": "here", "files": ["test.csv", "train.csv"]}
    header = (tmp_path / "here" / "train.csv").read_text().split("\n")[0]
    assert header.endswith(",diagnosis")


def test_its_commands_work(mbkl, tmp_path, monkeypatch):
    plain = commands._demo_lines
    monkeypatch.setattr(commands, "_demo_lines", lambda folder: plain(folder)[:2])
    result = mbkl("demo", "a folder")
    assert "$ mbkl fit 'a folder/train.csv'" in result.err
    assert "benign, malignant" in result.out
    assert (tmp_path / "a folder" / "model.mbkl").exists()
    quiet = mbkl("demo", "a folder", "--quiet", "--json")
    assert quiet.err == ""
    assert quiet.out.startswith("{")


def test_it_stops_where_a_command_fails(mbkl, monkeypatch):
    monkeypatch.setattr(commands, "_demo_lines", lambda folder: ["info nothing", "info nothing"])
    errors = mbkl("demo", code=1).lines
    assert errors[-2] == "$ mbkl info nothing"
    assert "no such file" in errors[-1]

"""`mbkl predict`."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from mbkl.cli.console import Console
from mbkl.cli.models import Trained
from mbkl.io import load, load_extra, save
from mbkl.tabular import TableEncoder


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


def test_rows_are_those_that_exported_models_see(mbkl, model_file, people):
    """A number that float32 rounds to a threshold is above it for neither of them."""
    trained = Trained.load(model_file)
    ferns = trained.model.predictor_.maps.families[-1]
    asks_age = (ferns.features == 0) & np.isfinite(ferns.thresholds)
    threshold = ferns.thresholds[asks_age][0]
    ages = np.array([threshold, np.nextafter(threshold, np.inf)])
    people.head(2).assign(age=ages, town="Rome").to_csv("near.csv", index=False)
    X = trained.features(trained.read(Path("near.csv"), Console()))
    assert set(X.select_dtypes("number").dtypes) == {np.dtype(np.float32)}
    assert X["age"].tolist() == [threshold, threshold]


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
        {"rules": [{"name": "a", "kind": "number"}]},
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

"""`mbkl evaluate`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix, log_loss

SMALL = ["--n-maps", "40", "--jobs", "1"]


def test_a_model_on_a_table(mbkl, model_file, people_csv, people):
    result = mbkl.json("evaluate", people_csv, "--model", model_file)
    found = mbkl.json("predict", model_file, people_csv, "--proba")
    y, guess = people["income"], found["label"]
    assert result["rows"] == 90
    assert result["accuracy"] == pytest.approx(accuracy_score(y, guess))
    assert result["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, guess))
    assert result["confusion"] == confusion_matrix(y, guess).tolist()
    probabilities = pd.DataFrame(found)[["probability high", "probability low"]]
    assert result["log_loss"] == pytest.approx(log_loss(y, probabilities))
    assert [one["label"] for one in result["classes"]] == ["high", "low"]


def test_cross_validation(mbkl, people_csv):
    arguments = ["evaluate", people_csv, "-t", "income", "--folds", "3", *SMALL]
    result = mbkl.json(*arguments)
    assert result["rows"] == 90
    assert len(result["fold_accuracies"]) == 3
    mean = sum(result["fold_accuracies"]) / 3
    assert result["accuracy"] == pytest.approx(mean)
    assert result["seconds_per_fit"] > 0
    assert 0 < result["log_loss"] < 1
    assert 0.5 < result["auc"] <= 1
    assert 0 <= result["brier_score"] < 0.5
    shown = mbkl(*arguments, "--quiet")
    assert shown.err == ""
    assert "precision" in shown.out
    assert "accuracy of the folds" in shown.out


@pytest.mark.parametrize("command", ["fit", "evaluate", "compare"])
def test_the_notes_are_those_of_a_fit(mbkl, people, command):
    people.insert(0, "id", range(90))
    people.to_csv("a.csv", index=False)
    options = {
        "evaluate": ["--folds", "2"],
        "compare": ["--folds", "2", "--rival", "most-frequent"],
    }
    result = mbkl(command, "a.csv", "-t", "income", *options.get(command, []), *SMALL)
    assert "Column 'id' counts the rows; leave it out" in result.err
    assert "Column 'key' is left out" in result.err


def test_a_test_table(mbkl, people):
    people[:60].to_csv("train.csv", index=False)
    people[60:].to_parquet("test.parquet")
    result = mbkl.json("evaluate", "train.csv", "-t", "income", "--test", "test.parquet", *SMALL)
    assert result["rows"] == 30
    assert "fold_accuracies" not in result


def test_labels_that_look_like_numbers_in_the_test(mbkl, tmp_path):
    rows = [f"{n},{'1' if n % 2 else 'x'}" for n in range(30)]
    (tmp_path / "train.csv").write_text("a,y\n" + "\n".join(rows))
    (tmp_path / "test.csv").write_text("a,y\n1,1\n3,1\n")
    arguments = ["evaluate", "train.csv", "-t", "y", "--test", "test.csv", *SMALL]
    assert mbkl.json(*arguments)["rows"] == 2
    mbkl("fit", "train.csv", "-t", "y", *SMALL)
    assert mbkl.json("evaluate", "test.csv", "--model", "train.mbkl")["rows"] == 2


def test_unknown_labels(mbkl, people, model_file):
    people.loc[3, "income"] = "enormous"
    people.to_csv("test.csv", index=False)
    line = mbkl.error("evaluate", "test.csv", "--model", model_file)
    assert "test.csv, column 'income': label 'enormous'" in line


def test_a_table_without_labels(mbkl, people, model_file):
    people.drop(columns="income").to_csv("test.csv", index=False)
    line = mbkl.error("evaluate", "test.csv", "--model", model_file)
    assert "no column 'income'" in line
    people.assign(income=None).to_csv("test.csv", index=False)
    line = mbkl.error("evaluate", "test.csv", "--model", model_file)
    assert "test.csv, column 'income': the label is empty in all rows" in line


def test_a_place_of_text_labels(mbkl, people_csv, model_file):
    arguments = ["evaluate", people_csv, "--model", model_file]
    assert mbkl.json(*arguments, "-t", "-1") == mbkl.json(*arguments)


def test_too_few_rows_of_a_class(mbkl, people):
    people.loc[0, "income"] = "enormous"
    people.to_csv("a.csv", index=False)
    result = mbkl("evaluate", "a.csv", "-t", "income", "--calibrate", *SMALL)
    assert "fewer rows than there are folds: 'enormous'" in result.err
    assert "enormous     0" in result.out


def test_a_picture_of_the_probabilities(mbkl, people_csv, tmp_path):
    mbkl("evaluate", people_csv, "-t", "income", "--folds", "2", "--plot", "q.png", *SMALL)
    assert (tmp_path / "q.png").stat().st_size > 1000


def test_a_test_file_of_sparse_rows_may_lack_features(mbkl, tmp_path):
    (tmp_path / "a.svm").write_text("0 1:1\n1 2:1\n0 1:2\n1 2:2\n" * 9)
    (tmp_path / "b.svm").write_text("0 1:1\n0 1:2\n")
    assert mbkl.json("evaluate", "a.svm", "--test", "b.svm", *SMALL)["rows"] == 2
    np.savez("b.npz", X=np.eye(3), y=[0, 0, 1])
    assert mbkl.json("evaluate", "a.svm", "--test", "b.npz", *SMALL)["rows"] == 3
    assert "no columns with names" in mbkl.error("evaluate", "b.npz", "--test", "a.svm")


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_the_largest_class_has_fewer_rows_than_there_are_folds(mbkl, tmp_path, command):
    (tmp_path / "a.csv").write_text("a,y\n1,u\n5,v\n2,u\n6,v\n3,u\n7,v\n4,w\n4,w\n")
    result = mbkl(command, "a.csv", "-t", "y", *SMALL)
    assert "3 classes have fewer rows than there are folds" in result.err
    alone = ["-t", "a", "--task", "classification", "--drop", "y"]
    (tmp_path / "b.csv").write_text("a,y,b\n1,u,3\n5,v,4\n2,u,9\n")
    assert "each class has one row only" in mbkl.error(command, "b.csv", *alone)


@pytest.mark.parametrize("command", ["evaluate", "compare"])
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [("nowhere/q.png", 1, "no folder nowhere"), ("q.doc", 2, "q.doc must end with one of")],
)
def test_pictures_that_cannot_be_drawn(mbkl, people_csv, command, name, code, words):
    arguments = [command, people_csv, "-t", "income", "--plot", name]
    assert words in mbkl.error(*arguments, code=code)

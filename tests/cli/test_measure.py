"""`mbkl evaluate` and `mbkl compare`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix, log_loss

SMALL = ["--n-maps", "40", "--jobs", "1"]


# ---------------------------------------------------------------- mbkl evaluate


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


def test_sparse_and_other_tables_do_not_mix(mbkl, people_csv, tmp_path):
    (tmp_path / "a.svm").write_text("0 1:1\n1 2:1\n")
    np.savez("a.npz", X=np.eye(2), y=[0, 1])
    line = mbkl.error("evaluate", "a.svm", "--test", "a.npz")
    assert "must both be sparse" in line


def test_unknown_labels(mbkl, people, model_file):
    people.loc[3, "income"] = "enormous"
    people.to_csv("test.csv", index=False)
    line = mbkl.error("evaluate", "test.csv", "--model", model_file)
    assert "test.csv, column 'income': label 'enormous'" in line


def test_a_table_without_labels(mbkl, people, model_file):
    people.drop(columns="income").to_csv("test.csv", index=False)
    line = mbkl.error("evaluate", "test.csv", "--model", model_file)
    assert "no column 'income'" in line


def test_too_few_rows_of_a_class(mbkl, people):
    people.loc[0, "income"] = "enormous"
    people.to_csv("a.csv", index=False)
    result = mbkl("evaluate", "a.csv", "-t", "income", "--calibrate", *SMALL)
    assert "fewer rows than there are folds: 'enormous'" in result.err
    assert "enormous     0" in result.out


def test_a_picture_of_the_probabilities(mbkl, people_csv, tmp_path):
    mbkl("evaluate", people_csv, "-t", "income", "--folds", "2", "--plot", "q.png", *SMALL)
    assert (tmp_path / "q.png").stat().st_size > 1000


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_the_largest_class_has_fewer_rows_than_there_are_folds(mbkl, tmp_path, command):
    (tmp_path / "a.csv").write_text("a,y\n1,u\n5,v\n2,u\n6,v\n3,u\n7,v\n4,w\n4,w\n")
    result = mbkl(command, "a.csv", "-t", "y", *SMALL)
    assert "3 classes have fewer rows than there are folds" in result.err
    alone = ["-t", "a", "--task", "classification", "--drop", "y"]
    (tmp_path / "b.csv").write_text("a,y,b\n1,u,3\n5,v,4\n2,u,9\n")
    assert "each class has one row only" in mbkl.error(command, "b.csv", *alone)


# ---------------------------------------------------------------- mbkl compare


def test_all_learn_from_the_same_folds(mbkl, people_csv, tmp_path):
    arguments = ["compare", people_csv, "-t", "income", "--folds", "2", "--plot", "c.png", *SMALL]
    result = mbkl.json(*arguments)
    assert {"MBKL", "random-forest", "gradient-boosting", "linear-svm", "rbf-svm"} <= set(
        result["ranking"]
    )
    for one in result["results"].values():
        assert len(one["fold_accuracies"]) == 2
        assert 0 <= one["accuracy"] <= 1
        assert one["seconds"] > 0
    accuracies = [result["results"][name]["accuracy"] for name in result["ranking"]]
    assert accuracies == sorted(accuracies, reverse=True)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    # What MBKL reaches here is what evaluating it says.
    alone = mbkl.json("evaluate", people_csv, "-t", "income", "--folds", "2", *SMALL)
    assert result["results"]["MBKL"]["fold_accuracies"] == alone["fold_accuracies"]


def test_rivals_by_name_on_a_test_table(mbkl, people):
    people[:60].to_csv("train.csv", index=False)
    people[60:].to_csv("test.csv", index=False)
    arguments = ["compare", "train.csv", "-t", "income", "--test", "test.csv", "--rival", "rbf-svm"]
    shown = mbkl(*arguments, *SMALL)
    assert "rbf-svm" in shown.out
    assert "linear-svm" not in shown.out


def test_names_that_not_all_rivals_take(mbkl, people):
    people["town"] = people["town"].map({"Rome": '["R:", {o}]', "Bonn": "a,b", "Nice": '"'})
    people.rename(columns={"age": "age: [years]"}).to_csv("a.csv", index=False)
    assert mbkl("compare", "a.csv", "-t", "income", "--folds", "2", *SMALL).out


def test_sparse_tables(mbkl, people):
    labels = (people["income"] == "high").astype(int)
    dump_svmlight_file(people[["age"]].fillna(0.0), labels, "a.svm")
    result = mbkl("compare", "a.svm", "--folds", "2", *SMALL)
    assert "gradient-boosting" not in result.out
    assert "no sparse matrices" in result.err
    assert "linear-svm" in result.out


def test_an_rbf_kernel_of_many_rows_is_tried_if_asked_for_only(mbkl, people, monkeypatch):
    monkeypatch.setattr("mbkl.cli.measure._MANY_ROWS", 80)
    people.to_csv("a.csv", index=False)
    result = mbkl("compare", "a.csv", "-t", "income", "--folds", "2", *SMALL)
    assert "rbf-svm takes long with more than 80 rows" in result.err
    assert "rbf-svm" not in result.out


def test_threads_that_wait_leave_their_core(run_python):
    code = """
import os, sys
import mbkl.cli, mbkl.cli.measure
def look(*_):
    print(os.environ["OMP_WAIT_POLICY"].lower(), "sklearn" in sys.modules)
    sys.exit()
mbkl.cli.measure.check_picture = look
mbkl.cli.main(["compare", "any.csv"])
"""
    assert run_python(code).stdout.split() == ["passive", "False"]


def test_a_rival_that_fails_drops_out(mbkl, people_csv, monkeypatch):
    from sklearn.svm import LinearSVC

    def fail(*_):
        raise ValueError("too hard")

    monkeypatch.setattr(LinearSVC, "fit", fail)
    result = mbkl("compare", people_csv, "-t", "income", "--folds", "2", *SMALL)
    assert "linear-svm drops out: too hard" in result.err
    assert "linear-svm" not in result.out
    assert "random-forest" in result.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--rival", "magic"], 2, "no rival 'magic'"),
        (["--plot", "nowhere/c.png"], 1, "no folder nowhere"),
        (["--plot", "c.doc"], 2, "c.doc must end with one of"),
    ],
)
def test_bad_arguments(mbkl, people_csv, arguments, code, words):
    assert words in mbkl.error("compare", people_csv, "-t", "income", *arguments, code=code)

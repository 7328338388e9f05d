"""`mbkl compare`."""

import pytest
from sklearn.datasets import dump_svmlight_file

SMALL = ["--n-maps", "40", "--jobs", "1"]


def test_all_learn_from_the_same_folds(mbkl, people_csv, tmp_path):
    arguments = ["compare", people_csv, "-t", "income", "--folds", "2", "--plot", "c.png", *SMALL]
    result = mbkl.json(*arguments)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert {"MBKL", "random-forest", "gradient-boosting", "linear-svm", "rbf-svm"} <= set(
        result["ranking"]
    )
    for one in result["results"].values():
        assert len(one["fold_accuracies"]) == 2
        assert 0 <= one["accuracy"] <= 1
        assert one["seconds"] > 0
    accuracies = [result["results"][name]["accuracy"] for name in result["ranking"]]
    assert accuracies == sorted(accuracies, reverse=True)
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


def test_an_rbf_kernel_of_many_rows_is_tried_if_asked_for_only(mbkl, people, monkeypatch):
    monkeypatch.setattr("mbkl.cli.compare._MANY_ROWS", 80)
    people.to_csv("a.csv", index=False)
    result = mbkl("compare", "a.csv", "-t", "income", "--folds", "2", *SMALL)
    assert "rbf-svm takes long with more than 80 rows" in result.err
    assert "rbf-svm" not in result.out


@pytest.mark.parametrize(("jobs", "expected"), [([], 1), (["--jobs", "2"], 2)])
def test_all_have_as_many_threads(mbkl, people, monkeypatch, jobs, expected):
    from mbkl.cli import compare

    tried = []
    monkeypatch.setattr(compare, "_scores_of_all", lambda given, *_: tried.append(given) or {})
    people.to_csv("a.csv", index=False)
    mbkl("compare", "a.csv", "-t", "income", "--rival", "random-forest", *jobs)
    assert tried[0]["MBKL"].n_jobs == expected
    assert tried[0]["random-forest"][-1].n_jobs == expected


def test_sparse_rows(mbkl, people):
    labels = (people["income"] == "high").astype(int)
    dump_svmlight_file(people[["age"]].fillna(0.0), labels, "a.svm")
    result = mbkl("compare", "a.svm", "--folds", "2", *SMALL)
    assert "gradient-boosting drops out: Sparse data" in result.err
    for name in ("linear-svm", "rbf-svm", "random-forest"):
        assert name in result.out


def test_a_rival_that_fails_drops_out(mbkl, people_csv, monkeypatch):
    from sklearn.svm import LinearSVC

    def fail(*_):
        raise ValueError("too hard")

    monkeypatch.setattr(LinearSVC, "fit", fail)
    result = mbkl("compare", people_csv, "-t", "income", "--folds", "2", *SMALL)
    assert "linear-svm drops out: too hard" in result.err
    assert "linear-svm" not in result.out
    assert "random-forest" in result.out


def test_unknown_rivals(mbkl, people_csv):
    line = mbkl.error("compare", people_csv, "-t", "income", "--rival", "magic", code=2)
    assert "no rival 'magic' for classification; there are: most-frequent" in line

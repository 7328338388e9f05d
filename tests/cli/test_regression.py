"""Commands on a target of numbers."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from mbkl import MBKLRegressor
from mbkl.cli import main
from mbkl.io import load

SMALL = ["--n-maps", "40", "--jobs", "1"]


def make_flats(n_rows=90, seed=0):
    """Draw a frame in which the rent depends on columns of text and of numbers."""
    draw = np.random.default_rng(seed)
    size, town = draw.uniform(20, 120, n_rows).round(1), draw.choice(["Rome", "Bonn"], n_rows)
    rent = 10 * size * np.where(town == "Rome", 1.5, 1.0) + draw.normal(scale=30, size=n_rows)
    size[draw.random(n_rows) < 0.1] = np.nan
    return pd.DataFrame({"size": size, "town": town, "rent": rent.round(2)})


@pytest.fixture(scope="module")
def flats(tmp_path_factory):
    """The frame as a file, and a model of it; not to be written to."""
    folder = tmp_path_factory.mktemp("flats")
    make_flats().to_csv(folder / "flats.csv", index=False)
    model = folder / "flats.mbkl"
    arguments = ["fit", str(folder / "flats.csv"), "-t", "rent", "-o", str(model), *SMALL]
    assert main([*arguments, "--quiet"]) == 0
    return folder / "flats.csv", model


def test_the_task_is_found(mbkl, flats):
    data, path = flats
    assert isinstance(load(path), MBKLRegressor)
    result = mbkl.json("fit", data, "-t", "rent", "-o", "a.mbkl", *SMALL)
    assert result["task"] == "regression"
    assert "classes" not in result
    shown = mbkl("info", path).out
    assert "MBKLRegressor" in shown


def test_whole_numbers_can_be_said_to_be_numbers(mbkl):
    frame = pd.DataFrame({"a": [1, 2, 3] * 10, "y": [1, 2, 3] * 10})
    frame.to_csv("a.csv", index=False)
    assert mbkl.json("fit", "a.csv", "-t", "y", *SMALL)["task"] == "classification"
    options = ["--task", "regression", *SMALL]
    assert mbkl.json("fit", "a.csv", "-t", "y", *options)["task"] == "regression"


def test_options_of_regressors(mbkl, flats):
    data, _ = flats
    mbkl("fit", data, "-t", "rent", "--quantile", "0.8", "-o", "q.mbkl", *SMALL)
    model = load("q.mbkl")
    assert (model.loss, model.quantile) == ("quantile", 0.8)
    options = ["--tune", "--maps", "stumps", "--cost", "0.1", "--loss", "absolute_error", *SMALL]
    mbkl("fit", data, "-t", "rent", "-o", "t.mbkl", *options)
    model = load("t.mbkl")
    assert (model.loss, model.C_) == ("absolute_error", 0.1)


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("rent", ["--balanced"], "--balanced is not for regression"),
        ("rent", ["--calibrate"], "--calibrate is not for regression"),
        ("rent", ["--loss", "poisson", "--quantile", "0.5"], "--quantile needs --loss quantile"),
        ("rent", ["--quantile", "2"], "Invalid value for '--quantile'"),
        ("town", ["--quantile", "0.5"], "--quantile is not for classification"),
    ],
)
def test_options_of_the_other_task(mbkl, flats, target, options, words):
    assert words in mbkl.error("fit", flats[0], "-t", target, *options, code=2)


@pytest.mark.parametrize(("target", "loss"), [("rent", "hinge"), ("town", "poisson")])
def test_losses_of_the_other_task(mbkl, flats, target, loss):
    line = mbkl.error("fit", flats[0], "-t", target, "--loss", loss)
    assert "'loss' parameter" in line
    assert loss in line


def test_words_are_no_numbers(mbkl, flats):
    line = mbkl.error("fit", flats[0], "-t", "town", "--task", "regression")
    assert "column 'town'" in line
    assert "is no number" in line


def test_one_number_is_nothing_to_learn(mbkl):
    pd.DataFrame({"a": [1, 2, 3], "y": [0.5, 0.5, 0.5]}).to_csv("a.csv", index=False)
    assert "there must be two numbers" in mbkl.error("fit", "a.csv", "-t", "y")


def test_predictions_with_bounds(mbkl, flats):
    data, path = flats
    rows = list(csv.reader(io.StringIO(mbkl("predict", path, data, "--keep", "town").out)))
    assert rows[0] == ["town", "prediction"]
    found = pd.DataFrame(mbkl.json("predict", path, data, "--interval", "0.8"))
    assert list(found) == ["prediction", "lower", "upper"]
    np.testing.assert_allclose(found["prediction"], [float(row[1]) for row in rows[1:]])
    assert (found["lower"] < found["prediction"]).all()
    assert (found["prediction"] < found["upper"]).all()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [(["--proba"], 1, "no probabilities"), (["--interval", "90"], 2, "--interval")],
)
def test_what_predictions_do_not_have(mbkl, flats, options, code, words):
    data, path = flats
    assert words in mbkl.error("predict", path, data, *options, code=code)


def test_classes_have_no_intervals(mbkl, model_file, people_csv):
    assert "--proba" in mbkl.error("predict", model_file, people_csv, "--interval", "0.9")


def test_a_model_is_measured(mbkl, flats, tmp_path):
    data, path = flats
    result = mbkl.json("evaluate", data, "--model", path, "--plot", "q.png")
    y, found = make_flats()["rent"], mbkl.json("predict", path, data)["prediction"]
    assert result["r2"] == pytest.approx(r2_score(y, found))
    assert result["rmse"] == pytest.approx(root_mean_squared_error(y, found))
    assert result["mae"] == pytest.approx(mean_absolute_error(y, found))
    assert result["always_the_mean"]["r2"] == pytest.approx(0)
    assert 0.8 < result["coverage"] <= 1
    assert (tmp_path / "q.png").stat().st_size > 1000


def test_cross_validation(mbkl, flats):
    arguments = ["evaluate", flats[0], "-t", "rent", "--folds", "2", *SMALL]
    result = mbkl.json(*arguments)
    assert result["rows"] == 90
    assert len(result["fold_r2s"]) == 2
    shown = mbkl(*arguments).out
    for words in ("R2", "RMSE", "MAE", "coverage of the 90% interval", "always the mean"):
        assert words in shown


def test_a_test_file(mbkl):
    frame = make_flats()
    frame[:60].to_csv("train.csv", index=False)
    frame[60:].round(0).to_csv("test.csv", index=False)
    arguments = ["-t", "rent", "--test", "test.csv", *SMALL]
    assert mbkl.json("evaluate", "train.csv", *arguments)["rows"] == 30


def test_rivals(mbkl, flats, tmp_path):
    arguments = ["compare", flats[0], "-t", "rent", "--folds", "2", "--plot", "c.png", *SMALL]
    result = mbkl.json(*arguments)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    rivals = {"MBKL", "mean", "ridge", "rbf-svm", "random-forest", "gradient-boosting"}
    assert rivals <= set(result["ranking"])
    scores = [result["results"][name]["r2"] for name in result["ranking"]]
    assert scores == sorted(scores, reverse=True)
    line = mbkl.error(*arguments[:4], "--rival", "linear-svm", code=2)
    assert "no rival 'linear-svm' for regression" in line


def test_explanations_are_in_the_unit_of_the_target(mbkl, flats):
    data, path = flats
    assert "size" in mbkl("explain", path, data).out
    result = mbkl.json("explain", path, data, "--row", "1")
    first = mbkl.json("predict", path, data)["prediction"][0]
    assert result["prediction"] == pytest.approx(first)
    shown = mbkl("explain", path, data, "--row", "1").out
    assert f"row 1: rent is {first:.6g} because" in shown


def test_a_report(mbkl, flats, tmp_path):
    data, path = flats
    mbkl("report", path, data, "--test", data, "-o", "flats.html")
    page = (tmp_path / "flats.html").read_text(encoding="utf-8")
    assert '"name":"rent"' in page
    assert '"accuracy":' not in page


# Several targets ----------------------------------------------------------------------------------

BOTH = ["-t", "rent", "-t", "heating"]


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    """A file with two columns to predict, and a model of both; not to be written to."""
    folder = tmp_path_factory.mktemp("houses")
    frame = make_flats().assign(heating=lambda flats: (flats["rent"] // 50).astype(int))
    frame.to_csv(folder / "houses.csv", index=False)
    model = folder / "houses.mbkl"
    arguments = ["fit", str(folder / "houses.csv"), *BOTH, "-o", str(model), *SMALL]
    assert main([*arguments, "--quiet"]) == 0
    return folder / "houses.csv", model


def test_several_targets_are_learned_together(mbkl, houses):
    data, path = houses
    model = load(path)
    assert model.target_names_ == ["rent", "heating"]
    assert list(model.feature_names_in_) == ["size", "town"]
    assert "rent, heating" in mbkl("info", path).out
    found = pd.DataFrame(mbkl.json("predict", path, data, "--interval", "0.8"))
    names = ["prediction rent", "lower rent", "upper rent"]
    assert list(found) == [*names, *(name.replace("rent", "heating") for name in names)]
    frame = pd.read_csv(data)
    np.testing.assert_allclose(
        found["prediction heating"], model.predict(frame[["size", "town"]])[:, 1], rtol=1e-5
    )
    assert (found["lower heating"] < found["upper heating"]).all()


def test_several_targets_are_measured(mbkl, houses, tmp_path):
    data, path = houses
    result = mbkl.json("evaluate", data, "--model", path, "--plot", "two.png")
    assert list(result["targets"]) == ["rent", "heating"]
    scores = [one["r2"] for one in result["targets"].values()]
    assert result["r2"] == pytest.approx(np.mean(scores))
    assert (tmp_path / "two.png").stat().st_size > 1000
    shown = mbkl("evaluate", data, *BOTH, "--folds", "2", *SMALL).out
    for words in ("rent", "heating", "R2 of the folds"):
        assert words in shown
    rivals = ["--rival", "gradient-boosting", "--rival", "ridge"]
    result = mbkl.json("compare", data, *BOTH, "--folds", "2", *rivals, *SMALL)
    assert set(result["ranking"]) == {"MBKL", "gradient-boosting", "ridge"}


def test_several_targets_are_explained_and_exported(mbkl, houses, tmp_path):
    data, path = houses
    assert "size" in mbkl("explain", path, data, "--plot", "all.png").out
    shown = mbkl("explain", path, data, "--row", "1", "--plot", "row.png").out
    result = mbkl.json("explain", path, data, "--row", "1")
    for name, value in zip(["rent", "heating"], result["prediction"], strict=True):
        assert f"row 1: {name} is {value:.6g} because" in shown
    assert (tmp_path / "row.png").stat().st_size > 1000
    mbkl("report", path, data, "--test", data, "-o", "two.html")
    page = (tmp_path / "two.html").read_text(encoding="utf-8")
    assert '"name":"rent"' in page
    assert '"name":"heating"' in page
    mbkl("export", path, "--onnx", "two.onnx", "--c", "two.h")
    assert "model_predict" in (tmp_path / "two.h").read_text()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["fit", "{data}", "-t", "rent", "-t", "town"], "'town'"),
        (["fit", "{data}", "-t", "rent", "-t", "rent"], "name a column twice"),
        (["fit", "{data}", *BOTH, "--task", "classification"], "must be numbers"),
        (
            ["evaluate", "{data}", "--model", "{model}", "-t", "rent"],
            "has the targets rent, heating, not rent",
        ),
    ],
)
def test_several_targets_that_cannot_be(mbkl, houses, command, words):
    data, model = houses
    assert words in mbkl.error(*(each.format(data=data, model=model) for each in command))


def test_rows_and_columns_of_several_targets(mbkl):
    frame = make_flats().assign(other=1.5)
    frame.to_csv("a.csv", index=False)
    line = mbkl.error("fit", "a.csv", "-t", "rent", "-t", "other")
    assert "column 'other'" in line
    assert "always 1.5" in line
    frame["other"] = frame["rent"] * 2
    frame.loc[3, "rent"] = frame.loc[5, "other"] = np.nan
    frame.to_csv("b.csv", index=False)
    assert mbkl.json("fit", "b.csv", "-t", "rent", "-t", "other", *SMALL)["rows"] == 88


def test_several_targets_of_a_model_from_python(mbkl, make_data):
    X, _ = make_data(n_rows=60)
    from mbkl.io import save

    model = MBKLRegressor(n_maps=40, random_state=0).fit(X, X[:, :2])
    save(model, "two.mbkl")
    names = [f"x{number}" for number in range(X.shape[1])]
    pd.DataFrame(X, columns=names).to_csv("a.csv", index=False)
    found = mbkl.json("predict", "two.mbkl", "a.csv")
    assert list(found) == ["prediction y0", "prediction y1"]

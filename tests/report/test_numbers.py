"""Reports of regressors."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from mbkl import MBKLRegressor, MBKLRegressorCV
from mbkl.explain.quality import outcome_of
from mbkl.report import content, write_report


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(0)
    X = pd.DataFrame(draw.uniform(size=(80, 3)), columns=["size", "age", "floor"])
    y = 100 * X["size"] + 5 * draw.normal(size=80)
    return X, y.rename("rent")


@pytest.fixture(scope="module")
def model(rows):
    return MBKLRegressor(n_maps=40, random_state=0).fit(*rows)


def written(path):
    """Return the data of a page."""
    (data,) = re.findall(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"))
    return json.loads(data)


def test_new_rows(model, rows, tmp_path):
    X, y = rows
    data = written(write_report(model, X, y, tmp_path / "r.html", X_test=X[:30], y_test=y[:30]))
    assert not {"classes", "accuracy"} & set(data)
    (target,) = data["numbers"]["targets"]
    assert data["numbers"]["how"] == "new"
    assert target["name"] == "rent"
    assert target["figures"]["r2"] == pytest.approx(r2_score(y[:30], model.predict(X[:30])))
    assert target["figures"]["always_the_mean"]["r2"] == pytest.approx(0)
    assert data["scores"] == ["rent"]
    assert data["importances"]["names"][0] == "size"
    size = next(shape for shape in data["shapes"] if shape["name"] == "size")
    assert np.ptp(size["values"][0]) > 30


def test_the_headline_is_that_of_rows_not_seen(model, rows):
    made, how = content.cross_validated(model, *rows)
    assert how == "folds"
    assert made.predictions.shape == (80,)
    assert made.uncertainty.shape == (80, 2)
    (target,) = content.numbers(made, how, ["rent"])["targets"]
    assert 0.5 < target["figures"]["r2"] < model.score(*rows)
    assert content.cross_validated(model, rows[0][:3], rows[1][:3]) is None


def test_dots_are_thinned(model, rows, monkeypatch):
    monkeypatch.setattr(content, "_DOTS", 10)
    made = outcome_of(model, rows[0], rows[1].to_numpy())
    (target,) = content.numbers(made, "new", ["rent"])["targets"]
    assert [len(target[name]) for name in ("said", "truth")] == [10, 10]
    assert np.shape(target["band"]) == (3, 40)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_what_the_page_knows_of_intervals_is_what_python_says(rows, tmp_path, loss):
    X, y = rows[0], rows[1].abs()
    model = MBKLRegressor(loss=loss, n_maps=40, random_state=0).fit(X, y)
    data = written(write_report(model, X, y, tmp_path / "r.html", cross_validate=False))
    panel = data["whatIf"]
    row = X.iloc[[panel["numbers"][0] - 1]]
    assert panel["labels"][0] == [y.iloc[panel["numbers"][0] - 1]]
    said = model.predict(row)
    unit = np.sqrt(said) if panel["isLogarithm"] else 1.0
    bounds = np.column_stack([said + unit * panel["lower"][0], said + unit * panel["upper"][0]])
    np.testing.assert_allclose(np.maximum(bounds, 0), np.maximum(model.predict_interval(row), 0))
    assert data["scores"] == ["the logarithm of rent" if loss == "poisson" else "rent"]


def test_too_few_rows_for_intervals(rows, tmp_path):
    X, y = rows[0][:12], rows[1][:12]
    model = MBKLRegressor(maps="stumps", n_maps=20, random_state=0).fit(X, y)
    data = written(write_report(model, X, y, tmp_path / "r.html", cross_validate=False))
    assert data["whatIf"]["lower"] == [None]
    assert data["numbers"]["targets"][0]["figures"]["mean_width"] is None
    assert data["numbers"]["targets"][0]["band"] is None


def test_several_targets_and_a_search(rows, tmp_path):
    X, y = rows
    both = pd.DataFrame({"rent": y, "age": X["age"]})
    search = MBKLRegressorCV(maps="stumps", n_maps=30, Cs=(0.1, 1), cv=2, random_state=0)
    path = write_report(search.fit(X, both), X, both, tmp_path / "r.html", cross_validate=False)
    data = written(path)
    assert [one["name"] for one in data["numbers"]["targets"]] == ["rent", "age"]
    assert len(data["whatIf"]["labels"][0]) == 2
    assert data["path"]["scoring"] == "R2"


def test_the_kernel_is_sorted_by_the_target(model, rows):
    found = content.kernel(model, *rows)
    assert len(found["names"]) == 5
    assert sum(found["counts"]) == 80
    assert found["different"] < found["same"]
    assert len(content.kernel(model, rows[0][:1], rows[1][:1])["names"]) == 1


def test_a_browser_computes_the_same(browser, model, rows, tmp_path):
    X, y = rows
    browser.open(write_report(model, X, y, tmp_path / "r.html", cross_validate=False))
    texts = browser.run(
        "[...document.querySelectorAll('#what-if-row option')].map((o) => o.dataset.scores)"
    )
    np.testing.assert_allclose(np.array(texts, float), model.predict(X), rtol=1e-9)
    bounds = browser.run(
        "(({ lower, upper }) => [Number(lower), Number(upper)])"
        "(document.querySelector('.outcome li').dataset)"
    )
    np.testing.assert_allclose(bounds, model.predict_interval(X[:1])[0], rtol=1e-9)
    assert browser.run("document.querySelectorAll('#accuracy svg').length") == 2
    assert browser.complaints() == []

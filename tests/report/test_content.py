import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, precision_score, recall_score

from mbkl import MBKLClassifier, MBKLClassifierCV
from mbkl.explain import explain_global
from mbkl.explain.input_columns import input_columns
from mbkl.explain.quality import outcome_of
from mbkl.report import content


def columns_of(X):
    """Return columns of numbers, one for each feature."""
    names = [f"x{i}" for i in range(X.shape[1])]
    return input_columns(names, [None] * len(names), X=X)


@pytest.fixture(scope="module")
def fitted(make_data):
    X, y = make_data(n_rows=120, n_classes=3, n_features=6)
    X[::9, 1] = np.nan
    model = MBKLClassifier(n_maps=80, random_state=0).fit(X, y)
    return model, X, y


def test_figures_are_those_of_scikit_learn(fitted):
    model, X, y = fitted
    wrong = np.where(np.arange(len(y)) % 4 == 0, (y + 1) % 3, y)
    found = content.accuracy(model, outcome_of(model, X, wrong), "new")
    guess = model.predict(X)
    assert found["accuracy"] == accuracy_score(wrong, guess)
    precision = precision_score(wrong, guess, average=None)
    recall = recall_score(wrong, guess, average=None)
    assert [line["precision"] for line in found["classes"]] == precision.tolist()
    assert [line["recall"] for line in found["classes"]] == recall.tolist()
    assert np.sum(found["confusion"]) == found["rows"] == len(y)


def test_classes_that_the_model_has_never_seen(fitted):
    model, X, y = fitted
    found = content.accuracy(model, outcome_of(model, X, np.where(y == 0, 7, y)), "new")
    assert [line["label"] for line in found["classes"]] == ["0", "1", "2", "7"]
    assert found["classes"][0]["recall"] is None
    assert found["classes"][3]["precision"] is None


def test_many_classes_show_those_with_errors(make_data):
    X, y = make_data(n_rows=300, n_classes=50)
    model = MBKLClassifier(n_maps=40, random_state=0).fit(X, y)
    found = content.accuracy(model, outcome_of(model, X, y), "training")
    assert len(found["classes"]) == 50
    assert np.shape(found["confusion"]) == (24, 24)
    assert len(found["confusionClasses"]) == 24


def test_shapes_in_few_steps(fitted, monkeypatch):
    model, X, _ = fitted
    explanation = explain_global(model, X)
    for steps in (160, 12):
        monkeypatch.setattr(content, "_STEPS", steps)
        found = content.shapes(explanation, columns_of(X), [1, 0], X)
        assert [shape["name"] for shape in found] == ["x1", "x0"]
        for shape, feature in zip(found, (1, 0)):
            full = explanation.shape(feature)
            edges = np.array(shape["edges"])
            assert len(edges) <= steps + 2
            assert (np.diff(edges) > 0).all()
            assert np.shape(shape["values"]) == (3, edges.size - 1)
            assert sum(shape["counts"]) + shape["missingCount"] == len(X)
            inside = full.at(np.nextafter(edges[:-1] + 1e-6, np.inf)).T
            np.testing.assert_allclose(shape["values"], inside, rtol=1e-3, atol=1e-4)
    assert found[0]["missingCount"] == np.isnan(X[:, 1]).sum()
    assert found[1]["missing"] is None


def test_counts_of_the_steps(fitted):
    model, X, _ = fitted
    (shape,) = content.shapes(explain_global(model, X), columns_of(X), [0], X)
    edges = np.array(shape["edges"])
    edges[0], edges[-1] = -np.inf, np.inf
    cells = np.searchsorted(edges, X[:, 0], side="left") - 1
    np.testing.assert_array_equal(shape["counts"], np.bincount(cells, minlength=edges.size - 1))


def test_fewer_features_for_many_classes(make_data):
    X, y = make_data(n_rows=200, n_classes=100, n_features=40)
    model = MBKLClassifier(maps="stumps", n_maps=200, random_state=0).fit(X, y)
    assert len(content.columns_to_show(explain_global(model, X), 30)) == 15


def test_what_was_fitted_is_said(fitted):
    model, _, _ = fitted
    facts = dict(content.describe_model(model))
    n_stumps = model.stump_features_.size
    assert facts["binary maps kept"] == f"{n_stumps:,} stumps, {model.n_maps_ - n_stumps:,} ferns"
    assert facts["settings"] == "n_maps=80, random_state=0"


def test_the_kernel_is_sorted_and_summarised(fitted):
    model, X, y = fitted
    found = content.kernel(model, X, y)
    assert found["names"] == ["0", "1", "2"]
    assert found["counts"] == [40, 40, 40]
    assert 0 < found["different"] < found["same"] < 1
    alone = content.kernel(model, X[:1], y[:1])
    assert alone["same"] is None


def test_rows_to_try_changes_on(fitted):
    model, X, y = fitted
    found = content.what_if(model, X, y, columns_of(X), [2, 0], 7, 1e6)
    assert len(found["numbers"]) == len(found["labels"]) == 7
    assert found["labels"] == [str(y[number - 1]) for number in found["numbers"]]
    assert [feature["name"] for feature in found["features"]] == ["x2", "x0"]
    assert content.what_if(model, X, y, columns_of(X), [2], 7, 10.0) is None
    assert len(content.what_if(model, X, y, columns_of(X), [2], 2, 1e6)["numbers"]) == 2


def test_a_search_is_told(make_data):
    X, y = make_data()
    model = MBKLClassifierCV(maps="stumps", Cs=(0.1, 1), cv=2, n_maps=30).fit(X, y)
    found = content.path(model)
    assert found["C"] == [0.1, 1.0]
    assert found["depth"] == [None, None]
    assert found["chosen"]["C"] == model.C_
    assert content.path(model.best_estimator_) is None


# ---------------------------------------------------------------- columns as people know them


@pytest.fixture(scope="module")
def people():
    """A model on a number, a category of three levels and a date, and its columns."""
    generator = np.random.default_rng(0)
    town, age = generator.integers(4, size=300), generator.integers(18, 80, size=300)
    towns = np.array(["Rome", "Bonn", "Oslo", None], dtype=object)
    days = generator.integers(17_000, 18_000, size=300)
    X = pd.DataFrame({"age": age, "town": towns[town], "since": days})
    y = np.where((town == 1) ^ (age > 50), "yes", "no")
    model = MBKLClassifier(n_maps=200, random_state=0).fit(X, y)
    columns = input_columns(
        ["age", "town", "since"], model.levels_, {"age": "whole", "since": "date"}
    )
    return model, X, y, columns


def test_importances_are_those_of_columns(people):
    model, X, _, _ = people
    explanation = explain_global(model, X)
    found = content.importances(explanation, content.columns_to_show(explanation, 30))
    assert set(found["names"][:2]) == {"age", "town"}
    assert set(found["pairNames"]) == {"age", "town", "since"}


def test_a_category_has_a_bar_for_each_level(people):
    model, X, _, columns = people
    (town,) = content.shapes(explain_global(model, X), columns, [1], model.rows_of(X))
    assert town["levels"] == ["Bonn", "Oslo", "Rome"]
    assert town["counts"] == X["town"].value_counts().sort_index().tolist()
    assert town["missingCount"] == X["town"].isna().sum()
    added = [*town["values"][0], town["missing"][0]]
    counts = [*town["counts"], town["missingCount"]]
    assert abs(np.dot(added, counts)) < 1e-2
    assert np.ptp(added[1:]) < abs(added[0])


def test_two_columns_in_one_picture(people):
    model, X, _, columns = people
    rows = model.rows_of(X)
    first, *_ = content.together(model, rows, explain_global(model, X), columns)
    assert set(first["names"]) == {"age", "town"}
    assert np.shape(first["values"]) == (len(first["rows"]), len(first["columns"]))
    assert "Bonn" in first["rows"] + first["columns"]


def test_levels_whole_numbers_and_dates_to_try(people):
    model, X, y, columns = people
    found = content.what_if(model, X, y, columns, [0, 1, 2], 5, 1e6)
    age, town, since = found["features"]
    assert (age["kind"], age["low"] % 1, age["high"] % 1) == ("whole", 0, 0)
    assert (town["feature"], town["levels"]) == (1, ("Bonn", "Oslo", "Rome"))
    assert since["kind"] == "date"
    assert found["chances"]["temperature"] == model.temperature_


def test_the_headline_is_that_of_rows_not_seen(people):
    model, X, y, _ = people
    made, how = content.cross_validated(model, X, y)
    assert how == "folds"
    assert made.truth.size == len(y)
    found = content.accuracy(model, made, how)
    assert found["accuracy"] < model.score(X, y)
    assert {"auc", "log_loss", "brier_score"} <= set(found)
    assert [curve["label"] for curve in found["curves"]] == ["yes"]
    assert content.cross_validated(model, X[:3], np.array(["no", "yes", "no"])) is None


@pytest.mark.parametrize("limit", ["_ROWS_IN_FOLDS", "_LABELS_IN_FOLDS"])
def test_many_rows_are_held_out_once(people, monkeypatch, limit):
    model, X, y, _ = people
    monkeypatch.setattr(content, limit, 100)
    made, how = content.cross_validated(model, X, y)
    assert how == "held out"
    assert made.truth.size == len(y) // 5


def test_a_class_of_one_row_does_not_keep_rows_from_being_held_out(people):
    model, X, y, _ = people
    y = np.where(np.arange(len(y)) == 3, "rare", np.asarray(y))
    made, how = content.cross_validated(model.fit(X, y), X, y)
    assert how == "folds"
    assert "rare" not in made.truth


def test_rows_without_a_class_of_the_model_are_not_held_out(people):
    model, X, y, _ = people
    rare = np.where(np.arange(len(y)) % 9 == 3, "rare", np.asarray(y))
    assert content.cross_validated(model.fit(X, rare), X, y) is None
    model.fit(X, y)

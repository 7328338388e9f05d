import numpy as np
import pytest
from sklearn.metrics import accuracy_score, precision_score, recall_score

from mbkl import MBKLClassifier, MBKLClassifierCV
from mbkl.explain import explain_global
from mbkl.maps import Ferns
from mbkl.report import content


@pytest.fixture(scope="module")
def fitted(make_data):
    X, y = make_data(n_rows=120, n_classes=3, n_features=6)
    X[::9, 1] = np.nan
    model = MBKLClassifier(n_maps=80, random_state=0).fit(X, y)
    return model, X, y


def test_figures_are_those_of_scikit_learn(fitted):
    model, X, y = fitted
    wrong = np.where(np.arange(len(y)) % 4 == 0, (y + 1) % 3, y)
    found = content.accuracy(model, X, wrong)
    guess = model.predict(X)
    assert found["accuracy"] == accuracy_score(wrong, guess)
    precision = precision_score(wrong, guess, average=None)
    recall = recall_score(wrong, guess, average=None)
    assert [line["precision"] for line in found["classes"]] == precision.tolist()
    assert [line["recall"] for line in found["classes"]] == recall.tolist()
    assert np.sum(found["confusion"]) == found["rows"] == len(y)


def test_classes_that_the_model_has_never_seen(fitted):
    model, X, y = fitted
    found = content.accuracy(model, X, np.where(y == 0, 7, y))
    assert [line["name"] for line in found["classes"]] == ["0", "1", "2", "7"]
    assert found["classes"][0]["recall"] is None
    assert found["classes"][3]["precision"] is None


def test_many_classes_show_those_with_errors(make_data):
    X, y = make_data(n_rows=300, n_classes=50)
    model = MBKLClassifier(n_maps=40, random_state=0).fit(X, y)
    found = content.accuracy(model, X, y)
    assert len(found["classes"]) == 50
    assert np.shape(found["confusion"]) == (24, 24)
    assert len(found["confusionClasses"]) == 24


def test_shapes_in_few_steps(fitted, monkeypatch):
    model, X, _ = fitted
    explanation = explain_global(model, X)
    for steps in (160, 12):
        monkeypatch.setattr(content, "_STEPS", steps)
        found = content.shapes(explanation, np.array([1, 0]))
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
    (shape,) = content.shapes(explain_global(model, X), np.array([0]))
    edges = np.array(shape["edges"])
    edges[0], edges[-1] = -np.inf, np.inf
    cells = np.searchsorted(edges, X[:, 0], side="left") - 1
    np.testing.assert_array_equal(shape["counts"], np.bincount(cells, minlength=edges.size - 1))


def test_fewer_features_for_many_classes(make_data):
    X, y = make_data(n_rows=200, n_classes=100, n_features=40)
    model = MBKLClassifier(maps="stumps", n_maps=200, random_state=0).fit(X, y)
    assert content.features_to_show(explain_global(model, X), 30).size == 15


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
    explanation = explain_global(model, X)
    found = content.what_if(model, X, y, explanation, np.array([2, 0]), 7, 1e6)
    assert len(found["numbers"]) == len(found["labels"]) == 7
    assert found["labels"] == [str(y[number - 1]) for number in found["numbers"]]
    assert [feature["name"] for feature in found["features"]] == ["x2", "x0"]
    assert content.what_if(model, X, y, explanation, np.array([2]), 7, 10.0) is None


def test_frequent_classes_come_first_where_room_is_short(make_data):
    X, y = make_data(n_rows=200, n_classes=10)
    y[:100] = 3
    model = MBKLClassifier(maps=Ferns(depth=3), n_maps=50, random_state=0).fit(X, y)
    explanation = explain_global(model, X)
    room = 4 * 3.2 * sum(len(tables) for tables in model.predictor_.tables) + 2_000
    columns = content.what_if(model, X, y, explanation, np.array([0]), 5, room)["columns"]
    assert 2 <= len(columns) < 10
    assert 3 in columns


def test_a_search_is_told(make_data):
    X, y = make_data()
    model = MBKLClassifierCV(maps="stumps", Cs=(0.1, 1), cv=2, n_maps=30).fit(X, y)
    found = content.path(model)
    assert found["C"] == [0.1, 1.0]
    assert found["depth"] == [None, None]
    assert found["chosen"]["C"] == model.C_
    assert content.path(model.best_estimator_) is None

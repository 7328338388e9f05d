import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mbkl import MBKLClassifier
from mbkl.explain import explain_global, explain_local

NAMES = ["auto", "stumps", "learned stumps", "deep ferns", "list", "projections", "everything"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("with_background", [True, False])
def test_everything_sums_to_the_scores(fitted, name, n_classes, with_background):
    model, X = fitted(name, n_classes)
    background = X if with_background else None
    explanation = explain_local(model, X[:9], background=background, groups=True)
    scores = model.decision_function(X[:9]).reshape(9, -1)
    np.testing.assert_array_equal(explanation.scores, scores)
    for shares in (explanation.contributions, explanation.group_contributions):
        total = explanation.baseline + shares.sum(axis=1)
        np.testing.assert_allclose(total, scores, rtol=1e-9, atol=1e-9)
    assert len(explanation.groups) == explanation.group_contributions.shape[1]


def test_a_short_summary(fitted):
    model, X = fitted("auto")
    summary = repr(explain_local(model, X, groups=True))
    assert summary == "<LocalExplanation: 80 rows, 4 features, 3 scores>"


def test_importances_are_means_of_local_contributions(fitted):
    model, X = fitted("auto")
    local = explain_local(model, X, background=X)
    expected = np.abs(local.contributions).mean(axis=0)
    np.testing.assert_allclose(explain_global(model, X).importances, expected, rtol=1e-9)


def test_sparse_rows_and_single_precision_are_the_same(make_data):
    X, y = make_data(n_classes=3)
    X[np.abs(X) < 0.5] = 0.0
    model = MBKLClassifier(n_maps=60, random_state=0).fit(X, y)
    expected = explain_local(model, X, background=X).contributions
    for same in (sparse.csr_array(X), sparse.csc_array(X), X.astype(np.float32)):
        found = explain_local(model, same, background=same).contributions
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_as_a_frame_and_as_json(fitted):
    model, X = fitted("auto", 3)
    explanation = explain_local(model, X[:2], background=X, groups=True)
    frame = explanation.to_frame()
    assert list(frame.columns) == ["baseline", "x0", "x1", "x2", "x3", "score"]
    assert frame.index.tolist() == [(row, c) for row in range(2) for c in range(3)]
    np.testing.assert_allclose(frame.drop(columns="score").sum(axis=1), frame["score"])
    text = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    np.testing.assert_allclose(text["contributions"], explanation.contributions)
    assert [tuple(features) for features in text["groups"]] == list(explanation.groups)
    assert "groups" not in explain_local(model, X[:2]).to_dict()


def test_labels_of_any_kind(make_data):
    X, y = make_data(n_classes=3)
    for labels in (
        np.array(["a", "b", "c"])[y],
        y * 2.0,
        pd.Categorical.from_codes(y, list("abc")),
    ):
        model = MBKLClassifier(n_maps=30, random_state=0).fit(X, labels)
        json.dumps(explain_local(model, X[:1], background=X).to_dict())


def test_bad_input(fitted, make_data):
    X, _ = make_data()
    with pytest.raises(NotFittedError):
        explain_local(MBKLClassifier(), X)
    with pytest.raises(TypeError, match="MBKLRegressor, got str"):
        explain_local("model", X)
    model, X = fitted("stumps")
    with pytest.raises(ValueError, match="3 features"):
        explain_local(model, X[:, :3])
    with pytest.raises(ValueError, match="3 features"):
        explain_local(model, X, background=X[:, :3])
    with pytest.raises(ValueError, match="Expected 2D array"):
        explain_local(model, X[0])
    with pytest.raises(ValueError, match="background_rows must be at least 1, got 0"):
        explain_local(model, X, background_rows=0)

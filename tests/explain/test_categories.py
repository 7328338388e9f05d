"""Explanations of categories: importance per column, a value per level."""

import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLClassifier
from mbkl.explain.rows import some_rows


@pytest.fixture(scope="module", params=["stumps", "ferns", "grown", "auto"])
def explained(request):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "town": generator.choice(["Bonn", "Oslo", "Rome", None], 300),
            "age": generator.normal(size=300),
            "size": generator.choice(["S", "M", "L"], 300),
        }
    )
    y = (frame["town"] == "Rome") | ((frame["size"] == "L") & (frame["age"] > 0))
    model = MBKLClassifier(maps=request.param, n_maps=80, random_state=0).fit(frame, y)
    return model, frame, model.explain_global(frame)


def test_contributions_sum_to_the_scores(explained):
    model, frame, _ = explained
    new = frame[:20].assign(town=["Paris", "Rome"] * 10)
    local = model.explain_local(new, background=frame, groups=True)
    scores = model.decision_function(new)[:, None]
    np.testing.assert_allclose(local.baseline + local.contributions.sum(axis=1), scores, atol=1e-9)
    added = local.group_contributions.sum(axis=1)
    np.testing.assert_allclose(local.baseline + added, scores, atol=1e-9)


def test_a_value_for_each_level_is_its_partial_dependence(explained):
    model, frame, explanation = explained
    background = some_rows(some_rows(model.rows_of(frame), 200), 100)
    shape = explanation.shape("town")
    assert shape.levels == ("Bonn", "Oslo", "Rome")
    assert shape.counts.sum() == 300
    means = []
    for cell in (np.nan, 0, 1, 2, 3):
        rows = background.copy()
        rows[:, 0] = cell
        means.append(model.predictor_.scores(rows).mean(axis=0))
    changes = np.diff(means, axis=0)
    np.testing.assert_allclose(np.diff(shape.values, axis=0), changes, atol=1e-9)


def test_levels_that_nothing_tells_apart_have_values_of_their_own():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"town": generator.choice(list("abcdefgh"), 300), "age": generator.normal(size=300)}
    )
    model = MBKLClassifier(maps="grown", n_maps=2, random_state=0).fit(frame, frame["town"] == "d")
    shape = model.explain_global(frame).shape("town")
    assert shape.values.shape[0] == shape.counts.size == 10
    assert np.unique(shape.values).size < 10
    assert shape.counts[1:-1].tolist() == frame["town"].value_counts().sort_index().tolist()


def test_levels_have_their_names(explained):
    _, _, explanation = explained
    lines = explanation.shape("town").to_frame()
    assert lines["level"].tolist() == ["missing", "Bonn", "Oslo", "Rome", "new"]
    assert lines["level"].iloc[lines["True"].argmax()] == "Rome"
    assert explanation.to_dict()["shapes"][0]["levels"] == ["Bonn", "Oslo", "Rome"]
    assert "3 levels" in repr(explanation.shape("town"))


def test_without_data(explained):
    model, _, _ = explained
    explanation = model.explain_global()
    assert explanation.feature_names[explanation.ranking[0]] == "town"
    assert model.feature_importances_.argmax() == 0
    assert np.isclose(model.feature_importances_.sum(), 1.0)


def test_pairs_that_interact(explained):
    model, _, explanation = explained
    if model.maps == "stumps":
        assert not explanation.pair_strengths.any()
        return
    place = {feature: i for i, feature in enumerate(explanation.pair_features.tolist())}
    strengths = explanation.pair_strengths
    assert strengths[place[1], place[2]] == strengths.max()


def test_bars_in_pictures(explained):
    pytest.importorskip("matplotlib")
    from mbkl.plot import ShapeFunctionDisplay

    _, _, explanation = explained
    display = ShapeFunctionDisplay.from_explanation(explanation, ["town", "age"])
    labels = [label.get_text() for label in display.axes_[0].get_xticklabels()]
    assert labels == ["missing", "Bonn", "Oslo", "Rome"]
    assert len(display.lines_[0][0].patches) == 4

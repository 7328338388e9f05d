"""Probabilities: they follow the scores and never change the prediction."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from mbkl import MBKLClassifier, MBKLClassifierCV
from mbkl.engine import limits
from mbkl.learn.calibration import (
    N_FOLDS,
    HeldOut,
    best_mixture,
    fit_rule,
    held_out_scores,
    log_probabilities,
)
from mbkl.maps import GrownFerns

SMALL = {"n_maps": 60, "calibration": "temperature", "random_state": 0}


@pytest.fixture(scope="module")
def calibrated(form):
    """The calibrated classifier in both forms, as a function of its parameters."""
    return partial(form, MBKLClassifier, **SMALL)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize(
    ("C", "loss"), [(0.01, "hinge"), (1.0, "logistic"), (1.0, "squared_hinge"), (1e3, "logistic")]
)
def test_the_most_probable_class_is_the_predicted_one(calibrated, make_data, n_classes, C, loss):
    X, y = make_data(n_classes=n_classes)
    model = calibrated(C=C, C_kernel=1.0, loss=loss).fit(X, y)
    new = 3 * np.random.default_rng(1).normal(size=(400, 4))
    probabilities = model.predict_proba(new)
    assert probabilities.shape == (400, n_classes)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(new), probabilities.argmax(axis=1))


@pytest.fixture(scope="module")
def models(calibrated, make_data):
    """A fitted model of two and one of three classes."""
    return {n: calibrated().fit(*make_data(n_classes=n)) for n in (2, 3)}


def with_scores(model, scores, temperature, offset=None):
    """Return the model changed to give the same scores to every row."""
    predictor = model.predictor_
    tables = [np.zeros_like(table) for table in predictor.tables]
    changed = clone(model)
    changed.__dict__.update(vars(model))
    changed.predictor_ = replace(predictor, tables=tables, intercept=np.array(scores))
    changed.temperature_, changed.offset_ = temperature, offset
    return changed


scores_of_a_row = st.floats(-1e3, 1e3)


offsets = st.one_of(st.none(), st.floats(-3.0, 1.0))


@given(scores_of_a_row, st.floats(1e-3, 1e3), offsets)
def test_no_rule_changes_the_prediction_of_two_classes(models, score, temperature, offset):
    model = with_scores(models[2], [score], temperature, offset)
    row = np.zeros((1, 4))
    assert model.predict(row)[0] == model.predict_proba(row)[0].argmax()


@given(st.tuples(*[scores_of_a_row] * 3), st.floats(1e-3, 1e3), offsets)
def test_no_rule_changes_the_prediction_of_three_classes(models, scores, temperature, offset):
    model = with_scores(models[3], scores, temperature, offset)
    row = np.zeros((1, 4))
    assert model.predict(row)[0] == model.predict_proba(row)[0].argmax()


@pytest.mark.parametrize("score", [0.0, 5e-324, 1e-300, 1e-17, -1e-17, 1e-8, 40.0, -40.0, 1e3])
def test_scores_near_zero_and_far_from_it(models, score):
    model = with_scores(models[2], [score], 1.0)
    row = np.zeros((1, 4))
    assert model.predict(row)[0] == model.predict_proba(row)[0].argmax()


@pytest.mark.parametrize("first", [1.0, 500.0, -3.0])
@pytest.mark.parametrize("temperature", [1.0, 3.0, 100.0])
def test_scores_that_differ_in_the_last_place(models, first, temperature):
    model = with_scores(models[3], [first, np.nextafter(first, np.inf), first - 1], temperature)
    row = np.zeros((1, 4))
    assert model.predict(row)[0] == model.predict_proba(row)[0].argmax()


def test_probabilities_without_calibration_need_the_logistic_loss(form, make_data):
    X, y = make_data()
    model = form(MBKLClassifier, n_maps=60, calibration=None).fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)
    logistic = form(MBKLClassifier, n_maps=60, loss="logistic", random_state=0).fit(X, y)
    scores = logistic.decision_function(X)
    np.testing.assert_allclose(logistic.predict_proba(X)[:, 1], 1 / (1 + np.exp(-scores)))


def test_temperature_divides_the_scores(calibrated, make_data):
    X, y = make_data(n_classes=3)
    model = calibrated().fit(X, y)
    assert model.temperature_ > 0
    powers = np.exp(model.decision_function(X) / model.temperature_)
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)


def test_calibration_changes_no_score(calibrated, make_data):
    X, y = make_data()
    plain = calibrated(calibration=None).fit(X, y)
    assert plain.coef_.tobytes() == calibrated().fit(X, y).coef_.tobytes()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_temperature_has_the_smallest_log_loss(n_classes):
    generator = np.random.default_rng(0)
    y = np.arange(300) % n_classes
    scores = generator.normal(size=(300, 1 if n_classes == 2 else n_classes))
    if n_classes == 2:
        scores[:, 0] += 4 * (2 * y - 1) * (generator.random(300) < 0.8)
        full = np.column_stack([np.zeros(300), scores])
    else:
        scores[np.arange(300), y] += 3 * (generator.random(300) < 0.8)
        full = scores
    weights = generator.random(300)

    def loss(temperature):
        logits = full / temperature
        log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return -(weights * log_p[np.arange(300), y]).sum()

    best = min(loss(temperature) for temperature in np.exp(np.linspace(-6, 6, 2000)))
    assert loss(fit_rule(HeldOut(scores, y, weights), "temperature").temperature) <= best * (
        1 + 1e-5
    )


def test_calibration_lowers_the_log_loss_on_new_rows(calibrated, make_data):
    X, y = make_data(n_rows=500, spread=2.0)
    model = calibrated(C=1000.0, theta="ones", n_maps=300, loss="logistic").fit(X[:80], y[:80])
    honest = log_loss(y[80:], model.predict_proba(X[80:]))
    assert model.temperature_ > 1
    model.temperature_ = 1.0
    assert honest < log_loss(y[80:], model.predict_proba(X[80:]))


def test_folds_hold_equal_shares_of_each_class(make_data, make_learner):
    X, y = make_data(n_rows=300, n_classes=3)
    folds = make_learner(X, y, n_maps=300).rows.folds(N_FOLDS)
    for label in range(3):
        counts = np.bincount(folds[y == label], minlength=3)
        assert counts.min() >= 32
        assert counts.sum() == 100


def test_equal_rows_are_in_the_same_fold(make_data, make_learner):
    X, y = make_data(n_rows=62)  # no third of 31 rows, thrice each, ends between two of them
    folds = make_learner(np.tile(X, (3, 1)), np.tile(y, 3), n_maps=300).rows.folds(N_FOLDS)
    np.testing.assert_array_equal(folds[:62], folds[62:124])
    np.testing.assert_array_equal(folds[:62], folds[124:])


def test_held_out_rows_are_scored_once(make_data, make_learner):
    X, y = make_data(n_classes=3)
    learner = make_learner(X, y)
    found = held_out_scores(learner, 1.0, 1.0)
    np.testing.assert_array_equal(np.sort(found.rows), np.arange(80))
    np.testing.assert_array_equal(found.y, y[found.rows])
    assert found.scores.shape == (80, 3)


def test_a_class_of_one_row_can_be_calibrated(calibrated, make_data):
    X, y = make_data()
    y = np.where(np.arange(80) == 3, 2, y)
    model = calibrated().fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_order_and_repetition_of_rows_do_not_matter(calibrated, make_data, n_classes):
    X, y = make_data(n_classes=n_classes)
    counts = np.random.default_rng(0).integers(1, 4, size=80)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(80), counts))
    weighted = calibrated().fit(X, y, counts)
    repeated = calibrated().fit(X[rows], y[rows])
    assert weighted.temperature_ == repeated.temperature_


def test_the_cross_validated_classifier_is_calibrated_too(form, make_data):
    X, y = make_data()
    costs = {"Cs": (0.1, 1.0), "cv": 2}
    model = form(MBKLClassifierCV, **{**SMALL, **costs}).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))


# ---------------------------------------------------------------- by default

DEFAULTS = {
    "default": {},
    "stumps": {"maps": "stumps", "n_maps": 60},
    "learned": {"maps": "stumps", "theta": "learned", "n_maps": 60},
    "hinge": {"maps": "stumps", "n_maps": 30, "loss": "hinge"},
    "logistic": {"maps": "stumps", "n_maps": 30, "loss": "logistic"},
    "few weights": {"maps": "stumps", "n_maps": 5},
    "device": {"maps": "stumps", "n_maps": 30, "device": "torch"},
    "limited": {"maps": "stumps", "n_maps": 60, "max_memory": "1GB"},
    "grown, squared hinge": {"maps": GrownFerns(n_ferns=10, objective="squared_hinge")},
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", DEFAULTS)
def test_every_fit_has_probabilities(make_data, name, n_classes):
    if "device" in str(name):
        pytest.importorskip("torch")
    X, y = make_data(n_rows=150, n_classes=n_classes)
    model = MBKLClassifier(**DEFAULTS[name], random_state=0).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), model.predict(X))
    if n_classes == 2:
        order = np.argsort(model.decision_function(X))
        assert (np.diff(probabilities[order, 1]) >= 0).all()
    assert log_loss(y, probabilities) < np.log(n_classes)


def test_more_rows_than_a_kernel_matrix_has(make_data, monkeypatch):
    X, y = make_data(n_rows=400, spread=1.5)
    X, new, y, known = X[:300], X[300:], y[:300], y[300:]
    whole = MBKLClassifier(n_maps=200, random_state=0).fit(X, y)
    for name, limit in {"FEW_ROWS_GRAM": 100, "ROWS_OF_A_PART": 90, "ROWS_LEFT_OUT": 50}.items():
        monkeypatch.setattr(limits, name, limit)
    parts = MBKLClassifier(n_maps=200, random_state=0).fit(X, y)
    assert parts.offset_ is not None
    honest = log_loss(known, whole.predict_proba(new))
    assert log_loss(known, parts.predict_proba(new)) < 1.2 * honest


def test_honest_on_rows_without_any_signal():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(300, 4)), generator.random(300) < 0.3
    model = MBKLClassifier(random_state=0).fit(X, y)
    new = generator.normal(size=(2000, 4))
    chances = model.predict_proba(new)[:, 1]
    assert abs(chances.mean() - 0.3) < 0.1
    assert chances.std() < 0.15


def test_the_rule_has_the_smallest_log_loss():
    generator = np.random.default_rng(0)
    chances = generator.dirichlet(np.full(4, 0.5), size=4000)
    y = (chances.cumsum(axis=1) < generator.random((4000, 1))).sum(axis=1)
    scores, weights = 2 * chances - 1, np.ones(4000)  # as a squared hinge has them
    held_out = HeldOut(scores, y, weights)
    rule = fit_rule(held_out, "auto", is_mixed=False)
    assert rule.offset > 0.8
    found = np.exp(log_probabilities(scores, rule.temperature, rule.offset))
    best = log_loss(y, chances, labels=range(4))
    assert log_loss(y, found, labels=range(4)) < 1.05 * best
    softmax = log_probabilities(scores, fit_rule(held_out, "temperature").temperature, None)
    assert log_loss(y, found, labels=range(4)) < log_loss(y, np.exp(softmax), labels=range(4))


@pytest.mark.parametrize("factor", [0.2, 1.0, 3.0])
def test_logarithms_of_odds_become_chances_by_the_softmax(factor):
    """However far the rule is from that of margins, the walk gets there."""
    generator = np.random.default_rng(0)
    odds = 3 * generator.normal(size=(400, 4))
    chances = np.exp(odds - np.logaddexp.reduce(odds, axis=1, keepdims=True))
    y = (chances.cumsum(axis=1) < generator.random((400, 1))).sum(axis=1)
    held_out = HeldOut(factor * odds, y, np.ones(400))
    rules = [fit_rule(held_out, "auto"), fit_rule(held_out, "temperature")]
    losses = [
        log_loss(y, np.exp(log_probabilities(held_out.scores, rule.temperature, rule.offset)))
        for rule in rules
    ]
    assert losses[0] < losses[1] + 0.005


def test_scores_of_cross_validation_that_need_probabilities(make_data):
    X, y = make_data(n_rows=120, spread=1.0)
    for scoring in ("neg_log_loss", "roc_auc", "neg_brier_score"):
        scores = cross_val_score(MBKLClassifier(random_state=0), X, y, cv=3, scoring=scoring)
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_by_default_order_and_repetition_of_rows_do_not_matter(make_data, n_classes):
    X, y = make_data(n_classes=n_classes)
    counts = np.random.default_rng(0).integers(1, 4, size=80)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(80), counts))
    weighted = MBKLClassifier(n_maps=60, random_state=0).fit(X, y, counts)
    repeated = MBKLClassifier(n_maps=60, random_state=0).fit(X[rows], y[rows])
    assert (weighted.temperature_, weighted.offset_) == (repeated.temperature_, repeated.offset_)


def held_out(scores, y):
    return HeldOut(scores, y, np.ones(len(y)), np.arange(len(y)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_mixture_has_what_helps(n_classes):
    generator = np.random.default_rng(0)
    y = generator.integers(n_classes, size=400)
    targets = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    signs = np.where(y[:, None] == targets, 1.0, -1.0)
    noise = generator.normal(size=(2, *signs.shape))
    poor, good = noise[0], signs + 0.3 * noise[1]
    assert best_mixture(held_out(good, y), poor)[0] == 0.0
    assert best_mixture(held_out(poor, y), good)[0] >= 0.8
    # Errors that are independent of each other are mixed, in whatever unit the scores are.
    alike = held_out(signs + noise[0], y)
    share, unit = best_mixture(alike, 7.0 * (signs + noise[1]))
    assert 0.0 < share < 1.0
    assert 7.0 * unit == pytest.approx(1.0, abs=0.2)


def test_scores_that_say_nothing_are_not_mixed_in():
    y = np.array([0, 1, 1])
    assert best_mixture(held_out(np.array([[-1.0], [1.0], [1.0]]), y), np.zeros((3, 1))) == (
        0.0,
        1.0,
    )

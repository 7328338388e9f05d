"""Probabilities: they follow the scores and never change the prediction."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import log_loss

from mbkl import MBKLClassifier, MBKLClassifierCV
from mbkl.learn.calibration import N_FOLDS, fit_temperature, held_out_scores

SMALL = {"n_maps": 60, "calibration": "temperature", "random_state": 0}


@pytest.fixture(scope="module")
def calibrated(form):
    """The calibrated classifier in both forms, as a function of its parameters."""
    return partial(form, MBKLClassifier, **SMALL)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
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


def with_scores(model, scores, temperature):
    """Return the model changed to give the same scores to every row."""
    predictor = model.predictor_
    tables = [np.zeros_like(table) for table in predictor.tables]
    changed = clone(model)
    changed.__dict__.update(vars(model))
    changed.predictor_ = replace(predictor, tables=tables, intercept=np.array(scores))
    changed.temperature_ = temperature
    return changed


scores_of_a_row = st.floats(-1e3, 1e3)


@given(scores_of_a_row, st.floats(1e-3, 1e3))
def test_no_temperature_changes_the_prediction_of_two_classes(models, score, temperature):
    model = with_scores(models[2], [score], temperature)
    row = np.zeros((1, 4))
    assert model.predict(row)[0] == model.predict_proba(row)[0].argmax()


@given(st.tuples(*[scores_of_a_row] * 3), st.floats(1e-3, 1e3))
def test_no_temperature_changes_the_prediction_of_three_classes(models, scores, temperature):
    model = with_scores(models[3], scores, temperature)
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
    model = form(MBKLClassifier, n_maps=60).fit(X, y)
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
    assert loss(fit_temperature(scores, y, weights)) <= best * (1 + 1e-5)


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

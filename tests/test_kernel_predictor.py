"""Mixtures of drawn maps and grown ferns, by rows that took no part."""

import io

import numpy as np
import pytest
from sklearn.metrics import log_loss

import mbkl
from mbkl import MBKLClassifier, MBKLClassifierCV, MBKLRegressor, classifier
from mbkl.engine import limits
from mbkl.learn.progress import Progress


def sharp_rows(n_rows=1200, n_classes=2):
    """Return rows with narrow bands, which grown ferns follow, in a smooth function."""
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, size=(n_rows, 6))
    band = np.abs(X[:, 0] - 0.3) < 0.05
    scores = np.column_stack([X[:, 1] + X[:, 2] + 4 * band * k for k in range(n_classes)])
    scores += np.arange(n_classes) * X[:, [3]] + generator.normal(0, 0.3, scores.shape)
    return X.astype(np.float32), scores.argmax(axis=1)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Let few rows be enough for a mixture."""
    monkeypatch.setattr(limits, "ROWS_OF_MIXTURES", 300)
    monkeypatch.setattr(limits, "ROWS_LEFT_OUT", 200)


def fitted(rows, **parameters):
    return MBKLClassifier(**{"n_maps": 300, "random_state": 0, **parameters}).fit(*rows)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_grown_ferns_are_mixed_in_where_they_help(n_classes, monkeypatch):
    X, y = sharp_rows(2600, n_classes)
    mixed = fitted((X[:1500], y[:1500]))
    monkeypatch.setattr(limits, "ROWS_OF_MIXTURES", 10_000)
    drawn = fitted((X[:1500], y[:1500]))
    assert drawn.grown_share_ == 0.0
    assert 0.0 < mixed.grown_share_ <= 1.0
    losses = [log_loss(y[1500:], model.predict_proba(X[1500:])) for model in (mixed, drawn)]
    assert losses[0] < losses[1]
    # One sum of tables, with one theta.
    assert mixed.theta_.sum() == pytest.approx(1.0)
    assert mixed.theta_.size == mixed.n_maps_


@pytest.mark.parametrize("gram", [4000, 500])  # left out by the solver, or solved without
def test_neither_order_nor_threads_matter(gram, monkeypatch):
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", gram)
    monkeypatch.setattr(limits, "ROWS_OF_A_PART", 300)
    X, y = sharp_rows(700)
    order = np.random.default_rng(1).permutation(len(y))
    one, other = fitted((X, y), n_jobs=1), fitted((X[order], y[order]), n_jobs=2)
    assert one.grown_share_ == other.grown_share_ > 0
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert (one.temperature_, one.offset_) == (other.temperature_, other.offset_)


def test_calibration_never_changes_the_class():
    rows = sharp_rows(600)
    scores = [
        fitted(rows, calibration=rule).decision_function(rows[0])
        for rule in ("auto", "temperature", None)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_a_mixture_can_be_saved():
    rows = sharp_rows(700)
    model, file = fitted(rows), io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = mbkl.load(file)
    assert loaded.grown_share_ == model.grown_share_ > 0
    np.testing.assert_array_equal(loaded.predict_proba(rows[0]), model.predict_proba(rows[0]))


def test_a_search_mixes_too():
    X, y = sharp_rows(700)
    model = MBKLClassifierCV(n_maps=200, cv=2, random_state=0).fit(X, y)
    assert model.grown_share_ > 0
    np.testing.assert_array_equal(model.best_estimator_.predict(X), model.predict(X))


def grown_by_a_search(monkeypatch, rows):
    """Return the model of a search that has few rows, and what was grown for it."""
    monkeypatch.setattr(limits, "ROWS_OF_MIXTURES", 10_000)
    found, grow = [], MBKLClassifierCV._grow_maps
    monkeypatch.setattr(
        MBKLClassifierCV, "_grow_maps", lambda *given: found.append(grow(*given)) or found[-1]
    )
    return MBKLClassifierCV(n_maps=200, cv=2, random_state=0).fit(*rows), found


def test_the_growths_of_folds_are_mixed(monkeypatch):
    X, y = sharp_rows(500)
    model, growths = grown_by_a_search(monkeypatch, (X, y))
    assert len(growths) == 5
    assert 0 < model.grown_share_ < 1
    # Every row has ended one of them.
    assert sum(len(grown.held_out_y) for grown in growths) == 500
    assert model.maps_.families[-1].n_maps == sum(grown.n_maps for grown in growths)
    again = MBKLClassifierCV(n_maps=200, cv=2, random_state=0, n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))


def test_the_first_growth_that_does_not_help_is_the_last(monkeypatch):
    monkeypatch.setattr(classifier, "best_mixture", lambda drawn, grown: (0.0, 1.0))
    model, growths = grown_by_a_search(monkeypatch, sharp_rows(500))
    assert len(growths) == 1
    assert model.grown_share_ == 0.0


@pytest.mark.parametrize("parameters", [{"C": 1.0}, {"maps": "ferns"}, {"loss": "logistic"}])
def test_what_is_given_is_not_mixed(parameters):
    assert fitted(sharp_rows(400), **parameters).grown_share_ == 0.0


def test_rows_that_drawn_maps_do_not_tell_apart_come_in_any_order():
    X, y = sharp_rows(600)
    jitter = np.random.default_rng(1).normal(0, 1e-5, X.shape).astype(np.float32)
    X, y = np.concatenate([X, X + jitter]), np.concatenate([y, y])
    order = np.random.default_rng(1).permutation(len(y))
    one, other = fitted((X, y), n_maps=20), fitted((X[order], y[order]), n_maps=20)
    assert one.grown_share_ == other.grown_share_ > 0
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_a_weight_of_two_is_two_rows():
    X, y = sharp_rows(700)
    twice = fitted((np.concatenate([X, X[:233]]), np.concatenate([y, y[:233]])))
    weighted = fitted((X, y, np.where(np.arange(700) < 233, 2.0, 1.0)))
    assert twice.grown_share_ == weighted.grown_share_ > 0
    np.testing.assert_array_equal(twice.decision_function(X), weighted.decision_function(X))


@pytest.fixture(scope="module")
def numbers():
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, (600, 6))
    return X, X[:, 1] + 2 * np.floor(4 * X[:, 0]) % 3 + generator.normal(0, 0.3, 600)


def test_regressors_mix_few_rows_by_folds(numbers, monkeypatch):
    monkeypatch.setattr(limits, "ROWS_OF_MIXTURES", 10_000)
    X, y = numbers
    together = y + 2 * np.sign(X[:, 2] * X[:, 3])
    model = MBKLRegressor(n_maps=300, random_state=0).fit(X, together)
    assert 0.0 < model.grown_share_ <= 1.0
    assert model.n_held_out_ == pytest.approx(600)


def test_the_first_fold_says_that_growth_gains_nothing(numbers, monkeypatch):
    monkeypatch.setattr(limits, "ROWS_OF_MIXTURES", 10_000)
    growths, grow = [], MBKLRegressor._grow_maps
    monkeypatch.setattr(
        MBKLRegressor, "_grow_maps", lambda *given: growths.append(0) or grow(*given)
    )
    model = MBKLRegressor(n_maps=300, random_state=0).fit(*numbers)
    assert model.grown_share_ == 0.0
    assert len(growths) == 1


def test_regressors_mix_two_growths_that_hold_out_rows_of_their_own(numbers):
    X, y = numbers
    model = MBKLRegressor(n_maps=300, random_state=0).fit(X, y)
    assert 0.0 < model.grown_share_ <= 1.0
    assert model.n_held_out_ == pytest.approx(240)
    one, other = model.maps_.families[-2:]
    assert not one.is_ordered
    assert not other.is_ordered
    assert model.theta_.size == model.n_maps_
    assert model.theta_.sum() == pytest.approx(1.0)
    order = np.random.default_rng(1).permutation(len(y))
    again = MBKLRegressor(n_maps=300, random_state=0, n_jobs=2).fit(X[order], y[order])
    np.testing.assert_array_equal(model.predict_interval(X), again.predict_interval(X))
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    np.testing.assert_array_equal(mbkl.load(file).predict(X), model.predict(X))


def test_a_second_growth_does_not_begin_when_time_is_over(numbers, monkeypatch):
    monkeypatch.setattr(
        Progress, "reason_to_stop", lambda self: "time" if "growth" in self.timings else None
    )
    model = MBKLRegressor(n_maps=300, random_state=0).fit(*numbers)
    assert sum(not maps.is_ordered for maps in model.maps_.families) <= 2


def test_equal_weights_change_nothing():
    X, y = sharp_rows(700)
    plain, weighted = fitted((X, y)), fitted((X, y, np.full(700, 0.1)))
    assert plain.grown_share_ == weighted.grown_share_ > 0

"""Boosted stumps beside plain loops over all stumps."""

import numpy as np
import pytest

from mbkl_paper.baselines import AdaBoostStumps
from mbkl_paper.baselines.adaboost import candidates

VARIANTS = ["gentle", "real", "modest"]


def value(variant, D, y, side):
    """Return f on one side, straight from the definitions."""
    positive, negative = D[side & (y > 0)].sum(), D[side & (y < 0)].sum()
    if variant == "real":
        return 0.5 * np.log((positive + 1 / y.size) / (negative + 1 / y.size))
    if variant == "gentle":
        return (positive - negative) / (positive + negative)
    inverted = (1 - D) / (1 - D).sum()
    inverted_positive = inverted[side & (y > 0)].sum()
    inverted_negative = inverted[side & (y < 0)].sum()
    return positive * (1 - inverted_positive) - negative * (1 - inverted_negative)


def plain_boosting(X, y, variant, n_rounds, X_new):
    """Boost with a loop over every feature and every gap between its values."""
    D = np.full(y.size, 1 / y.size)
    scores, found = np.zeros(len(X_new)), []
    for _ in range(n_rounds):
        best = (np.inf, None)
        for feature in range(X.shape[1]):
            values = np.unique(X[:, feature])
            for threshold in (values[1:] + values[:-1]) / 2:
                right = X[:, feature] > threshold
                means = [(D * y)[side].sum() / D[side].sum() for side in (~right, right)]
                error = (D * (y - np.where(right, means[1], means[0])) ** 2).sum()
                if error < best[0] - 1e-12:
                    best = (error, (feature, threshold))
        feature, threshold = best[1]
        found.append(best[1])
        right = X[:, feature] > threshold
        left_value, right_value = (value(variant, D, y, side) for side in (~right, right))
        D = D * np.exp(-y * np.where(right, right_value, left_value))
        D /= D.sum()
        scores += np.where(X_new[:, feature] > threshold, right_value, left_value)
    return scores, found


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_classes_are_the_plain_loops(make_data, variant):
    X, y = make_data(40, 3)
    X_new, _ = make_data(30, 3, seed=1)
    expected, stumps = plain_boosting(X, np.where(y == 1, 1, -1), variant, 12, X_new)
    model = AdaBoostStumps(variant, n_rounds=12).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X_new), expected, atol=1e-9)
    chosen = set(zip(model.stump_features_, model.stump_thresholds_, strict=True))
    assert chosen == set(stumps)
    assert model.n_rounds_ == 12


@pytest.mark.parametrize("variant", VARIANTS)
def test_many_classes_are_one_against_the_rest(make_data, variant):
    X, y = make_data(45, 3, 3)
    model = AdaBoostStumps(variant, n_rounds=6).fit(X, y)
    for number in range(3):
        expected, _ = plain_boosting(X, np.where(y == number, 1, -1), variant, 6, X)
        np.testing.assert_allclose(model.decision_function(X)[:, number], expected, atol=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_compiled_is_plain(make_data, monkeypatch, variant, n_jobs):
    X, y = make_data(300, 4, 3)
    X[:, 3] = X[:, 0]  # of equal stumps the first is taken
    monkeypatch.setattr("mbkl_paper.baselines.adaboost._SMALLEST_SHARE", 1)
    models = []
    for limit in (np.inf, 0):
        monkeypatch.setattr("mbkl_paper.baselines.adaboost._WORTH_COMPILING", limit)
        models.append(AdaBoostStumps(variant, n_rounds=30, n_jobs=n_jobs).fit(X, y))
    plain, compiled = models
    np.testing.assert_array_equal(compiled.stump_thresholds_, plain.stump_thresholds_)
    np.testing.assert_array_equal(compiled.stump_features_, plain.stump_features_)
    np.testing.assert_array_equal(compiled.coef_, plain.coef_)
    np.testing.assert_array_equal(compiled.decision_function(X), plain.decision_function(X))
    assert 3 not in compiled.stump_features_


@pytest.mark.parametrize("variant", ["gentle", "real"])
def test_the_exponential_loss_falls(make_data, variant):
    X, y = make_data(80, 4)
    labels = np.where(y == 1, 1, -1)
    losses = [
        np.exp(-labels * AdaBoostStumps(variant, n_rounds=n).fit(X, y).decision_function(X)).mean()
        for n in (1, 5, 25, 60)
    ]
    assert losses == sorted(losses, reverse=True)


def test_few_bins_are_quantiles():
    X = np.random.default_rng(0).exponential(size=(1000, 1))
    thresholds = candidates(X, 4).thresholds
    np.testing.assert_allclose((thresholds < X).mean(axis=0), [0.75, 0.5, 0.25])
    assert candidates(X, 1000).thresholds.size == 999


def test_quantiles_of_repeated_values_are_used_once():
    X = np.concatenate([np.zeros(900), np.arange(1, 101)])[:, None]
    np.testing.assert_array_equal(candidates(X, 10).thresholds, [0.5])


def test_neighbouring_numbers_are_told_apart():
    X = np.array([[1.0], [np.nextafter(np.float32(1), np.float32(2))]])
    assert AdaBoostStumps(n_rounds=1).fit(X, [0, 1]).score(X, [0, 1]) == 1.0


def test_constant_features_are_never_asked(make_data):
    X, y = make_data()
    X[:, 1] = 7.0
    assert 1 not in AdaBoostStumps(n_rounds=10).fit(X, y).stump_features_
    constant = AdaBoostStumps().fit(np.ones((6, 2)), [0, 1] * 3)
    assert constant.n_rounds_ == 0
    np.testing.assert_array_equal(constant.predict(np.ones((2, 2))), [0, 0])


def test_it_ends_where_nothing_can_be_added():
    model = AdaBoostStumps("gentle", n_rounds=50).fit([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1])
    assert model.n_rounds_ == 0


@pytest.mark.parametrize("wrong", [{"variant": "discrete"}, {"n_rounds": 0}, {"n_bins": 1}])
def test_wrong_parameters(make_data, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        AdaBoostStumps(**wrong).fit(*make_data())

"""Figures and curves of predictions, against those of scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics

from mbkl.explain import number_figures, probability_figures, quality_curves
from mbkl.explain.quality import figures_of_the_mean


def chances(n_classes, n_rows=200):
    generator = np.random.default_rng(0)
    values = generator.dirichlet(np.ones(n_classes), size=n_rows)
    y = (values.cumsum(axis=1) < generator.random((n_rows, 1))).sum(axis=1)
    return y, values, np.arange(n_classes)


def test_two_classes():
    y, values, classes = chances(2)
    found = probability_figures(y, values, classes)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, values[:, 1]))
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, values))
    assert found["brier_score"] == pytest.approx(metrics.brier_score_loss(y, values[:, 1]))


def test_many_classes():
    y, values, classes = chances(4)
    found = probability_figures(y, values, classes)
    expected = metrics.roc_auc_score(y, values, multi_class="ovr")
    assert found["auc"] == pytest.approx(expected)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, values))


def test_rows_of_one_class_have_no_auc():
    assert "auc" not in probability_figures(np.zeros(3), np.full((3, 2), 0.5), np.arange(2))


def test_a_class_that_is_not_known():
    y, values, classes = chances(2)
    found = probability_figures(np.where(y == 0, 7, y), values, classes)
    assert found["log_loss"] > 5
    assert np.isfinite(found["brier_score"])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curves(n_classes):
    y, values, classes = chances(n_classes, 3000)
    found = quality_curves(y, values, classes)
    assert [each.label for each in found] == ([1] if n_classes == 2 else [0, 1, 2])
    for each in found:
        own = y == each.label
        assert each.auc == pytest.approx(metrics.roc_auc_score(own, values[:, each.label]))
        assert each.roc.shape[1] <= 200
        np.testing.assert_array_equal(each.roc[:, [0, -1]], [[0, 1], [0, 1]])
        assert each.reliability[2].sum() == 3000
        # These probabilities are what happens.
        assert np.abs(each.reliability[0] - each.reliability[1]).max() < 0.1


def test_few_different_probabilities():
    y = np.arange(100) % 2
    values = np.where(y[:, None] == np.arange(2), 0.75, 0.25)
    (curves,) = quality_curves(y, values, np.arange(2))
    assert curves.reliability[:2].tolist() == [[0.25, 0.75], [0.0, 1.0]]


def test_figures_of_numbers_are_those_of_scikit_learn():
    draw = np.random.default_rng(0)
    y = draw.normal(size=50)
    said = y + 0.3 * draw.normal(size=50)
    found = number_figures(y, said, np.column_stack([said - 0.5, said + 0.5]))
    assert found["r2"] == pytest.approx(metrics.r2_score(y, said))
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, said))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(y, said))
    assert found["coverage"] == pytest.approx((np.abs(y - said) <= 0.5).mean())
    assert found["mean_width"] == pytest.approx(1)
    assert found["below"] == (y < said).mean()


def test_there_is_no_r2_of_equal_numbers():
    assert "r2" not in number_figures(np.ones(3), np.array([1.0, 2.0, 1.0]))


def test_the_mean_explains_nothing():
    found = figures_of_the_mean(np.arange(101.0), 0.9)
    assert found["r2"] == 0
    assert found["coverage"] == pytest.approx(0.9, abs=0.01)
    assert found["mean_width"] == pytest.approx(90)

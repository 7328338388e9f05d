import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from mbkl.explain.number_quality import figures_of_the_mean, number_figures


def test_figures_are_those_of_scikit_learn():
    draw = np.random.default_rng(0)
    y = draw.normal(size=50)
    said = y + 0.3 * draw.normal(size=50)
    found = number_figures(y, said, np.column_stack([said - 0.5, said + 0.5]))
    assert found["r2"] == pytest.approx(r2_score(y, said))
    assert found["rmse"] == pytest.approx(root_mean_squared_error(y, said))
    assert found["mae"] == pytest.approx(mean_absolute_error(y, said))
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

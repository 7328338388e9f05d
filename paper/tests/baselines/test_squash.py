"""The logistic function of standardised features."""

import numpy as np
import pytest

from mbkl_paper.baselines import Squash


def test_the_formula(make_data):
    X, _ = make_data()
    train, new = X[:50], X[50:]
    expected = 1 / (1 + np.exp(-(new - train.mean(axis=0)) / train.std(axis=0)))
    np.testing.assert_allclose(Squash().fit(train).transform(new), expected)


def test_everything_lies_in_the_unit_interval():
    X = np.array([[-1e30, 5.0, 0.0], [1e30, 5.0, 1e-30], [0.0, 5.0, 2e-30]])
    squashed = Squash().fit_transform(X)
    assert ((squashed >= 0) & (squashed <= 1)).all()
    np.testing.assert_array_equal(squashed[:, 1], 0.5)


def test_missing_values_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        Squash().fit([[0.0], [np.nan]])


def test_names_stay():
    names = Squash().fit(np.eye(2)).get_feature_names_out(["a", "b"])
    np.testing.assert_array_equal(names, ["a", "b"])

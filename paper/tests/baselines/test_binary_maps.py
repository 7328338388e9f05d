"""Stumps as columns."""

import numpy as np
import pytest
from scipy import sparse

from mbkl import MBKernel
from mbkl_paper.baselines import BinaryMaps


def test_columns_are_the_stumps(make_data):
    X, _ = make_data()
    maps = BinaryMaps(100, random_state=0).fit(X[:50])
    features, thresholds = maps.stump_features_, maps.stump_thresholds_
    expected = np.where(X[:, features] > thresholds, 1.0, -1.0)
    np.testing.assert_array_equal(maps.transform(X), expected)
    np.testing.assert_array_equal(maps.transform(sparse.csr_array(X)), expected)
    assert len(np.unique(expected[:50], axis=1).T) == features.size


def test_they_are_the_maps_of_mbkl(make_data):
    X, y = make_data()
    kernel = MBKernel(maps="stumps", n_maps=100, random_state=5).fit(X, y)
    maps = BinaryMaps(100, random_state=5).fit(X)
    np.testing.assert_array_equal(maps.stump_thresholds_, kernel.stump_thresholds_)


def test_the_usual_number(make_data):
    X, _ = make_data()
    usual, same = BinaryMaps(random_state=0).fit(X), BinaryMaps(2000, random_state=0).fit(X)
    np.testing.assert_array_equal(usual.stump_thresholds_, same.stump_thresholds_)


def test_rows_that_are_all_the_same_are_an_error():
    with pytest.raises(ValueError, match="No feature of X varies"):
        BinaryMaps().fit(np.ones((5, 2)))


def test_no_maps_are_an_error():
    with pytest.raises(ValueError, match="n_maps"):
        BinaryMaps(0).fit(np.eye(3))

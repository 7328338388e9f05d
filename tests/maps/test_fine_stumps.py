"""Thresholds as fine as a byte allows."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.engine.rows import as_rows
from mbkl.maps.stumps import even_thresholds, fine_stumps


def sample(n_rows, missing=0.0):
    """Return rows of few digits."""
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(n_rows, 4)) * 64) / 64
    X[generator.random(X.shape) < missing] = np.nan
    return X


VALUES = st.lists(st.floats(-1e6, 1e6, width=32), min_size=0, max_size=60)


@given(values=VALUES, n_thresholds=st.integers(1, 20), seed=st.integers(0, 99))
def test_thresholds_lie_between_neighbouring_values(values, n_thresholds, seed):
    values = np.array(values, np.float32)
    mass = np.random.default_rng(seed).exponential(size=values.size)
    found = even_thresholds(values, mass, n_thresholds)
    assert found.size <= n_thresholds
    assert found.dtype == np.float64
    assert (found == found.astype(np.float32)).all()
    assert (np.diff(found) > 0).all()
    distinct = np.unique(values)
    if not distinct.size:
        assert not found.size
        return
    # No two in the same gap, and none outside.
    gaps = np.searchsorted(distinct, found, side="right")
    assert np.unique(gaps).size == found.size
    assert ((gaps > 0) & (gaps < distinct.size)).all()


@given(values=VALUES)
def test_few_values_are_all_told_apart(values):
    values = np.array(values, np.float32)
    found = even_thresholds(values, np.ones(values.size), 100)
    assert found.size == max(np.unique(values).size - 1, 0)


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 3.0, 3.0]])
def test_no_thresholds_without_two_values(values):
    assert even_thresholds(np.array(values), np.ones(len(values)), 5).shape == (0,)


def test_neighbouring_numbers_are_told_apart():
    values = [np.float32(1)]
    for _ in range(4):
        values.append(np.nextafter(values[-1], np.float32(2)))
    # Halfway between two of them is rounded down and up in turn.
    for low, high in pairwise(values):
        (threshold,) = even_thresholds(np.array([low, high]), np.ones(2), 5)
        assert low <= threshold < high


@pytest.mark.parametrize("n_thresholds", [3, 10, 254])
def test_equal_values_have_even_intervals(n_thresholds):
    values = np.random.default_rng(0).normal(size=20_000).astype(np.float32)
    found = even_thresholds(values, np.ones(values.size), n_thresholds)
    counts = np.bincount(np.searchsorted(found, values))
    assert found.size >= n_thresholds - 1
    assert counts.max() <= 20_000 / n_thresholds + 1


@pytest.mark.parametrize("place", [0, 7, 49])
def test_heavy_values_are_alone(place):
    values = np.arange(50.0)
    mass = np.ones(50)
    mass[place] = 200.0
    found = even_thresholds(values, mass, 10)
    interval = np.searchsorted(found, values)
    assert (interval == interval[place]).sum() == 1
    # The others divide what is left.
    assert np.bincount(interval).max() <= 7


@pytest.mark.parametrize(
    "transform", [np.exp, np.cbrt, lambda x: 3 * x - 7], ids=["exp", "cbrt", "line"]
)
def test_a_monotone_transform_keeps_the_intervals(transform):
    generator = np.random.default_rng(0)
    values = np.round(generator.normal(size=3000), 2).astype(np.float32)
    mass = generator.integers(1, 5, size=3000).astype(float)
    changed = transform(values).astype(np.float32)
    assert np.unique(changed).size == np.unique(values).size
    left = np.searchsorted(even_thresholds(values, mass, 30), values)
    right = np.searchsorted(even_thresholds(changed, mass, 30), changed)
    np.testing.assert_array_equal(left, right)


def test_codes_fit_in_a_byte_and_missing_values_have_their_own(loops):
    X = sample(2000, missing=0.1)
    X[:, 0] = np.random.default_rng(1).random(2000)  # more values than codes
    X[:, 3] = 5.0
    stumps, codes = fine_stumps(replace(as_rows(X), loops=loops), np.ones(2000), 0)
    assert codes.values.dtype == np.uint8
    assert stumps.features.tolist() == [0, 1, 2]
    for group, column in enumerate(X.T[:3]):
        missing = np.isnan(column)
        assert (codes.values[group][missing] == 0).all()
        assert (codes.values[group][~missing] > 0).all() or not missing.any()
        order = np.argsort(column[~missing])
        assert (np.diff(codes.values[group][~missing][order].astype(int)) >= 0).all()


def test_rows_without_weight_have_no_say_in_thresholds():
    X = sample(400)
    weights = np.ones(400)
    weights[200:] = 0.0
    X[200:] += 100
    stumps, _ = fine_stumps(as_rows(X), weights, 0)
    assert stumps.edges.thresholds.max() < 60

"""Samples of the rows: neither their order nor their format matters."""

import numpy as np
import pytest
from scipy import sparse

from mbkl.maps.sample import draw_sample, first_by_hash, row_keys, sample_rows


def rows_with_repeats(n_rows=300, seed=0):
    generator = np.random.default_rng(seed)
    # A coarse grid: many rows are equal, and many values zero.
    X = generator.integers(-1, 3, size=(n_rows, 3)) / 4
    X[generator.random(X.shape) < 0.1] = np.nan
    return X, generator.integers(2, size=n_rows), generator.random(n_rows) + 0.5


def assert_same(left, right):
    np.testing.assert_array_equal(left.X, right.X)
    np.testing.assert_array_equal(left.y, right.y)
    np.testing.assert_array_equal(left.weights, right.weights)


def as_dict(X, y, weights):
    """Add up the weights of equal rows, by the definition."""
    masses: dict = {}
    for row, label, weight in zip(X, y, weights, strict=True):
        key = (*("missing" if np.isnan(value) else float(value) for value in row), int(label))
        masses[key] = masses.get(key, 0.0) + weight
    return masses


@pytest.mark.parametrize("n_rows", [10, 1000])
def test_the_order_of_the_rows_does_not_matter(n_rows):
    X, y, weights = rows_with_repeats()
    expected = draw_sample(X, y, weights, n_rows, 0)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        assert_same(draw_sample(X[order], y[order], weights[order], n_rows, 0), expected)


def test_the_order_of_nearly_equal_rows_does_not_matter():
    """Values that single precision cannot tell apart count as equal."""
    X = np.array([[1.0], [1.0 + 1e-12], [2.0]])
    y, weights = np.zeros(3, dtype=int), np.ones(3)
    expected = draw_sample(X, y, weights, 10, 0)
    assert expected.weights.tolist().count(2.0) == 1
    order = [1, 0, 2]
    assert_same(draw_sample(X[order], y[order], weights[order], 10, 0), expected)


def test_equal_rows_are_merged_with_their_weights():
    X, y, weights = rows_with_repeats()
    sample = draw_sample(X, y, weights, 1000, 0)
    expected = as_dict(X, y, weights)
    found = as_dict(sample.X, sample.y, sample.weights)
    assert len(sample.y) == len(expected) == len(found)
    assert found.keys() == expected.keys()
    for key, mass in expected.items():
        assert found[key] == pytest.approx(mass)


def test_a_weight_is_a_repetition():
    X, y, _ = rows_with_repeats()
    times = np.random.default_rng(1).integers(1, 4, size=len(X))
    weighted = draw_sample(X, y, times.astype(float), 40, 0)
    repeated = draw_sample(
        np.repeat(X, times, axis=0), np.repeat(y, times), np.ones(times.sum()), 40, 0
    )
    assert_same(weighted, repeated)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_is_dense(form):
    X, y, weights = rows_with_repeats()
    expected = draw_sample(X, y, weights, 50, 0)
    assert_same(draw_sample(form(X), y, weights, 50, 0), expected)
    assert_same(draw_sample(form(X.astype(np.float32)), y, weights, 50, 0), expected)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
def test_stored_zeros_are_zeros(form):
    X, y, weights = rows_with_repeats()
    stored = form(np.where(X == 0, 9.0, X))
    stored.data[stored.data == 9.0] = 0.0
    assert stored.nnz > form(X).nnz
    assert_same(draw_sample(stored, y, weights, 50, 0), draw_sample(X, y, weights, 50, 0))


def test_entries_stored_twice_are_added_up():
    X = sparse.csr_array(([1.0, 1.0, 2.0], [0, 0, 0], [0, 2, 3]), shape=(2, 2))
    sample = draw_sample(X, np.zeros(2, dtype=int), np.ones(2), 10, 0)
    np.testing.assert_array_equal(sample.X, [[2.0, 0.0]])
    np.testing.assert_array_equal(sample.weights, [2.0])
    assert X.nnz == 3  # the caller's matrix stays as it is


def test_single_precision_is_double_precision():
    X, y, weights = rows_with_repeats()
    same = draw_sample(X.astype(np.float32), y, weights, 50, 0)
    assert same.X.dtype == np.float32
    assert_same(same, draw_sample(X, y, weights, 50, 0))


def test_zeros_of_either_sign_are_equal():
    X = np.array([[0.0, 1.0], [-0.0, 1.0]])
    sample = draw_sample(X, np.zeros(2, dtype=int), np.ones(2), 10, 0)
    np.testing.assert_array_equal(sample.weights, [2.0])


def test_missing_values_are_equal():
    other = np.array([0x7FF8_0000_0000_0001], dtype=np.uint64).view(np.float64)[0]
    X = np.array([[np.nan], [-np.nan], [other], [0.0]])
    sample = draw_sample(X, np.zeros(4, dtype=int), np.ones(4), 10, 0)
    assert sorted(sample.weights) == [1.0, 3.0]


def test_classes_are_not_merged():
    sample = draw_sample(np.ones((4, 1)), np.array([0, 1, 0, 2]), np.ones(4), 10, 0)
    assert sorted(sample.y) == [0, 1, 2]
    assert sample.weights[sample.y == 0] == 2.0


@pytest.mark.parametrize("n_rows", [1, 7, 40])
def test_there_are_at_most_so_many_different_rows(n_rows):
    X, y, weights = rows_with_repeats()
    sample = draw_sample(X, y, weights, n_rows, 0)
    assert sample.X.shape == (n_rows, 3)
    assert sample.y.shape == sample.weights.shape == (n_rows,)
    # A smaller sample is a part of a larger one.
    larger = draw_sample(X, y, weights, n_rows + 5, 0)
    np.testing.assert_array_equal(larger.X[:n_rows], sample.X)


def test_another_seed_draws_other_rows():
    X = np.random.default_rng(0).normal(size=(100, 2))
    y, weights = np.zeros(100, dtype=int), np.ones(100)
    left, right = (draw_sample(X, y, weights, 20, seed) for seed in (0, 1))
    assert not np.array_equal(left.X, right.X)


def test_rows_are_drawn_without_preference():
    X = np.sort(np.random.default_rng(0).random((2000, 1)), axis=0)
    sample = draw_sample(X, np.zeros(2000, dtype=int), np.ones(2000), 500, 0)
    assert sample.X.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / 500))


def test_keys_in_parts_are_the_same(monkeypatch):
    X, y, _ = rows_with_repeats()
    whole = row_keys(X, y, 0)
    monkeypatch.setattr("mbkl.engine.row_blocks._VALUES_AT_ONCE", 10)
    np.testing.assert_array_equal(row_keys(X, y, 0), whole)


def test_many_features_allow_fewer_rows():
    assert sample_rows(1, 500) == 500
    assert sample_rows(0, 500) == 500
    assert sample_rows(10**9, 500) == 100
    assert sample_rows(10**9, 50) == 50


def test_the_first_rows_by_hash_are_a_fair_part_of_repeated_rows():
    generator = np.random.default_rng(0)
    X = generator.integers(2, size=(20_000, 2)).astype(float)
    y = generator.integers(2, size=20_000)
    rows = first_by_hash(X, y, 2_000, seed=0)
    assert rows.size == np.unique(rows).size == 2_000
    kinds, counts = np.unique(np.column_stack([X, y])[rows], axis=0, return_counts=True)
    assert len(kinds) == 8
    assert counts.min() > 150


def test_the_first_rows_by_hash_do_not_depend_on_the_order():
    generator = np.random.default_rng(1)
    X = generator.integers(5, size=(500, 2)).astype(float)
    y = np.zeros(500, dtype=int)
    order = generator.permutation(500)
    left, right = first_by_hash(X, y, 100, 0), first_by_hash(X[order], y, 100, 0)
    kinds = [np.unique(part, axis=0, return_counts=True) for part in (X[left], X[order][right])]
    np.testing.assert_array_equal(kinds[0][0], kinds[1][0])
    np.testing.assert_array_equal(kinds[0][1], kinds[1][1])

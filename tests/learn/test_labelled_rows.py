"""Rows with their classes: hashes, the order of their own, and equal ones merged."""

import numpy as np
import pytest

from mbkl.engine import limits
from mbkl.engine.twins import TWINS
from mbkl.learn.labelled_rows import row_hashes


@pytest.fixture(scope="module")
def make_rows(make_operator, labelled):
    """Return a function that draws rows of known class, some of them equal."""

    def make(n_rows=300, n_classes=3, order=None, weights=None):
        X = np.random.default_rng(0).integers(12, size=(n_rows, 3)).astype(float)
        y = np.random.default_rng(1).integers(n_classes, size=n_rows)
        rows = labelled(make_operator(X, n_maps=200), y, n_classes, weights)
        return rows if order is None else rows.take(order)

    return make


@pytest.fixture(params=["collected", "where they are"])
def few_and_many(request, monkeypatch):
    """Let merged rows be collected in the order of their own, or stay where they are."""
    is_few = request.param == "collected"
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 10**6 if is_few else 10)
    return is_few


def in_own_order(rows):
    """Return codes, classes and weights of rows in the order of their own."""
    order = rows.first(rows.n_rows - 1) if rows.rank is not None else np.arange(rows.n_rows - 1)
    part = rows.take(order)
    return part.operator.codes.dense().values, part.y, part.weights


def test_hashes_tell_different_rows_apart(make_operator):
    operator = make_operator(np.random.default_rng(0).normal(size=(3000, 3)), n_maps=300)
    hashes = row_hashes(operator, 0)
    different_rows = np.unique(operator.codes.values, axis=1).shape[1]
    for column in hashes.T:
        assert np.unique(column).size == different_rows
    assert not (hashes[:, 0] == hashes[:, 1]).any()


def test_hashes_are_the_same_bits_with_both_loops(make_compiled, make_operator):
    X = np.random.default_rng(0).normal(size=(200, 3))
    expected = row_hashes(make_operator(X, loops=TWINS), 5)
    found = row_hashes(make_operator(X, loops=make_compiled(2)), 5)
    np.testing.assert_array_equal(found, expected)


def test_hashes_are_spread_evenly(make_operator):
    operator = make_operator(np.random.default_rng(0).normal(size=(4000, 3)), n_maps=300)
    bits = row_hashes(operator, 0)[:, 0][:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    assert (np.abs(bits.mean(axis=0) - 0.5) < 0.06).all()


def test_merged_rows_are_the_different_ones(make_rows, few_and_many):
    weights = np.random.default_rng(2).random(300)
    rows = make_rows(weights=weights)
    merged = rows.merged
    lines = np.vstack([rows.operator.codes.values, rows.y])
    different = np.unique(lines, axis=1)
    found = np.vstack([merged.operator.codes.dense().values, merged.y])
    assert merged.n_rows == different.shape[1] < 300
    np.testing.assert_array_equal(np.unique(found, axis=1), different)
    assert merged.weights.sum() == pytest.approx(weights.sum())
    for line, weight in zip(found.T, merged.weights, strict=True):
        assert weight == pytest.approx(weights[(lines == line[:, None]).all(axis=0)].sum())
    assert (merged.rank is None) == few_and_many


def test_the_order_of_the_rows_does_not_matter_to_merged_ones(make_rows, few_and_many):
    order = np.random.default_rng(3).permutation(300)
    first, second = make_rows().merged, make_rows(order=order).merged
    for own, other in zip(in_own_order(first), in_own_order(second), strict=True):
        np.testing.assert_array_equal(own, other)


def test_rows_where_they_are_know_their_order(make_rows, monkeypatch):
    collected = in_own_order(make_rows().merged)
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 10)
    for own, other in zip(collected, in_own_order(make_rows().merged), strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("n_rows", [60, 10**6])
def test_a_balanced_part_is_in_the_order_of_its_own(make_rows, monkeypatch, n_rows):
    collected = make_rows().merged.balanced(n_rows)
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 10)
    left = make_rows().merged.balanced(n_rows)
    np.testing.assert_array_equal(collected.y, left.y)
    np.testing.assert_array_equal(collected.weights, left.weights)
    np.testing.assert_array_equal(
        collected.operator.codes.dense().values, left.operator.codes.dense().values
    )
    if n_rows == 60:
        np.testing.assert_array_equal(np.bincount(left.y), [20, 20, 20])


def test_rows_are_merged_once(make_rows):
    rows = make_rows()
    assert rows.merged is rows.merged


def test_rows_share_a_kernel_matrix(make_data, make_learner):
    X, y = make_data(60)
    learner = make_learner(X, y, n_maps=200, theta="ones")
    shared = learner.with_gram()
    chosen = np.array([5, 3, 40])
    whole = shared.rows.gram.matrix()
    np.testing.assert_array_equal(
        shared.take(chosen).rows.gram.matrix(), whole[np.ix_(chosen, chosen)]
    )
    part = shared.rows.merged.gram
    assert part.matrix().shape == (part.rows.size, part.rows.size)

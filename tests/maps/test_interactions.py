"""Evidence of interactions: found where there are some, and not in noise."""

import numpy as np
import pytest

from mbkl.maps.interactions import evidence_of_features

N_ROWS = 400


def uniform_ranks(n_features, n_rows=N_ROWS, seed=0):
    return np.random.default_rng(seed).random((n_rows, n_features))


def parity(ranks, features, n_parts=2):
    """Return +1 or -1 as the parts of the features' ranges have an even or odd sum."""
    parts = np.floor(ranks[:, features] * n_parts).sum(axis=1)
    return np.where(parts % 2 == 1, 1.0, -1.0)[:, None]


def evidence_of(ranks, labels, weights=None):
    weights = np.ones(len(ranks)) if weights is None else weights
    return evidence_of_features(ranks, labels, weights)


def assert_found(evidence, features):
    """Check that the features have the evidence, but for what chance adds now and then."""
    features = list(features)
    assert (evidence[features] > 100).all()
    assert evidence[features].sum() > 0.9 * evidence.sum()


@pytest.mark.parametrize("n_features", [2, 10, 100])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_pair_is_found(n_features, seed):
    ranks = uniform_ranks(n_features, seed=seed)
    features = [0, n_features - 1]
    assert_found(evidence_of(ranks, parity(ranks, features)), features)


@pytest.mark.parametrize("n_features", [3, 20, 64])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_parity_of_three_is_found(n_features, seed):
    ranks = uniform_ranks(n_features, seed=seed)
    features = [0, n_features // 2, n_features - 1]
    assert_found(evidence_of(ranks, parity(ranks, features)), features)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_chess_board_is_found(seed):
    ranks = uniform_ranks(10, seed=seed)
    assert_found(evidence_of(ranks, parity(ranks, [3, 7], n_parts=4)), [3, 7])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", [2, 3])
def test_parities_of_bits_are_found(seed, order):
    """Half of the bits, more or less, are ones: the median may be either."""
    bits = np.random.default_rng(seed).integers(2, size=(N_ROWS, 10)).astype(float)
    labels = np.where(bits[:, :order].sum(axis=1) % 2 == 1, 1.0, -1.0)[:, None]
    assert_found(evidence_of(bits, labels), range(order))


def test_flipping_a_feature_changes_little():
    ranks = uniform_ranks(6)
    labels = parity(ranks, [1, 2, 4])
    evidence = evidence_of(ranks, labels)
    np.testing.assert_allclose(evidence_of(1 - ranks, labels), evidence, rtol=0.1)
    np.testing.assert_allclose(evidence_of(ranks, -labels), evidence)


@pytest.mark.parametrize("n_features", [5, 40])
def test_hardly_anything_is_found_in_noise(n_features):
    found = []
    for seed in range(20):
        ranks = uniform_ranks(n_features, seed=seed)
        labels = np.random.default_rng(100 + seed).choice([-1.0, 1.0], size=(N_ROWS, 1))
        found.append(evidence_of(ranks, labels).sum())
    assert np.count_nonzero(found) <= 2
    assert max(found) < 10


def test_every_class_counts():
    ranks = uniform_ranks(8)
    y = (ranks[:, 0] > 0.5).astype(int) ^ (ranks[:, 1] > 0.5).astype(int)
    y[ranks[:, 2] > 0.7] = 2
    labels = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    assert {0, 1} <= set(np.flatnonzero(evidence_of(ranks, labels)))


def test_the_order_of_rows_and_features_does_not_matter():
    ranks = uniform_ranks(7)
    labels, weights = parity(ranks, [2, 5]), np.random.default_rng(1).random(N_ROWS) + 0.5
    evidence = evidence_of(ranks, labels, weights)
    generator = np.random.default_rng(2)
    rows, columns = generator.permutation(N_ROWS), generator.permutation(7)
    np.testing.assert_allclose(evidence_of(ranks[rows], labels[rows], weights[rows]), evidence)
    np.testing.assert_allclose(
        evidence_of(ranks[:, columns], labels, weights), evidence[columns], atol=1e-8
    )


def test_only_the_ratio_of_weights_matters():
    ranks = uniform_ranks(5)
    labels, weights = parity(ranks, [0, 1]), np.random.default_rng(1).random(N_ROWS) + 0.5
    np.testing.assert_allclose(
        evidence_of(ranks, labels, 1e100 * weights), evidence_of(ranks, labels, weights)
    )


@pytest.mark.parametrize("n_features", [0, 1, 301])
def test_too_few_or_too_many_features_have_none(n_features):
    ranks = uniform_ranks(n_features, 30)
    labels = np.where(np.arange(30) % 2, 1.0, -1.0)[:, None]
    np.testing.assert_array_equal(evidence_of(ranks, labels), np.zeros(n_features))


def test_constant_features_and_classes_have_none():
    ranks = uniform_ranks(6)
    ranks[:, 2] = 0.0
    labels = parity(ranks, [0, 1])
    assert_found(evidence_of(ranks, labels), [0, 1])
    assert not evidence_of(ranks, np.ones((N_ROWS, 1))).any()
    assert not evidence_of(np.zeros((N_ROWS, 3)), labels).any()


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_a_few_rows_are_no_evidence(n_rows):
    ranks = uniform_ranks(4, n_rows)
    labels = np.where(np.arange(n_rows) % 2, 1.0, -1.0)[:, None]
    assert not evidence_of(ranks, labels).any()

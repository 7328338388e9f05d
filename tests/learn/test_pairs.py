"""The pairs (row, class) that Step 1 learns from."""

import numpy as np
import pytest

from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.learn.pairs import row_hashes, sample_pairs


@pytest.fixture(scope="module")
def make_problem(make_operator):
    """Return a function that gives an operator on random rows and their classes."""

    def make(n_rows, n_classes, seed=0):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(n_rows, 3))
        y = np.arange(n_rows) % n_classes
        return make_operator(X, n_maps=300), y

    return make


def draw(operator, y, n_classes, ratio=2, max_pairs=10**9, weights=None, seed=0):
    weights = np.ones(y.size) if weights is None else np.asarray(weights, float)
    return sample_pairs(operator, y, n_classes, weights, ratio, max_pairs, seed)


def as_weights(pairs, names):
    """Return the total weight of each (name of row, class, label)."""
    totals = {}
    for row, label, sign, weight in zip(pairs.rows, pairs.classes, pairs.labels, pairs.weights):
        key = (names[row], int(label), int(sign))
        totals[key] = totals.get(key, 0.0) + weight
    return totals


@pytest.mark.parametrize(
    ("n_rows", "n_classes", "ratio", "n_pairs"),
    [
        pytest.param(1020, 17, 10, 11_220, id="Flowers17"),
        pytest.param(240, 8, 7, 1_920, id="OSR"),
        pytest.param(6340, 20, 2, 19_020, id="a-VOC08"),
        pytest.param(19_600, 2, 1, 19_600, id="Daimler"),
        pytest.param(300, 2, 5, 300, id="two classes"),
        pytest.param(300, 3, 50, 900, id="all wrong classes"),
    ],
)
def test_numbers_of_pairs_are_those_of_the_paper(make_problem, n_rows, n_classes, ratio, n_pairs):
    pairs = draw(*make_problem(n_rows, n_classes), n_classes, ratio, max_pairs=50_000)
    assert pairs.rows.size == n_pairs
    assert pairs.weights.sum() == n_pairs
    assert (pairs.labels == 1).sum() == (n_rows if n_classes > 2 else n_rows // 2)


def test_positives_have_their_own_class_and_negatives_another(make_problem):
    operator, y = make_problem(200, 5)
    pairs = draw(operator, y, 5, ratio=3)
    is_own = pairs.classes == y[pairs.rows]
    np.testing.assert_array_equal(is_own, pairs.labels == 1)
    assert set(pairs.labels) == {1, -1}
    assert set(pairs.classes) == set(range(5))


@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_wrong_classes_of_a_row_are_distinct(make_problem, ratio):
    pairs = draw(*make_problem(300, 5), 5, ratio)
    questions = set(zip(pairs.rows, pairs.classes))
    assert len(questions) == pairs.rows.size == 300 * (1 + ratio)


def test_pairs_are_sorted_by_class(make_problem):
    pairs = draw(*make_problem(100, 4), 4)
    assert (np.diff(pairs.classes) >= 0).all()


def test_every_class_is_asked_about_equally_often(make_problem):
    pairs = draw(*make_problem(4000, 5), 5, ratio=2)
    negatives = np.bincount(pairs.classes[pairs.labels == -1], minlength=5)
    assert negatives.min() > 0.9 * 1600
    assert negatives.max() < 1.1 * 1600


def test_two_classes_are_one_question(make_problem):
    operator, y = make_problem(40, 2)
    pairs = draw(operator, y, 2)
    np.testing.assert_array_equal(pairs.rows, np.arange(40))
    np.testing.assert_array_equal(pairs.labels, np.where(y == 1, 1, -1))
    assert not pairs.classes.any()


@pytest.mark.parametrize(("n_classes", "ratio", "per_row"), [(2, 3, 1), (4, 2, 3), (10, 2, 3)])
def test_too_many_pairs_are_cut_with_equal_classes(make_problem, n_classes, ratio, per_row):
    operator, y = make_problem(2000, n_classes)
    pairs = draw(operator, y, n_classes, ratio, max_pairs=600)
    assert pairs.rows.size == 600
    kept = np.bincount(y[np.unique(pairs.rows)], minlength=n_classes)
    np.testing.assert_array_equal(kept, 600 // per_row // n_classes)


def test_heavy_rows_count_as_one(make_problem):
    operator, y = make_problem(100, 2)
    pairs = draw(operator, y, 2, max_pairs=100, weights=np.full(100, 1e6))
    assert pairs.rows.size == 100
    np.testing.assert_array_equal(pairs.weights, 1e6)


def test_a_rare_class_is_kept_whole(make_operator):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    y = np.where(np.arange(1000) < 10, 0, 1 + np.arange(1000) % 2)
    pairs = draw(make_operator(X), y, 3, ratio=2, max_pairs=300)
    own = np.bincount(pairs.classes[pairs.labels == 1])
    np.testing.assert_array_equal(own, [10, 45, 45])


def test_every_class_keeps_a_row(make_problem):
    pairs = draw(*make_problem(100, 5), 5, max_pairs=2)
    assert set(pairs.classes[pairs.labels == 1]) == set(range(5))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("max_pairs", [10**9, 150])
def test_the_order_of_the_rows_does_not_matter(make_problem, n_classes, max_pairs):
    operator, y = make_problem(300, n_classes)
    order = np.random.default_rng(1).permutation(300)
    pairs = draw(operator, y, n_classes, max_pairs=max_pairs)
    shuffled = draw(operator.take(order), y[order], n_classes, max_pairs=max_pairs)
    assert as_weights(pairs, np.arange(300)) == pytest.approx(as_weights(shuffled, order))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("max_pairs", [10**9, 90])
def test_a_weight_is_a_number_of_repetitions(make_learner, n_classes, max_pairs):
    X, y = np.random.default_rng(0).normal(size=(100, 3)), np.arange(100) % n_classes
    counts = np.random.default_rng(1).integers(1, 5, size=100)
    rows = np.repeat(np.arange(100), counts)
    parts = []
    for learner in (make_learner(X, y, counts), make_learner(X[rows], y[rows])):
        merged = learner.merged
        pairs = draw(
            merged.operator, merged.y, n_classes, max_pairs=max_pairs, weights=merged.weights
        )
        parts.append(pairs)
    for name in ("rows", "classes", "labels", "weights"):
        np.testing.assert_array_equal(getattr(parts[0], name), getattr(parts[1], name))


def test_seeds_matter_and_nothing_else(make_problem):
    operator, y = make_problem(200, 6)
    first, again, other = (draw(operator, y, 6, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.classes, again.classes)
    assert as_weights(first, range(200)) != as_weights(other, range(200))


def test_hashes_tell_different_rows_apart(make_problem):
    operator, _ = make_problem(3000, 2)
    hashes = row_hashes(operator, 0)
    different_rows = np.unique(operator.codes.values, axis=1).shape[1]
    for column in hashes.T:
        assert np.unique(column).size == different_rows
    assert not (hashes[:, 0] == hashes[:, 1]).any()


def test_hashes_are_the_same_bits_on_both_engines(make_numba_engine, make_operator):
    X = np.random.default_rng(0).normal(size=(200, 3))
    expected = row_hashes(make_operator(X, engine=NumpyEngine()), 5)
    found = row_hashes(make_operator(X, engine=make_numba_engine(2)), 5)
    np.testing.assert_array_equal(found, expected)


def test_hashes_are_spread_evenly(make_problem):
    operator, _ = make_problem(4000, 2)
    bits = row_hashes(operator, 0)[:, 0][:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    assert (np.abs(bits.mean(axis=0) - 0.5) < 0.06).all()

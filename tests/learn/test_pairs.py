"""The pairs (row, class) that Step 1 learns from."""

import numpy as np
import pytest

from mbkl.learn.kernel_weights import n_wrong_classes, pairs_of


@pytest.fixture(scope="module")
def make_rows(make_operator, labelled):
    """Return a function that draws rows of known class."""

    def make(n_rows, n_classes, seed=0, weights=None):
        X = np.random.default_rng(0).normal(size=(n_rows, 3))
        y = np.arange(n_rows) % n_classes
        return labelled(make_operator(X, n_maps=300), y, n_classes, weights, seed)

    return make


def draw(rows, ratio=2, max_pairs=10**9):
    """Return the pairs of Step 1 with their rows."""
    part = rows.balanced(max_pairs // (1 + n_wrong_classes(rows.n_classes, ratio)))
    return part, pairs_of(part, ratio)


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
def test_numbers_of_pairs_are_those_of_the_paper(make_rows, n_rows, n_classes, ratio, n_pairs):
    _, pairs = draw(make_rows(n_rows, n_classes), ratio, max_pairs=50_000)
    assert pairs.rows.size == n_pairs
    assert pairs.weights.sum() == n_pairs
    assert (pairs.labels == 1).sum() == (n_rows if n_classes > 2 else n_rows // 2)


def test_positives_have_their_own_class_and_negatives_another(make_rows):
    rows, pairs = draw(make_rows(200, 5), ratio=3)
    is_own = pairs.classes == rows.y[pairs.rows]
    np.testing.assert_array_equal(is_own, pairs.labels == 1)
    assert set(pairs.labels) == {1, -1}
    assert set(pairs.classes) == set(range(5))


@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_wrong_classes_of_a_row_are_distinct(make_rows, ratio):
    _, pairs = draw(make_rows(300, 5), ratio)
    questions = set(zip(pairs.rows, pairs.classes))
    assert len(questions) == pairs.rows.size == 300 * (1 + ratio)


def test_pairs_are_sorted_by_class(make_rows):
    _, pairs = draw(make_rows(100, 4))
    assert (np.diff(pairs.classes) >= 0).all()


def test_every_class_is_asked_about_equally_often(make_rows):
    _, pairs = draw(make_rows(4000, 5), ratio=2)
    negatives = np.bincount(pairs.classes[pairs.labels == -1], minlength=5)
    assert negatives.min() > 0.9 * 1600
    assert negatives.max() < 1.1 * 1600


def test_two_classes_are_one_question(make_rows):
    rows, pairs = draw(make_rows(40, 2))
    np.testing.assert_array_equal(pairs.rows, np.arange(40))
    np.testing.assert_array_equal(pairs.labels, np.where(rows.y == 1, 1, -1))
    assert not pairs.classes.any()


@pytest.mark.parametrize(("n_classes", "ratio", "per_row"), [(2, 3, 1), (4, 2, 3), (10, 2, 3)])
def test_too_many_pairs_are_cut_with_equal_classes(make_rows, n_classes, ratio, per_row):
    rows, pairs = draw(make_rows(2000, n_classes), ratio, max_pairs=600)
    assert pairs.rows.size == 600
    kept = np.bincount(rows.y[np.unique(pairs.rows)], minlength=n_classes)
    np.testing.assert_array_equal(kept, 600 // per_row // n_classes)


def test_heavy_rows_count_as_one(make_rows):
    _, pairs = draw(make_rows(100, 2, weights=np.full(100, 1e6)), max_pairs=100)
    assert pairs.rows.size == 100
    np.testing.assert_array_equal(pairs.weights, 1e6)


def test_a_rare_class_is_kept_whole(make_operator, labelled):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    y = np.where(np.arange(1000) < 10, 0, 1 + np.arange(1000) % 2)
    _, pairs = draw(labelled(make_operator(X), y, 3), ratio=2, max_pairs=300)
    own = np.bincount(pairs.classes[pairs.labels == 1])
    np.testing.assert_array_equal(own, [10, 45, 45])


def test_every_class_keeps_a_row(make_rows):
    _, pairs = draw(make_rows(100, 5), max_pairs=2)
    assert set(pairs.classes[pairs.labels == 1]) == set(range(5))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("max_pairs", [10**9, 150])
def test_the_order_of_the_rows_does_not_matter(make_rows, n_classes, max_pairs):
    # The weights tell which row is which.
    rows = make_rows(300, n_classes, weights=np.arange(1, 301))
    order = np.random.default_rng(1).permutation(300)
    found = [draw(each, max_pairs=max_pairs) for each in (rows, rows.take(order))]
    first, second = (as_weights(pairs, part.weights) for part, pairs in found)
    assert first == second


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("max_pairs", [10**9, 90])
def test_a_weight_is_a_number_of_repetitions(make_learner, n_classes, max_pairs):
    X, y = np.random.default_rng(0).normal(size=(100, 3)), np.arange(100) % n_classes
    counts = np.random.default_rng(1).integers(1, 5, size=100)
    rows = np.repeat(np.arange(100), counts)
    parts = [
        draw(learner.rows.merged, max_pairs=max_pairs)[1]
        for learner in (make_learner(X, y, counts), make_learner(X[rows], y[rows]))
    ]
    for name in ("rows", "classes", "labels", "weights"):
        np.testing.assert_array_equal(getattr(parts[0], name), getattr(parts[1], name))


def test_seeds_matter_and_nothing_else(make_rows):
    first, again, other = (draw(make_rows(200, 6, seed=seed))[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.classes, again.classes)
    assert as_weights(first, range(200)) != as_weights(other, range(200))

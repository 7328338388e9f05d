"""Orders of levels, and the cuts in them that ferns ask about."""

import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLClassifier
from mbkl.engine.rows import ArrayRows, Sample
from mbkl.maps import Ferns
from mbkl.maps.categories import LevelCuts, random_sets
from mbkl.maps.choose import choose_kernel
from mbkl.maps.level_cuts import ordered_columns, steps_of_levels

N_LEVELS = np.array([0, 5, 3])
RANK = np.array([3, 0, 4, 1, 2])  # place of each level of the first category in the true order


def rows(n_rows=400, seed=0):
    generator = np.random.default_rng(seed)
    X = np.column_stack(
        [generator.normal(size=n_rows), generator.integers([5, 3], size=(n_rows, 2))]
    )
    return X, (RANK[X[:, 1].astype(int)] + generator.normal(size=n_rows) > 2).astype(int)


def sample(n_rows=400, seed=0):
    X, y = rows(n_rows, seed)
    return Sample(X, y, np.ones(n_rows))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_levels_are_in_the_order_of_what_their_rows_tell(n_classes):
    own = sample()
    labels = np.where(own.y[:, None] == np.arange(n_classes), 1.0, -1.0)
    _, places = steps_of_levels(own, 1, 5, labels)
    order = np.argsort(places[1:-1])
    assert order.tolist() in ([1, 3, 4, 0, 2], [2, 0, 4, 3, 1])
    assert places[1:-1].min() == 0.0
    assert places[1:-1].max() == 1.0
    # Missing values and new levels, of which there are none, are in the middle.
    assert 0.0 < places[0] == places[-1] < 1.0


def test_a_row_does_not_see_itself():
    """A level of a single row lies where those without any row do, whatever its class is."""
    X = np.zeros((50, 1))
    X[7] = 1.0
    y = np.arange(50) % 2
    steps, places = steps_of_levels(Sample(X, y, np.ones(50)), 0, 2, 2.0 * y[:, None] - 1.0)
    assert steps[7] == 0.0
    assert places[2] != places[-1]


def test_levels_that_tell_nothing_are_at_one_place():
    own = Sample(np.zeros((10, 1)), np.zeros(10, int), np.ones(10))
    steps, places = steps_of_levels(own, 0, 3, np.ones((10, 1)))
    assert not steps.any()
    assert not places.any()


def test_two_levels_and_numbers_have_no_order():
    assert ordered_columns(np.array([0, 2, 3])).tolist() == [2]
    assert not ordered_columns(None).size


def test_the_choice_tells_which_levels_are_in_order():
    choice = choose_kernel(sample(), 2, 400, n_levels=N_LEVELS)
    assert choice.rates.sum() == pytest.approx(1.0)
    assert choice.rates.argmax() == 1
    assert choice.cuts.shares[0] == 0.0
    assert choice.cuts.shares[1] > 0.7
    assert choice.cuts.places.size == 5 + 2 + 3 + 2


def test_levels_in_no_order_are_asked_about_by_random_halves():
    """A sign that flips with another column: neither has an order of its own."""
    generator = np.random.default_rng(0)
    X = generator.integers([6, 2], size=(400, 2)).astype(float)
    y = (np.isin(X[:, 0], [1, 4, 5]) ^ (X[:, 1] > 0)).astype(int)
    choice = choose_kernel(Sample(X, y, np.ones(400)), 2, 400, n_levels=np.array([6, 2]))
    assert choice.cuts.shares[0] < 0.3


def test_a_fern_parts_levels_as_often_as_the_choice_thinks():
    places = np.array([0.5, 0.0, 0.1, 0.4, 1.0, 0.7, 0.5, *np.full(5, 0.5)])
    cuts = LevelCuts(np.array([0.0, 0.75, 0.0]), places)
    rates = np.array([0.0, 1.0, 0.0])
    family = Ferns(depth=1, distribution="fixed", rates=rates, cuts=cuts)
    X = np.column_stack([np.zeros(5), np.arange(5), np.zeros(5)])
    _, codes = family.fit_codes(ArrayRows(X), np.ones(5), 20_000, 0, N_LEVELS)
    apart = (codes.values[:, :, None] != codes.values[:, None]).sum(axis=0) / 20_000
    own = places[1:6]
    expected = 0.75 * np.abs(own[:, None] - own) + 0.25 * 0.5 * (1 - np.eye(5))
    # A column has 256 sets, of which a quarter are random here.
    np.testing.assert_allclose(apart, expected, atol=0.06)


def test_without_cuts_all_sets_are_random_halves():
    features, shares = np.array([1, 1, 2]), np.array([0.1, 0.9, 0.5])
    plain = random_sets(features, shares, N_LEVELS, 3)
    none = random_sets(features, shares, N_LEVELS, 3, LevelCuts(np.zeros(3), np.zeros(12)))
    np.testing.assert_array_equal(plain.members, none.members)


def test_neither_the_order_nor_copies_of_rows_change_the_model():
    X, y = rows(150)
    frame = pd.DataFrame(X).astype({1: int, 2: int}).astype({1: "category", 2: "category"})
    model = MBKLClassifier(random_state=0).fit(frame, y)
    order = np.random.default_rng(1).permutation(150)
    again = MBKLClassifier(random_state=0).fit(frame.iloc[order], y[order])
    np.testing.assert_array_equal(model.decision_function(frame), again.decision_function(frame))
    twice = np.append(np.arange(150), np.arange(40))
    weights = np.where(np.arange(150) < 40, 2.0, 1.0)
    repeated = MBKLClassifier(random_state=0).fit(frame.iloc[twice], y[twice])
    weighted = MBKLClassifier(random_state=0).fit(frame, y, sample_weight=weights)
    np.testing.assert_array_equal(
        repeated.decision_function(frame), weighted.decision_function(frame)
    )

"""The protocols divide rows as they say, and draw the same from the same random state."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl_paper.datasets.protocols import FixedSplits, HeldOut, PerClass, StratifiedFolds

DRAWN = [StratifiedFolds(), HeldOut(0.1), PerClass(3, 2), PerClass(3)]
Y = np.repeat([0, 1, 2], [10, 12, 15])


def as_lists(splits):
    return [(train.tolist(), test.tolist()) for train, test in splits]


@pytest.mark.parametrize("protocol", DRAWN)
def test_the_same_random_state_draws_the_same(protocol):
    first = as_lists(protocol(Y, 0))
    assert first == as_lists(protocol(Y, 0))
    assert first == as_lists(pickle.loads(pickle.dumps(protocol))(Y, 0))
    assert first != as_lists(protocol(Y, 1))
    assert first == as_lists(protocol(Y, np.random.RandomState(0)))


@pytest.mark.parametrize("protocol", DRAWN)
@pytest.mark.parametrize("n_repeats", [1, 3])
def test_train_and_test_never_meet(protocol, n_repeats):
    splits = list(protocol(Y, 0, n_repeats=n_repeats))
    assert len(splits) == n_repeats * (5 if isinstance(protocol, StratifiedFolds) else 1)
    for train, test in splits:
        assert np.unique(np.concatenate([train, test])).size == train.size + test.size
        assert set(Y[train]) == set(Y[test]) == {0, 1, 2}
    assert len({test.tobytes() for _, test in splits}) == len(splits)


def test_folds_cover_all_rows_once():
    tested = np.concatenate([test for _, test in StratifiedFolds()(Y, 0)])
    np.testing.assert_array_equal(np.sort(tested), np.arange(Y.size))


def test_a_share_is_held_out():
    ((_, test),) = HeldOut(0.2)(np.arange(1000) % 4, 0)
    np.testing.assert_array_equal(np.bincount(test % 4), [50] * 4)
    ((_, test),) = HeldOut(0.001)(Y, 0)
    assert test.size == 3  # one of each class at least
    ((_, test),) = HeldOut(0.001)(Y, 0, test_size=12)
    assert test.size == 12


@given(n_train=st.integers(1, 9), n_test=st.none() | st.integers(1, 20), seed=st.integers(0, 99))
def test_every_class_gives_its_rows(n_train, n_test, seed):
    ((train, test),) = PerClass(n_train, n_test)(Y, seed)
    np.testing.assert_array_equal(np.bincount(Y[train]), [n_train] * 3)
    left = np.bincount(Y) - n_train
    expected = left if n_test is None else np.minimum(left, n_test)
    np.testing.assert_array_equal(np.bincount(Y[test]), expected)


def test_small_classes_are_named():
    with pytest.raises(ValueError, match="A class has 10 rows; of every class 10"):
        PerClass(10)(Y, 0)


def test_fixed_splits_draw_nothing():
    splits = ((np.array([0, 1]), np.array([2])),)
    protocol = FixedSplits(splits)
    assert as_lists(protocol(Y, 0)) == as_lists(protocol(Y, 7)) == as_lists(splits)
    with pytest.raises(TypeError, match="n_repeats"):
        protocol(Y, 0, n_repeats=2)


@pytest.mark.parametrize("protocol", DRAWN)
def test_unknown_options_are_refused_at_once(protocol):
    with pytest.raises(TypeError, match="n_fold"):
        protocol(Y, 0, n_fold=2)

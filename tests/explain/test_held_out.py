"""Which rows are held out."""

import warnings

import numpy as np
import pytest

from mbkl.explain.quality import folds_of


@pytest.mark.parametrize("are_classes", [True, False])
def test_each_row_is_held_out_once(are_classes):
    y = np.arange(20) % 4
    pairs = list(folds_of(y, are_classes, 5, seed=0))
    assert len(pairs) == 5
    assert sorted(np.concatenate([outside for _, outside in pairs])) == list(range(20))
    for inside, outside in pairs:
        assert sorted([*inside, *outside]) == list(range(20))
        assert not are_classes or sorted(y[outside]) == [0, 1, 2, 3]


def test_rare_classes_are_learned_from_in_each_fold():
    y = np.array(["often"] * 10 + ["twice"] * 2 + ["once"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pairs = list(folds_of(y, True, 5, seed=0))
    assert len(pairs) == 5
    for inside, outside in pairs:
        assert set(y[inside]) == {"often", "twice", "once"}
        assert "once" not in y[outside]


def test_fewer_folds_than_wanted():
    assert len(list(folds_of(np.array(["a", "a", "b"]), True, 5, seed=0))) == 2
    assert len(list(folds_of(np.arange(3.0), False, 5, seed=0))) == 3
    assert list(folds_of(np.array(["a", "b"]), True, 5, seed=0)) == []
    assert list(folds_of(np.arange(1.0), False, 5, seed=0)) == []

"""A note where one column alone tells what is to be predicted, and none elsewhere."""

import numpy as np
import pytest
from sklearn import datasets

from mbkl.explain.input_columns import notes_on_leaks

N = 400
GENERATOR = np.random.default_rng(0)
NOISE = GENERATOR.normal(size=N)
CLASSES = np.repeat(["no", "yes"], N // 2)
SOME = GENERATOR.permutation(N)


def notes(values, y, are_levels=False, are_classes=True):
    return notes_on_leaks([("noise", NOISE, False), ("x", values, are_levels)], y, "y", are_classes)


LEAKS = {
    "sorted row numbers": (np.arange(N), False),
    "a code for each class": (np.repeat([7.0, 3.0], N // 2), True),
    "a measure that came after": (np.repeat([0.0, 10.0], N // 2) + NOISE, False),
    "few exceptions": (np.where(SOME < 2, 0.5, np.repeat([0.0, 1.0], N // 2)), False),
    "missing means no": (np.where(CLASSES == "no", np.nan, 1.0), False),
}


@pytest.mark.parametrize("name", LEAKS)
def test_columns_that_tell_the_class(name):
    values, are_levels = LEAKS[name]
    (note,) = notes(values[SOME], CLASSES[SOME], are_levels)
    assert note.startswith("Column 'x' alone tells 'y' almost perfectly")


FINE = {
    "numbers of shuffled rows": (GENERATOR.permutation(N), False),
    "names": (np.arange(N), True),
    "constant": (np.zeros(N), False),
    "nothing but missing": (np.full(N, np.nan), False),
    "often right": (np.where(SOME < 20, NOISE, np.repeat([0.0, 1.0], N // 2)), False),
}


@pytest.mark.parametrize("name", FINE)
def test_columns_that_do_not(name):
    values, are_levels = FINE[name]
    assert notes(values, CLASSES, are_levels) == []


def test_few_rows_tell_nothing():
    assert notes_on_leaks([("x", np.arange(20), False)], CLASSES[190:210], "y", True) == []


def test_a_rare_class_is_not_told_by_a_constant():
    y = np.where(np.arange(N) < 2, "rare", "often")
    assert notes(np.zeros(N), y) == []


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_easy_data_are_no_leaks(name):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    assert notes_on_leaks(((str(i), own, False) for i, own in enumerate(X.T)), y, "y", True) == []


def test_numbers():
    (note,) = notes(3 * NOISE + 1, NOISE, are_classes=False)
    assert "Column 'noise' or 'x' alone" in note
    y = np.sort(NOISE)
    assert "Column 'x'" in notes(np.arange(N), y, are_classes=False)[0]
    assert notes(np.zeros(N), y, are_classes=False) == []
    assert notes(np.arange(N), y, are_levels=True, are_classes=False) == []
    assert notes(y + 0.3 * NOISE, y, are_classes=False) == []


def test_one_of_several_targets():
    y = np.column_stack([GENERATOR.normal(size=N), np.sort(NOISE)])
    assert "Column 'x' alone" in notes(np.arange(N), y, are_classes=False)[0]
    assert notes(np.arange(N), y[:, [0, 0]], are_classes=False) == []


def test_many_rows_are_looked_at_in_part():
    y = np.arange(200_000) // 100_000
    assert notes_on_leaks([("x", np.arange(200_000), False)], y, "y", True)


def test_nothing_to_tell():
    assert notes(NOISE, np.repeat("same", N)) == []
    assert notes(NOISE, np.ones(N), are_classes=False) == []


def test_labels_of_any_kind_and_several_targets():
    values = np.repeat([7.0, 3.0], N // 2)
    (note,) = notes(values, CLASSES.astype(object))
    assert "tells 'y'" in note
    (note,) = notes(values, np.column_stack([values, NOISE]), are_classes=False)
    assert "tells one of 'y'" in note

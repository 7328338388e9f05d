"""Targets, rows and names."""

import numpy as np
import pyarrow as pa
import pytest

from mbkl.tabular import BadValueError, Frame, FrameError


def make(**columns):
    frame = pa.table(columns)
    return Frame("data.csv", frame, np.arange(1, frame.num_rows + 1))


@pytest.mark.parametrize("target", ["b", 1, "1", -2, "-2"])
def test_the_target_by_name_or_place(target):
    frame = make(a=[1, 2], b=["x", "y"], c=[3, 4]).with_target(target)
    assert frame.target == "b"
    assert frame.names == ["a", "c"]
    assert frame.labels.tolist() == ["x", "y"]


def test_a_name_wins_over_a_place():
    assert make(**{"1": [1, 2], "b": [3, 4]}).with_target("1").target == "1"


@pytest.mark.parametrize("target", ["B2", 2, -3, "nope"])
def test_unknown_targets(target):
    with pytest.raises(FrameError, match=r"data.csv: no column .*(did you mean|there are)"):
        make(a=[1], b2=["x"]).with_target(target)


def test_rows_without_a_label_are_left_out():
    frame = make(a=[1, 2, 3], b=["x", None, "y"]).with_target("b")
    assert frame.row_numbers.tolist() == [1, 3]
    assert frame.columns.to_pydict() == {"a": [1, 3]}
    assert "row 2" in frame.notes[0]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([1, 2], [1, 2]),
        ([1.0, 2.0], [1, 2]),
        ([True, False], ["true", "false"]),
        (["a", "b"], ["a", "b"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
    ],
)
def test_labels_are_integers_or_text(values, labels):
    assert make(a=[0, 0], y=values).with_target("y").labels.tolist() == labels


def test_numbers_are_to_be_learned_unless_they_are_said_to_be_classes():
    frame = make(a=[0, 0, 0], y=[0.5, None, 1.0])
    numbers = frame.with_target("y")
    assert numbers.task == "regression"
    assert numbers.labels.tolist() == [0.5, 1.0]
    classes = frame.with_target("y", "classification")
    assert classes.task == "classification"
    assert classes.labels.tolist() == ["0.5", "1"]


def test_infinite_labels_have_a_row():
    with pytest.raises(FrameError, match=r"data.csv, row 2, column 'y': infinity"):
        make(a=[0, 0], y=[0.5, float("inf")]).with_target("y")


def test_the_index_is_left_out_unless_it_is_kept():
    frame = make(**{"Unnamed: 0": [3, 1], "a": [1, 2]})
    assert frame.without_index().names == ["a"]
    assert "'Unnamed: 0' is left out" in frame.without_index().notes[0]
    assert frame.without_index(keep=["Unnamed: 0"]) is frame


def test_columns_can_be_left_out():
    assert make(a=[1], b=[2], c=[3]).without(["a", "c"]).names == ["b"]
    with pytest.raises(FrameError, match="no column 'd'"):
        make(a=[1]).without(["d"])


def test_names_of_text_columns_and_labels():
    frame = make(a=[1], b=["x"], y=["u"])
    assert frame.with_target("y").text_names == ["b", "y"]
    assert frame.with_target("a").text_names == ["b", "y"]


def test_unknown_labels_are_named():
    frame = make(a=[1, 2], y=["u", "v"]).with_target("y")
    assert frame.with_classes(np.array(["u", "v", "w"])).labels.tolist() == ["u", "v"]
    with pytest.raises(FrameError, match=r"column 'y': label 'v'.* u, w"):
        frame.with_classes(np.array(["u", "w"]))


@pytest.mark.parametrize(
    ("written", "classes", "labels"),
    [
        (["True", "FALSE"], ["false", "true"], ["true", "false"]),
        ([1, 2], ["1", "2", "x"], ["1", "2"]),
        (["True", "no"], ["True", "no"], ["True", "no"]),
    ],
)
def test_labels_are_spelt_as_the_classes_are(written, classes, labels):
    frame = make(a=[1, 2], y=written).with_target("y")
    assert frame.with_classes(np.array(classes)).labels.tolist() == labels


def test_errors_name_the_row_of_the_file():
    frame = make(a=[1, 2, 3], b=[None, "x", "y"]).with_target("b")
    with (
        pytest.raises(FrameError, match=r"data.csv, row 2, column 'a': too odd"),
        frame.errors_located(),
    ):
        raise BadValueError(0, "a", "too odd")

"""Targets, rows and names."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from mbkl.tables import BadValueError, Table, TableError


def make(**columns):
    table = pa.table(columns)
    return Table("data.csv", table, np.arange(1, table.num_rows + 1))


@pytest.mark.parametrize("target", ["b", 1, "1", -2, "-2"])
def test_the_target_by_name_or_place(target):
    table = make(a=[1, 2], b=["x", "y"], c=[3, 4]).with_target(target)
    assert table.target == "b"
    assert table.names == ["a", "c"]
    assert table.labels.tolist() == ["x", "y"]


def test_a_name_wins_over_a_place():
    assert make(**{"1": [1, 2], "b": [3, 4]}).with_target("1").target == "1"


@pytest.mark.parametrize("target", ["B2", 2, -3, "nope"])
def test_unknown_targets(target):
    with pytest.raises(TableError, match=r"data.csv: no column .*(did you mean|there are)"):
        make(a=[1], b2=["x"]).with_target(target)


def test_rows_without_a_label_are_left_out():
    table = make(a=[1, 2, 3], b=["x", None, "y"]).with_target("b")
    assert table.row_numbers.tolist() == [1, 3]
    assert table.columns.to_pydict() == {"a": [1, 3]}
    assert "row 2" in table.notes[0]


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


def test_labels_with_fractions_are_no_classes():
    with pytest.raises(TableError, match=r"data.csv, column 'y': .*fractions"):
        make(a=[0, 0], y=[0.5, 1.0]).with_target("y")


def test_columns_can_be_left_out():
    assert make(a=[1], b=[2], c=[3]).without(["a", "c"]).names == ["b"]
    with pytest.raises(TableError, match="no column 'd'"):
        make(a=[1]).without(["d"])


def test_a_sparse_table():
    table = Table("d.svm", sparse.csr_array(np.eye(3)), np.arange(3), labels=np.array([0, 1, 0]))
    assert table.is_sparse
    assert table.names == ["x0", "x1", "x2"]
    assert table.text_names == []
    assert table.take(np.array([2])).columns.toarray().tolist() == [[0, 0, 1]]
    assert table.without([]) is table
    with pytest.raises(TableError, match="no columns to leave out"):
        table.without(["x0"])
    with pytest.raises(TableError, match="there is no column"):
        table.with_target("x0")


def test_names_of_text_columns_and_labels():
    table = make(a=[1], b=["x"], y=["u"])
    assert table.with_target("y").text_names == ["b", "y"]
    assert table.with_target("a").text_names == ["b", "y"]


def test_unknown_labels_are_named():
    table = make(a=[1, 2], y=["u", "v"]).with_target("y")
    table.check_labels(np.array(["u", "v", "w"]))
    with pytest.raises(TableError, match=r"column 'y': label 'v'.* u, w"):
        table.check_labels(np.array(["u", "w"]))


def test_errors_name_the_row_of_the_file():
    table = make(a=[1, 2, 3]).take(np.array([2, 0]))
    with (
        pytest.raises(TableError, match=r"data.csv, row 3, column 'a': too odd"),
        table.errors_located(),
    ):
        raise BadValueError(0, "a", "too odd")

"""An index is no feature."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather

from mbkl.tabular import TableEncoder, read_frame
from mbkl.tabular.index import index_names

NUMBERS = {"counted": range(40), "from one": range(1, 41), "with gaps": range(0, 400, 10)}


@pytest.fixture
def frame():
    """Rows whose order tells the label."""
    draw = np.random.default_rng(0)
    return pd.DataFrame({"a": draw.normal(size=40), "y": np.repeat(["no", "yes"], 20)})


@pytest.mark.parametrize("values", NUMBERS.values(), ids=list(NUMBERS))
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_first_columns_without_a_name(values, shuffled, name):
    values = np.random.default_rng(0).permutation(values) if shuffled else list(values)
    assert index_names(pa.table({name: values, "a": values})) == [name]
    assert index_names(pa.table({"a": values, name: values})) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([f"row {number}" for number in range(40)], True),
        ([float(number) for number in range(40)], True),
        ([*range(20), *range(20)], True),
        ([0.5 * number for number in range(40)], False),
        (["red", "blue"] * 20, False),
        ([1, 2, 3, 4] * 10, False),
        ([None, *range(39)], False),
    ],
)
def test_values_must_tell_rows_apart(values, expected):
    assert bool(index_names(pa.table({"Unnamed: 0": values, "a": [1] * 40}))) == expected


def test_an_index_saved_twice():
    columns = pa.table({"Unnamed: 0.1": [2, 1], "Unnamed: 0": [1, 2], "a": [5, 6]})
    assert index_names(columns) == ["Unnamed: 0.1", "Unnamed: 0"]


@pytest.mark.parametrize("name", [None, "key"])
def test_the_index_of_a_frame_in_memory(frame, name):
    shuffled = frame.sample(frac=1.0, random_state=0).rename_axis(name)
    encoder = TableEncoder().fit(shuffled[["a"]])
    assert encoder.get_feature_names_out().tolist() == ["a"]
    assert encoder.notes_ == []
    np.testing.assert_array_equal(encoder.transform(frame[["a"]])[:, 0], frame["a"])


def test_row_numbers_read_by_pandas(frame, tmp_path):
    frame.to_csv(tmp_path / "a.csv")
    encoder = TableEncoder().fit(pd.read_csv(tmp_path / "a.csv").drop(columns="y"))
    assert encoder.get_feature_names_out().tolist() == ["a"]
    assert "'Unnamed: 0' is left out" in encoder.notes_[0]
    assert encoder.transform(frame).shape == (40, 1)


@pytest.mark.parametrize("name", [None, "key"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_the_index_in_files(frame, tmp_path, name, ending):
    path = tmp_path / f"a.{ending}"
    shuffled = frame.sample(frac=1.0, random_state=0).rename_axis(name)
    if ending == "csv":
        shuffled.to_csv(path)
    elif ending == "parquet":
        shuffled.to_parquet(path)
    else:
        feather.write_feather(pa.Table.from_pandas(shuffled), path)
    found = read_frame(path, target="y")
    if ending == "csv" and name:  # nothing tells it from other columns
        assert found.names == ["key", "a"]
    else:
        assert found.names == ["a"]
        assert "is left out" in found.notes[-1]


def test_an_index_can_be_kept_or_be_the_target(frame, tmp_path):
    frame.set_index("y").to_parquet(tmp_path / "a.parquet")
    assert read_frame(tmp_path / "a.parquet", target="y").labels.tolist() == list(frame["y"])
    assert read_frame(tmp_path / "a.parquet", keep=["y"]).names == ["a", "y"]


def test_row_names_of_r(tmp_path):
    (tmp_path / "a.csv").write_text('"a" "y"\n"row 1" 1 u\n"row 2" 2 v\n')
    assert read_frame(tmp_path / "a.csv", target="y").columns.to_pydict() == {"a": [1, 2]}

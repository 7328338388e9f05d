"""Files of all formats."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather

from mbkl.tabular import FrameError, read_frame

ROWS = "age,town,rich\n31,Rome,yes\n,Bonn,no\n8, Rome ,?\n"


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write_file(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def columns_of(frame):
    return frame.columns.to_pydict()


def test_values_have_types_and_missing_ones_are_found(write):
    frame = read_frame(write(ROWS))
    assert columns_of(frame) == {
        "age": [31, None, 8],
        "town": ["Rome", "Bonn", "Rome"],
        "rich": ["yes", "no", None],
    }
    assert frame.row_numbers.tolist() == [1, 2, 3]
    assert frame.labels is None


@pytest.mark.parametrize("mark", ["", "?", "NA", "N/A", "NaN", "nan", "null", "None", " ? "])
def test_every_mark_of_a_missing_value_leaves_numbers_numbers(write, mark):
    frame = read_frame(write(f"a,b\n1,x\n{mark},y\n2.5,{mark}\n"))
    assert columns_of(frame) == {"a": [1.0, None, 2.5], "b": ["x", "y", None]}


def test_more_marks_can_be_named(write):
    path = write("a\n1\nunknown\n3\n")
    frame = read_frame(path)
    assert columns_of(frame) == {"a": ["1", "unknown", "3"]}
    assert "'unknown' in row 2" in frame.notes[0]
    assert columns_of(read_frame(path, missing=["unknown"])) == {"a": [1, None, 3]}


def test_numbers_that_are_names_stay_text(write):
    frame = read_frame(write("code,a\n007,1\n12,2\n"), text=["code"])
    assert columns_of(frame)["code"] == ["007", "12"]
    assert frame.notes == ()


@pytest.mark.parametrize(
    ("delimiter", "name"), [(",", "d.csv"), (";", "d.csv"), ("\t", "d.csv"), ("\t", "d.tsv")]
)
def test_the_delimiter_is_found(write, delimiter, name):
    frame = read_frame(write(ROWS.replace(",", delimiter), name))
    assert frame.names == ["age", "town", "rich"]


def test_a_delimiter_can_be_named(write):
    assert read_frame(write("a:b\n1:2\n"), delimiter=":").names == ["a", "b"]


def test_compressed_text(tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(ROWS.encode()))
    assert columns_of(read_frame(path))["town"] == ["Rome", "Bonn", "Rome"]


def test_text_without_a_line_of_names(write):
    path = write("5.1,a\n4.9,b\n")
    frame = read_frame(path, target="column_2")
    assert columns_of(frame) == {"column_1": [5.1, 4.9]}
    assert frame.labels.tolist() == ["a", "b"]
    assert not frame.header
    assert "holds numbers, not names" in frame.notes[0]
    assert read_frame(path, header=True).names == ["5.1", "a"]


@pytest.mark.parametrize(
    ("first", "is_names"),
    [
        ("0,1,2", True),
        ("name,1990,1991", True),
        ("6,A,6", False),
        ("5.1,3.5,x", False),
        ("-1,2,x", False),
    ],
)
def test_a_first_line_of_numbers_may_be_names(write, first, is_names):
    frame = read_frame(write(f"{first}\n7,8,9\n"))
    assert frame.header == is_names
    assert frame.n_rows == 2 - is_names
    # Names that count columns are what pandas writes, others may be a mistake.
    assert bool(frame.notes) == (first != "0,1,2")


def test_text_in_another_encoding(write):
    path = write("town,a\nMünchen,1\n".encode("latin-1"))
    frame = read_frame(path)
    assert columns_of(frame)["town"] == ["München"]
    assert "read as cp1252 (encoding, --encoding names another)" in frame.notes[0]
    named = read_frame(path, encoding="latin-1")
    assert columns_of(named)["town"] == ["München"]
    assert named.notes == ()
    with pytest.raises(FrameError, match=r"data.csv: the text is not utf-8.*--encoding"):
        read_frame(path, encoding="utf-8")


def test_quoted_text_may_hold_delimiters_and_line_breaks(write):
    frame = read_frame(write('a,b\n"x, y",1\n"two\nlines",2\n'))
    assert columns_of(frame) == {"a": ["x, y", "two\nlines"], "b": [1, 2]}


def test_columns_without_a_name_have_their_place(write):
    assert read_frame(write("a, ,b\n1,2,3\n")).names == ["a", "Unnamed: 1", "b"]


def test_typed_files_keep_their_types(tmp_path):
    frame = pd.DataFrame(
        {
            "code": ["007", "?"],
            "day": pd.to_datetime(["2020-01-01", None]),
            "flag": [True, False],
            "colour": pd.Categorical(["red", None]),
            "a": np.array([1.5, np.nan], dtype="f4"),
        }
    )
    frame.to_parquet(tmp_path / "d.parquet")
    feather.write_feather(pa.Table.from_pandas(frame), tmp_path / "d.feather")
    for name in ("d.parquet", "d.feather"):
        columns = columns_of(read_frame(tmp_path / name))
        assert columns["code"] == ["007", None]
        assert columns["colour"] == ["red", None]
        assert columns["flag"] == [True, False]
        assert columns["day"][1] is None


# ---------------------------------------------------------------- bad files


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("data.csv", "", "data.csv: the file is empty"),
        ("data.csv", "a,b\n", "no rows"),
        ("data.csv", "a,b\n1,2\n3\n", "Expected 2 columns, got 1"),
        ("data.csv", "# nothing else\n\n", "data.csv: the file is empty"),
        ("data.csv", b"PK\x03\x04\0\0", "no text; if it is, name its encoding (--encoding"),
        ("data.csv", "a,b\n1,2\n# done\n", "Expected 2 columns, got 1: # done"),
        ("data.parquet", "PAR1 nonsense", "no readable .parquet file"),
        ("data.parquet", "", "no readable .parquet file"),
        ("data.feather", "nonsense", "no readable .feather file"),
        ("data.xlsx", "anything", "does not tell the format"),
        ("data", "anything", "does not tell the format"),
        ("data.csv.gz", "no gzip", "data.csv.gz"),
    ],
)
def test_bad_files_are_one_line_with_the_file(write, name, content, words):
    path = write(content, name)
    with pytest.raises(FrameError, match="data") as caught:
        read_frame(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bad_row_has_its_number(write):
    lines = ["1,2"] * 500
    lines[400] = "1,2,3"
    with pytest.raises(FrameError, match="Row #402"):
        read_frame(write("a,b\n" + "\n".join(lines)))


def test_a_truncated_parquet_file(tmp_path):
    path = tmp_path / "d.parquet"
    pd.DataFrame({"a": range(1000)}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FrameError, match="no readable"):
        read_frame(path)


def test_a_missing_file():
    with pytest.raises(FrameError, match=r"nowhere.csv: there is no such file"):
        read_frame("nowhere.csv")

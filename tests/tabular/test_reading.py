"""Files of all formats."""

import gzip
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from mbkl.tabular import BadValueError, Frame, FrameError, read_frame

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
    with pytest.raises(FrameError, match=r"data.csv: no column 'cod'; did you mean 'code'"):
        read_frame(frame.path, text=["cod"])


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
        ("data.csv", "a,b", "no rows"),
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


# ---------------------------------------------------------------- matrices


X = np.array([[1.0, 0.0, 2.0], [0.0, np.nan, 3.0]])
Y = np.array([5, 7])


def test_a_matrix_with_labels(tmp_path):
    np.savez(tmp_path / "d.npz", X=X, y=Y)
    frame = read_frame(tmp_path / "d.npz")
    assert frame.names == ["x0", "x1", "x2"]
    assert frame.columns.to_pydict()["x1"] == [0.0, None]
    assert frame.labels.tolist() == [5, 7]


@pytest.mark.parametrize("labels", [np.array(["a", "b"]), np.array([True, False]), Y * 1.0])
def test_labels_of_all_kinds(tmp_path, labels):
    np.savez(tmp_path / "d.npz", X=X, y=labels)
    assert read_frame(tmp_path / "d.npz").labels.dtype.kind in "iU"


def test_a_matrix_alone_has_its_labels_in_a_column(tmp_path):
    np.save(tmp_path / "d.npy", np.array([[1.5, 0], [2.5, 1]]))
    frame = read_frame(tmp_path / "d.npy", target=-1)
    assert frame.labels.tolist() == [0, 1]
    assert frame.names == ["x0"]


def test_a_sparse_matrix(tmp_path):
    matrix = sparse.csr_array(np.eye(3))
    sparse.save_npz(tmp_path / "d.npz", matrix)
    frame = read_frame(tmp_path / "d.npz")
    assert (frame.matrix != matrix).nnz == 0


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("name", ["d.svm", "d.libsvm"])
def test_svmlight_features_have_their_own_index(tmp_path, zero_based, name):
    dump_svmlight_file(np.array([[1.0, 0], [0, 2]]), Y, str(tmp_path / name), zero_based=zero_based)
    frame = read_frame(tmp_path / name)
    expected = [[1, 0], [0, 2]] if zero_based else [[0, 1, 0], [0, 0, 2]]
    assert frame.matrix.toarray().tolist() == expected
    assert frame.labels.tolist() == [5, 7]


def test_rows_of_a_matrix_without_a_label_are_left_out(tmp_path):
    np.savez(tmp_path / "d.npz", X=X, y=np.array([1.0, np.nan]))
    frame = read_frame(tmp_path / "d.npz")
    assert frame.labels.tolist() == [1]
    assert frame.columns.num_rows == 1


def test_labels_that_are_no_classes(tmp_path):
    np.savez(tmp_path / "d.npz", X=X, y=np.array([0.5, 1.5]))
    assert read_frame(tmp_path / "d.npz").task == "regression"


class Trap:
    """Fails the test if it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("unpickled",)


@pytest.mark.parametrize("name", ["d.npy", "d.npz"])
def test_nothing_is_unpickled(tmp_path, name):
    path = tmp_path / name
    trap = np.array([[Trap()]], dtype=object)
    if name.endswith("npz"):
        np.savez(path, X=trap)
    else:
        np.save(path, trap)
    with pytest.raises(FrameError, match=r"no readable \.np"):
        read_frame(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(FrameError, match=r"no readable \.np"):
        read_frame(path)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"a": X}, "array named X"),
        ({"X": X[0]}, "rows and columns"),
        ({"X": np.array([["a", "b"]])}, "must be numbers"),
        ({"X": X, "y": Y[:1]}, "as many labels"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, arrays, words):
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(FrameError, match=words):
        read_frame(tmp_path / "d.npz")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.svm", b""),
        ("d.svm", b"a b c\n"),
        ("d.svm.gz", b"no gzip"),
        ("d.npz", b""),
        ("d.npz", b"PK\x03\x04 cut"),
        ("d.npy", b"\x93NUMPY\x01\x00v\x00{'descr'"),
    ],
)
def test_damaged_files(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FrameError, match=name):
        read_frame(tmp_path / name)


# ---------------------------------------------------------------- frames in memory


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


def test_the_first_column_of_a_matrix_may_be_the_target(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(12.0).reshape(4, 3))
    frame = read_frame(tmp_path / "rows.npy", target=0)
    assert frame.labels.tolist() == [0.0, 3.0, 6.0, 9.0]

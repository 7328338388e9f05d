"""svmlight and NumPy files."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from mbkl.tabular import FrameError, read_frame

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
    assert frame.is_sparse
    assert (frame.columns != matrix).nnz == 0


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("name", ["d.svm", "d.libsvm"])
def test_svmlight_features_have_their_own_index(tmp_path, zero_based, name):
    dump_svmlight_file(np.array([[1.0, 0], [0, 2]]), Y, str(tmp_path / name), zero_based=zero_based)
    frame = read_frame(tmp_path / name)
    expected = [[1, 0], [0, 2]] if zero_based else [[0, 1, 0], [0, 0, 2]]
    assert frame.columns.toarray().tolist() == expected
    assert frame.labels.tolist() == [5, 7]


def test_rows_without_a_label_are_left_out(tmp_path):
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
    with pytest.raises(FrameError, match="no file of plain arrays"):
        read_frame(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(FrameError, match="no file of plain arrays"):
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

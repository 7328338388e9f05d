"""Where sets are looked for, and what is refused in their files."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from mbkl_paper.datasets import DatasetError, DatasetNotFoundError, files
from mbkl_paper.datasets.benchmark import Description, Printed

TOY = Description("toy", "The toy makers.", "None.", Printed(2, 1, 1, "numbers", 1))
READERS = {"toy.txt": lambda path: path, "toy.npz": lambda path: path}


@pytest.mark.parametrize("place", ["paper/toy", "toy", "."])
def test_a_set_is_looked_for_in_the_home_and_its_folders(tmp_path, place):
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    path = tmp_path / place / "toy.npz"
    path.touch()
    assert files.read_first(TOY, tmp_path, READERS) == path
    assert files.read_first(TOY, str(tmp_path), READERS) == path


def test_the_first_form_is_preferred(tmp_path):
    (tmp_path / "toy.npz").touch()
    (tmp_path / "toy.txt").touch()
    assert files.read_first(TOY, tmp_path, READERS).name == "toy.txt"


def test_the_environment_names_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("MBKL_DATA", str(tmp_path))
    path = tmp_path / "paper" / "toy" / "toy.txt"
    path.parent.mkdir(parents=True)
    path.touch()
    assert files.read_first(TOY, None, READERS) == path
    with pytest.raises(DatasetNotFoundError):  # an explicit home is the only one
        files.read_first(TOY, tmp_path / "elsewhere", READERS)


def test_a_shared_folder_is_not_itself_a_set(tmp_path, monkeypatch):
    monkeypatch.setenv("MBKL_DATA", str(tmp_path))
    (tmp_path / "toy.txt").touch()
    with pytest.raises(DatasetNotFoundError):
        files.read_first(TOY, None, READERS)


def test_a_missing_set_is_explained(tmp_path):
    with pytest.raises(DatasetNotFoundError) as caught:
        files.read_first(TOY, tmp_path, READERS)
    message = str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    for part in ("toy.txt or toy.npz", str(tmp_path / "paper" / "toy"), TOY.source, "MBKL_DATA"):
        assert part in message


def test_without_any_home_the_remedy_is_named(monkeypatch):
    monkeypatch.delenv("MBKL_DATA", raising=False)
    with pytest.raises(DatasetNotFoundError, match=r"neither data_home nor .* MBKL_DATA"):
        files.read_first(TOY, None, READERS)


# ---------------------------------------------------------------- npz

ARRAYS = {"X": np.arange(60.0).reshape(12, 5), "y": np.arange(12)}


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("npz") / "stored.npz"
    np.savez_compressed(path, **ARRAYS)
    return path.read_bytes()


def read_bytes(folder: Path, data: bytes):
    path = folder / "changed.npz"
    path.write_bytes(data)
    return files.read_npz(path, *ARRAYS)


@given(share=st.floats(0, 1, exclude_max=True))
def test_an_npz_cut_short_is_refused(tmp_path_factory, stored, share):
    folder = tmp_path_factory.getbasetemp()
    with pytest.raises(DatasetError, match=r"changed\.npz"):
        read_bytes(folder, stored[: int(share * len(stored))])


@given(share=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
def test_an_npz_with_a_changed_byte_is_refused_or_harmless(tmp_path_factory, stored, share, mask):
    changed = bytearray(stored)
    changed[int(share * len(stored))] ^= mask
    with contextlib.suppress(DatasetError):
        arrays = read_bytes(tmp_path_factory.getbasetemp(), bytes(changed))
        for key, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[key], array)


def test_an_npz_without_a_key_is_refused(tmp_path, stored):
    (tmp_path / "changed.npz").write_bytes(stored)
    with pytest.raises(DatasetError, match="'fold' is missing"):
        files.read_npz(tmp_path / "changed.npz", "fold")


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "pickled.npz", X=np.array([{}], dtype=object))
    with pytest.raises(DatasetError, match=r"key 'X' .*pickle"):
        files.read_npz(tmp_path / "pickled.npz", "X")


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "other.npz").write_bytes(content)
    with pytest.raises(DatasetError, match=r"other\.npz"):
        files.read_npz(tmp_path / "other.npz", "X")


def test_an_npy_named_npz_is_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.eye(2))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    with pytest.raises(DatasetError, match=r"array\.npz"):
        files.read_npz(tmp_path / "array.npz", "X")


# ---------------------------------------------------------------- MATLAB, text


def test_matlab_files_are_read_and_damage_is_named(tmp_path, cut_short):
    path = tmp_path / "stored.mat"
    savemat(path, {"values": np.arange(3.0)})
    np.testing.assert_array_equal(files.read_mat(path, "values")["values"], [[0, 1, 2]])
    with pytest.raises(DatasetError, match="'other' is missing"):
        files.read_mat(path, "other")
    cut_short(path)
    with pytest.raises(DatasetError, match=r"stored\.mat"):
        files.read_mat(path, "values")
    with pytest.raises(DatasetError, match=r"nowhere\.mat"):
        files.read_mat(tmp_path / "nowhere.mat", "values")


def test_matlab_counts_from_one():
    np.testing.assert_array_equal(files.mat_indices(Path(), "y", np.array([[1.0, 3.0]])), [0, 2])


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("bad", [[1.5], [np.nan], ["one"]])
def test_indices_of_matlab_are_whole_numbers(bad):
    with pytest.raises(DatasetError, match="'y'"):
        files.mat_indices(Path(), "y", np.array(bad))


def test_texts_of_matlab_are_unwrapped(make_cells):
    nested = make_cells([make_cells(["coast "]), "forest"])
    assert files.mat_texts(Path(), "names", nested) == ("coast", "forest")
    with pytest.raises(DatasetError, match="'names'"):
        files.mat_texts(Path(), "names", make_cells([np.array([])]))


def test_text_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "rows.txt").write_bytes(b"\xff\xfe\x81")
    with pytest.raises(DatasetError, match=r"rows\.txt"):
        files.read_lines(tmp_path / "rows.txt")


# ---------------------------------------------------------------- arrays


def test_arrays_are_checked():
    X = np.zeros((3, 2))
    files.check_array(Path("f"), "X", X, (None, 2), np.floating)
    with pytest.raises(DatasetError, match=r"f: 'X' has shape \(3, 2\)"):
        files.check_array(Path("f"), "X", X, (None, 3), np.floating)
    with pytest.raises(DatasetError, match="shape"):
        files.check_array(Path("f"), "X", X, (3,), np.floating)
    with pytest.raises(DatasetError, match="dtype float64"):
        files.check_array(Path("f"), "X", X, (3, 2), np.integer, np.str_)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_row_of_a_value_that_is_not_finite_is_named(value):
    X = np.zeros((3, 2))
    X[1, 1] = value
    with pytest.raises(DatasetError, match="row 1"):
        files.check_array(Path("f"), "X", X, (3, 2), np.floating)


def test_labels_are_checked():
    names = ("a", "b")
    y = files.check_labels(Path("f"), "y", np.array([0, 1, 1], dtype=np.int8), 3, names)
    assert y.dtype == np.intp
    for wrong in (2, -1):
        with pytest.raises(DatasetError, match=f"{wrong} in row 1"):
            files.check_labels(Path("f"), "y", np.array([0, wrong, 1]), 3, names)
    with pytest.raises(DatasetError, match="class 'b'"):
        files.check_labels(Path("f"), "y", np.zeros(3, dtype=int), 3, names)
    with pytest.raises(DatasetError, match="shape"):
        files.check_labels(Path("f"), "y", np.array([0, 1]), 3, names)
    with pytest.raises(DatasetError, match="dtype"):
        files.check_labels(Path("f"), "y", np.array([0.0, 1.0, 1.0]), 3, names)


def test_parts_divide_the_rows():
    sizes = {"train": 2, "test": 1}
    parts = {"train": np.array([0, 2]), "test": np.array([1])}
    files.check_parts(Path("f"), parts, sizes)
    for test, message in (([2], "row 2 is twice"), ([3], "out of range"), ([-1], "out of range")):
        with pytest.raises(DatasetError, match=message):
            files.check_parts(Path("f"), {**parts, "test": np.array(test)}, sizes)
    with pytest.raises(DatasetError, match="'test' has shape"):
        files.check_parts(Path("f"), {**parts, "test": np.array([1, 1])}, sizes)

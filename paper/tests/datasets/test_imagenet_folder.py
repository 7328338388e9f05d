"""A folder of descriptors: folders of classes, lists, and rows that stay on disk."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl_paper import datasets
from mbkl_paper.datasets import DatasetError


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Three classes: files of many rows, of one, and .npz; and all rows in their order."""
    root = tmp_path_factory.mktemp("descriptors")
    X = np.random.default_rng(0).random((40, 5), dtype=np.float32)
    for name in ("n01", "n02", "n03", ".hidden"):
        (root / name).mkdir()
    np.save(root / "n01" / "a.npy", X[:12])
    np.save(root / "n01" / "b.npy", X[12])
    np.savez(root / "n02" / "all.npz", X=X[13:30])
    np.save(root / "n03" / "a.npy", X[30:39])
    np.savez_compressed(root / "n03" / "b.npz", X=X[39])
    return root, X, np.repeat([0, 1, 2], [13, 17, 10])


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a list and its descriptors."""

    def write(*lines, **arrays):
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array)
        (tmp_path / "files.txt").write_text("\n".join(lines))
        return tmp_path

    return write


def test_classes_are_folders(folders):
    root, X, y = folders
    benchmark = datasets.load_imagenet_folder(root)
    assert benchmark.class_names == ("n01", "n02", "n03")
    np.testing.assert_array_equal(benchmark.y, y)
    np.testing.assert_array_equal(np.asarray(benchmark.X), X)
    assert benchmark.X.shape == (40, 5)
    assert benchmark.X.dtype == np.float32
    assert benchmark.stand_in is None
    assert repr(benchmark) == "<Benchmark imagenet_folder: 40 rows of 5 features, 3 classes>"
    assert repr(benchmark.X) == "<40 x 5 float32 in 5 files>"


INDICES = st.one_of(
    st.integers(-40, 39),
    st.slices(40),
    st.lists(st.integers(-40, 39), min_size=1, max_size=60),
    st.lists(st.booleans(), min_size=40, max_size=40).map(np.array),
)


@given(index=INDICES)
def test_rows_are_those_of_the_matrix(folders, index):
    root, X, _ = folders
    rows = datasets.load_imagenet_folder(root).X[index]
    np.testing.assert_array_equal(rows, X[index])


def test_rows_out_of_range_are_refused(folders):
    X = datasets.load_imagenet_folder(folders[0]).X
    with pytest.raises(IndexError):
        X[40]


def test_the_matrix_works_where_arrays_do(folders):
    from sklearn.svm import LinearSVC

    root, X, _ = folders
    benchmark = datasets.load_imagenet_folder(root)
    ((train, test),) = benchmark.splits(test_size=10)
    model = LinearSVC(random_state=0).fit(benchmark.X[train], benchmark.y[train])
    np.testing.assert_array_equal(model.predict(benchmark.X), model.predict(X))
    assert pickle.loads(pickle.dumps(benchmark)).X[test].shape == (10, 5)


def test_files_stay_on_disk(folders):
    from mbkl_paper.datasets.imagenet_folder import _open

    rows = _open(folders[0] / "n01" / "a.npy")
    base = rows
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_the_share_of_the_paper_is_held_out(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "all.npy", np.zeros((500, 2)))
    benchmark = datasets.load_imagenet_folder(tmp_path)
    ((train, test),) = benchmark.splits()
    assert test.size == round(1000 * 50_000 / 1_065_687)
    assert train.size + test.size == 1000


def test_a_list_names_files_and_classes(write):
    home = write("b.npy dog", "a.npy cat", a=np.eye(3), b=np.zeros(3))
    benchmark = datasets.load_imagenet_folder(home)
    assert benchmark.class_names == ("cat", "dog")
    np.testing.assert_array_equal(benchmark.y, [1, 0, 0, 0])
    np.testing.assert_array_equal(benchmark.X[1:], np.eye(3))


def test_a_list_may_part_train_from_test(write):
    lines = ("a.npy cat train", "b.npy dog train", "c.npy cat test", "d.npy dog test")
    home = write(*lines, a=np.eye(2), b=np.eye(2), c=np.eye(2), d=np.zeros(2))
    ((train, test),) = datasets.load_imagenet_folder(home).splits()
    np.testing.assert_array_equal(train, [0, 1, 2, 3])
    np.testing.assert_array_equal(test, [4, 5, 6])


def test_kinds_of_numbers_are_joined(write):
    home = write("a.npy cat", "b.npy dog", a=np.eye(2, dtype=np.uint8), b=np.full((1, 2), 0.5))
    X = datasets.load_imagenet_folder(home).X
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X[:], [[1, 0], [0, 1], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a.npy cat", "a.npy"], "line 2 is not a path"),
        (["a.npy cat", "a.npy dog test"], "line 2 is not a path"),
        (["a.npy cat maybe"], "line 1 is not a path"),
        (["a.npy"], "has no lines of a path and a class"),
        ([], "has no lines of a path and a class"),
        (["a.npy cat train"], "none to test on"),
        (["nowhere.npy cat"], r"nowhere\.npy cannot be read"),
    ],
)
def test_a_wrong_list_is_refused(write, lines, message):
    with pytest.raises(DatasetError, match=message):
        datasets.load_imagenet_folder(write(*lines, a=np.eye(2)))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3, 4)), r"b\.npy holds float64 of shape \(2, 3, 4\)"),
        (np.zeros((0, 3)), r"b\.npy holds float64 of shape \(0, 3\)"),
        (np.array(5.0), r"b\.npy has descriptors of 1 numbers"),
        (np.array(["x", "y", "z"]), r"b\.npy holds <U1"),
        (np.zeros((2, 4)), r"b\.npy has descriptors of 4 numbers, .*a\.npy of 3"),
    ],
)
def test_other_arrays_are_refused(write, array, message):
    with pytest.raises(DatasetError, match=message):
        datasets.load_imagenet_folder(write("a.npy cat", "b.npy dog", a=np.eye(3), b=array))


def test_pickled_descriptors_are_refused(write):
    home = write("a.npy cat", a=np.array([{}], dtype=object))
    with pytest.raises(DatasetError, match=r"a\.npy cannot be read"):
        datasets.load_imagenet_folder(home)


def test_a_file_cut_short_is_refused(write, cut_short):
    home = write("a.npy cat", "b.npy dog", a=np.eye(30), b=np.eye(30))
    cut_short(home / "b.npy")
    with pytest.raises(DatasetError, match=r"b\.npy cannot be read, or was cut short"):
        datasets.load_imagenet_folder(home)


def test_an_npz_without_descriptors_is_refused(tmp_path):
    (tmp_path / "cat").mkdir()
    np.savez(tmp_path / "cat" / "a.npz", Y=np.eye(2))
    with pytest.raises(DatasetError, match=r"a\.npz: the key 'X' is missing"):
        datasets.load_imagenet_folder(tmp_path)


def test_a_class_without_files_is_named(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
    np.save(tmp_path / "cat" / "a.npy", np.eye(2))
    with pytest.raises(DatasetError, match="dog of a class holds no"):
        datasets.load_imagenet_folder(tmp_path)


def test_nan_is_found_when_it_is_read(write):
    values = np.eye(3)
    values[2, 1] = np.nan
    X = datasets.load_imagenet_folder(write("a.npy cat", "b.npy dog", a=np.eye(3), b=values)).X
    assert X[:5].shape == (5, 3)
    with pytest.raises(DatasetError, match=r"b\.npy: 'X' has a NaN"):
        X[5]

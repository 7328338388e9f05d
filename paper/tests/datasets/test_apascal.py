"""a-PASCAL: text files, features beside them, and the npz."""

import numpy as np
import pytest
from scipy import sparse

from mbkl_paper import datasets
from mbkl_paper.datasets import DatasetError, apascal

FEW = (40, 60)


@pytest.fixture
def few(monkeypatch):
    """Make the set small."""
    monkeypatch.setattr(apascal, "_PARTS", dict(zip(("train", "test"), FEW)))


@pytest.fixture
def original(few, tmp_path, fakes):
    """A folder of few objects, and what is in it."""
    return tmp_path / "attribute_data", fakes.apascal(tmp_path / "attribute_data", FEW)


def check(benchmark, X, y):
    np.testing.assert_array_equal(benchmark.X, X)
    np.testing.assert_array_equal(benchmark.y, y)
    assert benchmark.class_names == tuple(f"class{number}" for number in range(20))
    assert benchmark.feature_names[1] == "attribute 1"
    assert "64 annotated attributes alone" in repr(benchmark)
    ((train, test),) = benchmark.splits()
    np.testing.assert_array_equal(np.concatenate([train, test]), np.arange(12_695))
    assert train.size == benchmark.printed.n_train == 6_340
    assert test.size == benchmark.printed.n_test == 6_355


def test_the_original_is_read(tmp_path, fakes):
    folder = tmp_path / "attribute_data"
    arrays = fakes.apascal(folder)
    check(datasets.load_apascal(folder), *arrays)
    check(datasets.load_apascal(folder.parent), *arrays)


def test_packed_files_are_read(tmp_path, fakes, cut_short):
    arrays = fakes.apascal(tmp_path, packed=True)
    check(datasets.load_apascal(tmp_path), *arrays)
    cut_short(tmp_path / "apascal_test.txt.gz")
    with pytest.raises(DatasetError, match=r"apascal_test\.txt\.gz cannot be read"):
        datasets.load_apascal(tmp_path)


def test_the_npz_is_read(tmp_path, fakes):
    arrays = fakes.apascal_npz(tmp_path)
    check(datasets.load_apascal(tmp_path), *arrays)


@pytest.mark.parametrize("place", ["attribute_data", "attribute_features"])
def test_base_features_come_first(original, fakes, place):
    folder, (X, _) = original
    base = fakes.apascal_features(folder.parent / place, FEW)
    benchmark = datasets.load_apascal(folder.parent)
    assert sparse.issparse(benchmark.X)
    np.testing.assert_array_equal(benchmark.X[:, :50].toarray(), base)
    np.testing.assert_array_equal(benchmark.X[:, 50:].toarray(), X)
    assert len(benchmark.feature_names) == benchmark.X.shape[1] == 114
    assert benchmark.stand_in is None


def test_half_of_the_base_features_is_refused(original, fakes):
    folder, _ = original
    fakes.apascal_features(folder, FEW)
    (folder / "feat_apascal_train.mat").unlink()
    with pytest.raises(DatasetError, match=r"feat_apascal_train\.mat"):
        datasets.load_apascal(folder)


def test_base_features_of_fewer_objects_are_refused(original, fakes):
    folder, _ = original
    fakes.apascal_features(folder, (40, 50))
    with pytest.raises(DatasetError, match=r"feat_apascal_test\.mat: 'feat' has 50 columns"):
        datasets.load_apascal(folder)


def change_row(path, number, change):
    lines = path.read_text().splitlines()
    lines[number - 1] = change(lines[number - 1])
    path.write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line[:-2], "row 17 has 69 columns where 70"),
        (lambda line: "", "row 17 has 0 columns"),
        (lambda line: line[:-1] + "2", "row 17 has an attribute that is not 0 or 1"),
        (lambda line: line.replace("class", "zebra"), "row 17 has the unknown class 'zebra"),
    ],
)
def test_a_wrong_row_is_named(original, change, message):
    folder, _ = original
    change_row(folder / "apascal_test.txt", 17, change)
    with pytest.raises(DatasetError, match=rf"apascal_test\.txt: {message}"):
        datasets.load_apascal(folder)


def test_missing_rows_are_counted(original):
    folder, _ = original
    path = folder / "apascal_train.txt"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    with pytest.raises(DatasetError, match=r"apascal_train\.txt has 39 rows"):
        datasets.load_apascal(folder)


@pytest.mark.parametrize("name", ["apascal_test.txt", "attribute_names.txt", "class_names.txt"])
def test_missing_files_are_named(original, name):
    folder, _ = original
    (folder / name).unlink()
    with pytest.raises(DatasetError, match=name):
        datasets.load_apascal(folder)


def test_missing_names_are_counted(original):
    folder, _ = original
    (folder / "attribute_names.txt").write_text("furry\n")
    with pytest.raises(DatasetError, match=r"attribute_names\.txt has 1 names"):
        datasets.load_apascal(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.full((100, 64), 2, dtype=np.uint8)}, "other than 0 and 1"),
        ({"X": np.zeros((100, 63), dtype=np.uint8)}, "'X' has shape"),
        ({"y": np.full(100, 20)}, "'y' has 20 in row 0"),
        ({"attribute_names": np.array(["furry"])}, "has 1 names"),
        ({"train_idx": np.arange(41)}, "'train_idx' has shape"),
        ({"test_idx": np.arange(60)}, "is twice"),
    ],
)
def test_a_wrong_npz_is_refused(tmp_path, fakes, few, changes, message):
    fakes.apascal_npz(tmp_path, FEW, **changes)
    with pytest.raises(DatasetError, match=message):
        datasets.load_apascal(tmp_path)

"""Daimler: folders, archive and npz; the counts are made small."""

import numpy as np
import pytest

from mbkl_paper import datasets
from mbkl_paper.datasets import DatasetError, daimler


@pytest.fixture(autouse=True)
def small(monkeypatch):
    pytest.importorskip("cv2")
    monkeypatch.setattr(daimler, "_FOLDERS", {"non-ped_examples": 4, "ped_examples": 3})


def check(benchmark, arrays):
    images, y, fold = arrays
    np.testing.assert_array_equal(benchmark.images, images)
    np.testing.assert_array_equal(benchmark.y, y)
    assert benchmark.images.dtype == np.uint8
    assert benchmark.class_names == ("non-pedestrian", "pedestrian")
    assert benchmark.X is None
    assert benchmark.stand_in is None
    return [(set(fold[train]), set(fold[test])) for train, test in benchmark.splits()]


@pytest.mark.parametrize("top", [".", "DC-ped-dataset_base"])
def test_folders_are_read(tmp_path, fakes, top):
    arrays = fakes.daimler(tmp_path / top)
    (tmp_path / top / "1" / "ped_examples" / "Thumbs.db").touch()
    sets = check(datasets.load_daimler(tmp_path), arrays)
    pairs = [{0, 1}, {0, 2}, {1, 2}]
    assert sets == [(pair, {test}) for pair in pairs for test in (3, 4)]


@pytest.mark.parametrize("top", [".", "DC-ped-dataset_base"])
def test_the_archive_is_read_packed(tmp_path, fakes, top):
    arrays = fakes.daimler_tar(tmp_path, top)
    check(datasets.load_daimler(tmp_path), arrays)


def test_the_npz_is_read(tmp_path, fakes):
    arrays = fakes.daimler(tmp_path / "elsewhere")
    np.savez(tmp_path / "daimler.npz", **dict(zip(("X", "y", "fold"), arrays)))
    check(datasets.load_daimler(tmp_path), arrays)


def test_splits_have_the_sizes_of_two_sets_and_one(tmp_path, fakes):
    fakes.daimler(tmp_path)
    splits = list(datasets.load_daimler(tmp_path).splits())
    assert [(train.size, test.size) for train, test in splits] == [(14, 7)] * 6


def test_a_missing_folder_is_named(tmp_path, fakes):
    fakes.daimler(tmp_path)
    (tmp_path / "2" / "ped_examples").rename(tmp_path / "away")
    with pytest.raises(DatasetError, match=r"2.ped_examples is missing"):
        datasets.load_daimler(tmp_path)


def test_missing_images_are_counted(tmp_path, fakes):
    fakes.daimler(tmp_path)
    (tmp_path / "T1" / "ped_examples" / "img_00001.pgm").unlink()
    with pytest.raises(DatasetError, match=r"T1.ped_examples has 2 images where 3"):
        datasets.load_daimler(tmp_path)


def test_an_image_of_another_size_is_named(tmp_path, fakes, make_pgm):
    fakes.daimler(tmp_path)
    image = tmp_path / "3" / "ped_examples" / "img_00002.pgm"
    image.write_bytes(make_pgm(np.zeros((18, 36), dtype=np.uint8)))
    with pytest.raises(DatasetError, match=r"img_00002\.pgm' has shape \(18, 36\)"):
        datasets.load_daimler(tmp_path)


def test_an_image_cut_short_is_named(tmp_path, fakes, cut_short):
    fakes.daimler(tmp_path)
    cut_short(tmp_path / "1" / "non-ped_examples" / "img_00000.pgm")
    with pytest.raises(DatasetError, match=r"img_00000\.pgm"):
        datasets.load_daimler(tmp_path)


def test_an_archive_cut_short_is_named(tmp_path, fakes, cut_short):
    fakes.daimler_tar(tmp_path, ".")
    cut_short(tmp_path / "DC-ped-dataset_base.tar.gz")
    with pytest.raises(DatasetError, match=r"DC-ped-dataset_base\.tar\.gz cannot be read"):
        datasets.load_daimler(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((35, 18, 36), dtype=np.uint8)}, "'X' has shape"),
        ({"X": np.zeros((35, 36, 18), dtype=np.uint16)}, "'X' has the unexpected dtype"),
        ({"y": np.zeros(35, dtype=int)}, "no row is of the class 'pedestrian'"),
        ({"y": np.ones(34, dtype=int)}, "'y' has shape"),
        ({"fold": np.repeat(np.arange(1, 6), 7)}, "'fold' has 5 in row 28"),
        ({"fold": np.repeat(np.arange(5), (6, 8, 7, 7, 7))}, "1/ped_examples has 2 images where 3"),
    ],
)
def test_a_wrong_npz_is_refused(tmp_path, fakes, changes, message):
    arrays = dict(zip(("X", "y", "fold"), fakes.daimler(tmp_path / "elsewhere")))
    np.savez(tmp_path / "daimler.npz", **{**arrays, **changes})
    with pytest.raises(DatasetError, match=message):
        datasets.load_daimler(tmp_path)

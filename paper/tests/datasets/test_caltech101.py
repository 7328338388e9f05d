"""Caltech-101: the folders (with three classes) and the pack."""

import numpy as np
import pytest

from mbkl_paper import datasets
from mbkl_paper.datasets import DatasetError, caltech101


@pytest.fixture
def root(tmp_path, fakes, monkeypatch):
    monkeypatch.setattr(caltech101, "_N_CLASSES", 3)
    monkeypatch.setattr(caltech101, "_N_IMAGES", 33 + 34 + 35)
    return fakes.caltech(tmp_path)


def test_folders_are_read_without_backgrounds(root):
    benchmark = datasets.load_caltech101(root.parent)
    assert benchmark.class_names == ("Bass", "ant", "camera")
    np.testing.assert_array_equal(np.bincount(benchmark.y), [34, 33, 35])
    for number in (0, 50, 101):
        red = {"ant": 0, "Bass": 60, "camera": 120}[benchmark.class_names[benchmark.y[number]]]
        assert abs(int(benchmark.images[number][0, 0, 0]) - red) < 6
    assert "in place of 909 classes of ImageNet" in repr(benchmark)
    assert benchmark.printed.n_classes == 909


def test_the_splits_take_thirty_of_a_class(root):
    benchmark = datasets.load_caltech101(root.parent)
    splits = list(benchmark.splits(random_state=0, n_repeats=2))
    assert len(splits) == 2
    for train, test in splits:
        np.testing.assert_array_equal(np.bincount(benchmark.y[train]), [30] * 3)
        np.testing.assert_array_equal(np.bincount(benchmark.y[test]), [4, 3, 5])


def test_missing_classes_and_images_are_counted(root):
    (root / "ant" / "image_0003.jpg").unlink()
    with pytest.raises(DatasetError, match="has 101 images where 102"):
        datasets.load_caltech101(root.parent)
    (root / "ant").rename(root.parent / "ant")
    with pytest.raises(DatasetError, match="has 2 folders of classes where 3"):
        datasets.load_caltech101(root.parent)


def test_the_pack_is_read(tmp_path, fakes):
    labels = fakes.caltech_pack(tmp_path)
    benchmark = datasets.load_caltech101(tmp_path)
    np.testing.assert_array_equal(benchmark.y, labels)
    assert len(benchmark.images) == labels.size
    assert "at most 60 images" in benchmark.stand_in
    ((train, test),) = benchmark.splits()
    np.testing.assert_array_equal(np.bincount(labels[train]), [30] * 101)
    np.testing.assert_array_equal(np.bincount(labels[test]), np.bincount(labels) - 30)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_names": np.array(["ant"])}, "has 1 classes where 101"),
        ({"y": np.zeros(7, dtype=int)}, "'y' has shape"),
    ],
)
def test_a_wrong_pack_is_refused(tmp_path, fakes, changes, message):
    fakes.caltech_pack(tmp_path, **changes)
    with pytest.raises(DatasetError, match=message):
        datasets.load_caltech101(tmp_path)

"""Flowers17: folder with datasplits.mat, and the pack."""

import numpy as np
import pytest
from scipy.io import savemat

from mbkl_paper import datasets
from mbkl_paper.datasets import DatasetError


@pytest.fixture(scope="module")
def originals(tmp_path_factory, fakes):
    folder = tmp_path_factory.mktemp("flowers")
    fakes.flowers(folder)
    return folder


@pytest.fixture
def original(originals, tmp_path):
    """A folder of one's own that shares the images."""
    (tmp_path / "jpg").symlink_to(originals / "jpg", target_is_directory=True)
    return tmp_path


def check_splits(benchmark, parts):
    splits = list(benchmark.splits())
    assert len(splits) == 3
    for number, (train, test) in enumerate(splits, start=1):
        both = np.concatenate([parts[f"trn{number}"], parts[f"val{number}"]])
        np.testing.assert_array_equal(train, np.sort(both))
        np.testing.assert_array_equal(test, np.sort(parts[f"tst{number}"]))


def check_images(benchmark):
    assert len(benchmark.images) == benchmark.y.size == 1360
    np.testing.assert_array_equal(np.bincount(benchmark.y), [80] * 17)
    for number in (0, 79, 80, 1359):
        label = number // 80
        assert benchmark.y[number] == label
        colour = benchmark.images[number][0, 0].astype(int)
        assert np.abs(colour - (15 * label, 255 - 15 * label, 0)).max() < 6
    assert benchmark.class_names[0] == "daffodil"
    assert benchmark.class_names[16] == "pansy"
    assert benchmark.X is None


def test_the_original_is_read(original, fakes):
    parts = fakes.flower_splits(original)
    benchmark = datasets.load_flowers17(original)
    check_images(benchmark)
    check_splits(benchmark, parts)
    assert benchmark.stand_in is None


def test_the_pack_is_read(tmp_path, fakes):
    parts = fakes.flower_pack(tmp_path)
    benchmark = datasets.load_flowers17(tmp_path)
    check_images(benchmark)
    check_splits(benchmark, parts)
    assert "random splits" in repr(benchmark)


def test_official_splits_are_preferred_to_those_of_the_pack(tmp_path, fakes):
    fakes.flower_pack(tmp_path)
    parts = fakes.flower_splits(tmp_path)
    benchmark = datasets.load_flowers17(tmp_path)
    check_splits(benchmark, parts)
    assert "320 pixels" in benchmark.stand_in
    assert "random" not in benchmark.stand_in


def test_missing_splits_are_named(original):
    with pytest.raises(DatasetError, match=r"datasplits\.mat"):
        datasets.load_flowers17(original)


def test_a_missing_image_is_named(tmp_path):
    (tmp_path / "jpg").mkdir()
    with pytest.raises(DatasetError, match=r"image_0001\.jpg is missing"):
        datasets.load_flowers17(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts.pop("val2"), "'val2' is missing"),
        (lambda parts: parts.update(tst1=parts["tst1"][:-1]), "'tst1' has shape"),
        (lambda parts: parts.update(val3=parts["tst3"]), r"twice in trn3, val3, tst3"),
        (lambda parts: parts["trn1"].put(0, 1360), "'trn1' names a row out of range"),
        (lambda parts: parts["trn1"].put(0, -1), "'trn1' names a row out of range"),
    ],
)
def test_wrong_splits_are_refused(original, fakes, change, message):
    parts = fakes.flower_parts()
    change(parts)
    savemat(original / "datasplits.mat", {key: rows + 1 for key, rows in parts.items()})
    with pytest.raises(DatasetError, match=message):
        datasets.load_flowers17(original)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.arange(1360) % 17}, "'y' is not 80 images"),
        ({"y": np.zeros(5, dtype=int)}, "'y' is not 80 images"),
        ({"trn1": np.zeros(680, dtype=int)}, "twice"),
        ({"trn1": np.zeros(680)}, "'trn1' has the unexpected dtype"),
    ],
)
def test_a_wrong_pack_is_refused(tmp_path, fakes, changes, message):
    fakes.flower_pack(tmp_path, **changes)
    with pytest.raises(DatasetError, match=message):
        datasets.load_flowers17(tmp_path)


def test_a_pack_of_fewer_images_is_refused(tmp_path, fakes):
    fakes.flower_pack(tmp_path, **fakes.pack([b"1", b"2"], ["a", "b"]))
    with pytest.raises(DatasetError, match="has 2 images where 1,360"):
        datasets.load_flowers17(tmp_path)


def test_a_pack_cut_short_is_refused(tmp_path, fakes, cut_short):
    fakes.flower_pack(tmp_path)
    cut_short(tmp_path / "flowers17_jpeg.npz")
    with pytest.raises(DatasetError, match=r"flowers17_jpeg\.npz cannot be read"):
        datasets.load_flowers17(tmp_path)

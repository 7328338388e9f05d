"""Flowers17: 17 kinds of flowers, 80 photographs of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbkl_paper.datasets import files
from mbkl_paper.datasets.benchmark import Benchmark, Description, Printed
from mbkl_paper.datasets.files import DatasetError
from mbkl_paper.datasets.images import FolderImages, LazyImages, read_pack
from mbkl_paper.datasets.protocols import FixedSplits, Split

DESCRIPTION = Description(
    name="flowers17",
    source="17 Category Flower Dataset (Nilsback and Zisserman, CVPR 2006), Visual Geometry "
    "Group, Oxford: 17flowers.tgz, unpacked to the folder jpg, and datasplits.mat beside it.",
    licence="None stated; photographs gathered from the web, for research.",
    # The length is printed as 31e3.
    printed=Printed(17, 1_020, 340, "bags of words", 31_000),
)
_CLASSES = (
    *("daffodil", "snowdrop", "lilyvalley", "bluebell", "crocus", "iris", "tigerlily", "tulip"),
    *("fritillary", "sunflower", "daisy", "coltsfoot", "dandelion", "cowslip", "buttercup"),
    *("windflower", "pansy"),
)
_Y = np.repeat(np.arange(len(_CLASSES)), 80)
_PARTS = {"trn": 680, "val": 340, "tst": 340}
_KEYS = [f"{part}{number}" for number in (1, 2, 3) for part in _PARTS]
_REDUCED = "the images are reduced to a shorter side of 320 pixels."

# Images, splits, and what they stand in for.
_Read = tuple[LazyImages, FixedSplits, str | None]


def load_flowers17(data_home: files.DataHome = None) -> Benchmark:
    """Read the flowers: 1,360 images, 17 classes.

    Read are the folder jpg with datasplits.mat beside it, or flowers17_jpeg.npz, with
    datasplits.mat where that is there too. Of each of the three splits, the parts trn
    and val are trained on, tst is tested on.

    Parameters
    ----------
    data_home : path or None
        See `mbkl_paper.datasets.load`.

    Returns
    -------
    benchmark : Benchmark
        With `images`.

    Examples
    --------
    >>> from mbkl_paper import datasets
    >>> datasets.load_flowers17(data_home="missing")
    Traceback (most recent call last):
    ...
    mbkl_paper.datasets.files.DatasetNotFoundError: The set flowers17 was not found...
    """
    readers = {"jpg": _read_folder, "17flowers/jpg": _read_folder, "flowers17_jpeg.npz": _read_npz}
    images, splits, stand_in = files.read_first(DESCRIPTION, data_home, readers)
    return Benchmark(DESCRIPTION, _Y.copy(), _CLASSES, splits, images=images, stand_in=stand_in)


def _read_folder(folder: Path) -> _Read:
    names = np.array([f"image_{number:04}.jpg" for number in range(1, _Y.size + 1)])
    for name in names:
        if not (folder / name).is_file():
            raise DatasetError(f"{folder / name} is missing.")
    return FolderImages(folder, names), _official_splits(folder.parent / "datasplits.mat"), None


def _read_npz(path: Path) -> _Read:
    images = read_pack(path)
    stored = files.read_npz(path, "y", *_KEYS)
    files.check_count(path, "images", len(images), _Y.size)
    if not np.array_equal(stored["y"], _Y):
        raise DatasetError(f"{path}: 'y' is not 80 images of each of the 17 classes in turn.")
    official = path.parent / "datasplits.mat"
    if official.is_file():
        return images, _official_splits(official), _REDUCED
    drawn = "random splits of the same sizes in place of the official ones of datasplits.mat"
    return images, _splits(path, stored), f"{drawn}; {_REDUCED}"


def _official_splits(path: Path) -> FixedSplits:
    stored = files.read_mat(path, *_KEYS)
    return _splits(path, {key: files.mat_indices(path, key, stored[key]) for key in _KEYS})


def _splits(path: Path, stored: Mapping[str, NDArray]) -> FixedSplits:
    splits: list[Split] = []
    for number in (1, 2, 3):
        sizes = {f"{part}{number}": size for part, size in _PARTS.items()}
        files.check_parts(path, stored, sizes)
        train, validation, test = (stored[key] for key in sizes)
        splits.append((np.sort(np.concatenate([train, validation])), np.sort(test)))
    return FixedSplits(tuple(splits))

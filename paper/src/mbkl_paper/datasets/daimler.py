"""Daimler: pedestrians and other cut-outs of 36 x 18 grey pixels, in five sets."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from itertools import combinations, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbkl_paper.datasets import files
from mbkl_paper.datasets.benchmark import Benchmark, Description, Printed
from mbkl_paper.datasets.images import decode, image_names
from mbkl_paper.datasets.protocols import FixedSplits

DESCRIPTION = Description(
    name="daimler",
    source="Daimler Mono Pedestrian Classification Benchmark (Munder and Gavrila, PAMI 2006), "
    "base set DC-ped-dataset_base.tar.gz, on the pages of D. Gavrila (gavrila.net).",
    licence="Non-commercial use with citation, on the terms of its distributor.",
    printed=Printed(2, 19_600, 9_800, "HOG", 558),
)
_CLASSES = ("non-pedestrian", "pedestrian")
_SETS = ("1", "2", "3", "T1", "T2")
_SHAPE = (36, 18)
# Folder of each class, and how many images each of the five sets has there.
_FOLDERS = {"non-ped_examples": 5_000, "ped_examples": 4_800}

# Images, classes and sets.
_Arrays = tuple[NDArray[np.uint8], NDArray[np.intp], NDArray]


def load_daimler(data_home: files.DataHome = None) -> Benchmark:
    """Read the Daimler pedestrians: 49,000 images, two classes.

    Read are the folders 1, 2, 3, T1 and T2, each with ped_examples and
    non-ped_examples; the archive DC-ped-dataset_base.tar.gz, left packed; or
    daimler.npz. Two of the sets 1, 2 and 3 are trained on, T1 or T2 is tested on, which
    gives six splits.

    Parameters
    ----------
    data_home : path or None
        See `mbkl_paper.datasets.load`.

    Returns
    -------
    benchmark : Benchmark
        With `images`, an array of shape (49000, 36, 18).

    Examples
    --------
    >>> from mbkl_paper import datasets
    >>> datasets.load_daimler(data_home="missing")
    Traceback (most recent call last):
    ...
    mbkl_paper.datasets.files.DatasetNotFoundError: The set daimler was not found...
    """
    readers = {
        "1/*ped_examples": _read_folder,
        "DC-ped-dataset_base/1/*ped_examples": _read_folder,
        "DC-ped-dataset_base.tar*": _read_tar,
        "daimler.npz": _read_npz,
    }
    images, y, fold = files.read_first(DESCRIPTION, data_home, readers)
    splits = tuple(
        (np.flatnonzero(np.isin(fold, train)), np.flatnonzero(fold == test))
        for train, test in product(combinations(range(3), 2), (3, 4))
    )
    return Benchmark(DESCRIPTION, y, _CLASSES, FixedSplits(splits), images=images)


def _read_folder(found: Path) -> _Arrays:
    root = found.parents[1]
    folders = [root.joinpath(*part) for part in product(_SETS, _FOLDERS)]
    paths = [folder / name for folder in folders for name in image_names(folder)]
    return _decode_all(root, ((path.relative_to(root), path.read_bytes()) for path in paths))


def _read_tar(path: Path) -> _Arrays:
    encoded = []
    with files.reading(path), tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and member.name.endswith(".pgm"):
                encoded.append((Path(member.name), file.read()))
    return _decode_all(path, encoded)


def _decode_all(where: Path, encoded: Iterable[tuple[Path, bytes]]) -> _Arrays:
    """Decode images whose paths end with the set, the folder of the class and the name."""
    groups: dict[tuple[str, str], dict[str, NDArray]] = {
        part: {} for part in product(_SETS, _FOLDERS)
    }
    for path, data in encoded:
        part = path.parts[-3:-1]
        if part in groups:
            groups[part][path.name] = decode(data, where / path, grey=True)
            files.check_array(where, str(path), groups[part][path.name], _SHAPE, np.uint8)
    for (name, folder), group in groups.items():
        files.check_count(where / name / folder, "images", len(group), _FOLDERS[folder])
    images = [group[name] for group in groups.values() for name in sorted(group)]
    labels = np.tile(np.repeat([0, 1], list(_FOLDERS.values())), len(_SETS))
    fold = np.repeat(np.arange(len(_SETS)), sum(_FOLDERS.values()))
    return np.stack(images), labels, fold


def _read_npz(path: Path) -> _Arrays:
    stored = files.read_npz(path, "X", "y", "fold")
    images, fold = stored["X"], stored["fold"]
    files.check_array(path, "X", images, (None, *_SHAPE), np.uint8)
    y = files.check_labels(path, "y", stored["y"], images.shape[0], _CLASSES)
    files.check_labels(path, "fold", fold, images.shape[0], _SETS)
    for number, name in enumerate(_SETS):
        for folder, found in zip(_FOLDERS, np.bincount(y[fold == number], minlength=2)):
            files.check_count(f"{path}: {name}/{folder}", "images", int(found), _FOLDERS[folder])
    return images, y, fold

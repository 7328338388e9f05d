"""Caltech-101, in place of the paper's subset of ImageNet, whose list of images is not public."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbkl_paper.datasets import files
from mbkl_paper.datasets.benchmark import Benchmark, Description
from mbkl_paper.datasets.imagenet_folder import PRINTED
from mbkl_paper.datasets.images import LazyImages, read_class_folders, read_pack
from mbkl_paper.datasets.protocols import PerClass

DESCRIPTION = Description(
    name="caltech101",
    source="Caltech 101 (Li, Andreeto, Ranzato and Perona), CaltechDATA: caltech-101.zip, "
    "unpacked to the folder 101_ObjectCategories.",
    licence="CC BY 4.0, as CaltechDATA lists it.",
    printed=PRINTED,
)
_N_CLASSES = 101
# Without the folder of backgrounds.
_N_IMAGES = 8_677
_STAND_IN = (
    "Caltech-101 in place of 909 classes of ImageNet, with far fewer classes and images: "
    "accuracies do not compare with the paper's"
)

# Images, their classes, the names of the classes, and what they stand in for.
_Read = tuple[LazyImages, NDArray[np.intp], tuple[str, ...], str]


def load_caltech101(data_home: files.DataHome = None) -> Benchmark:
    """Read Caltech-101, the stand-in for the ImageNet subset: 101 classes of images.

    Read are the folder 101_ObjectCategories, without its BACKGROUND_Google, or
    caltech101_jpeg.npz, which has at most 60 small images of a class. The protocol
    draws 30 images of every class to train on and at most 30 others to test on;
    `splits` takes n_repeats. `printed` is the paper's row of ImageNet.

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
    >>> datasets.load_caltech101(data_home="missing")
    Traceback (most recent call last):
    ...
    mbkl_paper.datasets.files.DatasetNotFoundError: The set caltech101 was not found...
    """
    folder = "101_ObjectCategories"
    readers = {
        folder: _read_folder,
        f"caltech-101/{folder}": _read_folder,
        "caltech101_jpeg.npz": _read_npz,
    }
    images, y, class_names, stand_in = files.read_first(DESCRIPTION, data_home, readers)
    protocol = PerClass(n_train=30, n_test=30)
    return Benchmark(DESCRIPTION, y, class_names, protocol, images=images, stand_in=stand_in)


def _read_folder(root: Path) -> _Read:
    folders = {path.name for path in root.iterdir() if path.is_dir()} - {"BACKGROUND_Google"}
    files.check_count(root, "folders of classes", len(folders), _N_CLASSES)
    class_names = tuple(sorted(folders))
    images, y = read_class_folders(root, class_names)
    files.check_count(root, "images", len(images), _N_IMAGES)
    return images, y, class_names, f"{_STAND_IN}."


def _read_npz(path: Path) -> _Read:
    images = read_pack(path)
    stored = files.read_npz(path, "y", "class_names")
    class_names = tuple(stored["class_names"].tolist())
    files.check_count(path, "classes", len(class_names), _N_CLASSES)
    y = files.check_labels(path, "y", stored["y"], len(images), class_names)
    reduced = "at most 60 images of a class, of a shorter side of at most 128 pixels"
    return images, y, class_names, f"{_STAND_IN}; {reduced}."

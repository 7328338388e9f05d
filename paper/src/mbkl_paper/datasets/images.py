"""Images that are decoded when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from mbkl_paper.datasets import files
from mbkl_paper.datasets.files import DatasetError

_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".pgm", ".ppm", ".tif", ".tiff"}


def decode(data: bytes, name: object, grey: bool = False) -> NDArray[np.uint8]:
    """Return the pixels of an encoded image: RGB, or grey values."""
    # In the data of a JPEG no marker can occur, so a whole one has its end after its last scan;
    # some versions of OpenCV fill up what is missing and say nothing.
    cut_short = data[:2] == b"\xff\xd8" and data.rfind(b"\xff\xd9") < data.rfind(b"\xff\xda")
    pixels = None
    if data and not cut_short:
        mode = cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR
        encoded = np.frombuffer(data, dtype=np.uint8)
        pixels = cv2.imdecode(encoded, mode | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None:
        raise DatasetError(f"{name} is not an image, or was cut short.")
    return pixels if grey else cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)


@dataclass(frozen=True, eq=False, repr=False)
class LazyImages(Sequence):
    """A sequence of RGB images, decoded one by one.

    Parameters
    ----------
    path : Path
        Where the encoded images are.
    names : ndarray of str
    """

    path: Path
    names: NDArray[np.str_]

    @abstractmethod
    def _encoded(self, index: int) -> bytes:
        """Return one image as it is stored."""

    def __len__(self) -> int:
        return self.names.size

    def __getitem__(self, index):
        """Return one image, or the sequence of those that a slice or an array names."""
        if isinstance(self.names[index], np.ndarray):
            return self._select(index)
        return decode(self._encoded(index), self.path / self.names[index])

    def _select(self, index) -> LazyImages:
        return replace(self, names=self.names[index])

    def __repr__(self) -> str:
        return f"<{len(self):,} images>"


class FolderImages(LazyImages):
    """Images in files of their own."""

    def _encoded(self, index: int) -> bytes:
        return (self.path / self.names[index]).read_bytes()


@dataclass(frozen=True, eq=False, repr=False)
class PackedImages(LazyImages):
    """Images one after the other in one array, from starts[i] to ends[i]."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def _encoded(self, index: int) -> bytes:
        return self.data[self.starts[index] : self.ends[index]].tobytes()

    def _select(self, index) -> PackedImages:
        names, starts, ends = self.names[index], self.starts[index], self.ends[index]
        return replace(self, names=names, starts=starts, ends=ends)


def read_pack(path: Path) -> PackedImages:
    """Return the images of an npz file with jpeg (bytes), offsets and names."""
    stored = files.read_npz(path, "jpeg", "offsets", "names")
    data, offsets, names = stored["jpeg"], stored["offsets"], stored["names"]
    files.check_array(path, "names", names, (None,), np.str_)
    files.check_array(path, "jpeg", data, (None,), np.uint8)
    files.check_array(path, "offsets", offsets, (names.size + 1,), np.integer)
    if offsets[0] != 0 or (np.diff(offsets) <= 0).any():
        raise DatasetError(f"{path}: 'offsets' does not start at 0 and grow from image to image.")
    files.check_count(path, "bytes in 'jpeg'", data.size, int(offsets[-1]))
    return PackedImages(path, names, data, offsets[:-1], offsets[1:])


def image_names(folder: Path) -> list[str]:
    """Return the names of the image files in a folder, in their order."""
    if not folder.is_dir():
        raise DatasetError(f"The folder {folder} is missing.")
    return sorted(path.name for path in folder.iterdir() if path.suffix.lower() in _SUFFIXES)


def read_class_folders(root: Path, folders: Sequence[str]) -> tuple[LazyImages, NDArray[np.intp]]:
    """Return the images in one folder for every class, and the numbers of their classes."""
    groups = [image_names(root / folder) for folder in folders]
    for folder, group in zip(folders, groups):
        if not group:
            raise DatasetError(f"The folder {root / folder} holds no images.")
    names = [f"{folder}/{name}" for folder, group in zip(folders, groups) for name in group]
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return FolderImages(root, np.array(names)), labels

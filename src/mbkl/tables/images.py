"""Folders of images: one folder a class, features by histograms of oriented gradients."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mbkl.tables.matrices import matrix_table
from mbkl.tables.table import Table, TableError

_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm", ".tif", ".tiff", ".webp")

# All images are seen alike, so that a model needs to remember nothing about them.
_SIZE, _CELL = (64, 64), 8


def read_images(folder: Path) -> Table:
    """Read the images of a folder as rows of HOG features.

    Parameters
    ----------
    folder : Path
        Holds images, or folders of them, whose names are the labels.

    Returns
    -------
    table : Table
        Features of images of 64 x 64 pixels; the `row_names` are the paths of the images
        within the folder.
    """
    from mbkl.vision import HOG

    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _ENDINGS)
    if not paths:
        raise TableError(
            f"{folder}: there is no image in this folder ({', '.join(_ENDINGS)}). For training, "
            "put those of each class into a folder with its name."
        )
    try:
        features = HOG(size=_SIZE, cell=_CELL).fit_transform(paths)
    except ValueError as error:
        raise TableError(f"{folder}: {error}") from None
    names = tuple(path.relative_to(folder).as_posix() for path in paths)
    classes = [path.relative_to(folder).parts[0] for path in paths]
    in_classes = all(path.parent != folder for path in paths)
    return matrix_table(
        folder, features, np.array(classes) if in_classes else None, target="class", row_names=names
    )

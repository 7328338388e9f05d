"""a-PASCAL: objects cut from the images of VOC 2008, described by attributes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbkl_paper.datasets import files
from mbkl_paper.datasets.benchmark import Benchmark, Description, Printed
from mbkl_paper.datasets.files import DatasetError
from mbkl_paper.datasets.protocols import FixedSplits

DESCRIPTION = Description(
    name="apascal",
    source="Describing Objects by their Attributes (Farhadi, Endres, Hoiem and Forsyth, CVPR "
    "2009), University of Illinois: attribute_data and attribute_features.",
    licence="None stated; its authors ask for citation.",
    # As printed. The base features have 9,751 columns, with the attributes 9,815.
    printed=Printed(20, 6_340, 6_355, "HOG, texture, colour and attributes", 9_752),
)
_PARTS = {"train": 6_340, "test": 6_355}
_N_ATTRIBUTES = 64
# A line has the name of the image, the class, four numbers of the box, and the attributes.
_N_COLUMNS = 6 + _N_ATTRIBUTES
_STAND_IN = (
    "the 64 annotated attributes alone, in place of 9,751 base features and the attributes: "
    "accuracies do not compare with the paper's."
)


def load_apascal(data_home: files.DataHome = None) -> Benchmark:
    """Read a-PASCAL VOC08: 12,695 objects, 20 classes, with the official split.

    Read are apascal_train.txt, apascal_test.txt (each may be packed, .gz),
    attribute_names.txt and class_names.txt, or apascal_attributes.npz. Where
    feat_apascal_train.mat and feat_apascal_test.mat lie beside the text files, or in
    the folder attribute_features next to theirs, the base features come first in `X`,
    as a sparse matrix; the last 64 columns are the attributes in any case. People
    annotated them, for test objects too.

    Parameters
    ----------
    data_home : path or None
        See `mbkl_paper.datasets.load`.

    Returns
    -------
    benchmark : Benchmark

    Examples
    --------
    >>> from mbkl_paper import datasets
    >>> datasets.load_apascal(data_home="missing")
    Traceback (most recent call last):
    ...
    mbkl_paper.datasets.files.DatasetNotFoundError: The set apascal was not found...
    """
    readers = {
        "apascal_train.txt*": _read_text,
        "attribute_data/apascal_train.txt*": _read_text,
        "apascal_attributes.npz": _read_npz,
    }
    return files.read_first(DESCRIPTION, data_home, readers)


def _read_text(found: Path) -> Benchmark:
    folder = found.parent
    attributes = tuple(files.read_lines(folder / "attribute_names.txt"))
    files.check_count(folder / "attribute_names.txt", "names", len(attributes), _N_ATTRIBUTES)
    listed = [name.strip() for name in files.read_lines(folder / "class_names.txt")]
    parts = [_read_part(folder, part, listed) for part in _PARTS]
    X = np.concatenate([values for values, _ in parts])
    # The list has the classes of a-Yahoo too, of which no object is here.
    present, y = np.unique(np.concatenate([labels for _, labels in parts]), return_inverse=True)
    class_names = tuple(listed[label] for label in present)
    rows = np.arange(y.size)
    split = FixedSplits(((rows[: _PARTS["train"]], rows[_PARTS["train"] :]),))
    base = _base_features(folder)
    if base is None:
        return Benchmark(DESCRIPTION, y, class_names, split, X, attributes, stand_in=_STAND_IN)
    from scipy import sparse

    names = (*(f"base {number}" for number in range(base.shape[1])), *attributes)
    both = sparse.hstack([base, X.astype(base.dtype)], format="csr")
    return Benchmark(DESCRIPTION, y, class_names, split, both, names)


def _read_part(folder: Path, part: str, listed: list[str]) -> tuple[NDArray[np.uint8], NDArray]:
    """Return attributes and classes of the training or of the test objects."""
    plain = folder / f"apascal_{part}.txt"
    path = plain if plain.exists() else plain.with_name(f"{plain.name}.gz")
    rows = [line.split() for line in files.read_lines(path)]
    for number, fields in enumerate(rows, start=1):
        if len(fields) != _N_COLUMNS:
            raise DatasetError(
                f"{path}: row {number} has {len(fields)} columns where {_N_COLUMNS} are expected."
            )
        if fields[1] not in listed:
            raise DatasetError(f"{path}: row {number} has the unknown class {fields[1]!r}.")
    files.check_count(path, "rows", len(rows), _PARTS[part])
    values = np.array([fields[-_N_ATTRIBUTES:] for fields in rows])
    wrong = np.flatnonzero(~np.isin(values, ["0", "1"]).all(axis=1))
    if wrong.size:
        raise DatasetError(f"{path}: row {wrong[0] + 1} has an attribute that is not 0 or 1.")
    return (values == "1").astype(np.uint8), np.array([listed.index(row[1]) for row in rows])


def _base_features(folder: Path):
    """Return the features that come with the set, a row for every object, or None."""
    from scipy import sparse

    for place in (folder, folder.parent / "attribute_features"):
        if any(place.glob("feat_apascal_*.mat")):
            break
    else:
        return None
    blocks: list = []
    for part, n_objects in _PARTS.items():
        path = place / f"feat_apascal_{part}.mat"
        stored = files.read_mat(path, "feat")["feat"]
        with files.reading(f"{path}: the variable 'feat'"):
            # Stored are columns for the objects.
            block = sparse.csr_array(stored.T, dtype=np.float32)
        files.check_array(path, "feat", block.data, (None,), np.floating)
        files.check_count(f"{path}: 'feat'", "columns", block.shape[0], n_objects)
        files.check_count(
            f"{path}: 'feat'", "rows", block.shape[1], (blocks or [block])[0].shape[1]
        )
        blocks.append(block)
    return sparse.vstack(blocks, format="csr")


def _read_npz(path: Path) -> Benchmark:
    sizes = {f"{part}_idx": size for part, size in _PARTS.items()}
    stored = files.read_npz(path, "X", "y", "class_names", "attribute_names", *sizes)
    X, n_rows = stored["X"], sum(sizes.values())
    files.check_array(path, "X", X, (n_rows, _N_ATTRIBUTES), np.uint8)
    if X.max() > 1:
        raise DatasetError(f"{path}: 'X' has values other than 0 and 1.")
    class_names = tuple(stored["class_names"].tolist())
    attributes = tuple(stored["attribute_names"].tolist())
    files.check_count(path, "names of attributes", len(attributes), _N_ATTRIBUTES)
    y = files.check_labels(path, "y", stored["y"], n_rows, class_names)
    files.check_parts(path, stored, sizes)
    split = FixedSplits(((stored["train_idx"], stored["test_idx"]),))
    return Benchmark(DESCRIPTION, y, class_names, split, X, attributes, stand_in=_STAND_IN)

"""A folder of descriptors computed beforehand, as for the paper's subset of ImageNet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbkl_paper.datasets import files
from mbkl_paper.datasets.benchmark import Benchmark, Description, Printed
from mbkl_paper.datasets.files import DatasetError
from mbkl_paper.datasets.protocols import FixedSplits, HeldOut, Protocol

_N_IMAGES, _N_TEST = 1_065_687, 50_000
# 1,024 codewords in 21 regions; the length is printed as 21e3.
PRINTED = Printed(909, _N_IMAGES - _N_TEST, _N_TEST, "nested sparse quantisation", 21_504)
DESCRIPTION = Description(
    name="imagenet_folder",
    source="your own descriptors, for instance of images of ImageNet (image-net.org).",
    licence="That of the images which the descriptors were computed from.",
    printed=PRINTED,
)
# What descriptors may consist of: numbers, or the bits of a binary code.
_NUMBERS = (np.integer, np.floating, np.bool_)


def load_imagenet_folder(data_home: files.DataHome = None) -> Benchmark:
    """Read a folder of descriptors, which stay on disk.

    Either each sub-folder is a class and holds .npy or .npz files, or files.txt has a
    line for every file: its path, its class and, in all lines or none, "train" or
    "test", separated by blanks. A file holds the descriptor of one image or, as rows
    of a matrix, those of many; an .npz file under the key X. Files .npy are mapped into
    memory; files .npz are read whole whenever a row of them is asked for. Where the
    list does not part the rows, the protocol draws as large a share to test on as the
    paper does, 50,000 of 1,065,687; `splits` takes n_repeats and test_size.

    Parameters
    ----------
    data_home : path or None
        See `mbkl_paper.datasets.load`.

    Returns
    -------
    benchmark : Benchmark
        Its `X` has shape and dtype; an index, a slice or an array gives rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from mbkl_paper import datasets
    >>> with tempfile.TemporaryDirectory() as home:
    ...     for name in ("cat", "dog"):
    ...         Path(home, name).mkdir()
    ...         np.save(Path(home, name, "all.npy"), np.eye(3))
    ...     benchmark = datasets.load_imagenet_folder(home)
    ...     benchmark.class_names, benchmark.X[[0, 4]]
    (('cat', 'dog'), array([[1., 0., 0.],
           [0., 1., 0.]]))
    """
    readers = {"files.txt": _read_list, "*/*.npy": _read_folders, "*/*.npz": _read_folders}
    X, y, class_names, protocol = files.read_first(DESCRIPTION, data_home, readers)
    return Benchmark(DESCRIPTION, y, class_names, protocol, X=X)


@dataclass(frozen=True, eq=False, repr=False)
class DescriptorFiles:
    """A matrix whose rows lie in many files and are read when they are asked for.

    Parameters
    ----------
    paths : sequence of Path
    offsets : ndarray of shape (n_files + 1,)
        Rows of file f are offsets[f] to offsets[f + 1] - 1.
    n_features : int
    dtype : dtype
    """

    paths: list[Path]
    offsets: NDArray[np.intp]
    n_features: int
    dtype: np.dtype
    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.offsets[-1]), self.n_features

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index) -> NDArray:
        """Return the rows that an index, a slice or an array names."""
        rows = np.arange(len(self))[index]
        return self._gather(rows) if rows.ndim else self._gather(rows[None])[0]

    def __array__(self, dtype=None, copy=None) -> NDArray:
        """Return all rows in memory."""
        return np.asarray(self[:], dtype=dtype)

    def __repr__(self) -> str:
        return f"<{self.shape[0]:,} x {self.shape[1]:,} {self.dtype} in {len(self.paths):,} files>"

    def _gather(self, rows: NDArray[np.intp]) -> NDArray:
        gathered = np.empty((rows.size, self.n_features), dtype=self.dtype)
        owners = np.searchsorted(self.offsets, rows, side="right") - 1
        order = np.argsort(owners, kind="stable")
        ends = np.flatnonzero(np.diff(owners[order], append=-1)) + 1
        for start, end in zip([0, *ends], ends):
            places = order[start:end]
            owner = owners[places[0]]
            part = _open(self.paths[owner])[rows[places] - self.offsets[owner]]
            files.check_array(self.paths[owner], "X", part, (None, self.n_features), *_NUMBERS)
            gathered[places] = part
        return gathered


# Descriptors, classes, the names of the classes, and how to divide the rows.
_Read = tuple[DescriptorFiles, NDArray[np.intp], tuple[str, ...], Protocol]


def _open(path: Path) -> NDArray:
    """Return the descriptors in a file as rows, mapped into memory where that can be."""
    if path.suffix == ".npz":
        array = files.read_npz(path, "X")["X"]
    else:
        with files.reading(path):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    rows = np.atleast_2d(array)
    if rows.ndim != 2 or not rows.size or not any(np.issubdtype(rows.dtype, n) for n in _NUMBERS):
        raise DatasetError(
            f"{path} holds {array.dtype} of shape {array.shape} where the numbers of one image "
            "or a row for every image are expected."
        )
    return rows


def _read_folders(found: Path) -> _Read:
    root = found.parents[1]
    paths: list[Path] = []
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and not folder.name.startswith("."):
            inside = sorted(path for path in folder.iterdir() if path.suffix in (".npy", ".npz"))
            if not inside:
                raise DatasetError(f"The folder {folder} of a class holds no .npy or .npz file.")
            paths += inside
    return _join(paths, [path.parent.name for path in paths], [])


def _read_list(path: Path) -> _Read:
    lines = [line.split() for line in files.read_lines(path)]
    for number, fields in enumerate(lines, start=1):
        if len(fields) != len(lines[0]) or fields[2:] not in ([], ["train"], ["test"]):
            raise DatasetError(
                f"{path}: line {number} is not a path, a class and, in all lines or none, "
                "train or test."
            )
    if not lines or len(lines[0]) < 2:
        raise DatasetError(f"{path} has no lines of a path and a class.")
    if len(lines[0]) == 3 and len({fields[2] for fields in lines}) == 1:
        raise DatasetError(f"{path} has no files to train on, or none to test on.")
    paths = [path.parent / fields[0] for fields in lines]
    return _join(paths, [fields[1] for fields in lines], [fields[2:] for fields in lines])


def _join(paths: list[Path], classes: list[str], parts: list[list[str]]) -> _Read:
    """Look at every file, and join what is in them."""
    sizes, dtypes, n_features = [], set(), _open(paths[0]).shape[1]
    for path in paths:
        array = _open(path)
        if array.shape[1] != n_features:
            raise DatasetError(
                f"{path} has descriptors of {array.shape[1]} numbers, {paths[0]} of {n_features}."
            )
        sizes.append(array.shape[0])
        dtypes.add(array.dtype)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = DescriptorFiles(paths, offsets, n_features, np.result_type(*dtypes))
    class_names, numbers = np.unique(classes, return_inverse=True)
    protocol: Protocol = HeldOut(_N_TEST / _N_IMAGES)
    if any(parts):
        tested = np.repeat([part == ["test"] for part in parts], sizes)
        protocol = FixedSplits(((np.flatnonzero(~tested), np.flatnonzero(tested)),))
    return X, np.repeat(numbers, sizes), tuple(class_names.tolist()), protocol

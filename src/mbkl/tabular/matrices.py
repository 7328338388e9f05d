"""Matrices: svmlight and NumPy files. Nothing is unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.extras import require
from mbkl.tabular.frame import Frame, FrameError
from mbkl.tabular.task import Task

_MATRIX_NAMES = ("X", "x", "data", "features")
_LABEL_NAMES = ("y", "Y", "target", "labels", "label")


def read_svmlight(path: Path, task: Task | None = None) -> Frame:
    """Read a file of lines `label index:value ...`.

    Feature x7 is the one with index 7; where indices begin with 1, x0 is empty.
    """
    from sklearn.datasets import load_svmlight_file

    if not path.stat().st_size:
        raise FrameError(f"{path}: the file is empty.")
    try:
        X, labels = load_svmlight_file(str(path), zero_based=True)
    except (ValueError, OSError, EOFError) as error:
        raise FrameError(
            f"{path}: this is no svmlight file (lines 'label index:value ...'): {error}"
        ) from None
    return _matrix_frame(path, X, labels, task)


def read_numpy(path: Path, task: Task | None = None) -> Frame:
    """Read X (and y) from an .npz file, a sparse matrix of SciPy, or a matrix from .npy."""
    from scipy import sparse

    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return _matrix_frame(path, content)
        with content as arrays:
            if "format" in arrays:
                return _matrix_frame(path, sparse.load_npz(path))
            matrix = next((arrays[name] for name in _MATRIX_NAMES if name in arrays), None)
            labels = next((arrays[name] for name in _LABEL_NAMES if name in arrays), None)
            names = ", ".join(arrays.files)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        hint = "objects are not read" if "allow_pickle" in str(error) else str(error)
        raise FrameError(f"{path}: this is no file of plain arrays ({hint}).") from None
    if matrix is None:
        raise FrameError(
            f"{path}: the features must be an array named X (and the labels y); there are: {names}."
        )
    return _matrix_frame(path, matrix, labels, task)


def _matrix_frame(
    path: Path, X: Any, labels: NDArray | None = None, task: Task | None = None
) -> Frame:
    """Check shapes and types, and name the columns x0, x1, ..."""
    pa = require("pyarrow", "cli")
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise FrameError(
            f"{path}: the features must be numbers in rows and columns, not an array of shape "
            f"{X.shape} and type {X.dtype}."
        )
    if labels is not None and labels.shape != X.shape[:1]:
        raise FrameError(
            f"{path}: {X.shape[0]} rows need as many labels, not an array of shape {labels.shape}."
        )
    columns: Any
    if not isinstance(X, np.ndarray):
        columns = _narrow(X)
    else:
        # From pandas means that NaN is a missing value.
        arrays = [pa.array(np.ascontiguousarray(column), from_pandas=True) for column in X.T]
        columns = pa.table(arrays, names=[f"x{number}" for number in range(X.shape[1])])
    row_numbers = np.arange(1, X.shape[0] + 1)
    frame = Frame(str(path), columns, row_numbers)
    if labels is None:
        return frame
    column = pa.chunked_array([pa.array(labels, from_pandas=True)])
    return frame.with_labels(column, "y", task)


def _narrow(matrix: Any) -> Any:
    """Return a sparse matrix by rows, with indices of four bytes: not all rivals take eight."""
    from scipy.sparse import csr_array

    rows = csr_array(matrix)
    if max(rows.nnz, *rows.shape) < np.iinfo(np.int32).max:
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows

"""Rows of Parquet files, read by blocks: a file may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.rows import blocks_of
from mbkl.extras import require
from mbkl.tabular.columns import is_unnamed, written_index

# Bytes of a column that are read at once.
_BUFFER = 16_384
# Types of numbers that are exact in float32, and all types of numbers.
_SINGLE = ("bool", "int8", "int16", "uint8", "uint16", "halffloat", "float")
_NUMBERS = (*_SINGLE, "int32", "int64", "uint32", "uint64", "double")


class ParquetRows:
    """The numbers of a Parquet file, or of a folder of them, as a matrix for `fit`.

    Values that are null are missing, NaN. Every pass reads the files anew, from the first
    row to the last. Reading holds a page and a dictionary of every column in memory, beside
    the rows of a block: some three megabytes a column at most, where pages have the usual size.

    Parameters
    ----------
    path : path
        A file, or a folder of files.
    columns : sequence of str
        Columns that are features: numbers or truth values.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4], "label": ["no", "yes"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_parquet(f"{folder}/rows.parquet")
    ...     X, y = read_parquet(folder, target="label")
    ...     X.shape, y.tolist()
    ((2, 2), ['no', 'yes'])
    """

    def __init__(self, path, columns: Sequence[str]) -> None:
        self._files = _dataset(path)
        self.columns = list(columns)
        types = [
            kind
            for file in self._files.get_fragments()
            for kind in _types(file.path, file.physical_schema, self.columns)
        ]
        self.shape = (self._files.count_rows(), len(self.columns))
        self.dtype = np.dtype(np.float32 if set(types) <= set(_SINGLE) else np.float64)

    @property
    def names(self):
        """The columns without rows, as a dataframe."""
        return require("pandas", "cli").DataFrame(columns=self.columns)

    def blocks(self, step: int) -> Iterator[tuple[slice, NDArray]]:
        """Yield all rows in order, `step` at a time, with their numbers."""
        yield from blocks_of(self._pieces(step), step)

    def _pieces(self, step: int) -> Iterator[NDArray]:
        # A scan of the data set would hold several row groups at a time, which are often all rows.
        # So files are read one by one, and without reading ahead.
        parquet = require("pyarrow.parquet", "cli")
        for file in self._files.get_fragments():
            with parquet.ParquetFile(
                file.path, filesystem=file.filesystem, buffer_size=_BUFFER, pre_buffer=False
            ) as rows:
                for batch in rows.iter_batches(step, columns=self.columns, use_threads=False):
                    block = np.empty((batch.num_rows, len(self.columns)), dtype=self.dtype)
                    for position, name in enumerate(self.columns):
                        block[:, position] = _numbers(batch.column(name), name)
                    yield block


def read_parquet(path, target: str) -> tuple[ParquetRows, NDArray]:
    """Open Parquet files for `fit`: all columns of numbers but the target, and the target.

    The index of a frame of pandas is left out, with or without a name, and so is a first column
    that has no name: whole numbers called "Unnamed: 0".

    Parameters
    ----------
    path : path
        A file, or a folder of files.
    target : str
        Name of the column of labels.

    Returns
    -------
    X : ParquetRows
    y : ndarray of shape (n_rows,)
    """
    schema = _dataset(path).schema
    if target not in schema.names:
        raise ValueError(
            f"target={target!r} is no column of {str(path)!r}; it has {', '.join(schema.names)}."
        )
    left_out = {target, *written_index(schema)}
    if is_unnamed(schema.names[0]) and str(schema.types[0]).startswith(("int", "uint")):
        left_out.add(schema.names[0])
    X = ParquetRows(path, [name for name in schema.names if name not in left_out])
    labels = _dataset(path).to_table(columns=[target]).column(target)
    if labels.null_count:
        raise ValueError(f"Column {target!r} of {str(path)!r} has rows without a label.")
    return X, labels.to_numpy()


def _dataset(path):
    return require("pyarrow.dataset", "cli").dataset(path, format="parquet")


def _types(path: str, schema, columns: Sequence[str]) -> Iterator[str]:
    """Yield the types of columns of a file; raise an error for types other than numbers."""
    for name in columns:
        if name not in schema.names:
            raise ValueError(f"{path!r} has no column {name!r}; it has {sorted(schema.names)}.")
        kind = str(schema.field(name).type)
        if kind not in _NUMBERS:
            raise ValueError(
                f"Column {name!r} of {path!r} holds {kind}, no numbers; leave it out "
                "of the columns, or encode it as numbers first; those of levels may be named in "
                "categorical_features."
            )
        yield kind


def _numbers(column, name: str) -> NDArray:
    values = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    if np.isinf(values).any():
        raise ValueError(f"Column {name!r} of X has infinite values; remove or clip them.")
    return values

"""An array of codes in a file, in blocks of rows, read ahead of their use."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class DiskArray:
    """Codes of shape (n_groups, n_rows) in a file; block after block, each group-major.

    Files are read and written, not mapped: what is in memory is one block, and the next one,
    which is read meanwhile. The file goes when the object does.

    Parameters
    ----------
    folder : Path
    shape : (n_groups, n_rows)
    dtype : dtype
    block_rows : int
        Rows of a block, all but the last.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     array = DiskArray(Path(folder), (2, 5), np.dtype(np.uint8), block_rows=3)
    ...     for rows in array.block_slices():
    ...         array.write(rows, np.full((2, rows.stop - rows.start), rows.start))
    ...     [block.tolist() for _, block in array.blocks()]
    [[[0, 0, 0], [0, 0, 0]], [[3, 3], [3, 3]]]
    """

    def __init__(
        self, folder: Path, shape: tuple[int, int], dtype: np.dtype, block_rows: int
    ) -> None:
        self.shape, self.dtype, self.block_rows = shape, np.dtype(dtype), block_rows
        # A file without a name: nothing is left behind even if the process is killed.
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def block_slices(self) -> Iterator[slice]:
        """Yield the rows of each block."""
        for start in range(0, self.shape[1], self.block_rows):
            yield slice(start, min(start + self.block_rows, self.shape[1]))

    def write(self, rows: slice, values: NDArray) -> None:
        """Write one block."""
        data = np.ascontiguousarray(values, dtype=self.dtype)
        if data.size:
            self._seek(rows)
            left = data.data.cast("B")
            while left:
                left = left[self._file.write(left) :]

    def read(self, rows: slice) -> NDArray:
        """Read one block."""
        values = np.empty((self.shape[0], rows.stop - rows.start), dtype=self.dtype)
        if values.size:
            self._seek(rows)
            left = values.data.cast("B")
            while left:
                done = self._file.readinto(left)
                if not done:
                    raise OSError("A file of codes ends too early; was the disk full?")
                left = left[done:]
        return values

    def blocks(self) -> Iterator[tuple[slice, NDArray]]:
        """Yield all blocks with their rows, reading the next one ahead."""
        slices = list(self.block_slices())
        with ThreadPoolExecutor(1, thread_name_prefix="mbkl-read-ahead") as reader:
            coming = reader.submit(self.read, slices[0]) if slices else None
            for position, rows in enumerate(slices):
                assert coming is not None
                block = coming.result()
                if position + 1 < len(slices):
                    coming = reader.submit(self.read, slices[position + 1])
                yield rows, block

    def _seek(self, rows: slice) -> None:
        self._file.seek(rows.start * self.shape[0] * self.dtype.itemsize)

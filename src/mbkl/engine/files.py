"""Atomic writing of files, and codes larger than memory, kept in files.

Every pass reads such codes block by block.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.codes import Codes, DenseCodes
from mbkl.engine.limits import FEW_ROWS_OF_A_FILE
from mbkl.engine.rows import ArrayRows, BlockRows, Rows, steps
from mbkl.engine.twins import Twins


def write_atomically(path: str | os.PathLike, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file completely or not at all; an older file is replaced at the end."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{str(path)!r} exists and is no regular file.")
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.strerror:  # not of the temporary name
            error.filename = str(path)
        raise


class DiskArray:
    """Codes of shape (n_groups, n_rows) in a file; block after block, each group-major.

    The file is read and written, not mapped: memory holds one block, and the next one, which is
    read ahead. It is deleted with the object. All blocks but the last have `block_rows` rows.
    """

    def __init__(
        self, folder: Path, shape: tuple[int, int], dtype: np.dtype, block_rows: int
    ) -> None:
        self.shape, self.dtype, self.block_rows = shape, np.dtype(dtype), block_rows
        self._folder = folder
        # A file without a name disappears even if the process is killed.
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115

    def empty_like(self, n_groups: int, n_rows: int, dtype) -> DiskArray:
        """Return an array of another shape, in a new file of the same folder."""
        return DiskArray(self._folder, (n_groups, n_rows), dtype, self.block_rows)

    def block_slices(self) -> Iterator[slice]:
        """Yield the rows of each block."""
        yield from steps(self.shape[1], self.block_rows)

    def write(self, rows: slice, values: NDArray) -> None:
        """Write one block."""
        self._file.seek(self._position(rows))
        np.ascontiguousarray(values, dtype=self.dtype).tofile(self._file)

    def read(self, rows: slice, groups: NDArray[np.intp] | None = None) -> NDArray:
        """Read one block, or some groups of it."""
        length = rows.stop - rows.start
        if groups is None:
            return self._read(self._position(rows), self.shape[0] * length).reshape(-1, length)
        values = np.empty((len(groups), length), dtype=self.dtype)
        for group, line in zip(groups, values, strict=True):
            line[:] = self._read(self._position(rows) + int(group) * line.nbytes, length)
        return values

    def _read(self, position: int, n_codes: int) -> NDArray:
        self._file.seek(position)
        codes = np.fromfile(self._file, self.dtype, n_codes)
        if codes.size < n_codes:
            raise OSError("A file of codes ends too early; was the disk full?")
        return codes

    def blocks(self, groups: NDArray[np.intp] | None = None) -> Iterator[tuple[slice, NDArray]]:
        """Yield the rows and codes of each block, of all or some groups; read one block ahead."""
        slices = list(self.block_slices())
        with ThreadPoolExecutor(1, thread_name_prefix="mbkl-read-ahead") as reader:
            coming = reader.submit(self.read, slices[0], groups) if slices else None
            for number, rows in enumerate(slices):
                assert coming is not None
                block = coming.result()
                if number + 1 < len(slices):
                    coming = reader.submit(self.read, slices[number + 1], groups)
                yield rows, block

    def _position(self, rows: slice) -> int:
        """Return the byte of the file where a block begins."""
        return rows.start * self.shape[0] * self.dtype.itemsize


@dataclass(frozen=True)
class FileCodes(Codes):
    """Codes in a file. All operations give the same bits as those in memory."""

    array: DiskArray  # of shape (n_groups, n_rows)
    offsets: NDArray[np.int64]  # (n_groups + 1,)
    loops: Twins  # for the codes of one block

    @property
    def n_rows(self) -> int:
        return self.array.shape[1]

    def gather(self, tables):
        scores = np.empty((self.n_rows, tables.shape[1]))
        for rows, block in self.array.blocks():
            scores[rows] = self.loops.gather(block, self.offsets, tables)
        return scores

    def histogram(self, residuals):
        sums = np.zeros((self.n_cells, residuals.shape[1]), dtype=np.int64)
        for rows, block in self.array.blocks():
            sums += self.loops.histogram(block, self.offsets, residuals[rows])
        return sums

    def take(self, rows) -> Codes:
        if rows.size <= max(self.array.block_rows, FEW_ROWS_OF_A_FILE):
            return DenseCodes(self._pick(rows), self.offsets, self.loops)
        taken = self.array.empty_like(self.n_groups, rows.size, self.array.dtype)
        for block in taken.block_slices():
            taken.write(block, self._pick(rows[block]))
        return replace(self, array=taken)

    def _pick(self, rows: NDArray[np.intp], groups: NDArray[np.intp] | None = None) -> NDArray:
        """Return the codes of some rows, in the given order; blocks without any are not read."""
        n_groups = self.n_groups if groups is None else len(groups)
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        picked = np.empty((n_groups, rows.size), dtype=self.array.dtype)
        for block in self.array.block_slices():
            first, last = np.searchsorted(ordered, [block.start, block.stop])
            if first < last:
                inside = ordered[first:last] - block.start
                picked[:, order[first:last]] = self.array.read(block, groups)[:, inside]
        return picked

    def take_some(self, groups, rows) -> NDArray:
        return self._pick(rows, groups)

    def fern_cells(self, groups, cuts, members, leading, cells) -> None:
        places = np.arange(len(groups))
        for rows, block in self.array.blocks(groups):
            self.loops.fern_cells(block, places, cuts, members, leading[rows], cells[rows])

    def renumbered(self, groups, numbers, offsets) -> FileCodes:
        def renumber(rows: slice, block: NDArray) -> NDArray:
            return self.loops.renumber(block, self.offsets, groups, numbers)

        return self._changed(renumber, numbers.dtype, offsets)

    def with_groups(self, sizes, *values) -> FileCodes:
        def join(rows: slice, block: NDArray) -> NDArray:
            return np.concatenate([block, [codes[rows] for codes in values]])

        return self._changed(join, self.array.dtype, self.more_offsets(sizes))

    def _changed(self, change: Callable, dtype, offsets) -> FileCodes:
        """Return the codes after a function has changed every block of rows."""
        changed = self.array.empty_like(offsets.size - 1, self.n_rows, dtype)
        for rows, block in self.array.blocks():
            changed.write(rows, change(rows, block))
        return replace(self, array=changed, offsets=offsets)

    def dense(self) -> DenseCodes:
        blocks = [block for _, block in self.array.blocks()]
        return DenseCodes(np.concatenate(blocks, axis=1), self.offsets, self.loops)


class FileRows(BlockRows):
    """Rows whose codes are written to files in a folder, in blocks of `block_rows` rows."""

    def __init__(self, source: Rows, loops: Twins, folder: Path, block_rows: int) -> None:
        super().__init__(source)
        self.loops, self._folder, self._block_rows = loops, folder, block_rows

    def bin(self, features, edges) -> FileCodes:
        return self._coded(lambda rows: rows.bin(features, edges))

    def bin_ferns(self, ferns) -> FileCodes:
        return self._coded(lambda rows: rows.bin_ferns(ferns))

    def _coded(self, code: Callable[[ArrayRows], DenseCodes]) -> FileCodes:
        """Return the codes of all rows, made block by block."""
        # The codes of no rows give the number of groups, the data type and the offsets.
        empty = code(ArrayRows(np.empty((0, self.shape[1]), self.dtype), self.loops))
        shape = (empty.n_groups, self.shape[0])
        array = DiskArray(self._folder, shape, empty.values.dtype, self._block_rows)
        for rows, block in self.blocks(self._block_rows):
            array.write(rows, code(ArrayRows(np.ascontiguousarray(block), self.loops)).values)
        return FileCodes(array, empty.offsets, self.loops)

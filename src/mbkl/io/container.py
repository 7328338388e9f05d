"""The container of a model file: JSON and plain arrays, with a checksum over all of it.

    offset                content
    0                     the eight bytes 89 6D 62 6B 6C 0D 0A 1A
    8                     version of the format, uint32
    12                    length of the header, uint32
    16                    header: a JSON object in ASCII, padded with spaces
    16 + length           the arrays, one after the other, each padded with zeros
    end - 32              SHA-256 of everything before

Numbers are little-endian, paddings reach to the next multiple of eight. The entry
"arrays" of the header lists name, type, shape and stored bytes of each array. The offset of
an array follows from the arrays before it, so arrays cannot overlap or lie outside the file.
An array with fewer stored bytes than its type and shape need is compressed (zlib). Version 1
lists no stored bytes and compresses nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x89mbkl\r\n\x1a"
VERSION = 2
DTYPES = ("|u1", "<u2", "<u4", "<u8", "<f4", "<f8")

_PREFIX = struct.Struct("<8sII")
_DIGEST_BYTES = 32
_ALIGNMENT = 8
# Parsed JSON takes about thirty times as much memory as its text.
_LONGEST_HEADER = 2**24
_MOST_DIMENSIONS = 2
# Arrays that would compress better are stored plain: so a small file cannot claim much memory.
_HIGHEST_RATIO = 20
# Higher levels take much longer and save little (measured).
_COMPRESSION_LEVEL = 4


class ModelFileError(ValueError):
    """A file is no model file, is damaged, or describes no possible model."""


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Iterator[bytes]:
    """Yield the bytes of a file, piece by piece; the arrays are of the types in `DTYPES`.

    >>> import io
    >>> data = b"".join(pack({"answer": 42}, {"a": np.arange(3, dtype="<u2")}))
    >>> unpack(io.BytesIO(data))
    ({'answer': 42}, {'a': array([0, 1, 2], dtype=uint16)})
    """
    ordered = [(name, _little_endian(arrays[name])) for name in sorted(arrays)]
    stored = [_compressed(array.tobytes()) for _, array in ordered]
    listed = [
        [name, array.dtype.str, list(array.shape), len(data)]
        for (name, array), data in zip(ordered, stored, strict=True)
    ]
    text = json.dumps(
        {**header, "arrays": listed}, sort_keys=True, allow_nan=False, separators=(",", ":")
    ).encode("ascii")
    text += b" " * _padding(_PREFIX.size + len(text))
    if len(text) > _LONGEST_HEADER:
        raise ValueError(
            f"The names and texts of this model take {len(text):,} bytes, more than the "
            f"{_LONGEST_HEADER:,} that a model file can hold."
        )
    digest = hashlib.sha256()
    padded = chain.from_iterable((data, bytes(_padding(len(data)))) for data in stored)
    for piece in (_PREFIX.pack(MAGIC, VERSION, len(text)), text, *padded):
        digest.update(piece)
        yield piece
    yield digest.digest()


def _compressed(data: bytes) -> bytes:
    short = zlib.compress(data, _COMPRESSION_LEVEL)
    return short if len(short) < len(data) <= _HIGHEST_RATIO * len(short) else data


def _little_endian(array: NDArray) -> NDArray:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def _padding(length: int) -> int:
    return -length % _ALIGNMENT


def unpack(file: BinaryIO) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Read header and arrays from a binary file that can seek, and check the container.

    All sizes are compared with that of the file before anything is allocated.
    """
    start = file.tell()
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    prefix = file.read(_PREFIX.size)
    if prefix[: len(MAGIC)] != MAGIC:
        raise ModelFileError("This is no mbkl model file.")
    if len(prefix) < _PREFIX.size:
        raise ModelFileError("The model file is truncated.")
    _, version, length = _PREFIX.unpack(prefix)
    if not 1 <= version <= VERSION:
        raise ModelFileError(
            f"The model file has format {version}, this mbkl reads formats up to {VERSION}; "
            "install a newer mbkl."
        )
    if length > _LONGEST_HEADER:
        raise ModelFileError(f"The header of the model file is too long ({length:,} bytes).")
    if _PREFIX.size + length + _DIGEST_BYTES > size:
        raise ModelFileError("The model file is truncated.")
    text = file.read(length)
    header = _parse(text)
    listed = _check_list(header.pop("arrays", None), size, version)
    n_bytes = sum(array.n_stored + _padding(array.n_stored) for array in listed)
    expected = _PREFIX.size + length + n_bytes + _DIGEST_BYTES
    if size != expected:
        raise ModelFileError(
            f"The model file is truncated or too long: {size:,} bytes, not {expected:,}."
        )
    data = file.read(n_bytes)
    digest = hashlib.sha256(prefix + text)
    digest.update(data)
    if digest.digest() != file.read():
        raise ModelFileError("The model file is damaged: its checksum does not match.")
    return header, _cut(data, listed)


def _parse(text: bytes) -> dict[str, Any]:
    """Return the header; duplicate keys and numbers that are not finite are errors."""
    try:
        header = json.loads(
            text.decode("ascii"),
            object_pairs_hook=_without_duplicates,
            parse_float=_finite_float,
            parse_constant=_finite_float,
        )
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"The header of the model file is no valid JSON ({error}).") from None
    if not isinstance(header, dict):
        raise ModelFileError("The header of the model file is no JSON object.")
    return header


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a key appears twice")
    return entries


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


class _Array(NamedTuple):
    """An entry of the list of arrays; `n_stored` is the number of bytes in the file."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    n_stored: int

    @property
    def n_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)

    @property
    def is_possible(self) -> bool:
        return self.n_stored <= self.n_bytes <= _HIGHEST_RATIO * self.n_stored


def _check_list(listed: Any, size: int, version: int) -> list[_Array]:
    """Return the list of arrays, or raise an error if it is not valid or claims too much memory."""
    checked: dict[str, _Array] = {}
    longest = size if version == 1 else _HIGHEST_RATIO * size
    for entry in listed if isinstance(listed, list) else [None]:
        match entry:
            case [str(name), str(dtype), list(shape), *rest] if dtype in DTYPES:
                is_valid = len(shape) <= _MOST_DIMENSIONS and name not in checked
                is_valid = is_valid and [type(n) for n in rest] == [int] * (version - 1)
                if is_valid and all(type(n) is int and 0 <= n <= longest for n in shape):
                    n_bytes = np.dtype(dtype).itemsize * math.prod(shape)
                    array = _Array(name, np.dtype(dtype), tuple(shape), *(rest or [n_bytes]))
                    if array.is_possible:
                        checked[name] = array
                        continue
        raise ModelFileError("The list of arrays in the model file is not valid.")
    return list(checked.values())


def _cut(data: bytes, listed: list[_Array]) -> dict[str, NDArray]:
    arrays, offset = {}, 0
    for array in listed:
        stored = memoryview(data)[offset : offset + array.n_stored]
        is_plain = array.n_stored == array.n_bytes
        plain = stored if is_plain else _decompressed(stored, array.n_bytes)
        flat = np.frombuffer(plain, array.dtype)
        # Copy into a writable array of native byte order.
        arrays[array.name] = flat.reshape(array.shape).astype(array.dtype.newbyteorder("="))
        offset += array.n_stored + _padding(array.n_stored)
    return arrays


def _decompressed(data: memoryview, n_bytes: int) -> bytes:
    """Return the decompressed bytes, or raise an error unless they are `n_bytes` in number."""
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(data, n_bytes)
        # All bytes may be there before the end of the stream is read.
        more = stream.decompress(stream.unconsumed_tail, 1)
    except zlib.error as error:
        raise ModelFileError(f"An array of the model file is damaged ({error}).") from None
    if len(plain) != n_bytes or more or not stream.eof or stream.unused_data:
        raise ModelFileError("An array of the model file has another length than it says.")
    return plain


class Stored:
    """Entries of the header, or the arrays, of a model file. Each must be taken once."""

    def __init__(self, values: Any, prefix: str = "") -> None:
        if not isinstance(values, dict):
            raise ModelFileError("A part of the header is no JSON object.")
        self._values, self._prefix = values, prefix

    def within(self, prefix: str) -> Stored:
        return Stored(self._values, f"{self._prefix}{prefix}/")

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._values

    def check(self, name: str, is_valid: bool | np.bool_, complaint: str) -> None:
        """Raise an error about an entry that is not valid."""
        if not is_valid:
            raise ModelFileError(f"The entry {self._prefix + name!r} {complaint}.")

    def done(self) -> None:
        """Raise an error if an entry has not been taken."""
        for name in self._values:
            raise ModelFileError(f"The entry {name!r} is unknown.")

    def take(self, name: str, *types: type) -> Any:
        """Return an entry of one of the types."""
        self.check(name, name in self, "is missing")
        value = self._values.pop(self._prefix + name)
        self.check(name, type(value) in types, "has a wrong type")
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        value = self.take(name, int)
        self.check(name, low <= value <= high, f"is outside {low} to {high}")
        return value

    def real(self, name: str, is_positive: bool = False) -> float:
        """Return a number that is at least zero, or positive."""
        value = self.take(name, float)
        self.check(name, value >= 0, "is below zero")
        self.check(name, value > 0 or not is_positive, "is not above zero")
        return value

    def array(self, name: str, kind: str, *shape: int | None) -> NDArray:
        """Return an array of a kind ("u" or "f") and shape, where None is any length."""
        array = self.take(name, np.ndarray)
        fits = array.ndim == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, array.shape)
        )
        self.check(name, fits and array.dtype.kind == kind, "has a wrong shape or type")
        return array

    def integers(
        self, name: str, length: int | None, low: int = 0, high: int = 2**62
    ) -> NDArray[np.int64]:
        array = self.array(name, "u", length)
        is_within = not array.size or (low <= int(array.min()) and int(array.max()) <= high)
        self.check(name, is_within, f"has values outside {low} to {high}")
        return array.astype(np.int64)

    def reals(self, name: str, *shape: int | None) -> NDArray[np.float64]:
        """Return an array of finite numbers."""
        array = self.array(name, "f", *shape).astype(np.float64)
        self.check(name, np.isfinite(array).all(), "has values that are not finite")
        return array


def array_of(dtype: str, items: list, complaint: str) -> NDArray:
    """Return an array of items that must all have the Python type that matches its dtype."""
    expected = {"b": bool, "i": int, "u": int, "f": float}.get(np.dtype(dtype).kind, str)
    try:
        if all(type(item) is expected for item in items):
            return np.array(items, dtype=dtype)
    except OverflowError:
        pass
    raise ModelFileError(complaint)


def compact(values: NDArray) -> NDArray:
    """Return non-negative integers in the smallest unsigned type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))

"""Entries and arrays of a model file, taken out one by one and checked on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.io.container import ModelFileError


class Entries:
    """A JSON object of which every entry has to be taken; the name is for error messages."""

    def __init__(self, values: Any, name: str) -> None:
        if not isinstance(values, dict):
            raise ModelFileError(f"{name} is no JSON object.")
        self._values = dict(values)
        self._name = name

    def take(self, key: str, *types: type) -> Any:
        """Return an entry of one of the types."""
        if key not in self._values:
            raise ModelFileError(f"{self._name} lacks {key!r}.")
        value = self._values.pop(key)
        if type(value) not in types:
            raise ModelFileError(f"{self._name} has {key!r} of a wrong type.")
        return value

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def integer(self, key: str, low: int, high: int) -> int:
        """Return a whole number within bounds."""
        value = self.take(key, int)
        if not low <= value <= high:
            raise ModelFileError(f"{self._name} has {key!r} outside {low} to {high}.")
        return value

    def real(self, key: str, is_positive: bool = False) -> float:
        """Return a number of at least zero, or above it."""
        value = float(self.take(key, float))
        if not (value > 0 if is_positive else value >= 0):
            what = "not above" if is_positive else "below"
            raise ModelFileError(f"{self._name} has {key!r} {what} zero.")
        return value

    def done(self) -> None:
        """Complain of entries that nobody has taken."""
        if self._values:
            raise ModelFileError(f"{self._name} has an unknown entry {min(self._values)!r}.")


class Arrays:
    """The arrays of a model file, every one of which has to be taken."""

    def __init__(self, arrays: dict[str, NDArray], prefix: str = "") -> None:
        self._arrays = arrays
        self._prefix = prefix

    def within(self, prefix: str) -> Arrays:
        """Return those whose names begin with a prefix."""
        return Arrays(self._arrays, f"{self._prefix}{prefix}/")

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._arrays

    def take(self, name: str, kind: str, shape: tuple[int | None, ...]) -> NDArray:
        """Return an array of a kind ("u" or "f") and shape, where None is any length."""
        full = self._prefix + name
        if full not in self._arrays:
            raise ModelFileError(f"The array {full!r} is missing.")
        array = self._arrays.pop(full)
        fits = array.ndim == len(shape) and all(
            wanted is None or wanted == length for wanted, length in zip(shape, array.shape)
        )
        if not fits or array.dtype.kind != kind:
            raise ModelFileError(f"The array {full!r} has a wrong shape or type.")
        return array

    def integers(
        self, name: str, length: int | None, low: int = 0, high: int = 2**62
    ) -> NDArray[np.int64]:
        """Return whole numbers within bounds."""
        array = self.take(name, "u", (length,))
        if array.size and not (low <= int(array.min()) and int(array.max()) <= high):
            self.complain(name, f"values outside {low} to {high}")
        return array.astype(np.int64)

    def reals(self, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
        """Return finite numbers."""
        array = self.take(name, "f", shape).astype(np.float64)
        if not np.isfinite(array).all():
            self.complain(name, "values that are not finite")
        return array

    def thresholds(self, name: str, length: int | None) -> NDArray[np.float64]:
        """Return finite numbers or -inf."""
        array = self.take(name, "f", (length,)).astype(np.float64)
        if not (array < np.inf).all():
            self.complain(name, "values that are no thresholds")
        return array

    def complain(self, name: str, what: str) -> None:
        """Raise an error about an array."""
        raise ModelFileError(f"The array {self._prefix + name!r} has {what}.")

    def done(self) -> None:
        """Complain of arrays that nobody has taken."""
        if self._arrays:
            raise ModelFileError(f"The array {min(self._arrays)!r} is unknown.")


def compact(values: NDArray) -> NDArray:
    """Return whole numbers of at least zero in the smallest type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))

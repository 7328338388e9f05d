"""Random numbers of rows: hashes of a row's key, whatever the order and place of the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# 2^64 divided by the golden ratio, made odd: its multiples are spread as evenly as random ones.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers (the finaliser of the SplitMix64 generator)."""
    with np.errstate(over="ignore"):
        mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def salted(salt: int) -> np.uint64:
    """Return the number that is added to keys, so that each salt gives other random numbers."""
    with np.errstate(over="ignore"):
        return np.uint64(salt) * GOLDEN


def draw(keys: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Return a random number below 2^32 for each row, a hash of its key and the salt."""
    with np.errstate(over="ignore"):
        return scramble(keys + salted(salt)) >> np.uint64(32)

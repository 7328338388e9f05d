"""Numbers that are random and yet depend on a row alone, wherever it is and in whatever order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# An odd number whose multiples are as good as random: 2^64 by the golden ratio.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers (the finaliser of the SplitMix64 generator)."""
    with np.errstate(over="ignore"):
        mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def salted(salt: int) -> np.uint64:
    """Return what is added to keys so that another salt gives other numbers."""
    with np.errstate(over="ignore"):
        return np.uint64(salt) * GOLDEN


def draw(keys: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Return a number below 2^32 for each row, of its key and the salt alone."""
    with np.errstate(over="ignore"):
        return scramble(keys + salted(salt)) >> np.uint64(32)

"""Random numbers that depend on nothing but a number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers (the finaliser of the SplitMix64 generator).

    Examples
    --------
    >>> import numpy as np
    >>> bool(scramble(np.array([1], dtype=np.uint64))[0] > 2**32)
    True
    """
    with np.errstate(over="ignore"):
        mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))

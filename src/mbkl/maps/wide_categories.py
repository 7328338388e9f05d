"""Categories with more levels than a byte has codes, such as post codes, in grown ferns.

Ferns see their levels in a few groups only. So each has a table of its own, with a cell for every
level, to which steps are added while ferns grow; what they add up to is turned to a fern at the
end: levels of about the same value are a cell, and its stumps ask for the digits of the number of
that cell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbkl.maps.categories import CategoryMaps
from mbkl.maps.level_order import N_CODES

Array = NDArray[np.float64]

# Share of a Newton step: there is one table for each category, and no other tells the same.
_RATE = 0.3
# What a step gained on rows that took no part is forgotten slowly; below zero there are no more.
_FADING = 0.7
_DIGITS = 8


def wide_categories(n_levels: NDArray[np.int64]) -> CategoryMaps:
    """Return the categories that have more levels than a byte has codes."""
    features = np.flatnonzero(n_levels + 2 > N_CODES)
    return CategoryMaps(features, n_levels[features])


class WideCategory:
    """The table of one category, an input column, and whether steps still gain."""

    def __init__(self, feature: int, n_cells: int, n_columns: int) -> None:
        self.feature, self.gain = feature, np.inf
        self.table = np.zeros((n_cells, n_columns))

    def step(self, sums: Array, held_out: Array, ridge: float) -> Array:
        """Return a damped Newton step for each level; the ridge is on the table as a whole.

        See `Twins.newton_steps` for the sums.
        """
        step = -_RATE * (sums[..., 0] + ridge * self.table) / (sums[..., 1] + ridge)
        gained = -(step * (held_out[..., 0] + held_out[..., 1] * step / 2)).sum()
        self.gain = gained + (0.0 if np.isinf(self.gain) else _FADING * self.gain)
        return step

    def fern(self) -> tuple[NDArray[np.bool_], Array]:
        """Return the table as a fern: members of the sets of its stumps, and its cells."""
        # Along the column that varies most; levels of the others are near enough.
        leading = self.table[:, np.argmax(self.table.var(axis=0))]
        place = np.empty(leading.size, dtype=np.int64)
        place[np.argsort(leading, kind="stable")] = np.arange(leading.size)
        number = place * N_CODES // leading.size
        cells = np.zeros((N_CODES, self.table.shape[1]))
        np.add.at(cells, number, self.table)
        cells /= np.maximum(np.bincount(number, minlength=N_CODES), 1)[:, None]
        digits = np.arange(_DIGITS)[::-1, None]
        return (number >> digits & 1).astype(bool), cells

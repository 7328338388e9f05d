"""The maps on the pairs of Step 1, each with the sign that Step 0 gave it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mbkl.cells.operator import Operator
from mbkl.learn.pairs import Pairs

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SignedMaps:
    """The signed maps S on pairs: S[(i, c), k] = sign[k, c] * z_k(x_i).

    The value of a fern on a pair is the sign of the cell of the row for the class.
    """

    by_class: tuple[Operator, ...]  # the rows of the pairs of each class, in class order
    signs: Array  # (n_cells, len(by_class))

    @classmethod
    def of(cls, operator: Operator, pairs: Pairs, signs: Array) -> SignedMaps:
        """Build the operator of some pairs; classes without a pair are left out."""
        every_row = pairs.rows.size == operator.n_rows and signs.shape[1] == 1
        if every_row:
            return cls((operator,), signs)
        present, starts = np.unique(pairs.classes, return_index=True)
        by_class = tuple(operator.take(rows) for rows in np.split(pairs.rows, starts[1:]))
        return cls(by_class, signs[:, present])

    @property
    def n_columns(self) -> int:
        return self.by_class[0].n_slots

    def to_device(self, array, dtype=None) -> Array:
        """Return an array where the operator computes: here."""
        return array

    @property
    def is_map(self) -> NDArray[np.bool_]:
        """Which columns are maps."""
        return self.by_class[0].is_map

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which maps are nested in the one to their left."""
        # No fern is: the sum over the columns of a map has at most one term.
        return self.by_class[0].collect(self.by_class[0].is_chained) > 0

    @property
    def is_signed(self) -> NDArray[np.bool_]:
        """Which maps tell some class from the others."""
        return self.by_class[0].collect(np.abs(self.signs).sum(axis=1)) > 0

    def thinned(self, n_maps: int) -> NDArray[np.bool_]:
        """Say which maps are about so many of each chain, evenly spread."""
        return self.by_class[0].thinned(n_maps)

    def keep_maps(self, kept: NDArray[np.bool_]) -> SignedMaps:
        """Return the operator of some of the maps; frees memory of this one meanwhile."""
        for own in self.by_class:
            own.forget_narrow()
        part = self._some(kept)
        return replace(part, by_class=tuple(own.narrowed() for own in part.by_class))

    def columns(self, kept: NDArray[np.bool_]) -> Array:
        """Return S of some of the maps itself, of shape (n_pairs, n_kept)."""
        part = self._some(kept)
        return part.dense()[:, part.is_map]

    def _some(self, kept: NDArray[np.bool_]) -> SignedMaps:
        """Return the operator of some of the maps."""
        by_class = tuple(own.keep_maps(kept) for own in self.by_class)
        before, after = self.by_class[0], by_class[0]
        signs = np.zeros((after.n_columns, len(by_class)))
        signs[after.spread(after.is_map)] = self.signs[before.spread(kept & self.is_map)]
        return SignedMaps(by_class, signs)

    def forward(self, theta: Array) -> Array:
        return np.concatenate(
            [
                own.forward(self.signs[:, [c]] * own.spread(theta))
                for c, own in enumerate(self.by_class)
            ]
        )

    def adjoint(self, residuals: Array) -> Array:
        return self.adjoint_and_total(residuals)[0]

    def adjoint_and_total(self, residuals: Array) -> tuple[Array, Array]:
        pulls, totals = np.zeros((self.n_columns, 1)), np.zeros(1)
        for c, (own, piece) in enumerate(zip(self.by_class, self._split(residuals), strict=True)):
            pull, total = own.adjoint_and_total(piece)
            pulls += own.collect(self.signs[:, [c]] * pull)
            totals += total
        return pulls, totals

    @property
    def longest_chain(self) -> int:
        return self.by_class[0].longest_chain

    def products(self, weights: Array) -> tuple[Array, Array, Array, Array]:
        total = np.zeros(1)
        mean, diagonal, neighbour = np.zeros((3, self.n_columns, 1))
        for c, (own, piece) in enumerate(zip(self.by_class, self._split(weights), strict=True)):
            sign = self.signs[:, [c]]
            own_total, own_mean, own_diagonal, own_neighbour = own.products(piece)
            total += own_total
            mean += own.collect(sign * own_mean)
            diagonal += own.collect(sign**2 * own_diagonal)
            own_neighbour[1:] *= sign[1:] * sign[:-1]
            neighbour += own.collect(own_neighbour)
        return total, mean, diagonal, neighbour

    def dense(self) -> Array:
        """Return S itself, of shape (n_pairs, n_columns)."""
        return np.concatenate([own.signed(self.signs[:, c]) for c, own in enumerate(self.by_class)])

    def take_narrow(self, rows: NDArray[np.intp]) -> SignedMaps:
        bounds = self._bounds()
        cuts = np.searchsorted(rows, bounds)
        by_class = tuple(
            own.take_narrow(rows[cuts[c] : cuts[c + 1]] - bounds[c])
            for c, own in enumerate(self.by_class)
        )
        return SignedMaps(by_class, self.signs)

    def _bounds(self) -> NDArray[np.intp]:
        return np.cumsum([0] + [own.n_rows for own in self.by_class])

    def _split(self, values: Array) -> list[Array]:
        return np.split(values, self._bounds()[1:-1])

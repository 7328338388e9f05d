"""The matrix of all maps on all rows, without ever forming it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.bundles import BundledCodes
from mbkl.engine.codes import Codes, coarsening
from mbkl.engine.fixed_point import to_fixed_point, total_of
from mbkl.engine.namespace import Values, is_numpy, namespace
from mbkl.engine.numpy_engine import AnyCodes, NumpyEngine
from mbkl.learn.tables import Cells, Ladder

if TYPE_CHECKING:
    from mbkl.engine import Engine

Array = NDArray[np.float64]

_FEW_COLUMNS = 2


@dataclass(frozen=True)
class MapOperator:
    """The matrix Z of one family of maps: a column per jump or cell.

    Parameters
    ----------
    codes : DenseCodes or SparseCodes
    cells : Ladder or Cells
        How the cells of a group hang together.
    engine : NumpyEngine or NumbaEngine
    """

    codes: AnyCodes
    cells: Ladder | Cells
    engine: Engine

    @property
    def n_rows(self) -> int:
        return self.codes.n_rows

    @property
    def n_columns(self) -> int:
        return self.cells.n_cells

    @property
    def n_threads(self) -> int:
        """How many threads may work side by side."""
        return self.engine.n_threads

    @property
    def in_lockstep(self) -> bool:
        """Whether many columns at once are hardly slower than one."""
        return self.engine.in_lockstep

    @property
    def longest_chain(self) -> int:
        """Length of the longest chain of nested columns."""
        return int(np.diff(self.cells.offsets).max(initial=1))

    def to_device(self, array, dtype=None) -> Values:
        """Return an array where the operator computes."""
        return self.engine.to_device(array, dtype)

    def row_dtype(self, n_columns: int):
        """Return the data type of the scores of rows."""
        return self.engine.row_dtype(n_columns)

    def coarse(self):
        """Return a context in which products may be coarser, where that is faster."""
        return self.engine.coarse()

    @property
    def n_slots(self) -> int:
        """Length of an array of kernel weights."""
        return self.cells.n_slots

    @property
    def is_map(self) -> NDArray[np.bool_]:
        """Which slots are maps."""
        return self.cells.is_map

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        """Which columns are nested in the one to their left."""
        return self.cells.is_chained

    @property
    def is_cell(self) -> NDArray[np.bool_]:
        """Which columns are cells of a fern, and no jumps."""
        return np.full(self.n_columns, isinstance(self.cells, Cells))

    @property
    def plain_codes(self) -> Codes:
        """The codes, of which an operator made by `take_narrow` has none."""
        assert not isinstance(self.codes, BundledCodes)
        return self.codes

    @cached_property
    def narrow_codes(self) -> AnyCodes:
        """The codes, bundled for passes of few columns."""
        return self.engine.bundle(self.codes)

    def _codes_for(self, n_columns: int) -> AnyCodes:
        # The tables of bundles are many times longer: too long for many columns.
        return self.narrow_codes if n_columns <= _FEW_COLUMNS else self.codes

    def thinned(self, n_maps: int) -> NDArray[np.bool_]:
        """Say which maps are about so many of each chain, evenly spread."""
        return self.cells.thinned(n_maps)

    def spread(self, kernel_weights: NDArray) -> NDArray:
        """Return for each column the kernel weight of its map."""
        return self.cells.spread(kernel_weights)

    def collect(self, values: NDArray) -> NDArray:
        """Return for each map the sum over its columns."""
        return self.cells.collect(values)

    def penalty(self, kernel_weights: Array) -> Array:
        """Return the quadratic penalty of the weight of each column."""
        return self.cells.penalty(kernel_weights)

    def forward(self, weights: Array) -> Array:
        """Return Z @ weights, of shape (n_rows, n_columns)."""
        codes = self._codes_for(weights.shape[1])
        return self.engine.gather(codes, self.cells.tables(weights))

    def adjoint(self, residuals: Array) -> Array:
        """Return Z.T @ residuals, of shape (n_cells, n_columns); order-free."""
        return self.adjoint_and_total(residuals)[0]

    def adjoint_and_total(self, residuals: Array) -> tuple[Array, Array]:
        """Return Z.T @ residuals and the sum of the residuals; order-free."""
        integers, unit = to_fixed_point(residuals)
        return self.adjoint_of_integers(integers) * unit, total_of(integers, unit)

    def adjoint_of_integers(self, integers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return Z.T @ integers, exactly."""
        return self.cells.gradient(self._histogram(integers))

    def mass(self, integers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over the rows right of each stump, or in each cell, exactly."""
        return self.cells.mass(self._histogram(integers))

    def _histogram(self, integers: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.engine.histogram(self._codes_for(integers.shape[1]), integers)

    def gather(self, tables: Array) -> Values:
        """Return the sum over the groups of each row's table entries."""
        return self.engine.gather(self._codes_for(tables.shape[1]), tables)

    def take(self, rows: Values) -> MapOperator:
        """Return the operator on some of the rows."""
        return MapOperator(self.engine.take(self.codes, rows), self.cells, self.engine)

    def forget_narrow(self) -> None:
        """Free the bundled codes; they are made again when needed."""
        self.__dict__.pop("narrow_codes", None)

    def narrowed(self) -> MapOperator:
        """Return the operator for passes of few columns only, in less memory."""
        return MapOperator(self.narrow_codes, self.cells, self.engine)

    def take_narrow(self, rows: NDArray[np.intp]) -> MapOperator:
        """Return the operator on some of the rows, for passes of few columns only."""
        return MapOperator(self.engine.take(self.narrow_codes, rows), self.cells, self.engine)

    def keep_maps(self, kept: NDArray[np.bool_]) -> MapOperator:
        """Return the operator of some of the maps: cells between stumps are joined.

        Parameters
        ----------
        kept : ndarray of shape (n_slots,)
            Which maps to keep; entries that are no map are ignored.
        """
        if kept[self.is_map].all():
            return self
        if isinstance(self.cells, Cells):
            return self._keep_groups(np.flatnonzero(kept))
        plan = coarsening(self.cells.offsets, kept[self.is_map])
        codes = self.engine.coarsen(self.plain_codes, plan)
        return MapOperator(codes, Ladder(plan.offsets), self.engine)

    def _keep_groups(self, groups: NDArray[np.intp]) -> MapOperator:
        codes = self.engine.keep_groups(self.plain_codes, groups)
        return MapOperator(codes, Cells(codes.offsets), self.engine)

    def dense(self) -> Array:
        """Return Z itself, of shape (n_rows, n_cells); zero columns where there is no map."""
        return self.cells.columns(self.engine.densify(self.plain_codes))

    def signed(self, signs: Array) -> Array:
        """Return the maps times the signs of their columns, of shape (n_rows, n_slots)."""
        return self.cells.signed(self.engine.densify(self.plain_codes), signs)

    def gram(self, kernel_weights: Array) -> Array:
        """Return Z diag(1 / penalty) Z', of shape (n_rows, n_rows)."""
        # Kernel matrices are for few rows, which are not sent to a device.
        engine = cast(NumpyEngine, self.engine)
        return self.cells.gram(engine.densify(self.plain_codes), kernel_weights, engine)

    def products(self, weights: Values) -> tuple[Values, Values, Values, Values]:
        """Return products of columns of Z that the preconditioner needs.

        Parameters
        ----------
        weights : ndarray of shape (n_rows, n_weights)
            Weight of each row in the products.

        Returns
        -------
        total : ndarray of shape (n_weights,)
            Sum of the weights.
        mean : ndarray of shape (n_cells, n_weights)
            Products with the constant column.
        diagonal : ndarray of shape (n_cells, n_weights)
            Squared norms.
        neighbour : ndarray of shape (n_cells, n_weights)
            Products of each column with the one to its left, in which it is nested.
        """
        rounded, unit = to_fixed_point(weights)
        sums = self._histogram(rounded)
        total = total_of(rounded, unit)
        return total, *self.cells.products(sums, unit, total)


@dataclass(frozen=True)
class JointOperator:
    """Several families of maps side by side, as one.

    Parameters
    ----------
    parts : tuple of MapOperator
        On the same rows.
    """

    parts: tuple[MapOperator, ...]

    @property
    def n_rows(self) -> int:
        return self.parts[0].n_rows

    @property
    def n_threads(self) -> int:
        return self.parts[0].n_threads

    @property
    def in_lockstep(self) -> bool:
        return self.parts[0].in_lockstep

    @property
    def longest_chain(self) -> int:
        return max(part.longest_chain for part in self.parts)

    def to_device(self, array, dtype=None) -> Values:
        return self.parts[0].to_device(array, dtype)

    def row_dtype(self, n_columns: int):
        return self.parts[0].row_dtype(n_columns)

    def coarse(self):
        return self.parts[0].coarse()

    @property
    def n_columns(self) -> int:
        return sum(part.n_columns for part in self.parts)

    @property
    def n_slots(self) -> int:
        return sum(part.n_slots for part in self.parts)

    @cached_property
    def is_map(self) -> NDArray[np.bool_]:
        return np.concatenate([part.is_map for part in self.parts])

    @cached_property
    def is_chained(self) -> NDArray[np.bool_]:
        return np.concatenate([part.is_chained for part in self.parts])

    @cached_property
    def is_cell(self) -> NDArray[np.bool_]:
        return np.concatenate([part.is_cell for part in self.parts])

    def thinned(self, n_maps: int) -> NDArray[np.bool_]:
        return np.concatenate([part.thinned(n_maps) for part in self.parts])

    def spread(self, kernel_weights: NDArray) -> NDArray:
        return self._each_map(lambda part, piece: part.spread(piece), kernel_weights)

    def collect(self, values: NDArray) -> NDArray:
        return self._each_column(lambda part, piece: part.collect(piece), values)

    def penalty(self, kernel_weights: Array) -> Array:
        return self._each_map(lambda part, piece: part.penalty(piece), kernel_weights)

    def forward(self, weights: Array) -> Array:
        pieces = self._split(weights, [part.n_columns for part in self.parts])
        return sum_in_order(
            [part.forward(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        )

    def adjoint(self, residuals: Array) -> Array:
        return self.adjoint_and_total(residuals)[0]

    def adjoint_and_total(self, residuals: Array) -> tuple[Array, Array]:
        integers, unit = to_fixed_point(residuals)
        return self.adjoint_of_integers(integers) * unit, total_of(integers, unit)

    def adjoint_of_integers(self, integers: NDArray[np.int64]) -> NDArray[np.int64]:
        return stacked([part.adjoint_of_integers(integers) for part in self.parts])

    def mass(self, integers: Values) -> Values:
        return stacked([part.mass(integers) for part in self.parts])

    def gather(self, tables: Array) -> Values:
        pieces = self._split(tables, [part.n_columns for part in self.parts])
        return sum_in_order(
            [part.gather(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        )

    def take(self, rows: Values) -> JointOperator:
        return JointOperator(tuple(part.take(rows) for part in self.parts))

    def forget_narrow(self) -> None:
        for part in self.parts:
            part.forget_narrow()

    def narrowed(self) -> JointOperator:
        return JointOperator(tuple(part.narrowed() for part in self.parts))

    def take_narrow(self, rows: NDArray[np.intp]) -> JointOperator:
        return JointOperator(tuple(part.take_narrow(rows) for part in self.parts))

    def keep_maps(self, kept: NDArray[np.bool_]) -> JointOperator:
        pieces = self._split(kept, [part.n_slots for part in self.parts])
        return JointOperator(
            tuple(part.keep_maps(piece) for part, piece in zip(self.parts, pieces, strict=True))
        )

    def dense(self) -> Array:
        return np.concatenate([part.dense() for part in self.parts], axis=1)

    def signed(self, signs: Array) -> Array:
        pieces = self._split(signs, [part.n_columns for part in self.parts])
        pairs = zip(self.parts, pieces, strict=True)
        return np.concatenate([part.signed(piece) for part, piece in pairs], axis=1)

    def gram(self, kernel_weights: Array) -> Array:
        pieces = self._split(kernel_weights, [part.n_slots for part in self.parts])
        return sum_in_order(
            [part.gram(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        )

    def products(self, weights: Values) -> tuple[Values, Values, Values, Values]:
        pieces = [part.products(weights) for part in self.parts]
        mean, diagonal, neighbour = (
            stacked([piece[position] for piece in pieces]) for position in (1, 2, 3)
        )
        return pieces[0][0], mean, diagonal, neighbour

    def _each_map(self, function: Callable, values: NDArray) -> NDArray:
        pieces = self._split(values, [part.n_slots for part in self.parts])
        return np.concatenate([function(*pair) for pair in zip(self.parts, pieces, strict=True)])

    def _each_column(self, function: Callable, values: NDArray) -> NDArray:
        pieces = self._split(values, [part.n_columns for part in self.parts])
        return np.concatenate([function(*pair) for pair in zip(self.parts, pieces, strict=True)])

    @staticmethod
    def _split(values: NDArray, sizes: Sequence[int]) -> list[NDArray]:
        bounds = np.cumsum([0, *sizes])
        return [values[start:stop] for start, stop in pairwise(bounds)]


AnyOperator = MapOperator | JointOperator


def stacked(parts: Sequence[Values]) -> Values:
    """Put arrays one below the other."""
    return np.concatenate(parts) if is_numpy(parts[0]) else namespace(parts[0]).concat(parts)


def sum_in_order(parts: Sequence[Array]) -> Array:
    """Add up arrays in their order, in place of the first."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def join(operators: Sequence[MapOperator]) -> AnyOperator:
    """Return one operator for several families."""
    return operators[0] if len(operators) == 1 else JointOperator(tuple(operators))

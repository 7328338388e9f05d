"""Categories with very many levels, such as post codes, sorted by the gradients of their rows.

The codes of such a category are groups of neighbouring level numbers, as a byte has no more. So
grown ferns may also ask for the place of a level in an order: by its shrunken Newton step from the
constant that growth begins with (target encoding). To avoid leakage, training rows are coded by an
order without their own fold. New rows are coded by the order of all rows.

The orders are computed by histograms and look-ups of codes, wherever these are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine import limits
from mbkl.engine.arrays import to_fixed_point, to_host
from mbkl.engine.codes import Codes
from mbkl.engine.keys import draw
from mbkl.engine.rows import Rows
from mbkl.maps.categories import N_CODES, CategoryMaps
from mbkl.maps.growing_rows import SALTS_OF_SHARES
from mbkl.maps.growth_losses import Objective, Targets
from mbkl.maps.stumps import even_thresholds

_FOLDS = 5
# Rows of average curvature that are added to every level.
_PRIOR_ROWS = 20.0
# Most orders of a category: one for each of the most frequent classes, or of the first targets.
_MOST_ORDERS = 3


@dataclass(frozen=True)
class LevelOrder:
    """An order of the levels of a category."""

    feature: int
    codes: NDArray[np.uint8]  # (n_levels + 2,): of missing values, each level, and new levels

    @property
    def n_codes(self) -> int:
        return int(self.codes.max()) + 1


def ordered_levels(
    rows: Rows,
    codes: Codes,
    n_levels: NDArray[np.int64],
    objective: Objective,
    targets: Targets,
    keys: Any,
    seed: int,
) -> tuple[Codes, list[LevelOrder]]:
    """Append a group for each order of a category with very many levels to the codes."""
    features = np.flatnonzero((n_levels + 2 > N_CODES) & (n_levels <= limits.MOST_LEVELS_IN_ORDER))
    if not features.size:
        return codes, []
    levels = CategoryMaps(features, n_levels[features]).codes(rows)
    start = objective.start(targets.y, targets.weights)
    columns = np.arange(min(start.size, _MOST_ORDERS))
    if not objective.is_numeric:  # the most frequent classes
        columns = np.sort(np.argsort(-start, kind="stable")[: columns.size])
    residuals = by_row(_residuals, targets.y, targets.weights, objective, start, columns)
    folds = by_row(_folds, keys if hasattr(keys, "apply") else to_host(keys), seed)
    ridge = _PRIOR_ROWS * objective.usual_curvature
    orders: list[LevelOrder] = []
    row_codes = []
    for group, feature in enumerate(features.tolist()):
        category = levels.keep_groups(np.array([group]))
        gradients, curvatures = np.split(_sums_by_fold(category, residuals, folds), 2, axis=2)
        for sums in zip(gradients.T, curvatures.T, strict=True):
            all_rows, by_fold = _codes_of(*sums, ridge)
            if all_rows.any():
                orders.append(LevelOrder(feature, all_rows))
                fold_codes = category.gather(category.place(by_fold))
                row_codes.append(by_row(_take_fold, fold_codes, folds))
    if not orders:
        return codes, []
    return codes.with_groups([order.n_codes for order in orders], *row_codes), orders


def by_row(function, rows: Any, *others) -> Any:
    """Apply a function of arrays that treats rows separately, also to rows on a cluster."""
    return (
        rows.apply(function, rows, *others) if hasattr(rows, "apply") else function(rows, *others)
    )


def _residuals(y, weights, objective: Objective, start, columns) -> NDArray[np.float64]:
    """Return weighted gradients, then curvatures, of some columns at a constant."""
    derivatives = objective.derivatives(np.tile(start, (len(y), 1)), y)
    weighted = [np.asarray(each, np.float64)[:, columns] * weights[:, None] for each in derivatives]
    return np.hstack(weighted)


def _folds(keys: NDArray, seed: int) -> NDArray[np.int64]:
    """Return the fold of each row, by a hash of its key."""
    draws = draw(keys.view(np.uint64), SALTS_OF_SHARES * (seed + 1) - 1)
    return ((draws * np.uint64(_FOLDS)) >> np.uint64(32)).astype(np.int64)


def _sums_by_fold(levels: Codes, residuals, folds) -> NDArray[np.float64]:
    """Return the sums of the rows of each fold in each cell, (n_folds, n_cells, n_columns)."""
    sums = []
    for fold in range(_FOLDS):
        integers, unit = to_fixed_point(np.where((folds == fold)[:, None], residuals, 0.0))
        sums.append(to_host(levels.histogram(levels.place(integers))) * unit)
    return np.stack(sums)


def _codes_of(
    gradients: NDArray, curvatures: NDArray, ridge: float
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Return the code of each cell by all rows, and by the rows outside each fold, a column each.

    Sums are of shape (n_cells, n_folds).
    """
    gradient, curvature = (each.sum(axis=1, keepdims=True) for each in (gradients, curvatures))
    steps = -(gradient - np.column_stack([0.0 * gradient, gradients]))
    steps /= curvature - np.column_stack([0.0 * curvature, curvatures]) + ridge
    edges = even_thresholds(steps[:, 0], curvature[:, 0], N_CODES - 2)
    codes = np.searchsorted(edges, steps.astype(np.float32).astype(np.float64))
    return codes[:, 0].astype(np.uint8), codes[:, 1:].astype(np.float64)


def _take_fold(codes, folds: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return for each row the code in the column of its fold."""
    return to_host(codes)[np.arange(len(folds)), folds].astype(np.uint8)

"""Categories with very many levels, such as post codes, in the order of what their rows tell.

Ferns see the levels of such a category in a few groups of neighbouring numbers only. So they may
also ask for the place of a level in an order: by the step that the rows of the level call for, at
the constant that growth begins with, shrunk where these are few. A row must not see itself in it:
its own code is that of an order without its fold of the rows. New rows, and the fitted model, have
that of all.

All of it is histograms and look-ups of codes, wherever these may be.
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
# A category has an order for each class, of the most frequent ones; or for each of a few targets.
_MOST_ORDERS = 3


@dataclass(frozen=True)
class LevelOrder:
    """An order of the levels of a category."""

    feature: int
    codes: NDArray[np.uint8]  # (n_levels + 2,): of missing values, each level, and new ones

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
    """Return the codes with a group for each order of a category with very many levels."""
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
    found = []
    for group, feature in enumerate(features.tolist()):
        own = levels.keep_groups(np.array([group]))
        gradients, curvatures = np.split(_sums_by_fold(own, residuals, folds), 2, axis=2)
        for sums in zip(gradients.T, curvatures.T, strict=True):
            of_all, by_fold = _codes_of(*sums, ridge)
            if of_all.any():
                orders.append(LevelOrder(feature, of_all))
                found.append(by_row(_of_own_fold, own.gather(own.place(by_fold)), folds))
    if not orders:
        return codes, []
    return codes.with_groups([order.n_codes for order in orders], *found), orders


def by_row(function, rows: Any, *others) -> Any:
    """Apply a function of arrays row by row, where the rows are."""
    return (
        rows.apply(function, rows, *others) if hasattr(rows, "apply") else function(rows, *others)
    )


def _residuals(y, weights, objective: Objective, start, columns) -> NDArray[np.float64]:
    """Return weighted gradients of some columns at the constant, then curvatures."""
    derivatives = objective.derivatives(np.tile(start, (len(y), 1)), y)
    own = [np.asarray(each, np.float64)[:, columns] * weights[:, None] for each in derivatives]
    return np.hstack(own)


def _folds(keys: NDArray, seed: int) -> NDArray[np.int64]:
    """Return the fold of each row."""
    draws = draw(keys.view(np.uint64), SALTS_OF_SHARES * (seed + 1) - 1)
    return ((draws * np.uint64(_FOLDS)) >> np.uint64(32)).astype(np.int64)


def _sums_by_fold(levels: Codes, residuals, folds) -> NDArray[np.float64]:
    """Return the sums of the rows of each fold in each cell, (n_folds, n_cells, n_columns)."""
    found = []
    for fold in range(_FOLDS):
        integers, unit = to_fixed_point(np.where((folds == fold)[:, None], residuals, 0.0))
        found.append(to_host(levels.histogram(levels.place(integers))) * unit)
    return np.stack(found)


def _codes_of(
    gradients: NDArray, curvatures: NDArray, ridge: float
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Return the code of each cell by all rows, and by those beyond each fold; a column for each.

    Sums are of shape (n_cells, n_folds).
    """
    gradient, curvature = (each.sum(axis=1, keepdims=True) for each in (gradients, curvatures))
    steps = -(gradient - np.column_stack([0.0 * gradient, gradients]))
    steps /= curvature - np.column_stack([0.0 * curvature, curvatures]) + ridge
    edges = even_thresholds(steps[:, 0], curvature[:, 0], N_CODES - 2)
    codes = np.searchsorted(edges, steps.astype(np.float32).astype(np.float64))
    return codes[:, 0].astype(np.uint8), codes[:, 1:].astype(np.float64)


def _of_own_fold(codes, folds: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return of the codes of each row that of its fold."""
    return to_host(codes)[np.arange(len(folds)), folds].astype(np.uint8)

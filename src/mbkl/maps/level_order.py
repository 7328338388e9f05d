"""Levels of categories in the order in which a cut tells most: that of their residuals.

For one score and a convex loss the best division of the levels in two is a cut in the order of
gradient by curvature. With several scores it is that order along their leading direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.twins import Twins

# Codes are of one byte.
N_CODES = 256
# Share of the levels that a stump may tell apart, by chance: the others stay in the middle. A cut
# in the order of all levels would fit their noise.
TOLD_APART = 0.3
# Steps of the power method: the direction need not be exact.
N_POWERS = 10


@dataclass(frozen=True)
class OrderedLevels:
    """Codes of the rows of a sample, those of categories to be put in order."""

    codes: NDArray[np.uint8]  # (n_features, n_rows)
    categories: NDArray[np.intp]  # (n_categories,): which of the features are categories
    n_codes: NDArray[np.int64]  # (n_features,): codes in use
    ridge: float  # added to the curvature of each level, so that a rare one is in the middle
    loops: Twins

    def ranks(self, order, residuals, starts, generator) -> NDArray[np.uint8]:
        """Return the place of each code of each category, (n_categories, 256).

        See `Twins.best_cuts` for the arguments.
        """
        gradient, curvature = _beyond_cells(residuals, starts, self.ridge)
        both = np.empty((len(order), 2 * gradient.shape[1]), dtype=np.int64)
        both[order] = np.hstack([gradient, curvature])
        offsets = N_CODES * np.arange(self.categories.size + 1)
        sums = self.loops.histogram(self.codes[self.categories], offsets, both)
        sums = sums.reshape(self.categories.size, N_CODES, 2, -1)
        steps = sums[:, :, 0] / (sums[:, :, 1] + self.ridge)
        steps *= generator.random((self.categories.size, N_CODES, 1)) < TOLD_APART
        ranks = np.empty((self.categories.size, N_CODES), dtype=np.uint8)
        n_codes = self.n_codes[self.categories]
        for own, step, mass, used in zip(ranks, steps, sums[:, :, 1], n_codes, strict=True):
            places = _along(step, mass)
            places[used:] = np.inf
            own[np.argsort(places, kind="stable")] = np.arange(N_CODES)
        return ranks

    def put_in_order(self, ranks: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the codes with the places of levels instead of their numbers."""
        ordered = self.codes.copy()
        offsets = N_CODES * np.arange(self.categories.size + 1)
        ordered[self.categories] = self.loops.renumber(
            self.codes[self.categories],
            offsets,
            np.arange(self.categories.size),
            ranks.ravel(),
        )
        return ordered


def _beyond_cells(residuals, starts, ridge: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return gradients less what the step of their cell explains, and curvatures, as integers."""
    gradient, curvature = residuals >> 32, residuals & 0xFFFFFFFF
    running = np.concatenate([np.zeros_like(residuals[:1]), np.cumsum(residuals, axis=0)])
    totals = np.diff(running[starts], axis=0)
    steps = (totals >> 32) / ((totals & 0xFFFFFFFF) + ridge)
    explained = curvature * np.repeat(steps, np.diff(starts), axis=0)
    return gradient - np.rint(explained).astype(np.int64), curvature


def _along(steps: NDArray[np.float64], mass: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the steps of the levels along their leading direction.

    >>> _along(np.array([[3.0, -3.0], [-1.0, 1.0]]), np.ones((2, 2))).round(2).tolist()
    [4.24, -1.41]
    """
    if steps.shape[1] == 1:
        return steps[:, 0]
    weighted = steps * mass
    spread = (weighted[:, :, None] * steps[:, None]).sum(axis=0)
    direction = np.zeros(steps.shape[1])
    direction[np.argmax(np.diag(spread))] = 1.0
    for _ in range(N_POWERS):
        direction = (spread * direction).sum(axis=1)
        length = np.sqrt((direction**2).sum())
        if not length > 0:
            return np.zeros(len(steps))
        direction = direction / length
    return (steps * direction).sum(axis=1)

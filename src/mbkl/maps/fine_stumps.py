"""Thresholds as fine as a byte allows: what grown ferns choose their stumps from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import offsets_of
from mbkl.engine.codes import Codes, SparseCodes
from mbkl.engine.rows import Rows
from mbkl.maps.binning import BinEdges
from mbkl.maps.stumps import StumpMaps, column_ranges, values_of

# Thresholds of a feature; values from which those of all are taken, and bounds of their rows.
_MOST_THRESHOLDS = 254
_VALUES_OF_THRESHOLDS, _ROWS_OF_THRESHOLDS = 4_000_000, (4_000, 200_000)


def fine_stumps(rows: Rows, weights, seed: int) -> tuple[StumpMaps, Codes]:
    """Return thresholds as fine as a byte allows, and the codes of the rows."""
    low, high, has_missing = column_ranges(rows)
    X, mass = rows.values(weights, rows_of_thresholds(rows.shape[1]), seed)
    columns = X.tocsc() if hasattr(X, "tocsc") else X

    def cuts_of(feature: int) -> NDArray[np.float64]:
        # A column of missing values alone tells nothing.
        some = has_missing[feature] and high[feature] >= low[feature]
        cuts = [np.full(int(some), -np.inf)]
        if high[feature] > low[feature]:
            values, own_mass = values_of(columns, feature, mass)
            cuts.append(even_thresholds(values, own_mass, _MOST_THRESHOLDS))
        return np.concatenate(cuts)

    found = rows.loops.each(cuts_of, range(rows.shape[1]))
    features = [feature for feature, cuts in enumerate(found) if cuts.size]
    edges = [found[feature] for feature in features]
    sizes = np.array([cuts.size for cuts in edges], dtype=np.int64)
    thresholds = np.concatenate([np.empty(0), *edges])
    maps = StumpMaps(
        np.array(features, dtype=np.intp),
        BinEdges(thresholds, offsets_of(sizes)),
        np.ones(thresholds.size, dtype=np.int64),
    )
    codes = maps.codes(rows)
    return maps, codes.dense() if isinstance(codes, SparseCodes) else codes


def rows_of_thresholds(n_features: int) -> int:
    """Return how many rows tell the thresholds, of which there are many more.

    >>> rows_of_thresholds(10), rows_of_thresholds(100), rows_of_thresholds(10_000)
    (200000, 40000, 4000)
    """
    return int(np.clip(_VALUES_OF_THRESHOLDS // max(n_features, 1), *_ROWS_OF_THRESHOLDS))


def even_thresholds(values, mass, n_thresholds: int) -> NDArray[np.float64]:
    """Return thresholds between neighbouring values, as even in mass as the values allow.

    A value that has more than its share gets an interval of its own, and the others divide
    what is left: a column that is mostly zero has fine thresholds above it.

    >>> values = np.array([0.0] * 90 + list(range(1, 11)))
    >>> even_thresholds(values, np.ones(100), 5).tolist()
    [0.5, 2.5, 5.5, 7.5]
    """
    values = values.astype(np.float32)  # as they are compared, and sorted in half the time
    if (mass == mass[:1]).all():
        # The values alone are sorted much faster than their order is found.
        distinct, counts = np.unique(values, return_counts=True)
        share = counts * mass[:1]
    else:
        distinct, place = np.unique(values, return_inverse=True)
        share = np.bincount(place, mass)
    if distinct.size < 2:
        return np.empty(0)
    last = np.arange(distinct.size - 1)
    if last.size > n_thresholds:
        heavy = np.zeros(distinct.size, dtype=bool)
        for _ in range(8):
            usual = share[~heavy].sum() / max(n_thresholds - heavy.sum(), 1)
            grown = heavy | (share > usual)
            if (grown == heavy).all():
                break
            heavy = grown
        interval = np.floor(np.cumsum(np.where(heavy, 0.0, share)) / usual - 1e-9)
        ends = (np.diff(interval) > 0) | heavy[1:] | heavy[:-1]
        last = np.flatnonzero(ends)[:n_thresholds]
    low, high = distinct[last].astype(np.float64), distinct[last + 1].astype(np.float64)
    middle = (low + (high - low) / 2).astype(np.float32)
    return np.where(middle < high, middle, low).astype(np.float64)

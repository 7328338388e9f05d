"""Compile every loop once, so that no later fit in any process waits for the compiler."""

from __future__ import annotations

import time

import numpy as np

from mbkl.engine.codes import coarsening
from mbkl.engine.rows import ArrayRows
from mbkl.maps.ferns import Ferns
from mbkl.maps.grown_ferns import GrownFerns, HeldOutRidges
from mbkl.maps.growth_losses import Targets
from mbkl.maps.stumps import BinEdges


def warmup() -> float:
    """Call each loop on tiny data of the usual types; return the seconds it took."""
    began = time.perf_counter()
    from mbkl.engine.compiled import Compiled

    loops = Compiled(1)
    X = np.zeros((400, 2))
    X[0] = 1.0
    inputs = [
        make(X, dtype)
        for dtype in ("f4", "f8")
        for make in (np.ascontiguousarray, np.asfortranarray)
    ]
    _warm_stumps(inputs, loops)
    _warm_ferns(inputs, loops)
    _warm_growth(X, loops)
    loops.city_block(X.T.copy(), X.T.copy())
    return time.perf_counter() - began


def _warm_stumps(inputs, loops) -> None:
    features = np.arange(2)
    for n_thresholds in (2, 300):  # codes of one and of two bytes
        thresholds = np.tile(np.linspace(0.0, 1.0, n_thresholds), 2)
        edges = BinEdges(thresholds, np.arange(3, dtype=np.int64) * n_thresholds)
        for variant in inputs:
            codes = ArrayRows(variant, loops).bin(features, edges)
            plan = coarsening(codes.offsets, np.ones(codes.n_cells - 2, bool))
            some = codes.coarsen(plan).take(np.arange(20))
            for n_columns in (1, 5):
                some.gather(np.zeros((some.n_cells, n_columns)))
                some.histogram(np.zeros((20, n_columns), dtype=np.int64))


def _warm_ferns(inputs, loops) -> None:
    for max_cells in (256, 512):  # codes of one and of two bytes
        for variant in inputs:
            ferns = Ferns(depth=12.0, max_cells=max_cells)
            rows = ArrayRows(variant, loops)
            maps, codes = ferns.fit_codes(rows, np.ones(len(variant)), 3, 0)
            rows.bin_ferns(maps)
        for weights in (np.ones(3), np.arange(3.0)):
            values = codes.dense().values.astype(f"u{max_cells // 256}")
            loops.agreement(values, values, weights)


def _warm_growth(X, loops) -> None:
    for n_classes in (2, 3, 5):
        y = np.arange(len(X)) % n_classes
        for n_levels in (None, np.array([0, 2])):
            targets = Targets(y, n_classes, np.ones(len(X)))
            GrownFerns().grow(ArrayRows(X, loops), targets, 2, 0, n_levels=n_levels)
    # Loops that a growth on so few rows does not call.
    loops.newton_steps(np.zeros((2, 1, 2)), (1.0,) * len(HeldOutRidges.FACTORS), 0)
    numbers = np.zeros((2, 1), np.float32)
    units = np.float32(1.0), np.float32(1.0)
    packed = np.zeros((2, 1), np.int32)
    loops.pack_residuals(numbers, numbers, numbers[:, 0].copy(), units, packed)
    loops.draw_rows(np.zeros(2, np.uint64), np.arange(2), np.ones(2), 0)

"""Compile every kernel once, so that no later fit in any process waits for it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np


def warmup() -> float:
    """Call each kernel on tiny data of the usual types; return the seconds it took."""
    began = time.perf_counter()
    from scipy import sparse

    from mbkl.engine.bundles import bundle
    from mbkl.engine.codes import DenseCodes, coarsening
    from mbkl.engine.numba_engine import NumbaEngine
    from mbkl.maps.binning import BinEdges, bin_columns
    from mbkl.maps.ferns import Ferns

    engine = NumbaEngine(1)
    features = np.arange(2)
    X = np.zeros((400, 2))
    X[0] = 1.0
    for n_thresholds in (2, 300):  # codes of one and of two bytes
        thresholds = np.tile(np.linspace(0.0, 1.0, n_thresholds), 2)
        edges = BinEdges(thresholds, np.arange(3, dtype=np.int64) * n_thresholds)
        inputs = [
            make(X, dtype)
            for dtype in ("f4", "f8")
            for make in (np.ascontiguousarray, np.asfortranarray)
        ]
        for variant in inputs:
            for n_columns in (1, 5):
                engine.score(
                    variant, features, edges, np.zeros((edges.cell_offsets[-1], n_columns))
                )
        for variant in [*inputs, sparse.csr_array(X)]:
            codes = bin_columns(variant, features, edges, engine)
            keep = np.ones(codes.n_cells - 2, dtype=bool)
            codes = engine.coarsen(codes, coarsening(codes.offsets, keep))
            forms = [codes, bundle(codes)] if isinstance(codes, DenseCodes) else [codes]
            for form in forms:
                part = engine.take(form, np.arange(20))
                for n_columns in (1, 5):
                    engine.gather(part, np.zeros((part.n_cells, n_columns)))
                    engine.histogram(part, np.zeros((20, n_columns), dtype=np.int64))
    for max_cells in (256, 512):  # codes of one and of two bytes
        for variant in inputs:
            ferns = Ferns(depth=12.0, max_cells=max_cells)
            maps, codes = ferns.fit_codes(variant, np.ones(len(X)), 3, 0, engine)
            engine.bin_ferns(variant, maps, codes.values)
        for weights in (np.ones(3), np.arange(3.0)):
            wide = DenseCodes(codes.values.astype(f"u{max_cells // 256}"), codes.offsets)
            engine.agreement(wide, wide, weights)
    engine.city_block(X.T.copy(), X.T.copy())
    return time.perf_counter() - began


def announce_if_cold() -> None:
    """Say in one line on stderr that the first fit will wait for the compiler."""
    from mbkl.engine import kernels

    folder = getattr(getattr(kernels.gather_one, "_cache", None), "cache_path", None)
    if folder is None or not any(Path(folder).glob("kernels.gather_one*.nbi")):
        print(
            "mbkl: compiling kernels, once per machine; `mbkl warmup` does it ahead of time.",
            file=sys.stderr,
            flush=True,
        )

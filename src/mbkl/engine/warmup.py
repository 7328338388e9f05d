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

    from mbkl.engine.codes import coarsening
    from mbkl.engine.numba_engine import NumbaEngine
    from mbkl.maps.binning import BinEdges, bin_columns

    engine = NumbaEngine(1)
    features = np.arange(2)
    for n_thresholds in (1, 300):  # codes of one and of two bytes
        thresholds = np.tile(np.linspace(0.0, 1.0, n_thresholds), 2)
        edges = BinEdges(thresholds, np.arange(3, dtype=np.int64) * n_thresholds)
        base = np.zeros((40, 2))
        base[:, 0] = np.arange(40) == 0
        inputs = [base.astype(t, order=o) for t in (np.float32, np.float64) for o in "CF"]
        for X in [*inputs, sparse.csr_array(base)]:
            codes = bin_columns(X, features, edges, engine)
            keep = np.ones(codes.n_cells - 2, dtype=bool)
            engine.coarsen(codes, coarsening(codes.offsets, keep))
            codes = engine.take(codes, np.arange(20))
            for n_columns in (1, 3):
                engine.gather(codes, np.zeros((codes.n_cells, n_columns)))
                engine.histogram(codes, np.zeros((20, n_columns), dtype=np.int64))
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

"""Compile the kernel of explanations ahead of time."""

from __future__ import annotations

import time

import numpy as np


def warmup() -> float:
    """Call the kernel on a tiny game; return the seconds it took."""
    began = time.perf_counter()
    from mbkl.engine.numba_engine import NumbaEngine
    from mbkl.explain.fern_games import FernTables
    from mbkl.explain.fern_shares import share_compiled
    from mbkl.maps.ferns import Ferns

    X, engine = np.arange(8.0).reshape(4, 2), NumbaEngine(1)
    ferns, codes = Ferns().fit_codes(X, np.ones(len(X)), 3, 0, engine)
    games = FernTables(ferns, np.zeros((codes.n_cells, 1)))
    block = range(ferns.n_maps)
    answers = games.answers(games.pieces(X), block)
    share_compiled(games, block, answers, answers, engine)
    return time.perf_counter() - began

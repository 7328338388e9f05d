"""Compile the loops of explanations ahead of time."""

from __future__ import annotations

import time

import numpy as np


def warmup() -> float:
    """Call the loops on a tiny game; return the seconds it took."""
    began = time.perf_counter()
    from mbkl.explain.fern_games import FernTables, columns_of
    from mbkl.explain.fern_shares import share_compiled
    from mbkl.explain.inside import Ferns, numba_engine

    X, engine = np.arange(8.0).reshape(4, 2), numba_engine(1)
    ferns, codes = Ferns().fit_codes(X, np.ones(len(X)), 3, 0, engine)
    games, block = FernTables(ferns, np.zeros((codes.n_cells, 1))), range(ferns.n_maps)
    answers = games.answers(columns_of(X), block)
    share_compiled(games, block, answers, answers, engine)
    return time.perf_counter() - began

"""Compile the loops of explanations ahead of time."""

from __future__ import annotations

import numpy as np

from mbkl.engine.rows import ArrayRows
from mbkl.explain.fern_games import FernTables, columns_of
from mbkl.explain.fern_shares import share_compiled
from mbkl.maps.ferns import Ferns


def warm_explanations(loops) -> None:
    """Call the loops on a tiny game."""
    X = np.arange(8.0).reshape(4, 2)
    ferns, codes = Ferns().fit_codes(ArrayRows(X, loops), np.ones(len(X)), 3, 0)
    games, block = FernTables(ferns, np.zeros((codes.n_cells, 1))), range(ferns.n_maps)
    answers = games.answers(columns_of(X), block)
    share_compiled(games, block, answers, answers, loops)

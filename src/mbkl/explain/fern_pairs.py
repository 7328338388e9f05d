"""How much two features of a fern tell together.

A feature with n thresholds in a fern gives one of n + 1 pieces, whatever the row. So the
partial dependences of a feature, and of two of them, are small tables, and rows look up in
these what the pair adds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.explain.fern_games import Array, FernTables, Numbers


def pair_effects(
    tables: FernTables,
    fern: int,
    players: NDArray[np.intp],
    rows: Numbers,
    background: Numbers,
) -> Array:
    """Return the joint partial dependence of each two players less those of both.

    Parameters
    ----------
    tables : FernTables
    fern : int
    players : ndarray of shape (n_players,)
        Those of the fern to look at.
    rows, background : ndarray of shape (n_rows, n_pieces) and (n_background, n_pieces)
        Pieces of all ferns.

    Returns
    -------
    effects : ndarray of shape (n_pairs, n_rows, n_columns)
        Pairs in the order of `np.triu_indices`.
    """
    pieces = tables.bounds[fern] + players
    start, size = tables.starts[pieces], tables.sizes[pieces]
    # A level is one piece that one of the players can have; the first has no stump.
    first_level = np.cumsum(size + 1) - (size + 1)
    player = np.repeat(np.arange(players.size), size + 1)
    step = np.arange(player.size) - first_level[player]
    values = np.where(step > 0, tables.levels[start[player] + step - 1], np.uint64(0))

    own = background[:, tables.bounds[fern] : tables.bounds[fern + 1]]
    moves = values[:, None] - own.T[players[player]]
    left, right = np.nonzero(player[:, None] < player)
    nobody = own.sum(axis=1)
    numbers = np.vstack([nobody[None], nobody + moves, nobody + moves[left] + moves[right]])
    means = _mean_entries(tables, fern, numbers)
    alone, together = means[1 : 1 + player.size], means[1 + player.size :]
    effects = np.zeros((player.size, player.size, means.shape[1]))
    effects[left, right] = together - alone[left] - alone[right] + means[0]

    yes = rows[:, pieces].T[player] == values[:, None]
    level = np.nonzero(yes.T)[1].reshape(len(rows), players.size)
    first, second = np.triu_indices(players.size, 1)
    return effects[level.T[first], level.T[second]]


def _mean_entries(tables: FernTables, fern: int, numbers: Numbers) -> Array:
    """Return the mean table entry of each row of numbers."""
    cells = tables.cells(np.array(fern), numbers)
    first, last = tables.ferns.cell_offsets[fern : fern + 2]
    n_means, n_numbers = numbers.shape
    mean = sparse.csr_array(
        (
            np.full(cells.size, 1.0 / n_numbers),
            cells.ravel() - first,
            np.arange(n_means + 1) * n_numbers,
        ),
        shape=(n_means, last - first),
    )
    return mean @ tables.tables[first:last]

"""Ferns as games: how table entries are divided among features, and mean entries.

The players of a fern are the features it joins. The value of a coalition, for a row x
and a row z of the background, is the table entry of a row that has the features of the
coalition from x and all others from z. Players in whose thresholds x and z agree add
nothing, so only the few others have to be looked at; and many rows give the same
answers to all stumps of a fern, so only different ones have to be compared. Few games are
played by NumPy and many by compiled loops; the two differ by rounding errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mbkl.engine import choose_loops
from mbkl.engine.arrays import offsets_of
from mbkl.engine.limits import SMALL
from mbkl.engine.rows import ArrayRows
from mbkl.engine.twins import TWINS, as_float32, level_cells
from mbkl.maps.categories import level_edges
from mbkl.maps.ferns import FernMaps, Ferns

Array = NDArray[np.float64]
Numbers = NDArray[np.uint64]

_FERNS_AT_ONCE = 64
_ENTRIES_AT_ONCE = 1_000_000
# Up to here all coalitions are looked at; there are 256 of eight players.
MOST_EXACT = 8


class FernTables:
    """Ferns with their tables, and their stumps sorted by fern, feature and threshold.

    The outcomes of a fern's stumps are the digits of a number. Those of one feature
    are a *piece* of it, and the sum of the pieces is the number. The different pieces that
    rows can have are the *steps* of a feature: with n thresholds n + 1, from below all to above
    all; of a category those that its levels have. Tables are of shape (n_cells, n_columns).
    """

    def __init__(self, ferns: FernMaps, tables: Array) -> None:
        self.ferns, self.tables = ferns, tables
        # Of each stump; sorting them does not change their ferns.
        self.fern = np.repeat(np.arange(ferns.n_maps), np.diff(ferns.offsets))
        order = np.lexsort((ferns.thresholds, ferns.features, self.fern))
        self.features, self.thresholds = ferns.features[order], ferns.thresholds[order]
        self.digits = np.uint64(1) << (ferns.offsets[1:][self.fern] - 1 - order).astype(np.uint64)
        # Where the set of levels of each stump begins; -1 for one with a threshold.
        sets = ferns.sets
        self.set_starts = np.full(order.size, -1) if sets is None else sets.starts[order]
        # Of each piece: its first stump, how many there are, all its digits, and the cells of its
        # category, missing and new levels included; 0 for numbers.
        self.starts = np.flatnonzero(is_fresh(self.fern, self.features))
        self.sizes = np.diff(np.append(self.starts, order.size))
        self.masks = np.bitwise_or.reduceat(self.digits, self.starts)
        self.players = self.features[self.starts]
        n_levels = np.zeros(1, np.int64) if sets is None else sets.n_levels[self.players]
        self.n_cells = np.broadcast_to(np.where(n_levels > 0, n_levels + 2, 0), self.starts.shape)
        # Pieces of fern g are bounds[g] to bounds[g + 1] - 1.
        self.bounds = np.searchsorted(self.fern[self.starts], np.arange(ferns.n_maps + 1))
        # By which the number of each fern becomes that of a raw cell.
        n_bits = np.log2(ferns.n_raw).astype(np.int64)
        is_hashed = np.diff(ferns.offsets) > n_bits
        self.factors = np.where(is_hashed, ferns.factors, np.uint64(1))
        self.shifts = np.where(is_hashed, 64 - n_bits, 0).astype(np.uint64)
        self.raw_offsets = ferns.raw_offsets

    @cached_property
    def steps(self) -> Steps:
        """The steps of each piece."""
        sizes = np.where(self.n_cells > 0, 0, self.sizes + 1)
        categories = np.flatnonzero(self.n_cells)
        first_cell = offsets_of(self.n_cells)
        own_cells = np.repeat(categories, self.n_cells[categories])
        answers = self._level_answers(first_cell)
        # Levels that give the same digits are one step.
        order = np.lexsort((answers, own_cells))
        fresh = is_fresh(answers[order], own_cells)
        sizes += np.bincount(own_cells[fresh], minlength=sizes.size)
        first = offsets_of(sizes)
        is_of_category = np.repeat(self.n_cells > 0, sizes)
        number = np.cumsum(fresh) - 1
        cells = np.empty(order.size, np.intp)
        cells[order] = np.flatnonzero(is_of_category)[number] - first[own_cells]

        values = np.zeros(first[-1], np.uint64)
        values[is_of_category] = answers[order][fresh]
        climbed = np.cumsum(self.digits)
        climbed -= np.repeat((climbed - self.digits)[self.starts], self.sizes)
        is_climb = ~is_of_category
        is_climb[first[:-1]] = False  # below all thresholds
        values[is_climb] = climbed[np.repeat(self.n_cells == 0, self.sizes)]
        return Steps(values, first, cells, first_cell)

    def _level_answers(self, first_cell: NDArray[np.int64]) -> Numbers:
        """Return the digits that each cell of a category gives, those of all pieces in a row."""
        asking = np.flatnonzero(np.repeat(self.n_cells, self.sizes))
        piece = np.repeat(np.arange(self.starts.size), self.sizes)[asking]
        n_cells = self.n_cells[piece]
        cell = np.arange(n_cells.sum()) - np.repeat(np.cumsum(n_cells) - n_cells, n_cells)
        answers = np.zeros(first_cell[-1], np.uint64)
        if asking.size:
            asked = np.repeat(self.set_starts[asking], n_cells) + cell
            terms = self.ferns.sets.members[asked] * np.repeat(self.digits[asking], n_cells)  # type: ignore[union-attr]
            np.add.at(answers, np.repeat(first_cell[piece], n_cells) + cell, terms)
        return answers

    def cells(self, fern: NDArray[np.intp], numbers: Numbers) -> NDArray[np.intp]:
        """Return places in the tables, of the shape of numbers; ferns are broadcast."""
        raw = ((numbers * self.factors[fern]) >> self.shifts[fern]).view(np.int64)
        return self.ferns.cell_offsets[fern] + self.ferns.numbers[self.raw_offsets[fern] + raw]

    def entries(self, fern: NDArray[np.intp], numbers: Numbers) -> Array:
        """Return table entries, of shape (*numbers.shape, n_columns)."""
        return self.tables[self.cells(fern, numbers)]

    def of_block(self, block: range) -> tuple:
        """Return what a loop needs to look up entries of some ferns."""
        ferns, edges = slice(block.start, block.stop), slice(block.start, block.stop + 1)
        raw, first = self.raw_offsets[edges], self.ferns.cell_offsets[edges]
        numbers = self.ferns.numbers[raw[0] : raw[-1]].astype(np.int64)
        tables = np.ascontiguousarray(self.tables[first[0] : first[-1]])
        return (
            self.factors[ferns],
            self.shifts[ferns],
            raw - raw[0],
            numbers,
            first - first[0],
            tables,
        )

    def threads(self, n_games: int, block: range):
        """Return who runs a loop on games of some ferns; None where there are few, or no compiler.

        Ferns are drawn alike, so that all blocks take about as long as this one.
        """
        n_games = n_games * self.tables.shape[1] * self.ferns.n_maps // len(block)
        threads = choose_loops(n_games) if n_games >= SMALL else TWINS
        return None if threads is TWINS else threads

    def blocks(self) -> Iterator[range]:
        """Yield ferns to be handled together."""
        for start in range(0, self.ferns.n_maps, _FERNS_AT_ONCE):
            yield range(start, min(start + _FERNS_AT_ONCE, self.ferns.n_maps))

    def stumps(self, block: range) -> slice:
        """Return which of the sorted stumps are those of some ferns."""
        return slice(*self.ferns.offsets[[block.start, block.stop]].tolist())

    def outcomes(self, columns: NDArray[np.float32], block: range) -> NDArray[np.bool_]:
        """Return the outcomes of the sorted stumps of some ferns, (n_stumps, n_rows).

        Columns are of shape (n_features, n_rows), see `columns_of`.
        """
        stumps = self.stumps(block)
        yes = columns[self.features[stumps]] > self.thresholds[stumps, None].astype(np.float32)
        sets = self.ferns.sets
        if sets is not None:
            asking = stumps.start + np.flatnonzero(self.set_starts[stumps] >= 0)
            features = self.features[asking]
            cells = level_cells(columns[features], sets.n_levels[features, None])
            yes[asking - stumps.start] = sets.members[self.set_starts[asking, None] + cells]
        return yes

    def row_steps(self, columns: NDArray[np.float32], block: range) -> NDArray[np.intp]:
        """Return the step of each row in each piece of some ferns, (n_pieces, n_rows)."""
        pieces = slice(*self.bounds[[block.start, block.stop]].tolist())
        first = self.starts[pieces] - self.stumps(block).start
        found = np.add.reduceat(self.outcomes(columns, block), first, axis=0, dtype=np.intp)
        own = np.flatnonzero(self.n_cells[pieces])
        categories = pieces.start + own
        cells = level_cells(columns[self.players[categories]], self.n_cells[categories, None] - 2)
        found[own] = self.steps.cells[self.steps.first_cell[categories, None] + cells]
        return found

    def answers(self, columns: NDArray[np.float32], block: range) -> Answers:
        """Return the different answers that rows give to some ferns; see `outcomes`."""
        stumps = self.stumps(block)
        terms = self.outcomes(columns, block) * self.digits[stumps, None]
        first = self.ferns.offsets[block.start : block.stop] - stumps.start
        numbers = np.add.reduceat(terms, first, axis=0)
        order = np.argsort(numbers, axis=1)
        ordered = np.take_along_axis(numbers, order, axis=1)
        fresh = np.ones(numbers.shape, dtype=bool)
        fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        place = np.empty(numbers.shape, dtype=np.intp)
        np.put_along_axis(place, order, np.cumsum(fresh).reshape(fresh.shape) - 1, axis=1)
        fern = np.nonzero(fresh)[0]
        shares = np.bincount(place.ravel()) / numbers.shape[1]
        return Answers(fern, ordered[fresh], self.padded_masks(block)[fern], shares, place)

    def padded_masks(self, block: range) -> Numbers:
        """Return the masks of the pieces of each fern, zeros after the last."""
        width = np.diff(self.bounds)[block.start : block.stop]
        padded = np.zeros((len(block), width.max()), dtype=np.uint64)
        own = self.masks[self.bounds[block.start] : self.bounds[block.stop]]
        padded[np.arange(width.max()) < width[:, None]] = own
        return padded


@dataclass(frozen=True)
class Steps:
    """Different pieces that rows can have.

    Values are the digits of the steps of all pieces, one piece after the other, and first is the
    first step of each. Cells are the steps of the cells of categories, counted from the first of
    their piece, and first_cell the first cell of each piece; pieces of numbers have none.
    """

    values: Numbers
    first: NDArray[np.int64]
    cells: NDArray[np.intp]
    first_cell: NDArray[np.int64]


def columns_of(X: NDArray) -> NDArray[np.float32]:
    """Return the columns of rows as they are compared with thresholds."""
    return np.ascontiguousarray(as_float32(X).T, dtype=np.float32)


def is_fresh(*keys: NDArray) -> NDArray[np.bool_]:
    """Return where sorted entries begin that differ from those before in some key."""
    fresh = np.ones(keys[0].size, dtype=bool)
    fresh[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return fresh


@dataclass(frozen=True)
class Answers:
    """Different answers of rows to the stumps of some ferns.

    Of each answer there is the fern, counted from the first of the block and in order, the number,
    the masks of its pieces (zeros where a fern has fewer players), and which share of the rows
    give it; of each row its answer to each fern, place, of shape (n_ferns, n_rows).
    """

    fern: NDArray[np.intp]
    numbers: Numbers
    masks: Numbers
    shares: Array
    place: NDArray[np.intp]

    @cached_property
    def pieces(self) -> Numbers:
        """Pieces of the numbers, of shape (n_answers, most_players)."""
        return self.numbers[:, None] & self.masks

    def bounds(self, block: range) -> NDArray[np.intp]:
        """Return the first answer of each fern of the block, and the end."""
        return np.searchsorted(self.fern, np.arange(len(block) + 1))


def same_fern(left, right, n_ferns: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all pairs of an entry on the left and one on the right with the same fern.

    Those on the right are sorted by fern.

    Examples
    --------
    >>> same_fern(np.array([0, 1]), np.array([0, 1, 1]), 2)
    (array([0, 1, 1]), array([0, 1, 2]))
    """
    n_right = np.bincount(right, minlength=n_ferns)
    first = np.cumsum(n_right) - n_right
    repeats = n_right[left]
    position = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return np.repeat(np.arange(left.size), repeats), np.repeat(first[left], repeats) + position


# ---------------------------------------------------------------- mean entries


def partial_dependences(
    tables: FernTables, block: range, background: Answers, fern, masks: Numbers, values: Numbers
) -> Array:
    """Return mean table entries of the background with some digits replaced.

    Each question is a fern, counted from the first of the block, a mask that says which digits are
    replaced, and by what values. The means are of shape (n_questions, n_columns).
    """
    n_looked_up = int(np.bincount(background.fern, minlength=len(block))[fern].sum())
    threads = tables.threads(n_looked_up, block)
    questions = fern, masks, values
    if threads is None:
        return means_numpy(tables, block, background, *questions)
    return means_compiled(tables, block, background, *questions, threads)


def means_compiled(
    tables: FernTables, block: range, background: Answers, fern, masks, values, threads
) -> Array:
    """Return what `partial_dependences` does, by the compiled loop."""
    from mbkl.explain.loops import means

    found = np.zeros((fern.size, tables.tables.shape[1]))
    others = background.bounds(block), background.numbers, background.shares
    work = found.size * background.place.shape[1]
    threads.share(
        fern.size, work, means, fern, masks, values, *tables.of_block(block), *others, found
    )
    return found


def means_numpy(
    tables: FernTables, block: range, background: Answers, fern, masks, values
) -> Array:
    """Return what `partial_dependences` does, all questions together."""
    question, answer = same_fern(fern, background.fern, len(block))
    numbers = (background.numbers[answer] & ~masks[question]) | values[question]
    first, last = tables.ferns.cell_offsets[[block.start, block.stop]]
    cells = tables.cells(block.start + fern[question], numbers) - first
    bounds = np.searchsorted(question, np.arange(fern.size + 1))
    shape = (fern.size, last - first)
    mean = sparse.csr_array((background.shares[answer], cells, bounds), shape=shape)
    return mean @ tables.tables[first:last]


def main_effects(
    tables: FernTables, background: NDArray[np.float32]
) -> tuple[NDArray[np.intp], Array, Array]:
    """Return by how much the mean table entry changes at thresholds, and from level to level.

    The mean is over rows of the background whose value of that feature is moved from just
    below the threshold to just above it: these are the jumps of the partial dependence. Returned
    are the feature, the threshold (those between the numbers of levels for a category, see
    `level_edges`) and the change of each jump; those of a category are of all ferns together.
    """
    steps = tables.steps
    piece = np.repeat(np.arange(tables.starts.size), np.diff(steps.first))
    fern = tables.fern[tables.starts[piece]]
    values = np.zeros((piece.size, tables.tables.shape[1]))
    for block in tables.blocks():
        own = slice(*np.searchsorted(fern, [block.start, block.stop]).tolist())
        questions = fern[own] - block.start, tables.masks[piece[own]], steps.values[own]
        answers = tables.answers(background, block)
        values[own] = partial_dependences(tables, block, answers, *questions)
    is_number = tables.n_cells == 0
    inside = np.flatnonzero(np.diff(piece) == 0)
    inside = inside[is_number[piece[inside]]]
    stumps = np.repeat(is_number, tables.sizes)
    features, thresholds = [tables.features[stumps]], [tables.thresholds[stumps]]
    jumps = [values[inside + 1] - values[inside]]
    # Many ferns ask about a category of many levels: added up level by level before all else.
    for feature in np.unique(tables.players[~is_number]):
        pieces = np.flatnonzero(tables.players == feature)
        n_cells = int(tables.n_cells[pieces[0]])
        cells = steps.first_cell[pieces, None] + np.arange(n_cells)
        step = (steps.first[pieces, None] + steps.cells[cells]).ravel()
        places = np.tile(np.arange(n_cells), pieces.size)
        add = sparse.coo_array((np.ones(step.size), (places, step)), shape=(n_cells, piece.size))
        jumps.append(np.diff(add.tocsr() @ values, axis=0))
        features.append(np.full(n_cells - 1, feature))
        thresholds.append(level_edges(n_cells - 2))
    return np.concatenate(features), np.concatenate(thresholds), np.concatenate(jumps)


# ---------------------------------------------------------------- shares of the features


def fern_shares(tables: FernTables, block: range, rows: Answers, background: Answers) -> Array:
    """Return the mean over the background of what each player gets, for each answer of rows.

    The shares are of shape (n_answers, most_players, n_columns).
    """
    n_others = np.bincount(background.fern, minlength=len(block))
    threads = tables.threads(int(n_others[rows.fern].sum()), block)
    if threads is None:
        return share_numpy(tables, block, rows, background)
    return share_compiled(tables, block, rows, background, threads)


def share_compiled(
    tables: FernTables, block: range, rows: Answers, background: Answers, threads
) -> Array:
    """Return what `fern_shares` does, by the compiled loop."""
    from mbkl.explain.loops import share

    shares = np.zeros((*rows.masks.shape, tables.tables.shape[1]))
    threads.share(
        len(block),
        shares.size * background.place.shape[1],
        share,
        np.diff(tables.bounds)[block.start : block.stop],
        tables.padded_masks(block),
        *tables.of_block(block),
        rows.bounds(block),
        rows.numbers,
        background.bounds(block),
        background.numbers,
        background.shares,
        shares,
    )
    return shares


def share_numpy(tables: FernTables, block: range, rows: Answers, background: Answers) -> Array:
    """Return what `fern_shares` does, all games of as many players together."""
    n_players, n_columns = rows.pieces.shape[1], tables.tables.shape[1]
    shares = np.zeros((rows.fern.size * n_players, n_columns))
    left, right = same_fern(rows.fern, background.fern, len(block))
    differ = rows.pieces[left] != background.pieces[right]
    n_differ = differ.sum(axis=1)
    for size in range(1, int(n_differ.max(initial=0)) + 1):
        game = shapley(size)
        step = max(1, _ENTRIES_AT_ONCE // (len(game.members) * n_columns))
        same_size = np.flatnonzero(n_differ == size)
        for start in range(0, same_size.size, step):
            chosen = same_size[start : start + step]
            players = np.nonzero(differ[chosen])[1].reshape(-1, size)
            here, there = rows.pieces[left[chosen]], background.pieces[right[chosen]]
            moves = np.take_along_axis(here - there, players, axis=1)
            numbers = np.tile(there.sum(axis=1), (len(game.members), 1))
            for move, joined in zip(moves.T, game.members.T, strict=True):
                numbers[joined] += move
            entries = tables.entries(block.start + rows.fern[left[chosen]], numbers)
            gains = game.weights @ entries.reshape(len(entries), -1)
            # Pairs come in the order of the rows' answers: only a few are concerned.
            first, last = left[chosen[0]], left[chosen[-1]] + 1
            place = players.T + (left[chosen] - first) * n_players
            mass = np.broadcast_to(background.shares[right[chosen]], place.shape)
            collect = sparse.csc_array(
                (mass.ravel(), place.ravel(), np.arange(place.size + 1)),
                shape=((last - first) * n_players, place.size),
            )
            shares[first * n_players : last * n_players] += collect @ gains.reshape(-1, n_columns)
    return shares.reshape(rows.fern.size, n_players, n_columns)


@dataclass(frozen=True)
class Coalitions:
    """Coalitions of a game: `weights @ values` is what each player gets of their values.

    Members is of shape (n_coalitions, n_players), weights of shape (n_players, n_coalitions).
    """

    members: NDArray[np.bool_]
    weights: NDArray[np.float64]


@lru_cache(maxsize=128)
def shapley(n_players: int) -> Coalitions:
    """Return how a game is shared among its players.

    Shapley's value is the mean, over all orders in which the players can come, of what
    each adds to those before it. With more than eight players the mean is over the orders
    that go round a circle of them, from every start and in both directions: each player
    then comes at each place equally often. In either case the shares sum to the value of
    all players less that of none, and a player who never adds anything gets nothing.
    """
    return _all(n_players) if n_players <= MOST_EXACT else _circular(n_players)


def _all(n_players: int) -> Coalitions:
    members = (np.arange(2**n_players)[:, None] >> np.arange(n_players) & 1).astype(bool)
    size = members.sum(axis=1)
    # Orders in which a player comes right after the others of its coalition, of all orders.
    share = np.array([1.0 / (n_players * comb(n_players - 1, s)) for s in range(n_players)])
    joined = share[np.maximum(size - 1, 0)]
    missing = share[np.minimum(size, n_players - 1)]
    weights = np.where(members, joined[:, None], -missing[:, None]).T
    return Coalitions(members, weights)


def _circular(n_players: int) -> Coalitions:
    start, length = np.divmod(np.arange(n_players * (n_players - 1)), n_players - 1)
    length = length + 1
    arcs = (np.arange(n_players) - start[:, None]) % n_players < length[:, None]
    members = np.vstack([arcs, np.zeros_like(arcs[:1]), np.ones_like(arcs[:1])])
    weights = np.zeros((n_players, len(members)))
    weights[:, -2:] = -2.0, 2.0
    number = np.arange(len(arcs))
    for last_to_join in (start, start + length - 1):
        np.add.at(weights, (last_to_join % n_players, number), 1.0)
    for next_to_join in (start - 1, start + length):
        np.add.at(weights, (next_to_join % n_players, number), -1.0)
    return Coalitions(members, weights / (2 * n_players))


def warm_explanations(loops) -> None:
    """Compile the loops ahead of time, by a tiny game."""
    X = np.arange(8.0).reshape(4, 2)
    ferns, codes = Ferns().fit_codes(ArrayRows(X, loops), np.ones(len(X)), 3, 0)
    games, block = FernTables(ferns, np.zeros((codes.n_cells, 1))), range(ferns.n_maps)
    answers = games.answers(columns_of(X), block)
    share_compiled(games, block, answers, answers, loops)
    nothing = np.zeros(1, np.uint64)
    means_compiled(games, block, answers, np.zeros(1, np.intp), nothing, nothing, loops)

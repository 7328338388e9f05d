"""Compiled loops of growing ferns, over gradients and curvatures as small integers.

A residual packs both in 32 bits, and a sum of residuals both in 64: the gradient above, the
curvature below. The rules are those of `loops`; the twins in `twins` give the same bits. Loops that
no threads share have the arguments of their twins, and return what these return.
"""

from __future__ import annotations

import numba
import numpy as np

from mbkl.engine.loops import jit
from mbkl.engine.twins import (
    FACTORS,
    LARGEST_EXPONENT,
    LOG_OF_TWO,
    MOST_PACKED,
    N_POWERS,
    REST_OF_LOG,
    ROWS_PACKED,
    TWO_BY_E,
)

# Rows whose residuals are computed at a time: a few KiB for each class.
_ROWS_OF_A_BLOCK = 256
# Rows whose cells stay in the first-level cache while all stumps are asked.
_ROWS_OF_CELLS = 8192


@jit
def fern_cells(values, features, cuts, members, leading, cells, start, stop):
    """OUT cells[start:stop]: a leading digit, then the answers of each row to the stumps."""
    for first in range(start, stop, _ROWS_OF_CELLS):
        block = slice(first, min(first + _ROWS_OF_CELLS, stop))
        out = cells[block]
        out[:] = leading[block]
        for level in range(features.shape[0]):
            codes = values[features[level], block]
            if cuts[level] < 0:
                own = members[level]
                for row in range(out.shape[0]):
                    out[row] = 2 * out[row] + own[codes[row]]
            else:
                cut = np.uint8(cuts[level])
                for row in range(out.shape[0]):
                    out[row] = 2 * out[row] + (codes[row] > cut)


@numba.njit(inline="always", error_model="numpy")
def _packed(gradient, curvature, units):
    """Return both, rounded to units; those too large are cut off."""
    largest = np.float32(MOST_PACKED)
    g = min(max(np.rint(gradient * units[0]), -largest), largest)
    return (np.int32(g) << 16) + np.int32(min(np.rint(curvature * units[1]), largest))


@jit
def pack_residuals(gradient, curvature, weights, units, packed):
    """OUT packed: gradient and curvature times weights; return the largest of both."""
    largest_g, largest_h = np.zeros((2, _ROWS_OF_A_BLOCK), dtype=np.float32)
    for first in range(0, gradient.shape[0], _ROWS_OF_A_BLOCK):
        block = slice(first, first + _ROWS_OF_A_BLOCK)
        own_weights = weights[block]
        for column in range(gradient.shape[1]):
            own_g, own_h = gradient[block, column], curvature[block, column]
            out = packed[block, column]
            for row in range(own_weights.shape[0]):
                g, h = own_g[row] * own_weights[row], own_h[row] * own_weights[row]
                largest_g[row] = max(largest_g[row], abs(g))
                largest_h[row] = max(largest_h[row], h)
                out[row] = _packed(g, h, units)
    return np.float64(largest_g.max()), np.float64(largest_h.max())


@numba.njit(inline="always", error_model="numpy")
def _exponential(value):
    """Return the exponential function; see `twins.exponential`."""
    value = min(max(value, -LARGEST_EXPONENT), LARGEST_EXPONENT)
    power = np.rint(value * TWO_BY_E)
    rest = (value - power * LOG_OF_TWO) - power * REST_OF_LOG
    total = ((FACTORS[0] * rest + FACTORS[1]) * rest + FACTORS[2]) * rest + FACTORS[3]
    total = (total * rest + FACTORS[4]) * rest + FACTORS[5]
    total = total * (rest * rest) + rest + np.float32(1.0)
    return total * np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)


@jit
def log_loss_residuals(scores, y, weights, units, packed):
    """OUT packed: residuals of the log loss; return the largest of both.

    A block of rows is computed class by class, so that the compiler takes several rows at once.
    """
    n_columns, one = scores.shape[1], np.float32(1.0)
    lines = np.empty((n_columns, _ROWS_OF_A_BLOCK), dtype=np.float32)
    top, total, largest_g, largest_h = np.zeros((4, _ROWS_OF_A_BLOCK), dtype=np.float32)
    integers = np.empty(_ROWS_OF_A_BLOCK, dtype=np.int32)
    for first in range(0, scores.shape[0], _ROWS_OF_A_BLOCK):
        block = slice(first, first + _ROWS_OF_A_BLOCK)
        own_y, own_weights = y[block], weights[block]
        n_rows = own_weights.shape[0]
        for column in range(n_columns):
            line, own_scores = lines[column], scores[block, column]
            for row in range(n_rows):
                line[row] = own_scores[row]
        if n_columns == 1:
            line = lines[0]
            for row in range(n_rows):
                total[row] = one + _exponential(-line[row])
            line[:] = one
        else:
            top[:] = lines[0]
            for column in range(1, n_columns):
                line = lines[column]
                for row in range(n_rows):
                    top[row] = max(top[row], line[row])
            total[:] = np.float32(0.0)
            for column in range(n_columns):
                line = lines[column]
                for row in range(n_rows):
                    line[row] = _exponential(line[row] - top[row])
                for row in range(n_rows):
                    total[row] += line[row]
        for column in range(n_columns):
            line, out = lines[column], packed[block, column]
            own = 1 if n_columns == 1 else column
            for row in range(n_rows):
                chance = line[row] / total[row]
                g = (chance - np.float32(own_y[row] == own)) * own_weights[row]
                h = chance * (one - chance) * own_weights[row]
                largest_g[row] = max(largest_g[row], abs(g))
                largest_h[row] = max(largest_h[row], h)
                integers[row] = _packed(g, h, units)
            for row in range(n_rows):
                out[row] = integers[row]
    return np.float64(largest_g.max()), np.float64(largest_h.max())


@jit
def histogram_packed(cells, packed, sums, start, stop):
    """OUT sums (cells, columns, 2) += gradient and curvature of rows start to stop."""
    n_columns = packed.shape[1]
    both = np.zeros((sums.shape[0], n_columns), dtype=np.int64)
    for first in range(start, stop, ROWS_PACKED):
        block = slice(first, min(first + ROWS_PACKED, stop))
        own_cells, residuals = cells[block], packed[block]
        if n_columns == 1:
            only, own = both[:, 0], residuals[:, 0]
            for row in range(own.shape[0]):
                value = np.int64(own[row])
                only[own_cells[row]] += ((value >> 16) << 32) + (value & 0xFFFF)
        else:
            for row in range(own_cells.shape[0]):
                for column in range(n_columns):
                    value = np.int64(residuals[row, column])
                    both[own_cells[row], column] += ((value >> 16) << 32) + (value & 0xFFFF)
        for cell in range(sums.shape[0]):
            for column in range(n_columns):
                sums[cell, column, 0] += both[cell, column] >> 32
                sums[cell, column, 1] += both[cell, column] & 0xFFFFFFFF
        both[:] = 0


@jit
def sizes_of_residuals(packed, rows, columns):
    """Return the sizes of the residuals of some rows in some columns; at least one."""
    sizes = np.empty(rows.shape[0], dtype=np.int64)
    for place in range(rows.shape[0]):
        square = np.int64(0)
        for column in columns:
            value = np.int64(packed[rows[place], column])
            gradient, curvature = value >> 16, value & 0xFFFF
            square += gradient * gradient + curvature * curvature
        sizes[place] = np.int64(np.sqrt(np.float64(square))) + 1
    return sizes


@jit
def draw_rows(keys, rows, chances, salt):
    """Return some of the rows and their chances, by a hash of their keys; see `keys.draw`."""
    drawn, shares = np.empty_like(rows), np.empty_like(chances)
    count = 0
    for place in range(rows.shape[0]):
        mixed = keys[rows[place]] + salt
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)
        drawn[count], shares[count] = rows[place], min(chances[place], 1.0)
        count += np.float64(mixed) < chances[place] * 2.0**32
    return drawn[:count].copy(), shares[:count].copy()


@jit
def weigh_residuals(packed, rows, columns, shares, unit):
    """Return the residuals of some rows divided by their shares and a unit, in 64 bits."""
    residuals = np.empty((rows.shape[0], columns.shape[0]), dtype=np.int64)
    for place in range(rows.shape[0]):
        for column in range(columns.shape[0]):
            value = np.int64(packed[rows[place], columns[column]])
            gradient = np.float64(value >> 16) / shares[place]
            curvature = np.float64(value & 0xFFFF) / shares[place]
            above = np.int64(np.rint(gradient / unit)) << 32
            residuals[place, column] = above + np.int64(np.rint(curvature / unit))
    return residuals


@jit
def newton_steps(sums, ridges, used):
    """Return steps, gains and merits, see `Twins.newton_steps`.

    Cells are those of all levels: all rows together are cell 1, and the two that cell i was divided
    into are 2 i and 2 i + 1; those of the deepest level come last. Ridges are a tuple: their number
    is known to the compiler.
    """
    n_cells, n_columns, n_ridges = sums.shape[0] // 2, sums.shape[1], len(ridges)
    deepest = 0
    while n_cells >> (deepest + 1):
        deepest += 1
    tree = np.empty((2 * n_cells, n_columns, 4))
    tree[n_cells:, :, :2] = sums[:n_cells]
    tree[n_cells:, :, 2:] = sums[n_cells:]
    for cell in range(n_cells - 1, 0, -1):
        for column in range(n_columns):
            for kind in range(4):
                both = tree[2 * cell, column, kind] + tree[2 * cell + 1, column, kind]
                tree[cell, column, kind] = both
    steps = np.empty((n_cells, n_columns))
    gains, merits = np.zeros(deepest + 1), np.zeros((n_ridges, 2))
    # Steps of the cells that the current one is in, by level; above all is a step of zero.
    path = np.zeros((deepest + 2, n_columns, n_ridges))
    for last in range(n_cells):
        # The levels on which this cell is not in the same one as the cell before it.
        first = deepest if last else 0
        while first and not (last >> (deepest - first)) & 1:
            first -= 1
        for level in range(first, deepest + 1):
            cell = (n_cells + last) >> (deepest - level)
            for column in range(n_columns):
                gradient, curvature = tree[cell, column, 0], tree[cell, column, 1]
                for place in range(n_ridges):
                    step = path[level, column, place]
                    change = -(gradient + curvature * step) / (curvature + ridges[place])
                    path[level + 1, column, place] = step + change
                    if place == used:
                        gained = tree[cell, column, 2] + tree[cell, column, 3] * step
                        gains[level] -= change * gained
        for column in range(n_columns):
            gradient, curvature = tree[n_cells + last, column, 2], tree[n_cells + last, column, 3]
            for place in range(n_ridges):
                step = path[deepest + 1, column, place]
                merits[place, 0] -= step * gradient
                merits[place, 1] += step**2 * curvature
            steps[last, column] = path[deepest + 1, column, used]
    return steps, gains, merits


@jit
def add_table(cells, table, scores):
    """OUT scores += the table entry of each row's cell."""
    n_columns = table.shape[1]
    if n_columns == 1:
        entries, own = table[:, 0], scores[:, 0]
        for row in range(own.shape[0]):
            own[row] += entries[cells[row]]
        return
    for row in range(cells.shape[0]):
        entry = table[cells[row]]
        score = scores[row]
        for column in range(n_columns):
            score[column] += entry[column]


@jit
def choose_stumps(
    codes, category, n_codes, asked, shifts, moves, told_apart, residuals, n_columns,
    ridge, lanes, features, cuts, n_above, ranks, gains,
):  # fmt: skip
    """OUT features, cuts, n_above, ranks, gains: the stump of each level.

    See `Twins.choose_stumps`; `category` is the number of each category among these, -1 elsewhere,
    and `lanes` are those of `_best_cuts`.
    """
    n_rows = residuals.shape[0]
    has_categories = told_apart.shape[1] > 0
    placed = codes.copy() if has_categories else codes
    places = np.empty((codes.shape[0], 256), dtype=np.uint8)
    for code in range(256):
        places[:, code] = code
    found = np.empty(asked.shape[1], dtype=np.int64)
    cells = np.zeros(n_rows, dtype=np.uint16)
    for level in range(asked.shape[0]):
        order, own_residuals, starts = _rows_by_cell(cells, residuals, 1 << level)
        if has_categories:
            beyond = _beyond_cells(own_residuals, starts, n_columns, ridge)
            for feature in asked[level]:
                if category[feature] >= 0:
                    told = told_apart[level, category[feature]]
                    own, target, place = codes[feature], placed[feature], places[feature]
                    _put_in_order(own, order, beyond, told, n_codes[feature], ridge, place)
                    for row in range(n_rows):
                        target[row] = place[own[row]]
        if len(lanes) == 1:
            _best_cuts_one(
                placed, asked[level], order, own_residuals, starts, n_codes, shifts[level],
                moves[level], ridge, gains[level], found,
            )  # fmt: skip
        else:
            _best_cuts(
                placed, asked[level], order, own_residuals, starts, n_codes, shifts[level],
                moves[level], ridge, lanes, gains[level], found,
            )  # fmt: skip
        best = np.argmax(gains[level])
        feature = asked[level, best]
        cut = ((found[best] + 1) << shifts[level, best]) - moves[level, best] - 1
        cut = min(cut, n_codes[feature] - 2)
        features[level], cuts[level], ranks[level] = feature, cut, places[feature]
        own, above = codes[feature], places[feature] > cut
        for row in range(n_rows):
            is_above = above[own[row]]
            n_above[level] += is_above
            cells[row] = 2 * cells[row] + is_above


@jit
def _rows_by_cell(cells, residuals, n_cells):
    """Return the rows cell by cell, their residuals, and where each cell begins."""
    starts = np.zeros(n_cells + 1, dtype=np.int64)
    for cell in cells:
        starts[cell + 1] += 1
    for cell in range(n_cells):
        starts[cell + 1] += starts[cell]
    places = starts[:-1].copy()
    order = np.empty(cells.shape[0], dtype=np.int32)
    sorted_residuals = np.empty((cells.shape[0], residuals.shape[1]), dtype=np.int64)
    for row in range(cells.shape[0]):
        place = places[cells[row]]
        places[cells[row]] += 1
        order[place] = row
        for column in range(residuals.shape[1]):
            sorted_residuals[place, column] = residuals[row, column]
    return order, sorted_residuals, starts


@jit
def _beyond_cells(residuals, starts, n_columns, ridge):
    """Return gradients less what the step of their cell explains, and curvatures, side by side."""
    beyond = np.empty((residuals.shape[0], 2 * n_columns), dtype=np.int64)
    for cell in range(starts.shape[0] - 1):
        first, last = starts[cell], starts[cell + 1]
        for column in range(n_columns):
            total = np.int64(0)
            for row in range(first, last):
                total += residuals[row, column]
            step = np.float64(total >> 32) / (np.float64(total & 0xFFFFFFFF) + ridge)
            for row in range(first, last):
                value = residuals[row, column]
                curvature = value & 0xFFFFFFFF
                beyond[row, column] = (value >> 32) - np.int64(np.rint(curvature * step))
                beyond[row, n_columns + column] = curvature
    return beyond


@jit
def _put_in_order(codes, order, beyond, told_apart, n_codes, ridge, ranks):
    """OUT ranks: the places of the codes of a category in order; see `Twins.put_in_order`."""
    n_columns = beyond.shape[1] // 2
    sums = np.zeros((n_codes, 2 * n_columns), dtype=np.int64)
    for row in range(order.shape[0]):
        entry = sums[codes[order[row]]]
        for column in range(2 * n_columns):
            entry[column] += beyond[row, column]
    steps = np.zeros((n_codes, n_columns))
    for code in range(n_codes):
        if told_apart[code]:
            for column in range(n_columns):
                gradient, curvature = sums[code, column], sums[code, n_columns + column]
                steps[code, column] = np.float64(gradient) / (np.float64(curvature) + ridge)
    places = steps[:, 0].copy() if n_columns == 1 else _along(steps, sums[:, n_columns:])
    for place, code in enumerate(np.argsort(places, kind="mergesort")):
        ranks[code] = place


@jit
def _along(steps, mass):
    """Return the steps of levels along their leading direction; see `Twins.along`."""
    n_levels, n_columns = steps.shape
    spread = np.zeros((n_columns, n_columns))
    for level in range(n_levels):
        for left in range(n_columns):
            weighted = steps[level, left] * mass[level, left]
            for right in range(n_columns):
                spread[left, right] += weighted * steps[level, right]
    direction, turned, found = np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_levels)
    largest = 0
    for column in range(n_columns):
        if spread[column, column] > spread[largest, largest]:
            largest = column
    direction[largest] = 1.0
    for _ in range(N_POWERS):
        square = 0.0
        for left in range(n_columns):
            turned[left] = 0.0
            for right in range(n_columns):
                turned[left] += spread[left, right] * direction[right]
            square += turned[left] * turned[left]
        length = np.sqrt(square)
        if not length > 0:
            return found
        direction[:] = turned / length
    for level in range(n_levels):
        for column in range(n_columns):
            found[level] += steps[level, column] * direction[column]
    return found


@jit
def _best_cuts(
    codes, asked, order, residuals, starts, n_codes, shifts, moves, ridge, lanes, gains, cuts
):
    """OUT gains, cuts: what the best cut of each feature would collect; see `Twins.best_cuts`.

    Rows come cell by cell, so that the histogram of a cell stays in the first-level cache and
    none is kept. Codes are moved and shifted to fewer where cells have few rows. Lanes are a tuple
    of as many entries as there are columns: its length is known to the compiler.
    """
    n_columns = len(lanes)
    sums = np.zeros((256, n_columns), dtype=np.int64)
    total = np.zeros(n_columns, dtype=np.int64)
    collected = np.zeros((256, n_columns))
    for place in range(asked.shape[0]):
        column_codes = codes[asked[place]]
        shift, move = shifts[place], moves[place]
        length = ((n_codes[asked[place]] - 1 + move) >> shift) + 1
        collected[:length] = 0.0
        for cell in range(starts.shape[0] - 1):
            first, last = starts[cell], starts[cell + 1]
            if last - first < 2:
                continue
            sums[:length] = 0
            for row in range(first, last):
                entry = sums[(column_codes[order[row]] + move) >> shift]
                residual = residuals[row]
                for column in range(n_columns):
                    entry[column] += residual[column]
            total[:] = 0
            for code in range(length):
                for column in range(n_columns):
                    total[column] += sums[code, column]
                    sums[code, column] = total[column]
            for code in range(length):
                for column in range(n_columns):
                    left = sums[code, column]
                    right = total[column] - left
                    left_g, left_h = np.float64(left >> 32), np.float64(left & 0xFFFFFFFF)
                    right_g, right_h = np.float64(right >> 32), np.float64(right & 0xFFFFFFFF)
                    collected[code, column] += left_g * left_g / (left_h + ridge)
                    collected[code, column] += right_g * right_g / (right_h + ridge)
        gains[place] = -1.0
        for code in range(length):
            gain = 0.0
            for column in range(n_columns):
                gain += collected[code, column]
            if gain > gains[place]:
                gains[place], cuts[place] = gain, code


@jit
def _best_cuts_one(
    codes, asked, order, residuals, starts, n_codes, shifts, moves, ridge, gains, cuts
):
    """OUT gains, cuts, as `_best_cuts`, of one column.

    Four features at once: neighbouring rows often share a code where there are few, and an addition
    waits for the one before it to the same sum; those of other features need not.
    """
    residual = residuals[:, 0]
    sums = np.zeros((4, 256), dtype=np.int64)
    sums_0, sums_1, sums_2, sums_3 = sums[0], sums[1], sums[2], sums[3]
    collected = np.zeros((4, 256))
    lengths = np.zeros(4, dtype=np.int64)
    for begin in range(0, asked.shape[0], 4):
        count = min(4, asked.shape[0] - begin)
        # The last one again, where fewer are left.
        place_1, place_2 = begin + min(1, count - 1), begin + min(2, count - 1)
        place_3 = begin + count - 1
        codes_0, codes_1 = codes[asked[begin]], codes[asked[place_1]]
        codes_2, codes_3 = codes[asked[place_2]], codes[asked[place_3]]
        shift_0, shift_1 = shifts[begin], shifts[place_1]
        shift_2, shift_3 = shifts[place_2], shifts[place_3]
        move_0, move_1, move_2, move_3 = (
            moves[begin],
            moves[place_1],
            moves[place_2],
            moves[place_3],
        )
        for own in range(count):
            place = begin + own
            lengths[own] = ((n_codes[asked[place]] - 1 + moves[place]) >> shifts[place]) + 1
        longest = lengths[:count].max()
        collected[:, :longest] = 0.0
        for cell in range(starts.shape[0] - 1):
            first, last = starts[cell], starts[cell + 1]
            if last - first < 2:
                continue
            sums[:, :longest] = 0
            total = np.int64(0)
            for row in range(first, last):
                place, value = order[row], residual[row]
                total += value
                sums_0[(codes_0[place] + move_0) >> shift_0] += value
                sums_1[(codes_1[place] + move_1) >> shift_1] += value
                sums_2[(codes_2[place] + move_2) >> shift_2] += value
                sums_3[(codes_3[place] + move_3) >> shift_3] += value
            for own in range(count):
                own_sums, gain = sums[own], collected[own]
                left = np.int64(0)
                for code in range(lengths[own]):
                    left += own_sums[code]
                    own_sums[code] = left
                for code in range(lengths[own]):
                    left = own_sums[code]
                    right = total - left
                    left_g, left_h = np.float64(left >> 32), np.float64(left & 0xFFFFFFFF)
                    right_g, right_h = np.float64(right >> 32), np.float64(right & 0xFFFFFFFF)
                    gain[code] += left_g * left_g / (left_h + ridge)
                    gain[code] += right_g * right_g / (right_h + ridge)
        for own in range(count):
            place = begin + own
            gains[place] = -1.0
            for code in range(lengths[own]):
                if collected[own, code] > gains[place]:
                    gains[place], cuts[place] = collected[own, code], code

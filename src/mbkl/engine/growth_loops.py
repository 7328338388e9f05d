"""Compiled loops of growing ferns, over gradients and curvatures as small integers.

A residual packs both in 32 bits, a sum of residuals both in 64 bits: the gradient in the upper
half, the curvature in the lower. The rules are those of `loops`; the twins in `twins` give the same
bits. Loops that run in one thread have the arguments and results of their twins.
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
# Rows whose cells stay in the first-level cache during all stumps of a fern.
_ROWS_OF_CELLS = 8192


@jit
def fern_cells(values, features, cuts, members, leading, cells, start, stop):
    """OUT cells[start:stop]: a leading bit, then the answers of each row to the stumps."""
    for first in range(start, stop, _ROWS_OF_CELLS):
        block = slice(first, min(first + _ROWS_OF_CELLS, stop))
        out = cells[block]
        out[:] = leading[block]
        for level in range(features.shape[0]):
            codes = values[features[level], block]
            if cuts[level] < 0:
                is_member = members[level]
                for row in range(out.shape[0]):
                    out[row] = 2 * out[row] + is_member[codes[row]]
            else:
                cut = np.uint8(cuts[level])
                for row in range(out.shape[0]):
                    out[row] = 2 * out[row] + (codes[row] > cut)


@numba.njit(inline="always", error_model="numpy")
def _packed(gradient, curvature, units):
    """Pack a gradient and a curvature, rounded to units and clipped, in 32 bits."""
    largest = np.float32(MOST_PACKED)
    g = min(max(np.rint(gradient * units[0]), -largest), largest)
    return (np.int32(g) << 16) + np.int32(min(np.rint(curvature * units[1]), largest))


@jit
def pack_residuals(gradient, curvature, weights, units, packed):
    """OUT packed: gradients and curvatures times weights; return the largest of each."""
    largest_g, largest_h = np.zeros((2, _ROWS_OF_A_BLOCK), dtype=np.float32)
    for first in range(0, gradient.shape[0], _ROWS_OF_A_BLOCK):
        block = slice(first, first + _ROWS_OF_A_BLOCK)
        weight = weights[block]
        for column in range(gradient.shape[1]):
            block_g, block_h = gradient[block, column], curvature[block, column]
            out = packed[block, column]
            for row in range(weight.shape[0]):
                g, h = block_g[row] * weight[row], block_h[row] * weight[row]
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
    """OUT packed: residuals of the log loss; return the largest gradient and curvature.

    Blocks of rows are computed class by class, so that the compiler can vectorise over rows.
    """
    n_columns, one = scores.shape[1], np.float32(1.0)
    lines = np.empty((n_columns, _ROWS_OF_A_BLOCK), dtype=np.float32)
    top, total, largest_g, largest_h = np.zeros((4, _ROWS_OF_A_BLOCK), dtype=np.float32)
    integers = np.empty(_ROWS_OF_A_BLOCK, dtype=np.int32)
    for first in range(0, scores.shape[0], _ROWS_OF_A_BLOCK):
        block = slice(first, first + _ROWS_OF_A_BLOCK)
        label, weight = y[block], weights[block]
        n_rows = weight.shape[0]
        for column in range(n_columns):
            line, score = lines[column], scores[block, column]
            for row in range(n_rows):
                line[row] = score[row]
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
            class_ = 1 if n_columns == 1 else column
            for row in range(n_rows):
                chance = line[row] / total[row]
                g = (chance - np.float32(label[row] == class_)) * weight[row]
                h = chance * (one - chance) * weight[row]
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
        cell_of, residuals = cells[block], packed[block]
        if n_columns == 1:
            column_sums, column_residuals = both[:, 0], residuals[:, 0]
            for row in range(column_residuals.shape[0]):
                value = np.int64(column_residuals[row])
                column_sums[cell_of[row]] += ((value >> 16) << 32) + (value & 0xFFFF)
        else:
            for row in range(cell_of.shape[0]):
                for column in range(n_columns):
                    value = np.int64(residuals[row, column])
                    both[cell_of[row], column] += ((value >> 16) << 32) + (value & 0xFFFF)
        for cell in range(sums.shape[0]):
            for column in range(n_columns):
                sums[cell, column, 0] += both[cell, column] >> 32
                sums[cell, column, 1] += both[cell, column] & 0xFFFFFFFF
        both[:] = 0


@jit
def sizes_of_residuals(packed, rows, columns):
    """Return the norms of the residuals of some rows in some columns, truncated, plus one."""
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
    """Draw rows with some chances, by a hash of their keys; return the rows and their chances."""
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
    """Return the residuals of some rows divided by their chances and a unit, in 64 bits."""
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

    The cells of all levels form a binary heap: cell 1 holds all rows, cell i is divided into cells
    2 i and 2 i + 1, and the deepest level comes last. Ridges are a tuple, so that the compiler
    knows their number.
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
    # By level, steps of the cells that contain the current one; the root starts from zero.
    path = np.zeros((deepest + 2, n_columns, n_ridges))
    for last in range(n_cells):
        # First level on which this cell and the one before it are in different cells.
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
        entries, column_scores = table[:, 0], scores[:, 0]
        for row in range(column_scores.shape[0]):
            column_scores[row] += entries[cells[row]]
        return
    for row in range(cells.shape[0]):
        entry = table[cells[row]]
        score = scores[row]
        for column in range(n_columns):
            score[column] += entry[column]


@jit
def choose_stumps(
    codes, category, n_codes, asked, shifts, moves, is_ranked, residuals, n_columns,
    ridge, lanes, features, cuts, n_above, ranks, gains,
):  # fmt: skip
    """OUT features, cuts, n_above, ranks, gains: the stump of each level.

    See `Twins.choose_stumps`; `category` numbers the categories among the features, -1 for others,
    and `lanes` are those of `_best_cuts`.
    """
    n_rows = residuals.shape[0]
    has_categories = is_ranked.shape[1] > 0
    ranked = codes.copy() if has_categories else codes
    rank_of = np.empty((codes.shape[0], 256), dtype=np.uint8)
    for code in range(256):
        rank_of[:, code] = code
    best_bins = np.empty(asked.shape[1], dtype=np.int64)
    cells = np.zeros(n_rows, dtype=np.uint16)
    for level in range(asked.shape[0]):
        order, by_cell, starts = _rows_by_cell(cells, residuals, 1 << level)
        if has_categories:
            beyond = _beyond_cells(by_cell, starts, n_columns, ridge)
            for feature in asked[level]:
                if category[feature] >= 0:
                    codes_ranked = is_ranked[level, category[feature]]
                    source, target, rank = codes[feature], ranked[feature], rank_of[feature]
                    _put_in_order(
                        source, order, beyond, codes_ranked, n_codes[feature], ridge, rank
                    )
                    for row in range(n_rows):
                        target[row] = rank[source[row]]
        if len(lanes) == 1:
            _best_cuts_one(
                ranked, asked[level], order, by_cell, starts, n_codes, shifts[level],
                moves[level], ridge, gains[level], best_bins,
            )  # fmt: skip
        else:
            _best_cuts(
                ranked, asked[level], order, by_cell, starts, n_codes, shifts[level],
                moves[level], ridge, lanes, gains[level], best_bins,
            )  # fmt: skip
        best = np.argmax(gains[level])
        feature = asked[level, best]
        cut = ((best_bins[best] + 1) << shifts[level, best]) - moves[level, best] - 1
        cut = min(cut, n_codes[feature] - 2)
        features[level], cuts[level], ranks[level] = feature, cut, rank_of[feature]
        source, above = codes[feature], rank_of[feature] > cut
        for row in range(n_rows):
            is_above = above[source[row]]
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
    """Return gradients after the Newton step of their cell, and curvatures, side by side."""
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
def _put_in_order(codes, order, beyond, is_ranked, n_codes, ridge, ranks):
    """OUT ranks: the rank of each code of a category; see `Twins.put_in_order`."""
    n_columns = beyond.shape[1] // 2
    sums = np.zeros((n_codes, 2 * n_columns), dtype=np.int64)
    for row in range(order.shape[0]):
        entry = sums[codes[order[row]]]
        for column in range(2 * n_columns):
            entry[column] += beyond[row, column]
    steps = np.zeros((n_codes, n_columns))
    for code in range(n_codes):
        if is_ranked[code]:
            for column in range(n_columns):
                gradient, curvature = sums[code, column], sums[code, n_columns + column]
                steps[code, column] = np.float64(gradient) / (np.float64(curvature) + ridge)
    positions = steps[:, 0].copy() if n_columns == 1 else _along(steps, sums[:, n_columns:])
    for rank, code in enumerate(np.argsort(positions, kind="mergesort")):
        ranks[code] = rank


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
    direction, product, along = np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_levels)
    largest = 0
    for column in range(n_columns):
        if spread[column, column] > spread[largest, largest]:
            largest = column
    direction[largest] = 1.0
    for _ in range(N_POWERS):
        square = 0.0
        for left in range(n_columns):
            product[left] = 0.0
            for right in range(n_columns):
                product[left] += spread[left, right] * direction[right]
            square += product[left] * product[left]
        length = np.sqrt(square)
        if not length > 0:
            return along
        direction[:] = product / length
    for level in range(n_levels):
        for column in range(n_columns):
            along[level] += steps[level, column] * direction[column]
    return along


@jit
def _best_cuts(
    codes, asked, order, residuals, starts, n_codes, shifts, moves, ridge, lanes, gains, cuts
):
    """OUT gains, cuts: the best cut of each feature and its gain; see `Twins.best_cuts`.

    Rows come cell by cell, so that one histogram, in the first-level cache, serves all cells.
    Lanes are a tuple with an entry for each column, so that the compiler knows their number.
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

    Four features at once: where a feature has few codes, neighbouring rows often share one, and
    an addition waits for the one before it to the same sum. Sums of other features do not wait.
    """
    residual = residuals[:, 0]
    sums = np.zeros((4, 256), dtype=np.int64)
    sums_0, sums_1, sums_2, sums_3 = sums[0], sums[1], sums[2], sums[3]
    collected = np.zeros((4, 256))
    lengths = np.zeros(4, dtype=np.int64)
    for begin in range(0, asked.shape[0], 4):
        count = min(4, asked.shape[0] - begin)
        # Fewer than four features are filled up with the last one.
        place_1, place_2 = begin + min(1, count - 1), begin + min(2, count - 1)
        place_3 = begin + count - 1
        codes_0, codes_1 = codes[asked[begin]], codes[asked[place_1]]
        codes_2, codes_3 = codes[asked[place_2]], codes[asked[place_3]]
        shift_0, shift_1 = shifts[begin], shifts[place_1]
        shift_2, shift_3 = shifts[place_2], shifts[place_3]
        move_0, move_1 = moves[begin], moves[place_1]
        move_2, move_3 = moves[place_2], moves[place_3]
        for lane in range(count):
            place = begin + lane
            lengths[lane] = ((n_codes[asked[place]] - 1 + moves[place]) >> shifts[place]) + 1
        longest = lengths[:count].max()
        collected[:, :longest] = 0.0
        for cell in range(starts.shape[0] - 1):
            first, last = starts[cell], starts[cell + 1]
            if last - first < 2:
                continue
            sums[:, :longest] = 0
            total = np.int64(0)
            for row in range(first, last):
                number, value = order[row], residual[row]
                total += value
                sums_0[(codes_0[number] + move_0) >> shift_0] += value
                sums_1[(codes_1[number] + move_1) >> shift_1] += value
                sums_2[(codes_2[number] + move_2) >> shift_2] += value
                sums_3[(codes_3[number] + move_3) >> shift_3] += value
            for lane in range(count):
                running, gain = sums[lane], collected[lane]
                left = np.int64(0)
                for code in range(lengths[lane]):
                    left += running[code]
                    running[code] = left
                for code in range(lengths[lane]):
                    left = running[code]
                    right = total - left
                    left_g, left_h = np.float64(left >> 32), np.float64(left & 0xFFFFFFFF)
                    right_g, right_h = np.float64(right >> 32), np.float64(right & 0xFFFFFFFF)
                    gain[code] += left_g * left_g / (left_h + ridge)
                    gain[code] += right_g * right_g / (right_h + ridge)
        for lane in range(count):
            place = begin + lane
            gains[place] = -1.0
            for code in range(lengths[lane]):
                if collected[lane, code] > gains[place]:
                    gains[place], cuts[place] = collected[lane, code], code

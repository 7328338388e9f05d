"""Compiled loops of the two hot operations and of binning, by Numba.

Flat functions without Python objects: each handles one block of rows or groups
and releases the interpreter lock, so that a plain thread pool runs blocks side
by side. No two blocks write the same memory and floating-point sums run in
group order, so the result does not depend on the number of threads; for the
same reason there is no fastmath. The twins in `twins` give the same bits.

Arguments marked OUT are written, all others are only read.
"""

from __future__ import annotations

from functools import partial

import numba
import numpy as np

# Scores of one block of rows (16 KiB) stay in the first-level cache while all
# groups pass over them.
_BLOCK = 2048
# Rows binned at a time.
_ROWS_BINNED = 256
# Rows of the left and of the right side that are compared at a time: 32 KiB of sums.
_ROWS_COMPARED, _OTHERS_COMPARED = 8, 512
# Rows of the left side when agreements are counted, and the largest count of a byte.
_ROWS_COUNTED, _MOST_COUNTED = 16, 255


def jit(function):
    """Compile a loop on its first use, and cache it on disk if a folder can be written.

    Division by zero gives infinity, as in NumPy: a check would prevent vectorisation.
    """
    compiled = partial(numba.njit, nogil=True, error_model="numpy")
    try:
        return compiled(cache=True)(function)
    except RuntimeError:  # there is no writable folder for the cache
        return compiled()(function)


@jit
def gather_one(values, offsets, tables, scores, start, stop):
    """OUT scores[start:stop]: sum over groups of each row's table entry, one column."""
    column = tables[:, 0]
    n_groups = values.shape[0]
    for first in range(start, stop, _BLOCK):
        last = min(first + _BLOCK, stop)
        block = scores[first:last, 0]
        block[:] = 0.0
        # Four groups at a time save three of four accesses to the scores; the
        # terms are added in the same order.
        whole = n_groups - n_groups % 4
        for group in range(0, whole, 4):
            table_0 = column[offsets[group] : offsets[group + 1]]
            table_1 = column[offsets[group + 1] : offsets[group + 2]]
            table_2 = column[offsets[group + 2] : offsets[group + 3]]
            table_3 = column[offsets[group + 3] : offsets[group + 4]]
            codes_0 = values[group, first:last]
            codes_1 = values[group + 1, first:last]
            codes_2 = values[group + 2, first:last]
            codes_3 = values[group + 3, first:last]
            for row in range(last - first):
                score = block[row] + table_0[codes_0[row]]
                score += table_1[codes_1[row]]
                score += table_2[codes_2[row]]
                block[row] = score + table_3[codes_3[row]]
        for group in range(whole, n_groups):
            table_0 = column[offsets[group] : offsets[group + 1]]
            codes_0 = values[group, first:last]
            for row in range(last - first):
                block[row] += table_0[codes_0[row]]


@jit
def gather_many(values, offsets, tables, scores, start, stop):
    """OUT scores[start:stop]: sum over groups of each row's table entry."""
    n_columns = tables.shape[1]
    n_rows_in_block = max(_BLOCK // n_columns, 16)
    for first in range(start, stop, n_rows_in_block):
        last = min(first + n_rows_in_block, stop)
        block = scores[first:last]
        block[:] = 0.0
        for group in range(values.shape[0]):
            table = tables[offsets[group] : offsets[group + 1]]
            codes = values[group, first:last]
            for row in range(last - first):
                entry = table[codes[row]]
                score = block[row]
                for column in range(n_columns):
                    score[column] += entry[column]


@jit
def histogram_one(values, offsets, residuals, sums, start, stop):
    """OUT sums of groups start to stop: residuals of the rows in each cell, one column."""
    n_rows = values.shape[1]
    column = residuals[:, 0]
    whole = n_rows - n_rows % 4
    # In groups of few cells neighbouring rows often share a cell, and each addition
    # would wait for the last store: four copies avoid it. Sums of integers are exact,
    # so that no bit changes.
    copies = np.zeros((4, 64), dtype=np.int64)
    copy_0, copy_1, copy_2, copy_3 = copies[0], copies[1], copies[2], copies[3]
    for group in range(start, stop):
        codes = values[group]
        block = sums[offsets[group] : offsets[group + 1], 0]
        n_cells = block.shape[0]
        if n_cells > 64:
            block[:] = 0
            for row in range(n_rows):
                block[codes[row]] += column[row]
            continue
        copies[:] = 0
        for row in range(0, whole, 4):
            copy_0[codes[row]] += column[row]
            copy_1[codes[row + 1]] += column[row + 1]
            copy_2[codes[row + 2]] += column[row + 2]
            copy_3[codes[row + 3]] += column[row + 3]
        for row in range(whole, n_rows):
            copy_0[codes[row]] += column[row]
        for cell in range(n_cells):
            block[cell] = copy_0[cell] + copy_1[cell] + copy_2[cell] + copy_3[cell]


@jit
def histogram_many(values, offsets, residuals, sums, start, stop):
    """OUT sums of groups start to stop: residuals of the rows in each cell."""
    n_columns = residuals.shape[1]
    for group in range(start, stop):
        block = sums[offsets[group] : offsets[group + 1]]
        block[:] = 0
        codes = values[group]
        for row in range(codes.shape[0]):
            entry = block[codes[row]]
            residual = residuals[row]
            for column in range(n_columns):
                entry[column] += residual[column]


@jit
def bin_dense(X, search, codes, start, stop):
    """OUT codes[:, start:stop]: how many thresholds of its group lie below each value.

    NaN is below all thresholds.
    """
    features, thresholds, offsets = search
    # A block of rows of a row-major X is read once from memory and then, feature
    # by feature, from the cache.
    values = np.empty(_ROWS_BINNED, np.float32)
    places = np.empty(_ROWS_BINNED, np.int32)
    for first in range(start, stop, _ROWS_BINNED):
        n_rows = min(_ROWS_BINNED, stop - first)
        for group in range(features.shape[0]):
            for row in range(n_rows):
                values[row] = X[first + row, features[group]]
            group_thresholds = thresholds[offsets[group] : offsets[group + 1]]
            _count_below(group_thresholds, values[:n_rows], places[:n_rows])
            target = codes[group, first : first + n_rows]
            for row in range(n_rows):
                target[row] = places[row]


@jit
def _count_below(thresholds, values, codes):
    """OUT codes: the number of thresholds below each value, by bisection."""
    if not thresholds.shape[0]:
        codes[:] = 0
        return
    for row in range(codes.shape[0]):
        value = np.float64(values[row])
        below, left = 0, thresholds.shape[0]
        while left > 1:
            half = left >> 1
            below += half * (thresholds[below + half - 1] < value)  # faster than a branch
            left -= half
        codes[row] = below + (thresholds[below] < value)


@jit
def take_some(values, groups, rows, taken, start, stop):
    """OUT taken[start:stop]: the codes of some rows in some groups."""
    for position in range(start, stop):
        source = values[groups[position]]
        target = taken[position]
        for row in range(rows.shape[0]):
            target[row] = source[rows[row]]


@jit
def translate(values, groups, offsets, new_codes, translated, start, stop):
    """OUT translated[start:stop]: codes of the kept groups, renumbered cell by cell."""
    for position in range(start, stop):
        group = groups[position]
        table = new_codes[offsets[group] : offsets[group + 1]]
        source = values[group]
        target = translated[position]
        for row in range(source.shape[0]):
            target[row] = table[source[row]]


@jit
def _level_cells(values, n_levels):
    """IN and OUT values: level numbers become cells; see `twins.level_cells`."""
    most = np.float32(n_levels)
    for row in range(values.shape[0]):
        value = values[row]
        if value != value:
            values[row] = np.float32(0.0)
        else:
            values[row] = np.floor(min(max(value, np.float32(0.0)), most)) + np.float32(1.0)


@jit
def bin_ferns(X, ferns, codes, start, stop):
    """OUT codes[:, start:stop]: the cell of each fern that each row falls in."""
    features, thresholds, offsets, factors, raw_offsets, numbers = ferns[:6]
    set_starts, members, n_levels = ferns[6:]
    one, zero = np.uint64(1), np.uint64(0)
    same_type = thresholds.astype(np.float32)  # exact
    # A block of rows, feature by feature: comparisons then run along the rows.
    block = np.empty((X.shape[1], _ROWS_BINNED), np.float32)
    outcome = np.empty(_ROWS_BINNED, np.uint64)
    for first in range(start, stop, _ROWS_BINNED):
        n_rows = min(_ROWS_BINNED, stop - first)
        for row in range(n_rows):
            for feature in range(X.shape[1]):
                block[feature, row] = X[first + row, feature]
        for feature in range(n_levels.shape[0]):
            if n_levels[feature] > 0:
                _level_cells(block[feature, :n_rows], n_levels[feature])
        for fern in range(offsets.shape[0] - 1):
            outcome[:n_rows] = zero
            for stump in range(offsets[fern], offsets[fern + 1]):
                values, threshold = block[features[stump]], same_type[stump]
                if set_starts[stump] >= 0:
                    is_member = members[set_starts[stump] :]
                    for row in range(n_rows):
                        answer = is_member[np.intp(values[row])]
                        outcome[row] = (outcome[row] << one) | np.uint64(answer)
                    continue
                for row in range(n_rows):
                    outcome[row] = (outcome[row] << one) | np.uint64(values[row] > threshold)
            table = numbers[raw_offsets[fern] : raw_offsets[fern + 1]]
            n_bits = 0
            while (1 << n_bits) < table.shape[0]:
                n_bits += 1
            if offsets[fern + 1] - offsets[fern] > n_bits:
                factor, shift = factors[fern], np.uint64(64 - n_bits)
                for row in range(n_rows):
                    outcome[row] = (outcome[row] * factor) >> shift
            target = codes[fern, first : first + n_rows]
            for row in range(n_rows):
                target[row] = table[outcome[row]]


@jit
def agreement(values, others, weights, symmetric, agreement, start, stop):
    """OUT agreement[start:stop]: total weight of the groups in which two rows agree.

    Where both sides are the same rows, the matrix is symmetric: only its upper triangle is
    computed, and written twice.
    """
    n_groups, n_others = others.shape
    # The sums of a block of rows stay in the nearest cache during all groups.
    sums = np.empty((_ROWS_COMPARED, _OTHERS_COMPARED), weights.dtype)
    nothing = weights.dtype.type(0)
    for first in range(start, stop, _ROWS_COMPARED):
        last = min(first + _ROWS_COMPARED, stop)
        for begin in range(first if symmetric else 0, n_others, _OTHERS_COMPARED):
            end = min(begin + _OTHERS_COMPARED, n_others)
            sums[:] = nothing
            for group in range(n_groups):
                weight = weights[group]
                codes = others[group, begin:end]
                for row in range(first, last):
                    code = values[group, row]
                    line = sums[row - first]
                    for other in range(end - begin):
                        line[other] += weight if codes[other] == code else nothing
            _write_block(sums, symmetric, agreement, first, last, begin, end)


@jit
def count_agreements(values, others, symmetric, counts, start, stop):
    """OUT counts[start:stop]: number of groups in which two rows agree.

    The result is that of `agreement` for weights of one, but many times as fast: sums are bytes,
    and four groups are compared at once.
    """
    n_groups, n_others = others.shape
    sums = np.empty((_ROWS_COUNTED, _OTHERS_COMPARED), np.uint8)
    totals = np.empty((_ROWS_COUNTED, _OTHERS_COMPARED))
    one, nothing = np.uint8(1), np.uint8(0)
    for first in range(start, stop, _ROWS_COUNTED):
        last = min(first + _ROWS_COUNTED, stop)
        for begin in range(first if symmetric else 0, n_others, _OTHERS_COMPARED):
            end = min(begin + _OTHERS_COMPARED, n_others)
            totals[:] = 0.0
            for first_group in range(0, n_groups, _MOST_COUNTED):
                sums[:] = nothing
                group, last_group = first_group, min(first_group + _MOST_COUNTED, n_groups)
                while group + 4 <= last_group:
                    codes_0, codes_1 = others[group, begin:end], others[group + 1, begin:end]
                    codes_2, codes_3 = others[group + 2, begin:end], others[group + 3, begin:end]
                    for row in range(first, last):
                        code_0, code_1 = values[group, row], values[group + 1, row]
                        code_2, code_3 = values[group + 2, row], values[group + 3, row]
                        line = sums[row - first]
                        for other in range(end - begin):
                            line[other] += (
                                (one if codes_0[other] == code_0 else nothing)
                                + (one if codes_1[other] == code_1 else nothing)
                                + (one if codes_2[other] == code_2 else nothing)
                                + (one if codes_3[other] == code_3 else nothing)
                            )
                    group += 4
                while group < last_group:
                    codes = others[group, begin:end]
                    for row in range(first, last):
                        code, line = values[group, row], sums[row - first]
                        for other in range(end - begin):
                            line[other] += one if codes[other] == code else nothing
                    group += 1
                totals += sums
            _write_block(totals, symmetric, counts, first, last, begin, end)


@jit
def city_block(positions, others, symmetric, distance, start, stop):
    """OUT distance[start:stop]: city-block distance of two rows, summed over the groups."""
    n_groups, n_others = others.shape
    sums = np.empty((_ROWS_COMPARED, _OTHERS_COMPARED))
    for first in range(start, stop, _ROWS_COMPARED):
        last = min(first + _ROWS_COMPARED, stop)
        for begin in range(first if symmetric else 0, n_others, _OTHERS_COMPARED):
            end = min(begin + _OTHERS_COMPARED, n_others)
            sums[:] = 0.0
            for group in range(n_groups):
                places = others[group, begin:end]
                for row in range(first, last):
                    place = positions[group, row]
                    line = sums[row - first]
                    for other in range(end - begin):
                        line[other] += abs(place - places[other])
            _write_block(sums, symmetric, distance, first, last, begin, end)


@jit
def _write_block(block, symmetric, matrix, first, last, begin, end):
    """OUT matrix[first:last, begin:end], and its transpose where the matrix is symmetric."""
    for row in range(first, last):
        for other in range(begin, end):
            matrix[row, other] = block[row - first, other - begin]
    if symmetric:
        for other in range(begin, end):
            for row in range(first, last):
                matrix[other, row] = block[row - first, other - begin]

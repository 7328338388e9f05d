"""Compiled loops of the rivals: all pairs of rows, coordinate descent, boosted stumps.

Flat functions that release the interpreter lock. Small data do without them, by the
twins in `additive_kernels`, `power_mean` and `adaboost`. Arguments marked OUT are written.
"""

from __future__ import annotations

import numba
import numpy as np

# Rows of either side that are compared at a time: 32 KiB of sums.
_ROWS, _OTHERS = 8, 512
# Keeps 0 / 0 out of a loop without branches; no other quotient changes.
_TINY = 1e-300


def _jit(function):
    """Compile on first use; keep the result on disk where that is possible."""
    # Without Python's check for zero divisors the loops use vector instructions.
    try:
        return numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # no folder for the cache can be written
        return numba.njit(nogil=True, error_model="numpy")(function)


def _jit_sums(function):
    """Compile a sum whose order may change, for the sake of vector instructions."""
    try:
        return numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc"}, cache=True)(
            function
        )
    except RuntimeError:
        return numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc"})(function)


@_jit
def compare(columns, others, is_chi2, symmetric, products, start, stop):
    """OUT products[start:stop]: sum over the features of 2 x z / (x + z), or of min(x, z).

    With `symmetric` only those on and right of the diagonal.
    """
    n_features, n_others = others.shape
    sums = np.empty((_ROWS, _OTHERS))
    for first in range(start, stop, _ROWS):
        last = min(first + _ROWS, stop)
        for begin in range(first if symmetric else 0, n_others, _OTHERS):
            end = min(begin + _OTHERS, n_others)
            sums[:] = 0.0
            for feature in range(n_features):
                values = others[feature, begin:end]
                for row in range(first, last):
                    line = sums[row - first]
                    if is_chi2:
                        _add_harmonic_means(columns[feature, row], values, line)
                    else:
                        _add_minima(columns[feature, row], values, line)
            for row in range(first, last):
                for other in range(begin, end):
                    products[row, other] = sums[row - first, other - begin]


@_jit
def _add_harmonic_means(value, values, line):
    for other in range(values.size):
        line[other] += 2.0 * value * values[other] / (value + values[other] + _TINY)


@_jit
def _add_minima(value, values, line):
    for other in range(values.size):
        line[other] += min(value, values[other])


@_jit
def power_mean_sweep(
    order, indptr, indices, logs, updates, labels, diagonal, ridge, limit, alpha, weights, active
):
    """OUT alpha, weights, active: one step of every row in the given order.

    Returns the largest and the smallest projected gradient; see `power_mean`.
    """
    largest, smallest = -np.inf, np.inf
    for row in order:
        first, last = indptr[row], indptr[row + 1]
        score = 0.0
        for entry in range(first, last):
            weight, place = weights[indices[entry]], logs[entry]
            score += weight[0] + (weight[1] + weight[2] * place) * place
        gradient = labels[row] * score - 1.0 + ridge * alpha[row]
        if alpha[row] == 0.0:
            if gradient > limit:
                active[row] = False
                continue
            projected = min(gradient, 0.0)
        else:
            projected = gradient
        largest, smallest = max(largest, projected), min(smallest, projected)
        if projected == 0.0:
            continue
        before = alpha[row]
        alpha[row] = max(before - gradient / diagonal[row], 0.0)
        step = (alpha[row] - before) * labels[row]
        for entry in range(first, last):
            weight, update = weights[indices[entry]], updates[entry]
            weight[0] += step * update[0]
            weight[1] += step * update[1]
            weight[2] += step * update[2]
    return largest, smallest


@_jit
def best_stumps(codes, offsets, weights, totals, fits, stumps, start, stop):
    """OUT fits, stumps[start:stop]: the best stump of each feature and problem.

    See `adaboost.plain_search`.
    """
    n_columns = totals.size
    n_problems = n_columns // 2
    sums = np.empty((np.diff(offsets).max() + 1, n_columns), dtype=np.int64)
    for feature in range(start, stop):
        n_cells = offsets[feature + 1] - offsets[feature] + 1
        sums[:n_cells] = 0
        for row in range(codes.shape[1]):
            cell, weight = sums[codes[feature, row]], weights[row]
            for column in range(n_columns):
                cell[column] += weight[column]
        fits[feature] = -1.0
        for cell in range(n_cells - 1, 0, -1):
            for problem in range(n_problems):
                other = problem + n_problems
                positive, negative = float(sums[cell, problem]), float(sums[cell, other])
                far_positive, far_negative = totals[problem] - positive, totals[other] - negative
                near, far = positive + negative, far_positive + far_negative
                fit = (far_positive - far_negative) ** 2 / max(far, _TINY)
                fit += (positive - negative) ** 2 / max(near, _TINY)
                # Of equal ones the first, and cells come from the last to the first.
                if fit >= fits[feature, problem]:
                    fits[feature, problem] = fit
                    stumps[feature, problem] = offsets[feature] + cell - 1
            for column in range(n_columns):
                sums[cell - 1, column] += sums[cell, column]


@_jit
def add_tables(X, features, offsets, thresholds, tables, scores):
    """OUT scores: of every feature, the line of its table that a row falls in is added.

    See `adaboost.plain_tables`.
    """
    for row in range(X.shape[0]):
        for group in range(features.size):
            value = X[row, features[group]]
            place = offsets[group]
            # Most features have few stumps: to count is faster than to search.
            for stump in range(offsets[group], offsets[group + 1]):
                place += thresholds[stump] < value
            for column in range(scores.shape[1]):
                scores[row, column] += tables[place + group, column]


# ---------------------------------------------------------------- l1-regularised SVM

# Share of the predicted decrease that a step must bring, and how often it is halved.
_DECREASE, _HALVINGS = 0.01, 20


@_jit
def sweep_l1(columns, labels, order, C, slack, weights, room, stays):
    """OUT weights, room, stays: one sweep of coordinate descent over columns of -1, 0 and +1.

    The objective is the sum of |weight| + C * sum of max(0, room)^2, with room the margin
    that rows lack. A column does not stay if it is zero and `slack` away from leaving
    it. Returns the sum of violations of the optimality conditions, and the largest.
    """
    total, largest = 0.0, 0.0
    for position in range(order.size):
        column = columns[order[position]]
        weight = weights[order[position]]
        slope, curvature = _slope_and_curvature(column, labels, room)
        slope, curvature = -2.0 * C * slope, max(2.0 * C * curvature, 1e-12)
        if weight > 0.0:
            violation = abs(slope + 1.0)
        elif weight < 0.0:
            violation = abs(slope - 1.0)
        else:
            violation = max(abs(slope) - 1.0, 0.0)
            stays[position] = abs(slope) >= 1.0 - slack
        total += violation
        largest = max(largest, violation)
        if not stays[position]:
            continue
        step = -weight
        if slope + 1.0 < curvature * weight:
            step = -(slope + 1.0) / curvature
        elif slope - 1.0 > curvature * weight:
            step = -(slope - 1.0) / curvature
        if abs(step) >= 1e-12:
            step = _step(column, labels, C, weight, slope, curvature, room, step)
            weights[order[position]] += step
    return total, largest


@_jit
def _step(column, labels, C, weight, slope, curvature, room, step):
    """OUT room: go so far along a column that the objective falls; return how far."""
    before = -1.0
    predicted = abs(weight + step) - abs(weight) + slope * step
    for _ in range(_HALVINGS):
        rise = abs(weight + step) - abs(weight) - _DECREASE * predicted
        # The loss is below its parabola with the curvature of all rows; else it is computed.
        if C * column.size * step * step + slope * step + rise <= 0.0:
            break
        if before < 0.0:
            before = _loss(column, labels, room, 0.0)
        if C * (_loss(column, labels, room, step) - before) + rise <= 0.0:
            break
        step, predicted = 0.5 * step, 0.5 * predicted
    else:
        return 0.0
    for row in range(column.size):
        room[row] -= step * (column[row] * labels[row])
    return step


@_jit_sums
def _slope_and_curvature(column, labels, room):
    slope, curvature = 0.0, 0.0
    for row in range(column.size):
        value = column[row] * labels[row]
        inside = room[row] > 0.0
        slope += value * room[row] if inside else 0.0
        curvature += value * value if inside else 0
    return slope, curvature


@_jit_sums
def _loss(column, labels, room, step):
    loss = 0.0
    for row in range(column.size):
        value = max(room[row] - step * (column[row] * labels[row]), 0.0)
        loss += value * value
    return loss

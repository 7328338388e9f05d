"""Compiled loops of the rivals: all pairs of rows, sweeps of coordinate descent, boosted stumps.

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

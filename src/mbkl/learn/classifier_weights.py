"""Step 2: one-vs-rest SVMs, or regressions, with the learned kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mbkl.cells import Operator
from mbkl.engine.arrays import Values, cast, exact_total, index_for, is_numpy, namespace
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.solvers.choose import solve
from mbkl.solvers.problem import (
    LOSSES,
    Margins,
    Problem,
    Progress,
    Solution,
    go_on,
    smoothing_path,
)

Array = NDArray[np.float64]

# Of the weights of cells that are stored.
_STEP = 2.0**-26


def one_vs_rest_labels(y: Values, n_classes: int) -> Values:
    """Return +1 and -1 for each row and problem; two classes are one problem.

    >>> one_vs_rest_labels(np.array([0, 1]), 2).ravel()
    array([-1,  1], dtype=int8)
    """
    xp = namespace(y)
    targets = index_for(np.array([1]) if n_classes == 2 else np.arange(n_classes), y)
    labels = xp.where(y[:, None] == targets, 1, -1)
    return labels.astype(np.int8) if is_numpy(labels) else labels.to(xp.int8)


def n_problems_of(rows: LabelledRows) -> int:
    """Return how many problems are solved side by side."""
    if rows.numbers is not None:
        return rows.numbers.n_columns
    return 1 if rows.n_classes == 2 else rows.n_classes


def margins_of(rows: LabelledRows, costs: Values, loss: str, place=lambda array: array) -> Margins:
    """Return the losses of rows of known class, or with numbers.

    `place` brings an array to where the costs are, which are of shape (n_rows, 1).
    """
    if rows.numbers is None:
        return Margins(one_vs_rest_labels(place(rows.y), rows.n_classes), costs, LOSSES[loss])
    numbers = cast(place(rows.numbers.of_rows(rows.y)), costs)
    return Margins.of_numbers(numbers, costs, loss, rows.numbers.quantile)


def learn_classifier_weights(
    rows: LabelledRows,
    kernel_weights: Array,
    cost: float,
    loss: str,
    start: Solution | None,
    tol: float,
    max_iter: int,
    progress: Progress = go_on,
    leave_out: bool = False,
    needs_left_out: bool = False,
    only_supports: bool = False,
) -> Solution:
    """Solve Step 2: the SVM whose feature map is sqrt(kernel weight) * (map, not map).

    With a free intercept the two weights of a map are opposite, and the SVM is one on jumps a of
    the maps z = +1 or -1 with the penalty sum a^2 / weight. The feature map of a fern is
    sqrt(kernel weight) in the column of the row's cell.

    Kernel weights are of shape (n_slots,), zero where there is no map, or it is left out. The cost
    is that of all rows together. For numbers the loss is one of `Margins.of_numbers`. For the
    others see `Learner.learn_classifier` and `mbkl.solvers.problem`.
    """
    whole = rows.operator
    costs = cost / exact_total(rows.weights) * rows.weights
    kept = kernel_weights > 0
    if not kept.any():
        return _constant(rows, costs, loss)
    is_whole = bool(kept[whole.is_map].all())
    operator = whole.keep_maps(kept)
    own_weights = np.ones(operator.n_slots)
    own_weights[operator.is_map] = kernel_weights[kept]
    columns, own_columns = whole.spread(kept), operator.spread(operator.is_map)
    if start is not None:
        start = _moved(start, columns, own_columns, operator.n_columns)
    known = rows.known_hashes if is_whole else None
    rows = replace(rows, operator=operator, known_hashes=known)
    problem = replace(
        _problem(rows, costs, own_weights, loss),
        copies=rows.copies if leave_out or needs_left_out else None,
        needs_left_out=needs_left_out,
        needs_weights=not only_supports,
    )
    solution = solve(problem, start, tol, max_iter, progress)
    return _moved(solution, own_columns, columns, whole.n_columns)


def rounded_cells(operator: Operator, weights: Array) -> Array:
    """Return the weights with those of cells rounded, so that little has to be stored.

    Cells of ferns are many, and most of their weights tiny: steps of one part in sixty million
    of the margin move scores by far less than the tolerance of any solver.
    """
    if not operator.is_cell.any():
        return weights
    return np.where(operator.is_cell[:, None], np.rint(weights / _STEP) * _STEP, weights)


def _problem(rows: LabelledRows, costs: Array, kernel_weights: Array, loss: str) -> Problem:
    """Return what to minimise, with the way that few rows allow."""
    operator, n_columns = rows.operator, n_problems_of(rows)
    costs = operator.to_device(costs, operator.row_dtype(n_columns))

    def gram() -> Array:
        return operator.gram(kernel_weights) if rows.gram is None else rows.gram.matrix()

    penalty = operator.to_device(operator.penalty(kernel_weights))
    margins = margins_of(rows, costs[:, None], loss, operator.to_device)
    return Problem(operator, margins, penalty, gram)


def _moved(solution: Solution, columns, new_columns, n_columns: int) -> Solution:
    """Return the weights of some columns, if any, at other places, zero elsewhere."""
    own = solution.weights
    if own is None:
        return solution
    if len(own) == n_columns:  # all maps are there
        return replace(solution, weights=np.ascontiguousarray(own) if is_numpy(own) else own)
    shape = n_columns, own.shape[1]
    weights = np.zeros(shape) if is_numpy(own) else own.new_zeros(shape)
    weights[index_for(new_columns, own)] = own[index_for(columns, own)]
    return replace(solution, weights=weights)


def _constant(rows: LabelledRows, costs: Array, loss: str) -> Solution:
    """Return the classifier without any map: an intercept per class."""
    margins = margins_of(rows, costs[:, None], loss)
    margins = replace(margins, loss=smoothing_path(margins.loss)[-1])
    scores = 0.0 * margins.labels
    intercept = margins.best_intercept(scores, np.zeros(margins.labels.shape[1]))
    objective = margins.exact_value(scores + intercept)
    weights = np.zeros((rows.operator.n_columns, margins.labels.shape[1]))
    return Solution(weights, intercept, objective, np.zeros_like(objective))

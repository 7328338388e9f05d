"""Step 2: one-vs-rest SVMs, or regressions, with the learned kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mbkl.cells import Operator
from mbkl.engine.arrays import Values, cast, index_for, is_numpy, namespace
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.maps.numbers import Numbers
from mbkl.solvers.problem import LOSSES, Margins, Problem, Solution, smoothing_path

Array = NDArray[np.float64]

# Stored weights of cells are multiples of this.
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


def n_problems_of(n_classes: int, numbers: Numbers | None) -> int:
    """Return how many problems are solved side by side: the number of columns of the scores."""
    if numbers is not None:
        return numbers.n_columns
    return 1 if n_classes == 2 else n_classes


def margins_of(rows: LabelledRows, costs: Values, loss: str, place=lambda array: array) -> Margins:
    """Return the losses of rows of known class, or with numbers.

    Costs are of shape (n_rows, 1), and `place` brings an array to their device.
    """
    if rows.numbers is None:
        return Margins(one_vs_rest_labels(place(rows.y), rows.n_classes), costs, LOSSES[loss])
    numbers = cast(place(rows.numbers.of_rows(rows.y)), costs)
    return Margins.of_numbers(numbers, costs, loss, rows.numbers.quantile)


def classifier_problem(
    rows: LabelledRows, kernel_weights: Array, costs: Values, loss: str
) -> Problem:
    """Return Step 2: the SVM whose feature map is sqrt(kernel weight) * (map, not map).

    With a free intercept the two weights of a map are opposite, and the SVM is one on jumps a of
    the maps z = +1 or -1 with the penalty sum a^2 / weight. The feature map of a fern is
    sqrt(kernel weight) in the column of the row's cell.

    Kernel weights are of shape (n_maps,), and positive; costs are those of the rows. For numbers
    the loss is one of `Margins.of_numbers`.
    """
    operator = rows.operator
    weights = np.ones(operator.n_slots)
    weights[operator.is_map] = kernel_weights
    costs = operator.to_device(
        costs, operator.row_dtype(n_problems_of(rows.n_classes, rows.numbers))
    )

    def gram() -> Array:
        return operator.gram(weights) if rows.gram is None else rows.gram.matrix()

    margins = margins_of(rows, costs[:, None], loss, operator.to_device)
    return Problem(operator, margins, operator.to_device(operator.penalty(weights)), gram)


def rounded_cells(operator: Operator, weights: Array) -> Array:
    """Return the weights with those of cells rounded, so that files are small.

    Ferns have many cells, most of them with tiny weights: rounding to one part in sixty million of
    the margin moves scores by far less than the tolerance of any solver.
    """
    if not operator.is_cell.any():
        return weights
    return np.where(operator.is_cell[:, None], np.rint(weights / _STEP) * _STEP, weights)


def moved(solution: Solution, columns, new_columns, n_columns: int) -> Solution:
    """Return the solution with weights moved to new columns, and zero in all others."""
    before = solution.weights
    if before is None:
        return solution
    if len(before) == n_columns:  # no map was dropped
        weights = np.ascontiguousarray(before) if is_numpy(before) else before
        return replace(solution, weights=weights)
    shape = n_columns, before.shape[1]
    weights = np.zeros(shape) if is_numpy(before) else before.new_zeros(shape)
    weights[index_for(new_columns, before)] = before[index_for(columns, before)]
    return replace(solution, weights=weights)


def constant_classifier(rows: LabelledRows, costs: Array, loss: str) -> Solution:
    """Return the classifier without any map: an intercept for each class."""
    margins = margins_of(rows, costs[:, None], loss)
    margins = replace(margins, loss=smoothing_path(margins.loss)[-1])
    scores = 0.0 * margins.labels
    intercept = margins.best_intercept(scores, np.zeros(margins.labels.shape[1]))
    objective = margins.exact_value(scores + intercept)
    weights = np.zeros((rows.operator.n_columns, margins.labels.shape[1]))
    return Solution(weights, intercept, objective, np.zeros_like(objective))

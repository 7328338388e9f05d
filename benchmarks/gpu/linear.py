"""A linear SVM on the device, for comparison: the same solver on the original features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.engine.arrays import to_host
from mbkl.learn.classifier_weights import one_vs_rest_labels
from mbkl.solvers.newton_cg import minimise
from mbkl.solvers.problem import Margins, Problem, SquaredHinge

_BLOCK_ROWS = 65_536
_WIDTH = 128


@dataclass(frozen=True)
class Features:
    """The operator of the solver for a matrix of bytes in place of the maps.

    Bytes are exact in bfloat16. A scale gives all columns the same standard deviation.

    Parameters
    ----------
    X : tensor of shape (n_rows, n_features)
    scale : tensor of shape (n_features, 1)
    """

    X: Any
    scale: Any

    longest_chain, many_at_once = 1, True

    @property
    def n_columns(self) -> int:
        return self.X.shape[1]

    @property
    def is_chained(self) -> NDArray[np.bool_]:
        return np.zeros(self.n_columns, dtype=bool)

    def to_device(self, array):
        import torch

        return torch.as_tensor(array, device=self.X.device)

    def forward(self, weights):
        import torch

        n_columns = weights.shape[1]
        pieces = _pieces(weights * self.scale)
        scores = torch.empty((len(self.X), n_columns), device=self.X.device)
        for rows in _blocks(len(self.X)):
            block = self.X[rows].bfloat16()
            product = sum(torch.mm(block, piece, out_dtype=torch.float32) for piece in pieces)
            scores[rows] = product[:, :n_columns]
        return scores

    def adjoint(self, residuals):
        return self.adjoint_and_total(residuals)[0]

    def adjoint_and_total(self, residuals):
        return self._transposed(residuals, 1) * self.scale, residuals.sum(0, dtype=_double())

    def products(self, weights):
        total = weights.sum(0, dtype=_double())
        mean = self._transposed(weights, 1) * self.scale
        return total, mean, self._transposed(weights, 2) * self.scale**2, 0.0 * mean

    def _transposed(self, values, power: int):
        import torch

        n_columns = values.shape[1]
        sums = torch.zeros((self.n_columns, n_columns), dtype=_double(), device=self.X.device)
        for rows in _blocks(len(self.X)):
            block = (self.X[rows].float() ** power).bfloat16()
            for piece in _pieces(values[rows]):
                sums += torch.mm(block.t(), piece, out_dtype=torch.float32)[:, :n_columns]
        return sums


def _double():
    import torch

    return torch.float64


def _pieces(values) -> list:
    import torch

    values = torch.nn.functional.pad(values.float(), (0, -values.shape[1] % _WIDTH))
    first = values.bfloat16()
    return [first, (values - first).bfloat16()]


def _blocks(n_rows: int):
    for start in range(0, n_rows, _BLOCK_ROWS):
        yield slice(start, min(start + _BLOCK_ROWS, n_rows))


def linear_svm(X: NDArray[np.uint8], y: NDArray[np.intp], n_classes: int, C: float, tol: float):
    """Return a function from rows to scores, learned as one-vs-rest with the squared hinge."""
    import torch

    rows = torch.empty(X.shape, dtype=torch.uint8, device="cuda")
    for block in _blocks(len(X)):
        rows[block] = torch.from_numpy(X[block]).cuda()
    spread = rows[:_BLOCK_ROWS].float().std(0).double().clamp(min=1e-3)
    operator = Features(rows, (1.0 / spread)[:, None])
    labels = one_vs_rest_labels(torch.from_numpy(y).cuda(), n_classes)
    costs = torch.full((len(X), 1), C * 1000.0 / len(X), device="cuda")
    margins = Margins(labels, costs, SquaredHinge())
    penalty = torch.ones(X.shape[1], dtype=_double(), device="cuda")
    solution = minimise(Problem(operator, margins, penalty), None, tol, 30)

    def scores(new: NDArray[np.uint8]) -> NDArray:
        features = Features(torch.from_numpy(new).cuda(), operator.scale)
        return to_host(features.forward(solution.weights) + solution.intercept)

    return scores, solution.n_iter

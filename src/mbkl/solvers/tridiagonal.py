"""The preconditioner that makes thousands of nested maps easy to optimise.

Neighbouring maps of one group split almost the same rows, so their columns are
almost parallel and the condition number of a group grows with the square of its
number of maps; a diagonal preconditioner does nothing about it. But nested maps
form a Markov chain: given a map, those to its left and right are uncorrelated.
The inverse of a group's Gram matrix is therefore tridiagonal and follows from
the diagonal and the products of neighbours alone. With signs that differ from
class to class (Step 1) the chain is an approximation, for one class it is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpttrf, dpttrs

Array = NDArray[np.float64]

# Relative to the largest diagonal entry: maps that split no row with weight have
# zero curvature, and identical ones a correlation of exactly one.
_RIDGE = 1e-9


class ChainPreconditioner:
    """Solve (G + diag(penalty)) x = r, with G given by its chain.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        Diagonal of G, not negative.
    neighbour : ndarray of shape (n,)
        neighbour[k] is G[k - 1, k]; zero where a group begins.
    penalty : ndarray of shape (n,)
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> G = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> solver = ChainPreconditioner(np.diag(G), np.array([0.0, 1.0]), np.ones(2))
    >>> np.allclose(solver.solve(np.array([1.0, 0.0])), np.linalg.solve(G + np.eye(2), [1, 0]))
    True
    """

    def __init__(self, diagonal: Array, neighbour: Array, penalty: Array) -> None:
        variance = diagonal + _RIDGE * (float(diagonal.max(initial=0.0)) or 1.0)
        deviation = np.sqrt(variance)
        correlation = np.zeros_like(variance)
        correlation[1:] = neighbour[1:] / (deviation[1:] * deviation[:-1])
        np.clip(correlation, _RIDGE - 1.0, 1.0 - _RIDGE, out=correlation)
        # Each map given its left neighbour: the regression slope and what is left
        # of the variance.
        slope = np.zeros_like(variance)
        slope[1:] = correlation[1:] * deviation[1:] / deviation[:-1]
        precision = 1.0 / (variance * (1.0 - correlation**2))
        self._main = precision.copy()
        self._main[:-1] += slope[1:] ** 2 * precision[1:]
        self._side = -slope[1:] * precision[1:]
        # (inverse(P) + Q)^-1 = Q^-1/2 (I + Q^1/2 P Q^1/2)^-1 Q^1/2 P: no
        # cancellation, however far apart the penalties are.
        self._root = np.sqrt(penalty)
        main = 1.0 + self._root**2 * self._main
        side = self._root[1:] * self._root[:-1] * self._side
        self._factor_main, self._factor_side, _ = dpttrf(main, side)

    def solve(self, right: Array) -> Array:
        """Return the solution for one right-hand side."""
        product = self._main * right
        product[1:] += self._side * right[:-1]
        product[:-1] += self._side * right[1:]
        product *= self._root
        solution, _ = dpttrs(self._factor_main, self._factor_side, product)
        return solution / self._root

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

from scipy.linalg.lapack import dpttrf, dpttrs

from mbkl.engine.arrays import Values, is_numpy, namespace

# Relative to the largest diagonal entry: maps that split no row with weight have
# zero curvature, and identical ones a correlation of exactly one.
_RIDGE = 1e-9


class ChainPreconditioner:
    """Solve (G + diag(penalty)) x = r, with G given by its chain.

    That is its diagonal, and neighbour[k] = G[k - 1, k], zero where a group begins. The length of
    the longest chain saves a device steps. Arrays may have one column, and tensors several, each a
    system of its own.

    >>> import numpy as np
    >>> G = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> solver = ChainPreconditioner(np.diag(G), np.array([0.0, 1.0]), np.ones(2))
    >>> np.allclose(solver.solve(np.array([1.0, 0.0])), np.linalg.solve(G + np.eye(2), [1, 0]))
    True
    """

    def __init__(
        self, diagonal: Values, neighbour: Values, penalty: Values, longest: int | None = None
    ) -> None:
        xp = namespace(diagonal)
        largest = float(diagonal.max()) if diagonal.shape[0] else 0.0
        variance = diagonal + _RIDGE * (largest or 1.0)
        deviation = xp.sqrt(variance)
        correlation = xp.zeros_like(variance)
        correlation[1:] = neighbour[1:] / (deviation[1:] * deviation[:-1])
        correlation = xp.clip(correlation, _RIDGE - 1.0, 1.0 - _RIDGE)
        # Each map given its left neighbour: the regression slope and what is left
        # of the variance.
        slope = xp.zeros_like(variance)
        slope[1:] = correlation[1:] * deviation[1:] / deviation[:-1]
        precision = 1.0 / (variance * (1.0 - correlation**2))
        self._main = 1.0 * precision
        self._main[:-1] += slope[1:] ** 2 * precision[1:]
        self._side = -slope[1:] * precision[1:]
        # (inverse(P) + Q)^-1 = Q^-1/2 (I + Q^1/2 P Q^1/2)^-1 Q^1/2 P: no
        # cancellation, however far apart the penalties are.
        self._root = xp.sqrt(penalty)
        main = 1.0 + self._root**2 * self._main
        side = self._root[1:] * self._root[:-1] * self._side
        factor = _Factor if is_numpy(main) else _CyclicReduction
        self._factor = factor(main, side, longest or main.shape[0])

    def solve(self, right: Values) -> Values:
        """Return the solution for one right-hand side."""
        product = self._main * right
        product[1:] += self._side * right[:-1]
        product[:-1] += self._side * right[1:]
        product *= self._root
        return self._factor.solve(product) / self._root


class _Factor:
    """A symmetric tridiagonal matrix, factored by LAPACK."""

    def __init__(self, main, side, longest: int) -> None:
        self._main, self._side, _ = dpttrf(main.ravel(), side.ravel())

    def solve(self, right):
        return dpttrs(self._main, self._side, right)[0]


class _CyclicReduction:
    """A symmetric tridiagonal matrix of short chains, solved in few parallel steps.

    Each step eliminates the neighbours at a distance and leaves those at twice that
    distance, until it exceeds the longest chain.
    """

    def __init__(self, main: Values, side: Values, longest: int) -> None:
        xp = namespace(main)
        left, right = xp.zeros_like(main), xp.zeros_like(main)
        left[1:], right[:-1] = side, side
        self._steps = []
        distance = 1
        while distance < min(longest, main.shape[0]):
            up, down = xp.zeros_like(main), xp.zeros_like(main)
            up[distance:] = -left[distance:] / main[:-distance]
            down[:-distance] = -right[:-distance] / main[distance:]
            self._steps.append((distance, up, down))
            new_left, new_right = xp.zeros_like(main), xp.zeros_like(main)
            main = 1.0 * main
            main[distance:] += up[distance:] * right[:-distance]
            main[:-distance] += down[:-distance] * left[distance:]
            new_left[distance:] = up[distance:] * left[:-distance]
            new_right[:-distance] = down[:-distance] * right[distance:]
            left, right = new_left, new_right
            distance *= 2
        self._main = main

    def solve(self, right: Values) -> Values:
        for distance, up, down in self._steps:
            moved = 1.0 * right
            moved[distance:] += up[distance:] * right[:-distance]
            moved[:-distance] += down[:-distance] * right[distance:]
            right = moved
        return right / self._main

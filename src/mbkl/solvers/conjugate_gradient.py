"""Preconditioned conjugate gradients for symmetric positive definite systems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def dot(left: Array, right: Array) -> float:
    """Inner product whose bits do not depend on the threads of a BLAS library."""
    return float((left * right).sum())


def conjugate_gradient(
    product: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    relative_tolerance: float,
    max_iter: int,
) -> tuple[Array, int]:
    """Solve product(x) = right until the preconditioned residual is small.

    Returns
    -------
    solution : ndarray
    n_iter : int

    Examples
    --------
    >>> import numpy as np
    >>> matrix = np.diag([1.0, 2.0])
    >>> x, _ = conjugate_gradient(lambda v: matrix @ v, np.copy, np.ones(2), 1e-9, 9)
    >>> np.allclose(matrix @ x, 1)
    True
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    direction = precondition(residual)
    size = dot(residual, direction)
    goal = relative_tolerance**2 * size
    if size <= 0.0:
        return solution, 0
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        image = product(direction)
        curvature = dot(direction, image)
        if curvature <= 0.0:
            break
        step = size / curvature
        solution += step * direction
        residual -= step * image
        preconditioned = precondition(residual)
        previous, size = size, dot(residual, preconditioned)
        if size <= goal:
            break
        direction *= size / previous
        direction += preconditioned
    return solution, n_iter

"""Preconditioned conjugate gradients for symmetric positive definite systems."""

from __future__ import annotations

from collections.abc import Callable

from mbkl.engine.arrays import Values, namespace


def dot(left: Values, right: Values) -> Values:
    """Inner product of each column, whose bits do not depend on the threads of a library."""
    return (left * right).sum(axis=0)


def conjugate_gradient(
    product: Callable[[Values], Values],
    precondition: Callable[[Values], Values],
    right: Values,
    relative_tolerance: Values,
    max_iter: int,
) -> tuple[Values, int]:
    """Solve product(x) = right until the preconditioned residual is small.

    Columns are systems of their own that share the calls; each one stands still when it
    is solved.

    >>> matrix = np.diag([1.0, 2.0])
    >>> x, _ = conjugate_gradient(lambda v: matrix @ v, np.copy, np.ones(2), 1e-9, 9)
    >>> np.allclose(matrix @ x, 1)
    True
    """
    xp = namespace(right)
    solution, residual = 0.0 * right, 1.0 * right
    direction = precondition(residual)
    size = dot(residual, direction)
    goal = relative_tolerance**2 * size
    is_open = size > 0.0
    n_iter = 0
    while n_iter < max_iter and is_open.any():
        n_iter += 1
        image = product(direction)
        curvature = dot(direction, image)
        is_open = is_open & (curvature > 0.0)
        step = xp.where(is_open, size / xp.where(is_open, curvature, 1.0), 0.0)
        solution += step * direction
        residual -= step * image
        preconditioned = precondition(residual)
        previous, size = size, dot(residual, preconditioned)
        is_open = is_open & (size > goal)
        direction *= size / xp.where(previous > 0.0, previous, 1.0)
        direction += preconditioned
    return solution, n_iter

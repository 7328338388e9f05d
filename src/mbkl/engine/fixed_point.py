"""Sums that do not depend on the order of their terms.

Floating-point addition is not associative, so a sum over rows would depend on
how the rows are divided among threads or machines. Rounding every term once to
a multiple of a power of two and adding integers makes the sum exact from there
on: the same bits in any order.
"""

from __future__ import annotations

import numpy as np

from mbkl.engine.namespace import Values, is_numpy, namespace

# One bit is the sign; one more is head room, since a map's gradient is
# 2 * suffix - total and must fit in the same 64 bits.
_MAGNITUDE_BITS = 61


def to_fixed_point(values: Values) -> tuple[Values, Values]:
    """Round each column to integers whose sum cannot overflow.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)

    Returns
    -------
    integers : ndarray of shape (n_rows, n_columns)
    unit : ndarray of shape (n_columns,)
        values is integers * unit up to rounding; a power of two. Tensors stay as they
        are, and the unit is one: a device adds up in an order of its own.

    Examples
    --------
    >>> import numpy as np
    >>> integers, unit = to_fixed_point(np.array([[0.25], [-0.5]]))
    >>> float(integers.sum() * unit[0])
    -0.25
    """
    if not is_numpy(values):
        return values, values.new_ones(values.shape[1], dtype=namespace(values).float64)
    _, exponent = np.frexp(_magnitude(values))
    count_bits = max(int(values.shape[0] - 1).bit_length(), 0)
    power = _MAGNITUDE_BITS - count_bits - exponent
    # A factor beyond 2^1023 would overflow for columns of tiny values.
    factor = np.ldexp(1.0, np.minimum(power, 1000))
    return np.rint(values * factor).astype(np.int64), 1.0 / factor


def _magnitude(values: Values) -> Values:
    """Return the largest magnitude of each column."""
    if hasattr(values, "magnitude"):
        return values.magnitude()
    return np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))


def exact_sum(values: Values) -> Values:
    """Sum over rows with a result that does not depend on their order.

    Examples
    --------
    >>> import numpy as np
    >>> exact_sum(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([4., 6.])
    """
    return total_of(*to_fixed_point(values))


def exact_total(values: Values) -> float:
    """Sum one number a row, with a result that does not depend on the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> exact_total(np.array([1.0, 2.0]))
    3.0
    """
    return float(exact_sum(values[:, None])[0])


def total_of(integers: Values, unit: Values) -> Values:
    """Return the sum over rows of what `to_fixed_point` returned."""
    if is_numpy(integers):
        return integers.sum(axis=0) * unit
    return integers.sum(axis=0, dtype=unit.dtype)

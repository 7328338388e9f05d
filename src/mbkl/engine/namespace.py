"""The same code for arrays of NumPy and tensors of Torch."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbkl.extras import require

# NumPy's arrays or Torch's tensors: what solvers are written for.
Values = Any


def is_numpy(array) -> bool:
    """Say whether functions of NumPy apply to an array: it is not on a device."""
    return isinstance(array, float) or hasattr(array, "__array_ufunc__")


def namespace(array) -> ModuleType:
    """Return the module whose functions apply to an array.

    Examples
    --------
    >>> import numpy as np
    >>> namespace(np.ones(2)).__name__
    'numpy'
    """
    return np if is_numpy(array) else require("torch", "gpu")


def cast(array: Values, reference: Values) -> Values:
    """Return an array with the data type of another, on the same device."""
    if is_numpy(reference):
        return array if array.dtype == reference.dtype else array.astype(reference.dtype)
    return array.to(dtype=reference.dtype)


def index_for(index: NDArray, reference: Values) -> Values:
    """Return an index of NumPy as one for another array."""
    if is_numpy(reference):
        return index
    return require("torch", "gpu").as_tensor(index, device=reference.device)


def to_host(array: Values) -> NDArray:
    """Return an array of NumPy; anything else than a tensor as it is."""
    return array.detach().cpu().numpy() if type(array).__module__ == "torch" else array


def look_up(table: NDArray, index: Values) -> Values:
    """Return the entries of a table that an array of the rows asks for."""
    return index.apply(np.take, table, index) if hasattr(index, "apply") else table[index]


def running_sum(values: Values) -> Values:
    """Return the sums of all rows up to each one."""
    return np.cumsum(values, axis=0) if is_numpy(values) else values.cumsum(0)


def group_sums(values: Values, offsets: NDArray[np.int64]) -> Values:
    """Return the sum of the rows of each group, none of which is empty.

    Examples
    --------
    >>> import numpy as np
    >>> group_sums(np.arange(5.0), np.array([0, 2, 5]))
    array([1., 9.])
    """
    if is_numpy(values):
        return np.add.reduceat(values, offsets[:-1], axis=0)
    running = running_sum(values)[index_for(offsets[1:] - 1, values)]
    running[1:] -= running[:-1].clone()
    return running

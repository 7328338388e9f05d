"""From Dask's arrays and dataframes to stores on the workers that hold the partitions."""

from __future__ import annotations

import time
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from mbkl.dask.crew import DaskCrew, WorkerLostError, wait_for, workers_of
from mbkl.extras import require

if TYPE_CHECKING:
    from distributed import Client

# Seconds without any worker after which loading is given up.
_PATIENCE = 10


def spread(client: Client, X, y, sample_weight=None, has_numbers: bool = False) -> DaskCrew:
    """Load all partitions onto workers, and give each worker a store of its own.

    Of an array y the partitions are those of X, or of known lengths.
    """
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}.")
    blocks = row_blocks(X.rechunk({1: -1}) if hasattr(X, "rechunk") else X)
    labels = aligned(y, X, "y", most_dimensions=2 if has_numbers else 1)
    weights = aligned(sample_weight, X, "sample_weight")
    if len(labels) != len(blocks) or (weights and len(weights) != len(blocks)):
        raise ValueError(
            "X, y and sample_weight must have the same partitions: make y a Dask series or array "
            "with those of X, or X an array of known lengths, X.to_dask_array(lengths=True)."
        )
    check, name = require("dask", "dask").delayed(partial(partition, has_numbers)), uuid4().hex
    pieces = [
        check(number, *each, dask_key_name=("mbkl-load", name, number))
        for number, each in enumerate(zip_longest(blocks, labels, weights))
    ]
    futures = client.compute(pieces)
    try:
        wait_for(futures, partial(_check_any_worker, client))
        for future in futures:
            if future.status == "error":
                raise future.exception()
        return DaskCrew(client, _by_worker(client, futures))
    finally:
        # Also where an error still refers to them.
        client.cancel(futures)


def _check_any_worker(client: Client) -> None:
    """Raise an error if there is no worker to wait for, for a while."""
    for _ in range(_PATIENCE):
        if workers_of(client):
            return
        time.sleep(1.0)
    raise WorkerLostError("The cluster has no workers; start some, then call fit again.")


def _by_worker(client: Client, futures: list) -> dict[str, list]:
    """Return which partitions each worker is to hold: those it has."""
    held: dict[str, list] = {}
    homes = client.who_has(futures)
    for future in futures:
        if not homes.get(future.key):
            raise WorkerLostError(
                "A worker was lost while the data were loaded. Call fit again, with the workers "
                "that are there."
            )
        held.setdefault(sorted(homes[future.key])[0], []).append(future)
    return held


def row_blocks(X) -> list:
    """Return the partitions of an array or a dataframe, as delayed values."""
    if hasattr(X, "partitions") and hasattr(X, "to_delayed"):
        parts = X.to_delayed()
        return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)
    raise TypeError(
        f"X must be an array or a dataframe of Dask, got {type(X).__name__}; for others there is "
        "mbkl.MBKLClassifier and mbkl.MBKLRegressor."
    )


def aligned(values, X, name: str, most_dimensions: int = 1) -> list:
    """Return the partitions of labels or weights, cut as those of X; none of None."""
    if values is None:
        return []
    array = require("dask.array", "dask")
    if not hasattr(values, "to_delayed"):
        values = array.from_array(np.asarray(values), chunks=-1)
    if isinstance(values, array.Array):
        if not 1 <= values.ndim <= most_dimensions:
            allowed = "one dimension" if most_dimensions == 1 else "one or two dimensions"
            raise ValueError(f"{name} must have {allowed}, got {values.ndim}.")
        values = values.rechunk(dict.fromkeys(range(1, values.ndim), -1))
        lengths = X.chunks[0] if isinstance(X, array.Array) else (np.nan,)
        known = not np.isnan([*lengths, *values.chunks[0]]).any()
        if known:
            if sum(lengths) != values.shape[0]:
                raise ValueError(
                    f"{name} has {values.shape[0]:,} entries, but X has {sum(lengths):,} rows."
                )
            values = values.rechunk({0: lengths})
    return row_blocks(values)


def partition(has_numbers: bool, number: int, X, y, weights=None) -> tuple[NDArray, NDArray, Any]:
    """Return one partition as arrays, or say what is wrong with it."""
    where = f"Partition {number}"
    dtype = np.dtype(np.float32 if _is_float32(X) else np.float64)
    try:
        is_frame = hasattr(X, "to_numpy")
        values = X.to_numpy(dtype, na_value=np.nan) if is_frame else np.asarray(X, dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} of X has values that are no numbers: {error}") from error
    if values.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {values.ndim}.")
    if np.isinf(values).any():
        raise ValueError(f"{where} of X has infinite values; remove or clip them.")
    labels = np.asarray(y) if has_numbers and np.ndim(y) == 2 else column_or_1d(y)
    if len(labels) != len(values):
        raise ValueError(f"{where} has {len(values):,} rows of X, but {len(labels):,} labels.")
    if require("pandas", "dask").isna(labels).any():
        raise ValueError(f"{where} of y has missing labels.")
    if has_numbers:
        labels = _as_numbers(labels, where)
    elif len(labels):
        check_classification_targets(labels)
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
        if len(weights) != len(values):
            raise ValueError(
                f"{where} has {len(values):,} rows of X, but {len(weights):,} weights."
            )
        if not (weights >= 0).all() or np.isinf(weights).any():
            raise ValueError(f"{where} of sample_weight has entries that are no weights.")
    return np.ascontiguousarray(values), labels, weights


def _as_numbers(targets: NDArray, where: str) -> NDArray[np.float64]:
    try:
        numbers = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} of y has targets that are no numbers: {error}") from error
    if np.isinf(numbers).any():
        raise ValueError(f"{where} of y has infinite targets; remove or clip them.")
    return numbers


def _is_float32(X) -> bool:
    kinds = set(X.dtypes) if hasattr(X, "dtypes") else {X.dtype}
    return kinds == {np.dtype(np.float32)}

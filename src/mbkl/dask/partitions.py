"""From Dask's arrays and dataframes to stores on the workers that hold the partitions."""

from __future__ import annotations

import time
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from mbkl.dask.crew import Crew, WorkerLostError, patiently, workers_of
from mbkl.extras import require

if TYPE_CHECKING:
    from distributed import Client

# Seconds without any worker after which loading fails.
_PATIENCE = 10
# Other types of X are converted to the first of these.
_FLOATS = (np.float64, np.float32)


def spread(client: Client, X, y, sample_weight=None, has_numbers: bool = False) -> Crew:
    """Load all partitions onto workers, with a store on each worker.

    An array y must have the partitions of X, or known lengths.
    """
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}.")
    blocks = row_blocks(X.rechunk({1: -1}) if hasattr(X, "rechunk") else X)
    labels = aligned(y, X, "y")
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
        wait = partial(require("distributed", "dask").wait, futures)
        patiently(wait, partial(_check_any_worker, client))
        for future in futures:
            if future.status == "error":
                raise future.exception()
        return Crew(client, _by_worker(client, futures))
    finally:
        # Cancel explicitly: an exception may still refer to the futures.
        client.cancel(futures)


def _check_any_worker(client: Client) -> None:
    """Raise an error if there is no worker for some seconds."""
    for _ in range(_PATIENCE):
        if workers_of(client):
            return
        time.sleep(1.0)
    raise WorkerLostError("The cluster has no workers; start some, then call fit again.")


def _by_worker(client: Client, futures: list) -> dict[str, list]:
    """Return the partitions that each worker has, by the address of the worker."""
    by_worker: dict[str, list] = {}
    owners = client.who_has(futures)
    for future in futures:
        if not owners.get(future.key):
            raise WorkerLostError(
                "A worker was lost while the data were loaded. Call fit again, with the workers "
                "that are there."
            )
        by_worker.setdefault(min(owners[future.key]), []).append(future)
    return by_worker


def row_blocks(X) -> list:
    """Return the partitions of an array or a dataframe, as delayed values."""
    if hasattr(X, "partitions") and hasattr(X, "to_delayed"):
        parts = X.to_delayed()
        return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)
    raise TypeError(
        f"X must be an array or a dataframe of Dask, got {type(X).__name__}; for others there is "
        "mbkl.MBKLClassifier and mbkl.MBKLRegressor."
    )


def aligned(values, X, name: str) -> list:
    """Return the partitions of labels or weights, divided like X; an empty list for None."""
    if values is None:
        return []
    array = require("dask.array", "dask")
    if not hasattr(values, "to_delayed"):
        values = array.from_array(np.asarray(values), chunks=-1)
    if isinstance(values, array.Array):
        values = values.rechunk(dict.fromkeys(range(1, values.ndim), -1))
        lengths = X.chunks[0] if isinstance(X, array.Array) else (np.nan,)
        if not np.isnan([*lengths, *values.chunks[0]]).any():
            if sum(lengths) != values.shape[0]:
                raise ValueError(
                    f"{name} has {values.shape[0]:,} entries, but X has {sum(lengths):,} rows."
                )
            values = values.rechunk({0: lengths})
    return row_blocks(values)


def partition(has_numbers: bool, number: int, X, y, weights=None) -> tuple[NDArray, ...]:
    """Return the arrays of a partition without rows of weight zero; errors name the partition."""
    try:
        arrays = _checked(has_numbers, X, y, weights)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Partition {number}: {error}") from error
    present = arrays[-1] > 0
    return arrays if present.all() else tuple(array[present] for array in arrays)


def _checked(has_numbers: bool, X, y, weights) -> tuple[NDArray, NDArray, NDArray]:
    options = {"order": "C", "ensure_min_samples": 0}
    X = check_array(X, dtype=_FLOATS, ensure_all_finite="allow-nan", input_name="X", **options)
    vector = {**options, "ensure_2d": False, "dtype": np.float64}
    if has_numbers:
        y = check_array(y, input_name="y", **vector)
    else:
        y = column_or_1d(y)
        if require("pandas", "dask").isna(y).any():
            raise ValueError("Input y has missing labels.")
        if len(y):
            check_classification_targets(y)
    weights = np.ones(len(y)) if weights is None else weights
    weights = column_or_1d(check_array(weights, input_name="sample_weight", **vector))
    if (weights < 0).any():
        raise ValueError("Input sample_weight has negative entries.")
    check_consistent_length(X, y, weights)
    return X, y, weights

"""A Dask cluster of processes on this machine."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.data import MissingData


@contextlib.contextmanager
def local_cluster(n_workers: int, direct: bool = False) -> Iterator:
    """Start workers of one thread each; yield their client.

    Parameters
    ----------
    n_workers : int
    direct : bool
        Whether the client talks directly to the workers, not through the scheduler.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingData("Dask is not installed: pip install 'mbkl[dask]'") from None
    # Workers that are slow to stop on a busy machine do no harm.
    logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ports and memory that others use do no harm either
        with Client(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=None,
            worker_dashboard_address=None,
            direct_to_workers=direct,
        ) as client:
            client.run(_warm_up)
            yield client


def _warm_up() -> None:
    from mbkl.warmup import warmup

    warmup()


def on_the_workers(X: np.ndarray, y: np.ndarray, n_workers: int) -> tuple:
    """Return arrays of Dask that lie on the workers, two partitions on each."""
    import dask.array as da
    from distributed import wait

    size = -(-len(X) // (2 * n_workers))
    parts = (
        da.from_array(X, chunks=(size, X.shape[1])).persist(),
        da.from_array(y, chunks=size).persist(),
    )
    wait(parts)
    return parts

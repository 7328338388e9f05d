"""Clusters on this machine: their processes are slow to start, so that tests share them."""

import pytest

QUIET = {"threads_per_worker": 1, "dashboard_address": None, "worker_dashboard_address": None}


@pytest.fixture(scope="session")
def start_cluster():
    """Return a function that starts a cluster and returns its client, a context."""
    distributed = pytest.importorskip("distributed")
    return lambda n_workers, **options: distributed.Client(n_workers=n_workers, **QUIET, **options)


@pytest.fixture(scope="session")
def client(start_cluster):
    """A cluster of two processes."""
    with start_cluster(2) as client:
        yield client

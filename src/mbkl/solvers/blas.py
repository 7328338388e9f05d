"""Linear algebra whose bits do not depend on the number of threads of a library."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_one_at_a_time = threading.RLock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread; fits in other threads wait, as the limit is global."""
    with _one_at_a_time, threadpool_limits(1, user_api="blas"):
        yield

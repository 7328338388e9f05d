"""Linear algebra whose bits do not depend on the number of threads of a library."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_one_at_a_time = threading.RLock()


def _unlock_child() -> None:
    """Make a new lock in a forked child: the old one may be held by a thread it lacks."""
    global _one_at_a_time
    _one_at_a_time = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_child)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread; fits in other threads wait, as the limit is global."""
    with _one_at_a_time, _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Return what sets the limits: to look for libraries takes milliseconds."""
    return ThreadpoolController()

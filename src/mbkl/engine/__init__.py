"""Engines: implementations of the two hot operations over integer codes.

`gather` adds up table entries (codes -> scores) and `histogram` is its adjoint
(residuals -> sums per cell). Everything above the engine is written once.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING

from joblib import effective_n_jobs

from mbkl.engine.numpy_engine import NumpyEngine

if TYPE_CHECKING:
    from mbkl.engine.torch_engine import TorchEngine

    Engine = NumpyEngine | TorchEngine

# Below this many codes times columns, NumPy finishes a pass in a few
# milliseconds, and loading compiled kernels would take longer than the whole fit.
SMALL = 300_000


def engine_on(device: str, n_codes: int, n_jobs: int | None = None) -> Engine:
    """Return the engine of a device.

    Parameters
    ----------
    device : str
        "cpu", or a device of Torch: "cuda", or "torch" for Torch on the CPU.
    n_codes, n_jobs
        See `choose_engine`.
    """
    if device == "cpu":
        return choose_engine(n_codes, n_jobs)
    from mbkl.engine.torch_engine import torch_engine

    return torch_engine(device)


def choose_engine(n_codes: int, n_jobs: int | None = None) -> NumpyEngine:
    """Return the engine of the CPU for a problem with `n_codes` codes times columns.

    Parameters
    ----------
    n_codes : int
        Codes times columns that one pass reads.
    n_jobs : int or None
        Number of threads; None and -1 mean all that joblib allows here.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl.engine.codes import DenseCodes
    >>> codes = DenseCodes(np.array([[0, 1, 1]], dtype=np.uint8), np.array([0, 2]))
    >>> choose_engine(codes.n_stored).gather(codes, np.array([[5.0], [7.0]])).ravel()
    array([5., 7., 7.])
    """
    if "mbkl.engine.numba_engine" not in sys.modules:
        if n_codes < SMALL or importlib.util.find_spec("numba") is None:
            return NumpyEngine()
        from mbkl.engine.warmup import announce_if_cold

        announce_if_cold()
    from mbkl.engine.numba_engine import NumbaEngine

    # Asking how many cores there are takes longer than a small problem.
    n_threads = effective_n_jobs(-1 if n_jobs is None else n_jobs) if n_codes >= SMALL else 1
    return NumbaEngine(n_threads)


def child_of_fork() -> None:
    """Forget thread pools that a forked child does not really have."""
    module = sys.modules.get("mbkl.engine.numba_engine")
    if module is not None:
        module._pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=child_of_fork)

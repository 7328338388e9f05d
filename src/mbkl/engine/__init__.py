"""Codes, and the two hot operations over them: everything above is written once.

`gather` adds up table entries (codes -> scores) and `histogram` is its adjoint
(residuals -> sums per cell).
"""

from __future__ import annotations

import importlib.util
import sys

from joblib import effective_n_jobs

from mbkl.engine.limits import SMALL
from mbkl.engine.twins import TWINS, Twins


def choose_loops(n_codes: int, n_jobs: int | None = None) -> Twins:
    """Return the loops for a problem with `n_codes` codes times columns that one pass reads.

    None or -1 for `n_jobs` are all threads that joblib allows here.
    """
    if "mbkl.engine.compiled" not in sys.modules:
        if n_codes < SMALL or importlib.util.find_spec("numba") is None:
            return TWINS
        from mbkl.engine.compiled import announce_if_cold

        announce_if_cold()
    from mbkl.engine.compiled import Compiled

    # Asking how many cores there are takes longer than a small problem.
    n_threads = effective_n_jobs(-1 if n_jobs is None else n_jobs) if n_codes >= SMALL else 1
    return Compiled(n_threads)

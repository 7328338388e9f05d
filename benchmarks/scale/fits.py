"""Fits in memory, in files and on Dask, to be counted and timed."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.common import median_seconds
from benchmarks.scale.cluster import on_the_workers
from benchmarks.scale.counting import Tally, counted
from benchmarks.scale.out_of_core import Problem
from benchmarks.scale.problems import Shape, rows_of
from mbkl import MBKLClassifier

N_WORKERS = 2


@dataclass(frozen=True)
class Fit:
    """A fit to predict and to time, with one thread or with workers of one.

    Parameters
    ----------
    where : {"in memory", "in files", "Dask"}
    shape : Shape
    settings : dict
    """

    where: str
    shape: Shape
    settings: dict = field(default_factory=dict)

    @property
    def n_families(self) -> int:
        """Number of families of maps; the default has stumps and ferns."""
        maps = self.settings.get("maps", "auto")
        if maps == "auto":
            return 2
        return 1 if isinstance(maps, str) else len(maps)

    def __str__(self) -> str:
        n_maps = self.settings.get("n_maps")
        maps = "" if n_maps is None else f" ({n_maps:,})"
        return f"{Problem(self.shape, self.settings)}{maps}"


@contextlib.contextmanager
def ready(fit: Fit, client, X, y) -> Iterator:
    """Yield a function that does the fit."""
    settings = {"random_state": 0, **fit.settings}
    if fit.where == "Dask":
        from mbkl.dask import MBKLClassifier as OnDask

        parts = on_the_workers(X, y, N_WORKERS)
        yield lambda: OnDask(client=client, n_jobs=1, **settings).fit(*parts)
        return
    with tempfile.TemporaryDirectory() as folder:
        if fit.where == "in files":
            settings |= {"max_memory": Problem(fit.shape, fit.settings).allowed}
            settings |= {"cache_folder": folder}
        yield lambda: MBKLClassifier(n_jobs=1, **settings).fit(X, y)


def count_and_time(fit: Fit, client, repeats: int) -> tuple[Tally, float]:
    """Return the operations of a fit, and its median time."""
    X, y = rows_of(fit.shape)
    with ready(fit, client, X, y) as make:
        with counted(with_dask=fit.where == "Dask") as tally:
            make()
        taken = median_seconds({"fit": make}, repeats)["fit"] if repeats else np.nan
    return tally, taken

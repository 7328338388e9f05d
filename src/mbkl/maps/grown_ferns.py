"""The family of grown ferns, whose questions the labels choose."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from mbkl.declare import AT_LEAST_ONE, AUTO, POSITIVE, estimator, parameter
from mbkl.engine.arrays import exact_total
from mbkl.engine.limits import MOST_GROWTHS, ROWS_OF_ALL_GROWTHS
from mbkl.engine.rows import Rows
from mbkl.maps import device_growth  # noqa: F401  rows on a device have growing rows of their own
from mbkl.maps.categories import wide_categories
from mbkl.maps.ferns import FernFamily
from mbkl.maps.growing_rows import growing_rows
from mbkl.maps.growth import GrownMaps, Growth, Path, averaged_maps
from mbkl.maps.numbers import Numbers
from mbkl.maps.objectives import OBJECTIVES, objective_of
from mbkl.maps.stumps import fine_stumps
from mbkl.solvers.problem import SharedProgress

# Rows from which on fewer ferns are grown, for their time.
_MANY_ROWS = 500_000
_FERNS_OF_A_GROWTH = 500


@dataclass(frozen=True)
class Targets:
    """What rows are to be told apart by."""

    y: Any  # (n_rows,): class of each row, or level of `numbers`
    n_classes: int
    weights: Any  # (n_rows,)
    numbers: Numbers | None = None  # what y stands for, where it is no class
    # (n_rows,): which rows decide when growth ends; None leaves it to chance
    held_out: Any = None


@estimator
class GrownFerns(FernFamily):
    """Family of ferns that are grown where the loss has most gradient.

    A fern of depth d asks d questions of the form "is feature i above t", or "is the level of
    category i among these", of every row, as a random one does, but the questions are chosen by
    the labels. What the ferns add up to while they grow is a model already, and the squared norms
    of their tables are the weights theta of a learned kernel.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Largest number of stumps of a fern. Ferns begin with six or fewer and get deeper
        while the last levels gain on rows that took no part. "auto" leaves eight rows a cell,
        with at least 6 and at most 14 levels.
    n_ferns : int or "auto", default="auto"
        Largest number of ferns, of all growths together; "auto" is 500 for each growth, and 300
        from 500,000 rows on.
    rate : float or "auto", default="auto"
        Share of a Newton step that each fern takes; up to three times as much if growth is still
        going on after half of all ferns. "auto" is 0.2 for two classes, and 0.1 elsewhere.
    sample_rows : int or "auto", default="auto"
        Rows on which the stumps of a fern are chosen, drawn in proportion to their residuals.
        "auto" is eight for each cell, at least 16,000 and at most 130,000, and at most half of
        more than 4,000 rows.
    ridge : float, default=5.0
        Rows of average curvature that are added to every cell.
    objective : {"log_loss", "squared_hinge"}, default="log_loss"
        Loss that ferns are grown to lower, for classes; for numbers it is that of the regressor.
    validation_share : float, default=0.1
        Share of the rows that decide when growth ends (at most 50,000); then these count too.
    patience : int, default=40
        Ferns without progress on these rows after which growth ends.
    n_growths : int or "auto", default="auto"
        Ferns are grown so many times, each time from other samples of rows and features, and the
        model is the mean. "auto" is 4 up to 5,000 rows, fewer for more, and 1 above 10,000 or with
        fewer than 1,000 ferns.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.maps import GrownFerns
    >>> X = np.random.default_rng(0).normal(size=(2000, 6))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = MBKLClassifier(maps=GrownFerns(n_ferns=50), random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    depth: Any = parameter(Interval(Integral, 1, 14, closed="both"), AUTO, default="auto")
    n_ferns: Any = parameter(AT_LEAST_ONE, AUTO, default="auto")
    rate: Any = parameter(Interval(Real, 0, 1, closed="right"), AUTO, default="auto")
    # The curvatures of more rows would not fit in 32 bits.
    sample_rows: Any = parameter(
        Interval(Integral, 2, 150_000, closed="both"), AUTO, default="auto"
    )
    ridge: float = parameter(POSITIVE, default=5.0)
    objective: str = parameter(StrOptions(set(OBJECTIVES)), default="log_loss")
    validation_share: float = parameter(Interval(Real, 0, 0.5, closed="both"), default=0.1)
    patience: int = parameter(AT_LEAST_ONE, default=40)
    n_growths: Any = parameter(AT_LEAST_ONE, AUTO, default="auto")

    def default_n_maps(self, shape: tuple[int, int]) -> int:
        """Return the largest number of ferns that `n_maps="auto"` grows."""
        if self.n_ferns != "auto":
            return int(self.n_ferns)
        n_rows = shape[0]
        return _FERNS_OF_A_GROWTH * self._growths_of(n_rows) if n_rows < _MANY_ROWS else 300

    def _growths_of(self, n_rows: int, n_ferns: float = np.inf) -> int:
        """Return how many growths are averaged."""
        if self.n_growths != "auto":
            return int(self.n_growths)
        allowed = min(ROWS_OF_ALL_GROWTHS // max(n_rows, 1), n_ferns // _FERNS_OF_A_GROWTH)
        return int(np.clip(allowed, 1, MOST_GROWTHS))

    def grow(
        self,
        rows: Rows,
        targets: Targets,
        n_maps: int,
        seed: int,
        progress: Callable[[Any], bool] = lambda state: False,
        n_levels: NDArray[np.int64] | None = None,
    ) -> GrownMaps:
        """Grow up to so many ferns on labelled rows; see `Stumps.fit_codes` for the levels.

        Progress is called once a fern with the `Growth` so far; True ends it.
        """
        self._validate_params()
        y, weights = targets.y, targets.weights
        stumps, codes = fine_stumps(rows, weights, seed)
        keys = rows.keys_apart(y, weights, seed)
        objective = objective_of(self.objective, targets.n_classes, targets.numbers)
        mean = exact_total(weights) / len(weights)
        counts = np.zeros(rows.shape[1], np.int64) if n_levels is None else n_levels
        are_levels = counts[stumps.features] > 0
        wide = wide_categories(counts)
        levels = wide.codes(rows) if wide.n_groups else None
        tell = SharedProgress(progress)
        n_growths = min(self._growths_of(rows.shape[0], n_maps), n_maps)
        # Many rows keep all threads busy, and would be in memory several times.
        is_small = n_growths > 1 and rows.shape[0] <= ROWS_OF_ALL_GROWTHS
        alone = codes.in_one_thread() if is_small else None

        def path(number: int) -> Path | None:
            if number and (tell.is_told_to_stop or tell.has_failed):
                return None
            growing = growing_rows(alone or codes, objective, y, weights / mean, keys, seed)
            growth = Growth(self, growing, objective, seed, are_levels, targets.held_out, number)
            if levels is not None:
                growth.watch(wide, levels)
            return growth.run(n_maps // n_growths, tell)

        n_threads = 1 if alone is None else min(rows.loops.n_threads, n_growths)
        # Threads of their own: those of the loops wait for work that is short.
        with ThreadPoolExecutor(n_threads) as pool, tell:
            side_by_side = pool.map if n_threads > 1 else map
            begun = [found for found in side_by_side(path, range(n_growths)) if found is not None]
        finished = [found for found in begun if found.is_finished]
        return averaged_maps(finished or begun, stumps, counts, rows.loops)

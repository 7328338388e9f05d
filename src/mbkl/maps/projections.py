"""Stumps on random projections: the thresholds lie along directions in feature space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.utils._param_validation import StrOptions

from mbkl.cells import Ladder
from mbkl.declare import AT_LEAST_ONE, estimator, parameter
from mbkl.engine.arrays import exact_sum
from mbkl.engine.codes import Codes
from mbkl.engine.rows import steps
from mbkl.maps.stumps import THRESHOLDS, Family, Maps, StumpMaps, Stumps, column_ranges, no_stumps

_VALUES_AT_ONCE = 4_000_000
# Stumps drawn per projection: the cells of one are then a byte.
_STUMPS_PER_PROJECTION = 16
_CHI2_STEPS = 2


@dataclass(frozen=True)
class ProjectionMaps(Maps):
    """Stumps on projections of the scaled features."""

    directions: NDArray[np.float64] | sparse.csc_array  # (n_inputs, n_projections)
    # (n_features,): also the value that stands for a missing one
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    chi2_steps: int  # length of the chi2 map of each feature; zero for the features themselves
    stumps: StumpMaps  # on the projections

    @property
    def n_maps(self) -> int:
        return self.stumps.n_maps

    @property
    def n_groups(self) -> int:
        return self.stumps.n_groups

    @property
    def cells(self) -> Ladder:
        return self.stumps.cells

    def project(self, X) -> NDArray[np.float32]:
        """Return the projections of the rows of X, of float32 precision."""
        projected = np.empty((X.shape[0], self.directions.shape[1]), dtype=np.float32)
        n_inputs = self.directions.shape[0]
        rows = sparse.csr_array(X) if sparse.issparse(X) else X
        for block in steps(X.shape[0], _VALUES_AT_ONCE // max(n_inputs, projected.shape[1], 1)):
            projected[block] = self.inputs(rows[block]) @ self.directions
        return projected

    def inputs(self, rows) -> NDArray[np.float64]:
        dense = rows.toarray() if sparse.issparse(rows) else rows
        scaled = (dense.astype(np.float64) - self.centre) / self.scale
        scaled[np.isnan(scaled)] = 0.0
        if not self.chi2_steps:
            return scaled
        # The chi2 map is not defined for negative values, which new rows may have.
        return chi2_map(np.maximum(scaled, 0.0), self.chi2_steps)

    def codes(self, rows: Any) -> Codes:
        return self.stumps.codes(rows.with_columns(self.project(rows.X)))

    def score(self, rows: Any, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.stumps.score(rows.with_columns(self.project(rows.X)), tables)

    def prior(self, rates: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return weights of the stumps before any are learned; rates of features do not apply."""
        return self.stumps.prior()

    def column_names(self, inputs, levels=None) -> list[str]:
        """Return a name for either side of each stump."""
        return self.stumps.column_names([f"projection {k}" for k in range(self.n_groups)])

    def select(self, kept: NDArray[np.bool_]) -> ProjectionMaps:
        """Return some of the stumps; projections without any are dropped."""
        return self._with(self.stumps.select(kept))

    def _with(self, stumps: StumpMaps) -> ProjectionMaps:
        """Return the maps with these stumps, and only the directions that they use."""
        numbered = replace(stumps, features=np.arange(stumps.features.size))
        return replace(self, directions=self.directions[:, stumps.features], stumps=numbered)


@estimator
class Projections(Family):
    """Family of stumps on random projections, z(x) = +1 if w·x > threshold else -1.

    Features are centred and scaled to unit variance first, as thresholds on sums of
    features of different units would mean little. Those of sparse matrices are scaled
    by their root mean square and not centred, so that zeros stay zeros.

    Parameters
    ----------
    directions : {"gaussian", "sparse"}, default="gaussian"
        "sparse" directions add up sqrt(n_features) features each, with random signs.
    input_map : {None, "chi2"}, default=None
        "chi2" projects the explicit map of the chi2 kernel in place of the features,
        the "MBKL proj." of the paper. Features must not be negative.
    n_projections : int or None, default=None
        Number of directions; None means one for every 16 stumps.
    thresholds : {"mixed", "uniform", "quantile"}, default="mixed"
        See `Stumps`.

    Examples
    --------
    >>> import numpy as np
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.maps import Projections
    >>> X = np.random.default_rng(0).normal(size=(400, 5))
    >>> y = X.sum(axis=1) > 0
    >>> model = MBKLClassifier(maps=Projections(), random_state=0).fit(X[:200], y[:200])
    >>> model.score(X[200:], y[200:]) > 0.9
    True
    """

    directions: str = parameter(StrOptions({"gaussian", "sparse"}), default="gaussian")
    input_map: str | None = parameter(StrOptions({"chi2"}), None, default=None)
    n_projections: int | None = parameter(AT_LEAST_ONE, None, default=None)
    thresholds: str = parameter(THRESHOLDS, default="mixed")

    reads_blocks = False

    def n_groups(self, n_maps: int, n_features: int) -> int:
        """Return the codes of a row, each of a byte."""
        return int(self.n_projections or max(1, n_maps // _STUMPS_PER_PROJECTION))

    def fit_codes(
        self, rows: Any, weights, n_maps: int, seed: int, n_levels=None
    ) -> tuple[ProjectionMaps, Codes]:
        """Draw directions, and stumps along them; see `Stumps.fit_codes`."""
        if n_levels is not None:
            raise ValueError(
                "Projections need numbers, and X has categories: use maps='auto', or encode them "
                "by scikit-learn's OneHotEncoder."
            )
        self._validate_params()
        X = rows.X
        if self.input_map == "chi2":
            centre, scale = np.zeros(X.shape[1]), _largest(rows)
            steps, n_inputs = _CHI2_STEPS, (2 * _CHI2_STEPS - 1) * X.shape[1]
        else:
            centre, scale = _scaling(X, weights)
            steps, n_inputs = 0, X.shape[1]
        directions = self._draw(n_inputs, self.n_groups(n_maps, X.shape[1]), seed)
        maps = ProjectionMaps(directions, centre, scale, steps, no_stumps())
        projected = rows.with_columns(maps.project(X))
        family = Stumps(thresholds=self.thresholds, draw="stratified")
        stumps, codes = family.fit_codes(projected, weights, n_maps, seed)
        return maps._with(stumps), codes

    def _draw(self, n_inputs: int, n_projections: int, seed: int):
        """Return directions as columns; those of a smaller draw come first."""
        generator = np.random.Generator(np.random.Philox([seed, 3]))
        if self.directions == "gaussian":
            return np.ascontiguousarray(generator.normal(size=(n_projections, n_inputs)).T)
        n_joined = max(1, round(n_inputs**0.5))
        joined = np.empty((n_projections, n_joined), dtype=np.intp)
        signs = np.empty((n_projections, n_joined))
        for projection in range(n_projections):
            joined[projection] = generator.choice(n_inputs, n_joined, replace=False)
            signs[projection] = generator.choice([-1.0, 1.0], n_joined)
        columns = np.repeat(np.arange(n_projections), n_joined)
        shape = (n_inputs, n_projections)
        return sparse.csc_array((signs.ravel(), (joined.ravel(), columns)), shape=shape)


def chi2_map(X: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """Return the explicit map of the additive chi2 kernel, 2 * steps - 1 numbers a feature."""
    return AdditiveChi2Sampler(sample_steps=steps).fit_transform(X)


def _scaling(X, weights: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
    """Return mean and deviation of each feature over the values that are not missing.

    Sparse matrices are not centred, so that zeros stay zeros.
    """
    if sparse.issparse(X):
        squares = sparse.csr_array(X, copy=True)
        squares.sum_duplicates()
        squares.data = np.nan_to_num(squares.data.astype(np.float64)) ** 2
        centre = np.zeros(X.shape[1])
        variance = np.asarray(weights @ squares).ravel() / weights.sum()
    else:
        present = ~np.isnan(X)
        mass = exact_sum(weights[:, None] * present)
        mass = np.where(mass > 0, mass, 1.0)
        values = np.where(present, X, 0.0).astype(np.float64)
        centre = exact_sum(weights[:, None] * values) / mass
        spread = np.where(present, values - centre, 0.0)
        variance = exact_sum(weights[:, None] * spread**2) / mass
    return centre, np.where(variance > 0, np.sqrt(variance), 1.0)


def _largest(rows) -> NDArray[np.float64]:
    """Return the largest value of each feature; raise ValueError if any value is negative."""
    low, high, _ = column_ranges(rows)
    negative = np.flatnonzero(low < 0)
    if negative.size:
        raise ValueError(
            f"input_map='chi2' needs features of at least zero, but column {negative[0]} of X "
            "has negative values; shift or scale it, or use input_map=None."
        )
    return np.where(high > 0, high, 1.0)

"""The regressors that are compared, each with parameters that experts would use.

Factories are as in `methods`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from benchmarks.suite.methods import (
    EBM_BAGS,
    LIGHTGBM_CONFIGURATIONS,
    REFERENCE,
    SEARCH_ROWS,
    Factory,
    pipeline,
    trees,
    widths,
)
from benchmarks.suite.tuning import Tuned
from mbkl import MBKLRegressor, MBKLRegressorCV

RIDGE_PENALTIES = (0.01, 0.1, 1, 10, 100, 1000)
SVR_COSTS = (1, 10, 100)
SVR_TUBES = (0.01, 0.1)
SVR_WIDTHS = (0.1, 0.3, 1, 3)
KERNEL_RIDGE_PENALTIES = (0.001, 0.01, 0.1, 1)
KERNEL_RIDGE_WIDTHS = (0.03, 0.1, 0.3, 1, 3)
# Largest number of rows for kernel methods, whose time and memory grow with its square.
KERNEL_ROWS = 10_000
# Levels of the predicted quantiles, at which the pinball loss is measured.
LEVELS = (0.1, 0.5, 0.9)


# ---------------------------------------------------------------- means


def _mbkl_cv(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    return MBKLRegressorCV(random_state=seed, n_jobs=n_jobs)


def _mbkl(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    return MBKLRegressor(random_state=seed, n_jobs=n_jobs)


def _ridge(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    return pipeline(X, StandardScaler(), RidgeCV(RIDGE_PENALTIES))


def _svr(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    grid = {"C": SVR_COSTS, "epsilon": SVR_TUBES, "gamma": widths(X, SVR_WIDTHS)}
    return _tuned_kernel(X, SVR(cache_size=500), grid, seed, n_jobs)


def _kernel_ridge(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    grid = {"alpha": KERNEL_RIDGE_PENALTIES, "gamma": widths(X, KERNEL_RIDGE_WIDTHS)}
    return _tuned_kernel(X, KernelRidge(kernel="rbf"), grid, seed, n_jobs)


def _tuned_kernel(X: NDArray, model: BaseEstimator, grid: dict, seed: int, n_jobs: int) -> Tuned:
    """Return a search over parameters of a kernel method with standardised features and target."""
    steps = pipeline(X, StandardScaler(), model)
    place = f"regressor__{steps.steps[-1][0]}__"
    return Tuned(
        TransformedTargetRegressor(steps, transformer=StandardScaler()),
        {place + name: values for name, values in grid.items()},
        max_rows=SEARCH_ROWS,
        max_fit_rows=KERNEL_ROWS,
        n_jobs=n_jobs,
        random_state=seed,
    )


# ---------------------------------------------------------------- quantiles


class Quantiles(BaseEstimator):
    """A regressor for each level, side by side.

    Parameters
    ----------
    estimator : regressor
    parameter : str
        Name of the parameter for the level.

    Examples
    --------
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0) % 10
    >>> model = Quantiles(MBKLRegressor(loss="quantile", maps="stumps"), "quantile").fit(X, y)
    >>> model.predict(X).shape
    (20, 3)
    """

    def __init__(self, estimator, parameter):
        self.estimator = estimator
        self.parameter = parameter

    def fit(self, X, y) -> Quantiles:
        """Fit each level."""
        self.models_ = [
            clone(self.estimator).set_params(**{self.parameter: level}).fit(X, y)
            for level in LEVELS
        ]
        return self

    def predict(self, X) -> NDArray:
        """Return the quantiles of each row, a column for each level."""
        return np.column_stack([model.predict(X) for model in self.models_])


def _mbkl_quantiles(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    return Quantiles(MBKLRegressor(loss="quantile", random_state=seed, n_jobs=n_jobs), "quantile")


def _lightgbm_quantiles(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    from lightgbm import LGBMRegressor

    model = LGBMRegressor(objective="quantile", random_state=seed, n_jobs=n_jobs, verbose=-1)
    return Quantiles(model, "alpha")


def _histogram_quantiles(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    model = HistGradientBoostingRegressor(loss="quantile", quantile=0.5, random_state=seed)
    return Quantiles(model, "quantile")


# ---------------------------------------------------------------- registry

TUNED = ("MBKLRegressorCV", "SVR tuned", "kernel ridge tuned", "LightGBM tuned")
METHODS: dict[str, Factory] = {
    "MBKLRegressorCV": _mbkl_cv,
    "MBKLRegressor": _mbkl,
    "ridge": _ridge,
    "SVR tuned": _svr,
    "kernel ridge tuned": _kernel_ridge,
    **trees("Regressor"),
}
LARGE_METHODS = ("MBKLRegressor", "RandomForest", "HistGradientBoosting", REFERENCE, "CatBoost")
QUANTILE_METHODS: dict[str, Factory] = {
    "MBKLRegressor": _mbkl_quantiles,
    "HistGradientBoosting": _histogram_quantiles,
    REFERENCE: _lightgbm_quantiles,
}
NOTES = (
    "Those of mbkl have their defaults. Every regressor gets the same rows, float32 as stored, and "
    "all cores; means take the place of missing values for those that cannot take them.",
    f"Ridge, SVR and kernel ridge see standardised features, the last two standardised targets "
    f"too. Ridge has one of {len(RIDGE_PENALTIES)} penalties by leaving one out; SVR searches "
    f"{len(SVR_COSTS)} costs, {len(SVR_TUBES)} tubes and {len(SVR_WIDTHS)} widths, kernel ridge "
    f"{len(KERNEL_RIDGE_PENALTIES)} penalties and {len(KERNEL_RIDGE_WIDTHS)} widths, LightGBM "
    f"tuned its defaults and {LIGHTGBM_CONFIGURATIONS - 1} random configurations, on "
    f"{SEARCH_ROWS:,} rows at most, by 3-fold cross-validation of R2. SVR and kernel ridge then "
    f"learn from {KERNEL_ROWS:,} rows at most. EBM has {EBM_BAGS} outer bags in place of 14.",
    "Coverage is the share of test rows within predict_interval(coverage=0.9).",
)
QUANTILE_NOTES = (
    f"Each method has a model for each of the quantiles {', '.join(map(str, LEVELS))}, with its "
    "defaults. The share explained is 1 - pinball loss / pinball loss of the best constant, mean "
    "over the three; inside is the share of test rows between the first and the last.",
)

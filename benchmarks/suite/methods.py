"""The classifiers that are compared, each with parameters that experts would use.

A factory takes the rows of a data set (for their number and for missing values), a seed
and the number of cores, and returns an unfitted classifier.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Literal

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn import ensemble
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem
from sklearn.model_selection import ParameterSampler
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import mbkl
from benchmarks.suite.tuning import Tuned
from mbkl import MBKLClassifier, MBKLClassifierCV

Factory = Callable[[NDArray, int, int], BaseEstimator]

REFERENCE = "LightGBM default"
LINEAR_COSTS = (0.001, 0.01, 0.1, 1, 10, 100)
RBF_COSTS = (1, 10, 100, 1000)
# Widths of the RBF kernel, times the number of features.
RBF_WIDTHS = (0.1, 0.3, 1, 3, 10)
# The default of liblinear for this problem; that of scikit-learn takes many times as long.
LIBLINEAR_TOLERANCE = 0.01
NYSTROEM_COMPONENTS = 400
NYSTROEM_COSTS = (0.1, 1, 10, 100)
NYSTROEM_WIDTHS = (0.1, 0.3, 1, 3)
# Parts of mbkl that classifiers do not use: changes there do not invalidate results.
NO_CLASSIFIERS = {
    "cli",
    "explain",
    "io",
    "parquet.py",
    "plot",
    "report",
    "tabular",
}
# Bags of EBM: the default of 14 takes two minutes for the 379 rows of wdbc.
EBM_BAGS = 4
# EBM learns pairs of features only up to this many features. With more (usps) the loss of a bag
# becomes NaN, and early stopping cannot end it before 50,000 rounds, which take hours (interpret
# 0.7.8).
EBM_FEATURES_WITH_PAIRS = 200
# Large grids are searched on this many rows at most.
SEARCH_ROWS = 5_000
LIGHTGBM_CONFIGURATIONS = 16
LIGHTGBM_SPACE = {
    "n_estimators": [100, 200, 400],
    "learning_rate": [0.03, 0.05, 0.1, 0.2],
    "num_leaves": [7, 15, 31, 63],
    "min_child_samples": [5, 10, 20, 40],
    "colsample_bytree": [0.5, 0.75, 1.0],
    "subsample": [0.7, 1.0],
    "reg_lambda": [0.0, 1.0, 10.0],
}


# ---------------------------------------------------------------- mbkl


def _mbkl_cv(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    return MBKLClassifierCV(random_state=seed, n_jobs=n_jobs)


def _mbkl(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    return MBKLClassifier(random_state=seed, n_jobs=n_jobs)


def _mbkl_paper(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    return MBKLClassifierCV(maps="stumps", theta="learned", random_state=seed, n_jobs=n_jobs)


# ---------------------------------------------------------------- support vector machines


def _linear_svc(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    steps = pipeline(X, StandardScaler(), _liblinear())
    return Tuned(steps, {"linearsvc__C": LINEAR_COSTS}, n_jobs=n_jobs, random_state=seed)


def _rbf_default(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    return pipeline(X, StandardScaler(), SVC())


def _rbf_tuned(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    grid = {"svc__C": RBF_COSTS, "svc__gamma": widths(X, RBF_WIDTHS)}
    steps = pipeline(X, StandardScaler(), SVC(cache_size=500))
    return Tuned(steps, grid, max_rows=SEARCH_ROWS, n_jobs=n_jobs, random_state=seed)


def _chi2(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    steps = pipeline(X, MinMaxScaler(clip=True), AdditiveChi2Sampler(), _liblinear())
    return Tuned(steps, {"linearsvc__C": LINEAR_COSTS}, n_jobs=n_jobs, random_state=seed)


def _nystroem(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
    grid = {"linearsvc__C": NYSTROEM_COSTS, "nystroem__gamma": widths(X, NYSTROEM_WIDTHS)}
    kernel = Nystroem(n_components=NYSTROEM_COMPONENTS, random_state=seed)
    steps = pipeline(X, StandardScaler(), kernel, _liblinear())
    return Tuned(steps, grid, max_rows=SEARCH_ROWS, n_jobs=n_jobs, random_state=seed)


def _liblinear() -> LinearSVC:
    """Return a linear SVM solved without random numbers, so that threads may share it."""
    return LinearSVC(dual=False, tol=LIBLINEAR_TOLERANCE)


def widths(X: NDArray, factors: tuple) -> list[float]:
    """Return widths of kernels of standardised features."""
    return [factor / X.shape[1] for factor in factors]


def pipeline(X: NDArray, *steps: BaseEstimator) -> Pipeline:
    """Return the steps, after means for missing values where there are some."""
    imputer = [SimpleImputer()] if np.isnan(X).any() else []
    return make_pipeline(*imputer, *steps)


# ---------------------------------------------------------------- trees


def trees(kind: Literal["Classifier", "Regressor"]) -> dict[str, Factory]:
    """Return the methods of forests and boosting, for classes or for numbers."""

    def random_forest(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
        return getattr(ensemble, f"RandomForest{kind}")(random_state=seed, n_jobs=n_jobs)

    def histogram_boosting(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
        return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=seed)

    def lightgbm_default(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
        make = getattr(import_module("lightgbm"), f"LGBM{kind}")
        return make(random_state=seed, n_jobs=n_jobs, verbose=-1)

    def lightgbm_tuned(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
        make = getattr(import_module("lightgbm"), f"LGBM{kind}")
        # Fits of the search use a core each, the last fit uses all.
        return Tuned(
            make(subsample_freq=1, random_state=seed, n_jobs=1, verbose=-1),
            lightgbm_grid(),
            max_rows=SEARCH_ROWS,
            n_jobs=n_jobs,
            random_state=seed,
            last_fit={"n_jobs": n_jobs},
        )

    def catboost(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
        make = getattr(import_module("catboost"), f"CatBoost{kind}")
        return make(thread_count=n_jobs, random_seed=seed, verbose=False, allow_writing_files=False)

    def ebm(X: NDArray, seed: int, n_jobs: int) -> BaseEstimator:
        make = getattr(import_module("interpret.glassbox"), f"ExplainableBoosting{kind}")
        pairs = {} if X.shape[1] <= EBM_FEATURES_WITH_PAIRS else {"interactions": 0}
        return make(outer_bags=EBM_BAGS, random_state=seed, n_jobs=n_jobs, **pairs)

    return {
        "RandomForest": random_forest,
        "HistGradientBoosting": histogram_boosting,
        REFERENCE: lightgbm_default,
        "LightGBM tuned": lightgbm_tuned,
        "CatBoost": catboost,
        "EBM": ebm,
    }


def lightgbm_grid() -> list[dict[str, list]]:
    """Return the defaults of LightGBM and random configurations from a fixed seed."""
    drawn = ParameterSampler(LIGHTGBM_SPACE, LIGHTGBM_CONFIGURATIONS - 1, random_state=0)
    defaults = {
        "n_estimators": 100,
        "learning_rate": 0.1,
        "num_leaves": 31,
        "min_child_samples": 20,
        "colsample_bytree": 1.0,
        "subsample": 1.0,
        "reg_lambda": 0.0,
    }
    return [{name: [value] for name, value in one.items()} for one in [defaults, *drawn]]


# ---------------------------------------------------------------- registry

METHODS: dict[str, Factory] = {
    "MBKLClassifierCV": _mbkl_cv,
    "MBKLClassifier": _mbkl,
    "MBKL paper": _mbkl_paper,
    "LinearSVC": _linear_svc,
    "SVC-RBF default": _rbf_default,
    "SVC-RBF tuned": _rbf_tuned,
    "chi2 + LinearSVC": _chi2,
    "Nystroem + LinearSVC": _nystroem,
    **trees("Classifier"),
}
TUNED = (
    "MBKLClassifierCV",
    "MBKL paper",
    "LinearSVC",
    "SVC-RBF tuned",
    "chi2 + LinearSVC",
    "Nystroem + LinearSVC",
    "LightGBM tuned",
)
# Methods that learn from a million rows in minutes, without tuning.
LARGE_METHODS = ("MBKLClassifier", "RandomForest", "HistGradientBoosting", REFERENCE, "CatBoost")
QUICK_METHODS = ("MBKLClassifier", "LinearSVC", "SVC-RBF default", "RandomForest")
NOTES = (
    "MBKL paper is MBKLClassifierCV(maps='stumps', theta='learned'), the others of mbkl have "
    "their defaults. Every classifier gets the same rows, float32 as stored, and all cores; means "
    "take the place of missing values for those that cannot take them.",
    f"LinearSVC, SVC and Nystroem see standardised features, AdditiveChi2Sampler such between 0 "
    f"and 1. C of LinearSVC is one of {len(LINEAR_COSTS)} from {LINEAR_COSTS[0]} to "
    f"{LINEAR_COSTS[-1]}; SVC-RBF tuned searches {len(RBF_COSTS)} costs from {RBF_COSTS[0]} to "
    f"{RBF_COSTS[-1]:,} by {len(RBF_WIDTHS)} widths from {RBF_WIDTHS[0]} to {RBF_WIDTHS[-1]} over "
    f"the number of features; Nystroem has {NYSTROEM_COMPONENTS} components and searches "
    f"{len(NYSTROEM_COSTS)} costs by {len(NYSTROEM_WIDTHS)} widths.",
    f"LightGBM tuned chooses among its defaults and {LIGHTGBM_CONFIGURATIONS - 1} random "
    "configurations of trees, rate, leaves, rows per leaf, columns, rows and penalty. EBM has "
    f"{EBM_BAGS} outer bags in place of 14, for the time it takes, and else its defaults, but no "
    f"pairs of features where there are more than {EBM_FEATURES_WITH_PAIRS} (mnist, usps): with "
    "pairs, a fit of usps was stopped after 22 minutes, when the loss of one bag was NaN and early "
    "stopping could no longer end it.",
    "All choices are made by 3-fold cross-validation (5-fold for mbkl) of accuracy inside the "
    f"training rows. SVC-RBF tuned, Nystroem and LightGBM tuned search on {SEARCH_ROWS:,} rows at "
    "most, drawn by class, and fit the best on all.",
)


# ---------------------------------------------------------------- fingerprints


def setup_fingerprint(factory: Factory) -> str:
    """Return a short text that changes with the parameters of a method.

    If the library of a method is missing, the fingerprint changes once it is installed.
    """
    rows = np.zeros((2, 2), dtype=np.float32)
    rows[0, 0] = np.nan
    try:
        return joblib.hash(factory(rows, 0, 1))[:12]
    except ImportError as error:
        return joblib.hash(str(error))[:12]


def source_fingerprint(folder: Path | None = None) -> str:
    """Return a short text that changes with any source file that the classifiers use.

    Parameters
    ----------
    folder : Path or None
        None means that of the package in use.
    """
    folder = folder or Path(mbkl.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        if path.relative_to(folder).parts[0] in NO_CLASSIFIERS:
            continue
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12]

"""A grid search on a sample of the rows, with a last fit on all rows."""

from __future__ import annotations

import numpy as np
from joblib import parallel_config
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from benchmarks.suite.protocol import draw


class Tuned(BaseEstimator):
    """Classifier or regressor with parameters chosen by cross-validated accuracy or R2.

    Parameters
    ----------
    estimator : classifier or regressor
    grid : dict or list of dict
        As for scikit-learn's GridSearchCV.
    max_rows : int or None
        Largest number of rows for the search; of more rows a stratified sample is used.
    max_fit_rows : int or None
        The same for the last fit.
    cv : int
        Folds, stratified for classes.
    n_jobs : int
        Fits at the same time.
    random_state : int
    last_fit : dict or None
        Parameters of the last fit only, such as its number of threads.

    Attributes
    ----------
    best_params_ : dict
    best_estimator_ : classifier or regressor
        Fitted on all rows.
    """

    def __init__(
        self,
        estimator,
        grid,
        max_rows=None,
        max_fit_rows=None,
        cv=3,
        n_jobs=1,
        random_state=0,
        last_fit=None,
    ):
        self.estimator = estimator
        self.grid = grid
        self.max_rows = max_rows
        self.max_fit_rows = max_fit_rows
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.last_fit = last_fit

    def fit(self, X, y) -> Tuned:
        """Search the grid and fit the best on all rows."""
        strata = y if is_classifier(self.estimator) else np.zeros(len(y))
        part = draw(strata, self.max_rows, self.random_state)
        search = GridSearchCV(
            self.estimator,
            self.grid,
            cv=self.cv,
            n_jobs=self.n_jobs,
            refit=False,
            error_score="raise",
        )
        # Threads suffice, because the libraries release the GIL, and start faster than processes.
        # BLAS gets one thread, because the fits already use all cores.
        with parallel_config(backend="threading"), threadpool_limits(1, "blas"):
            search.fit(X[part], y[part])
            chosen = {**search.best_params_, **(self.last_fit or {})}
            best = clone(self.estimator).set_params(**chosen)
            part = draw(strata, self.max_fit_rows, self.random_state)
            best.fit(X[part], y[part])
        self.best_params_ = search.best_params_
        self.best_estimator_ = best
        return self

    def predict(self, X):
        """Return the classes or numbers of rows."""
        return self.best_estimator_.predict(X)

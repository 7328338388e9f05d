"""MBKLRegressor: regression with a kernel learned as a weighted sum of binary maps."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context

from mbkl.estimator import Costs, OfNumbers, Placed, estimator
from mbkl.kernel_predictor import KernelPredictor, costs_of
from mbkl.learn.progress import with_callbacks


@estimator
class KernelRegressor(RegressorMixin, OfNumbers, KernelPredictor):
    """What all regressors do once costs are known: learn, and predict."""

    _STEP_2: ClassVar[str] = "Step 2 (regression weights)"

    def predict(self, X):
        """Return the number that each sample is expected to have.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            As y was in `fit`.
        """
        return self._as_given(self._means(self._scores(X)))

    def _means(self, scores: np.ndarray) -> np.ndarray:
        return np.exp(scores) if self.loss == "poisson" else scores

    def _as_given(self, columns: np.ndarray) -> np.ndarray:
        return columns if self.is_multi_output_ else columns[:, 0]


@estimator
class MBKLRegressor(Costs, Placed, KernelRegressor):
    """Regression."""

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn the kernel and the regression."""
        X, y, weights = self._validate_rows(X, y, sample_weight)
        self.is_multi_output_ = y.ndim > 1
        progress = self._progress(X, y, weights)
        data = self._training_rows(X, y, weights, progress)
        if self.C == "auto" and self._grows(data):
            return self._grow(data, progress)
        choice = self._choose(data, progress)
        learner = self._draw(data, choice, progress)
        C_kernel, C = costs_of(self, choice, learner)
        return self._learn(learner.merged, C_kernel, C, choice)

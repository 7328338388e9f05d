"""MBKLRegressor: regression with a kernel learned as a weighted sum of binary maps."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context

from mbkl.estimator import Costs, OfNumbers, Placed, TrainingRows, estimator
from mbkl.kernel_predictor import KernelPredictor, costs_of
from mbkl.learn.algorithm import Kernel, Learner
from mbkl.learn.calibration import hash_folds
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.learn.progress import Progress, with_callbacks
from mbkl.learn.residuals import HeldOut, Residuals, best_cost, best_share, held_out
from mbkl.maps.choose import Choice
from mbkl.maps.families import MapSet
from mbkl.maps.growth import GrownMaps


@estimator
class KernelRegressor(RegressorMixin, OfNumbers, KernelPredictor):
    """What all regressors do once costs are known: learn, and predict."""

    _STEP_2: ClassVar[str] = "Step 2 (regression weights)"

    def _look_at_held_out(
        self,
        learner: Learner,
        kernel: Kernel,
        C_kernel: float,
        setting: str,
        data: TrainingRows | None,
    ) -> None:
        """Keep how far off held-out rows are, for intervals; mix with grown ferns by them."""
        C, progress, rows = self.C_, learner.progress, learner.rows
        with progress.stage("held-out rows"):
            found = progress.recall(
                f"held-out rows, {setting}",
                HeldOut,
                lambda: held_out(learner, kernel, C_kernel, C),
            )
        self.grown_share_ = 0.0
        if data is not None and self._mixes(data) and found.rows.size == rows.n_rows:
            found = self._mix(data, rows, found, progress)
        y, weights = rows.y[found.rows], rows.weights[found.rows]
        self._set_residuals(Residuals.of(rows.numbers, y, found.scores, weights))

    def _suggested_cost(self, choice: Choice | None, learner: Learner) -> float:
        C = super()._suggested_cost(choice, learner)
        # What a choice knows is the cost of a squared error.
        if choice is None or self.loss == "squared_error":
            return C
        with learner.progress.stage("choice of the cost"):
            return best_cost(learner.merged, 1.0, C)

    def _mixes(self, data: TrainingRows) -> bool:
        """Say whether grown ferns may be mixed with drawn ones."""
        is_free = self.maps == "auto" and self.theta == "ones" and not self.has_costs
        return is_free and self.device == "cpu" and not data.rows.in_files

    def _mix(
        self, data: TrainingRows, rows: LabelledRows, drawn: HeldOut, progress: Progress
    ) -> HeldOut:
        """Add grown ferns to the model, with the share that suits held-out rows best."""
        assert rows.origins is not None
        place = np.argsort(rows.origins)
        own = replace(data.some(rows.origins[place]), weights=rows.weights[place])
        grown = np.empty_like(drawn.scores)
        folds = hash_folds(rows)[place]
        for fold in np.unique(folds):
            outside = np.flatnonzero(folds == fold)
            inside = np.flatnonzero(folds != fold)
            if not inside.size:
                return drawn
            part = self._grown(own.some(inside), progress, f"growth, fold {fold}")
            grown[place[outside]] = self._grown_scores(part, own.some(outside))
        ordered = np.empty_like(drawn.scores)
        ordered[drawn.rows] = drawn.scores
        share = best_share(rows, ordered, grown)
        if share:
            self._join(self._grown(data, progress), share, data)
        scores = (1.0 - share) * ordered + share * grown
        return HeldOut(scores, np.arange(rows.n_rows))

    def _join(self, grown: GrownMaps, share: float, data: TrainingRows) -> None:
        """Mix the model with that of grown ferns."""
        assert data.numbers is not None
        weights, intercept = data.numbers.given(grown.path, grown.intercept)
        prior = grown.prior()
        theta = prior / prior.sum() if prior.any() else prior
        self._maps = MapSet((*self._maps.families, grown.plain()))
        self.theta_ = np.concatenate([(1.0 - share) * self.theta_, share * theta])
        self.n_maps_ = self._maps.n_maps
        self.coef_ = np.hstack([(1.0 - share) * self.coef_, share * weights.T])
        self.intercept_ = (1.0 - share) * self.intercept_ + share * intercept
        self.grown_share_ = share
        self._set_predictor()

    def _look_at_growth(self, data: TrainingRows, grown: GrownMaps) -> None:
        y, scores = grown.held_out_y, grown.held_out_scores
        self.grown_share_ = 1.0
        self._set_residuals(Residuals.of(data.numbers, y, scores, np.ones(len(y))))

    def _set_residuals(self, residuals: Residuals) -> None:
        self.residuals_, self.n_held_out_ = residuals.values, residuals.n_rows

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
        return self._as_given(self._means(X))

    def predict_interval(self, X, coverage=0.9):
        """Return intervals that hold the numbers of this share of new samples.

        Residuals of rows that took no part in learning are added to the predictions (for
        counts, in units of the square root of the prediction): as many of them are outside on
        either side as new ones will be. That is so for samples like those of `fit` on the whole,
        not for every kind of them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9
            Between 0 and 1. With fewer than 2 / (1 - coverage) rows in `fit` no finite interval
            is sure enough, and the bounds are infinite.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper bounds.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}.")
        means = self._means(X)
        residuals = Residuals(self.residuals_, self.n_held_out_)
        unit = np.sqrt(means) if self.loss == "poisson" else 1.0
        bounds = [means + unit * side for side in residuals.bounds(float(coverage))]
        if self.loss == "poisson":
            bounds[0] = np.maximum(bounds[0], 0.0)
        return np.stack([self._as_given(bound) for bound in bounds], axis=-1)

    def _means(self, X) -> np.ndarray:
        return self._linked(self._scores(X))

    def _linked(self, scores: np.ndarray) -> np.ndarray:
        """Return predictions for scores, which are logarithms of those of counts."""
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
        progress = self._progress(X, y, weights)
        data = self._training_rows(X, y, weights, progress)
        if self.grows(data.rows.shape):
            return self._grow(data, progress)
        choice = self._choose(data, progress)
        learner = self._draw(data, choice, progress).merged
        C_kernel, C = costs_of(self, choice, learner)
        return self._learn(learner, C_kernel, C, choice, data)

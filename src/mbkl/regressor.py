"""MBKLRegressor: regression with a kernel learned as a weighted sum of binary maps."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context

from mbkl.engine import limits
from mbkl.estimator import Costs, OfNumbers, Placed, TrainingRows, estimator
from mbkl.kernel_predictor import KernelPredictor
from mbkl.learn.algorithm import Learner
from mbkl.learn.calibration import HeldOut
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.learn.progress import with_callbacks
from mbkl.learn.residuals import Residuals, best_cost, best_share, held_out
from mbkl.maps.choose import Choice
from mbkl.maps.growth import GrownMaps
from mbkl.solvers.problem import Solution


@estimator
class KernelRegressor(RegressorMixin, KernelPredictor, OfNumbers):
    """What all regressors do once costs are known: learn, and predict."""

    _STEP_2: ClassVar[str] = "Step 2 (regression weights)"
    _HELD_OUT: ClassVar[tuple[str, type]] = ("held-out rows", HeldOut)
    _LIMIT_OF_GROWTH: ClassVar[str] = "ROWS_OF_GROWTH_FOR_NUMBERS"

    def _held_out(self, learner, kernel, solution, C_kernel, C) -> HeldOut:
        return held_out(learner, kernel, C_kernel, C)

    def _look_at_held_out(
        self,
        learner: Learner,
        solution: Solution,
        held_out: HeldOut,
        data: TrainingRows | None,
    ) -> None:
        """Keep how far off held-out rows are, for intervals; mix with grown ferns by them."""
        found = self._mix(data, learner, held_out) or held_out
        numbers = learner.rows.numbers
        self._set_residuals(Residuals.of(numbers, found.y, found.scores, found.weights))

    def _suggested_cost(self, choice: Choice | None, learner: Learner) -> float:
        C = super()._suggested_cost(choice, learner)
        # What a choice knows is the cost of a squared error.
        if choice is None or self.loss == "squared_error":
            return C
        with learner.progress.stage("choice of the cost"):
            return best_cost(learner.merged, 1.0, C)

    @property
    def _rows_to_draw_for(self) -> int:
        is_ridge = self.loss == "squared_error"
        return limits.FEW_ROWS_GRAM if is_ridge else limits.FEW_ROWS_OTHER_LOSSES

    def _best_share(self, rows: LabelledRows, drawn: HeldOut, grown) -> tuple[float, float]:
        return best_share(rows.numbers, drawn, grown), 1.0

    def _look_at_growth(self, data: TrainingRows, grown: GrownMaps) -> None:
        y, scores = grown.held_out_y, grown.held_out_scores.astype(np.float64)
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

    def score(self, X, y, sample_weight=None):
        """Return the coefficient of determination, R2.

        Parameters
        ----------
        X : {dataframe, array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        score : float
            1 at best, 0 for always saying the mean.
        """
        return super().score(X, y, sample_weight)

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = tags.target_tags.multi_output = True
        tags.target_tags.positive_only = self.loss == "poisson"
        # Scores are R2, which is not for quantiles away from the middle.
        tags.regressor_tags.poor_score = self.loss == "quantile"
        return tags

    def _linked(self, scores: np.ndarray) -> np.ndarray:
        """Return predictions for scores, which are logarithms of those of counts."""
        return np.exp(scores) if self.loss == "poisson" else scores

    def _as_given(self, columns: np.ndarray) -> np.ndarray:
        return columns if self.is_multi_output_ else columns[:, 0]


@estimator
class MBKLRegressor(Costs, Placed, KernelRegressor):
    """Regression with a kernel learned as a weighted sum of binary maps.

    The kernel counts, with weights theta, the maps on which two samples agree:
    K(x, z) = sum_k theta_k [map_k(x) == map_k(z)]. With the squared error, Step 2 is a kernel ridge
    regression with a free intercept; with other losses it is a quantile or a Poisson regression.
    The fitted model is a table look-up per feature or fern, in the unit of y.

    The steps of the paper carry over as follows. Step 0 sees numbers as two classes, above and
    below the mean, of which a row weighs as much as it is away from it: a map has the sign of the
    difference of the means on its two sides. Step 1 is the same l1 problem with theta >= 0, with
    the squared error of the standardised numbers whatever `loss` is; the kernel is shared by all
    targets. y is standardised within: neither its unit nor its zero matters.

    The default needs no thought. As `MBKLClassifier`, it draws stumps and ferns of which a sample
    tells how often each feature should be asked, how deep ferns should be, and C. Beside them it
    grows ferns where the gradient of the loss points, and mixes both models in the proportion
    (`grown_share_`) that is best for rows that took no part. Of more than 4,000 rows (1,500 with
    other losses) so many are drawn for, and ferns are grown on all; on more than 20,000 rows the
    grown ferns are the model.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "quantile", "poisson"}, default="squared_error"
        Loss of Step 2. "poisson" is for counts and other y >= 0: the logarithm of the
        prediction is a sum of tables.
    quantile : float, default=0.5
        Share of samples that are to be below the prediction, for loss="quantile".
    maps, n_maps, theta, theta_power
        See `MBKLClassifier`.
    init_rule : {"balanced", "median"}, default="balanced"
        Step 0, for theta="learned". "median" uses only maps of which one side has most of what is
        above the mean and the other most of what is below.
    C : float or "auto", default="auto"
        Cost of Step 2: the objective is ||w||^2 / 2 + C * 1000 * mean loss, with losses of
        standardised numbers (squared errors, half of absolute ones, and half of the Poisson
        deviance). A ridge alpha of n samples is C = n / (2000 * alpha). "auto" is
        chosen with the maps for maps="auto" and 1 otherwise; grown ferns have none unless it is a
        number.
    C_kernel : float or None, default=None
        Cost of Step 1, likewise; see `MBKLClassifier`.
    max_pairs : int, default=50_000
        Largest number of pairs (sample, target) in Step 1.
    categorical_features, tol, max_iter, max_time, checkpoint, random_state, n_jobs, verbose, device
        See `MBKLClassifier`.
    max_memory, cache_folder
        See `MBKLClassifier`.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets.
    target_names_ : list of str
        Names of the targets: those of the frame or series y was; "y", or "y0", "y1", ... without.
    grown_share_ : float
        Share of grown ferns in the model, from 0 to 1.
    residuals_ : ndarray of shape (n_values, n_outputs_)
        Quantiles, at even levels, of the residuals of rows that took no part in learning;
        `predict_interval` adds them. Those of counts are divided by the square root of the
        prediction.
    n_held_out_ : float
        How many rows these are of.
    coef_ : ndarray of shape (n_outputs_, n_weights)
        What each stump adds on its right side, and takes on its left side, and what each cell of
        each fern adds, in the unit of y (of log y for counts).
    intercept_ : ndarray of shape (n_outputs_,)
    tables_ : list of ndarray of shape (n_cells, n_outputs_)
        The same model as tables.
    n_features_in_, feature_names_in_, n_maps_, theta_, C_, feature_rates_
        See `MBKLClassifier`.
    stump_features_, stump_thresholds_, fern_features_, fern_thresholds_, table_features_
        See `MBKLClassifier`.
    feature_importances_, predictor_, n_iter_, objective_, gap_, timings_
        See `MBKLClassifier`.

    See Also
    --------
    MBKLRegressorCV : Chooses C by cross-validation.
    MBKLClassifier : The same for classes.

    Examples
    --------
    >>> from mbkl import MBKLRegressor
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(600, random_state=0)
    >>> model = MBKLRegressor(random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    >>> lower, upper = model.predict_interval(X[400:], coverage=0.9).T
    >>> bool(0.8 < ((lower <= y[400:]) & (y[400:] <= upper)).mean() < 1)
    True
    """

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn the kernel and the regression.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Missing values are NaN and have a cell of their own.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers to predict.
        sample_weight : array-like of shape (n_samples,) or None
            A weight of two means the sample twice, zero means its absence.

        Returns
        -------
        self : MBKLRegressor
        """
        X, y, weights = self._validate_rows(X, y, sample_weight)
        progress = self._progress(X, y, weights)
        data = self._training_rows(X, y, weights, progress)
        return self._fit_data(data, progress)

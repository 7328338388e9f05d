"""MBKLRegressor: regression with a kernel learned as a weighted sum of binary maps."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from mbkl.cells import operator_of
from mbkl.engine import choose_loops, limits
from mbkl.engine.rows import Rows, to_float32
from mbkl.estimator import OfNumbers, TrainingRows, estimator
from mbkl.kernel_predictor import KernelPredictor, OneCost, RowLimits, distinct_rows
from mbkl.learn.algorithm import Kernel, Learner
from mbkl.learn.calibration import HeldOut
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.learn.progress import Progress
from mbkl.learn.residuals import (
    MOST_WEIGHTS,
    AroundMean,
    Residuals,
    Spread,
    best_cost,
    best_share,
    distances,
    held_out_predictions,
    learn_spread,
    sure_shift,
)
from mbkl.maps.choose import Choice, Slopes
from mbkl.maps.families import MapSet
from mbkl.maps.grown_ferns import GrownMaps
from mbkl.maps.line import line_of, plan_of_line
from mbkl.maps.numbers import Numbers
from mbkl.predictor import TablePredictor, rows_to_predict
from mbkl.solvers.problem import Solution

_QUANTILES = ("absolute_error", "quantile")
# Quantiles farther than this from 0.5 are learned from the residuals of a mean (`AroundMean`): the
# quantile 0.5 was better without, 0.1 and 0.9 with it; none between them was measured.
_MIDDLE = 0.2
# Share of the rows with leave-one-out scores where two growths hold them out for a mixture.
_SHARE_LEFT_OUT = 0.4
# Where ferns are grown alone, one row of so many is held out to stop growth, and for intervals.
_ROWS_TO_ONE_HELD_OUT = 10


@estimator
class KernelRegressor(RegressorMixin, KernelPredictor, OfNumbers):
    """The fit of all regressors with given costs, and their predictions."""

    _STEP_2: ClassVar[str] = "Step 2 (regression weights)"
    _HELD_OUT_STAGE: ClassVar[str] = "held-out rows"

    @property
    def _row_limits(self) -> RowLimits:
        is_ridge = self.loss == "squared_error"
        draw_for = limits.ROWS_DRAWN_FOR_NUMBERS if is_ridge else limits.FEW_ROWS_OTHER_LOSSES
        return RowLimits(limits.FEWEST_ROWS_TO_MIX, draw_for, limits.ROWS_OF_GROWTH_FOR_NUMBERS)

    def _fit_data(self, data: TrainingRows, progress: Progress):
        most, shape = limits.ROWS_OF_MIXTURES_FOR_NUMBERS, data.rows.shape
        is_many = shape[0] > most and self._may_mix(shape) and not self._must_stay_in_files(data)
        if is_many and self.loss == "squared_error":
            # With so many distinct rows grown ferns gain nothing from a mixture with drawn maps.
            data = replace(data, rows=data.rows.in_memory())
            distinct, _ = distinct_rows(self._without_line(data, None, progress))
            n_rows = distinct.y.size
            if n_rows > most:
                is_held_out = np.arange(n_rows) < n_rows // _ROWS_TO_ONE_HELD_OUT  # random order
                return self._fit_growth(distinct, progress, is_held_out)
        return super()._fit_data(data, progress)

    def _fit_drawn(self, learner: Learner, *costs, **options):
        # Step 2 and the held-out scores share a kernel matrix.
        return super()._fit_drawn(learner.with_gram(), *costs, **options)

    def _n_leave_one_out(self, rows: LabelledRows, mixes: bool) -> int:
        if self.loss != "squared_error":
            return 0
        is_enough = mixes and rows.n_rows >= limits.ROWS_OF_MIXTURES
        return int(_SHARE_LEFT_OUT * rows.n_rows) if is_enough else rows.n_rows

    def _held_out_scores(self, learner, kernel, solution, C_kernel, C, mixes: bool) -> HeldOut:
        return held_out_predictions(learner, solution, C_kernel, C)

    def _use_held_out(
        self,
        learner: Learner,
        kernel: Kernel,
        solution: Solution,
        held_out: HeldOut,
        data: TrainingRows,
    ) -> None:
        """Mix with grown ferns, and learn residuals and spread from held-out scores."""
        rows = learner.rows
        assert rows.numbers is not None
        held_out = self._mix(data, learner, held_out) or held_out
        if self._is_automatic:
            held_out = self._shifted(rows.numbers, held_out)
        errors = distances(rows.numbers, held_out.y, held_out.scores)
        spread = Spread.constant(errors.shape[1])
        has_drawn_maps = self.grown_share_ < 1.0
        if rows.n_rows <= limits.FEW_ROWS_GRAM and held_out.rows is not None and has_drawn_maps:
            with learner.progress.stage("spread"):
                spread, row_spreads = learn_spread(learner.take(held_out.rows), kernel, errors)
                errors = errors / row_spreads
        self._set_residuals(spread, Residuals.of(errors * data.optimism, held_out.weights))
        self._add_line(data)

    @property
    def _may_have_line(self) -> bool:
        return self._is_automatic and self.n_maps == "auto" and self.loss == "squared_error"

    def _without_line(
        self, data: TrainingRows, choice: Choice | None, progress: Progress
    ) -> TrainingRows:
        if choice is None and self._may_have_line:
            choice = self._choose(data, progress)
        if choice is None:
            return data
        data = replace(data, optimism=choice.optimism)
        return data if choice.slopes is None else self._subtract_line(data, choice.slopes)

    def _subtract_line(self, data: TrainingRows, slopes: Slopes) -> TrainingRows:
        """Return the rows with the residuals of a line with these slopes as numbers."""
        whole = data.whole or data
        assert whole.numbers is not None
        rows, seed = self._placed_for_line(whole), whole.settings.seed
        line, codes = line_of(rows, whole.weights, slopes, seed, self.n_levels)
        scores = codes.gather(line.tables)
        numbers, y = whole.numbers.without(scores, whole.y, whole.weights)
        jumps, _ = whole.numbers.given(line.jumps, np.zeros(numbers.n_columns))
        left = (numbers.unit / whole.numbers.unit) ** 2
        line = replace(line, jumps=jumps, left=left)
        n_levels = len(numbers.values)
        changed = {"y": y, "numbers": numbers, "line": line, "optimism": data.optimism}
        whole = replace(whole, n_classes=n_levels, **changed)
        return whole if data.chosen is None else whole.some(data.chosen)

    def _placed_for_line(self, data: TrainingRows) -> Rows:
        """Return the rows with codes in memory or in files, as a device would gain nothing."""
        plan = plan_of_line(data.rows.shape)
        if self.device == "cpu" or self.max_memory is not None or data.rows.in_files:
            return self._placed(data, [plan], 1)
        rows, n_codes = data.rows.in_memory(), plan.n_codes(data.rows.shape)
        return replace(rows, X=to_float32(rows.X), loops=choose_loops(n_codes, self.n_jobs))

    def _add_line(self, data: TrainingRows) -> None:
        """Add the line that was subtracted from the numbers to the model."""
        if data.line is not None:
            maps = MapSet((*self.maps_.families, data.line.maps))
            theta = np.concatenate([self.theta_, data.line.theta])
            weights = np.concatenate([self.coef_.T, data.line.jumps])
            self._set_model(maps, theta / theta.sum(), weights, self.intercept_)

    def _draw(self, data: TrainingRows, choice, progress: Progress, n_fits: int = 1) -> Learner:
        learner = super()._draw(data, choice, progress, n_fits)
        if choice is None or not self._is_tail or not self._is_automatic or data.rows.in_files:
            return learner
        values = {each.name: getattr(learner, each.name) for each in fields(Learner)}
        return AroundMean(**values, row_cost=choice.cost)

    @property
    def _is_tail(self) -> bool:
        """Whether the loss is that of a quantile far from the middle."""
        return self.loss == "quantile" and abs(self.quantile - 0.5) > _MIDDLE

    def _suggested_cost(self, choice: Choice | None, learner: Learner) -> float:
        C = super()._suggested_cost(choice, learner)
        # The cost of the choice is that of a squared error.
        if choice is None or self.loss == "squared_error":
            return C
        with learner.progress.stage("choice of the cost"):
            return best_cost(learner.merged, 1.0, C)

    def _best_share(self, rows: LabelledRows, drawn: HeldOut, grown) -> tuple[float, float]:
        return best_share(rows.numbers, drawn, grown), 1.0

    def _use_growth(
        self, data: TrainingRows, grown: GrownMaps, is_held_out, progress: Progress
    ) -> None:
        assert data.numbers is not None
        y, scores = grown.held_out_y, grown.held_out_scores.astype(np.float64)
        held_out = self._shifted(data.numbers, HeldOut(scores, y, np.ones(len(y)), None))
        errors, weights = distances(data.numbers, y, held_out.scores), held_out.weights
        spread = Spread.constant(errors.shape[1])
        if is_held_out is not None and grown.n_maps:
            rows = data.some(np.flatnonzero(is_held_out))
            spread, row_spreads = self._spread_of_growth(rows, grown, errors, progress)
            errors, weights = errors / row_spreads, rows.weights
        self._set_residuals(spread, Residuals.of(errors * data.optimism, weights))
        self._add_line(data)

    def _spread_of_growth(
        self, data: TrainingRows, grown: GrownMaps, errors: np.ndarray, progress: Progress
    ) -> tuple[Spread, np.ndarray]:
        """Return the spread learned from rows that growth held out, and its values at these."""
        (maps,) = MapSet((grown.plain(),)).first(MOST_WEIGHTS).families
        rows = rows_to_predict(data.rows.in_memory().X, MapSet((maps,)), self.n_jobs)
        labelled = self._labelled(operator_of(maps.codes(rows), maps.cells), data)
        # Ferns whose weights all ended at zero are useful for the spread, too.
        theta = np.maximum(grown.prior()[: maps.n_maps], np.finfo(float).tiny)
        learner = Learner(labelled, theta, data.settings, progress)
        return learn_spread(learner, Kernel(theta / theta.sum()), errors)

    def _shifted(self, numbers: Numbers, held_out: HeldOut) -> HeldOut:
        """Shift the intercept of a quantile that held-out rows show to be significantly off."""
        if self.loss not in _QUANTILES or not len(held_out.y):
            return held_out
        shift = sure_shift(numbers, held_out.y, held_out.scores, held_out.weights)
        intercept = self.intercept_ + numbers.unit * shift
        self._set_model(self.maps_, self.theta_, self.coef_.T, intercept)
        return replace(held_out, scores=held_out.scores + shift)

    def _set_residuals(self, spread: Spread, residuals: Residuals) -> None:
        self.residuals_, self.n_held_out_ = residuals.values, residuals.n_rows
        self.spread_coef_, self.spread_intercept_ = spread.weights.T, spread.intercept

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

        Quantiles of the residuals of held-out rows are added to the predictions, times the spread
        at the sample (and for counts times the square root of the prediction). The coverage holds
        on average over samples like those of `fit`, not for every group of them. The spread is
        learned from the same residuals; it is the same everywhere for grown ferns on more than
        20,000 rows, and for given maps with more than 5,000 rows.

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
        unit = self._spreads(X) * (np.sqrt(means) if self.loss == "poisson" else 1.0)
        bounds = [means + unit * side for side in residuals.bounds(float(coverage))]
        if self.loss == "poisson":
            bounds[0] = np.maximum(bounds[0], 0.0)
        return np.stack([self._as_given(bound) for bound in bounds], axis=-1)

    def _spreads(self, X) -> np.ndarray | float:
        """Return the spread of each row, by which residuals are multiplied; one in the mean."""
        if not self.spread_coef_.size:
            return 1.0
        weights = self.spread_coef_.T
        maps = self.maps_.first(len(weights))
        predictor = TablePredictor(maps, maps.tables(weights), self.spread_intercept_, self.n_jobs)
        return np.exp(self._scores(X, predictor))

    def with_spreads(self) -> TablePredictor:
        """Return a predictor of the scores and, beside them, of the logarithms of the spreads."""
        if not self.spread_coef_.size:
            return self.predictor_
        spreads = np.zeros_like(self.coef_)
        spreads[:, : self.spread_coef_.shape[1]] = self.spread_coef_
        tables = self.maps_.tables(np.vstack([self.coef_, spreads]).T)
        intercept = np.concatenate([self.intercept_, self.spread_intercept_])
        return TablePredictor(self.maps_, tables, intercept, self.n_jobs)

    def _means(self, X) -> np.ndarray:
        return self._linked(self._scores(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = tags.target_tags.multi_output = True
        tags.target_tags.positive_only = self.loss == "poisson"
        # The score is R2, which predictions of quantiles do not maximise.
        tags.regressor_tags.poor_score = self.loss == "quantile"
        return tags

    def _linked(self, scores: np.ndarray) -> np.ndarray:
        """Return the predictions for scores: the exponential of those of counts."""
        return np.exp(scores) if self.loss == "poisson" else scores

    def _as_given(self, columns: np.ndarray) -> np.ndarray:
        return columns if self.is_multi_output_ else columns[:, 0]


@estimator
class MBKLRegressor(OneCost, KernelRegressor):
    """Regression with a kernel learned as a weighted sum of binary maps.

    The kernel counts, with weights theta, the maps on which two samples agree:
    K(x, z) = sum_k theta_k [map_k(x) == map_k(z)]. With the squared error, Step 2 is a kernel ridge
    regression with a free intercept; with other losses it is a quantile or a Poisson regression.
    The fitted model is a table look-up per feature or fern, in the unit of y.

    The steps of the paper carry over as follows. Step 0 sees numbers as two classes, above and
    below the mean, in which a row weighs as much as its distance from the mean: a map has the sign
    of the difference of the means on its two sides. Step 1 is the same l1 problem with theta >= 0,
    with the squared error of the standardised numbers for any `loss`; all targets share the kernel.
    y is standardised internally: neither its unit nor its zero matters.

    The defaults need no tuning. As in `MBKLClassifier`, stumps and ferns are drawn, and a sample
    chooses how often each feature is drawn, the depth of the ferns, and C. Ferns are also grown by
    the gradient of the loss, and both models are mixed with the share (`grown_share_`) that is best
    on held-out rows. With more than 4,000 rows (1,500 with other losses than the squared error)
    maps are drawn for so many, and ferns are grown on all; on more than 10,000 rows (20,000 with
    other losses) the grown ferns are the whole model. With the squared error a straight line in the
    features is subtracted from y first, and added to the model as stumps, if it helps on the
    sample. Quantiles below 0.3 and above 0.7 are learned from the residuals of a regression of the
    mean, as few rows are beyond them; all quantiles are shifted if significantly too many held-out
    rows are on one side.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "quantile", "poisson"}, default="squared_error"
        Loss of Step 2. "poisson" is for counts and other y >= 0: the logarithm of the
        prediction is a sum of tables.
    quantile : float, default=0.5
        Share of samples that are to be below the prediction, for loss="quantile".
    maps, n_maps, theta, theta_shrinkage, theta_power
        See `MBKLClassifier`.
    init_rule : {"balanced", "median"}, default="balanced"
        Step 0, for theta="learned". "median" uses only maps with the majority of the distances
        above the mean on one side and that of the distances below on the other.
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
        Names of the targets, from the frame or series y; without names "y", or "y0", "y1", ...
    grown_share_ : float
        Share of grown ferns in the model, from 0 to 1.
    residuals_ : ndarray of shape (n_values, n_outputs_)
        Quantiles, at even levels, of the residuals of rows that took no part in learning, divided
        by their spread; `predict_interval` adds them. Those of counts are divided by the square
        root of the prediction too.
    spread_coef_ : ndarray of shape (n_outputs_, n_spread_weights)
        The logarithm of the spread as weights of the first maps, as `coef_` has them; none where
        it is the same everywhere. It is one in the mean.
    spread_intercept_ : ndarray of shape (n_outputs_,)
    n_held_out_ : float
        Effective number of rows with these residuals.
    coef_ : ndarray of shape (n_outputs_, n_weights)
        Stumps: added on the right side, subtracted on the left side. Ferns: added in each cell. In
        the unit of y (of log y for counts).
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

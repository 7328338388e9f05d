"""MBKLClassifier: Multiple Binary Kernel Learning as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mbkl.calibration import fit_temperature, held_out_scores
from mbkl.engine import choose_engine
from mbkl.learn.algorithm import Kernel, Learner, Settings, warn_if_not_converged
from mbkl.learn.tables import Ladder, StumpOperator
from mbkl.maps import Stumps
from mbkl.predictor import TablePredictor
from mbkl.progress import CallbackSupportMixin, Progress, with_callbacks
from mbkl.solvers.newton_cg import Solution


def default_n_maps(n_features: int) -> int:
    """Return the number of maps that `n_maps="auto"` draws.

    64 maps a feature are fine steps; time hardly grows with their number.

    Examples
    --------
    >>> default_n_maps(4), default_n_maps(558), default_n_maps(10**6)
    (2000, 35712, 200000)
    """
    return min(max(64 * n_features, 2_000), 200_000)


def _has_probabilities(estimator) -> bool:
    if estimator.calibration is None and estimator.loss != "logistic":
        raise AttributeError(
            "predict_proba needs calibration='temperature' or loss='logistic', set before fit."
        )
    return True


class BinaryMapsMixin:
    """What all estimators share: drawing maps, binning, and the learner."""

    _parameter_constraints: dict = {
        "maps": [StrOptions({"auto", "stumps"}), Stumps],
        "n_maps": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "theta": [StrOptions({"learned", "ones", "reweighted", "alignment"})],
        "init_rule": [StrOptions({"balanced", "median"})],
        "negatives_per_positive": [Interval(Integral, 1, None, closed="left")],
        "max_pairs": [Interval(Integral, 2, None, closed="left")],
        "loss": [StrOptions({"squared_hinge", "hinge", "logistic"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def _family(self) -> Stumps:
        return self.maps if isinstance(self.maps, Stumps) else Stumps()

    def _validate_rows(self, X, y, sample_weight):
        """Return X, y and the sample weights as arrays."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
        )
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any():
            raise ValueError("sample_weight has negative entries; weights must be at least zero.")
        return X, y, weights

    def _encode(self, y, weights):
        """Return class numbers, and the weights times those of the classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            found = f"one class, {self.classes_[0]}" if self.classes_.size else "no class"
            raise ValueError(
                "Training needs rows of at least two classes with positive weight, "
                f"but y has {found}."
            )
        if self.class_weight is None:
            return codes, weights
        factors = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=weights
        )
        if not (factors > 0).all():
            raise ValueError("class_weight must be positive for every class in y.")
        return codes, weights * factors[codes]

    def _learner(self, X, y, weights, progress: Progress, n_fits: int = 1) -> Learner:
        """Draw the maps, bin the rows of positive weight and put the two together."""
        present = weights > 0
        if not present.all():
            X, y, weights = X[present], y[present], weights[present]
        y, weights = self._encode(y, weights)
        settings = self._settings()
        n_columns = 1 if self.classes_.size == 2 else self.classes_.size
        with progress.stage("binary maps"):
            n_codes = min(X.shape[0] * X.shape[1], 2**62)
            engine = choose_engine(n_codes * n_columns * n_fits, self.n_jobs)
            n_maps = default_n_maps(X.shape[1]) if self.n_maps == "auto" else self.n_maps
            self._maps, codes = self._family().fit_codes(X, weights, n_maps, settings.seed, engine)
        if not self._maps.n_maps:
            warnings.warn(
                "No feature of X varies over the rows with positive weight; "
                "the model is constant.",
                UserWarning,
                stacklevel=3,
            )
        ladder = Ladder(codes.offsets)
        multiplicity = np.zeros(ladder.n_cells)
        multiplicity[ladder.is_jump] = self._maps.multiplicity
        operator = StumpOperator(codes, ladder, engine)
        return Learner(operator, multiplicity, y, self.classes_.size, weights, settings, progress)

    def _settings(self) -> Settings:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return Settings(
            self.theta,
            self.init_rule,
            getattr(self, "theta_power", 0.5),
            self.loss,
            self.negatives_per_positive,
            self.max_pairs,
            self.tol,
            self.max_iter,
            seed,
        )

    def _keep(self, learner: Learner, kernel: Kernel) -> np.ndarray:
        """Drop maps of zero weight; set the attributes that describe the kernel."""
        kept = kernel.theta > 0
        self._maps = self._maps.select(kept[learner.operator.ladder.is_jump])
        self.theta_ = kernel.theta[kept]
        self.n_maps_ = int(kept.sum())
        self.stump_features_ = self._maps.stump_features
        self.stump_thresholds_ = self._maps.edges.thresholds
        if kernel.solution is not None:
            warn_if_not_converged(
                "Step 1 (kernel weights)", kernel.solution.relative_gap, learner.settings
            )
        return kept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


class MBKLClassifier(BinaryMapsMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """SVM that learns its kernel as a weighted sum of random binary maps.

    The kernel counts, with weights theta, the maps on which two samples agree:
    K(x, z) = sum_k theta_k [map_k(x) == map_k(z)]. Step 0 finds on which side of
    each map each class lies, Step 1 learns theta >= 0 for all classes together,
    Step 2 trains one-vs-rest SVMs with the kernel. Nothing of size samples times
    maps is ever formed, and the fitted model is a table look-up per feature.

    Parameters
    ----------
    maps : {"auto", "stumps"} or Stumps, default="auto"
        Family of binary maps. "auto" means random decision stumps as in the paper.
    n_maps : int or "auto", default="auto"
        Number of random maps drawn. "auto" is 64 a feature, at least 2,000 and at
        most 200,000. Time hardly grows with it, and more maps do not over-fit.
    theta : {"learned", "ones", "reweighted", "alignment"}, default="learned"
        Kernel weights. "learned" is Step 1 of the paper. "ones" gives all maps the
        same weight. "reweighted" starts from there and moves the weights to the
        norms of the maps' jumps, twice. "alignment" weighs each map by how well it
        alone tells the classes apart, without optimisation.
    init_rule : {"balanced", "median"}, default="balanced"
        Step 0. "balanced" puts each class on the side of a map where its share is
        larger. "median" uses only maps with the majority of the class on one side
        and that of the rest on the other: the table of the paper, sign corrected.
    theta_power : {0, 0.5, 1}, default=0.5
        Feature map of Step 2: maps times theta to this power. 0.5 is the kernel
        above, 1 is Step 2 as printed in the paper, 0 uses theta for selection only.
    C : float, default=1.0
        Cost of Step 2. Theta sums to one and losses are averaged, so that C means
        the same for any number of maps and samples; the objective of a class is
        ||w||^2 / 2 + C * 1000 * mean loss, that of a usual SVM at 1,000 samples.
    C_kernel : float or None, default=None
        Cost of Step 1, likewise: sum of theta + C_kernel * 1000 * mean loss. None
        means C.
    negatives_per_positive : int, default=2
        With three or more classes Step 1 learns from pairs (sample, class): each
        sample with its own class and with this many wrong ones.
    max_pairs : int, default=50_000
        Largest number of pairs (samples, for two classes) in Step 1. Beyond that a
        class-balanced part is drawn.
    loss : {"squared_hinge", "hinge", "logistic"}, default="squared_hinge"
        Loss of both steps.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights by class.
    calibration : {"temperature"} or None, default=None
        "temperature" makes `predict_proba` available: scores are divided by one
        number, learned on held-out parts of the training data. It cannot change
        which class is most probable.
    tol : float, default=1e-3
        Both steps stop when the duality gap is below tol times the objective.
    max_iter : int, default=200
        Largest number of Newton iterations of each step.
    random_state : int, RandomState instance or None, default=None
        Seed of the maps and of the pairs.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores. The result is the same, to
        the bit, for any number.
    verbose : int, default=0
        1 prints a line a stage, 2 also one an iteration.
    device : {"cpu"}, default="cpu"
        Where to compute.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string names.
    n_maps_ : int
        Number of maps kept, those with positive theta.
    theta_ : ndarray of shape (n_maps_,)
        Kernel weights of the kept maps; they sum to one.
    stump_features_, stump_thresholds_ : ndarray of shape (n_maps_,)
        Map k is x[stump_features_[k]] > stump_thresholds_[k]; a threshold of -inf
        asks whether the value is not missing.
    coef_ : ndarray of shape (1 or n_classes, n_maps_)
        What each map adds to the score of a class on its right side, and takes
        from it on its left side.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercepts.
    tables_ : list of ndarray of shape (n_cells, 1 or n_classes)
        The same model as a table for each feature in `table_features_`.
    table_features_ : ndarray
        Feature of each table.
    predictor_ : TablePredictor
        The model without input validation, for calls where microseconds count.
    temperature_ : float
        Divisor of the scores in `predict_proba`, if calibrated.
    n_iter_ : ndarray of shape (2,)
        Newton iterations of Steps 1 and 2.
    objective_ : ndarray of shape (2,)
        Objectives of Steps 1 and 2 (summed over classes); NaN for a step not run.
    gap_ : ndarray of shape (2,)
        Relative duality gaps, certificates of how near the optimum they are.
    timings_ : dict
        Seconds of each stage.

    See Also
    --------
    MBKLClassifierCV : Chooses C by cross-validation on a warm-started path.
    MBKernel : The learned kernel by itself, for other tasks.

    References
    ----------
    G. Roig, X. Boix, L. Van Gool. "Random Decision Stumps for Kernel Learning and
    Efficient SVM." ACCV 2014.

    Examples
    --------
    >>> from mbkl import MBKLClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = MBKLClassifier(random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.94
    True
    """

    _parameter_constraints: dict = {
        **BinaryMapsMixin._parameter_constraints,
        "theta_power": [Interval(Real, 0, 1, closed="both")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "C_kernel": [Interval(Real, 0.0, None, closed="neither"), None],
        "calibration": [StrOptions({"temperature"}), None],
        "device": [StrOptions({"cpu"})],
    }

    def __init__(
        self,
        *,
        maps="auto",
        n_maps="auto",
        theta="learned",
        init_rule="balanced",
        theta_power=0.5,
        C=1.0,
        C_kernel=None,
        negatives_per_positive=2,
        max_pairs=50_000,
        loss="squared_hinge",
        class_weight=None,
        calibration=None,
        tol=1e-3,
        max_iter=200,
        random_state=None,
        n_jobs=None,
        verbose=0,
        device="cpu",
    ):
        self.maps = maps
        self.n_maps = n_maps
        self.theta = theta
        self.init_rule = init_rule
        self.theta_power = theta_power
        self.C = C
        self.C_kernel = C_kernel
        self.negatives_per_positive = negatives_per_positive
        self.max_pairs = max_pairs
        self.loss = loss
        self.class_weight = class_weight
        self.calibration = calibration
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.device = device

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn the kernel and the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Missing values are NaN and have a cell of their own.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None
            A weight of two means the sample twice, zero means its absence.

        Returns
        -------
        self : MBKLClassifier
        """
        X, y, weights = self._validate_rows(X, y, sample_weight)
        learner = self._learner(X, y, weights, Progress(self)).canonical()
        C_kernel = self.C if self.C_kernel is None else self.C_kernel
        kernel = learner.learn_kernel(C_kernel)
        solution = learner.learn_classifier(kernel, self.C)
        return self._finish(learner, kernel, solution, C_kernel, self.C)

    def _finish(
        self, learner: Learner, kernel: Kernel, solution: Solution, C_kernel: float, C: float
    ):
        """Calibrate, collapse to tables and set the learned attributes."""
        progress = learner.progress
        self.temperature_ = 1.0
        if self.calibration is not None:
            with progress.stage("calibration"):
                scores, rows = held_out_scores(learner, C_kernel, C)
                self.temperature_ = fit_temperature(scores, learner.y[rows], learner.weights[rows])
        with progress.stage("tables"):
            kept = self._keep(learner, kernel)
            warn_if_not_converged(
                "Step 2 (classifier weights)", solution.relative_gap, learner.settings
            )
            self.coef_ = solution.jumps[kept].T
            self.intercept_ = solution.intercept
            first = kernel.solution
            self.n_iter_ = np.array([first.n_iter if first else 0, solution.n_iter])
            self.objective_ = np.array([first.objective if first else np.nan, solution.objective.sum()])
            self.gap_ = np.array([first.relative_gap if first else 0.0, solution.relative_gap])
            self.predictor_ = TablePredictor(
                self._maps, self._tables(), self.intercept_, self.n_jobs
            )
        self.timings_ = progress.finish()
        return self

    def _tables(self) -> np.ndarray:
        ladder = Ladder(self._maps.edges.cell_offsets)
        jumps = np.zeros((ladder.n_cells, self.intercept_.size))
        jumps[ladder.is_jump] = self.coef_.T
        return ladder.tables(jumps) if ladder.n_cells else jumps

    @property
    def table_features_(self):
        """Feature of each table."""
        check_is_fitted(self)
        return self._maps.features

    @property
    def tables_(self):
        """Table of each used feature: what each of its cells adds to the scores."""
        check_is_fitted(self)
        return np.split(self.predictor_.tables, self._maps.edges.cell_offsets[1:-1])

    def decision_function(self, X):
        """Return the scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, one score: positive means the second class.
        """
        scores = self._scores(X)
        return scores[:, 0] if self.classes_.size == 2 else scores

    def predict(self, X):
        """Return the class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        scores = self._scores(X)
        best = (scores[:, 0] > 0).astype(int) if self.classes_.size == 2 else scores.argmax(axis=1)
        return self.classes_[best]

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Return class probabilities: the scores, divided by the temperature.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        scores = self._scores(X) / self.temperature_
        if self.classes_.size == 2:
            second = expit(scores[:, 0])
            return np.column_stack([1.0 - second, second])
        return softmax(scores, axis=1)

    def _scores(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
        )
        return self.predictor_.scores(X)

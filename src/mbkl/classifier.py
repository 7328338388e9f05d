"""MBKLClassifier: Multiple Binary Kernel Learning as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from mbkl.engine import limits
from mbkl.engine.rows import ArrayRows
from mbkl.estimator import OfClasses, TrainingRows, estimator, parameter
from mbkl.kernel_predictor import KernelPredictor, OneCost, RowLimits
from mbkl.learn.algorithm import Kernel, Learner
from mbkl.learn.calibration import (
    THEORETICAL,
    Calibration,
    HeldOut,
    best_mixture,
    fit_rule,
    held_out_scores,
    left_out_scores,
    log_probabilities,
)
from mbkl.learn.progress import Progress
from mbkl.maps.families import families_of
from mbkl.maps.grown_ferns import GrownMaps
from mbkl.solvers.problem import Solution


def has_probabilities(model) -> bool:
    """Say whether a classifier has probabilities; raise an error with the remedy if not."""
    is_grown = getattr(model, "C_", 1.0) == 0 and model.grows_by_log_loss
    if model.calibration is None and model.loss != "logistic" and not is_grown:
        raise AttributeError(
            "predict_proba needs calibration='auto' or 'temperature', or loss='logistic', set "
            "before fit."
        )
    return True


def best_class(scores: np.ndarray) -> np.ndarray:
    """Return the number of the class with the best score.

    >>> best_class(np.array([[0.5], [-0.5]])), best_class(np.array([[1.0, 3.0, 2.0]]))
    (array([1, 0]), array([1]))
    """
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


@estimator
class KernelClassifier(ClassifierMixin, KernelPredictor, OfClasses):
    """The fit of all classifiers with given costs, and their predictions."""

    calibration: str | None = parameter(StrOptions({"auto", "temperature"}), None, default="auto")

    _HELD_OUT_STAGE: ClassVar[str] = "calibration"

    @property
    def _row_limits(self) -> RowLimits:
        # Maps are drawn for all rows that may be mixed.
        return RowLimits(limits.ROWS_OF_MIXTURES, limits.ROWS_OF_GROWTH, limits.ROWS_OF_GROWTH)

    def _fit_data(self, data: TrainingRows, progress: Progress):
        shape = data.rows.shape
        plans = [] if self.maps == "auto" else self.plans(shape)
        is_in_folds = self.calibration == "temperature" and not self.grows(shape)
        if is_in_folds and any(plan.is_grown for plan in plans):
            raise ValueError(
                "calibration='temperature' needs maps that have not seen the labels of held-out "
                "rows; with grown ferns use C='auto' and maps='grown' alone, which need none."
            )
        return super()._fit_data(data, progress)

    def _use_held_out(
        self,
        learner: Learner,
        kernel: Kernel,
        solution: Solution,
        held_out: HeldOut,
        data: TrainingRows,
    ) -> None:
        mixed = self._mix(data, learner, held_out)
        if mixed is None or not self.grown_share_:
            rule = fit_rule(held_out, self.calibration, is_mixed=False)
            scores = self._scores_of_sample(data, limits.ROWS_TO_TRY)
            if scores is None or np.count_nonzero(self._how_often(scores)) == 1:
                scores = learner.scores(solution)
        else:
            rule, scores = fit_rule(mixed, self.calibration), mixed.scores
        self.temperature_, self.offset_ = rule.temperature, rule.offset
        self._warn_if_one_class(scores)

    def _n_leave_one_out(self, rows, mixes: bool) -> int:
        return limits.ROWS_LEFT_OUT if mixes or self.calibration == "auto" else 0

    def _is_for_cpu(self, shape: tuple[int, int]) -> bool:
        # Only the solver on the CPU has the leave-one-out scores that mixtures need.
        return shape[0] >= self._row_limits.mix_from and self._may_mix(shape)

    def _held_out_scores(self, learner, kernel, solution, C_kernel, C, mixes: bool) -> HeldOut:
        if self.calibration == "temperature" and not mixes:
            return held_out_scores(learner, C_kernel, C)
        if (self.calibration is None or self.loss == "logistic") and not mixes:
            return HeldOut(np.empty((0, 1)), np.empty(0, np.intp), np.empty(0), None)
        return left_out_scores(learner, kernel, C, solution, mixes)

    def _best_share(self, rows, drawn: HeldOut, grown) -> tuple[float, float]:
        return best_mixture(drawn, grown)

    def _use_growth(self, data: TrainingRows, grown: GrownMaps, is_held_out, progress) -> None:
        rule = Calibration() if self.grows_by_log_loss else THEORETICAL
        self.temperature_, self.offset_ = rule.temperature, rule.offset
        scores = self._scores_of_sample(data, 0)
        if scores is not None:
            self._warn_if_one_class(scores)

    def _scores_of_sample(self, data: TrainingRows, few: int) -> np.ndarray | None:
        """Return the scores of a sample of rows in memory; None of few rows, or rows elsewhere."""
        if not isinstance(data.rows, ArrayRows) or data.rows.shape[0] <= few:
            return None
        step = max(data.rows.shape[0] // limits.ROWS_TO_TRY, 1)
        return self.predictor_.scores(data.rows.X[::step])

    def _how_often(self, scores: np.ndarray) -> np.ndarray:
        """Return for how many rows each class has the best score."""
        return np.bincount(best_class(scores), minlength=self.classes_.size)

    def _warn_if_one_class(self, scores: np.ndarray) -> None:
        """Warn of a model that has maps and predicts one class for all rows."""
        predicted = np.flatnonzero(self._how_often(scores))
        if self.n_maps_ and predicted.size == 1:
            warnings.warn(
                f"The model says {self.classes_[predicted[0]]} for all rows that it was tried on. "
                "Use a larger C, class_weight='balanced' for rare classes, or the probabilities.",
                UserWarning,
                stacklevel=4,
            )

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
        best = best_class(self._scores(X))
        return self.classes_[best]

    @property
    def grows_by_log_loss(self) -> bool:
        """Whether grown ferns minimise the log loss, so that their scores are log odds."""
        families = [] if self.maps == "auto" else families_of(self.maps)
        return all(getattr(each, "objective", "log_loss") == "log_loss" for each in families)

    @property
    def probability_rule(self) -> str:
        """How scores become probabilities: "softplus", "softmax" or "one-vs-rest"."""
        if self.offset_ is not None:
            return "softplus"
        is_softmax = self.calibration == "temperature" or self.grown_share_ > 0
        return "softmax" if is_softmax else "one-vs-rest"

    @available_if(has_probabilities)
    def predict_proba(self, X):
        """Return class probabilities; the predicted class has the largest.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if self.probability_rule == "one-vs-rest" and self.classes_.size > 2:
            # One-vs-rest probabilities of the logistic loss, made to sum to one.
            probabilities = expit(scores)
            probabilities /= probabilities.sum(axis=1, keepdims=True)
        else:
            probabilities = np.exp(log_probabilities(scores, self.temperature_, self.offset_))
        # Scores that differ in their last digits may give equal probabilities: break these ties.
        best, rows = best_class(scores), np.arange(len(scores))
        tied = np.flatnonzero(probabilities.argmax(axis=1) != best)
        probabilities[rows[tied], best[tied]] = np.nextafter(probabilities[tied].max(axis=1), 1.0)
        return probabilities


@estimator
class MBKLClassifier(OneCost, KernelClassifier):
    """SVM that learns its kernel as a weighted sum of random binary maps.

    The kernel counts, with weights theta, the maps on which two samples agree:
    K(x, z) = sum_k theta_k [map_k(x) == map_k(z)]. Step 0 finds on which side of
    each map each class lies, Step 1 learns theta >= 0 for all classes together,
    Step 2 trains one-vs-rest SVMs with the kernel. No matrix of samples by maps is
    formed (except for a few hundred samples), and the fitted model is a table look-up
    per feature or fern.

    The defaults need no tuning. The drawn maps are stumps, each a question about one feature, and
    ferns, each of which joins several questions and so represents interactions. With infinitely
    many maps their kernel has a closed form. Ridge regressions with this kernel on a sample of
    1,000 rows choose, by leave-one-out errors, how often each feature is drawn, the depth of the
    ferns, the share of stumps, and C. From 2,000 rows on ferns are also grown, and both models are
    mixed with the share (`grown_share_`) that is best on 500 held-out rows. On more than 5,000 rows
    grown ferns are the whole model: each fern is chosen by the gradient of the log loss, and the
    model is their sum (`C_` is 0 and probabilities need no calibration; see
    `mbkl.maps.GrownFerns`). The model of the paper is
    ``MBKLClassifier(maps="stumps", theta="learned", theta_shrinkage=0, C=1.0)``.

    Parameters
    ----------
    maps : "auto", {"stumps", "categories", "ferns", "grown", "projections"}, family or list, \
            default="auto"
        Family of binary maps: a name, an instance of `Stumps`, `Categories`, `Ferns`,
        `GrownFerns` or `Projections`, or a list of these for a joint model with one theta over all.
        "auto" is described above.
    n_maps : int or "auto", default="auto"
        Number of random maps drawn, of each family. "auto" is 64 stumps a feature, at
        least 2,000 and at most 200,000, and 2,000 ferns; with maps="auto" from 4,000
        ferns for a few rows to 1,000 for many, and fewer beyond 400,000 rows. More maps
        do not over-fit.
    theta : {"learned", "ones", "reweighted", "alignment"}, default="ones"
        Kernel weights. "ones" gives all maps of a family the same weight (with
        maps="auto": stumps that of their feature). "learned" is Step 1 of the paper.
        "reweighted" starts from "ones" and moves the weights to the norms of the maps'
        weights in Step 2, twice. "alignment" weighs each map by how well it alone
        separates the classes, without optimisation.
    theta_shrinkage : float in [0, 1] or "auto", default="auto"
        How far theta, if it is not "ones", is moved towards equal weights: 0 leaves it as
        learned, as in the paper, and 1 makes it equal. Sparse weights lose the information of
        the maps without weight; a mean of both keeps it. "auto" is 0.9.
    init_rule : {"balanced", "median"}, default="balanced"
        Step 0. "balanced" puts each class on the side of a map where its share is
        larger. "median" uses only maps with the majority of the class on one side
        and that of the rest on the other: the table of the paper, sign corrected.
    theta_power : {0, 0.5, 1}, default=0.5
        Feature map of Step 2: maps times theta to this power. 0.5 is the kernel
        above, 1 is Step 2 as printed in the paper, 0 uses theta for selection only.
    C : float or "auto", default="auto"
        Cost of Step 2. "auto" is chosen with the maps for maps="auto" and 1 otherwise. Grown
        ferns have no cost, unless C is a number: then Step 2 is run with their kernel.
        Theta sums to one and losses are averaged, so that C means
        the same for any number of maps and samples; the objective of a class is
        ||w||^2 / 2 + C * 1000 * mean loss, that of a usual SVM at 1,000 samples.
    C_kernel : float or None, default=None
        Cost of Step 1, likewise: sum of theta + C_kernel * 1000 * mean loss. None
        means C, but at most 1 (and 1 for "auto"): beyond that theta hardly changes
        while Step 1 takes longer and longer.
    negatives_per_positive : int, default=2
        With three or more classes Step 1 learns from pairs (sample, class): each
        sample with its own class and with this many wrong ones.
    max_pairs : int, default=50_000
        Largest number of pairs (samples, for two classes) in Step 1. Beyond that a
        class-balanced part is drawn.
    loss : {"squared_hinge", "hinge", "logistic"}, default="squared_hinge"
        Loss of Step 2. Step 1 uses the same, but the squared hinge in place of the
        hinge, as the authors of the paper did.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights by class.
    categorical_features : "from_dtype", list of names, indices or booleans, or None, \
            default="from_dtype"
        Which columns are categories, with a cell for every level, for missing values and for new
        levels. "from_dtype" takes text, category and boolean columns of a frame and, with
        maps="auto" and dense rows in memory, whole numbers that are names, such as post codes and
        ids: more than 256 values that explain y twice as well as bins of neighbouring values. None
        takes no column.
    calibration : {"auto", "temperature"} or None, default="auto"
        How scores become probabilities, which never changes the class that is most probable.
        "auto" fits p ~ log(1 + exp((score + `offset_`) / `temperature_`)) to held-out scores of
        some rows: leave-one-out scores, which are cheap with a kernel matrix of the rows, or
        scores of a fifth of a sample by a model of the rest. Maps and theta have seen these rows.
        The logistic loss and grown ferns alone need no calibration. "temperature" fits
        softmax(score / `temperature_`) to folds that both steps have not seen, which takes three
        more fits; in mixtures with grown ferns it uses the scores of "auto". With None only the
        logistic loss and grown ferns alone have `predict_proba`.
    tol : float, default=1e-3
        Both steps stop when the duality gap is below tol times the objective.
    max_iter : int, default=200
        Largest number of Newton iterations of each step.
    max_time : float or None, default=None
        Seconds after which the steps end with what they have reached, at their next
        iteration and with a warning. The model is then not the same every time.
    checkpoint : path or None, default=None
        File for the results of finished stages. A fit that was killed goes on from
        there when it is called again with the same data and parameters, to the same
        model. The file stays; a file of another fit is an error.
    random_state : int, RandomState instance or None, default=None
        Seed of the maps and of the pairs.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean all cores. The result is the same, to
        the bit, for any number.
    verbose : int, default=0
        1 prints a line a stage, 2 also one an iteration.
    device : {"auto", "cpu", "cuda", "cuda:0", ..., "torch"}, default="cpu"
        Where to learn and predict. "cuda" needs Torch and a GPU, and is for many rows: the
        CPU is faster with few, and gets them. "auto" is "cuda" if there is a GPU that can
        take the rows. Results agree with those of the CPU within the tolerance,
        not to the bit (with the hinge loss and 16 or more classes `gap_` does not show it:
        single precision is too little for its certificate). "torch" is the same code
        without a GPU.
    max_memory : int, str or None, default=None
        Bytes, or such as "2GB", that a fit may take beyond X. Where that is too little for
        the codes of all rows (see `mbkl.estimate_memory`), they are written to files and
        read in every pass, for the same model to the bit; where it is too little even so, an
        error says how much is needed. With X in files (`mbkl.parquet.read_parquet`), codes
        always are.
    cache_folder : path or None, default=None
        For these files, which vanish after the fit; None means that of the system.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string names.
    levels_ : list of (list or None)
        Levels of each column that is a category; None for numbers.
    n_maps_ : int
        Number of maps kept, those with positive theta.
    maps_ : MapSet
        These maps, by family.
    theta_ : ndarray of shape (n_maps_,)
        Kernel weights of the kept maps; they sum to one.
    C_ : float
        The cost of Step 2.
    stump_features_, stump_thresholds_ : ndarray of shape (n_stumps,)
        Stump k is x[stump_features_[k]] > stump_thresholds_[k], with x rounded to float32; a
        threshold of -inf asks whether the value is not missing. Stumps come first with maps="auto".
    fern_features_, fern_thresholds_ : list of ndarray
        Stumps that each fern joins.
    feature_rates_ : ndarray of shape (n_features_in_,) or None
        How often features were drawn, in proportion to their importance in the choice of maps;
        with maps="auto".
    coef_ : ndarray of shape (1 or n_classes, n_weights)
        Stumps: added to the score of a class on the right side, subtracted on the left side.
        Ferns: added in each cell.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercepts.
    tables_ : list of ndarray of shape (n_cells, 1 or n_classes)
        The same model as tables, one for each feature with stumps and each fern.
    table_features_ : ndarray
        Feature of each table, -1 for ferns and projections.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much each input column brings, from the tables alone; they sum to one.
    predictor_ : TablePredictor
        The model without input validation, for calls where microseconds count.
    grown_share_ : float
        Share of grown ferns in the model, from 0 to 1.
    temperature_, offset_ : float
        The rule of `predict_proba`, see `calibration`; the offset is None for a softmax.
    n_iter_ : int
        Newton iterations of Steps 1 and 2 together.
    objective_ : ndarray of shape (2,)
        Objectives of Steps 1 and 2 (summed over classes); NaN for a step not run.
    gap_ : ndarray of shape (2,)
        Relative duality gaps, certificates of how near the optimum they are; NaN for
        a step not run.
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
    >>> model.score(X_test, y_test) > 0.9
    True
    """

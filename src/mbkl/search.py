"""MBKLClassifierCV, MBKLRegressorCV: the cost chosen by cross-validation on a warm-started path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import _fit_context, is_classifier
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import StrOptions

from mbkl.classifier import KernelClassifier, MBKLClassifier, best_class
from mbkl.engine import limits
from mbkl.engine.rows import first_by_hash
from mbkl.estimator import Placed, TrainingRows, estimator, parameter
from mbkl.kernel_predictor import KernelPredictor, RowLimits, cost_of_choice
from mbkl.learn.algorithm import Kernel, Learner
from mbkl.learn.progress import Progress, with_callbacks
from mbkl.learn.residuals import mean_loss
from mbkl.maps.choose import Choice
from mbkl.maps.families import MapSet
from mbkl.maps.ferns import DEEPEST
from mbkl.predictor import rows_to_predict
from mbkl.regressor import KernelRegressor, MBKLRegressor
from mbkl.solvers.problem import Solution

_COSTS_OF_PAPER = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
# Costs relative to the cost that a sample suggests.
_COST_FACTORS = (0.3, 1.0, 3.0)
_C_KERNELS = (0.01, 0.1, 1.0)
# Share of `max_time` for the search; the rest is for the final fit.
_SEARCH_TIME = 0.5
# Folds after which a candidate that is not ahead of the suggested one is given up.
_FOLDS_BEFORE_PRUNING = 2
_SEARCH_ATTRIBUTES = ("C_kernel_", "theta_shrinkage_", "best_score_", "cv_results_")
Scorer = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
# Tolerance of the solver on folds: scores of candidates need less precision than final weights.
_FOLD_TOL = 0.03


def accuracy(y: np.ndarray, predicted: np.ndarray, sample_weight: np.ndarray) -> float:
    """Return the weighted accuracy, without the checks of scikit-learn's function."""
    return float(np.average(y == predicted, weights=sample_weight))


_SCORERS = {"accuracy": accuracy, "balanced_accuracy": balanced_accuracy_score}


@dataclass(frozen=True)
class FoldPath:
    """Scores of candidates on one fold, and the number of maps that each keeps."""

    scores: np.ndarray
    n_maps: np.ndarray


class Candidate(NamedTuple):
    """What a search chooses: the costs of Steps 1 and 2, and the shrinkage of theta."""

    C_kernel: float
    shrinkage: float
    C: float

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the estimator with one cost."""
        return {"C": self.C, "C_kernel": self.C_kernel, "theta_shrinkage": self.shrinkage}


@dataclass(frozen=True)
class Entry:
    """Scores of one candidate on all folds; NaN for folds after it was given up."""

    candidate: Candidate
    depth: float
    scores: np.ndarray
    n_maps: np.ndarray

    @property
    def mean(self) -> float:
        return float(np.nanmean(self.scores))

    def clearly_beats(self, other: Entry) -> bool:
        """Say whether the mean difference exceeds its standard error over all folds."""
        differences = self.scores - other.scores
        error = differences.std(ddof=min(1, differences.size - 1)) / differences.size**0.5
        return bool(differences.mean() > error)


@dataclass
class Search:
    """Candidates tried so far, each on all folds.

    Parameters
    ----------
    folds : list of (inside, outside)
        Training and validation rows.
    weights : ndarray
        Weights of the rows in the scores.
    scorer : callable
        A function of y, scores and weights.
    cautious : bool
        Whether only a candidate that clearly beats the first one, which a sample suggests,
        replaces it; candidates that fall behind are given up.
    """

    folds: list
    weights: np.ndarray
    scorer: Scorer
    cautious: bool = False
    entries: list[Entry] = field(default_factory=list)

    def run(self, learner: Learner, candidates: Sequence[Candidate], depth: float = np.nan) -> None:
        """Score candidates on all folds, each with a warm start from the one before.

        When the time is over, these candidates are dropped; but if they are the first, the search
        keeps them with the folds that are done.
        """
        suggested = self.best().scores if self.cautious and self.entries else None
        scores = np.full((len(self.folds), len(candidates)), np.nan)
        n_maps = scores.copy()
        for fold, (inside, outside) in enumerate(self.folds):
            if learner.progress.used() > _SEARCH_TIME and (fold or self.entries):
                if self.entries:
                    return
                self.folds = self.folds[:fold]
                break
            active = np.arange(len(candidates))
            if suggested is not None and fold >= _FOLDS_BEFORE_PRUNING:
                lead = scores[:fold] - suggested[:fold, None]
                active = np.flatnonzero(lead.sum(axis=0) > 0)
            if not active.size:
                break
            name = f"costs {len(self.entries)}, fold {fold}"
            remaining = [candidates[int(number)] for number in active]
            run = partial(self._path, learner, inside, outside, remaining)
            path = learner.progress.recall(name, FoldPath, run)
            scores[fold, active], n_maps[fold, active] = path.scores, path.n_maps
        n_folds = len(self.folds)
        self.entries += [
            Entry(candidate, depth, scores[:n_folds, position], n_maps[:n_folds, position])
            for position, candidate in enumerate(candidates)
        ]

    def _path(self, learner: Learner, inside, outside, candidates) -> FoldPath:
        """Score the candidates on one fold."""
        training, validation = learner.take(inside).merged, learner.take(outside)
        scores: list[float] = []
        n_maps: list[int] = []
        with warnings.catch_warnings():
            # Costs that are too small are expected on a path; the final fit warns.
            warnings.simplefilter("ignore")
            for kernel, solution in _solutions(training, candidates):
                predicted = validation.scores_beside(training, solution)
                scores.append(self.scorer(validation.rows.y, predicted, self.weights[outside]))
                n_maps.append(int((kernel.theta > 0).sum()))
        return FoldPath(np.array(scores), np.array(n_maps))

    def on(self, rows: np.ndarray) -> Search:
        """Return an empty search on some of the rows."""
        position = np.full(self.weights.size, -1)
        position[rows] = np.arange(rows.size)
        folds = [tuple(position[side][position[side] >= 0] for side in fold) for fold in self.folds]
        folds = [fold for fold in folds if fold[0].size and fold[1].size]
        return Search(folds, self.weights[rows], self.scorer, self.cautious)

    def best(self, depth: float | None = None) -> Entry:
        """Return the entry with the best mean score, of one depth or of any."""
        entries = [entry for entry in self.entries if depth is None or entry.depth == depth]
        first = entries[0]
        if self.cautious:
            entries = [first, *(entry for entry in entries[1:] if entry.clearly_beats(first))]
        return max(entries, key=attrgetter("mean"))

    def results(self) -> dict:
        """Return `cv_results_`."""
        entries = self.entries
        mean = np.array([entry.mean for entry in entries])
        # Candidates that were given up rank behind those with scores on all folds.
        to_rank = np.where([np.isnan(entry.scores).any() for entry in entries], -np.inf, mean)
        results = {
            "param_C": np.array([entry.candidate.C for entry in entries]),
            "param_C_kernel": np.array([entry.candidate.C_kernel for entry in entries]),
            "param_theta_shrinkage": np.array([entry.candidate.shrinkage for entry in entries]),
            "param_depth": np.array([entry.depth for entry in entries]),
            "params": [entry.candidate.parameters for entry in entries],
            "mean_test_score": mean,
            "std_test_score": np.array([np.nanstd(entry.scores) for entry in entries]),
            "rank_test_score": 1 + (to_rank[None, :] > to_rank[:, None]).sum(axis=1),
            "mean_n_maps": np.array([np.nanmean(entry.n_maps) for entry in entries]),
        }
        for fold in range(entries[0].scores.size):
            results[f"split{fold}_test_score"] = np.array([e.scores[fold] for e in entries])
        return results


def _solutions(
    learner: Learner, candidates: Sequence[Candidate]
) -> Iterator[tuple[Kernel, Solution]]:
    """Yield kernel and solution of each candidate; Step 1 is run once for each C_kernel."""
    learned: Kernel | None = None
    solution: Solution | None = None
    tol = max(learner.settings.tol, _FOLD_TOL)
    # A kernel matrix of all rows gives validation scores from supports, without weights.
    is_shared = learner.rows.gram is not None
    for C_kernel, group in groupby(candidates, attrgetter("C_kernel")):
        learned = learner.learn_theta(C_kernel, learned)
        kernel = learner.shrunk(learned, learner.settings.theta_shrinkage)
        with_gram = learner.with_gram(kernel)
        for candidate in group:
            solution = with_gram.learn_classifier(
                kernel, candidate.C, solution, only_supports=is_shared, tol=tol
            )
            yield kernel, solution


@estimator
class Searching(Placed, KernelPredictor):
    """The cross-validated search for costs, of classifiers and regressors."""

    Cs: Any = parameter("array-like", StrOptions({"auto"}), default="auto")
    C_kernels: Any = parameter("array-like", StrOptions({"tied"}), None, default=None)
    cv: Any = parameter("cv_object", default=5)

    # The estimator with one cost.
    _PLAIN: ClassVar[type[KernelPredictor]]
    # Depths of ferns to try, relative to the depth that a sample suggests.
    _DEPTH_FACTORS: ClassVar[tuple[float, ...]] = (1.0, 1.7)

    def _scorer(self, data: TrainingRows) -> Scorer:
        """Return a function of y, scores and weights to maximise."""
        raise NotImplementedError

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, groups=None):
        """Choose the costs by cross-validation and fit all data with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Numbers may be several targets, of shape (n_samples, n_outputs).
        sample_weight : array-like of shape (n_samples,) or None
            Also weighs the scores of the folds.
        groups : array-like of shape (n_samples,) or None
            For a `cv` that keeps groups together, such as GroupKFold.

        Returns
        -------
        self : object
        """
        self._candidates(1.0)  # raises an error for bad costs before any work
        X, y, weights = self._validate_rows(X, y, sample_weight)
        # Splitters cannot read rows in files; they only need the number of rows.
        rows = np.empty((len(y), 0)) if hasattr(X, "blocks") else X
        splits = list(check_cv(self.cv, y, classifier=is_classifier(self)).split(rows, y, groups))
        progress = self._progress(X, y, weights, *chain(*splits))
        data = self._training_rows(X, y, weights, progress)
        folds = [_positions(split, weights > 0) for split in splits]
        folds = [(inside, outside) for inside, outside in folds if inside.size and outside.size]
        if not folds:
            raise ValueError("cv leaves no fold with rows of positive weight on both sides.")
        weights = weights[weights > 0]  # scores ignore class weights, which are for learning
        grows = self.grows(data.rows.shape)
        if any(plan.is_grown for plan in self.plans(data.rows.shape)) and not grows:
            raise ValueError(
                "Grown ferns have seen the labels of all folds, which cannot judge their costs; "
                "use Cs='auto' with maps='grown' alone, or GridSearchCV around "
                f"{self._PLAIN.__name__}."
            )
        if grows:
            data = self._without_line(data, None, progress)
            self._score_growth(data, progress, Search(folds, weights, self._scorer(data)))
            return self._fit_growth(data, progress)
        data = self._rows_to_draw_for(data)
        choice = self._choose(data, progress)
        data = self._without_line(data, choice, progress)
        search = Search(folds, weights, self._scorer(data))
        if data.chosen is not None:
            search = search.on(data.chosen)
        if choice is not None and isinstance(self.Cs, str):
            learner, choice = self._search_automatically(data, choice, progress, search)
            best = search.best(choice.depth)
        else:
            learner = self._draw_for_folds(data, choice, progress, len(folds))
            search.run(self._fold_learner(learner), self._candidates(1.0))
            self._score_learned_theta(search, learner)
            best = search.best()
        C_kernel, shrinkage, C = best.candidate
        self._set_best(search, best)
        settings = replace(learner.settings, theta_shrinkage=shrinkage)
        learner = replace(learner.merged, settings=settings)
        return self._fit_drawn(learner, C_kernel, C, choice, data)

    def _set_best(self, search: Search, best: Entry) -> None:
        """Set the attributes of the best candidate and of the search."""
        self.C_kernel_, self.theta_shrinkage_, _ = best.candidate
        self.best_score_, self.cv_results_ = best.mean, search.results()

    @property
    def has_costs(self) -> bool:
        return not isinstance(self.Cs, str)

    def _score_growth(self, data: TrainingRows, progress: Progress, search: Search) -> None:
        """Score grown ferns on all folds; they have no costs to choose."""
        scores: list[float] = []
        n_maps: list[int] = []
        for fold, (inside, outside) in enumerate(search.folds):
            if scores and progress.used() > _SEARCH_TIME:
                break
            grown = self._grow_maps(data.some(inside), progress, f"growth, fold {fold}")
            X = data.rows.some(outside).in_memory().X
            rows = rows_to_predict(X, MapSet((grown,)), self.n_jobs)
            predicted = grown.score(rows, grown.path) + grown.intercept
            scores.append(search.scorer(data.y[outside], predicted, search.weights[outside]))
            n_maps.append(grown.n_maps)
        arrays = np.array(scores), np.array(n_maps)
        search.entries = [Entry(Candidate(1.0, 1.0, 0.0), np.nan, *arrays)]
        self._set_best(search, search.best())

    def _draw_for_folds(
        self, data: TrainingRows, choice, progress: Progress, n_folds: int
    ) -> Learner:
        """Draw maps, with a kernel matrix that all folds share."""
        n_fits = 1 + n_folds * len(self._candidates(1.0))
        return self._draw(data, choice, progress, n_fits).with_gram()

    def _search_automatically(
        self, data: TrainingRows, choice: Choice, progress: Progress, search: Search
    ) -> tuple[Learner, Choice]:
        """Try depths of ferns, then costs, on a sample; return the best learner and choice."""
        search.cautious = True
        chosen = first_by_hash(data.rows, data.y, limits.ROWS_OF_A_SEARCH, data.settings.seed)
        sample_search = search.on(chosen)
        if len(sample_search.folds) < len(search.folds):  # the sample misses a small fold
            chosen = np.arange(data.y.size)
            sample_search = search.on(chosen)
        sample = data.some(chosen)
        sample = replace(sample, rows=sample.rows.in_memory())
        tried: list[tuple] = []
        relative = 0.0  # the suggested cost as a multiple of the cost of the choice
        for factor in self._DEPTH_FACTORS:
            if tried and progress.used() > _SEARCH_TIME:
                break
            other = replace(choice, depth=min(choice.depth * factor, DEEPEST))
            learner = self._draw_for_folds(sample, other, progress, len(sample_search.folds))
            C = cost_of_choice(other, learner)
            relative = relative or self._suggested_cost(other, learner) / C
            C *= relative
            on_folds = self._fold_learner(learner)
            sample_search.run(on_folds, [self._suggested(C)], other.depth)
            tried.append((other, learner, on_folds, self.maps_, C))
        best = sample_search.entries.index(sample_search.best())
        choice, learner, on_folds, self.maps_, C = tried[best]
        others = [other for other in self._candidates(C) if other != self._suggested(C)]
        sample_search.run(on_folds, others, choice.depth)
        self._score_learned_theta(sample_search, learner, choice.depth)
        ratio = 1.0
        if chosen.size < data.y.size:
            before = cost_of_choice(choice, learner)
            learner = self._draw_for_folds(data, choice, progress, 0)
            # C grows with the number of rows, so that the cost of each row stays the same.
            ratio = cost_of_choice(choice, learner) / before
        search.entries = [
            replace(entry, candidate=entry.candidate._replace(C=ratio * entry.candidate.C))
            for entry in sample_search.entries
        ]
        return learner, choice

    @property
    def _searches_equal_theta(self) -> bool:
        """Whether costs are chosen with equal kernel weights, to which learned ones are shrunk.

        With few rows a search over fewer candidates over-fits the folds less.
        """
        is_close = self.theta != "ones" and isinstance(self.theta_shrinkage, str)
        return is_close and self.C_kernels is None

    def _fold_learner(self, learner: Learner) -> Learner:
        """Return the learner that scores candidates on folds."""
        return learner.with_equal_weights() if self._searches_equal_theta else learner

    def _score_learned_theta(self, search: Search, learner: Learner, depth: float = np.nan) -> None:
        """Score learned kernel weights, too, at the best cost with equal ones."""
        if self._searches_equal_theta:
            best = search.best(None if np.isnan(depth) else depth).candidate
            search.run(learner, [best._replace(shrinkage=self._shrinkage())], depth)

    def _suggested(self, C: float) -> Candidate:
        """Return the candidate with which depths are compared."""
        return self._candidates(C)[0]._replace(C=C)

    def _candidates(self, suggested: float) -> list[Candidate]:
        """Return all candidates, in the order of the path of warm starts."""
        if not isinstance(self.Cs, str):
            Cs = _check_costs("Cs", self.Cs)
        elif self.maps == "auto":
            Cs = [factor * suggested for factor in _COST_FACTORS]
        else:
            Cs = list(_COSTS_OF_PAPER)
        if self._searches_equal_theta:
            return [Candidate(1.0, 1.0, C) for C in Cs]
        shrinkage = 1.0 if self.theta == "ones" else self._shrinkage()
        if isinstance(self.C_kernels, str):
            return [Candidate(C, shrinkage, C) for C in Cs]
        C_kernels = _check_costs(
            "C_kernels", _C_KERNELS if self.C_kernels is None else self.C_kernels
        )
        if shrinkage == 1.0 or self.theta == "alignment":
            C_kernels = C_kernels[:1]  # equal weights and alignment do not depend on C_kernel
        return [Candidate(C_kernel, shrinkage, C) for C_kernel in C_kernels for C in Cs]

    @property
    def best_estimator_(self) -> KernelPredictor:
        """The model fitted on all data, as an estimator with one cost."""
        model = self._fitted_as(
            self._PLAIN,
            C=self.C_ or "auto",  # grown ferns have no cost
            C_kernel=self.C_kernel_,
            theta_shrinkage=self.theta_shrinkage_,
            checkpoint=None,  # the file belongs to the search
        )
        for name in _SEARCH_ATTRIBUTES:
            vars(model).pop(name, None)
        return model


@estimator
class MBKLClassifierCV(Searching, KernelClassifier):
    """MBKLClassifier with C (and C_kernel) chosen by cross-validation.

    The maps are drawn and the data binned once. Each fold runs through the costs from small to
    large, with warm starts where they help. With maps="auto" the maps are chosen on a sample that
    includes validation rows of the folds: their scores serve to compare costs, but are slightly
    optimistic.

    Parameters
    ----------
    Cs : sequence of float or "auto", default="auto"
        Costs to try. "auto" means the grid of the paper, (0.01, 0.1, 1, 10, 100, 1000);
        with maps="auto" it means 0.3, 1 and 3 times the cost that a sample suggests, after
        a trial of ferns deeper than suggested. A candidate replaces the suggested one only if its
        gain exceeds its standard error. With more than 2,000 rows the search uses so many of them,
        and the final fit all. Grown ferns (the default beyond 10,000 rows) have no cost: folds
        only score them. They are mixed in from 200 rows on, with `MBKLClassifier` from 2,000 on;
        with fewer than 2,000 rows five growths, each without one of five folds, are averaged.
    C_kernels : sequence of float, "tied" or None, default=None
        Costs of Step 1 to try with each of `Cs`. "tied" tries C_kernel = C only, as in the
        paper. None means (0.01, 0.1, 1), as larger ones hardly change theta; but where
        `theta_shrinkage` is "auto", `Cs` are tried with equal weights, and then learned ones, with
        C_kernel = 1, at the best of them.
    theta_shrinkage : float in [0, 1] or "auto", default="auto"
        How far learned theta is moved towards equal weights; "auto" is 0.9, as for
        `MBKLClassifier`, or 1, equal weights, where folds do not gain by it.
    cv : int, cross-validation generator or iterable, default=5
        Folds; an int means stratified folds.
    scoring : {"accuracy", "balanced_accuracy"}, default="accuracy"
        The score to maximise. Ties go to the smaller cost, or to the suggested one.
    maps, n_maps, theta, init_rule, theta_power, negatives_per_positive, max_pairs, loss
        See `MBKLClassifier`.
    max_time : float or None, default=None
        See `MBKLClassifier`; the search ends when half of it is used.
    class_weight, categorical_features, calibration, tol, max_iter, checkpoint, random_state
        See `MBKLClassifier`.
    n_jobs, verbose, device
        See `MBKLClassifier`.
    max_memory, cache_folder
        See `MBKLClassifier`.

    Attributes
    ----------
    C_, C_kernel_, theta_shrinkage_ : float
        The chosen values.
    best_score_ : float
        Mean score of the folds at these costs.
    cv_results_ : dict of ndarray
        For each candidate: `param_C`, `param_C_kernel`, `param_theta_shrinkage`, `params`,
        `split<i>_test_score`, `mean_test_score`, `std_test_score`,
        `rank_test_score` and `mean_n_maps`; also `param_depth`, the mean depth of ferns
        that were chosen, else NaN. With Cs="auto" and maps="auto" candidates are given up when
        they are behind after two folds; the scores of the others are NaN then.
    best_estimator_ : MBKLClassifier
        The model fitted on all data; this object has its attributes and methods too.

    See Also
    --------
    MBKLClassifier : For the other attributes.

    Examples
    --------
    >>> from mbkl import MBKLClassifierCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifierCV(Cs=(0.1, 1), cv=3, random_state=0).fit(X, y)
    >>> model.C_ in (0.1, 1)
    True
    >>> model.best_estimator_
    MBKLClassifier(...)
    """

    scoring: str = parameter(StrOptions(set(_SCORERS)), default="accuracy")

    _PLAIN: ClassVar[type[KernelPredictor]] = MBKLClassifier

    @property
    def _row_limits(self) -> RowLimits:
        grow_above = limits.ROWS_OF_GROWTH_AFTER_A_SEARCH
        return RowLimits(limits.FEWEST_ROWS_TO_MIX, grow_above, grow_above)

    def _scorer(self, data: TrainingRows) -> Scorer:
        measure = _SCORERS[self.scoring]
        return lambda y, scores, weights: measure(y, best_class(scores), sample_weight=weights)


@estimator
class MBKLRegressorCV(Searching, KernelRegressor):
    """MBKLRegressor with C (and C_kernel) chosen by cross-validation.

    The maps are drawn and the data binned once. With maps="auto" the depth of ferns is chosen
    first, then the cost; and grown ferns are mixed in, as in `MBKLRegressor`.

    Parameters
    ----------
    Cs, C_kernels, theta_shrinkage
        See `MBKLClassifierCV`.
    cv : int, cross-validation generator or iterable, default=5
        Folds.
    scoring : {"auto", "r2", "loss"}, default="auto"
        The score to maximise: R2, or minus the mean loss of the standardised targets. "auto" is R2
        for the squared error and the loss otherwise. Ties go to the smaller cost, or to the
        suggested one.
    loss, quantile, maps, n_maps, theta, init_rule, theta_power, max_pairs
        See `MBKLRegressor`.
    max_time : float or None, default=None
        See `MBKLClassifier`; the search ends when half of it is used.
    categorical_features, tol, max_iter, checkpoint, random_state, n_jobs, verbose, device
        See `MBKLRegressor`.
    max_memory, cache_folder
        See `MBKLRegressor`.

    Attributes
    ----------
    C_, C_kernel_, theta_shrinkage_ : float
        The chosen values.
    best_score_ : float
        Mean score of the folds at these costs, before grown ferns are mixed in.
    cv_results_ : dict of ndarray
        See `MBKLClassifierCV`.
    best_estimator_ : MBKLRegressor
        The model fitted on all data; this object has its attributes and methods too.

    See Also
    --------
    MBKLRegressor : For the other attributes.

    Examples
    --------
    >>> from mbkl import MBKLRegressorCV
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MBKLRegressorCV(maps="stumps", Cs=(0.01, 0.1), cv=3, random_state=0).fit(X, y)
    >>> model.C_ in (0.01, 0.1)
    True
    >>> model.best_estimator_
    MBKLRegressor(...)
    """

    scoring: str = parameter(StrOptions({"auto", "r2", "loss"}), default="auto")

    _PLAIN: ClassVar[type[KernelPredictor]] = MBKLRegressor
    _FERN_FACTOR: ClassVar[int] = 2
    _DEPTH_FACTORS: ClassVar[tuple[float, ...]] = (1.0, 0.6, 1.7)

    def _scorer(self, data: TrainingRows) -> Scorer:
        numbers = data.numbers
        assert numbers is not None
        # A line has explained the rest of the variance already.
        left = data.line.left if data.line else np.ones(numbers.n_columns)

        def explained(y, scores, weights) -> float:
            both = numbers.values[y], self._linked(scores)
            r2 = r2_score(*both, sample_weight=weights, multioutput="raw_values")
            return float(np.mean(1.0 - left * (1.0 - r2)))

        if self.scoring == "r2" or (self.scoring == "auto" and self.loss == "squared_error"):
            return explained
        return lambda y, scores, weights: -left.mean() * mean_loss(numbers, y, scores, weights)


def _check_costs(name: str, costs) -> list[float]:
    try:
        values = np.asarray(costs, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        values = np.empty(0)
    if not values.size or not np.isfinite(values).all() or (values <= 0).any():
        raise ValueError(f"{name} must be one or more positive, finite costs, got {costs!r}.")
    return sorted(set(values.tolist()))


def _positions(split, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a split of all rows as numbers among the rows of positive weight."""
    position = np.cumsum(present) - 1
    inside, outside = (np.asarray(part) for part in split)
    return position[inside[present[inside]]], position[outside[present[outside]]]

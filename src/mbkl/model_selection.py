"""MBKLClassifierCV: the cost chosen by cross-validation on a warm-started path."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import StrOptions

from mbkl.classifier import MBKLClassifier
from mbkl.learn.algorithm import Kernel, Learner
from mbkl.progress import Progress, with_callbacks
from mbkl.solvers.newton_cg import Solution

_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
_FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
_C_KERNELS = (0.01, 0.1, 1.0)
_SCORERS = {"accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}


class MBKLClassifierCV(MBKLClassifier):
    """MBKLClassifier with C (and C_kernel) chosen by cross-validation.

    The maps are drawn and the data binned once. Each fold runs through the costs
    from small to large, solutions starting from the one before where that helps. With
    maps="auto" the maps are chosen on a larger sample, which includes rows that folds
    hold out: their scores serve to compare costs and are a little too good otherwise.

    Parameters
    ----------
    Cs : sequence of float or "auto", default="auto"
        Costs to try. "auto" means a tenth to ten times the cost that `MBKLClassifier`
        would take with maps="auto", and else the grid of the paper,
        (0.01, 0.1, 1, 10, 100, 1000).
    C_kernels : sequence of float, "tied" or None, default=None
        Costs of Step 1 to try with each of `Cs`. None means (0.01, 0.1, 1): larger
        ones hardly change theta. "tied" tries C_kernel = C only, as in the paper.
    cv : int, cross-validation generator or iterable, default=5
        Folds; an int means stratified folds.
    scoring : {"accuracy", "balanced_accuracy"}, default="accuracy"
        What to maximise. Ties go to the smaller cost.
    maps, n_maps, theta, init_rule, theta_power, negatives_per_positive, max_pairs, loss
        See `MBKLClassifier`.
    class_weight, calibration, tol, max_iter, random_state, n_jobs, verbose, device
        See `MBKLClassifier`.

    Attributes
    ----------
    C_, C_kernel_ : float
        The costs chosen.
    best_score_ : float
        Mean score of the folds at these costs.
    cv_results_ : dict of ndarray
        For each candidate: `param_C`, `param_C_kernel`, `params`,
        `split<i>_test_score`, `mean_test_score`, `std_test_score`,
        `rank_test_score` and `mean_n_maps`.
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

    _SAMPLE_ROWS = 1_000
    _FERN_FACTOR = 2

    _parameter_constraints: dict = {
        **{
            name: constraint
            for name, constraint in MBKLClassifier._parameter_constraints.items()
            if name not in ("C", "C_kernel")
        },
        "Cs": ["array-like", StrOptions({"auto"})],
        "C_kernels": ["array-like", StrOptions({"tied"}), None],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(_SCORERS))],
    }

    def __init__(
        self,
        *,
        Cs="auto",
        C_kernels=None,
        cv=5,
        scoring="accuracy",
        maps="auto",
        n_maps="auto",
        theta="ones",
        init_rule="balanced",
        theta_power=0.5,
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
        self.Cs = Cs
        self.C_kernels = C_kernels
        self.cv = cv
        self.scoring = scoring
        self.maps = maps
        self.n_maps = n_maps
        self.theta = theta
        self.init_rule = init_rule
        self.theta_power = theta_power
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
        """Choose the costs by cross-validation and fit all data with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None
            Also weighs the scores of the folds.

        Returns
        -------
        self : MBKLClassifierCV
        """
        self._candidates(1.0)  # to complain of bad costs before any work
        X, y, weights = self._validate_rows(X, y, sample_weight)
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y))
        n_fits = 1 + len(splits) * len(self._candidates(1.0))
        learner = self._learner(X, y, weights, Progress(self), n_fits).with_gram()
        whole = learner.canonical()
        candidates = self._candidates(self._cost(whole))
        folds = [_positions(split, weights > 0) for split in splits]
        folds = [(inside, outside) for inside, outside in folds if inside.size and outside.size]
        if not folds:
            raise ValueError("cv leaves no fold with rows of positive weight on both sides.")
        # Class weights are for learning; the scores are those of the samples as they are.
        scores, n_maps = self._score_folds(learner, candidates, folds, weights[weights > 0])
        mean = scores.mean(axis=0)
        best = int(np.argmax(mean))
        self.C_kernel_, self.C_ = candidates[best]
        self.best_score_ = float(mean[best])
        self.cv_results_ = _results(candidates, scores, n_maps)
        kernel = whole.learn_kernel(self.C_kernel_)
        solution = whole.learn_classifier(kernel, self.C_)
        return self._finish(whole, kernel, solution, self.C_kernel_, self.C_)

    def _candidates(self, suggested: float) -> list[tuple[float, float]]:
        """Return all (C_kernel, C), in the order in which a path visits them."""
        if not isinstance(self.Cs, str):
            Cs = _check_costs("Cs", self.Cs)
        elif self.maps == "auto":
            Cs = [factor * suggested for factor in _FACTORS]
        else:
            Cs = list(_GRID)
        if isinstance(self.C_kernels, str):
            return [(C, C) for C in Cs]
        C_kernels = _C_KERNELS if self.C_kernels is None else self.C_kernels
        if self.theta in ("ones", "alignment"):
            C_kernels = C_kernels[:1]  # these do not depend on it
        return [(C_kernel, C) for C_kernel in _check_costs("C_kernels", C_kernels) for C in Cs]

    def _score_folds(
        self, learner: Learner, candidates, folds, sample_weights
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return score and number of kept maps of each fold and candidate."""
        scores = np.empty((len(folds), len(candidates)))
        n_maps = np.empty_like(scores)
        scorer = _SCORERS[self.scoring]
        for fold, (inside, outside) in enumerate(folds):
            part, held_out = learner.take(inside).canonical(), learner.take(outside)
            kernel: Kernel | None = None
            solution: Solution | None = None
            last_C_kernel = None
            for position, (C_kernel, C) in enumerate(candidates):
                with warnings.catch_warnings():
                    # Too small a cost is no news on a path; the final fit warns.
                    warnings.simplefilter("ignore")
                    if kernel is None or C_kernel != last_C_kernel:
                        kernel = part.learn_kernel(C_kernel, kernel)
                    solution = part.learn_classifier(kernel, C, solution)
                last_C_kernel = C_kernel
                guess = self._best(held_out.scores(solution))
                scores[fold, position] = scorer(
                    held_out.y, guess, sample_weight=sample_weights[outside]
                )
                n_maps[fold, position] = (kernel.theta > 0).sum()
        return scores, n_maps

    @property
    def best_estimator_(self) -> MBKLClassifier:
        """The model fitted on all data, as an MBKLClassifier."""
        shared = set(MBKLClassifier._get_param_names()) & set(self._get_param_names())
        parameters = {name: getattr(self, name) for name in shared}
        estimator = MBKLClassifier(**parameters, C=self.C_, C_kernel=self.C_kernel_)
        own = {*self._get_param_names(), "C_kernel_", "best_score_", "cv_results_"}
        for name, value in vars(self).items():
            if name not in own and not name.startswith("_skl"):
                setattr(estimator, name, value)
        return estimator


def _check_costs(name: str, costs) -> list[float]:
    try:
        values = np.asarray(costs, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        values = np.empty(0)
    if not values.size or not np.isfinite(values).all() or (values <= 0).any():
        raise ValueError(f"{name} must be one or more positive, finite costs, got {costs!r}.")
    return sorted(set(values.tolist()))


def _positions(split, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Translate a split of all rows to those of positive weight."""
    position = np.cumsum(present) - 1
    inside, outside = (np.asarray(part) for part in split)
    return position[inside[present[inside]]], position[outside[present[outside]]]


def _results(candidates, scores: np.ndarray, n_maps: np.ndarray) -> dict:
    mean = scores.mean(axis=0)
    results = {
        "param_C": np.array([C for _, C in candidates]),
        "param_C_kernel": np.array([C_kernel for C_kernel, _ in candidates]),
        "params": [{"C": C, "C_kernel": C_kernel} for C_kernel, C in candidates],
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0),
        "rank_test_score": 1 + (mean[None, :] > mean[:, None]).sum(axis=1),
        "mean_n_maps": n_maps.mean(axis=0),
    }
    for fold, row in enumerate(scores):
        results[f"split{fold}_test_score"] = row
    return results

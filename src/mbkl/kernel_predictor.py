"""What classifiers and regressors share: they learn, collapse to tables, and explain themselves."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mbkl.engine import choose_loops, limits
from mbkl.engine.arrays import to_fixed_point
from mbkl.engine.rows import first_by_hash, rows_at_once
from mbkl.estimator import Costs, Placed, Predicting, TrainingRows, estimator
from mbkl.learn.algorithm import REFERENCE_ROWS, Kernel, Learner
from mbkl.learn.calibration import HeldOut
from mbkl.learn.classifier_weights import rounded_cells
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.learn.progress import CallbackSupportMixin, Progress, with_callbacks
from mbkl.maps.choose import Choice
from mbkl.maps.families import MapSet, mean_growth, plans_of
from mbkl.maps.grown_ferns import GrownFerns, GrownMaps
from mbkl.maps.numbers import Numbers
from mbkl.predictor import TablePredictor, rows_to_predict
from mbkl.solvers.problem import Solution

# Folds of few rows, of which each ends a growth in a mixture. With three it is 0.1 points worse in
# no less time: each sees fewer rows, and there are fewer to take the mean of. Steps are twice as
# large as usual, and growth waits half as long: as good in the mean of so many, in four fifths of
# the time (python -m benchmarks.suite --methods MBKLClassifierCV --rows 1800).
_FOLDS = 5
_OF_TWO_CLASSES, _OF_OTHERS = (GrownFerns(rate=rate, patience=20) for rate in (0.4, 0.2))

_NOTHING_GROWN = (
    "No fern tells rows apart that took no part in growing it, and the model is "
    "constant. Look whether any feature varies; with few rows, use random ferns, maps='ferns'."
)


@estimator
class KernelPredictor(CallbackSupportMixin, Predicting):
    """What classifiers and regressors do once costs are known, and what follows from tables."""

    _STEP_2: ClassVar[str] = "Step 2 (classifier weights)"
    # Name of the stage that looks at rows that took no part.
    _HELD_OUT: ClassVar[str]
    # Growths that are mixed with drawn maps, each of which holds out rows of its own.
    _GROWTHS_OF_MIXTURES: ClassVar[int] = 1

    @property
    def has_costs(self) -> bool:
        """Whether costs are given, so that Step 2 has to be taken."""
        raise NotImplementedError

    def grows(self, shape: tuple[int, int]) -> bool:
        """Say whether grown ferns are the model: asked for, or by themselves on many rows."""
        if self.has_costs or self.theta != "ones":
            return False
        if self.maps != "auto":
            plans = self.plans(shape)
            return len(plans) == 1 and plans[0].is_grown
        return self.loss != "hinge" and shape[0] > self._rows_of_growth

    @property
    def _rows_of_growth(self) -> int:
        """Rows above which ferns are grown by themselves."""
        return limits.ROWS_OF_GROWTH

    def _fit_data(self, data: TrainingRows, progress: Progress):
        """Grow ferns, or draw maps and take the steps, as parameters and rows suggest."""
        if self.grows(data.rows.shape):
            return self._grow(self._without_line(data, None, progress), progress)
        data = self._to_draw_for(data)
        choice = self._choose(data, progress)
        data = self._without_line(data, choice, progress)
        learner = self._draw(data, choice, progress)
        C_kernel, C = costs_of(self, choice, learner)
        return self._learn(learner.merged, C_kernel, C, choice, data)

    def _without_line(
        self, data: TrainingRows, choice: Choice | None, progress: Progress
    ) -> TrainingRows:
        """Return what a straight line leaves of numbers, where it is worth having."""
        return data

    def _learn(
        self,
        learner: Learner,
        C_kernel: float,
        C: float,
        choice: Choice | None,
        data: TrainingRows,
    ):
        """Run the steps on merged rows: Algorithm 1 of the paper from Step 0 on."""
        progress = learner.progress
        # With more time a search may choose otherwise.
        setting = f"C_kernel={C_kernel!r}, C={C!r}, depth={choice and choice.depth!r}"
        setting += f", shrinkage={learner.settings.theta_shrinkage!r}"
        kernel = progress.recall(
            f"kernel weights, {setting}", Kernel, lambda: learner.learn_kernel(C_kernel)
        )
        mixes = self._mixes(data, learner.rows)
        n_left_out = self._n_left_out(learner.rows, mixes)
        solution = progress.recall(
            f"classifier weights, {setting}",
            Solution,
            lambda: learner.learn_classifier(kernel, C, n_left_out=n_left_out),
        )
        with progress.stage(self._HELD_OUT):
            held_out = progress.recall(
                f"{self._HELD_OUT}, {setting}",
                HeldOut,
                lambda: self._held_out(learner, kernel, solution, C_kernel, C, mixes),
            )
        self.C_ = C
        with progress.stage("tables"):
            self._collapse(learner, kernel, solution)
        self._look_at_held_out(learner, kernel, solution, held_out, data)
        self.timings_ = progress.finish()
        return self

    def _held_out(
        self, learner: Learner, kernel: Kernel, solution, C_kernel, C, mixes: bool
    ) -> HeldOut:
        """Return the scores of rows by models that did not see them; also for a mixture."""
        raise NotImplementedError

    def _look_at_held_out(
        self,
        learner: Learner,
        kernel: Kernel,
        solution: Solution,
        held_out: HeldOut,
        data: TrainingRows,
    ) -> None:
        """Learn how sure scores are."""
        raise NotImplementedError

    def _n_left_out(self, rows: LabelledRows, mixes: bool) -> int:
        """Return of how many rows Step 2 is to tell how they are scored by all others."""
        raise NotImplementedError

    def _look_at_growth(
        self, data: TrainingRows, grown: GrownMaps, held_out, progress: Progress
    ) -> None:
        """Learn the same of rows that took no part in growth; see `_grow`."""

    def _grown(
        self,
        data: TrainingRows,
        progress: Progress,
        name: str = "growth",
        held_out=None,
        n_maps: int | None = None,
        usual: Any = "grown",
    ) -> GrownMaps:
        """Grow ferns on all rows, or recall them; `n_maps` is for n_maps="auto".

        `usual` is the family for maps="auto".
        """
        maps = usual if self.maps == "auto" else self.maps
        n_maps = n_maps if self.n_maps == "auto" else int(self.n_maps)
        (plan,) = plans_of(maps, n_maps, data.rows.shape, self.n_levels)
        targets, seed = replace(data.targets, held_out=held_out), data.settings.seed
        with progress.stage("growth") as iteration:
            rows = self._placed(data, [plan], 1)
            return progress.recall(
                name, GrownMaps, lambda: plan.grow(rows, targets, seed, iteration)
            )

    def _grown_scores(self, grown: GrownMaps, data: TrainingRows) -> np.ndarray:
        """Return the scores of rows by grown ferns."""
        rows = rows_to_predict(data.rows.in_memory().X, MapSet((grown,)), self.n_jobs)
        return grown.score(rows, grown.path) + grown.intercept

    def _suggested_cost(self, choice: Choice | None, learner: Learner) -> float:
        """Return the cost of Step 2 for C="auto"."""
        return cost_of_choice(choice, learner)

    def _grow(self, data: TrainingRows, progress: Progress, held_out=None):
        """Grow ferns: what they add up to is the model, the limit of small costs.

        Held-out rows, of shape (n_rows,), decide when growth ends; None leaves them to chance.
        """
        grown = self._grown(data, progress, held_out=held_out)
        if not grown.n_maps and data.line is None:
            warnings.warn(_NOTHING_GROWN, UserWarning, stacklevel=3)
        elif reason := progress.reason_to_stop():
            message = f"Growth stopped after {grown.n_rounds} ferns, because {reason}."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        with progress.stage("tables"):
            self._set_model(MapSet((grown.plain(),)), _shares(grown), *_given(grown, data.numbers))
            self.C_, self.grown_share_, self.feature_rates_ = 0.0, 1.0, None
            self.n_iter_ = max(grown.n_rounds, 1)
            self.objective_ = self.gap_ = np.full(2, np.nan)
            self._look_at_growth(data, grown, held_out, progress)
        self.timings_ = progress.finish()
        return self

    def _collapse(self, learner: Learner, kernel: Kernel, solution: Solution) -> None:
        """Turn weights to tables, and set the learned attributes."""
        kept = self._keep(learner, kernel)
        learner.warn_if_not_converged(
            self._STEP_2, solution, "Use a smaller C or a larger max_iter."
        )
        operator, numbers = learner.rows.operator, learner.rows.numbers
        weights, intercept = solution.weights, solution.intercept
        if numbers is None:
            weights = rounded_cells(operator, weights)
        else:  # they have a unit of their own
            weights, intercept = numbers.given(weights, intercept)
        weights = weights.compress(operator.spread(kept), axis=0)  # sooner than by an index
        self._set_model(self.maps_, self.theta_, weights, intercept)
        first = kernel.solution
        self.n_iter_ = max(1, solution.n_iter + (first.n_iter if first else 0))
        self.objective_ = np.array(
            [first.objective.sum() if first else np.nan, solution.objective.sum()]
        )
        self.gap_ = np.array([first.relative_gap if first else np.nan, solution.relative_gap])

    def _set_model(self, maps: MapSet, theta, weights, intercept) -> None:
        """Set what was learned: maps with kernel weights, and weights in the unit of targets."""
        self.maps_, self.theta_, self.n_maps_ = maps, theta, maps.n_maps
        self.coef_, self.intercept_ = weights.T, intercept
        tables = maps.tables(weights, choose_loops(weights.size, self.n_jobs))
        self.predictor_ = TablePredictor(maps, tables, intercept, self.n_jobs, self.device)

    # Mixtures ----------------------------------------------------------------------------------

    @property
    def _is_free(self) -> bool:
        """Whether nothing says that the model has to be one of drawn maps."""
        return self.maps == "auto" and self.theta == "ones" and not self.has_costs

    def _may_mix(self, shape: tuple[int, int]) -> bool:
        """Say whether grown ferns may be mixed with maps drawn for rows of that shape."""
        return self._is_free and not self.grows(shape)

    def _mixes(self, data: TrainingRows, rows: LabelledRows) -> bool:
        """Say whether grown ferns are to be mixed with the maps drawn for these rows."""
        if rows.places is None or rows.n_rows < self._fewest_rows_to_mix:
            return False
        whole = data.whole or data
        return self._may_mix(whole.rows.shape) and not whole.rows.in_files

    def _to_draw_for(self, data: TrainingRows) -> TrainingRows:
        """Return the rows that maps are drawn for, some of many where grown ferns see all."""
        if not self._may_mix(data.rows.shape) or (data.rows.in_files and self.max_memory):
            return data
        data = replace(data, rows=data.rows.in_memory())  # they are few
        if data.rows.shape[0] <= self._rows_to_draw_for:
            return data
        n_rows, seed = self._rows_to_draw_for, data.settings.seed
        return data.some(first_by_hash(data.rows, data.y, n_rows, seed))

    @property
    def _rows_to_draw_for(self) -> int:
        """Most rows that maps are drawn for, of those that ferns are grown on."""
        return self._rows_of_growth

    @property
    def _fewest_rows_to_mix(self) -> int:
        """Rows from which on grown ferns may be mixed with drawn maps."""
        return limits.FEWEST_ROWS_TO_MIX

    def _mix(self, data: TrainingRows, learner: Learner, drawn: HeldOut) -> HeldOut | None:
        """Add grown ferns to the model, with the share that suits held-out rows best.

        Returns the scores of these rows by the mixture; None where there is none.
        """
        self.grown_share_ = 0.0
        rows, progress = learner.rows, learner.progress
        is_known = drawn.rows is not None and not progress.reason_to_stop()
        if not is_known or not self._mixes(data, rows):
            return None
        scores, growths = self._unseen(data, rows, drawn, progress)
        if not growths:
            return None
        share, scale = self._best_share(rows, drawn, scores)
        if share:
            self._join(mean_growth(growths), share, scale, data.numbers)
        return replace(drawn, scores=(1.0 - share) * drawn.scores + share * scale * scores)

    def _best_share(self, rows: LabelledRows, drawn: HeldOut, grown) -> tuple[float, float]:
        """Return the best share of grown ferns, and what brings their scores to scale."""
        raise NotImplementedError

    def _unseen(
        self, data: TrainingRows, rows: LabelledRows, drawn: HeldOut, progress: Progress
    ) -> tuple[np.ndarray, list[GrownMaps]]:
        """Return scores of held-out rows by ferns that grew without them, and these growths.

        Each part of the rows ends a growth of its own, and the mean of the growths is mixed.
        """
        assert drawn.rows is not None
        if rows.n_rows < limits.ROWS_OF_MIXTURES or drawn.rows.size == rows.n_rows:
            # Some of these few rows would tell too little: each of all is held out once.
            parts, n_maps, family = rows.folds(_FOLDS), limits.FERNS_OF_A_FOLD, _family(rows)
        else:
            n_maps, family = limits.FERNS_OF_A_MIXTURE // self._GROWTHS_OF_MIXTURES, GrownFerns()
            parts = np.full(rows.n_rows, -1)
            each = np.arange(drawn.rows.size) * self._GROWTHS_OF_MIXTURES // drawn.rows.size
            parts[drawn.rows] = each
        distinct = DistinctRows.of(data, rows)
        of_first = distinct.first_in(drawn.rows)
        parts = np.append(parts, -1)[distinct.places]
        scores, growths = drawn.scores.copy(), []
        for number in range(parts.max() + 1):
            held_out = parts == number
            own = np.flatnonzero(held_out[of_first])
            if not own.size or held_out.all():  # a row may weigh more than a fold
                continue
            if growths and progress.reason_to_stop():  # what has hardly begun is no help
                break
            # With more time a search may choose otherwise, and other rows are merged then.
            name, all_rows = f"growth beside C={self.C_!r}, {number}", distinct.data.apart(number)
            grown = self._grown(all_rows, progress, name, held_out, n_maps, family)
            position = np.cumsum(held_out) - 1
            scores[own] = grown.held_out_scores[position[of_first[own]]]
            growths.append(grown)
            is_first = len(growths) == 1
            if is_first and not self._best_share(rows, drawn.some(own), scores[own])[0]:
                return scores, []  # the others would say so too
        return scores, growths

    def _join(self, grown: GrownMaps, share: float, scale: float, numbers) -> None:
        """Mix the model with that of grown ferns."""
        weights, intercept = _given(grown, numbers, scale)
        # Maps without any weight are dropped.
        drawn = self.maps_.families if share < 1.0 else ()
        theta, own = (self.theta_, self.coef_.T) if drawn else (np.empty(0), self.coef_.T[:0])
        self.grown_share_ = share
        self._set_model(
            MapSet((*drawn, grown.plain())),
            np.concatenate([(1.0 - share) * theta, share * _shares(grown)]),
            np.concatenate([(1.0 - share) * own, share * weights]),
            (1.0 - share) * self.intercept_ + share * intercept,
        )

    # What follows from tables -----------------------------------------------------------------

    @property
    def table_features_(self):
        """Feature of each table, -1 where it joins several."""
        check_is_fitted(self)
        return self.maps_.group_features

    @property
    def tables_(self):
        """Table of each used feature: what each of its cells adds to the scores."""
        check_is_fitted(self)
        pairs = zip(self.maps_.families, self.predictor_.tables, strict=True)
        return [
            table
            for maps, tables in pairs
            for table in np.split(tables, maps.cells.offsets[1:-1])[: maps.n_groups]
        ]

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much of the scores' variance each input column brings; they sum to one."""
        check_is_fitted(self)
        from mbkl.explain import column_importances

        return column_importances(self)

    def explain_global(self, X=None, **options):
        """Show what the model has learned: see `mbkl.explain.explain_global`."""
        from mbkl.explain import explain_global

        return explain_global(self, X, **options)

    def explain_local(self, X, **options):
        """Divide the scores of rows among the features: see `mbkl.explain.explain_local`."""
        from mbkl.explain import explain_local

        return explain_local(self, X, **options)

    def _fitted_as(self, kind: Any, **parameters):
        """Return a fitted estimator of another kind: these parameters, and all that both have."""
        own = self._get_param_names()
        shared = set(own).intersection(kind._get_param_names()).difference(parameters)
        model = kind(**{name: getattr(self, name) for name in shared}, **parameters)
        for name, value in vars(self).items():
            if name not in own and not name.startswith("_skl"):
                setattr(model, name, value)
        return model

    def _scores(self, X, predictor: TablePredictor | None = None) -> np.ndarray:
        if not hasattr(X, "blocks"):
            # A device finds infinities sooner.
            X = self.rows_of(X, ensure_all_finite=False)
            return (predictor or self.predictor_).scores(X, check_finite=True)
        X, predictor = self.rows_of(X), predictor or self.predictor_
        blocks = X.blocks(rows_at_once(X.shape[1]))
        nothing = np.empty((0, self.intercept_.size))
        return np.concatenate([nothing, *(predictor.scores(rows) for _, rows in blocks)])


@dataclass(frozen=True)
class DistinctRows:
    """All rows, equal ones once, in an order of their own: what ferns are grown on in mixtures.

    Rows that drawn maps do not tell apart may differ; where maps were drawn for them, they are
    held out together. All are here, where they may be taken in any order.
    """

    data: TrainingRows
    places: np.ndarray  # (n_rows,): in which of the rows that maps were drawn for; -1 for none

    @classmethod
    def of(cls, data: TrainingRows, rows: LabelledRows) -> DistinctRows:
        """Return all of the data, of which `rows` are merged ones that maps were drawn for."""
        whole, chosen = data.whole or data, data.chosen
        of_all = np.full(whole.y.size, -1)
        of_all[slice(None) if chosen is None else chosen] = rows.places
        distinct, number = distinct_rows(whole)
        places = np.full(distinct.y.size, -1)
        np.maximum.at(places, number, of_all)
        return cls(distinct, places)

    def first_in(self, merged: np.ndarray) -> np.ndarray:
        """Return one row of each of some merged ones, whatever the order of all rows was."""
        first = np.empty(self.places.max() + 2, dtype=np.intp)  # the last is for those in none
        first[self.places[::-1]] = np.arange(self.places.size)[::-1]
        return first[merged]


def distinct_rows(data: TrainingRows) -> tuple[TrainingRows, np.ndarray]:
    """Return all rows, equal ones once, in a random order of their own, and the number of each."""
    keys = data.rows.keys(data.y, data.settings.seed)
    distinct, first, number = np.unique(keys, return_index=True, return_inverse=True)
    integers, unit = to_fixed_point(data.weights[:, None])
    mass = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(mass, number, integers[:, 0])
    return replace(data.some(first), weights=mass * unit), number


@estimator
class OneCost(Costs, Placed, KernelPredictor):
    """What fits with costs that are given, or chosen with the maps, are for classes and numbers."""

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn the kernel, and the classifier or regression.

        Parameters
        ----------
        X : {dataframe, array-like, sparse matrix} of shape (n_samples, n_features)
            Missing values are NaN (or None in a frame) and have a cell of their own.
        y : array-like of shape (n_samples,)
            Class labels, or numbers to predict; these may be several targets, of shape
            (n_samples, n_outputs).
        sample_weight : array-like of shape (n_samples,) or None
            A weight of two means the sample twice (for ferns that are grown alone nearly so),
            zero means its absence.

        Returns
        -------
        self : object
        """
        X, y, weights = self._validate_rows(X, y, sample_weight)
        progress = self._progress(X, y, weights)
        return self._fit_data(self._training_rows(X, y, weights, progress), progress)


def _given(grown: GrownMaps, numbers: Numbers | None, scale: float = 1.0) -> tuple[Any, Any]:
    """Return the weights and intercept of grown ferns in the unit of the targets."""
    weights, intercept = grown.path * scale, grown.intercept * scale
    return (weights, intercept) if numbers is None else numbers.given(weights, intercept)


def _family(rows: LabelledRows) -> GrownFerns:
    """Return what is grown without each of some folds."""
    has_two_classes = rows.numbers is None and rows.n_classes == 2
    return _OF_TWO_CLASSES if has_two_classes else _OF_OTHERS


def _shares(grown: GrownMaps) -> np.ndarray:
    """Return the kernel weights of grown ferns, which sum to one."""
    prior = grown.prior()
    return prior / prior.sum() if prior.any() else prior


def cost_of_choice(choice: Choice | None, learner: Learner) -> float:
    """Return the cost that suits the chosen maps: for a row what it was in the sample."""
    if choice is None:
        return 1.0
    return choice.cost * learner.merged.rows.n_rows / REFERENCE_ROWS


def costs_of(model: Any, choice: Choice | None, learner: Learner) -> tuple[float, float]:
    """Return the costs of Steps 1 and 2: what the parameters say, or what was chosen."""
    if model.C == "auto":
        return model.C_kernel or 1.0, model._suggested_cost(choice, learner)
    return model.C_kernel or min(float(model.C), 1.0), float(model.C)

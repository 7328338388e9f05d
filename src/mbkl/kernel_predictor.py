"""What classifiers and regressors share: the fit, its collapse to tables, and explanations."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

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
from mbkl.predictor import TablePredictor
from mbkl.solvers.problem import Solution

# In a mixture of few rows each of so many folds stops one growth early. Three folds are 0.1 points
# worse in no less time: each growth sees fewer rows, and fewer growths are averaged. The learning
# rate is twice the usual one, and the patience half of it: the mean of five growths is as good, in
# four fifths of the time (python -m benchmarks.suite --methods MBKLClassifierCV --rows 1800).
_FOLDS = 5
_GROWTH_OF_TWO_CLASSES, _GROWTH_OF_OTHERS = (
    GrownFerns(rate=rate, patience=20) for rate in (0.4, 0.2)
)

_NOTHING_GROWN = (
    "No fern tells rows apart that took no part in growing it, and the model is "
    "constant. Look whether any feature varies; with few rows, use random ferns, maps='ferns'."
)


class RowLimits(NamedTuple):
    """Numbers of rows by which a default fit uses drawn maps, a mixture, or grown ferns."""

    mix_from: int  # from so many rows on, drawn maps are mixed with grown ferns
    draw_for: int  # of more rows, maps are drawn for so many, while ferns are grown on all
    grow_above: int  # with more rows, grown ferns are the whole model


@estimator
class KernelPredictor(CallbackSupportMixin, Predicting):
    """The fit of classifiers and regressors with given costs, and what follows from its tables."""

    # Names of Step 2 in warnings, and of the stage that scores held-out rows.
    _STEP_2: ClassVar[str] = "Step 2 (classifier weights)"
    _HELD_OUT_STAGE: ClassVar[str]

    @property
    def has_costs(self) -> bool:
        """Whether the user gives costs, so that Step 2 has to be run."""
        raise NotImplementedError

    def grows(self, shape: tuple[int, int]) -> bool:
        """Say whether grown ferns are the whole model: by `maps`, or by default on many rows."""
        if self.has_costs or self.theta != "ones":
            return False
        if self.maps != "auto":
            plans = self.plans(shape)
            return len(plans) == 1 and plans[0].is_grown
        return self.loss != "hinge" and shape[0] > self._row_limits.grow_above

    @property
    def _row_limits(self) -> RowLimits:
        """The limits of this estimator, read at the time of a fit."""
        raise NotImplementedError

    def _fit_data(self, data: TrainingRows, progress: Progress):
        """Grow ferns, or draw maps and run Algorithm 1 with them."""
        if self.grows(data.rows.shape):
            return self._fit_growth(self._without_line(data, None, progress), progress)
        data = self._rows_to_draw_for(data)
        choice = self._choose(data, progress)
        data = self._without_line(data, choice, progress)
        learner = self._draw(data, choice, progress)
        C_kernel, C = costs_of(self, choice, learner)
        return self._fit_drawn(learner.merged, C_kernel, C, choice, data)

    def _without_line(
        self, data: TrainingRows, choice: Choice | None, progress: Progress
    ) -> TrainingRows:
        """Return the rows with the residuals of a straight line as numbers, where it helps."""
        return data

    def _fit_drawn(
        self,
        learner: Learner,
        C_kernel: float,
        C: float,
        choice: Choice | None,
        data: TrainingRows,
    ):
        """Run Steps 0, 1 and 2 of Algorithm 1 on merged rows, then calibrate or mix."""
        progress = learner.progress
        # A resumed search may choose other costs: names of stages in the checkpoint contain them.
        setting = f"C_kernel={C_kernel!r}, C={C!r}, depth={choice and choice.depth!r}"
        setting += f", shrinkage={learner.settings.theta_shrinkage!r}"
        # Steps 0 and 1: the kernel.
        kernel = progress.recall(
            f"kernel weights, {setting}", Kernel, lambda: learner.learn_kernel(C_kernel)
        )
        # Step 2: the classifier or regression with this kernel.
        mixes = self._mixes(data, learner.rows)
        n_left_out = self._n_leave_one_out(learner.rows, mixes)
        solution = progress.recall(
            f"classifier weights, {setting}",
            Solution,
            lambda: learner.learn_classifier(kernel, C, n_left_out=n_left_out),
        )
        with progress.stage(self._HELD_OUT_STAGE):
            held_out = progress.recall(
                f"{self._HELD_OUT_STAGE}, {setting}",
                HeldOut,
                lambda: self._held_out_scores(learner, kernel, solution, C_kernel, C, mixes),
            )
        self.C_ = C
        with progress.stage("tables"):
            self._collapse(learner, kernel, solution)
        self._use_held_out(learner, kernel, solution, held_out, data)
        self.timings_ = progress.finish()
        return self

    def _n_leave_one_out(self, rows: LabelledRows, mixes: bool) -> int:
        """Return for how many of the first rows Step 2 computes leave-one-out scores."""
        raise NotImplementedError

    def _held_out_scores(
        self, learner: Learner, kernel: Kernel, solution, C_kernel, C, mixes: bool
    ) -> HeldOut:
        """Return scores of rows by models that were fitted without them."""
        raise NotImplementedError

    def _use_held_out(
        self,
        learner: Learner,
        kernel: Kernel,
        solution: Solution,
        held_out: HeldOut,
        data: TrainingRows,
    ) -> None:
        """Mix with grown ferns, and calibrate probabilities or intervals, by held-out scores."""
        raise NotImplementedError

    def _use_growth(
        self, data: TrainingRows, grown: GrownMaps, is_held_out, progress: Progress
    ) -> None:
        """Calibrate probabilities or intervals by the rows that growth held out."""
        raise NotImplementedError

    def _grow_maps(
        self,
        data: TrainingRows,
        progress: Progress,
        name: str = "growth",
        is_held_out=None,
        n_maps: int | None = None,
        family: Any = "grown",
    ) -> GrownMaps:
        """Grow ferns, or recall them; `n_maps` and `family` apply where parameters are "auto"."""
        maps = family if self.maps == "auto" else self.maps
        n_maps = n_maps if self.n_maps == "auto" else int(self.n_maps)
        (plan,) = plans_of(maps, n_maps, data.rows.shape, self.n_levels)
        targets, seed = replace(data.targets, held_out=is_held_out), data.settings.seed
        with progress.stage("growth") as iteration:
            rows = self._placed(data, [plan], 1)
            return progress.recall(
                name, GrownMaps, lambda: plan.grow(rows, targets, seed, iteration)
            )

    def _suggested_cost(self, choice: Choice | None, learner: Learner) -> float:
        """Return the cost of Step 2 where C is "auto"."""
        return cost_of_choice(choice, learner)

    def _fit_growth(self, data: TrainingRows, progress: Progress, is_held_out=None):
        """Fit a model of grown ferns alone; `C_` is 0, as its weights are those of growth.

        Held-out rows, a mask of shape (n_rows,), stop growth early; None draws them at random.
        """
        grown = self._grow_maps(data, progress, is_held_out=is_held_out)
        if not grown.n_maps and data.line is None:
            warnings.warn(_NOTHING_GROWN, UserWarning, stacklevel=3)
        elif reason := progress.reason_to_stop():
            message = f"Growth stopped after {grown.n_rounds} ferns, because {reason}."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        with progress.stage("tables"):
            weights, intercept = _in_target_unit(grown, data.numbers)
            self._set_model(MapSet((grown.plain(),)), _theta_of(grown), weights, intercept)
            self.C_, self.grown_share_, self.feature_rates_ = 0.0, 1.0, None
            self.n_iter_ = max(grown.n_rounds, 1)
            self.objective_ = self.gap_ = np.full(2, np.nan)
            self._use_growth(data, grown, is_held_out, progress)
        self.timings_ = progress.finish()
        return self

    def _collapse(self, learner: Learner, kernel: Kernel, solution: Solution) -> None:
        """Set the learned attributes of Steps 1 and 2, and collapse the weights to tables."""
        kept = self._set_kernel(learner, kernel)
        learner.warn_if_not_converged(
            self._STEP_2, solution, "Use a smaller C or a larger max_iter."
        )
        operator, numbers = learner.rows.operator, learner.rows.numbers
        weights, intercept = solution.weights, solution.intercept
        if numbers is None:
            weights = rounded_cells(operator, weights)
        else:  # solvers see standardised numbers
            weights, intercept = numbers.given(weights, intercept)
        weights = weights.compress(operator.spread(kept), axis=0)  # faster than an index
        self._set_model(self.maps_, self.theta_, weights, intercept)
        first = kernel.solution
        self.n_iter_ = max(1, solution.n_iter + (first.n_iter if first else 0))
        self.objective_ = np.array(
            [first.objective.sum() if first else np.nan, solution.objective.sum()]
        )
        self.gap_ = np.array([first.relative_gap if first else np.nan, solution.relative_gap])

    def _set_model(self, maps: MapSet, theta, weights, intercept) -> None:
        """Set the maps with kernel weights, the weights in the unit of y, and their tables."""
        self.maps_, self.theta_, self.n_maps_ = maps, theta, maps.n_maps
        self.coef_, self.intercept_ = weights.T, intercept
        tables = maps.tables(weights, choose_loops(weights.size, self.n_jobs))
        self.predictor_ = TablePredictor(maps, tables, intercept, self.n_jobs, self.device)

    # Mixtures ----------------------------------------------------------------------------------

    @property
    def _is_automatic(self) -> bool:
        """Whether the fit chooses maps, kernel weights and costs by itself."""
        return self.maps == "auto" and self.theta == "ones" and not self.has_costs

    def _may_mix(self, shape: tuple[int, int]) -> bool:
        """Say whether grown ferns may be mixed with maps drawn for rows of that shape."""
        has_leave_one_out = self.loss not in ("hinge", "logistic")
        return has_leave_one_out and self._is_automatic and not self.grows(shape)

    def _mixes(self, data: TrainingRows, rows: LabelledRows) -> bool:
        """Say whether grown ferns are to be mixed with the maps drawn for these merged rows."""
        if rows.places is None or rows.n_rows < self._row_limits.mix_from:
            return False
        whole = data.whole or data
        return self._may_mix(whole.rows.shape) and not whole.rows.in_files

    def _rows_to_draw_for(self, data: TrainingRows) -> TrainingRows:
        """Return the rows that maps are drawn for, in memory where ferns may be mixed in."""
        if not self._may_mix(data.rows.shape) or self._must_stay_in_files(data):
            return data
        data, n_rows = replace(data, rows=data.rows.in_memory()), self._row_limits.draw_for
        if data.rows.shape[0] <= n_rows:
            return data
        return data.some(first_by_hash(data.rows, data.y, n_rows, data.settings.seed))

    def _must_stay_in_files(self, data: TrainingRows) -> bool:
        """Say whether `max_memory` forbids to read rows in files into memory."""
        return data.rows.in_files and self.max_memory is not None

    def _mix(self, data: TrainingRows, learner: Learner, drawn: HeldOut) -> HeldOut | None:
        """Mix grown ferns into the model, with the share that suits held-out rows best.

        Returns the scores of these rows by the mixture, or None where nothing was mixed.
        """
        self.grown_share_ = 0.0
        rows, progress = learner.rows, learner.progress
        if drawn.rows is None or progress.reason_to_stop() or not self._mixes(data, rows):
            return None
        scores, growths = self._grow_beside(data, rows, drawn, progress)
        if not growths:
            return None
        share, scale = self._best_share(rows, drawn, scores)
        if share:
            self._add_growth(mean_growth(growths), share, scale, data.numbers)
        return replace(drawn, scores=(1.0 - share) * drawn.scores + share * scale * scores)

    def _best_share(self, rows: LabelledRows, drawn: HeldOut, grown) -> tuple[float, float]:
        """Return the best share of grown ferns, and the factor that scales their scores."""
        raise NotImplementedError

    def _grow_beside(
        self, data: TrainingRows, rows: LabelledRows, drawn: HeldOut, progress: Progress
    ) -> tuple[np.ndarray, list[GrownMaps]]:
        """Return scores of held-out rows by ferns that grew without them, and these growths.

        Each fold of held-out rows stops a separate growth early.
        """
        assert drawn.rows is not None
        if rows.n_rows < limits.ROWS_OF_MIXTURES or drawn.rows.size == rows.n_rows:
            # Some of so few rows do not determine the share: hold out each row once, in folds.
            n_maps, family = limits.FERNS_OF_A_FOLD, _family_of_fold(rows)
            folds = rows.folds(_FOLDS)
        else:
            # The share for numbers needs many held-out rows, and a growth many that are not.
            n_growths = 1 if rows.numbers is None else 2
            n_maps, family = limits.FERNS_OF_A_MIXTURE // n_growths, GrownFerns()
            folds = np.full(rows.n_rows, -1)  # -1: never held out
            folds[drawn.rows] = np.arange(drawn.rows.size) * n_growths // drawn.rows.size
        distinct = DistinctRows.of(data, rows)
        first = distinct.first_of(drawn.rows)
        folds = np.append(folds, -1)[distinct.places]
        scores, growths = drawn.scores.copy(), list[GrownMaps]()
        for fold in range(folds.max() + 1):
            is_held_out = folds == fold
            scored = np.flatnonzero(is_held_out[first])
            if not scored.size or is_held_out.all():  # a row may weigh more than a fold
                continue
            if growths and progress.reason_to_stop():  # another growth would end at once
                break
            # A resumed search may choose another cost and merge other rows: the name contains it.
            name, all_rows = f"growth beside C={self.C_!r}, {fold}", distinct.data.reseeded(fold)
            grown = self._grow_maps(all_rows, progress, name, is_held_out, n_maps, family)
            position = np.cumsum(is_held_out) - 1
            scores[scored] = grown.held_out_scores[position[first[scored]]]
            growths.append(grown)
            is_first = len(growths) == 1
            if is_first and not self._best_share(rows, drawn.some(scored), scores[scored])[0]:
                return scores, []  # other folds would give a share of zero, too
        return scores, growths

    def _add_growth(self, grown: GrownMaps, share: float, scale: float, numbers) -> None:
        """Mix the model of drawn maps with grown ferns, whose scores get this share and scale."""
        weights, intercept = _in_target_unit(grown, numbers, scale)
        # With a share of one the drawn maps have no weight, and are dropped.
        drawn = self.maps_.families if share < 1.0 else ()
        theta, coef = (self.theta_, self.coef_.T) if drawn else (np.empty(0), self.coef_.T[:0])
        self.grown_share_ = share
        self._set_model(
            MapSet((*drawn, grown.plain())),
            np.concatenate([(1.0 - share) * theta, share * _theta_of(grown)]),
            np.concatenate([(1.0 - share) * coef, share * weights]),
            (1.0 - share) * self.intercept_ + share * intercept,
        )

    # Tables and explanations -------------------------------------------------------------------

    @property
    def table_features_(self):
        """Feature of each table, -1 for tables of several features."""
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
        """Return this fitted model as another estimator, with given and shared parameters."""
        names = self._get_param_names()
        shared = set(names).intersection(kind._get_param_names()).difference(parameters)
        model = kind(**{name: getattr(self, name) for name in shared}, **parameters)
        for name, value in vars(self).items():
            if name not in names and not name.startswith("_skl"):
                setattr(model, name, value)
        return model

    def _scores(self, X, predictor: TablePredictor | None = None) -> np.ndarray:
        if not hasattr(X, "blocks"):
            # The predictor checks for infinities itself, which is faster on a device.
            X = self.rows_of(X, ensure_all_finite=False)
            return (predictor or self.predictor_).scores(X, check_finite=True)
        X, predictor = self.rows_of(X), predictor or self.predictor_
        blocks = X.blocks(rows_at_once(X.shape[1]))
        nothing = np.empty((0, self.intercept_.size))
        return np.concatenate([nothing, *(predictor.scores(rows) for _, rows in blocks)])


@dataclass(frozen=True)
class DistinctRows:
    """All distinct rows, in random order: ferns are grown on them in mixtures.

    Distinct rows with equal codes of the drawn maps belong to one merged row, and are held out
    together.
    """

    data: TrainingRows
    places: np.ndarray  # (n_rows,): number of the merged row; -1 where no map was drawn for a row

    @classmethod
    def of(cls, data: TrainingRows, rows: LabelledRows) -> DistinctRows:
        """Return all rows of the data, of which `rows` are the merged ones with drawn maps."""
        whole, chosen = data.whole or data, data.chosen
        of_all = np.full(whole.y.size, -1)
        of_all[slice(None) if chosen is None else chosen] = rows.places
        distinct, number = distinct_rows(whole)
        places = np.full(distinct.y.size, -1)
        np.maximum.at(places, number, of_all)
        return cls(distinct, places)

    def first_of(self, merged: np.ndarray) -> np.ndarray:
        """Return the first distinct row of each of some merged rows."""
        first = np.empty(self.places.max() + 2, dtype=np.intp)  # the last is for places of -1
        first[self.places[::-1]] = np.arange(self.places.size)[::-1]
        return first[merged]


def distinct_rows(data: TrainingRows) -> tuple[TrainingRows, np.ndarray]:
    """Return the distinct rows in random order, and for each row the number of its distinct one."""
    keys = data.rows.keys(data.y, data.settings.seed)
    distinct, first, number = np.unique(keys, return_index=True, return_inverse=True)
    integers, unit = to_fixed_point(data.weights[:, None])
    mass = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(mass, number, integers[:, 0])
    return replace(data.some(first), weights=mass * unit), number


@estimator
class OneCost(Costs, Placed, KernelPredictor):
    """A fit with one cost, which is given or chosen with the maps."""

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
            A weight of two equals the sample given twice (approximately for ferns grown alone),
            zero leaves it out.

        Returns
        -------
        self : object
        """
        X, y, weights = self._validate_rows(X, y, sample_weight)
        progress = self._progress(X, y, weights)
        return self._fit_data(self._training_rows(X, y, weights, progress), progress)


def _in_target_unit(
    grown: GrownMaps, numbers: Numbers | None, scale: float = 1.0
) -> tuple[Any, Any]:
    """Return the weights and intercept of grown ferns in the unit of the targets."""
    weights, intercept = grown.path * scale, grown.intercept * scale
    return (weights, intercept) if numbers is None else numbers.given(weights, intercept)


def _family_of_fold(rows: LabelledRows) -> GrownFerns:
    """Return the ferns that are grown without one of the folds of few rows."""
    has_two_classes = rows.numbers is None and rows.n_classes == 2
    return _GROWTH_OF_TWO_CLASSES if has_two_classes else _GROWTH_OF_OTHERS


def _theta_of(grown: GrownMaps) -> np.ndarray:
    """Return the kernel weights of grown ferns, which sum to one."""
    prior = grown.prior()
    return prior / prior.sum() if prior.any() else prior


def cost_of_choice(choice: Choice | None, learner: Learner) -> float:
    """Return the cost that gives each row the cost it had in the sample of the choice."""
    if choice is None:
        return 1.0
    return choice.cost * learner.merged.rows.n_rows / REFERENCE_ROWS


def costs_of(model: Any, choice: Choice | None, learner: Learner) -> tuple[float, float]:
    """Return the costs of Steps 1 and 2, from the parameters or from the choice."""
    if model.C == "auto":
        return model.C_kernel or 1.0, model._suggested_cost(choice, learner)
    return model.C_kernel or min(float(model.C), 1.0), float(model.C)

"""What the estimators share: validation, drawing maps, binning, and the learner."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, column_or_1d, compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from mbkl.engine import engine_on
from mbkl.engine.fixed_point import exact_sum
from mbkl.engine.namespace import Values, look_up, to_host
from mbkl.engine.numpy_engine import NumpyEngine
from mbkl.engine.row_blocks import BlockRows, FloatRows, SomeRows, in_memory
from mbkl.engine.stream_engine import StreamEngine
from mbkl.learn.algorithm import Kernel, Learner, Settings, warn_if_not_converged
from mbkl.learn.limit_kernel import Choice, choose_kernel
from mbkl.learn.stream_learner import StreamLearner
from mbkl.maps.families import (
    FAMILIES,
    Family,
    MapSet,
    Plan,
    families_of,
    plans_of,
    plans_of_choice,
)
from mbkl.maps.ferns import FernMaps
from mbkl.maps.sample import draw_sample, sample_rows
from mbkl.maps.stumps import StumpMaps
from mbkl.memory import engine_within, estimate_memory, parse_bytes
from mbkl.progress import Progress

if TYPE_CHECKING:
    from mbkl.engine import Engine

_ACCEPTED = {
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": "allow-nan",
}


def _needs_copy(X) -> bool:
    """Say whether an array has to be turned to floating point, for which there may be no room."""
    is_matrix = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    return is_matrix and X.dtype not in (np.float32, np.float64)


@dataclass(frozen=True)
class Rows:
    """Training data of positive weight, with classes as numbers."""

    X: Any
    y: Values
    weights: Values
    settings: Settings


class BinaryMapsEstimator(BaseEstimator):
    """What all estimators share: validation, drawing maps, binning, and the learner."""

    maps: str | Family | list
    n_maps: int | str
    theta: str
    init_rule: str
    negatives_per_positive: int
    max_pairs: int
    loss: str
    class_weight: dict | str | None
    tol: float
    max_iter: int
    n_jobs: int | None
    verbose: int
    random_state: object

    # Not all estimators have these as parameters.
    max_memory: int | str | None = None
    cache_folder: object = None

    # Rows on which `maps="auto"` learns what to draw.
    _SAMPLE_ROWS = 500
    # How many times the usual number of ferns it draws.
    _FERN_FACTOR = 1

    _parameter_constraints: dict = {
        "maps": [
            StrOptions({"auto", *FAMILIES}),
            *FAMILIES.values(),
            list,
            tuple,
        ],
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

    def _validate_rows(self, X, y, sample_weight):
        """Return X, y and the sample weights as arrays."""
        if self.max_memory is not None and _needs_copy(X):
            X = FloatRows(X)
        if hasattr(X, "blocks"):
            y = self._validate_blocks(X, y)
        else:
            X, y = validate_data(self, to_host(X), to_host(y), **self._accepted())
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, y[:, None], dtype=np.float64)
        if (weights < 0).any():
            raise ValueError("sample_weight has negative entries; weights must be at least zero.")
        return X, y, weights

    def _validate_blocks(self, X: BlockRows, y) -> np.ndarray:
        """Check labels of rows that are read block by block, and checked then."""
        y = column_or_1d(y, warn=True)
        if len(y) != X.shape[0]:
            raise ValueError(f"y has {len(y):,} labels, but X has {X.shape[0]:,} rows.")
        if not len(y):
            raise ValueError("X has no rows; at least one is needed.")
        _check_feature_names(self, getattr(X, "names", X), reset=True)
        self.n_features_in_ = X.shape[1]
        return y

    def _validate_new(self, X):
        """Return rows to predict or transform as an array."""
        check_is_fitted(self)
        return validate_data(self, to_host(X), reset=False, **self._accepted())

    def _accepted(self) -> dict:
        """Return which rows are taken as they are, for `validate_data`."""
        if getattr(self, "device", "cpu") == "cpu":
            return _ACCEPTED
        # Bytes stay bytes on the way to a device.
        return {**_ACCEPTED, "accept_sparse": False, "dtype": (np.float64, np.float32, np.uint8)}

    def _encode(self, y, weights):
        """Return class numbers, and the weights times those of the classes."""
        classes, codes = np.unique(y, return_inverse=True)
        return codes, self._class_weighted(classes, codes, weights)

    def _class_weighted(self, classes, codes, weights):
        """Set the classes; return the weights times those of the classes."""
        self.classes_ = classes
        if classes.size < 2:
            found = f"one class, {classes[0]}" if classes.size else "no class"
            raise ValueError(
                "Training needs rows of at least two classes with positive weight, "
                f"but y has {found}."
            )
        if self.class_weight is None:
            return weights
        if self.class_weight == "balanced":
            own_class = codes[:, None] == np.arange(classes.size)
            totals = exact_sum(np.where(own_class, weights[:, None], 0.0))
            factors = totals.sum() / (totals.size * totals)
        else:
            factors = compute_class_weight(self.class_weight, classes=classes, y=classes)
        if not (factors > 0).all():
            raise ValueError("class_weight must be positive for every class in y.")
        return weights * look_up(factors, codes)

    def _learner(self, X, y, weights, progress: Progress) -> Learner:
        """Choose and draw the maps, bin the rows of positive weight, put all together."""
        rows = self._rows(X, y, weights, progress)
        self._choice = self._choose(rows, progress)
        return self._draw(rows, self._plans(rows, self._choice), progress)

    @property
    def fern_features_(self) -> list[np.ndarray]:
        """Features of the stumps that each fern joins."""
        return [piece for part in self._ferns() for piece in part.split(part.features)]

    @property
    def fern_thresholds_(self) -> list[np.ndarray]:
        """Thresholds of the stumps that each fern joins."""
        return [piece for part in self._ferns() for piece in part.split(part.thresholds)]

    def _ferns(self) -> list[FernMaps]:
        check_is_fitted(self)
        return [part for part in self._maps.parts if isinstance(part, FernMaps)]

    def save(self, path, *, extra=None) -> None:
        """Save the fitted model; `mbkl.load` brings it back, to the bit.

        Parameters
        ----------
        path : path or binary file
        extra : dict or None, default=None
            Anything that JSON can hold, kept with the model; see `mbkl.io.load_extra`.
        """
        from mbkl.io import save

        save(self, path, extra=extra)

    def _rows(self, X, y, weights, progress: Progress) -> Rows:
        """Return the rows of positive weight, and class numbers for labels."""
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0; use None or -1 for all cores.")
        present = weights > 0
        if not present.all():
            dense_in_parts = self._is_limited(X) and not sparse.issparse(X)
            X = SomeRows(X, np.flatnonzero(present)) if dense_in_parts else X[present]
            y, weights = y[present], weights[present]
        y, weights = self._encode(y, weights)
        # Without a fixed seed, a fit that goes on has to use the one it began with.
        settings = progress.recall("settings", Settings, self._settings)
        return Rows(X, y, weights, settings)

    def _choose(self, rows: Rows, progress: Progress) -> Choice | None:
        """Return what a sample of the rows suggests, for maps="auto"."""
        if self.maps != "auto":
            return None

        def choose() -> Choice:
            wanted = sample_rows(rows.X.shape[1], self._SAMPLE_ROWS)
            sample = draw_sample(rows.X, rows.y, rows.weights, wanted, rows.settings.seed)
            return choose_kernel(sample, self.classes_.size, sample.n_different)

        with progress.stage("choice of maps"):
            return progress.recall("choice of maps", Choice, choose)

    def _plans(self, rows: Rows, choice: Choice | None) -> list[Plan]:
        """Return which maps to draw: what was chosen, or what `maps` says."""
        n_maps = None if self.n_maps == "auto" else int(self.n_maps)
        if choice is not None:
            shape = (choice.n_rows, rows.X.shape[1])
            return plans_of_choice(choice, n_maps, shape, self._FERN_FACTOR)
        return plans_of(families_of(self.maps), n_maps, rows.X.shape)

    def _draw(self, rows: Rows, plans: list[Plan], progress: Progress, n_fits: int = 1) -> Learner:
        """Draw maps and bin the rows; sets `_maps`."""
        X, seed = rows.X, rows.settings.seed
        n_classes = self.classes_.size
        with progress.stage("binary maps"):
            engine = self._engine(X, plans, n_fits)
            X = X if isinstance(engine, StreamEngine) else in_memory(X)
            engine.hold(X)
            kinds = [type(plan.family) for plan in plans]
            # Two families of a kind are not to be the same draw twice.
            seeds = [seed + kinds[:position].count(kind) for position, kind in enumerate(kinds)]
            drawn = [
                plan.draw(X, rows.weights, own, engine)
                for plan, own in zip(plans, seeds, strict=True)
            ]
            self._maps = MapSet(tuple(maps for maps, _, _ in drawn))
            operator = self._maps.operator([codes for _, codes, _ in drawn], engine)
            multiplicity = np.zeros(operator.n_slots)
            multiplicity[operator.is_map] = np.concatenate([prior for _, _, prior in drawn])
            engine.let_go()
        if not self._maps.n_maps:
            warnings.warn(
                "No feature of X varies over the rows with positive weight; the model is constant.",
                UserWarning,
                stacklevel=3,
            )
        return self._learner_of(engine)(
            operator, multiplicity, rows.y, n_classes, rows.weights, rows.settings, progress
        )

    def _learner_of(self, engine: Engine) -> Callable[..., Learner]:
        """Return what makes a learner from codes of that engine."""
        return StreamLearner if isinstance(engine, StreamEngine) else Learner

    def _engine(self, X, plans: list[Plan], n_fits: int) -> Engine:
        """Return what computes: on a device, or here within the memory allowed."""
        n_classes = self.classes_.size
        n_codes = sum(plan.n_codes(X.shape) for plan in plans)
        n_columns = 1 if n_classes == 2 else n_classes
        device = getattr(self, "device", "cpu")
        engine = engine_on(device, n_codes * n_columns * n_fits, self.n_jobs)
        if not self._is_limited(X):
            return engine
        if not isinstance(engine, NumpyEngine):
            raise ValueError("max_memory and rows in files need device='cpu'.")
        limit = None if self.max_memory is None else parse_bytes(self.max_memory)
        estimate = estimate_memory(self, X.shape[0], X.shape[1], n_classes)
        return engine_within(engine, estimate, limit, X, plans, self.cache_folder)

    def _is_limited(self, X) -> bool:
        """Say whether the rows may be too many for memory."""
        return hasattr(X, "blocks") or self.max_memory is not None

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
        self._maps = self._maps.select(kept[learner.operator.is_map])
        self.theta_ = kernel.theta[kept]
        self.n_maps_ = int(kept.sum())
        stumps = [part for part in self._maps.parts if isinstance(part, StumpMaps)]
        nothing = np.empty(0)
        self.stump_features_ = np.concatenate(
            [nothing.astype(np.intp), *(part.stump_features for part in stumps)]
        )
        self.stump_thresholds_ = np.concatenate(
            [nothing, *(part.edges.thresholds for part in stumps)]
        )
        self.feature_rates_ = None if self._choice is None else self._choice.rates
        if kernel.solution is not None:
            warn_if_not_converged(
                "Step 1 (kernel weights)",
                kernel.solution,
                "Use a smaller C_kernel (1 is nearly always large enough) or a larger max_iter.",
                learner,
            )
        return kept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

"""What all estimators share: parameters, validation of the input, and the drawing of maps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, column_or_1d, compute_class_weight
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    _check_y,
    check_array,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from mbkl.declare import AT_LEAST_ONE, POSITIVE, estimator, parameter
from mbkl.engine import choose_loops, limits
from mbkl.engine.arrays import Values, exact_sum, look_up, to_host
from mbkl.engine.device import DeviceRows, device_for, device_of
from mbkl.engine.rows import FloatRows, Rows, Sample, SomeRows, as_rows, to_float32
from mbkl.learn.algorithm import Kernel, Learner, Settings
from mbkl.learn.classifier_weights import n_problems_of
from mbkl.learn.labelled_rows import LabelledRows
from mbkl.learn.progress import Progress, open_checkpoint
from mbkl.levels import (
    Levels,
    NoLevels,
    check_level_numbers,
    chosen_columns,
    counts_of,
    is_frame,
    learn_levels,
    names_among,
    numbers_as_levels,
    to_numbers,
)
from mbkl.maps.choose import Choice, choose_kernel, rows_to_compare
from mbkl.maps.families import FAMILIES, Plan, Targets, draw_all, plans_of, plans_of_choice
from mbkl.maps.line import Line
from mbkl.maps.numbers import Numbers
from mbkl.memory import rows_within

# "torch" is Torch on the CPU, to test the code for GPUs without one.
DEVICES = {"auto", "cpu", "torch", "cuda", *(f"cuda:{number}" for number in range(16))}

_ACCEPTED = {
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": "allow-nan",
}

# The default of theta_shrinkage: of the values tried, the one that gains in the mean and hardly
# loses on any data set.
_SHRINKAGE = 0.9


@dataclass(frozen=True)
class TrainingRows:
    """Rows of positive weight; y holds class numbers, or places of numbers among their levels."""

    rows: Rows
    y: Values
    weights: Values
    settings: Settings
    n_classes: int
    numbers: Numbers | None = None
    # If these are some rows of a larger set: the larger set, and their row numbers in it.
    whole: TrainingRows | None = None
    chosen: np.ndarray | None = None
    line: Line | None = None  # subtracted from the numbers; the fitted model adds it again
    optimism: float = 1.0  # see `Choice`

    @property
    def targets(self) -> Targets:
        return Targets(self.y, self.n_classes, self.weights, self.numbers)

    @property
    def n_problems(self) -> int:
        """Number of columns of the scores."""
        return n_problems_of(self.n_classes, self.numbers)

    def reseeded(self, number: int) -> TrainingRows:
        """Return the same rows with a seed that is larger by this number."""
        return replace(self, settings=replace(self.settings, seed=self.settings.seed + number))

    def some(self, chosen: np.ndarray) -> TrainingRows:
        """Return some of the rows, given by increasing row numbers."""
        values = {"y": self.y[chosen], "weights": self.weights[chosen]}
        return replace(self, rows=self.rows.some(chosen), **values, whole=self, chosen=chosen)


@estimator
class BinaryMapsEstimator(BaseEstimator):
    """What all estimators share; see `MBKLClassifier` for the parameters."""

    maps: Any = parameter(
        StrOptions({"auto", *FAMILIES}), *FAMILIES.values(), list, tuple, default="auto"
    )
    n_maps: Any = parameter(StrOptions({"auto"}), AT_LEAST_ONE, default="auto")
    theta: str = parameter(
        StrOptions({"learned", "ones", "reweighted", "alignment"}), default="ones"
    )
    theta_shrinkage: Any = parameter(
        Interval(Real, 0.0, 1.0, closed="both"), StrOptions({"auto"}), default="auto"
    )
    init_rule: str = parameter(StrOptions({"balanced", "median"}), default="balanced")
    max_pairs: int = parameter(Interval(Integral, 2, None, closed="left"), default=50_000)
    categorical_features: Any = parameter(
        "array-like", StrOptions({"from_dtype"}), None, default="from_dtype"
    )
    tol: float = parameter(POSITIVE, default=1e-3)
    max_iter: int = parameter(AT_LEAST_ONE, default=200)
    random_state: Any = parameter("random_state", default=None)
    n_jobs: int | None = parameter(
        AT_LEAST_ONE, Interval(Integral, None, -1, closed="right"), None, default=None
    )
    verbose: int = parameter("verbose", default=0)

    # Defaults for estimators without these parameters.
    negatives_per_positive = 2
    if TYPE_CHECKING:
        loss: ClassVar[str]
    theta_power: ClassVar[float] = 0.5
    device: ClassVar[str] = "cpu"
    max_memory: ClassVar[Any] = None
    cache_folder: ClassVar[Any] = None
    checkpoint: ClassVar[Any] = None

    # With maps="auto" this times the usual number of ferns is drawn.
    _FERN_FACTOR: ClassVar[int] = 1

    # Input -------------------------------------------------------------------------------------

    def _validate_rows(self, X, y, sample_weight) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return X, y and the sample weights as arrays; X may be rows that are read by blocks."""
        if self.max_memory is not None and _needs_copy(X):
            X = FloatRows(X)
        if hasattr(X, "blocks"):
            y = self._validate_blocks(X, y)
        else:
            given = to_host(X)
            X, y = self._validate_matrix(given, to_host(y))
        self._check_targets(y)
        weights = _check_sample_weight(sample_weight, y.reshape(len(y), -1), dtype=np.float64)
        if (weights < 0).any():
            raise ValueError("sample_weight has negative entries; weights must be at least zero.")
        if not hasattr(X, "blocks"):
            X = self._with_names(given, X, y)
        return X, y, weights

    def _validate_matrix(self, X, y) -> tuple[Any, np.ndarray]:
        """Return a frame or matrix as numbers, and the labels; sets `levels_`."""
        names = [str(name) for name in X.columns] if is_frame(X) else None
        numbers, levels = learn_levels(X, self.categorical_features, names)
        options = {**self._accepted(), **self._accepted_targets}
        if levels is None:
            X, y = validate_data(self, X, y, **options)
        else:
            validate_data(self, X, skip_check_array=True)
            X, y = check_X_y(numbers, y, estimator=self, **options)
        self.levels_: Sequence[Levels] = levels or NoLevels(self.n_features_in_)
        return X, y

    def _with_names(self, given, X, y) -> Any:
        """Return X with level numbers in columns of whole numbers that are names; sets `levels_`.

        Such columns are looked for by default only: with maps="auto" and "from_dtype".
        """
        is_default = self.maps == "auto" and isinstance(self.categorical_features, str)
        if not is_default or not isinstance(X, np.ndarray):
            return X
        are_categories = np.array([levels is not None for levels in self.levels_])
        are_names = names_among(X, y) & ~are_categories
        if not are_names.any():
            return X
        numbers, levels = learn_levels(given, are_names | are_categories, None)
        self.levels_ = levels or NoLevels(self.n_features_in_)
        return check_array(numbers, estimator=self, **self._accepted())

    def _validate_blocks(self, X, y) -> np.ndarray:
        """Check the labels of rows that are read by blocks; each block is checked when read."""
        if self._accepted_targets:
            y = _check_y(y, **self._accepted_targets)
        else:
            y = column_or_1d(y, warn=True)
        if len(y) != X.shape[0]:
            raise ValueError(f"y has {len(y):,} labels, but X has {X.shape[0]:,} rows.")
        if not len(y):
            raise ValueError("X has no rows; at least one is needed.")
        _check_feature_names(self, getattr(X, "names", X), reset=True)
        self.n_features_in_ = X.shape[1]
        self._set_levels_of_blocks(as_rows(X))
        return y

    def _set_levels_of_blocks(self, rows: Rows) -> None:
        """Set `levels_` of rows that are read by blocks: their categories hold level numbers."""
        names = getattr(self, "feature_names_in_", None)
        is_category = chosen_columns(self.categorical_features, rows.shape[1], names)
        ranges = rows.column_ranges() if is_category.any() else ()
        self.levels_ = numbers_as_levels(ranges, is_category)

    # Options of scikit-learn's checks of y.
    _accepted_targets: ClassVar[dict] = {}

    def _check_targets(self, y: np.ndarray) -> None:
        """Raise an error for targets that the estimator cannot learn."""
        raise NotImplementedError

    def _numbered(self, y: np.ndarray, weights) -> dict[str, Any]:
        """Return the fields of `TrainingRows` that follow from y: class or level numbers, etc."""
        raise NotImplementedError

    def rows_of(self, X, **options):
        """Return rows to predict or transform as a validated array; rows in blocks as they are.

        Options are those of `validate_data`, and replace the ones used in a fit.
        """
        options = {**self._accepted(), **options}
        check_is_fitted(self)
        if hasattr(X, "blocks"):
            _check_feature_names(self, getattr(X, "names", X), reset=False)
            _check_n_features(self, X, reset=False)
            check_level_numbers(self.levels_)
            return X
        X = to_host(X)
        if self.n_levels is None and not is_frame(X):
            return validate_data(self, X, reset=False, **options)
        validate_data(self, X, reset=False, skip_check_array=True)
        return check_array(to_numbers(X, self.levels_), estimator=self, **options)

    @property
    def n_levels(self) -> np.ndarray | None:
        """Number of levels of each input column, 0 for numbers; None without categories."""
        return counts_of(getattr(self, "levels_", ()))

    def _accepted(self) -> dict:
        """Return the options of `validate_data` that say which types of X are accepted."""
        if self.device in ("auto", "cpu"):
            return _ACCEPTED
        # A device takes bytes without conversion.
        return {**_ACCEPTED, "accept_sparse": False, "dtype": (np.float64, np.float32, np.uint8)}

    def _progress(self, *arrays) -> Progress:
        """Begin a fit on these arrays, or resume it from the checkpoint."""
        if self.checkpoint is None:
            return Progress(self)
        return Progress(self, open_checkpoint(self, *arrays))

    def _training_rows(self, X, y, weights, progress: Progress) -> TrainingRows:
        """Return the rows of positive weight, with class or level numbers for targets."""
        rows, present = as_rows(X), weights > 0
        if not present.all():
            chosen = np.flatnonzero(present)
            copies = self.max_memory is None or not rows.reads_blocks
            rows = rows.some(chosen) if copies else SomeRows(rows, chosen)
            y, weights = y[present], weights[present]
        numbered = self._numbered(y, weights)
        # A resumed fit without a fixed seed has to use the seed it began with.
        settings = progress.recall("settings", Settings, self._settings)
        return TrainingRows(rows, settings=settings, **numbered)

    def _settings(self) -> Settings:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        names = {each.name for each in fields(Settings)} - {"theta_shrinkage", "seed"}
        values = {name: getattr(self, name) for name in names}
        return Settings(**values, theta_shrinkage=self._shrinkage(), seed=seed)

    def _shrinkage(self) -> float:
        """Return theta_shrinkage as a number."""
        is_given = not isinstance(self.theta_shrinkage, str)
        return float(self.theta_shrinkage) if is_given else _SHRINKAGE

    # Maps --------------------------------------------------------------------------------------

    def _choose(self, data: TrainingRows, progress: Progress) -> Choice | None:
        """With maps="auto", choose maps and a cost on a sample; sets `feature_rates_`."""

        def choose() -> Choice:
            sample = self._sample(data)
            loops = choose_loops(sample.X.size * len(sample.X), self.n_jobs)
            rest = data.numbers, self.n_levels, self._may_have_line, loops
            return choose_kernel(sample, data.n_classes, sample.n_different, *rest)

        self.feature_rates_ = None
        if self.maps != "auto":
            return None
        with progress.stage("choice of maps"):
            choice = progress.recall("choice of maps", Choice, choose)
        self.feature_rates_ = choice.rates
        return choice

    @property
    def _may_have_line(self) -> bool:
        """Whether the model may be the sum of a straight line and maps."""
        return False

    def _sample(self, data: TrainingRows) -> Sample:
        """Return a random sample of rows for the choice of maps."""
        wanted = rows_to_compare(data.rows.shape[1], limits.ROWS_OF_A_CHOICE)
        return data.rows.sample(data.y, data.weights, wanted, data.settings.seed)

    def grows(self, shape: tuple[int, int]) -> bool:
        """Say whether grown ferns are the whole model of rows of that shape."""
        return False

    def plans(self, shape: tuple[int, int], choice: Choice | None = None) -> list[Plan]:
        """Return the maps that a fit on rows of that shape draws, by a choice or by `maps`."""
        n_maps = None if self.n_maps == "auto" else int(self.n_maps)
        if self.maps != "auto":
            return plans_of(self.maps, n_maps, shape, self.n_levels)
        if choice is None:  # the number of maps does not depend on the choice
            choice = Choice(np.ones(shape[1]), 1.0, 0.5, 1.0, 0.0, shape[0])
        shape = (choice.n_rows, shape[1])
        return plans_of_choice(choice, n_maps, shape, self._FERN_FACTOR, self.n_levels)

    def _draw(
        self, data: TrainingRows, choice: Choice | None, progress: Progress, n_fits: int = 1
    ) -> Learner:
        """Draw the maps, code the rows, and return the learner on them; sets `maps_`."""
        plans = self.plans(data.rows.shape, choice)
        with progress.stage("binary maps") as iteration:
            rows = self._placed(data, plans, n_fits)
            self.maps_, operator, prior = draw_all(
                plans, rows, data.targets, data.settings.seed, iteration
            )
            rows.release()
        if not self.maps_.n_maps:
            warnings.warn(
                "No feature of X varies over the rows with positive weight; the model is constant.",
                UserWarning,
                stacklevel=3,
            )
        labelled = self._labelled(operator, data)
        return Learner(labelled, prior, data.settings, progress)

    def _placed(self, data: TrainingRows, plans: list[Plan], n_fits: int) -> Rows:
        """Return the rows with the place of their codes: in memory, in files or on a device."""
        rows = data.rows
        n_codes = sum(plan.n_codes(rows.shape) for plan in plans)
        loops = choose_loops(n_codes * data.n_problems * n_fits, self.n_jobs)
        is_limited = self.max_memory is not None or rows.in_files
        device = self._device_for(rows, plans, n_codes * data.n_problems * n_fits)
        if device == "cpu" and is_limited:
            return rows_within(self, rows, plans, data.n_problems, loops)
        if device == "cpu":
            in_memory = rows.in_memory()
            if in_memory.dtype == np.uint8:  # only devices take bytes
                in_memory = replace(in_memory, X=to_float32(in_memory.X))
            return replace(in_memory, loops=loops)
        if is_limited:
            raise ValueError("max_memory and rows in files need device='cpu'.")
        return DeviceRows(rows.in_memory().X, device_of(device), loops)

    def _device_for(self, rows: Rows, plans: list[Plan], n_codes: int) -> str:
        """Return the device of so many codes."""
        is_limited = self.max_memory is not None or rows.in_files or not rows.reads_blocks
        if self.device == "cpu" or (self.device == "auto" and is_limited):
            return "cpu"
        if self.device != "auto":
            device_of(self.device)  # raises an error if there is none
        if self._is_for_cpu(rows.shape) and not is_limited:
            return "cpu"
        is_grown = all(plan.is_grown for plan in plans)
        worth_it = limits.GROWN_CODES_ON_A_DEVICE if is_grown else limits.CODES_ON_A_DEVICE
        return device_for(self.device, np.inf if is_limited else n_codes, worth_it)

    def _is_for_cpu(self, shape: tuple[int, int]) -> bool:
        """Say whether the fit needs a solver of the CPU, however many codes there are."""
        return False

    def _labelled(self, operator, data: TrainingRows) -> LabelledRows:
        """Return the codes with labels and weights."""
        seed, numbers = data.settings.seed, data.numbers
        return LabelledRows(operator, data.y, data.n_classes, data.weights, seed, numbers=numbers)

    # Learned attributes ------------------------------------------------------------------------

    def _set_kernel(self, learner: Learner, kernel: Kernel) -> np.ndarray:
        """Set the attributes of the kernel without maps of zero weight; return which are kept."""
        kept = kernel.theta > 0
        self.maps_ = self.maps_.select(kept[learner.rows.operator.is_map])
        self.theta_ = kernel.theta[kept]
        self.n_maps_ = int(kept.sum())
        if kernel.solution is not None:
            learner.warn_if_not_converged(
                "Step 1 (kernel weights)",
                kernel.solution,
                "Use a smaller C_kernel (1 is nearly always large enough) or a larger max_iter.",
            )
        return kept

    @property
    def stump_features_(self) -> np.ndarray:
        """Feature of each stump."""
        check_is_fitted(self)
        return self.maps_.stump_features

    @property
    def stump_thresholds_(self) -> np.ndarray:
        """Threshold of each stump."""
        check_is_fitted(self)
        return self.maps_.stump_thresholds

    @property
    def fern_features_(self) -> list[np.ndarray]:
        """Features of the stumps that each fern joins."""
        check_is_fitted(self)
        return [features for features, _ in self.maps_.ferns]

    @property
    def fern_thresholds_(self) -> list[np.ndarray]:
        """Thresholds of the stumps that each fern joins."""
        check_is_fitted(self)
        return [thresholds for _, thresholds in self.maps_.ferns]

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


def _needs_copy(X) -> bool:
    """Say whether an array has to be converted to floating point, which takes memory."""
    is_matrix = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    return is_matrix and X.dtype not in (np.float32, np.float64)


@estimator
class Placed:
    """Parameters of fits on this machine: device, memory, and files."""

    checkpoint: Any = parameter(str, PathLike, None, default=None)
    device: str = parameter(StrOptions(DEVICES), default="cpu")
    max_memory: Any = parameter(Interval(Real, 1, None, closed="left"), str, None, default=None)
    cache_folder: Any = parameter(str, PathLike, None, default=None)


@estimator
class Costs:
    """Costs of the two steps, given by the user or chosen by the fit."""

    C: Any = parameter(POSITIVE, StrOptions({"auto"}), default="auto")
    C_kernel: float | None = parameter(POSITIVE, None, default=None)

    @property
    def has_costs(self) -> bool:
        return self.C != "auto"


@estimator
class OfClasses(BinaryMapsEstimator):
    """Parameters of estimators for classes, and their checks and encoding of y."""

    negatives_per_positive: int = parameter(AT_LEAST_ONE, default=2)
    loss: str = parameter(  # type: ignore[misc]
        StrOptions({"squared_hinge", "hinge", "logistic"}), default="squared_hinge"
    )
    class_weight: Any = parameter(dict, StrOptions({"balanced"}), None, default=None)

    def _check_targets(self, y: np.ndarray) -> None:
        check_classification_targets(y)

    def _numbered(self, y: np.ndarray, weights) -> dict[str, Any]:
        self.classes_, y = np.unique(y, return_inverse=True)
        weights = self._class_weighted(y, weights)
        return {"y": y, "weights": weights, "n_classes": self.classes_.size}

    def _class_weighted(self, y, weights):
        """Return the sample weights times the class weights."""
        classes = self.classes_
        if classes.size < 2:
            found = f"one class, {classes[0]}" if classes.size else "no class"
            raise ValueError(
                "Training needs rows of at least two classes with positive weight, "
                f"but y has {found}."
            )
        if self.class_weight is None:
            return weights
        if self.class_weight == "balanced":
            is_in_class = y[:, None] == np.arange(classes.size)
            totals = exact_sum(np.where(is_in_class, weights[:, None], 0.0))
            factors = totals.sum() / (totals.size * totals)
        else:
            factors = compute_class_weight(self.class_weight, classes=classes, y=classes)
        if not (factors > 0).all():
            raise ValueError("class_weight must be positive for every class in y.")
        return weights * look_up(factors, y)


@estimator
class OfNumbers(BinaryMapsEstimator):
    """Parameters of estimators for numbers, and their checks and encoding of y."""

    loss: str = parameter(  # type: ignore[misc]
        StrOptions({"squared_error", "absolute_error", "quantile", "poisson"}),
        default="squared_error",
    )
    quantile: float = parameter(Interval(Real, 0.0, 1.0, closed="neither"), default=0.5)

    _accepted_targets: ClassVar[dict] = {"multi_output": True, "y_numeric": True}

    def _validate_rows(self, X, y, sample_weight) -> tuple[Any, np.ndarray, np.ndarray]:
        names = target_names(y)
        X, y, weights = super()._validate_rows(X, y, sample_weight)
        self._name_targets(names, y)
        return X, y, weights

    def _name_targets(self, names: list[str], y) -> None:
        n_outputs = 1 if y.ndim == 1 else y.shape[1]
        self.target_names_ = names if len(names) == n_outputs else default_target_names(n_outputs)

    def _check_targets(self, y: np.ndarray) -> None:
        if y.dtype.kind not in "biuf":
            raise ValueError(
                f"y must be numbers, but its type is {y.dtype}; use y.astype(float), or "
                "MBKLClassifier for classes."
            )
        if self.loss == "poisson" and (y < 0).any():
            raise ValueError(
                "loss='poisson' needs y of at least zero, but some entries are negative; use "
                "loss='squared_error'."
            )

    def _numbered(self, y: np.ndarray, weights) -> dict[str, Any]:
        self.n_outputs_ = 1 if y.ndim == 1 else y.shape[1]
        self.is_multi_output_ = y.ndim > 1
        return numbered(y, weights, self.loss, self.quantile)


def target_names(y) -> list[str]:
    """Return the column names of a frame, or the name of a series; an empty list without names."""
    names = list(y.columns) if is_frame(y) else [getattr(y, "name", None)]
    return [] if None in names or "" in names else [str(name) for name in names]


def default_target_names(n_outputs: int) -> list[str]:
    """Return names for targets that have none.

    >>> default_target_names(1), default_target_names(2)
    (['y'], ['y0', 'y1'])
    """
    return ["y"] if n_outputs == 1 else [f"y{number}" for number in range(n_outputs)]


def numbered(y: np.ndarray, weights, loss: str, quantile: float = 0.5) -> dict[str, Any]:
    """Return the fields of `TrainingRows` for numbers, encoded as places among their levels."""
    if not len(y):
        raise ValueError("Training needs rows with positive weight, but there are none.")
    numbers, levels = Numbers.of(y, weights, loss, quantile)
    n_levels = len(numbers.values)
    return {"y": levels, "weights": weights, "n_classes": n_levels, "numbers": numbers}


@estimator
class Predicting(BinaryMapsEstimator):
    """Parameters of classifiers and regressors beyond those of the kernel."""

    theta_power: float = parameter(Options(Real, {0, 0.5, 1}), default=0.5)  # type: ignore[misc]
    max_time: float | None = parameter(POSITIVE, None, default=None)

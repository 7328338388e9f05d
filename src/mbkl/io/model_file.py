"""Saving and loading of fitted estimators; see docs/model-file.md for the format."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import mbkl
from mbkl.engine.files import write_atomically
from mbkl.engine.rows import to_float32
from mbkl.estimator import default_target_names
from mbkl.io.container import ModelFileError, Stored, array_of, pack, unpack
from mbkl.io.map_state import pack_maps, unpack_maps
from mbkl.io.parameters import pack_parameters, unpack_parameters
from mbkl.levels import Levels, NoLevels
from mbkl.predictor import TablePredictor


def save(model, file: str | os.PathLike | BinaryIO, *, extra: dict[str, Any] | None = None) -> None:
    """Save a fitted estimator.

    The file holds JSON and plain arrays, never code. It is written completely or not at
    all. The same model gives the same bytes, also after it was loaded.

    Parameters
    ----------
    model : any estimator of `mbkl`
    file : path or binary file
    extra : dict or None, default=None
        Anything that JSON can hold, to be stored with the model; see `load_extra`.

    See Also
    --------
    load : Load a saved estimator.

    Examples
    --------
    >>> import io
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.io import load, save
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifier(random_state=0).fit(X, y)
    >>> file = io.BytesIO()
    >>> save(model, file)
    >>> file.seek(0)
    0
    >>> loaded = load(file)
    >>> bool((loaded.decision_function(X) == model.decision_function(X)).all())
    True
    """
    header, arrays = pack_model(model)
    header["extra"] = _checked_extra({} if extra is None else extra)
    header["producer"] = f"mbkl {mbkl.__version__}"
    pieces = pack(header, arrays)
    if isinstance(file, str | os.PathLike):
        write_atomically(file, pieces)
    else:
        file.writelines(pieces)


def load(file: str | os.PathLike | BinaryIO):
    """Load a fitted estimator.

    Nothing in the file is ever executed, and every number is checked: an untrusted file
    gives an error or a working model.

    Parameters
    ----------
    file : path or binary file
        A file object must be seekable; it is read from its current position to its end.

    Returns
    -------
    model : any estimator of `mbkl`
        Its predictions have the same bits as before saving. `timings_` is empty.

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, or is of a newer format.
    """
    header, arrays = _read(file)
    _take_extra(header)
    return unpack_model(header, arrays)


def load_extra(file: str | os.PathLike | BinaryIO) -> dict[str, Any]:
    """Load the `extra` that was given to `save`.

    Parameters
    ----------
    file : path or binary file

    Returns
    -------
    extra : dict

    Examples
    --------
    >>> import io
    >>> from mbkl import MBKernel
    >>> from mbkl.io import load_extra, save
    >>> file = io.BytesIO()
    >>> save(MBKernel().fit([[0.0], [1.0]], [0, 1]), file, extra={"unit": "mm"})
    >>> file.seek(0)
    0
    >>> load_extra(file)
    {'unit': 'mm'}
    """
    return _take_extra(_read(file)[0])


def _read(file: str | os.PathLike | BinaryIO):
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as opened:
            return unpack(opened)
    return unpack(file)


def _take_extra(header: dict[str, Any]) -> dict[str, Any]:
    extra, producer = header.pop("extra", None), header.pop("producer", None)
    if not isinstance(extra, dict) or not isinstance(producer, str):
        raise ModelFileError("The header lacks 'extra' or 'producer'.")
    return extra


def _checked_extra(extra: dict[str, Any]) -> dict[str, Any]:
    try:
        same = isinstance(extra, dict) and json.loads(json.dumps(extra, allow_nan=False)) == extra
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise ValueError(
            "extra must be a dict of what JSON can hold: texts as keys; finite numbers, texts, "
            "booleans, None, lists and dicts of these."
        )
    return extra


_CLASSIFIERS = ("MBKLClassifier", "MBKLClassifierCV")
_REGRESSORS = ("MBKLRegressor", "MBKLRegressorCV")
_PREDICTORS = (*_CLASSIFIERS, *_REGRESSORS)
_SEARCHES = ("MBKLClassifierCV", "MBKLRegressorCV")
_ESTIMATORS = (*_PREDICTORS, "MBKernel")
# Fitted numbers, and the estimators that have them; the attributes end with an underscore.
_NUMBERS = {
    "C": _PREDICTORS,
    "grown_share": _PREDICTORS,
    "temperature": _CLASSIFIERS,
    "n_held_out": _REGRESSORS,
    "C_kernel": _SEARCHES,
    "theta_shrinkage": _SEARCHES,
}
_POSITIVE = ("temperature", "C_kernel")
_MOST_FEATURES = 2**31
# Largest number of columns of a model with categories; bounds the memory of a small file.
_MOST_COLUMNS = 1_000_000
_NUMERIC_LABELS = re.compile("bool|u?int(8|16|32|64)|float(16|32|64)")


def pack_model(model) -> tuple[dict[str, Any], dict[str, NDArray]]:
    kind = type(model).__name__
    if kind not in _ESTIMATORS or type(model) is not getattr(mbkl, kind):
        known = ", ".join(_ESTIMATORS)
        raise TypeError(f"A model file holds an estimator of {known}; got {type(model)!r}.")
    check_is_fitted(model)
    maps, arrays = pack_maps(model.maps_)
    names = getattr(model, "feature_names_in_", None)
    numbers = [name for name, kinds in _NUMBERS.items() if kind in kinds]
    learned: dict[str, Any] = {"n_iter": int(model.n_iter_)}
    learned |= {name: float(getattr(model, f"{name}_")) for name in numbers}
    header: dict[str, Any] = {
        "estimator": kind,
        "parameters": pack_parameters(model),
        "classes": _pack_classes(model.classes_) if hasattr(model, "classes_") else None,
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "maps": maps,
        "learned": learned,
    }
    if model.n_levels is not None:
        header["levels"] = [
            [feature, levels] for feature, levels in enumerate(model.levels_) if levels is not None
        ]
    arrays["theta"] = model.theta_
    if model.feature_rates_ is not None:
        arrays["feature_rates"] = model.feature_rates_
    if kind in _PREDICTORS:
        arrays |= {name: getattr(model, f"{name}_") for name in ("intercept", "objective", "gap")}
        arrays["coefficients"] = _single_where_exact(model.coef_.T)
    if kind in _CLASSIFIERS and model.offset_ is not None:
        learned["offset"] = float(model.offset_)
    if kind in _REGRESSORS:
        learned["multi_output"] = bool(model.is_multi_output_)
        if model.target_names_ != default_target_names(model.n_outputs_):
            learned["targets"] = list(model.target_names_)
        arrays["residuals"] = model.residuals_
        if model.spread_coef_.size:
            arrays["spread_coefficients"] = model.spread_coef_.T
            arrays["spread_intercept"] = model.spread_intercept_
    if kind in _SEARCHES:
        arrays |= _pack_search(model)
    return header, arrays


def unpack_model(header: dict[str, Any], arrays: dict[str, NDArray]):
    """Return the fitted estimator, or raise a ModelFileError if entries contradict each other."""
    entries, stored = Stored(header), Stored(arrays)
    kind = entries.take("estimator", str)
    if kind not in _ESTIMATORS:
        raise ModelFileError(f"The estimator {kind[:30]!r} is unknown.")
    model = unpack_parameters(getattr(mbkl, kind), entries.take("parameters", dict))
    classes = entries.take("classes", *((dict,) if kind in _CLASSIFIERS else (dict, type(None))))
    if classes is not None and kind not in _REGRESSORS:
        model.classes_ = _unpack_classes(Stored(classes))
    if kind == "MBKernel":
        model.has_numbers_ = classes is None
    n_features = model.n_features_in_ = entries.integer("n_features", 1, _MOST_FEATURES)
    names = entries.take("feature_names", list, type(None))
    if names is not None:
        model.feature_names_in_ = _unpack_names(names, n_features)
    stored_levels = entries.take("levels", list) if "levels" in entries else []
    model.levels_ = _unpack_levels(stored_levels, n_features)
    # A broadcast zero takes no memory, however many features the file claims.
    n_levels = np.broadcast_to(np.int64(0), n_features)
    n_levels = n_levels if model.n_levels is None else model.n_levels
    model.maps_ = unpack_maps(entries.take("maps", list), stored, n_levels)
    learned = entries.take("learned", dict)
    numbers = Stored({**_numbers_missing_in_old_files(model, kind, learned), **learned})
    _set_learned(model, kind, numbers, stored)
    for taken in (numbers, entries, stored):
        taken.done()
    return model


def _numbers_missing_in_old_files(model, kind: str, learned: dict[str, Any]) -> dict[str, float]:
    """Return the values of fitted numbers that older versions did not store."""
    values = {"theta_shrinkage": model.theta == "ones", "grown_share": learned.get("C") == 0.0}
    return {name: float(value) for name, value in values.items() if kind in _NUMBERS[name]}


def _set_learned(model, kind: str, learned: Stored, arrays: Stored) -> None:
    for name, kinds in _NUMBERS.items():
        if kind in kinds:
            setattr(model, f"{name}_", learned.real(name, is_positive=name in _POSITIVE))
    model.n_iter_ = learned.integer("n_iter", 0, 2**31)
    model.timings_ = {}
    model.n_maps_ = model.maps_.n_maps
    model.theta_ = arrays.reals("theta", model.n_maps_)
    arrays.check("theta", (model.theta_ >= 0).all(), "has negative values")
    model.feature_rates_ = None
    if "feature_rates" in arrays:
        model.feature_rates_ = arrays.reals("feature_rates", model.n_features_in_)
    if kind in _CLASSIFIERS:
        model.offset_ = learned.take("offset", float) if "offset" in learned else None
        _set_predictor(model, 1 if model.classes_.size == 2 else model.classes_.size, arrays)
    if kind in _REGRESSORS:
        _set_regressor(model, learned, arrays)
    if kind in _SEARCHES:
        _set_search(model, arrays.within("search"))


def _set_regressor(model, learned: Stored, arrays: Stored) -> None:
    model.residuals_ = arrays.reals("residuals", None, None)
    increase = model.residuals_.size > 0 and (np.diff(model.residuals_, axis=0) >= 0).all()
    arrays.check("residuals", increase, "has no values, or such that do not increase")
    model.is_multi_output_ = learned.take("multi_output", bool)
    n_outputs = model.n_outputs_ = model.residuals_.shape[1]
    is_possible = n_outputs == 1 or model.is_multi_output_
    arrays.check("residuals", is_possible, "has several columns for one target")
    model.target_names_ = default_target_names(n_outputs)
    if "targets" in learned:
        names = _unpack_names(learned.take("targets", list), n_outputs, "targets")
        model.target_names_ = names.tolist()
    _set_predictor(model, n_outputs, arrays)
    weights, intercept = np.zeros((0, n_outputs)), np.zeros(n_outputs)
    if "spread_coefficients" in arrays:
        weights = arrays.reals("spread_coefficients", None, n_outputs)
        is_possible = model.maps_.first(len(weights)).n_weights == len(weights)
        complaint = "has a number of weights that no maps have"
        arrays.check("spread_coefficients", is_possible, complaint)
        intercept = arrays.reals("spread_intercept", n_outputs)
    model.spread_coef_, model.spread_intercept_ = weights.T, intercept


def _set_predictor(model, n_columns: int, arrays: Stored) -> None:
    weights = arrays.reals("coefficients", model.maps_.n_weights, n_columns)
    model.coef_ = weights.T
    model.intercept_ = arrays.reals("intercept", n_columns)
    model.objective_, model.gap_ = (arrays.array(name, "f", 2) for name in ("objective", "gap"))
    with np.errstate(over="ignore", invalid="ignore"):
        tables = model.maps_.tables(weights)
    are_finite = all(np.isfinite(table).all() for table in tables)
    arrays.check("coefficients", are_finite, "has sums that are not finite")
    model.predictor_ = TablePredictor(
        model.maps_, tables, model.intercept_, model.n_jobs, model.device
    )


def _single_where_exact(values: NDArray) -> NDArray:
    """Return float32 if all values are exact in it, else the values."""
    single = to_float32(values)
    return single if (single == values).all() else values


# ---------------------------------------------------------------- labels and names


def _unpack_levels(stored: list, n_features: int) -> Sequence[Levels]:
    if not stored:
        return NoLevels(n_features)
    if n_features > _MOST_COLUMNS:
        raise ModelFileError(f"There are {n_features} columns beside categories.")
    levels: list[Levels] = [None] * n_features
    for pair in stored:
        match pair:
            case [int(feature), list(known)] if 0 <= feature < n_features and feature is not True:
                kinds = {type(level) for level in known}
                is_alike = kinds <= {int, float} or len(kinds) == 1
                if not is_alike or not kinds <= {str, int, float, bool}:
                    raise ModelFileError("A category has levels of different kinds.")
                if len(set(known)) < len(known) or levels[feature] is not None:
                    raise ModelFileError("A category has a level twice.")
                levels[feature] = known
            case _:
                raise ModelFileError("The levels of a category make no sense.")
    return levels


def _pack_classes(classes: NDArray) -> dict[str, Any]:
    values = classes.tolist()
    if classes.dtype.kind in "UO" and all(isinstance(value, str) for value in values):
        return {"type": "str" if classes.dtype.kind == "U" else "object", "values": values}
    if _NUMERIC_LABELS.fullmatch(classes.dtype.name):
        return {"type": classes.dtype.name, "values": values}
    raise TypeError(
        f"Class labels of type {classes.dtype} cannot be stored in a model file; use integers, "
        "floats, booleans or strings."
    )


def _unpack_classes(entries: Stored) -> NDArray:
    dtype, values = entries.take("type", str), entries.take("values", list)
    entries.done()
    if dtype not in ("str", "object") and not _NUMERIC_LABELS.fullmatch(dtype):
        raise ModelFileError("The type of the class labels is unknown.")
    classes = array_of(dtype, values, f"The class labels are not all of type {dtype}.")
    if classes.size < 2 or not (classes[1:] > classes[:-1]).all():
        raise ModelFileError("The class labels are fewer than two or do not increase.")
    return classes


def _unpack_names(names: list, count: int, of: str = "features") -> NDArray:
    if len(names) != count or not all(type(name) is str for name in names):
        raise ModelFileError(f"The names of the {of} are not one text for each.")
    return np.array(names, dtype=object)


# ---------------------------------------------------------------- cross-validation

_CANDIDATE_SETTINGS = ("C", "C_kernel", "theta_shrinkage", "depth")


def _pack_search(model) -> dict[str, NDArray]:
    """Return the settings and scores of the candidates, from which `cv_results_` is derived."""
    results = model.cv_results_
    n_folds = sum(name.startswith("split") for name in results)
    scores = [results[f"split{fold}_test_score"] for fold in range(n_folds)]
    return {
        **{f"search/{name}": results[f"param_{name}"] for name in _CANDIDATE_SETTINGS},
        "search/best_score": np.array([model.best_score_]),
        "search/n_maps": results["mean_n_maps"],
        "search/scores": np.array(scores),
    }


def _set_search(model, arrays: Stored) -> None:
    from mbkl.search import Candidate, Entry, Search

    scores = arrays.array("scores", "f", None, None).astype(np.float64)
    arrays.check("scores", scores.size > 0, "has no values")
    # Candidates that were abandoned lack the scores of the last folds, never the first.
    are_scores = not np.isinf(scores).any() and not np.isnan(scores[0]).any()
    arrays.check("scores", are_scores, "has values that are not finite")
    length = scores.shape[1]
    C, C_kernel, n_maps = (arrays.reals(name, length) for name in ("C", "C_kernel", "n_maps"))
    # Older files do not store the shrinkage: it was the same for all candidates.
    shrinkage = np.full(length, model.theta_shrinkage_)
    if "theta_shrinkage" in arrays:
        shrinkage = arrays.reals("theta_shrinkage", length)
    depth = arrays.array("depth", "f", length)
    model.best_score_ = float(arrays.reals("best_score", 1)[0])
    candidates = [Candidate(*map(float, each)) for each in zip(C_kernel, shrinkage, C)]
    entries = [
        Entry(candidate, float(depth[n]), scores[:, n], n_maps[[n]])
        for n, candidate in enumerate(candidates)
    ]
    model.cv_results_ = Search([], np.empty(0), lambda *_: np.nan, entries=entries).results()

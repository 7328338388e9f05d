"""Parameters of estimators as JSON, and back through their constructors.

JSON types are stored as they are. Any other value is an object with one entry that names
its type, such as {"tuple": [1, 2]} or {"Ferns": {"depth": 3}}.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mbkl.io.container import ModelFileError, array_of
from mbkl.maps.families import FAMILIES, families_of

# Paths are not part of a model, and a path from an untrusted file would be dangerous.
_NOT_STORED = {"checkpoint", "cache_folder"}
# Older files have these parameters, which are ignored.
_ONCE_STORED = {"cache_folder"}
_DEEPEST = 8
_LARGEST_INTEGER = 2**63
_FAMILIES = {family.__name__: family for family in FAMILIES.values()}
_ARRAY_TYPES = ("bool", "int32", "int64", "float32", "float64")


def pack_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the parameters of an estimator as JSON.

    A parameter that cannot be stored, such as a RandomState, is left out with a warning;
    the loaded estimator has its default.
    """
    packed = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in _NOT_STORED:
            continue
        try:
            packed[name] = encode(value)
        except TypeError:
            warnings.warn(
                f"The parameter {name} is of type {type(value).__name__} and not stored in the "
                "model file; a loaded model has its default. Predictions are the same.",
                UserWarning,
                stacklevel=4,
            )
    return packed


def unpack_parameters(kind: type[BaseEstimator], packed: dict[str, Any]) -> BaseEstimator:
    """Return an estimator with these parameters, or raise an error if they are not valid."""
    packed = {name: value for name, value in packed.items() if name not in _ONCE_STORED}
    estimator = _construct(kind, packed, _DEEPEST)
    try:
        estimator._validate_params()
        if estimator.maps != "auto":
            families_of(estimator.maps)
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelFileError(f"The parameters are not valid: {reason}") from None
    return estimator


def _construct(kind: Any, packed: Any, depth: int) -> Any:
    if not isinstance(packed, dict):
        raise ModelFileError(f"The parameters of {kind.__name__} are no JSON object.")
    known = set(kind._get_param_names()) - _NOT_STORED
    for name in packed.keys() - known:
        raise ModelFileError(f"{kind.__name__} has no parameter {name[:50]!r}.")
    return kind(**{name: decode(value, depth) for name, value in packed.items()})


def encode(value: Any, depth: int = _DEEPEST) -> Any:
    """Return a parameter as JSON; TypeError where that is not possible."""
    if depth < 0:
        raise TypeError("nested too deeply")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, int) and not -_LARGEST_INTEGER <= value < _LARGEST_INTEGER:
        raise TypeError("an integer beyond 64 bits")
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        items = [encode(item, depth - 1) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict):
        pairs = [[encode(key, 0), encode(item, depth - 1)] for key, item in value.items()]
        return {"dict": pairs}
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.name in _ARRAY_TYPES:
        return {"array": [value.dtype.name, [encode(item, 0) for item in value.tolist()]]}
    if type(value) in _FAMILIES.values():
        items = value.get_params(deep=False).items()
        return {type(value).__name__: {name: encode(item, depth - 1) for name, item in items}}
    raise TypeError(f"a {type(value).__name__}")


def decode(value: Any, depth: int = _DEEPEST) -> Any:
    """Return the parameter that `encode` encoded."""
    if depth < 0:
        raise ModelFileError("The parameters are nested too deeply.")
    if isinstance(value, list):
        return [decode(item, depth - 1) for item in value]
    if isinstance(value, int) and not -_LARGEST_INTEGER <= value < _LARGEST_INTEGER:
        raise ModelFileError("A parameter is an integer beyond 64 bits.")
    if not isinstance(value, dict):
        return value
    match value:
        case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest:
            return float(text)
        case {"tuple": list(items), **rest} if not rest:
            return tuple(decode(item, depth - 1) for item in items)
        case {"dict": list(pairs), **rest} if not rest:
            return dict(_decode_pair(pair, depth) for pair in pairs)
        case {"array": [str(dtype), list(items)], **rest} if not rest and dtype in _ARRAY_TYPES:
            plain = [decode(item, 0) for item in items]
            return array_of(dtype, plain, f"A parameter is no array of {dtype}.")
    if len(value) == 1 and (name := next(iter(value))) in _FAMILIES:
        return _construct(_FAMILIES[name], value[name], depth - 1)
    raise ModelFileError("A parameter is of an unknown kind.")


def _decode_pair(pair: Any, depth: int) -> tuple:
    match pair:
        case [str() | int() | float() as key, item]:
            return key, decode(item, depth - 1)
    raise ModelFileError("A parameter has an entry that is no pair of key and value.")

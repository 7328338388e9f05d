"""Parameters of estimators and of families of maps, declared once with default and constraints."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, dataclass_transform

from sklearn.utils._param_validation import Interval, StrOptions

POSITIVE = Interval(Real, 0.0, None, closed="neither")
AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
AUTO = StrOptions({"auto"})


def parameter(*constraints: Any, default: Any) -> Any:
    """Declare a parameter by the constraints that scikit-learn checks in a fit, and its default."""
    return field(default=default, metadata={"constraints": list(constraints) or "no_validation"})


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter,))
def estimator(kind: type) -> type:
    """Make a class an estimator whose parameters are its fields and those of its bases."""
    kind = dataclass(kw_only=True, eq=False, repr=False)(kind)
    constraints = {each.name: each.metadata["constraints"] for each in fields(kind)}
    kind._parameter_constraints = constraints  # type: ignore[attr-defined]
    return kind

"""Multiple Binary Kernel Learning: classifiers and regressors that learn their kernel."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = [
    "MBKLClassifier",
    "MBKLClassifierCV",
    "MBKLRegressor",
    "MBKLRegressorCV",
    "MBKernel",
    "estimate_memory",
    "load",
]

if TYPE_CHECKING:
    from mbkl.classifier import MBKLClassifier
    from mbkl.io import load
    from mbkl.kernel import MBKernel
    from mbkl.memory import estimate_memory
    from mbkl.regressor import MBKLRegressor
    from mbkl.search import MBKLClassifierCV, MBKLRegressorCV

_HOMES = {
    "MBKLClassifier": "mbkl.classifier",
    "MBKLClassifierCV": "mbkl.search",
    "MBKLRegressor": "mbkl.regressor",
    "MBKLRegressorCV": "mbkl.search",
    "MBKernel": "mbkl.kernel",
    "estimate_memory": "mbkl.memory",
    "load": "mbkl.io",
}


def __getattr__(name: str):
    """Import a public name when it is first used: `import mbkl` itself takes no time."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mbkl' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

"""Optional libraries, imported when used; a missing one is an error that names its extra."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import an optional library, or say which extra of mbkl brings it.

    >>> from mbkl.extras import require
    >>> require("json", "cli").dumps([1])
    '[1]'
    >>> require("no_such_library", "cli")
    Traceback (most recent call last):
    ...
    ImportError: no_such_library is needed for this: pip install 'mbkl[cli]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        # The error of an installed but broken library says more.
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        name = module.split(".")[0]
        message = f"{name} is needed for this: pip install 'mbkl[{extra}]'"
        raise ImportError(message, name=name) from None

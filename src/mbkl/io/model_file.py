"""Saving and loading of fitted estimators; see docs/model-file.md for the format."""

from __future__ import annotations

import json
import os
from typing import Any, BinaryIO

import mbkl
from mbkl.io.container import ModelFileError, pack, unpack, write_atomically
from mbkl.io.model_state import pack_model, unpack_model


def save(model, file: str | os.PathLike | BinaryIO, *, extra: dict[str, Any] | None = None) -> None:
    """Save a fitted estimator.

    The file holds JSON and plain arrays, never code. It is written as a whole or not at
    all. The same model gives the same bytes, and so does one that was loaded.

    Parameters
    ----------
    model : any estimator of `mbkl`
    file : path or binary file
    extra : dict or None, default=None
        Anything that JSON can hold, to be kept with the model; see `load_extra`.

    See Also
    --------
    load : The way back.

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

    Nothing in the file is ever run, and every number is checked: a file from anyone
    gives an error or a working model.

    Parameters
    ----------
    file : path or binary file
        A file object must be able to seek; it is read from where it stands to its end.

    Returns
    -------
    model : any estimator of `mbkl`
        Predicts the same bits as the one that was saved. `timings_` is empty.

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, or is of a newer format.
    """
    header, arrays = _read(file)
    _take_extra(header)
    return unpack_model(header, arrays)


def load_extra(file: str | os.PathLike | BinaryIO) -> dict[str, Any]:
    """Load what `save` was given as `extra`.

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

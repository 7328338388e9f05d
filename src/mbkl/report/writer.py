"""Reports: one HTML file with the quality and the explanation of a model."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import check_consistent_length

from mbkl.engine.files import write_atomically
from mbkl.explain import InputColumn, explain_global
from mbkl.explain.explanations import check_model, feature_names_of, score_classes
from mbkl.explain.input_columns import input_columns
from mbkl.explain.quality import Outcome, outcome_of
from mbkl.explain.rows import check_number
from mbkl.report import content

_SCRIPTS = ("model.js", "charts.js", "curves.js", "numbers.js", "what_if.js", "report.js")


def write_report(
    model,
    X,
    y,
    path: str | os.PathLike,
    *,
    X_test=None,
    y_test=None,
    columns: Sequence[InputColumn | str] | None = None,
    target: str | None = None,
    cross_validate: bool = True,
    title: str = "A model of binary maps",
    max_rows: int = 200,
    max_features: int = 30,
    max_megabytes: float = 10.0,
) -> Path:
    """Write a report on a fitted model: one HTML file that needs no network.

    It shows the quality of predictions, importances, shape functions, the kernel matrix, and rows
    whose values can be changed to see how probabilities, or the number and its interval, change;
    the page computes these from the tables of the model.

    Parameters
    ----------
    model : MBKLClassifier, MBKLRegressor or a search of theirs
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training data.
    y : array-like of shape (n_samples,), for numbers also (n_samples, n_outputs)
        Their classes or numbers.
    path : str or path
        File to write, or to replace.
    X_test, y_test : as X and y, or None
        New data on which to measure the quality of predictions; the report says what was used.
    columns : sequence of InputColumn or str, or None
        Kinds of the features, such as dates, or their names alone. None means the names that the
        model was fitted with, or x0, x1, ..., and kinds that are inferred from the values.
    target : str or None
        Name of the target; None means the name of y, or "y".
    cross_validate : bool, default=True
        Whether, without new data, to measure the quality by cross-validation: five more
        fits, or one for more than 5,000 rows or many classes. False measures it on the
        training rows, and the report says so.
    title : str, default="A model of binary maps"
    max_rows : int, default=200
        Largest number of rows whose values can be changed.
    max_features : int, default=30
        Largest number of features shown, the most important ones.
    max_megabytes : float, default=10.0
        Largest size of the model's tables; a page without them cannot compute scores.

    Returns
    -------
    path : Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.report import write_report
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MBKLClassifier(n_maps=100, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = write_report(model, X, y, f"{folder}/iris.html", title="Iris")
    ...     "<h1>Iris</h1>" in report.read_text()
    True
    """
    check_number("max_rows", max_rows)
    check_number("max_features", max_features)
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test belong together; give both or neither.")
    check_consistent_length(X, y)
    X_new, y_new = (X, y) if X_test is None else (X_test, y_test)
    check_consistent_length(X_new, y_new)
    check_model(model)
    rows = model.rows_of(X)
    columns = _complete_columns(model, rows, columns)
    explanation = explain_global(model, X)
    explanation = replace(explanation, feature_names=tuple(column.name for column in columns))
    targets = _target_names(model, y, target) if is_regressor(model) else ()
    if targets:
        words = "the logarithm of {}" if model.loss == "poisson" else "{}"
        explanation = replace(explanation, classes=tuple(map(words.format, targets)))
    shown = content.columns_to_show(explanation, max_features)
    made = content.cross_validated(model, X, y) if X_test is None and cross_validate else None
    if made is None:
        how = "training" if X_test is None else "new"
        made = outcome_of(model, X_new, np.asarray(y_new)), how
    data = {
        "rows": len(np.asarray(y)),
        "features": model.n_features_in_,
        "columns": len(columns),
        **_predictions(model, *made, targets),
        "scores": [str(label) for label in explanation.classes],
        "facts": content.describe_model(model),
        "notes": content.notes_on_columns(model, rows, y, columns, target),
        "importances": {
            **content.importances(explanation, shown),
            "together": content.together(model, rows, explanation, columns),
        },
        "shapes": content.shapes(explanation, columns, shown, rows),
        "kernel": content.kernel(model, X, y),
        "whatIf": content.what_if(
            model, X_new, y_new, columns, shown, max_rows, 1e6 * max_megabytes
        ),
        "path": content.path(model),
        "timings": getattr(model, "timings_", {}),
    }
    write_atomically(path, [page(title, data).encode("utf-8")])
    return Path(path)


def _predictions(model, made: Outcome, how: str, targets: Sequence[str]) -> dict:
    """Return the quality of predicted classes or numbers.

    `how` says which rows were predicted: "new", of "folds", "held out", or of the "training".
    """
    if targets:
        return {"numbers": content.numbers(made, how, targets)}
    classes = [str(label) for label in model.classes_.tolist()]
    return {"classes": classes, "accuracy": content.accuracy(model, made, how)}


def page(title: str, data: dict) -> str:
    """Return the page: the template with style, scripts and data put in."""
    folder = files("mbkl.report")
    style = (folder / "report.css").read_text(encoding="utf-8")
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    filled = {
        "title": html.escape(title),
        "style": style,
        "script": script,
        "style_hash": _hash(style),
        "script_hash": _hash(script),
        "data": embedded_json(data),
    }
    template = (folder / "template.html").read_text(encoding="utf-8")
    # A single pass never replaces placeholders within inserted text.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: filled[match[1]], template)


def embedded_json(data: dict) -> str:
    """Return JSON without characters that could end the script element around it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    """Return the hash by which the Content-Security-Policy of the page allows a style or script."""
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _target_names(model, y, target: str | None) -> tuple[str, ...]:
    """Return the names of the targets of a regressor: the name of y, or those of its columns."""
    if model.n_outputs_ == 1:
        name = target or getattr(y, "name", None) or score_classes(model)[0]
        return (str(name),)
    return tuple(str(name) for name in getattr(y, "columns", score_classes(model)))


def _complete_columns(model, X, columns: Sequence[InputColumn | str] | None) -> list[InputColumn]:
    """Return a column for each feature; kinds that are not given are inferred from the values."""
    given = feature_names_of(model) if columns is None else columns
    if len(given) != model.n_features_in_:
        raise ValueError(f"columns has {len(given)} entries for {model.n_features_in_} features.")
    inferred = input_columns([str(each) for each in given], model.levels_, X=X)
    return [one if isinstance(one, InputColumn) else other for one, other in zip(given, inferred)]

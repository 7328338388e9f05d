"""Trained models, and how to read and encode rows for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from mbkl.cli.console import Console
from mbkl.cli.options import Reading
from mbkl.tabular import Frame, FrameError, TableEncoder, read_frame
from mbkl.tabular.columns import kinds_of

if TYPE_CHECKING:
    from mbkl import MBKLClassifier, MBKLRegressor
    from mbkl.explain import InputColumn


@dataclass(frozen=True)
class Schema:
    """How the training file was read and encoded, so that other files are treated alike."""

    rules: list[dict[str, Any]]  # of a `TableEncoder`; empty if features have no names
    n_features: int
    targets: tuple[str, ...] = ()
    classes: NDArray | None = None  # None for a regression
    dialect: dict[str, Any] = field(default_factory=dict)

    def read(self, path: Path, console: Console, keep: Sequence[str] = (), **labels: Any) -> Frame:
        """Read rows to predict; they need no labels."""
        text = [rule["name"] for rule in self.rules if rule["kind"] == "text"]
        # Labels such as 1 and 2 are read as text if the classes are text.
        if self.classes is not None and self.classes.dtype.kind == "U":
            text.extend(labels.get("target", ()))
        needed = [*(rule["name"] for rule in self.rules), *text, *keep]
        frame = read_frame(path, text=text, keep=needed, **labels, **self.dialect)
        console.note(*frame.notes)
        return frame

    def read_labelled(
        self, path: Path, console: Console, targets: Sequence[str] | None = None
    ) -> Frame:
        targets = targets or self.targets
        if self.targets and len(targets) != len(self.targets):
            known, given = ", ".join(self.targets), ", ".join(targets)
            raise ValueError(
                f"{path}: the model has the targets {known}, not {given}; name as many columns "
                "(--target), in the same order."
            )
        if self.classes is None:
            return self.read(path, console, target=targets, task="regression")
        frame = self.read(path, console, target=targets, task="classification")
        return frame.with_classes(self.classes)

    def encoded(self, frame: Frame) -> Any:
        """Return rows as the model takes them."""
        if frame.matrix is not None:
            return self._resized(frame.matrix, frame.path)
        rules = self.rules or [{"name": name, "kind": "number"} for name in frame.names]
        with frame.errors_located():
            X = TableEncoder.from_rules(rules).transform(frame.columns)
        if X.shape[1] != self.n_features:
            raise FrameError(
                f"{frame.path}: {X.shape[1]} columns, but the model has {self.n_features} features."
            )
        return X if self.rules else X.to_numpy()

    def _resized(self, matrix: sparse.csr_array, path: str) -> sparse.csr_array:
        """Return sparse rows with as many features as the training rows."""
        if self.rules:
            raise FrameError(
                f"{path}: a sparse matrix has no columns with names, and the model needs "
                f"'{self.rules[0]['name']}' and others."
            )
        resized = matrix.copy()
        resized.resize(matrix.shape[0], self.n_features)
        return resized


def learned_schema(frame: Frame, reading: Reading) -> tuple[Schema, Any, list[str]]:
    """Learn how to encode a frame; return the schema, the encoded rows, and notes on columns."""
    from mbkl.explain.input_columns import notes_on_leaks

    are_classes = frame.task != "regression"
    classes = np.unique(frame.y) if are_classes else None
    dialect = {**reading.dialect(), "header": frame.header}
    encoder = TableEncoder.from_rules([])
    if frame.matrix is None:
        with frame.errors_located():
            encoder.fit(frame.columns)
    n_features = len(encoder.rules_) if frame.matrix is None else frame.matrix.shape[1]
    schema = Schema(encoder.rules_, n_features, frame.targets, classes, dialect)
    X = schema.encoded(frame)
    is_text = {rule["name"]: rule["kind"] == "text" for rule in encoder.rules_}
    columns = (
        (name, pd.factorize(X[name])[0] if text else X[name].to_numpy(), text)
        for name, text in is_text.items()
    )
    leaks = notes_on_leaks(columns, frame.y, frame.target or "y", are_classes)
    return schema, X, [*encoder.notes_, *leaks]


@dataclass(frozen=True)
class Trained:
    """A model, and the schema of its file."""

    model: MBKLClassifier | MBKLRegressor
    schema: Schema
    rules: list[dict[str, Any]] | None = None  # of the file; None if saved from Python

    @classmethod
    def load(cls, path: Path) -> Trained:
        from mbkl.io import ModelFileError, load, load_extra

        if not path.exists():
            raise ValueError(f"{path}: there is no such file; 'mbkl fit' writes one.")
        try:
            model, extra = load(path), load_extra(path)
        except ModelFileError as error:
            remedy = "If a fresh copy of it is no better, 'mbkl fit' writes a new one."
            raise ValueError(f"{path}: {error} {remedy}") from None
        if not hasattr(model, "predict"):
            raise ValueError(f"{path}: this holds a {type(model).__name__}, which cannot predict.")
        # Extra entries that differ from those of `save` are an error.
        stored, targets = extra.get("rules"), extra.get("target") or []
        dialect = extra.get("dialect", {})
        try:
            targets = [targets] if isinstance(targets, str) else list(targets)
            Reading(target=targets, **dialect)
            rules = _rules_of(model) if stored is None else TableEncoder.from_rules(stored).rules_
        except (ValueError, TypeError) as error:
            words = f"{path}: what it says about files makes no sense ({error})."
            raise ValueError(words) from None
        classes = getattr(model, "classes_", None)
        schema = Schema(rules, model.n_features_in_, tuple(targets), classes, dialect)
        return cls(model, schema, stored)

    def save(self, path: Path) -> None:
        from mbkl.io import save

        targets, dialect = list(self.schema.targets), self.schema.dialect
        # A single target is stored as text, for older versions.
        target = targets[0] if len(targets) == 1 else targets
        extra = {"rules": self.schema.rules or None, "target": target, "dialect": dialect}
        save(self.model, path, extra=extra)

    @property
    def predicts_numbers(self) -> bool:
        return self.schema.classes is None

    def columns(self, frame: Frame | None) -> tuple[InputColumn, ...]:
        """Return a column for each feature, with kinds from a frame if there is one."""
        from mbkl.explain.explanations import feature_names_of
        from mbkl.explain.input_columns import input_columns

        kinds = {} if frame is None else kinds_of(frame.columns)
        return input_columns(feature_names_of(self.model), self.model.levels_, kinds)

    def in_words(self, row: Any, frame: Frame | None) -> list[str]:
        """Return the values of one row as text."""
        (values,) = self.model.rows_of(row)
        return [
            column.words(value) for column, value in zip(self.columns(frame), values, strict=True)
        ]


def _rules_of(model: MBKLClassifier | MBKLRegressor) -> list[dict[str, Any]]:
    """Return encoder rules from the names and levels of a model that was saved from Python."""
    pairs = zip(getattr(model, "feature_names_in_", ()), model.levels_)
    is_text = {str(name): any(isinstance(v, str) for v in levels or ()) for name, levels in pairs}
    return [{"name": name, "kind": "text" if is_text[name] else "number"} for name in is_text]

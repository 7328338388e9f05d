"""A trained model, with what its file says about the file it learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mbkl.cli.console import Console
from mbkl.cli.options import Reading
from mbkl.tabular import Frame, FrameError, TableEncoder, read_frame
from mbkl.tabular.columns import kinds_of

if TYPE_CHECKING:
    from mbkl import MBKLClassifier, MBKLRegressor
    from mbkl.explain import InputColumn


@dataclass(frozen=True)
class Trained:
    """A model, and how to read and encode rows for it.

    Rules are those of a `TableEncoder`, None for a model that was saved in Python; the targets are
    the columns of the labels, in files that have some.
    """

    path: Path
    model: MBKLClassifier | MBKLRegressor
    rules: list[dict[str, Any]] | None = None
    targets: tuple[str, ...] = ()
    dialect: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Trained:
        """Read a model file."""
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
        # What `save` wrote; anything else is an error.
        rules, targets = extra.get("rules"), extra.get("target") or []
        dialect = extra.get("dialect", {})
        try:
            targets = [targets] if isinstance(targets, str) else list(targets)
            Reading(target=targets, **dialect)
            if rules is not None:
                TableEncoder.from_rules(rules)
        except (ValueError, TypeError) as error:
            words = f"{path}: what it says about files makes no sense ({error})."
            raise ValueError(words) from None
        return cls(path, model, rules, tuple(targets), dialect)

    def save(self) -> None:
        """Write the model file."""
        from mbkl.io import save

        # A single target is text, as it always was.
        target = self.targets[0] if len(self.targets) == 1 else list(self.targets)
        extra = {"rules": self.rules, "target": target or None, "dialect": self.dialect}
        save(self.model, self.path, extra=extra)

    @property
    def predicts_numbers(self) -> bool:
        """Whether the model is a regressor."""
        return not hasattr(self.model, "classes_")

    def read(self, path: Path, console: Console, keep: Sequence[str] = (), **labels: Any) -> Frame:
        """Read rows to predict; labels that they may have do not matter."""
        rules = self._rules
        text = [rule["name"] for rule in rules if rule["kind"] == "text"]
        # Labels such as 1 and 2 are text if the model knows others.
        if not self.predicts_numbers and self.model.classes_.dtype.kind == "U":
            text.extend(labels.get("target", ()))
        needed = [*(rule["name"] for rule in rules), *keep]
        frame = read_frame(path, text=text, keep=needed, **labels, **self.dialect)
        console.note(*frame.notes)
        return frame

    def read_labelled(self, path: Path, console: Console, targets: Sequence[str] | None) -> Frame:
        """Read rows whose labels are known."""
        target = targets or self.targets
        n_targets = getattr(self.model, "n_outputs_", 1)
        if target and len(target) != n_targets:
            raise ValueError(
                f"{self.path}: this model has {n_targets} target{'s' if n_targets > 1 else ''}, "
                f"not {len(target)}; name as many columns (--target), in the same order."
            )
        if self.predicts_numbers:
            return self.read(path, console, target=target, task="regression")
        frame = self.read(path, console, target=target, task="classification")
        return frame.with_classes(self.model.classes_)

    def features(self, frame: Frame) -> Any:
        """Return rows as the model takes them."""
        rules = self._rules or [{"name": name, "kind": "number"} for name in frame.names]
        n_features = self.model.n_features_in_
        if len(rules) != n_features:
            raise FrameError(
                f"{frame.path}: {len(rules)} columns, but the model has {n_features} features."
            )
        X = encoded(TableEncoder.from_rules(rules), frame)
        return X if hasattr(self.model, "feature_names_in_") else X.to_numpy()

    def columns(self, frame: Frame | None) -> tuple[InputColumn, ...]:
        """Return what the features are, as far as a frame tells."""
        from mbkl.explain.explanations import feature_names_of
        from mbkl.explain.input_columns import input_columns

        kinds = {} if frame is None else kinds_of(frame.columns)
        return input_columns(feature_names_of(self.model), self.model.levels_, kinds)

    def in_words(self, row: Any, frame: Frame | None) -> list[str]:
        """Return what the columns of one row hold."""
        (values,) = self.model._validate_new(row)
        return [
            column.words(value) for column, value in zip(self.columns(frame), values, strict=True)
        ]

    @property
    def _rules(self) -> list[dict[str, Any]]:
        """How columns become features; a model that was saved in Python has names and levels."""
        if self.rules is not None:
            return self.rules
        known = zip(getattr(self.model, "feature_names_in_", ()), self.model.levels_)
        is_text = {str(name): any(isinstance(one, str) for one in own or ()) for name, own in known}
        return [{"name": name, "kind": "text" if is_text[name] else "number"} for name in is_text]


def encoded(encoder: TableEncoder, frame: Frame) -> pd.DataFrame:
    """Return the columns of a frame as numbers and text."""
    with frame.errors_located():
        return encoder.transform(frame.columns)


def encoded_to_learn(frame: Frame) -> tuple[TableEncoder, pd.DataFrame, list[str]]:
    """Learn how to encode a frame; return also its rows, and what is odd about its columns."""
    from mbkl.explain.leaks import notes_on_leaks

    with frame.errors_located():
        encoder = TableEncoder().fit(frame.columns)
    X = encoded(encoder, frame)
    is_text = {rule["name"]: rule["kind"] == "text" for rule in encoder.rules_}
    columns = (
        (name, pd.factorize(X[name])[0] if text else X[name].to_numpy(), text)
        for name, text in is_text.items()
    )
    leaks = notes_on_leaks(columns, frame.y, frame.target or "y", frame.task != "regression")
    return encoder, X, [*encoder.notes_, *leaks]

"""A trained model, with what its file says about the file it learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

    Rules are those of a `TableEncoder`, None where features are what they are in the file; the
    targets are the columns of the labels, in files that have some.
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
        targets = [targets] if isinstance(targets, str) else targets
        dialect = extra.get("dialect", {})
        try:
            if rules is not None:
                width = len(TableEncoder.from_rules(rules).rules_)
                if width != model.n_features_in_:
                    raise ValueError(f"{width} columns for {model.n_features_in_} features")
            are_names = isinstance(targets, list) and all(isinstance(one, str) for one in targets)
            if not are_names or not isinstance(dialect, dict):
                raise ValueError("the target or the dialect is none")
            Reading(target=targets, **dialect)
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

    def read(self, path: Path, console: Console, keep: Sequence[str] = ()) -> Frame:
        """Read rows to predict; labels that they may have do not matter."""
        columns = [*self._columns, *keep]
        frame = read_frame(path, text=self._text_columns, keep=columns, **self.dialect)
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
        text = self._text_columns
        classes = None if self.predicts_numbers else self.model.classes_
        if classes is not None and classes.dtype.kind == "U":
            text.extend(target)  # labels such as 1 and 2 are text if the model knows others
        task = "regression" if classes is None else "classification"
        options = {"target": target, "task": task, "keep": self._columns, **self.dialect}
        frame = read_frame(path, text=text, **options)
        console.note(*frame.notes)
        return frame if classes is None else frame.with_classes(classes)

    def features(self, frame: Frame) -> Any:
        """Return rows as the model takes them, in float32 as models that are exported do."""
        n_features = self.model.n_features_in_
        if frame.is_sparse:
            if self.rules is not None:
                raise FrameError(
                    f"{frame.path}: a sparse matrix has no columns with names, and the model needs "
                    f"'{self.rules[0]['name']}' and others."
                )
            X = resized(frame.columns, n_features)
            X.data = in_float32(X.data)
            return X
        rules = self._rules or [{"name": name, "kind": "number"} for name in frame.names]
        if len(rules) != n_features:
            raise FrameError(
                f"{frame.path}: {len(rules)} columns, but the model has {n_features} features."
            )
        has_names = hasattr(self.model, "feature_names_in_")
        return in_float32(encoded(TableEncoder.from_rules(rules), frame, has_names))

    @property
    def predicts_numbers(self) -> bool:
        """Whether the model is a regressor."""
        return not hasattr(self.model, "classes_")

    def columns(self, frame: Frame | None) -> tuple[InputColumn, ...]:
        """Return what the features are, as far as a frame tells."""
        from mbkl.explain.explanations import feature_names_of
        from mbkl.explain.input_columns import input_columns

        kinds = {} if frame is None or frame.is_sparse else kinds_of(frame.columns)
        return input_columns(feature_names_of(self.model), self.model.levels_, kinds)

    def in_words(self, row: Any, frame: Frame | None) -> list[str]:
        """Return what the columns of one row hold."""
        coded = self.model._validate_new(row)
        values = coded.toarray() if hasattr(coded, "toarray") else coded
        columns = self.columns(frame)
        return [column.words(value) for column, value in zip(columns, values[0], strict=True)]

    @property
    def _rules(self) -> list[dict[str, Any]]:
        """How columns become features; a model that was saved in Python has names and levels."""
        if self.rules is not None:
            return self.rules
        known = zip(getattr(self.model, "feature_names_in_", ()), self.model.levels_)
        is_text = {str(name): any(isinstance(one, str) for one in own or ()) for name, own in known}
        return [{"name": name, "kind": "text" if is_text[name] else "number"} for name in is_text]

    @property
    def _columns(self) -> list[str]:
        """Columns that the model needs, whatever they look like."""
        return [rule["name"] for rule in self._rules]

    @property
    def _text_columns(self) -> list[str]:
        return [rule["name"] for rule in self._rules if rule["kind"] != "number"]


def encoded(encoder: TableEncoder, frame: Frame, with_names: bool = True) -> Any:
    """Return the columns of a frame as numbers and text: a dataframe with names, or an array."""
    import pandas as pd

    with frame.errors_located():
        X = encoder.transform(frame.columns)
    if isinstance(X, pd.DataFrame):
        return X
    return pd.DataFrame(X, columns=encoder.get_feature_names_out(), copy=False) if with_names else X


def encoded_for_training(frame: Frame, *others: Frame) -> tuple[list[Any], TableEncoder | None]:
    """Learn how to encode a frame, and encode it and others; sparse ones stay as they are."""
    for other in others:
        if other.is_sparse != frame.is_sparse:
            raise FrameError(f"{other.path} and {frame.path} must both be sparse, or none of them.")
    if frame.is_sparse:
        width = frame.columns.shape[1]
        return [frame.columns, *(resized(other.columns, width) for other in others)], None
    with frame.errors_located():
        encoder = TableEncoder().fit(frame.columns)
    return [encoded(encoder, one) for one in (frame, *others)], encoder


def encoded_with_notes(frame: Frame) -> tuple[Any, list[dict[str, Any]] | None, list[str]]:
    """Encode a frame to learn from; return also the rules, and what is odd about its columns."""
    import pandas as pd

    from mbkl.explain.leaks import notes_on_leaks

    [X], encoder = encoded_for_training(frame)
    if encoder is None:
        return X, None, []
    is_text = {name: not pd.api.types.is_numeric_dtype(X[name]) for name in X}
    columns = (
        (name, pd.factorize(X[name])[0] if is_text[name] else X[name].to_numpy(), is_text[name])
        for name in X
    )
    leaks = notes_on_leaks(columns, frame.y, frame.target or "y", frame.task != "regression")
    return X, encoder.rules_, [*encoder.notes_, *leaks]


def in_float32(values: Any) -> Any:
    """Return an array or a dataframe in float32; numbers too large for it are its largest."""
    import numpy as np

    largest = float(np.finfo(np.float32).max)
    if hasattr(values, "select_dtypes"):
        numbers = values.select_dtypes("number")
        values = values.copy(deep=False)
        values[numbers.columns] = numbers.clip(-largest, largest).astype(np.float32)
        return values
    return values.clip(-largest, largest).astype(np.float32)


def resized(matrix: Any, width: int) -> Any:
    """Return a sparse matrix with so many columns; features not seen in training tell nothing."""
    matrix = matrix.copy()
    matrix.resize((matrix.shape[0], width))
    return matrix
